"""A charged run: what the tests of releases do not reach, since both kinds of release book."""

import errno
from pathlib import Path

import pytest

from rpexplore import Budget, Domain, SumOfVariances, Workload
from rpexplore.common.processes import no_progress
from rpexplore.data.files.source import FileSource
from rpexplore.data.source import PersonRule
from rpexplore.errors import DataError, LedgerError, ReleaseError
from rpexplore.planning.planner import plan_tables
from rpexplore.releases import measurement_file
from rpexplore.releases.charged_run import ChargedRun
from rpexplore.releases.ledger.ledger import Ledger
from rpexplore.releases.release_steps import RunOptions

DOMAIN = Domain.from_sizes({"a": 2})
PLAN = plan_tables(Workload.all_up_to(DOMAIN, 1), loss=SumOfVariances(), budget=Budget(rho="1/2"))


@pytest.fixture
def charge(tmp_path) -> ChargedRun:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "records.csv").write_text("a\n0\n")
    source = FileSource(tmp_path / "data" / "records.csv")
    return ChargedRun(PLAN, source, tmp_path / "out" / "release", RunOptions())


def runs(folder: Path):
    data = folder / "data" / "records.csv"
    return Ledger.beside(data).account(data).entries


def test_no_folder_is_finished_unless_its_run_was_booked(charge, tmp_path):
    with pytest.raises(AssertionError, match="not booked"), charge.folder() as folder:
        (folder / "tables.csv").write_text("noisy")
    assert list((tmp_path / "out").iterdir()) == []
    assert runs(tmp_path) == ()


def test_records_that_changed_since_the_run_was_checked_are_refused(charge, tmp_path):
    (tmp_path / "data" / "records.csv").write_text("a\n0\n1\n")
    with pytest.raises(DataError, match=r"'.*records\.csv' have changed"):
        charge.count(no_progress)


def test_a_rule_for_persons_that_the_plan_does_not_have_is_refused(tmp_path):
    (tmp_path / "records.csv").write_text("a,who\n0,x\n")
    source, options = (
        FileSource(tmp_path / "records.csv"),
        RunOptions(person_rule=PersonRule("who", 2)),
    )
    with pytest.raises(
        ReleaseError, match=r"protects one record, and the rule .* make both the same"
    ):
        ChargedRun(PLAN, source, tmp_path / "release", options)


@pytest.mark.parametrize(
    ("state", "says"),
    [
        ("refused", "The disk is full. Nothing was charged."),
        ("entered", "The disk is full. The run is charged; run it again into the same folder"),
        ("unreadable", "The disk is full. Whether the run is charged is not known"),
    ],
)
def test_a_booking_that_fails_says_whether_the_run_is_charged(
    state, says, charge, tmp_path, monkeypatch
):
    book, events = Ledger.book, "rpexplore.releases.ledger.ledger_file.LedgerFile.read_events"

    def broken(*arguments, **named):
        if state != "refused":
            book(*arguments, **named)
        if state == "unreadable":
            patch.setattr(events, unreadable)
        raise LedgerError("The disk is full.")

    def unreadable(path):
        raise LedgerError("Nor can it be read.")

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "book", broken)
        with pytest.raises(LedgerError, match=says):
            run(charge)
    assert len(runs(tmp_path)) == (state != "refused")
    run(ChargedRun(PLAN, charge._source, charge._output, RunOptions()))
    assert [entry.state for entry in runs(tmp_path)] == ["finished"]


def test_a_disk_that_is_full_before_the_booking_keeps_nothing(charge, tmp_path, monkeypatch):
    def cut_off(path, content):
        path.write_text(content[:9])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(measurement_file, "write_to_disk", cut_off)
    with pytest.raises(ReleaseError, match="was not booked; make room"):
        run(charge)
    assert list((tmp_path / "out").iterdir()) == []


def test_records_that_changed_after_they_were_counted_are_not_charged(charge, tmp_path):
    charge.count(no_progress)
    data = tmp_path / "data" / "records.csv"
    data.rename(tmp_path / "counted.csv")
    data.write_text("a\n1\n")
    with pytest.raises(DataError, match="have changed since they were counted"):
        run(charge)
    assert runs(tmp_path) == ()
    assert list((tmp_path / "out").iterdir()) == []


def run(charge: ChargedRun) -> None:
    with charge.folder() as folder:
        (folder / "run").mkdir(exist_ok=True)
        charge.book(folder)
        (folder / "manifest.json").write_text("{}")
        (folder / "tables.csv").write_text("noisy")
