"""Attacks on ledgers: one that is gone, replaced, emptied or cut back is not begun anew.

What is known of it binds until it is given up by its name.
"""

import errno
import os
import shutil
import sqlite3
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pandas as pd
import pytest

import rpexplore as rp
from rpexplore.errors import DataError, LedgerError, ReleaseError
from rpexplore.releases.booked_run import booked_run
from rpexplore.releases.ledger import ledger_file
from rpexplore.releases.ledger.ledger import FILENAME, Ledger
from rpexplore.releases.ledger.overlaps import remembered_ledgers
from rpexplore.releases.release import release, resume
from tests.attacks.books import (
    DEMAND,
    PLAN,
    emptied,
    in_command,
    n_runs,
    replaced,
    stop,
    unmounted,
    written_anew_then_its_folder,
)
from tests.support.ledgers import OWNER, database_ledger, tamper


@pytest.mark.by_day(2)
@pytest.mark.parametrize("lost", [unmounted, replaced, emptied])
@pytest.mark.parametrize("knows", ["the note", "the user", "both"])
def test_a_named_ledger_that_is_lost_is_not_begun_anew(
    lost, knows, named, folder, tmp_path, monkeypatch
):
    if knows == "the note":
        monkeypatch.setenv("RPEXPLORE_HOME", str(tmp_path / "another"))
    if knows == "the user":
        (folder / FILENAME).unlink()
    lost(named)
    before = named.read_bytes() if named.exists() else None
    for ledger in (named, None, tmp_path / "new.sqlite"):
        with pytest.raises(LedgerError, match=r"is gone, or empty|is another one than it was"):
            release(PLAN, folder / "one.csv", tmp_path / "again", ledger=ledger)
        with pytest.raises(LedgerError, match=r"is gone, or empty|is another one than it was"):
            Ledger(ledger or Ledger.beside(folder / "one.csv").name).set_limit(
                folder / "one.csv", Fraction(1)
            )
    assert (named.read_bytes() if named.exists() else None) == before
    assert not (tmp_path / "new.sqlite").exists()


def test_other_records_do_not_begin_a_ledger_that_is_gone_either(named, folder, tmp_path):
    unmounted(named)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "other.csv").write_text("a\n0\n")
    with pytest.raises(LedgerError, match=r"is gone, or empty.*take its lines .*ledgers\.json"):
        release(PLAN, tmp_path / "other" / "other.csv", tmp_path / "again", ledger=named)
    home = Path(os.environ["RPEXPLORE_HOME"])
    (home / "ledgers.json").unlink()
    release(PLAN, tmp_path / "other" / "other.csv", tmp_path / "again", ledger=named)


@pytest.mark.parametrize("whole", [False, True])
def test_the_ledger_beside_the_records_is_missed_when_it_is_removed(whole, folder, tmp_path):
    """Also for records that replace the first ones at their path, as `rsync --delete` does it."""
    charged = folder if whole else folder / "one.csv"
    release(PLAN, charged, tmp_path / "out")
    charged.with_name(FILENAME).unlink()

    def refused(data: Path) -> None:
        with pytest.raises(LedgerError, match=r"is gone, or empty.*take its lines .*ledgers\.json"):
            release(PLAN, data, tmp_path / "again")

    refused(charged)
    if not whole:
        refused(folder / "two.csv")  # whose account would be in the ledger that is gone
    folder.rename(tmp_path / "away")
    folder.mkdir()
    (folder / "one.csv").write_text("a\n0\n")
    refused(charged)
    refused(folder / "one.csv")
    with pytest.raises(LedgerError, match="is gone, or empty"):
        release(PLAN, charged, tmp_path / "again", ledger=tmp_path / "new.sqlite")
    (Path(os.environ["RPEXPLORE_HOME"]) / "ledgers.json").unlink()
    release(PLAN, charged, tmp_path / "again")


@pytest.mark.parametrize("kind", ["file", "frame"])
def test_a_named_ledger_that_can_be_noted_nowhere_is_not_used(kind, folder, tmp_path, monkeypatch):
    """Another one could be begun beside it, whose account would be empty."""
    data = pd.DataFrame({"a": [0, 1]}) if kind == "frame" else folder / "one.csv"
    named, name = tmp_path / "named.sqlite", "survey" if kind == "frame" else None
    (tmp_path / "file").touch()
    monkeypatch.setenv("RPEXPLORE_HOME", str(tmp_path / "file" / "home"))  # cannot be made
    shut, access = {folder, tmp_path / "file"}, os.access
    monkeypatch.setattr(
        os, "access", lambda path, mode: Path(path) not in shut and access(path, mode)
    )
    with pytest.raises(LedgerError, match=r"noted .*file/home.*RPEXPLORE_HOME"):
        release(PLAN, data, tmp_path / "out", ledger=named, name=name)
    if kind == "file":
        with pytest.raises(LedgerError, match=r"noted nowhere .*file/home.*RPEXPLORE_HOME"):
            Ledger(named).set_limit(data, Fraction(1))
    assert not named.exists()


