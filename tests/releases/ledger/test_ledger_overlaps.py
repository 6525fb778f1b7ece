"""Records within records are not charged apart, whichever ledger knows them."""

import base64
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from rpexplore import Budget, Domain, SumOfVariances, Workload
from rpexplore.data.engines.source import DatabaseSource
from rpexplore.data.files.source import FileSource
from rpexplore.errors import ApprovalError, LedgerError
from rpexplore.planning.planner import plan_tables
from rpexplore.releases.approvals import ApprovalDemand
from rpexplore.releases.ledger.ledger import FILENAME, Ledger
from rpexplore.releases.ledger.overlaps import ledger_of
from rpexplore.releases.release import release
from tests.data.engines.servers import in_duckdb

PLAN = plan_tables(
    Workload.all_up_to(Domain.from_sizes({"a": 2}), 1),
    loss=SumOfVariances(),
    budget=Budget(rho="1/2"),
)

KEY = base64.b64encode(b"\0\0\0\x0bssh-ed25519\0\0\0 " + bytes(32)).decode()
DEMANDED = r"left of its budget|demands approvals"
LISTED = f"alice@x ssh-ed25519 {KEY}\n"


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "survey" / "parts"
    folder.mkdir(parents=True)
    for records, name in enumerate(("one.csv", "two.csv")):
        (folder / name).write_text(f"a\n{records}\n1\n")
    return folder


def test_a_ledger_that_nobody_may_read_is_passed_over_unless_it_is_the_one_in_use(folder):
    (folder.parent / FILENAME).write_text("no ledger")
    assert ledger_of(FileSource(folder), folder.parent / "own.sqlite") == Ledger(
        folder.parent / "own.sqlite"
    )
    with pytest.raises(LedgerError, match=r"it is no ledger|it is empty"):
        ledger_of(FileSource(folder), folder.parent / FILENAME)


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("is_limit", [True, False])
def test_a_limit_or_a_demand_is_not_led_around_by_naming_less_or_more(
    is_limit, named, folder, tmp_path
):
    ledger = tmp_path / "named.sqlite" if named else None

    def bind(data: Path, *, lifted: bool = False) -> None:
        book = ledger_of(FileSource(data), ledger)
        if is_limit:
            book.set_limit(data, None if lifted else PLAN.record_rho / 2)
        else:
            book.require_approvals(data, None if lifted else ApprovalDemand(1, LISTED))

    bind(folder)
    with pytest.raises((LedgerError, ApprovalError), match=DEMANDED):
        release(PLAN, folder / "one.csv", tmp_path / "out", ledger=ledger)
    bind(folder, lifted=True)
    bind(folder / "one.csv")
    with pytest.raises((LedgerError, ApprovalError), match=DEMANDED):
        release(PLAN, folder, tmp_path / "out", ledger=ledger)


def test_the_same_records_in_another_ledger(folder, tmp_path):
    release(PLAN, folder / "one.csv", tmp_path / "first")
    with pytest.raises(LedgerError, match="has its account in the ledger"):
        release(PLAN, folder / "one.csv", tmp_path / "second", ledger=tmp_path / "named.sqlite")
    release(PLAN, folder / "one.csv", tmp_path / "third", ledger=folder / FILENAME)


def test_a_limit_beside_the_data_holds_whatever_ledger_is_named(folder, tmp_path):
    data = folder / "one.csv"
    Ledger.beside(data).set_limit(data, PLAN.record_rho)
    with pytest.raises(LedgerError, match="has its account in the ledger"):
        release(PLAN, data, tmp_path / "first", ledger=tmp_path / "named.sqlite")
    assert not (tmp_path / "named.sqlite").exists()


def test_a_run_booked_elsewhere_is_known_beside_the_data(folder, tmp_path):
    data, named = folder / "one.csv", tmp_path / "named.sqlite"
    release(PLAN, data, tmp_path / "first", ledger=named)
    with pytest.raises(LedgerError, match=r"has its account in the ledger .*named\.sqlite"):
        release(PLAN, data, tmp_path / "second", ledger=tmp_path / "third.sqlite")
    release(PLAN, data, tmp_path / "second")
    assert len(Ledger(named).account(data).entries) == 2
    assert Ledger.beside(data).account(data).entries == ()
    release(PLAN, folder / "two.csv", tmp_path / "other", ledger=None)


@pytest.mark.parametrize("pattern", ["one.csv", "*.csv"])
@pytest.mark.parametrize("file_first", [False, True])
def test_a_file_and_a_view_of_duckdb_that_reads_it(pattern, file_first, folder, tmp_path):
    path = tmp_path / "base" / "views.duckdb"
    path.parent.mkdir()
    made = in_duckdb(pa.table({"a": [1]}), path)
    with duckdb.connect(path) as database:
        database.execute(f"CREATE VIEW parts AS FROM '{folder}/{pattern}'")
    sources = [DatabaseSource(made.connection, "parts"), FileSource(folder / "one.csv")]
    first, second = sources[::-1] if file_first else sources
    release(PLAN, first, tmp_path / "first")
    release(PLAN, second, tmp_path / "second")
    assert len(Ledger.beside(first).account(second).entries) == 2


def test_a_view_of_duckdb_that_reads_a_new_file_in_a_folder_that_was_renamed(folder, tmp_path):
    release(PLAN, folder, tmp_path / "first", limit_rho="1/2")
    folder = folder.rename(folder.with_name("renamed"))
    (folder / "new.csv").write_text("a\n0\n")
    made = in_duckdb(pa.table({"a": [1]}), folder.parent / "views.duckdb")
    with duckdb.connect(folder.parent / "views.duckdb") as database:
        database.execute(f"CREATE VIEW parts AS FROM '{folder}/new.csv'")
    with pytest.raises(LedgerError, match="left of its budget limit"):
        release(PLAN, DatabaseSource(made.connection, "parts"), tmp_path / "second")


def test_a_run_that_another_one_overtakes_is_not_sent_elsewhere(folder, tmp_path, monkeypatch):
    """The other one begins the ledger and notes it beside the records when this one has read it."""
    data, named = folder / "one.csv", tmp_path / "elsewhere.sqlite"
    note, overtaken = Ledger.note_elsewhere, []

    def note_behind(beside: Ledger, *facts) -> None:
        if not overtaken:
            overtaken.append(True)
            release(PLAN, data, tmp_path / "first", ledger=named)
        note(beside, *facts)

    monkeypatch.setattr(Ledger, "note_elsewhere", note_behind)
    release(PLAN, data, tmp_path / "second", ledger=named)
    assert len(Ledger(named).account(data).entries) == 2
    (noted,) = Ledger.beside(data).account(data).elsewhere
    assert noted.known.spent_record_rho == 2 * PLAN.record_rho
