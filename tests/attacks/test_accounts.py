"""Attacks on accounts: records led away from what was spent on them, and ledgers from their name.

Whatever is done to files between two runs, without changing or copying them, one account is meant,
with its limit and its demands, and a ledger that is missing is not an empty one.
"""

import base64
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import rpexplore as rp
from rpexplore.data.engines.source import DatabaseSource
from rpexplore.data.files.source import source_of
from rpexplore.errors import ApprovalError, DataError, LedgerError, ReleaseError
from rpexplore.planning.planner import plan_tables
from rpexplore.releases.approvals import check_approvals
from rpexplore.releases.charged_run import booked_run
from rpexplore.releases.ledger import chain, ledger_file
from rpexplore.releases.ledger.ledger import FILENAME, Ledger
from rpexplore.releases.ledger.ledger_database import LedgerDatabase
from rpexplore.releases.ledger.overlaps import remember, remembered_ledgers
from rpexplore.releases.release import release, resume
from tests.cli.program import Program
from tests.data.engines.servers import in_duckdb
from tests.support.ledgers import OWNER, database_ledger, tamper
from tests.support.ssh_keys import public, requires_ssh_keygen, with_keys

PLAN = plan_tables(
    rp.Workload.all_up_to(rp.Domain.from_sizes({"a": 2}), 1),
    loss=rp.SumOfVariances(),
    budget=rp.Budget(rho="1/2"),
)
KEY = base64.b64encode(b"\0\0\0\x0bssh-ed25519\0\0\0 " + bytes(32)).decode()
DEMAND = rp.ApprovalDemand(1, f"alice@x ssh-ed25519 {KEY}\n")


@pytest.fixture
def folder(tmp_path) -> Path:
    folder = tmp_path / "survey"
    folder.mkdir()
    for name, records in (("one.csv", "a\n0\n1\n"), ("two.csv", "a\n1\n1\n")):
        (folder / name).write_text(records)
    return folder


def n_runs(data: Path) -> int:
    """In the account of the records, wherever it is."""
    return len(Ledger.of(data).account(data).entries)


# --- records


def moved(data: Path, to: Path) -> Path:
    return Path(shutil.move(data, to / "moved.csv"))


def linked(data: Path, to: Path) -> Path:
    (to / "hard.csv").hardlink_to(data)
    return to / "hard.csv"


def linked_softly(data: Path, to: Path) -> Path:
    (to / "soft.csv").symlink_to(data)
    return to / "soft.csv"


def moved_with_its_folder(data: Path, to: Path) -> Path:
    return Path(shutil.move(data.parent, to / "moved")) / data.name


def moved_into_a_folder(data: Path, to: Path) -> Path:
    (to / "2024" / "part").mkdir(parents=True)
    (to / "2024" / "other.csv").write_text("a\n1\n")
    shutil.move(data, to / "2024" / "part" / "moved.csv")
    return to / "2024"


def linked_into_a_folder(data: Path, to: Path) -> Path:
    (to / "2024").mkdir()
    (to / "2024" / "other.csv").write_text("a\n1\n")
    return linked(data, to / "2024").parent


def its_folder(data: Path, to: Path) -> Path:
    return data.parent


def written_anew_then_its_folder(data: Path, to: Path) -> Path:
    """As an editor saves it: another file, at the same path."""
    (to / "new.csv").write_text(data.read_text())
    (to / "new.csv").replace(data)
    return data.parent


WAYS = [
    moved,
    linked,
    linked_softly,
    moved_with_its_folder,
    moved_into_a_folder,
    linked_into_a_folder,
    its_folder,
    written_anew_then_its_folder,
]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("named", [False, True])
def test_no_way_to_lead_a_file_to_another_account(
    way: Callable[[Path, Path], Path], named, folder, tmp_path
):
    (tmp_path / "ledgers").mkdir()
    ledger = tmp_path / "ledgers" / "named.sqlite" if named else None
    data = folder / "one.csv"
    release(PLAN, data, tmp_path / "out", ledger=ledger, limit_rho="1/2")
    (tmp_path / "elsewhere").mkdir()
    data = way(data, tmp_path / "elsewhere")
    assert n_runs(data) == 1
    for used in (None, tmp_path / "third.sqlite"):
        with pytest.raises(
            LedgerError, match=r"left of its budget limit|has its account in the ledger"
        ):
            release(PLAN, data, tmp_path / "again", ledger=used)
    assert not (tmp_path / "third.sqlite").exists()