def test_a_limit_is_not_set_where_the_disk_that_should_note_its_ledger_is_full(
    folder, tmp_path, monkeypatch
):
    """Where the records' folder may not be written to, a run in another ledger would not know."""
    data, named, access = folder / "one.csv", tmp_path / "named.sqlite", os.access
    monkeypatch.setattr(
        os, "access", lambda path, mode: Path(path) != folder and access(path, mode)
    )

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("rpexplore.releases.ledger.overlaps.remember", full)
    with pytest.raises(LedgerError, match=r"noted nowhere .*RPEXPLORE_HOME"):
        Ledger(named).set_limit(data, Fraction(1))
    assert Ledger(named).account(data).limit_record_rho is None


def test_a_ledger_that_was_moved_is_the_same_where_it_is_named(named, folder, tmp_path):
    data = folder / "one.csv"
    there = named.rename(tmp_path / "moved.sqlite")
    with pytest.raises(LedgerError, match="where it is now"):
        release(PLAN, data, tmp_path / "again")
    release(PLAN, data, tmp_path / "again", ledger=there)
    release(PLAN, data, tmp_path / "third")  # which is noted by now
    assert len(Ledger(there).account(data).entries) == n_runs(data) == 3


def test_an_old_copy_of_a_ledger_is_not_used_in_its_place(named, folder, tmp_path):
    data = folder / "one.csv"
    shutil.copy(named, tmp_path / "copy.sqlite")
    for _ in range(2):
        with pytest.raises(LedgerError, match=r"has its account in the ledger .*ledger\.sqlite"):
            release(PLAN, data, tmp_path / "again", ledger=tmp_path / "copy.sqlite")
        shutil.copy(tmp_path / "copy.sqlite", folder.parent / FILENAME)  # and does not disturb
        release(PLAN, data, tmp_path / f"again{_}", ledger=named)


@pytest.fixture
def in_wal_mode(named, folder, tmp_path) -> Path:
    """A ledger that another program has put into WAL mode; its second run is in the log alone."""
    data, there = folder / "one.csv", tmp_path / "wal" / "ledger.sqlite"
    there.parent.mkdir()
    shutil.copy(named, tmp_path / "before.sqlite")
    release(PLAN, data, tmp_path / "again", ledger=named)
    shutil.copy(tmp_path / "before.sqlite", there)
    with closing(sqlite3.connect(there, isolation_level=None)) as browser:
        browser.execute("PRAGMA journal_mode = WAL")
        browser.execute("ATTACH ? AS later", [str(named)])
        browser.execute("INSERT INTO events SELECT * FROM later.events WHERE id > 2")
        browser.execute("UPDATE last SET (n_events, digest) = (SELECT * FROM later.last)")
        for suffix in ("", "-wal"):  # as it is when the browser is killed
            shutil.copy(f"{there}{suffix}", tmp_path / f"killed.sqlite{suffix}")
    return tmp_path / "killed.sqlite"


def test_a_ledger_that_was_put_into_wal_mode_is_folded_back(in_wal_mode, folder, tmp_path):
    assert len(Ledger(in_wal_mode).account(folder / "one.csv").entries) == 2
    assert in_wal_mode.read_bytes()[18:20] == b"\1\1"  # no WAL, for whoever opens it
    there = in_wal_mode.rename(tmp_path / "alone.sqlite")
    assert len(Ledger(there).account(folder / "one.csv").entries) == 2


def test_nothing_is_booked_in_a_log_beside_the_ledger(in_wal_mode, folder, monkeypatch):
    data = folder / "one.csv"
    with closing(sqlite3.connect(in_wal_mode, isolation_level=None)) as browser:
        browser.execute("BEGIN")
        browser.execute("SELECT * FROM last").fetchall()
        for refused in (
            lambda: Ledger(in_wal_mode).book(data, PLAN, "out"),
            lambda: Ledger(in_wal_mode).account(data),
        ):
            with pytest.raises(LedgerError, match=r"has put it into WAL mode.*Close that program"):
                refused()
        # Also if it was put into it a moment ago.
        monkeypatch.setattr(ledger_file, "_check_header", lambda _: False)
        with pytest.raises(LedgerError, match="has put it into WAL mode"):
            Ledger(in_wal_mode).book(data, PLAN, "out")
        assert browser.execute("SELECT n_events FROM last").fetchone() == (4,)


