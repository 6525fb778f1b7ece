"""The ledger: exact sums, limits that hold against races, entries that survive, honest refusals.

What is claimed of any ledger is tried on a file and on a PostgreSQL server.
"""

import re
import sqlite3
import subprocess
import sys
import threading
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpexplore import Budget, Domain, SumOfVariances, Workload
from rpexplore.cli.facts import account_facts, account_text
from rpexplore.errors import LedgerError
from rpexplore.planning.planner import plan_tables
from rpexplore.planning.table_plan import TablePlan
from rpexplore.privacy.conversions import epsilon_from_rho
from rpexplore.privacy.discrete_noise import gaussian_epsilon
from rpexplore.releases.ledger import chain
from rpexplore.releases.ledger.account import check_limit
from rpexplore.releases.ledger.ledger import Ledger
from rpexplore.releases.ledger.overlaps import datasets, runs
from tests.data.engines.servers import Server
from tests.support.ledgers import KINDS, database_ledger, tamper
from tests.support.processor_time import PATIENCE


def plan_with(**budget) -> TablePlan:
    domain = Domain.from_sizes({"a": 2})
    return plan_tables(
        Workload.all_up_to(domain, 1), loss=SumOfVariances(), budget=Budget(**budget)
    )


PLAN = plan_with(rho="1/2")


def costing(record_rho: Fraction, plan: TablePlan = PLAN) -> Any:
    """What the ledger sees of a plan, with any cost for one record, also one that no plan has.

    No claim of its noise, as entries of earlier versions and of adaptive plans have none.
    """
    return SimpleNamespace(
        record_rho=record_rho, budget=plan.budget, sha256=plan.sha256, noise=None
    )


@pytest.fixture
def data(tmp_path) -> Path:
    path = tmp_path / "records.csv"
    path.write_text("a\n0\n1\n")
    return path


@pytest.fixture
def in_file(data) -> Ledger:
    return Ledger.beside(data)


@pytest.fixture(params=KINDS)
def ledger(request, in_file, monkeypatch) -> Ledger:
    if request.param == "file":
        return in_file
    return database_ledger(request.getfixturevalue("postgres"), monkeypatch)


def server_of(ledger: Ledger, request: pytest.FixtureRequest) -> Server | None:
    return request.getfixturevalue("postgres") if ledger.path is None else None


def spent(ledger: Ledger, data: Path) -> Fraction:
    return ledger.account(data).spent_record_rho


# --- amounts


def test_an_unknown_dataset_has_spent_nothing_and_leaves_no_file(ledger, data):
    account = ledger.account(data)
    assert (Path(account.dataset).name[:11], account.entries) == ("records.csv", ())
    assert account.spent_record_rho == 0
    check_limit(ledger.account(data), costing(Fraction(10**9)))
    assert ledger.path is None or not ledger.path.exists()


@pytest.mark.by_day(1)
def test_sums_are_exact(ledger, data):
    amounts = [Fraction(1, 3), Fraction(1, 10), Fraction(1, 10**40), Fraction(2**200 + 1, 3**99)]
    numbers = [ledger.book(data, costing(amount), "out") for amount in amounts]
    assert numbers == sorted(set(numbers))
    assert spent(ledger, data) == sum(amounts)
    assert [run.record_rho for run in ledger.account(data).entries] == amounts


def test_runs_of_a_plan_that_nothing_would_tell_apart_are_not_booked(data):
    ledger, started = Ledger.beside(data), "2026-11-30T12:00:00.000001+00:00"
    ledger.book(data, costing(Fraction(1)), "out", started=started)
    with pytest.raises(LedgerError, match="in the same microsecond"):
        ledger.book(data, costing(Fraction(1)), "two", started=started)
    assert spent(ledger, data) == 1


