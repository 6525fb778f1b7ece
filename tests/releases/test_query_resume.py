"""Runs of query plans that are stopped: killed, changed, resumed. As those of tables."""

import json
import time
from pathlib import Path

import numpy as np
import pytest

from rpexplore import Budget, Domain
from rpexplore.errors import ReleaseError
from rpexplore.queries.planner import query_plan
from rpexplore.queries.query_list import QueryList
from rpexplore.releases.ledger import Ledger
from rpexplore.releases.query_release import QueryRelease
from rpexplore.releases.release import can_be_resumed, release, resume
from tests.support.stopped_runs import REFUSED, killed, started

DOMAIN = Domain.from_sizes({"a": 3, "b": 4})
COEFFICIENTS = np.vstack([np.ones(12), np.eye(12)[:5], np.repeat([1.0, 0, -1], 4)])
NAMES = tuple(f"query {number}" for number in range(len(COEFFICIENTS)))
QUERIES = QueryList(DOMAIN, COEFFICIENTS, NAMES, np.full(len(NAMES), 2.0))
PLAN = query_plan(QUERIES, budget=Budget(rho="1/2"))
WRITE = "rpexplore.releases.query_release.QuerySteps.write"


@pytest.fixture
def data(tmp_path) -> Path:
    path = tmp_path / "data" / "records.csv"
    path.parent.mkdir()
    rows = np.random.default_rng(7).integers(0, DOMAIN.sizes, (40, 2))
    path.write_text("a,b\n" + "".join(",".join(map(str, row)) + "\n" for row in rows))
    PLAN.save(tmp_path / "plan.json")
    return path


@pytest.fixture
def output(data) -> Path:
    (data.parent.parent / "outputs").mkdir()
    return data.parent.parent / "outputs" / "release"


@pytest.fixture
def forbidden_noise(monkeypatch):
    def draw(*args, **options):
        raise AssertionError("noise was drawn")

    monkeypatch.setattr("rpexplore.releases.query_release.discrete_gaussian", draw)


def states(data: Path) -> list[str]:
    accounts = Ledger.beside(data).accounts()
    return [entry.state for account in accounts for entry in account.entries]


def unfinished(output: Path) -> Path:
    return output.parent / f".{output.name}.unfinished"


