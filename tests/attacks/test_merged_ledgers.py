"""Attacks on accounts by the merging of ledgers: nothing is lost, and nothing counts twice."""

import re
import shutil
from fractions import Fraction
from pathlib import Path

import pytest

from rpexplore.data.files.source import source_of
from rpexplore.errors import LedgerError
from rpexplore.releases.ledger import chain
from rpexplore.releases.ledger.ledger import FILENAME, Ledger
from rpexplore.releases.ledger.ledger_database import LedgerDatabase
from rpexplore.releases.ledger.overlaps import remember
from rpexplore.releases.release import release, resume
from tests.attacks.books import (
    DEMAND,
    PLAN,
    a_file_that_was_written_anew,
    in_command,
    renamed,
    stop,
)
from tests.support.ledgers import OWNER, database_ledger

KINDS_OF_MERGES = [
    "file into file",
    "file into database",
    pytest.param("database into database", marks=pytest.mark.nightly),
]


@pytest.fixture(params=KINDS_OF_MERGES)
def two_ledgers(request, folder, tmp_path, postgres, monkeypatch) -> tuple[Ledger, Ledger]:
    """The one that goes on, as its owner uses it, and the one that is merged."""
    kinds = request.param.split(" into ")
    books = []
    for number, kind in enumerate(reversed(kinds)):
        if kind == "file":
            books.append(Ledger(tmp_path / f"share {number}" / "ledger.sqlite"))
            books[-1].path.parent.mkdir()
        elif number == 0:
            database_ledger(postgres, monkeypatch)
            books.append(Ledger(f"postgresql:{OWNER}"))
        else:
            postgres.run("DROP DATABASE IF EXISTS other", "CREATE DATABASE other")
            monkeypatch.setenv("OTHER", postgres.url.replace("/postgres?", "/other?"))
            LedgerDatabase("OTHER").create(limiters=("booker",))
            books.append(Ledger("postgresql:OTHER"))
    return books[0], books[1]


def test_of_merged_ledgers_one_has_all_once_with_the_strictest_limits(
    two_ledgers, folder, tmp_path
):
    into, other = two_ledgers
    one, two = folder / "one.csv", folder / "two.csv"
    into.set_limit(folder / "two.csv", Fraction(2))
    release(PLAN, one, tmp_path / "out", ledger=other.name)
    other.set_limit(one, Fraction(1))
    # Behind the program's back, as a colleague on another machine would: two.csv is in both.
    with other.store.transaction() as events:
        about = {"names": [*other._names(source_of(two))], "noted": "", "user": ""}
        events.add("limit", about | {"record_rho": "5"})
        events.add("approvals", about | {"n": 1, "allowed_signers": DEMAND.allowed_signers})
    with pytest.raises(LedgerError, match=r"in two ledgers|has its account in"):
        release(PLAN, two, tmp_path / "no")
    assert into.merge(other) == 1
    assert into.merge(other) == 0  # nothing twice
    account = into.account(one)
    assert [run.state for run in account.entries] == ["finished"]
    assert account.limit_record_rho == 1
    assert into.account(two).limit_record_rho == 2
    assert into.account(two).approval_demands == (DEMAND,)
    # The notes lead on, whether or not the closed ledger is still there.
    with pytest.raises(LedgerError, match=r"has its account in the ledger"):
        release(PLAN, one, tmp_path / "no", ledger=other.name)
    with pytest.raises(LedgerError, match="merged into"):
        other.finish(other.account(one).entries[0].id)
    release(PLAN, one, tmp_path / "again")
    if other.path is not None:
        other.path.unlink()
    assert into.account(one).spent_record_rho == 2 * PLAN.record_rho
    with pytest.raises(LedgerError, match="left of its budget limit"):
        release(PLAN, one, tmp_path / "no")


def test_what_a_merged_ledger_knows_of_folders_binds_where_they_are_renamed(
    two_ledgers, folder, tmp_path
):
    into, other = two_ledgers
    release(PLAN, folder / "one.csv", tmp_path / "out", ledger=other.name, limit_rho="1/2")
    into.merge(other)
    a_file_that_was_written_anew(folder)
    with pytest.raises(LedgerError, match="left of its budget limit"):
        release(PLAN, renamed(folder), tmp_path / "again", ledger=into.name)