@given(st.lists(st.fractions(Fraction(1, 10**9), 5, max_denominator=10**9), max_size=4))
def test_any_amounts_are_kept_to_the_last_digit(tmp_path_factory, amounts):
    folder = tmp_path_factory.mktemp("ledger")
    data = folder / "records.csv"
    data.touch()
    for amount in amounts:
        Ledger.beside(data).book(data, costing(amount), "out")
    assert spent(Ledger.beside(data), data) == sum(amounts, Fraction(0))


@pytest.mark.by_day(1)
def test_a_sum_of_runs_says_the_better_of_two_proofs_and_which(ledger, data):
    """ρ = 0.02 twice, μ² = 0.08: ε is 1.21 by the noise, 1.3 by ρ."""
    plan = plan_with(rho="0.02", max_records_per_person=2)
    ledger.book(data, plan, "out")
    first = ledger.account(data)
    assert first.spent.epsilon("1e-6", 2) == pytest.approx(plan.epsilon("1e-6"), rel=2e-3)
    ledger.book(data, plan, "two")
    both = ledger.account(data)
    assert both.spent_record_rho == 2 * plan.record_rho
    epsilon, of_zcdp = both.spent.epsilon("1e-6", 2), epsilon_from_rho(2 * plan.rho, "1e-6")
    assert 1 <= epsilon / gaussian_epsilon(2 * plan.exact_privacy_cost, "1e-6") < 1.01
    assert epsilon < 0.95 * of_zcdp
    assert both.spent.proof("1e-6", 2) == "by the noise itself, with μ = 0.2833"
    assert account_facts(both, 4)["spent_epsilon"]["1e-6"] == epsilon
    # One of which nothing but ρ is known leaves ρ for all: a sum that was written down before, too.
    ledger.book(data, costing(plan.record_rho), "three")
    mixed = ledger.account(data)
    assert mixed.spent.epsilon("1e-6") == epsilon_from_rho(3 * plan.record_rho, "1e-6")
    assert mixed.spent.proof("1e-6").startswith("by the sum of ρ, as 1 of 3 runs state no claim")
    assert "ρ = 0.015 for one record; ε = 0.772 at δ = 1e-6, by the sum" in account_text(mixed, "")


def test_a_limit_is_reached_exactly_and_never_passed(ledger, data):
    ledger.set_limit(data, Fraction(1))
    for _ in range(3):
        ledger.book(data, costing(Fraction(1, 3)), "out")
    assert ledger.account(data).spent_record_rho == 1
    for refused in (
        lambda data, plan: check_limit(ledger.account(data), plan),
        lambda *args: ledger.book(*args, "out"),
    ):
        with pytest.raises(LedgerError, match="left of its budget limit"):
            refused(data, costing(Fraction(1, 10**300)))
    assert spent(ledger, data) == 1
    assert len(ledger.account(data).entries) == 3


@pytest.mark.by_day(1)
def test_a_finished_run_is_told_from_a_started_one(ledger, data):
    first, second = (ledger.book(data, costing(Fraction(1)), f"out{i}") for i in range(2))
    ledger.finish(second)
    assert [run.state for run in ledger.account(data).entries] == ["started", "finished"]
    assert [run.id for run in ledger.account(data).entries] == [first, second]
    assert [run.plan_sha256 for run in ledger.account(data).entries] == [PLAN.sha256] * 2
    assert spent(ledger, data) == 2


@pytest.mark.by_day(1)
def test_amounts_are_shown_for_the_plan_s_privacy_unit(ledger, data):
    """ρ for a person with 3 records is 9 times that of a record."""
    person = plan_with(rho=9, max_records_per_person=3)
    ledger.set_limit(data, Fraction(2))
    ledger.book(data, costing(Fraction(1, 2), person), "out")
    with pytest.raises(LedgerError) as caught:
        check_limit(ledger.account(data), costing(Fraction(7, 4), person))
    for shown in (
        "ρ = 15.75",
        "one person with at most 3 records",
        "only ρ = 13.5 (ε = 39.4 at δ = 1e-6) left",
        "limit of ρ = 18 (",
    ):
        assert shown in str(caught.value)


