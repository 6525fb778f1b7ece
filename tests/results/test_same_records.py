"""What a ledger can tell of the records of two releases, and what it cannot."""

from pathlib import Path

import pytest

import rpexplore as rp
from rpexplore.errors import LedgerError, ReleaseError
from rpexplore.planning.planner import plan_tables
from rpexplore.planning.table_plan import TablePlan
from rpexplore.releases.ledger.ledger import Ledger
from rpexplore.results.combination import ReleaseId, refuse_other_records

DOMAIN = rp.Domain.from_sizes({"a": 2, "b": 2})
PLAN, OTHER = (
    plan_tables(rp.Workload.of(DOMAIN, [name]), loss=rp.SumOfVariances(), budget=rp.Budget(rho=1))
    for name in "ab"
)


@pytest.fixture
def book(tmp_path) -> Ledger:
    """Two runs of one plan on two datasets, into folders of the same last name, and one more."""
    book = Ledger(tmp_path / "ledger.sqlite")
    for data in ("2019.csv", "2020.csv"):
        (tmp_path / data).write_text("a,b\n1,1\n")
    for plan, data, output in (
        (PLAN, "2019.csv", "2019/out"),
        (PLAN, "2020.csv", "2020/out"),
        (OTHER, "2019.csv", "other"),
    ):
        book.book(tmp_path / data, plan, tmp_path / output)
    return book


def moved(plan: TablePlan, name: str) -> ReleaseId:
    return ReleaseId(plan.sha256, "m", name)


def run(book: Ledger, plan: TablePlan, folder: str) -> ReleaseId:
    return ReleaseId(plan.sha256, "m", str(book.path.parent / folder))


def refused(book: Ledger, *runs: ReleaseId) -> str:
    with pytest.raises(ReleaseError) as error:
        refuse_other_records(book.path, runs)
    return str(error.value)


def test_two_runs_on_other_records_are_refused(book):
    message = refused(book, run(book, PLAN, "2019/out"), run(book, PLAN, "2020/out"))
    assert "'out' and 'out' are of different records, '2019.csv as of " in message
    message = refused(book, run(book, OTHER, "other"), run(book, PLAN, "2020/out"))
    assert "'other' and 'out' are of different records" in message


def test_runs_on_the_same_records_are_not(book):
    refuse_other_records(book.path, [run(book, OTHER, "other"), run(book, PLAN, "2019/out")])


def test_a_folder_that_was_moved_is_known_by_its_last_name(book):
    third = run(book, PLAN, "third")
    (book.path.parent / "2021.csv").write_text("a,b\n1,1\n")
    book.book(book.path.parent / "2021.csv", PLAN, Path(third.folder))
    assert "2021.csv" in refused(book, run(book, OTHER, "other"), run(book, PLAN, "moved/third"))
    assert "2021.csv" in refused(book, moved(OTHER, "other"), moved(PLAN, "third"))


def test_what_it_cannot_tell_apart_is_passed_over(book):
    # A moved "out" may be either of two.
    refuse_other_records(book.path, [run(book, OTHER, "other"), moved(PLAN, "out")])
    refuse_other_records(book.path, [run(book, OTHER, "other"), moved(PLAN, "renamed")])


def test_what_it_does_not_know_is_passed_over(book):
    refuse_other_records(book.path, [ReleaseId("f" * 64, "m", "out"), run(book, PLAN, "2019/out")])
    refuse_other_records(book.path, [])


def test_three_are_compared_in_pairs(book):
    stranger = ReleaseId("f" * 64, "m", "out")
    refused(book, run(book, PLAN, "2019/out"), stranger, run(book, PLAN, "2020/out"))


def test_a_ledger_that_is_not_there_or_none_is_refused(tmp_path):
    with pytest.raises(LedgerError, match=r"no ledger at .*check the path"):
        refuse_other_records(tmp_path / "none.sqlite", [])
    assert not (tmp_path / "none.sqlite").exists()
    (tmp_path / "text").write_text("no ledger at all, but long enough to be looked at" * 20)
    with pytest.raises(LedgerError, match="cannot be used"):
        refuse_other_records(tmp_path / "text", [])


def test_another_state_of_the_records_is_other_records(book):
    data = book.path.parent / "2019.csv"
    data.write_text("a,b\n1,1\n0,0\n")
    book.book(data, OTHER, book.path.parent / "later")
    message = refused(book, run(book, PLAN, "2019/out"), run(book, OTHER, "later"))
    assert "'2019.csv as of " in message
    assert "(8 bytes)" in message


def test_finished_runs_are_known_by_their_manifests(book):
    """Whatever their folders are called now; a manifest of none of them is refused."""
    for entry in (run for account in book.accounts() for run in account.entries):
        book.finish(entry.id, f"manifest {entry.id}")
    first, second = (ReleaseId(PLAN.sha256, f"manifest {number}", "out") for number in (1, 2))
    assert "of different records" in refused(book, first, second)
    refuse_other_records(book.path, [first, ReleaseId(OTHER.sha256, "manifest 3", "new")])
    message = refused(book, ReleaseId(PLAN.sha256, "manifest 3", "2019/out"))
    assert "The manifest of 'out' is none that the ledger" in message
