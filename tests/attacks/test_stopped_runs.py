"""Runs stopped, short of disk, and many at once: nothing is lost, nothing is charged twice.

A run that is booked can be finished at no further cost, whenever it was stopped or found the disk
full; one that is not is not charged, and can be begun again. A few points in `make test`; 60 of
SIGTERM and 160 of full disks in `make test-all`.
"""

import os
import shutil
import signal
from pathlib import Path

import pytest

import rpexplore as rp
from rpexplore.cli.console import Interrupted, heed_signals
from rpexplore.errors import ReleaseError
from rpexplore.planning.plan import load_plan
from rpexplore.planning.planner import plan_tables
from rpexplore.releases.approvals import ApprovalDemand
from rpexplore.releases.atomic_folder import new_folder, unfinished_folder
from rpexplore.releases.ledger.ledger import FILENAME, Ledger
from rpexplore.releases.release import can_be_resumed
from tests.attacks.test_killed_runs import plan as plan
from tests.attacks.test_killed_runs import records
from tests.support.ledgers import database_ledger
from tests.support.stopped_runs import (
    REFUSED,
    filled_at_call,
    limited,
    lines_of,
    started,
    stopped_at_line,
)

NIGHTLY = os.environ.get("RPEXPLORE_TEST_PROFILE") == "nightly"
# Of each kind of run.
STOPS, FULL, WRITERS = (30, 40, 10) if NIGHTLY else (3, 6, 4)
FULL_OF_BYTES = 40 if NIGHTLY else 3
# Of notes, so many 32nds of a page of SQLite's. At which a run finds no room, paths say as well.
FULL_LEDGERS, PAGE = range(32) if NIGHTLY else (16, 22, 25), 4096
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"


def states(data: Path) -> list[str]:
    return [entry.state for entry in Ledger.beside(data).account(data).entries]


def finish(plan: Path, data: Path, output: Path) -> str:
    """Check what a run has left, run it again or finish it, and say how far it had come."""
    charged = states(data)
    assert len(charged) <= 1
    if output.exists():
        assert rp.Release.load(output)
    come = charged[0] if charged else "free"
    if can_be_resumed(output):
        come = "drawn"
        rp.resume(output)
    elif not output.exists():
        rp.release(load_plan(plan), data, output)
    assert states(data) == ["finished"], charged
    assert rp.Release.load(output)
    left = {path.name for path in data.parent.iterdir()}
    assert left == {"records.csv", "release", FILENAME}
    shutil.rmtree(data.parent)
    return come