# --- limits


@pytest.mark.parametrize("limit", [Fraction(0), Fraction(-1), Fraction(1, 3)])
def test_a_limit_below_what_is_spent_or_not_positive_is_refused(limit, ledger, data):
    ledger.book(data, costing(Fraction(1, 2)), "out")
    with pytest.raises(LedgerError, match="must be positive and not below what is spent"):
        ledger.set_limit(data, limit)
    assert ledger.account(data).limit_record_rho is None


def test_a_limit_can_be_changed_and_lifted(ledger, data):
    for limit in (Fraction(1, 3), Fraction(2), None, Fraction(5)):
        ledger.set_limit(data, limit)
        assert ledger.account(data).limit_record_rho == limit


@pytest.mark.by_day(1)
def test_limits_and_totals_are_a_dataset_s_own(ledger, data):
    other_data = data.with_name("other.csv")
    other_data.touch()
    ledger.set_limit(data, Fraction(1))
    ledger.book(other_data, costing(Fraction(7)), "out")
    assert spent(ledger, data) == 0
    assert ledger.account(other_data).limit_record_rho is None


# --- what it holds, and how safely


def test_it_holds_no_row_count(in_file, data):
    ledger = in_file
    data.write_text("a\n" + "0\n" * 7654)
    ledger.book(data, costing(Fraction(1)), "out")
    connection = sqlite3.connect(ledger.path)
    dump = "\n".join(connection.iterdump())
    connection.close()
    # Hexadecimal digits of hashes and ids, and of the folder, may hold any number by chance.
    text = re.sub(r"[0-9a-f]{32,}", "", dump.replace(str(ledger.path.parent), ""))
    # Moments and numbers of files have these digits in longer ones, now and then.
    assert not re.search(r"\b765[45]\b", text)
    assert PLAN.sha256 in dump
    assert str(data.stat().st_size) in dump


def test_an_entry_is_on_disk_when_it_is_booked(in_file):
    """EXTRA: with less, the journal's removal may be lost, which would take the entry back.

    https://www.sqlite.org/pragma.html#pragma_synchronous: EXTRA "provides additional durability
    if the commit is followed closely by a power loss".
    """
    with in_file.store.transaction() as opened:
        connection = opened._connection
        (synchronous,) = connection.execute("PRAGMA synchronous").fetchone()
        (journal,) = connection.execute("PRAGMA journal_mode").fetchone()
    assert (journal, synchronous) in {("delete", 3), ("wal", 2), ("wal", 3)}


def test_nothing_is_entered_if_something_goes_wrong_on_the_way(ledger, data):
    def interrupted():
        limit = {"names": ["records.csv"], "noted": "", "user": "", "record_rho": "1"}
        with ledger.store.transaction() as opened:
            opened.add("limit", limit)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert ledger.account(data).limit_record_rho is None


def test_a_draft_that_another_process_removes_meanwhile_refuses_nobody(in_file, data):
    """It is listed, and gone when it is looked at, as a link to nowhere is."""
    draft = in_file.path.with_name(f".{in_file.path.name}.new-1-1")
    draft.symlink_to("nowhere")
    in_file.book(data, PLAN, "out")
    assert spent(in_file, data) == PLAN.record_rho


@pytest.mark.by_day(1)
def test_racing_threads_spend_no_more_than_the_limit(ledger, data):
    ledger.set_limit(data, Fraction(7, 10))
    start, outcomes = threading.Barrier(8), []

    def run():
        start.wait()
        for _ in range(3):
            try:
                Ledger(ledger.name).book(data, costing(Fraction(1, 10)), "out")
                outcomes.append(True)
            except LedgerError:
                outcomes.append(False)

    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == [False] * 17 + [True] * 7
    assert spent(ledger, data) == Fraction(7, 10)