def test_a_database_that_is_another_one_is_not_begun_anew(folder, tmp_path, postgres, monkeypatch):
    ledger, data = database_ledger(postgres, monkeypatch), folder / "one.csv"
    release(PLAN, data, tmp_path / "out", ledger=ledger.name)
    database_ledger(postgres, monkeypatch)  # of the same name, and empty
    for used in (ledger.name, None):
        with pytest.raises(LedgerError, match=r"'postgresql:LEDGER', .* is gone, or empty"):
            release(PLAN, data, tmp_path / "again", ledger=used)
    assert ledger.accounts() == ()


def test_a_ledger_in_a_database_has_a_name_for_each_role(folder, tmp_path, postgres, monkeypatch):
    ledger, data = database_ledger(postgres, monkeypatch), folder / "one.csv"
    Ledger(f"postgresql:{OWNER}").set_limit(data, PLAN.record_rho)
    release(PLAN, data, tmp_path / "out", ledger=ledger.name)
    for used in (None, ledger.name, f"postgresql:{OWNER}"):
        with pytest.raises(LedgerError, match="left of its budget limit"):
            release(PLAN, data, tmp_path / "again", ledger=used)


def test_a_server_that_is_gone_is_no_reason_to_begin_another_ledger(
    folder, tmp_path, postgres, monkeypatch
):
    ledger, data = database_ledger(postgres, monkeypatch), folder / "one.csv"
    release(PLAN, data, tmp_path / "out", ledger=ledger.name)
    (folder / FILENAME).unlink()
    monkeypatch.setenv("LEDGER", "postgresql://127.0.0.1:1/none")
    with pytest.raises(LedgerError, match="'postgresql:LEDGER' cannot be used"):
        release(PLAN, data, tmp_path / "again")
    release(PLAN, folder / "two.csv", tmp_path / "again")  # which it never held


def test_ledgers_and_notes_of_earlier_versions_are_read(folder, tmp_path, monkeypatch):
    """Entries that name no ledger's identity, and no parts of folders."""
    data, named = folder / "one.csv", tmp_path / "named.sqlite"
    release(PLAN, data, tmp_path / "out", ledger=named)
    monkeypatch.setenv("RPEXPLORE_HOME", str(tmp_path / "home"))
    (folder / FILENAME).unlink()
    note = {"names": ["one.csv"], "noted": "2026-01-01T00:00:00+00:00", "user": ""}
    with Ledger.beside(data).store.transaction() as events:
        events.add("elsewhere", note | {"ledger": str(named)})
    release(PLAN, data, tmp_path / "again")
    assert n_runs(data) == 2
    named.unlink()
    with pytest.raises(LedgerError, match="is gone, or empty"):
        release(PLAN, data, tmp_path / "third")
    (tmp_path / "home" / "ledgers.json").write_text('["postgresql:A", "/b"]')
    assert [one.name for one in remembered_ledgers()] == ["postgresql:A", "/b"]


def test_a_run_is_finished_in_no_ledger_but_its_own(folder, tmp_path):
    named = tmp_path / "named.sqlite"
    with pytest.raises(KeyboardInterrupt):
        release(PLAN, folder / "one.csv", tmp_path / "out", ledger=named, on_progress=stop)
    there = named.rename(tmp_path / "moved.sqlite")
    with pytest.raises(ReleaseError, match="name the ledger"):
        resume(tmp_path / "out")
    with pytest.raises(LedgerError, match="has no run 1"):
        Ledger(named).finish(1)
    assert not named.exists()
    resume(tmp_path / "out", ledger=there)


def test_a_run_is_not_charged_again_where_its_ledger_was_moved(folder, tmp_path, monkeypatch):
    data, named = folder / "one.csv", tmp_path / "named.sqlite"
    Ledger(named).book(folder / "two.csv", PLAN, "other")
    with monkeypatch.context() as patch:
        before_noise = "rpexplore.releases.release.write_measured"
        patch.setattr(before_noise, lambda *_: stop("Writing the release", 0.0))
        with pytest.raises(KeyboardInterrupt):
            release(PLAN, data, tmp_path / "out", ledger=named)
    there = named.rename(tmp_path / "moved.sqlite")
    with pytest.raises(LedgerError, match="is gone"):
        booked_run(tmp_path / "out")
    release(PLAN, data, tmp_path / "out", ledger=there)
    assert n_runs(data) == 1


# --- ledgers that are given up


