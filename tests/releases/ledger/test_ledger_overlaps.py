"""Records within records are not charged apart, whichever ledger knows them."""

import base64
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from rpexplore import Budget, Domain, SumOfVariances, Workload
from rpexplore.data.engines.source import DatabaseSource
from rpexplore.data.files.source import FileSource
from rpexplore.errors import LedgerError
from rpexplore.planning.planner import plan_tables
from rpexplore.releases.approvals import ApprovalDemand
from rpexplore.releases.ledger.ledger import FILENAME, Ledger
from rpexplore.releases.ledger.overlaps import charged_elsewhere, describe_charge, refuse_overlaps
from rpexplore.releases.release import release
from tests.data.engines.servers import in_duckdb

PLAN = plan_tables(
    Workload.all_up_to(Domain.from_sizes({"a": 2}), 1),
    loss=SumOfVariances(),
    budget=Budget(rho="1/2"),
)

KEY = base64.b64encode(b"\0\0\0\x0bssh-ed25519\0\0\0 " + bytes(32)).decode()
LISTED = f"alice@x ssh-ed25519 {KEY}\n"


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "survey" / "parts"
    folder.mkdir(parents=True)
    for name in ("one.csv", "two.csv"):
        (folder / name).write_text("a\n0\n1\n")
    return folder


@pytest.mark.parametrize("named", [False, True])
def test_a_file_in_a_folder_that_has_runs(named, folder, tmp_path):
    ledger = tmp_path / "named.sqlite" if named else None
    release(PLAN, folder, tmp_path / "first", ledger=ledger)
    with pytest.raises(LedgerError, match=r"has runs on .*parts', which they lie in"):
        release(PLAN, folder / "one.csv", tmp_path / "second", ledger=ledger)
    release(PLAN, folder, tmp_path / "third", ledger=ledger)


@pytest.mark.parametrize("named", [False, True])
def test_a_folder_with_a_file_that_has_runs(named, folder, tmp_path):
    ledger = tmp_path / "named.sqlite" if named else None
    release(PLAN, folder / "one.csv", tmp_path / "first", ledger=ledger)
    for around in (folder, folder.parent):
        with pytest.raises(LedgerError, match=r"has runs on .*one\.csv', which lies in them"):
            release(PLAN, around, tmp_path / "second", ledger=ledger)
    release(PLAN, folder / "two.csv", tmp_path / "third", ledger=ledger)


def test_a_ledger_that_nobody_may_read_is_passed_over_unless_it_is_the_one_in_use(folder):
    (folder.parent / FILENAME).write_text("no ledger")
    refuse_overlaps(Ledger(folder / "own.sqlite"), FileSource(folder))


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("is_limit", [True, False])
def test_a_limit_or_a_demand_is_not_led_around_by_naming_less_or_more(
    is_limit, named, folder, tmp_path
):
    def bind(data: Path, *, lifted: bool = False) -> None:
        ledger = Ledger(tmp_path / "named.sqlite") if named else Ledger.beside(data)
        if is_limit:
            ledger.set_limit(data, None if lifted else PLAN.record_rho)
        else:
            ledger.require_approvals(data, None if lifted else ApprovalDemand(1, LISTED))

    ledger = tmp_path / "named.sqlite" if named else None
    bind(folder)
    with pytest.raises(LedgerError, match=r"has a limit or a demand for .*, which they lie in"):
        release(PLAN, folder / "one.csv", tmp_path / "out", ledger=ledger)
    bind(folder, lifted=True)
    bind(folder / "one.csv")
    with pytest.raises(LedgerError, match=r"has a limit or a demand for .*, which lies in them"):
        release(PLAN, folder, tmp_path / "out", ledger=ledger)
    release(PLAN, folder / "two.csv", tmp_path / "out", ledger=ledger)


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


def test_another_ledger_with_a_limit_only_is_not_told_as_a_charge(folder):
    ledger, source = Ledger.beside(folder), FileSource(folder)
    ledger.set_limit(folder, PLAN.record_rho)
    ((other, account),) = charged_elsewhere(source, Ledger(folder / "own"), [ledger]).items()
    assert describe_charge(other, account, PLAN.budget) == (
        "a budget limit of ρ = 0.5 (ε = 5.23 at δ = 1e-6), and no runs yet, in the ledger "
        f"'{ledger.path}'"
    )


def test_a_run_booked_elsewhere_is_known_beside_the_data(folder, tmp_path):
    data, named = folder / "one.csv", tmp_path / "named.sqlite"
    release(PLAN, data, tmp_path / "first", ledger=named)
    for ledger in (None, tmp_path / "third.sqlite"):
        with pytest.raises(LedgerError, match=r"has its account in the ledger .*named\.sqlite"):
            release(PLAN, data, tmp_path / "second", ledger=ledger)
    release(PLAN, data, tmp_path / "second", ledger=named)
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
    with pytest.raises(LedgerError, match="has its account in the ledger"):
        release(PLAN, second, tmp_path / "second")
    assert len(Ledger.beside(first).account(second).entries) == 1