@pytest.mark.by_day(1)
def test_stopped_at_any_line_a_run_is_free_or_can_be_finished(plan, tmp_path):
    whole = records(tmp_path / "whole")
    n_lines = lines_of(plan, whole, whole.parent / "release")
    come = set()
    for point in range(STOPS):
        data = records(tmp_path / str(point))
        output = data.parent / "release"
        stopped_at_line(signal.SIGTERM, 1 + point * n_lines // STOPS, plan, data, output)
        come.add(finish(plan, data, output))
    assert "free" in come
    assert come & {"started", "drawn"}


@pytest.mark.by_day(1)
def test_a_full_disk_at_any_call_is_told_with_what_was_charged(plan, tmp_path):
    whole = records(tmp_path / "whole")
    _, n_calls = filled_at_call(None, plan, whole, whole.parent / "release")
    n_points, come = min(FULL, n_calls), set()
    for point in range(n_points):
        data = records(tmp_path / str(point))
        output = data.parent / "release"
        message, _ = filled_at_call(1 + point * n_calls // n_points, plan, data, output)
        says_charged = "is charged" in message or "and charged" in message
        assert says_charged == bool(states(data)), message
        assert "The ledger" not in message or says_charged or "Nothing was charged" in message
        come.add(finish(plan, data, output))
    assert {"free", "started"} <= come


@pytest.fixture
def wide_plan(tmp_path) -> Path:
    """A plan whose tables are larger than all that a run writes before its noise."""
    tables = rp.Workload.all_up_to(rp.Domain.from_sizes({"a": 100, "b": 100}), 2)
    path = tmp_path / "wide.json"
    plan_tables(tables, loss=rp.SumOfVariances(), budget=rp.Budget(rho=1)).save(path)
    return path


def wide_records(folder: Path) -> Path:
    folder.mkdir()
    path = folder / "records.csv"
    path.write_text("a,b\n" + "".join(f"{i},{(7 * i) % 100}\n" for i in range(100)))
    return path


def told(message: str, data: Path) -> None:
    """Check that a refusal says whether the run is charged."""
    says_charged = "is charged" in message or "and charged" in message
    assert says_charged == (states(data) not in ([], ["finished"])) or not message, message


def test_a_disk_full_at_any_byte_is_told_with_what_was_charged(wide_plan, tmp_path):
    """Where pyarrow writes as well: no file may grow beyond so many bytes."""
    whole = wide_records(tmp_path / "whole")
    rp.release(load_plan(wide_plan), whole, whole.parent / "release")
    sizes = [file.stat().st_size for file in (whole.parent / "release").rglob("*.*")]
    come = set()
    for point in range(FULL_OF_BYTES):
        data = wide_records(tmp_path / str(point))
        output = data.parent / "release"
        message = limited(400 + point * max(sizes) // FULL_OF_BYTES, wide_plan, data, output)
        assert message
        told(message, data)
        come.add(finish(wide_plan, data, output))
    assert come == {"free", "drawn"}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_that_is_signalled_twice_leaves_nothing(number, tmp_path, monkeypatch):
    """As `timeout` does, and whoever presses Ctrl-C twice: in the middle of clearing up."""
    remove = shutil.rmtree

    def interrupted(folder, **more):
        os.kill(os.getpid(), number)
        remove(folder, **more)

    monkeypatch.setattr("rpexplore.releases.atomic_folder.shutil.rmtree", interrupted)
    before = {one: signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    heed_signals()
    try:
        with pytest.raises(Interrupted), new_folder(tmp_path / "out"):
            os.kill(os.getpid(), number)
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
    assert list(tmp_path.iterdir()) == []


def test_a_stop_when_the_folder_has_just_been_made_leaves_nothing(tmp_path, monkeypatch):
    def interrupted(folder):
        assert folder.is_dir()
        raise KeyboardInterrupt

    monkeypatch.setattr("rpexplore.releases.atomic_folder._open_folder", interrupted)
    with pytest.raises(KeyboardInterrupt), new_folder(tmp_path / "out"):
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.by_day(1)
def test_a_ledger_that_cannot_grow_is_told_with_what_was_charged(plan, tmp_path, monkeypatch):
    """Where SQLite writes: the last page has room for the run and its end, for the run, or none."""
    data = records(tmp_path / "data")

    def note(data: Path, length: int) -> Ledger:
        """Its ledger, with a demand of that length that no longer holds."""
        ledger = Ledger.beside(data)
        ledger.require_approvals(data, ApprovalDemand(1, f"ada {KEY}\n#{'x' * length}"))
        ledger.require_approvals(data, None)
        return ledger

    assert note(data, 45_000).path.stat().st_size < 1 << 16  # the room for notes, now nearly full
    while note(data, 0).path.stat().st_size <= 1 << 16:
        pass
    come = set()
    for point in FULL_LEDGERS:
        # The copy goes on with the ledger's account, which is remembered.
        monkeypatch.setenv("RPEXPLORE_HOME", str(tmp_path / f"home {point}"))
        copy = Path(shutil.copytree(data.parent, tmp_path / str(point))) / data.name
        output = copy.parent / "release"
        ledger = note(copy, point * PAGE // 32)
        message = limited(ledger.path.stat().st_size, plan, copy, output)
        told(message, copy)
        come.add(finish(plan, copy, output) if message else "finished")
    assert not NIGHTLY or come == {"free", "drawn", "finished"}


@pytest.mark.parametrize(
    ("plan", "kind_of_ledger"),
    [
        ("parts", "file"),
        ("tables", "postgresql"),
        *(
            pytest.param(kind, "file", marks=pytest.mark.nightly)
            for kind in ("tables", "queries", "areas", "adaptive")
        ),
        *(
            pytest.param(kind, "postgresql", marks=pytest.mark.nightly)
            for kind in ("queries", "areas", "parts", "adaptive")
        ),
    ],
    indirect=["plan"],
)
def test_of_many_writers_all_are_charged_and_one_has_the_folder(
    kind_of_ledger, plan, tmp_path, request, monkeypatch
):
    data = records(tmp_path / "data")
    ledger = Ledger.beside(data)
    if kind_of_ledger == "postgresql":
        ledger = database_ledger(request.getfixturevalue("postgres"), monkeypatch)
    ways = [tmp_path / str(writer) for writer in range(WRITERS)]
    for outputs, n_done in ((ways, WRITERS), ([tmp_path / "one"] * WRITERS, 1)):
        processes = [started(plan, data, output, ledger.name) for output in outputs]
        for process in processes:
            process.join(120)
        ended = [process.exitcode for process in processes]
        assert sorted(ended) == [0] * n_done + [REFUSED] * (WRITERS - n_done)
    account, rho = ledger.account(data), load_plan(plan).record_rho
    assert [entry.state for entry in account.entries] == ["finished"] * (WRITERS + 1)
    assert account.spent_record_rho == (WRITERS + 1) * rho
    assert all(rp.Release.load(output) for output in [*ways, tmp_path / "one"])


@pytest.mark.parametrize("lost", ["draft.json", "measured.int64", "draft.json measured.int64 name"])
def test_a_pilot_that_was_shown_is_not_drawn_again_whatever_is_lost(lost, tmp_path):
    data, output = records(tmp_path / "data"), tmp_path / "data" / "release"
    plan = rp.plan(
        rp.Workload.all_up_to(rp.Domain.from_sizes({"age": 4, "sex": 2}), 1),
        loss=rp.SumOfVariances(),
        budget=rp.Budget(rho=1),
        pilot="20%",
    )
    shown = rp.release(plan, data, output, pilot_only=True)
    shown.folder.rename(tmp_path / "published")
    for name in lost.split():
        (unfinished_folder(output) / "run" / name).unlink()
    for pilot_only in (True, False):
        with pytest.raises(ReleaseError, match="is not drawn again"):
            rp.release(plan, data, output, pilot_only=pilot_only)
    assert states(data) == ["started"]
    (unfinished_folder(output) / "run" / "booked.json").unlink()  # then it is another run
    rp.release(plan, data, output)
    assert states(data) == ["started", "finished"]