def entries(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def drawn_numbers(folder: Path) -> list[int]:
    return np.fromfile(folder / "run" / "measured.int64", dtype="<i8").tolist()


def run_of(data: Path, output: Path) -> tuple[Path, Path, Path]:
    return data.parent.parent / "plan.json", data, output


@pytest.mark.parametrize(
    ("function", "nth", "charged"),
    [
        ("rpexplore.releases.query_release.QuerySteps.check_countable", 1, 0),
        ("rpexplore.releases.release.preallocate", 1, 0),
        ("rpexplore.releases.ledger.Ledger.book", 1, 0),
        ("rpexplore.releases.query_release.discrete_gaussian", 1, 1),
        ("os.fsync", 4, 0),
        ("os.fsync", 5, 1),
        ("rpexplore.releases.release.write_note", 1, 1),
        ("os.fsync", 6, 1),
    ],
)
def test_before_all_is_drawn_a_killed_run_can_be_run_again_and_is_charged_once(
    function, nth, charged, data, output
):
    killed(function, nth, *run_of(data, output))
    assert states(data) == ["started"] * charged
    assert not output.exists()
    with pytest.raises(ReleaseError, match=r"no run into .* that could be finished"):
        resume(output)
    # Booked or not, the same run again is charged once in all.
    release(PLAN, data, output)
    assert states(data) == ["finished"]
    assert entries(output.parent) == ["release"]


@pytest.mark.parametrize(
    ("function", "nth"),
    [
        ("rpexplore.releases.query_release.QuerySteps.write", 1),
        (WRITE, 1),
        ("pyarrow.csv.write_csv", 1),
        ("rpexplore.releases.query_release.file_entry", 3),
        ("rpexplore.releases.query_release.QueryRelease.write_manifest", 1),
        ("rpexplore.releases.atomic_folder._open_as_usual", 1),
        ("os.sync", 1),
    ],
)
def test_once_all_is_drawn_a_killed_run_is_finished_without_drawing_again(
    function, nth, data, output, forbidden_noise
):
    killed(function, nth, *run_of(data, output))
    assert states(data) == ["started"]
    assert not output.exists()
    with pytest.raises(ReleaseError, match="not a finished release"):
        QueryRelease.load(output)
    with pytest.raises(ReleaseError, match="rpexplore release --resume"):
        release(PLAN, data, output)
    drawn = drawn_numbers(unfinished(output))
    data.unlink()  # the records are not needed
    done = resume(output)
    assert done.measurements.tolist() == drawn
    assert np.allclose(done.answers["answer"], PLAN.strategy.decoding @ drawn, rtol=1e-12)
    assert states(data) == ["finished"]
    assert entries(output.parent) == ["release"]
    assert "run" not in entries(output)
    assert QueryRelease.load(output).manifest == done.manifest
    with pytest.raises(ReleaseError, match="already something"):
        resume(output)


def test_killed_when_it_has_its_name_the_release_is_whole_and_can_be_tidied(data, output):
    killed("shutil.rmtree", 1, *run_of(data, output))
    assert QueryRelease.load(output).plan.sha256 == PLAN.sha256
    assert states(data) == ["finished"]
    assert can_be_resumed(output)
    assert isinstance(resume(output), QueryRelease)
    assert states(data) == ["finished"]
    assert "run" not in entries(output)
    assert not can_be_resumed(output)


def test_a_resumed_run_can_be_killed_and_resumed(data, output):
    killed(WRITE, 1, *run_of(data, output))
    drawn = drawn_numbers(unfinished(output))
    killed("rpexplore.releases.query_release.QueryRelease.write_manifest", 1, "resume", output)
    assert resume(output).measurements.tolist() == drawn
    assert states(data) == ["finished"]


def test_two_resumes_at_once_write_one_release(data, output):
    killed(WRITE, 1, *run_of(data, output))
    both = [started("resume", output) for _ in range(2)]
    for process in both:
        process.join(120)
    # Whichever comes second is refused, or finds the first one's release complete.
    codes = {process.exitcode for process in both}
    assert 0 in codes
    assert codes <= {0, REFUSED}
    assert QueryRelease.load(output)
    assert states(data) == ["finished"]


@pytest.mark.parametrize("how", ["measured", "shorter", "plan", "note", "other plan", "ledger"])
def test_a_changed_remainder_is_refused_and_kept(how, data, output, tmp_path):
    killed(WRITE, 1, *run_of(data, output))
    left, ledger = unfinished(output), None
    measured, note = left / "run" / "measured.int64", left / "run" / "drawn.json"
    other_plan = query_plan(QUERIES, budget=Budget(rho="1/3"))
    if how == "measured":
        measured.write_bytes(bytes([measured.read_bytes()[0] ^ 1]) + measured.read_bytes()[1:])
    elif how == "shorter":
        measured.write_bytes(measured.read_bytes()[:-8])
    elif how == "note":
        note.write_text("{}")
    elif how == "ledger":
        ledger = tmp_path / "elsewhere.sqlite"
    else:
        (left / "plan.json").write_text(other_plan.text)
        if how == "other plan":
            note.write_text(
                json.dumps({**json.loads(note.read_text()), "plan_sha256": other_plan.sha256})
            )
    with pytest.raises(ReleaseError, match="cannot be finished"):
        resume(output, ledger=ledger)
    assert left.exists()
    assert not output.exists()
    assert states(data) == ["started"]


def test_at_whatever_moment_it_is_killed(data, output):
    """By the clock: whatever the moment, one charge at most, nothing half, and a way on."""
    outcomes = set()
    for attempt in range(8):
        where = output.with_name(f"release{attempt}")
        before = len(states(data))
        run = started(*run_of(data, where))
        time.sleep(0.01 * attempt)
        run.kill()
        run.join(120)
        charged = len(states(data)) - before
        assert charged <= 1
        drawn = (unfinished(where) / "run" / "drawn.json").exists()
        if where.exists():
            assert charged == 1
            QueryRelease.load(where)
            outcomes.add("finished")
        elif drawn:
            assert charged == 1
            numbers = drawn_numbers(unfinished(where))
            assert resume(where).measurements.tolist() == numbers
            outcomes.add("drawn")
        else:
            outcomes.add("charged" if charged else "free")
    assert outcomes  # which moments are met depends on the machine
