"""What holds for all tests: marks by folder, and how many examples Hypothesis tries."""

import gc
import io
import os
import shutil
import tempfile
import uuid
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest
from hypothesis import settings

# Of linear algebra each process has one thread, and so have those that it starts. With two, which
# wait for each other in turning, a report takes three times the processor time. Set before NumPy
# is loaded below.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from tests.data.engines.servers import WITH_SPARK, Server, running_postgres

TESTS = Path(__file__).parent
# Marks of all tests in a folder, so that parts can be chosen: `pytest -m "not browser"`.
MARKS = {"browser": "browser", "data/engines": "engines", "statistical": "statistical"}
# What takes long or starts a server that its tests share: a process begins with each of these.
SLOW = ("browser", ("data/engines", "data/test_amounts"), ("attacks", "test_"))

# Files in memory, on Linux, and how many bytes have to be free there: a run writes about 1 GB.
MEMORY, ROOM = Path("/dev/shm"), 4 << 30

# Examples per test, as a multiple of the number that the test names: a tenth while one works and
# before every change, the whole and more by night.
SCALES = {"ci": 1 / 10, "nightly": 10.0}
FEWEST = 5
PROFILE = os.environ.get("RPEXPLORE_TEST_PROFILE", "ci")

for name, scale in SCALES.items():
    # How long an example takes says more about what else the machine is doing.
    settings.register_profile(name, deadline=None, max_examples=round(100 * scale))
settings.load_profile(PROFILE)

# A release has all that any process has written on disk before it is complete, and would wait for
# what was installed a moment ago; here nobody pulls the plug.
os.sync = lambda: None

# What an earlier version found, and kept in the user's folder, is no proof of this one.
os.environ["RPEXPLORE_NO_CACHE"] = "1"

# No test knows the ledgers that the user has used; fixtures of the whole run share one home.
HOMES = tempfile.TemporaryDirectory(prefix="rpexplore-homes-")
os.environ["RPEXPLORE_HOME"] = f"{HOMES.name}/shared"