def test_a_ledger_beside_the_records_is_merged_by_a_command_and_leads_to_the_team_s(
    folder, tmp_path, postgres, monkeypatch
):
    data = folder / "one.csv"
    database_ledger(postgres, monkeypatch)
    Ledger.beside(data).set_limit(data, Fraction(1))
    with pytest.raises(KeyboardInterrupt):
        release(PLAN, data, tmp_path / "out", on_progress=stop)
    beside, owner = str(folder / FILENAME), f"postgresql:{OWNER}"
    assert "1 run taken over" in in_command("--merge", beside, "--ledger", owner)
    monkeypatch.setenv("RPEXPLORE_HOME", str(tmp_path / "another"))
    resume(tmp_path / "out")  # of the run that was booked before
    release(PLAN, data, tmp_path / "again")
    release_of_new = folder / "new.csv"
    release_of_new.write_text("a\n1\n")
    release(PLAN, release_of_new, tmp_path / "new")  # in the folder of the closed ledger
    team = Ledger(owner)
    assert [run.state for run in team.account(data).entries] == ["finished", "finished"]
    assert len(team.account(release_of_new).entries) == 1
    with pytest.raises(LedgerError, match="left of its budget limit"):
        release(PLAN, data, tmp_path / "no")
    for arguments, problem in (
        (["--merge", beside], "needs --ledger"),
        ([str(data), "--merge", beside, "--ledger", owner], "no DATA"),
        (["--merge", owner, "--ledger", str(tmp_path / "file.sqlite")], "merge the file"),
        (["--merge", str(tmp_path / "no.sqlite"), "--ledger", owner], "There is no ledger"),
        (["--merge", beside, "--ledger", "postgresql:LEDGER"], "only its owner"),
    ):
        assert problem in in_command(*arguments)


def test_copies_of_a_ledger_that_went_on_apart_are_merged_once(folder, tmp_path):
    data, named, copy = folder / "one.csv", tmp_path / "named.sqlite", tmp_path / "copy.sqlite"
    Ledger(named).book(data, PLAN, "first")
    shutil.copy(named, copy)
    Ledger(named).book(data, PLAN, "second")
    Ledger(copy).book(data, PLAN, "third")
    assert Ledger(named).merge(Ledger(copy)) == 1
    outputs = [Path(run.output).name for run in Ledger(named).account(data).entries]
    assert outputs == ["first", "second", "third"]
    # Nobody misses what was booked in the copy when that is removed.
    remember(Ledger(copy), Ledger(copy).id, frozenset(source_of(data).names(Path("/"))))
    copy.unlink()
    release(PLAN, data, tmp_path / "fourth")
    assert len(Ledger(named).account(data).entries) == 4


@pytest.fixture
def copied_database(folder, tmp_path, postgres, monkeypatch) -> tuple[Ledger, Ledger]:
    """A ledger in a database with a run on one.csv, and that database copied."""
    postgres.run("DROP DATABASE IF EXISTS copy", "DROP DATABASE IF EXISTS books")
    postgres.run("CREATE DATABASE books")
    for name in ("books", "copy"):
        monkeypatch.setenv(name.upper(), postgres.url.replace("/postgres?", f"/{name}?"))
    LedgerDatabase("BOOKS").create()
    release(PLAN, folder / "one.csv", tmp_path / "first", ledger="postgresql:BOOKS")
    postgres.run("CREATE DATABASE copy TEMPLATE books")
    return Ledger("postgresql:BOOKS"), Ledger("postgresql:COPY")


@pytest.mark.nightly
def test_of_a_database_and_its_copy_the_one_that_goes_on_is_used(folder, tmp_path, copied_database):
    original, copy = copied_database
    data = folder / "one.csv"
    release(PLAN, data, tmp_path / "second", ledger=copy.name)
    with pytest.raises(LedgerError, match="has its account in the ledger 'postgresql:COPY'"):
        release(PLAN, data, tmp_path / "third", ledger=original.name)
    release(PLAN, data, tmp_path / "third", ledger=copy.name)
    assert n_runs_in(original, data) == 1
    assert n_runs_in(copy, data) == 3


@pytest.mark.nightly
def test_a_database_and_its_copy_that_went_on_apart_are_merged(folder, tmp_path, copied_database):
    original, copy = copied_database
    data = folder / "one.csv"
    with pytest.raises(LedgerError, match="cannot be merged into itself"):
        original.merge(copy)
    original.book(data, PLAN, "second")
    copy.book(data, PLAN, "third")
    remember(copy, copy.id, frozenset(source_of(data).names(Path("/"))))
    for ledger in (original, copy):
        with pytest.raises(LedgerError, match="has its account in the ledger"):
            release(PLAN, data, tmp_path / "fourth", ledger=ledger.name)
    assert original.merge(copy) == 1
    release(PLAN, data, tmp_path / "fourth", ledger=original.name)
    assert n_runs_in(original, data) == 4