TRY_TO_WRITE = """
import sqlite3, sys
sqlite3.connect(sys.argv[1], timeout=0, isolation_level=None).execute("BEGIN IMMEDIATE")
"""


def test_a_look_by_another_thread_takes_away_no_lock(in_file, data):
    """Whoever closes a file takes away the locks that the process has on it.

    https://www.sqlite.org/howtocorrupt.html, section 2.2.
    """
    in_file.book(data, PLAN, "out")
    with in_file.store.transaction():
        look = threading.Thread(target=in_file.account, args=[data])
        look.start()
        look.join(timeout=1)  # or waits for the transaction to end
        command = [sys.executable, "-c", TRY_TO_WRITE, in_file.name]
        tried = subprocess.run(command, capture_output=True, text=True, check=False)
    look.join()
    assert "database is locked" in tried.stderr


BOOKER = """
import sys
from rpexplore.errors import LedgerError
from rpexplore.releases.ledger.ledger import Ledger
from rpexplore.planning.plan import Plan
ledger, data, plan = sys.argv[1], sys.argv[2], Plan.load(sys.argv[3])
print("ready", flush=True)
sys.stdin.readline()
booked = 0
for _ in range(10):
    try:
        Ledger(ledger).book(data, plan, "out")
        booked += 1
    except LedgerError as error:
        assert "limit" in str(error), error
print(booked)
"""


# For a server, by day, threads race: to it they are other connections as processes are.
@pytest.mark.by_day(1)
def test_racing_processes_spend_no_more_than_the_limit(ledger, data, tmp_path):
    charged = plan_with(rho="1/10")
    charged.save(tmp_path / "plan.json")
    ledger.set_limit(data, Fraction(7, 10))
    command = [sys.executable, "-c", BOOKER, ledger.name, str(data), str(tmp_path / "plan.json")]
    runs = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    for run in runs:
        assert run.stdout is not None
        assert run.stdout.readline() == "ready\n"
    for run in runs:
        assert run.stdin is not None
        run.stdin.write("go\n")
        run.stdin.flush()
    booked = [int(run.communicate(timeout=PATIENCE)[0]) for run in runs]
    assert sum(booked) == 7
    assert spent(ledger, data) == 7 * charged.record_rho


# --- files that cannot be used


def corrupted(path: Path, how: str) -> None:
    if how == "rubbish":
        path.write_bytes(b"rubbish" * 1000)
    elif how == "empty":
        path.touch()
    elif how == "a folder":
        path.mkdir()
    elif how == "truncated":
        path.write_bytes(path.read_bytes()[:1000])
    else:
        statement = {
            "another database": "CREATE TABLE events (id INTEGER)",
            "a binary content": "UPDATE events SET content = CAST('x' AS BLOB) WHERE id = 2",
        }[how]
        connection = sqlite3.connect(path)
        connection.execute(statement)
        connection.commit()
        connection.close()


@pytest.mark.parametrize(
    ("how", "booked"),
    [
        ("rubbish", False),
        ("a folder", False),
        ("another database", False),
        ("truncated", True),
        ("empty", False),
        ("a binary content", True),
    ],
)
def test_what_is_no_ledger_is_refused(how, booked, in_file, data):
    ledger = in_file
    if booked:
        ledger.set_limit(data, Fraction(5))
        ledger.book(data, costing(Fraction(1)), "out")
    path = ledger.path
    corrupted(path, how)
    for refused in (
        lambda: ledger.account(data),
        lambda: check_limit(ledger.account(data), costing(Fraction(1))),
        lambda: ledger.book(data, costing(Fraction(1)), "out"),
    ):
        before = None if path.is_dir() else path.read_bytes()
        with pytest.raises(LedgerError, match="ledger"):
            refused()
        assert before == (None if path.is_dir() else path.read_bytes())