@pytest.fixture(autouse=True, scope="module")
def own_home_of_module() -> Iterator[None]:
    """Nor do fixtures of a module know those of another, or of their own first making: a process
    that is handed a module in two pieces makes them twice, with names that have accounts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RPEXPLORE_HOME", f"{HOMES.name}/{uuid.uuid4().hex}")
        yield


@pytest.fixture(autouse=True)
def own_home(monkeypatch) -> None:
    """Nor does a test know those that another one has used."""
    monkeypatch.setenv("RPEXPLORE_HOME", f"{HOMES.name}/{uuid.uuid4().hex}")


def pytest_configure(config: pytest.Config) -> None:
    """Keep the files of a run in several processes in memory, where no commit waits for a disk."""
    if "TMPDIR" in os.environ or not getattr(config.option, "numprocesses", None):
        return
    if not MEMORY.is_dir() or shutil.disk_usage(MEMORY).free < ROOM:
        return
    if os.statvfs(MEMORY).f_flag & os.ST_NOEXEC:  # some tests make programs
        return
    folder = tempfile.TemporaryDirectory(
        prefix="rpexplore-tests-", dir=MEMORY, ignore_cleanup_errors=True
    )
    config.add_cleanup(folder.cleanup)
    os.chmod(folder.name, 0o755)  # PostgreSQL may run as another user
    os.environ["TMPDIR"] = tempfile.tempdir = folder.name


@pytest.hookimpl(wrapper=True, optionalhook=True)
def pytest_xdist_auto_num_workers() -> Generator[None, int, int]:
    """One more than processors, as tests that wait for a browser or a server leave theirs idle."""
    return 1 + (yield)


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Generator[None]:
    scaled = set()
    for item in items:
        for mark in marks_of(item.path):
            item.add_marker(mark)
        # A cluster takes half a minute of processor time to begin and to warm up; what its
        # workers do is tried by day without one. `.ci/run` tries it beside all other tests.
        if "spark" in getattr(item, "fixturenames", ()) and not WITH_SPARK:
            item.add_marker("nightly")
        test = getattr(item, "function", None)
        if hasattr(test, "hypothesis") and test not in scaled:
            scaled.add(test)
            scale_examples(test)
    thin_out(items)
    yield  # what is not chosen goes
    if n_workers := getattr(config, "workerinput", {}).get("workercount", 0):
        items[:] = with_slow_first(items, n_workers)


@cache
def marks_of(path: Path) -> tuple[str, ...]:
    """The marks of all tests in this file."""
    return tuple(mark for folder, mark in MARKS.items() if path.is_relative_to(TESTS / folder))


@cache
def number_of_slow(path: Path) -> int | None:
    """In which of the folders of `SLOW` this file is."""
    name = path.relative_to(TESTS).as_posix()
    return next((number for number, slow in enumerate(SLOW) if name.startswith(slow)), None)


def thin_out(items: list[pytest.Item]) -> None:
    """Leave most cases of a grid to the nights: of one over several values, or as it is marked."""
    grids: dict[str, list[pytest.Item]] = {}
    for item in items:
        if hasattr(item, "callspec") and not item.get_closest_marker("nightly"):
            grids.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for cases in grids.values():
        if marker := cases[0].get_closest_marker("by_day"):
            (n_cases,), last = marker.args, len(cases) - 1
            chosen = {round(k * last / max(1, n_cases - 1)) for k in range(n_cases)}
        elif len(values_of(cases[0])) > 1:
            chosen = with_every_value(cases)
        else:
            continue
        for index, case in enumerate(cases):
            if index not in chosen:
                case.add_marker("nightly")


def with_every_value(cases: list[pytest.Item]) -> set[int]:
    """Which cases of a grid to take, so that every value of each of its parameters is in one."""
    values = [values_of(case) for case in cases]
    missing, chosen = set().union(*values), set()
    while missing:
        best = max(range(len(cases)), key=lambda index: len(values[index] & missing))
        chosen.add(best)
        missing -= values[best]
    return chosen


def values_of(case: pytest.Item) -> set[tuple[str | int, ...]]:
    """The values of a case, those of one `parametrize` together: by what objects they are."""
    left = dict(case.callspec.params)
    values = set()
    for marker in case.iter_markers("parametrize"):
        names = marker.args[0]
        names = names.replace(" ", "").split(",") if isinstance(names, str) else names
        values.add((*names, *(id(left.pop(name)) for name in names)))
    return values | {(name, id(value)) for name, value in left.items()}  # of fixtures


def with_slow_first(items: list[pytest.Item], n_workers: int) -> list[pytest.Item]:
    """The tests in the order in which so many processes end at the same time.

    xdist deals them out in runs of equal length, one a process, and a process that is done takes
    over the second half of another's run. So what is slow stands at the begin of a run: it is not
    the last to end, and the server that its tests share is not started by a second process.
    """
    first: list[list[pytest.Item]] = [[] for _ in range(n_workers)]
    rest = []
    for item in items:
        number = number_of_slow(item.path)
        (rest if number is None else first[number % n_workers]).append(item)
    ordered: list[pytest.Item] = []
    for worker, slow in enumerate(first):
        n_of_run = (len(items) - len(ordered)) // (n_workers - worker)
        n_more = max(0, n_of_run - len(slow))
        ordered += [*slow, *rest[:n_more]]
        del rest[:n_more]
    return ordered + rest


# Nothing that is imported and collected is garbage: looking for some takes a sixth of the time.
gc.disable()


def pytest_collection_finish(session: pytest.Session) -> None:
    """What is there by now stays to the end, and is never gone through; the rest not so often."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    gc.enable()


@contextmanager
def written_here(function, *args, ended) -> Iterator[io.BytesIO]:
    """What `written_by_other_process` gives, without another process."""
    output = io.BytesIO()
    function(output, *args)
    output.seek(0)
    yield output


@pytest.fixture
def in_this_process(monkeypatch) -> None:
    """Statistics files and spreadsheets are read here: each other process takes half a second."""
    import resource

    from rpexplore.common import statistics_files
    from rpexplore.data.files import offered, statistics_batches

    def here(function, *args, **_):
        return function(*args)

    monkeypatch.setattr(resource, "setrlimit", lambda *_: None)  # of this process for good
    monkeypatch.setattr(offered, "in_other_process", here)
    monkeypatch.setattr(statistics_files, "_in_other_process", statistics_files._dictionary)
    monkeypatch.setattr(statistics_batches, "written_by_other_process", written_here)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A server that all tests of a process share."""
    with running_postgres() as server:
        yield server


def scale_examples(test) -> None:
    """Scale the number of examples that a test names itself, which no profile would."""
    # Hypothesis has no public way to change the settings of a decorated test.
    stated = test._hypothesis_internal_use_settings
    if stated.max_examples != settings().max_examples:
        examples = max(
            min(stated.max_examples, FEWEST), round(stated.max_examples * SCALES[PROFILE])
        )
        test._hypothesis_internal_use_settings = settings(stated, max_examples=examples)