def a_file_in_it(folder: Path) -> Path:
    return folder / "one.csv"


def a_file_that_is_new_in_it(folder: Path) -> Path:
    (folder / "new.csv").write_text("a\n0\n")
    return folder / "new.csv"


def a_file_that_was_written_anew(folder: Path) -> Path:
    (folder / "one.csv").unlink()
    (folder / "one.csv").write_text("a\n0\n")
    return folder / "one.csv"


def a_file_moved_out_of_it(folder: Path) -> Path:
    return Path(shutil.move(folder / "one.csv", folder.parent / "out-of-it.csv"))


def a_folder_in_it(folder: Path) -> Path:
    (folder / "sub").mkdir()
    shutil.move(folder / "two.csv", folder / "sub")
    return folder / "sub"


def a_folder_around_it(folder: Path) -> Path:
    (folder.parent / "around").mkdir()
    shutil.move(folder, folder.parent / "around")
    return folder.parent / "around"


PARTS = [
    a_file_in_it,
    a_file_that_is_new_in_it,
    a_file_that_was_written_anew,
    a_file_moved_out_of_it,
    a_folder_in_it,
    a_folder_around_it,
]


def as_it_is(folder: Path) -> Path:
    return folder


def renamed(folder: Path) -> Path:
    return folder.rename(folder.with_name("renamed"))


def moved_into_another(folder: Path) -> Path:
    (folder.parent / "another" / "one").mkdir(parents=True)
    return folder.rename(folder.parent / "another" / "one" / folder.name)


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("way", [as_it_is, renamed, moved_into_another])
def test_less_or_more_than_a_folder_is_bound_as_the_folder(way, part, folder, tmp_path):
    release(PLAN, folder, tmp_path / "out", limit_rho="1/2")
    with pytest.raises(LedgerError, match="left of its budget limit"):
        release(PLAN, part(way(folder)), tmp_path / "again")


@pytest.mark.parametrize("name", ["census:2026", "file:1:2", "duckdb:a", "a in b", "a at b", "./a"])
@pytest.mark.parametrize("ledger", [None, "survey.sqlite"])
def test_no_name_of_a_folder_is_taken_for_none(name, ledger, folder, tmp_path):
    """Names of tables, and of what files are, have a colon as well."""
    folder, book = folder.rename(tmp_path / name), ledger and tmp_path / ledger
    release(PLAN, folder, tmp_path / "out", ledger=book, limit_rho="1/2")
    with pytest.raises(LedgerError, match="left of its budget limit"):
        release(PLAN, a_file_that_is_new_in_it(folder), tmp_path / "again", ledger=book)


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("way", [as_it_is, renamed])
def test_less_or_more_than_a_folder_needs_its_approvals(way, part, folder, tmp_path):
    Ledger.beside(folder).require_approvals(folder, DEMAND)
    with pytest.raises(ApprovalError, match="demands approvals"):
        release(PLAN, part(way(folder)), tmp_path / "again")


@pytest.mark.parametrize("part", [as_it_is, a_folder_around_it])
@pytest.mark.parametrize("kind", ["file", "postgresql"])
def test_a_file_binds_its_folder_whatever_both_are_by_now(
    kind, part, folder, tmp_path, request, monkeypatch
):
    """The file was written anew, and then the folder renamed: no name of either is as it was."""
    book = Ledger(tmp_path / "named.sqlite")
    if kind == "postgresql":
        book = database_ledger(request.getfixturevalue("postgres"), monkeypatch)
    release(PLAN, folder / "one.csv", tmp_path / "out", ledger=book.name, limit_rho="1/2")
    a_file_that_was_written_anew(folder)
    folder = renamed(folder)
    assert book.account(folder / "two.csv").entries == ()
    with pytest.raises(LedgerError, match="left of its budget limit"):
        release(PLAN, part(folder), tmp_path / "again", ledger=book.name)