@pytest.mark.parametrize(
    ("kind", "changed"),
    [
        ("run", {"record_rho": "1e999999"}),
        ("run", {"record_rho": "-1"}),
        ("run", {"record_rho": "0"}),
        ("run", {"record_rho": 1}),
        ("run", {"record_rho": "9" * 5000}),
        ("run", {"names": []}),
        ("run", {"names": [1]}),
        ("run", {"surplus": 1}),
        ("run", {"noise": ["1.99", "0.1", "1.1"]}),  # less than 2ρ
        ("run", {"noise": ["2", "0.1", "1"]}),
        ("run", {"noise": ["2", "0.1"]}),
        ("finished", {"run": True}),
        ("refund", {}),
    ],
)
def test_an_impossible_entry_is_refused_even_if_it_is_chained(
    kind, changed, ledger, data, monkeypatch
):
    ledger.finish(ledger.book(data, costing(Fraction(1)), "out"))
    events = ledger.store.read_events()
    content = {event.kind: event.content for event in events}.get(kind, {})

    def add() -> None:
        with ledger.store.transaction() as opened:
            opened.add(kind, {**content, **changed})

    with pytest.raises(LedgerError, match="The entry cannot be added to the ledger"):
        add()
    assert ledger.store.read_events() == events
    with monkeypatch.context() as patch:  # a program that adds it all the same
        patch.setattr(chain, "checked_content", lambda *_: {})
        if ledger.path is not None:
            add()
        else:  # its server checks what it is given: nobody else is locked out
            with pytest.raises(LedgerError, match="refuses an entry of this form"):
                add()
    if ledger.path is None:
        assert ledger.store.read_events() == events
        return
    with pytest.raises(LedgerError, match="Entry 3 of the ledger"):
        ledger.account(data)


TAMPERED = {
    "an edited amount": "UPDATE events SET content = replace(content, '\"1\"', '\"2\"')",
    "an edited kind": "UPDATE events SET kind = 'finished' WHERE id = 2",
    "a lost last entry": "DELETE FROM events WHERE id = 2",
    "a lost first entry": "DELETE FROM events WHERE id = 1",
    "an added entry": "INSERT INTO events SELECT 3, kind, content, digest FROM events WHERE id = 2",
    "entries in another order": "UPDATE events SET id = 5 - id",
    "no entries": "DELETE FROM events",
    "no last entry noted": "DELETE FROM last",
    "two last entries noted": "INSERT INTO last SELECT * FROM last",
}


@pytest.mark.parametrize("how", TAMPERED)
def test_what_somebody_else_has_changed_is_refused(how, ledger, data, request):
    ledger.set_limit(data, Fraction(5))
    ledger.book(data, costing(Fraction(1)), "out")
    tamper(ledger, server_of(ledger, request), TAMPERED[how])
    for refused in (lambda: ledger.account(data), lambda: ledger.set_limit(data, None)):
        with pytest.raises(LedgerError, match="is missing or damaged, or was changed"):
            refused()


def test_another_program_s_database_is_left_as_it_is(in_file, data):
    ledger = in_file
    connection = sqlite3.connect(ledger.path)
    connection.execute("CREATE TABLE songs (title TEXT)")
    connection.close()
    before = ledger.path.read_bytes()
    with pytest.raises(LedgerError, match="the database of another program"):
        ledger.book(data, costing(Fraction(1)), "out")
    assert ledger.path.read_bytes() == before


def test_a_ledger_in_a_folder_that_is_missing_is_refused(data, tmp_path):
    with pytest.raises(LedgerError, match="folder can be written to"):
        Ledger(tmp_path / "none" / "ledger.sqlite").book(data, costing(Fraction(1)), "out")


def test_a_locked_ledger_is_refused(in_file, data, monkeypatch):
    ledger = in_file
    ledger.book(data, costing(Fraction(1)), "out")
    connect = sqlite3.connect
    connection = connect(ledger.path, isolation_level=None)
    connection.execute("BEGIN EXCLUSIVE")
    monkeypatch.setattr(
        "rpexplore.releases.ledger.ledger_file.sqlite3.connect",
        lambda path, **options: connect(path, **{**options, "timeout": 0.1}),
    )
    with pytest.raises(LedgerError, match="locked"):
        ledger.book(data, costing(Fraction(1)), "out")
    connection.close()
    assert spent(ledger, data) == 1