def test_a_lost_ledger_is_given_up_by_name_and_what_is_known_of_it_binds(
    folder, tmp_path, monkeypatch
):
    data, other = folder / "one.csv", folder / "two.csv"
    named, new = tmp_path / "share" / "ledger.sqlite", tmp_path / "new.sqlite"
    named.parent.mkdir()
    Ledger(named).set_limit(data, Fraction(3, 2))
    Ledger(named).require_approvals(data, DEMAND)
    Ledger(named).require_approvals(other, DEMAND)
    monkeypatch.setattr("rpexplore.releases.ledger.ledger.check_approvals", lambda *_: None)
    monkeypatch.setattr("rpexplore.releases.charged_run.check_approvals", lambda *_: None)
    release(PLAN, data, tmp_path / "out", ledger=named)
    monkeypatch.setenv("RPEXPLORE_HOME", str(tmp_path / "another"))
    with pytest.raises(LedgerError, match="is not lost: it is at"):
        Ledger(new).forget(data, named)
    unmounted(named)
    with pytest.raises(LedgerError, match=r"No note says that the records .*one\.csv' are charged"):
        Ledger(new).forget(data, tmp_path / "unknown.sqlite")
    assert not new.exists()
    account = Ledger(new).forget(data, named)
    assert account.spent_record_rho == PLAN.record_rho
    assert account.limit_record_rho == Fraction(3, 2)
    assert account.approval_demands == (DEMAND,)
    assert [(one.ledger.name, bool(one.user)) for one in account.forgotten] == [(str(named), True)]
    # From now on the account is there for everybody, and no less strict.
    monkeypatch.setenv("RPEXPLORE_HOME", str(tmp_path / "a third"))
    release(PLAN, data, tmp_path / "again")
    release(PLAN, data, tmp_path / "third", ledger=new)
    with pytest.raises(LedgerError, match="left of its budget limit"):
        release(PLAN, data, tmp_path / "fourth")
    with pytest.raises(LedgerError, match="is gone, or empty"):  # given up for one.csv alone
        release(PLAN, other, tmp_path / "other")
    with pytest.raises(LedgerError, match=r"No note says"):  # not twice
        Ledger(new).forget(data, named)
    # It comes back: nobody goes on in either, till one has all.
    (named.parent.with_name("unmounted") / named.name).rename(named)
    with pytest.raises(LedgerError, match=r"in two ledgers|has its account in the ledger"):
        release(PLAN, data, tmp_path / "fourth", ledger=named)


@pytest.mark.parametrize("lost", [unmounted, replaced, emptied])
@pytest.mark.parametrize("knows", ["the note", "the user"])
def test_each_kind_of_loss_is_given_up_by_a_command(
    lost, knows, named, folder, tmp_path, monkeypatch
):
    data = folder / "one.csv"
    if knows == "the note":
        monkeypatch.setenv("RPEXPLORE_HOME", str(tmp_path / "another"))
    else:
        (folder / FILENAME).unlink()
    lost(named)
    if lost is replaced:
        options = ["--ledger", named]  # of the same name, and another one
    else:
        named.unlink(missing_ok=True)
        options = []
    said = in_command(data, "--forget", named, *options)
    assert f"Lost    {named}, given up at" in said
    spent = PLAN.record_rho if knows == "the note" else 0
    assert Ledger.of(data).account(data).spent_record_rho == spent
    release(PLAN, data, tmp_path / "again")
    assert Ledger.of(data).account(data).spent_record_rho == spent + PLAN.record_rho


# --- ledgers that were cut back: the chain of what is left is whole


@pytest.fixture(params=["beside", "named", "postgresql"])
def book(request, folder, tmp_path, monkeypatch) -> Ledger:
    """In which two runs of one.csv fit, and are charged."""
    if request.param == "postgresql":
        book = database_ledger(request.getfixturevalue("postgres"), monkeypatch)
    else:
        (tmp_path / "share").mkdir()
        named = tmp_path / "share" / "ledger.sqlite"
        book = Ledger(named) if request.param == "named" else Ledger.beside(folder / "one.csv")
    for number in range(2):
        release(PLAN, folder / "one.csv", tmp_path / f"{number}", ledger=book.name, limit_rho="1")
    return book


def cut_back(book: Ledger, request, n_left: int = 3) -> None:
    """To its limit, and its first run with the end of that."""
    server = request.getfixturevalue("postgres") if book.path is None else None
    digest = book.store.read_events()[n_left - 1].digest
    tamper(book, server, f"DELETE FROM events WHERE id > {n_left}")
    tamper(book, server, f"UPDATE last SET n_events = {n_left}, digest = '{digest}'")