def test_a_folder_that_is_mounted_a_second_time_is_the_same(folder, tmp_path):
    release(PLAN, folder, tmp_path / "out", limit_rho="1/2")
    (tmp_path / "mounted").mkdir()
    mounted = ["mount", "--bind", str(folder), str(tmp_path / "mounted")]
    if subprocess.run(mounted, capture_output=True, check=False).returncode:
        pytest.skip("only the administrator mounts a folder a second time")
    try:
        data = a_file_that_is_new_in_it(tmp_path / "mounted")
        with pytest.raises(LedgerError, match="left of its budget limit"):
            release(PLAN, data, tmp_path / "again")
    finally:
        subprocess.run(["umount", str(tmp_path / "mounted")], check=True)


@pytest.mark.parametrize("way", [as_it_is, renamed])
def test_a_named_ledger_is_missed_for_a_file_that_is_new_in_a_folder(way, folder, tmp_path):
    """The user's memory knows the folder, and no file that was not there."""
    named = tmp_path / "share" / "ledger.sqlite"
    named.parent.mkdir()
    release(PLAN, folder, tmp_path / "out", ledger=named)
    unmounted(named)
    (tmp_path / FILENAME).unlink()
    with pytest.raises(LedgerError, match="is gone, or empty"):
        release(PLAN, a_file_that_is_new_in_it(way(folder)), tmp_path / "again")


def test_files_beside_each_other_have_their_own_accounts_until_they_are_counted_as_one(
    folder, tmp_path
):
    release(PLAN, folder / "one.csv", tmp_path / "one")
    assert n_runs(folder / "two.csv") == 0
    release(PLAN, folder / "two.csv", tmp_path / "two")
    assert n_runs(folder / "one.csv") == 1
    release(PLAN, folder, tmp_path / "both")
    for data in (folder, folder / "one.csv", folder / "two.csv"):
        assert n_runs(data) == 3


def test_a_demand_follows_a_file(folder, tmp_path):
    data = folder / "one.csv"
    Ledger(tmp_path / "named.sqlite").require_approvals(data, DEMAND)
    (tmp_path / "elsewhere").mkdir()
    with pytest.raises(ApprovalError, match="demands approvals"):
        release(PLAN, moved(data, tmp_path / "elsewhere"), tmp_path / "out")


def test_a_file_that_somebody_else_has_charged_is_known_by_the_note_beside_it(
    folder, tmp_path, monkeypatch
):
    data = folder / "one.csv"
    release(PLAN, data, tmp_path / "out", ledger=tmp_path / "named.sqlite", limit_rho="1/2")
    monkeypatch.setenv("RPEXPLORE_HOME", str(tmp_path / "home of another"))
    with pytest.raises(LedgerError, match="left of its budget limit"):
        release(PLAN, data, tmp_path / "again")
    with pytest.raises(LedgerError, match=r"account in the ledger '.*named\.sqlite'"):
        release(PLAN, data, tmp_path / "again", ledger=tmp_path / "third.sqlite")


def test_a_database_in_a_file_keeps_its_account_where_it_is_moved(folder, tmp_path):
    before = in_duckdb(pa.table({"a": [0, 1]}), folder / "survey.duckdb")
    release(PLAN, before, tmp_path / "out", limit_rho="1/2")
    (tmp_path / "elsewhere").mkdir()
    path = shutil.move(folder / "survey.duckdb", tmp_path / "elsewhere" / "moved.duckdb")
    after = replace(before, connection=replace(before.connection, url=f"duckdb://{path}"))
    with pytest.raises(LedgerError, match="left of its budget limit"):
        release(PLAN, after, tmp_path / "again")


def test_nobody_is_led_unasked_to_a_ledger_of_somebody_else_s(folder, tmp_path, monkeypatch):
    """Whoever may write beside the records could note a ledger there, and remove it later."""
    data, named = folder / "one.csv", tmp_path / "named.sqlite"
    release(PLAN, data, tmp_path / "out", ledger=named)
    monkeypatch.setattr(os, "geteuid", lambda: os.stat(named).st_uid + 1)
    with pytest.raises(LedgerError, match=r"account in the ledger '.*named\.sqlite'; use that one"):
        release(PLAN, data, tmp_path / "again")
    release(PLAN, data, tmp_path / "again", ledger=named)


def test_accounts_in_two_ledgers_are_not_charged_further(folder, tmp_path):
    for name in ("one", "two"):
        (folder / name).mkdir()
        shutil.move(folder / f"{name}.csv", folder / name)
        release(PLAN, folder / name / f"{name}.csv", tmp_path / name)
    with pytest.raises(LedgerError, match="have accounts in two ledgers"):
        release(PLAN, folder, tmp_path / "both")