def n_runs_in(ledger: Ledger, data: Path) -> int:
    return len(ledger.account(data).entries)


def test_who_has_booked_in_a_copy_uses_the_ledger_that_it_was_merged_into(
    folder, tmp_path, monkeypatch
):
    """At the path at which they had it; and the same ledger cut back afterwards is refused them."""
    data = folder / "one.csv"
    beside, copy, first = Ledger.beside(data), tmp_path / "copy.sqlite", tmp_path / "first.sqlite"
    homes = [str(tmp_path / f"home {user}") for user in (1, 2)]

    def as_user(number: int) -> None:
        monkeypatch.setenv("RPEXPLORE_HOME", homes[number - 1])

    assert beside.path is not None
    as_user(1)
    release(PLAN, data, tmp_path / "1")
    shutil.copy(beside.path, copy)
    release(PLAN, data, tmp_path / "2")
    as_user(2)
    beside.path.rename(first)
    copy.rename(beside.path)
    release(PLAN, data, tmp_path / "3")
    beside.path.rename(copy)
    first.rename(beside.path)
    with pytest.raises(LedgerError, match="lacks entries"):
        release(PLAN, data, tmp_path / "no")
    as_user(1)
    assert beside.merge(Ledger(copy)) == 1
    merged = beside.path.read_bytes()
    as_user(2)
    release(PLAN, data, tmp_path / "4")
    assert len(beside.account(data).entries) == 4
    beside.path.write_bytes(merged)
    with pytest.raises(LedgerError, match="lacks entries"):
        release(PLAN, data, tmp_path / "no")


def test_a_merge_that_was_stopped_is_made_again(folder, tmp_path, monkeypatch):
    data, other = folder / "one.csv", tmp_path / "other.sqlite"
    named = tmp_path / "share" / "named.sqlite"
    named.parent.mkdir()
    release(PLAN, data, tmp_path / "out", ledger=other)
    with monkeypatch.context() as patch:
        add = chain.LedgerTransaction.add

        def stopped(events, kind, content):
            if kind == "closed":
                raise KeyboardInterrupt
            return add(events, kind, content)

        patch.setattr(chain.LedgerTransaction, "add", stopped)
        with pytest.raises(KeyboardInterrupt):
            Ledger(named).merge(Ledger(other))
    for ledger in (named, other):
        with pytest.raises(LedgerError, match=r"in two ledgers|has its account in"):
            release(PLAN, data, tmp_path / "no", ledger=ledger)
    assert Ledger(named).merge(Ledger(other)) == 0
    release(PLAN, data, tmp_path / "again")
    assert Ledger(named).account(data).spent_record_rho == 2 * PLAN.record_rho


@pytest.mark.parametrize("went_on", [True, False], ids=["used since", "not used since"])
@pytest.mark.parametrize("knows", ["the note", "the user"])
def test_a_lost_ledger_into_which_one_was_merged_is_given_up_with_what_both_had(
    went_on, knows, folder, tmp_path, monkeypatch
):
    data, lost, new = folder / "one.csv", tmp_path / "lost.sqlite", tmp_path / "new.sqlite"
    limit = PLAN.record_rho * 5 / 2
    release(PLAN, data, tmp_path / "out", limit_rho=limit)
    Ledger(lost).merge(Ledger.beside(data))
    if went_on:
        release(PLAN, data, tmp_path / "again")
    lost.unlink()
    if knows == "the note":
        monkeypatch.setenv("RPEXPLORE_HOME", str(tmp_path / "another"))
    for arguments, problem in (
        ([], "is gone, or empty"),
        (["--forget", lost], "merged into .*name another one, in which the account goes on"),
        (["--forget", tmp_path / "other.sqlite", "--ledger", new], "nothing to forget"),
    ):
        assert re.search(problem, in_command(data, *arguments))
    said = in_command(data, "--forget", lost, "--ledger", new)
    spent = PLAN.record_rho * (2 if went_on else 1)
    for account in (Ledger(new).account(data), Ledger.of(data).account(data)):
        assert (account.spent_record_rho, account.limit_record_rho) == (spent, limit)
    assert f"{lost}, given up" in said
    if went_on:
        with pytest.raises(LedgerError, match="left of its budget limit"):
            release(PLAN, data, tmp_path / "third")
    else:
        release(PLAN, data, tmp_path / "third")
        assert Ledger(new).account(data).spent_record_rho == 2 * PLAN.record_rho
    with pytest.raises(
        LedgerError, match=r"merged into|is gone"
    ):  # it stays closed for other records
        Ledger.beside(data).set_limit(folder / "two.csv", Fraction(1))