@pytest.mark.by_day(2)
def test_a_ledger_that_was_cut_back_is_refused_to_whoever_has_booked_there(
    book, folder, tmp_path, request, monkeypatch
):
    data, other = folder / "one.csv", folder / "two.csv"
    cut_back(book, request)
    for refused in (
        lambda: rp.dry_run(PLAN, data, tmp_path / "again"),
        lambda: release(PLAN, data, tmp_path / "again"),
        lambda: release(PLAN, data, tmp_path / "again", ledger=book.name),
        lambda: release(PLAN, other, tmp_path / "again", ledger=book.name),
        lambda: book.account(data),
        lambda: book.set_limit(data, Fraction(9)),
    ):
        with pytest.raises(LedgerError, match=r"lacks entries .* \(there were 5 entries\)"):
            refused()
    # Who has not booked there knows nothing of it.
    monkeypatch.setenv("RPEXPLORE_HOME", str(tmp_path / "another"))
    assert len(book.account(data).entries) == 1


def test_a_ledger_around_records_that_were_written_anew_is_missed_when_it_was_cut_back(
    folder, tmp_path, request
):
    """By their number on the disk they are others, and no entry that is left has their path."""
    data, around = folder / "one.csv", Ledger(tmp_path / FILENAME)
    release(PLAN, folder / "two.csv", tmp_path / "0", ledger=around.name, limit_rho="1")
    release(PLAN, data, tmp_path / "1", ledger=around.name)
    (folder / FILENAME).unlink()
    cut_back(around, request)
    written_anew_then_its_folder(data, tmp_path)
    with pytest.raises(LedgerError, match="lacks entries"):
        release(PLAN, data, tmp_path / "again")


def test_an_earlier_copy_is_not_taken_for_a_ledger_that_is_gone(named, folder, tmp_path):
    data, copy = folder / "one.csv", tmp_path / "copy.sqlite"
    shutil.copy(named, copy)
    release(PLAN, data, tmp_path / "again", ledger=named)
    there = named.rename(tmp_path / "moved.sqlite")
    for ledger in (None, copy):
        with pytest.raises(LedgerError, match=r"is gone, or empty|is an earlier copy, and lacks"):
            release(PLAN, data, tmp_path / "third", ledger=ledger)
    with pytest.raises(LedgerError, match=r"copy\.sqlite' is an earlier copy, and lacks entries"):
        release(PLAN, data, tmp_path / "third", ledger=copy)
    copy.unlink()
    release(PLAN, data, tmp_path / "third", ledger=there)
    assert n_runs(data) == 3


@pytest.mark.by_day(1)
def test_lost_entries_are_given_up_by_name_and_what_is_known_of_them_binds(
    book, folder, tmp_path, request
):
    data = folder / "one.csv"
    cut_back(book, request)
    says = in_command(data, "--forget", book.name, "--ledger", book.name)
    assert f"Lost    {book.name}, given up at" in says
    account = book.account(data)
    # Beside the records stands what was spent in another ledger, and nothing of the one there.
    known = 2 if book != Ledger.beside(data) else 1
    assert account.spent_record_rho == known * PLAN.record_rho
    assert account.limit_record_rho == 1
    if known == 2:
        with pytest.raises(LedgerError, match="left of its budget limit"):
            release(PLAN, data, tmp_path / "again")
        book.set_limit(data, Fraction(3, 2))
    release(PLAN, data, tmp_path / "again")
    assert len(book.account(data).entries) == 2
    cut_back(book, request)
    with pytest.raises(LedgerError, match="lacks entries"):  # once more
        release(PLAN, data, tmp_path / "third")


def test_a_ledger_goes_on_where_nothing_is_known_of_the_entries_that_it_lost(
    folder, tmp_path, request
):
    data, named = folder / "one.csv", tmp_path / "named.sqlite"
    release(PLAN, folder / "two.csv", tmp_path / "other", ledger=named)
    release(PLAN, data, tmp_path / "out", ledger=named)
    (folder / FILENAME).unlink()
    cut_back(Ledger(named), request, 2)
    account = Ledger(named).forget(data, named)
    assert (account.spent_record_rho, account.entries) == (0, ())
    release(PLAN, data, tmp_path / "again")
    assert len(Ledger(named).account(data).entries) == 1


@pytest.mark.by_day(1)
def test_what_cannot_be_given_up_stays_refused(book, folder, tmp_path, request):
    cut_back(book, request)
    with pytest.raises(DataError):
        book.forget(tmp_path / "none.csv", book.name)
    with pytest.raises(LedgerError, match="lacks entries"):
        book.account(folder / "one.csv")