# --- all that is in it


@pytest.mark.by_day(1)
def test_all_datasets_are_listed_by_name(ledger, data):
    assert ledger.accounts() == ()
    other_data = data.with_name("another.csv")
    other_data.write_text(data.read_text())
    ledger.book(data, costing(Fraction(1, 7)), "out")
    ledger.book(data, costing(Fraction(1, 7)), "out2")
    ledger.set_limit(other_data, Fraction(3))
    booked = ledger.accounts()
    named = [Path(account.dataset).name.partition(" at ")[0] for account in booked]
    assert named == ["another.csv", "records.csv"]
    assert booked == (ledger.account(other_data), ledger.account(data))
    assert [len(account.entries) for account in booked] == [0, 2]


@pytest.mark.by_day(1)
def test_a_run_is_found_by_its_number(ledger, data):
    assert ledger.entry(1) is None
    number = ledger.book(data, costing(Fraction(1, 7)), "out")
    assert ledger.entry(number) == ledger.account(data).entries[0]
    assert ledger.entry(number + 1) is None


def test_records_without_a_folder_need_a_named_ledger(tmp_path):
    class Elsewhere:
        name, home, fingerprint = "people at SURVEY_DB", None, None

    with pytest.raises(LedgerError, match=r"people at SURVEY_DB.*--ledger"):
        Ledger.beside(Elsewhere())


@pytest.mark.by_day(1)
def test_frames_are_in_the_unit_of_the_plan_and_rounded_against_us(ledger, data):
    ledger.book(data, costing(Fraction(1, 3)), "out")
    ledger.book(data, costing(Fraction(1, 7)), "two")
    ledger.finish(1)  # entered as well, and no run
    ledger.book(data, costing(Fraction(1, 9)), "three")
    listed = runs(ledger.account(data), Budget(rho=1, max_records_per_person=2))
    assert listed["number"].tolist() == [3, 2, 1]
    assert listed["rho"].tolist() == ["0.444445", "0.571429", "1.33334"]
    # ε(4/3, 1e-6) = 9.1875
    assert listed["epsilon"].tolist()[-1] == "ε = 9.19 at δ = 1e-6"
    assert listed["state"].tolist() == ["started", "started", "finished"]
    budget = Budget(epsilon=1, delta="1e-9")
    assert datasets(ledger, budget, without=ledger.account(data)).empty
    ledger.set_limit(data, budget.rho * 50)
    (row,) = datasets(ledger, budget, without=ledger.account("nothing")).to_dict("records")
    # ρ = 1/3 + 1/7 + 1/9, ε(ρ, 1e-9) = 7.0751
    assert (row["runs"], row["rho"]) == (3, "0.587302")
    assert row["dataset"] == ledger.account(data).dataset
    assert row["epsilon"] == "ε = 7.08 at δ = 1e-9"
    assert row["limit"] == "ρ = 0.748653 (ε = 8.1 at δ = 1e-9)"


@pytest.mark.by_day(1)
def test_a_run_that_is_finished_twice_is_noted_once(ledger, data):
    """As one is that was killed right behind the note, and is resumed."""
    run = ledger.book(data, costing(Fraction(1)), "out")
    for _ in range(2):
        ledger.finish(run, "digest")
    assert [event.kind for event in ledger.store.read_events()] == ["run", "finished"]


@pytest.mark.parametrize("place", [":memory:", " :memory:", "file:a.sqlite?mode=memory"])
def test_an_address_of_sqlite_is_no_ledger(place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(LedgerError, match="a file that stays"):
        Ledger(place)
    assert Ledger("./:memory:").path == tmp_path / ":memory:"