# --- ledgers


@pytest.fixture
def named(folder, tmp_path) -> Path:
    """A ledger on a share, in which one.csv is charged."""
    named = tmp_path / "share" / "ledger.sqlite"
    named.parent.mkdir()
    release(PLAN, folder / "one.csv", tmp_path / "out", ledger=named)
    return named


def unmounted(named: Path) -> None:
    named.parent.rename(named.parent.with_name("unmounted"))
    named.parent.mkdir()


def replaced(named: Path) -> None:
    unmounted(named)
    records = named.parent / "other.csv"
    records.write_text("a\n0\n")
    Ledger(named).book(records, PLAN, "out")


def emptied(named: Path) -> None:
    with sqlite3.connect(named) as connection:
        connection.execute("DELETE FROM events")
        connection.execute("UPDATE last SET n_events = 0, digest = ?", [chain.START])
    connection.close()


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


def test_the_ledger_beside_the_records_is_missed_when_it_is_removed(folder, tmp_path):
    data = folder / "one.csv"
    release(PLAN, data, tmp_path / "out")
    Ledger.beside(data).path.unlink()
    with pytest.raises(LedgerError, match="is gone, or empty"):
        release(PLAN, data, tmp_path / "again")
    # Other records at that path are not missing a ledger that was removed with the first ones.
    data.unlink()
    data.write_text("a\n0\n")
    release(PLAN, data, tmp_path / "again")


def test_a_ledger_that_was_moved_is_the_same_where_it_is_named(named, folder, tmp_path):
    data = folder / "one.csv"
    there = named.rename(tmp_path / "moved.sqlite")
    with pytest.raises(LedgerError, match="name it where it is now"):
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


def stop(doing: str, share: float) -> None:
    if doing == "Writing the release":
        raise KeyboardInterrupt


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


# --- what binds accounts that come together


def test_the_strictest_limit_holds_and_is_loosened_by_the_name_of_whose_it_is(folder, tmp_path):
    one, two = folder / "one.csv", folder / "two.csv"
    ledger = Ledger(tmp_path / "ledger.sqlite")
    for data, limit in ((one, "1/2"), (two, "3/4"), (folder, "2")):
        if data != folder:
            ledger.set_limit(data, Fraction(limit))
    release(PLAN, one, tmp_path / "out", ledger=ledger.name)
    with pytest.raises(LedgerError, match=r"left of its .*\(set for 'survey/one\.csv'\)"):
        release(PLAN, folder, tmp_path / "both", ledger=ledger.name)
    for limit in (None, Fraction(2)):
        with pytest.raises(LedgerError, match=r"was set for .*'survey/one\.csv'.* to loosen it"):
            ledger.set_limit(folder, limit)
    ledger.set_limit(folder, Fraction(1, 2))  # as strict
    ledger.set_limit(folder, Fraction(5))  # its own
    assert ledger.account(folder).limit_record_rho == Fraction(1, 2)
    ledger.set_limit(one, None)
    assert ledger.account(folder).limit_record_rho == Fraction(3, 4)
    ledger.set_limit(two, Fraction(1))
    release(PLAN, folder, tmp_path / "both", ledger=ledger.name)
    assert len(ledger.account(one).entries) == 2


@pytest.mark.parametrize("first", ["people", "households"])
def test_the_strictest_limit_holds_for_a_view_of_two_tables(first, tmp_path):
    path = tmp_path / "base.duckdb"
    made = in_duckdb(pa.table({"a": [0, 1]}), path)
    with duckdb.connect(path) as database:
        for table in ("people", "households"):
            database.execute(f"CREATE TABLE {table} AS SELECT 0 AS a")
        database.execute(
            "CREATE VIEW both_of_them AS SELECT p.a FROM people p JOIN households h ON p.a = h.a"
        )
    people, households, view = (
        DatabaseSource(made.connection, table) for table in ("people", "households", "both_of_them")
    )
    ledger = Ledger(tmp_path / "ledger.sqlite")
    limits = {people: Fraction(1, 4), households: Fraction(3)}
    for source in limits if first == "people" else reversed(limits):
        ledger.set_limit(source, limits[source])
    with pytest.raises(LedgerError, match=r"only ρ = 0\.25 .*main\.people"):
        release(PLAN, view, tmp_path / "out", ledger=ledger.name)
    with pytest.raises(LedgerError, match="to loosen it"):
        ledger.set_limit(view, None)
    release(PLAN, households, tmp_path / "out", ledger=ledger.name)


@requires_ssh_keygen
def test_every_demand_of_accounts_that_come_together_is_to_be_met(folder, tmp_path):
    keys = with_keys(tmp_path, "alice@x", "bob@x", "carol@x")
    ledger = Ledger(tmp_path / "ledger.sqlite")
    listed = {name: f"{name}@x {public(keys / name)}\n" for name in ("alice", "bob")}
    ledger.require_approvals(folder / "one.csv", rp.ApprovalDemand(1, listed["alice"]))
    ledger.require_approvals(folder / "two.csv", rp.ApprovalDemand(1, listed["bob"]))
    alice, bob, carol = (rp.approve(PLAN, keys / name) for name in ("alice", "bob", "carol"))
    for given in ([], [alice], [bob]):
        missing = "bob" if given == [alice] else "alice"
        with pytest.raises(ApprovalError, match=rf"of a list \({missing}@x\)"):
            release(PLAN, folder, tmp_path / "out", ledger=ledger.name, approvals=given)
    demands = ledger.account(folder).approval_demands
    with pytest.raises(ApprovalError, match="of carol@x does not count"):
        check_approvals(demands, PLAN.sha256, [alice, bob, carol])
    with pytest.raises(LedgerError, match=r"demand for approvals .* to loosen it"):
        ledger.require_approvals(folder, None)
    release(PLAN, folder, tmp_path / "out", ledger=ledger.name, approvals=[alice, bob])
    ledger.require_approvals(folder / "two.csv", None)
    assert [one.names for one in ledger.account(folder).approval_demands] == [["alice@x"]]


# --- the command


def test_the_command_shows_the_account_where_it_is_and_takes_limits_there(
    folder, tmp_path, monkeypatch
):
    data, named = folder / "one.csv", tmp_path / "named.sqlite"
    release(PLAN, data, tmp_path / "out", ledger=named)
    monkeypatch.chdir(tmp_path)
    command = Program(tmp_path)
    facts = command.json("ledger", "survey/one.csv")
    assert (len(facts["runs"]), facts["ledger"]) == (1, str(named))
    command.done("ledger", "survey/one.csv", "--limit-record-rho", "1/2")
    assert Ledger(named).account(data).limit_record_rho == Fraction(1, 2)
    assert not Ledger.beside(data).account(data).is_used
    text = command.refused("ledger", "survey/one.csv", "--ledger", "other.sqlite")
    assert "has its account in the ledger" in text


@pytest.mark.parametrize("name", ["rpexplore-ledger.sqlite", "codebook.json", "empty", "missing"])
@pytest.mark.parametrize("limit", [[], ["--limit-record-rho", "1"]])
def test_what_is_no_data_has_no_account(name, limit, folder, tmp_path, monkeypatch):
    release(PLAN, folder / "one.csv", tmp_path / "out")
    (folder / "codebook.json").write_text("{}")
    (folder / "empty").mkdir()
    before = Ledger(folder / FILENAME).n_entries()
    monkeypatch.chdir(tmp_path)
    text = Program(tmp_path).refused("ledger", f"survey/{name}", *limit)
    assert "A ledger itself is named by --ledger" in text
    with pytest.raises(DataError):
        Ledger(folder / FILENAME).set_limit(folder / name, Fraction(1))
    assert Ledger(folder / FILENAME).n_entries() == before


# --- ledgers that are given up


def in_command(*arguments: str | Path) -> str:
    """What the command says, of its output and its errors."""
    return Program(Path())("ledger", *map(str, arguments)).output


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


def test_what_cannot_be_given_up_stays_refused(book, folder, tmp_path, request):
    cut_back(book, request)
    with pytest.raises(DataError):
        book.forget(tmp_path / "none.csv", book.name)
    with pytest.raises(LedgerError, match="lacks entries"):
        book.account(folder / "one.csv")


# --- ledgers that are merged


KINDS_OF_MERGES = ["file into file", "file into database", "database into database"]


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
