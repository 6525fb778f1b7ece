"""Attacks by another account of the same machine: what it lays out is not taken for one's own.

In a folder that several people may write to, anybody can make what a run of somebody else would
find: its unfinished folder, its folder of settings, its file of secrets.
"""

import errno
import os
import platform
import pwd
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import duckdb
import pytest

import rpexplore as rp
from rpexplore.cli.serve import serve
from rpexplore.common.files import home_folder, may_write
from rpexplore.data.engines.connections import Connection, connection_named, connection_names
from rpexplore.data.engines.source import DatabaseSource
from rpexplore.errors import DataError, LedgerError, ReleaseError, RpexploreError
from rpexplore.planning.strategies import user_cache
from rpexplore.releases import atomic_folder
from rpexplore.releases.atomic_folder import new_folder, unfinished_folder
from rpexplore.releases.ledger import ledger_file, overlaps
from rpexplore.releases.ledger.ledger import FILENAME, Ledger
from rpexplore.releases.ledger.overlaps import remembered_ledgers
from rpexplore.scenarios.autosave import Autosaves
from tests.releases.table_plan import CSV, PLAN
from tests.support.ledgers import journal_to

NOBODY = 65534
NOGROUP = pwd.getpwuid(NOBODY).pw_gid
gives_away = pytest.mark.skipif(
    os.geteuid() != 0, reason="only the administrator can give a file to somebody else"
)

HOW = {
    "somebody else's": "it belongs to somebody else",
    "open to all": r"others may write to it \(mode 777\)",
    "open to a group": r"others may write to it \(mode 770\)",
}


@pytest.fixture(params=HOW)
def laid(request, monkeypatch):
    """Makes something what another account could have made; called with its path."""

    def lay(path: Path) -> str:
        if request.param == "somebody else's":
            if os.geteuid() == 0:
                os.chown(path, 65534, -1)
            else:
                monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
        else:
            path.chmod(0o777 if request.param == "open to all" else 0o770)
        return HOW[request.param]

    return lay


@pytest.fixture
def data(tmp_path) -> Path:
    path = tmp_path / "data" / "records.csv"
    path.parent.mkdir()
    path.write_text(CSV)
    return path


def test_an_unfinished_folder_that_no_own_run_has_left_is_not_taken(laid, data, tmp_path):
    output = tmp_path / "out"
    hidden = unfinished_folder(output)
    (hidden / "run").mkdir(parents=True)
    (hidden / "run" / "booked.json").write_text("{}")
    (hidden / "run" / "drawn.json").write_text("{}")
    problem = laid(hidden)
    for refused in (
        lambda: rp.dry_run(PLAN, data, output),
        lambda: rp.release(PLAN, data, output),
        lambda: rp.resume(output),
    ):
        with pytest.raises(ReleaseError, match=f"cannot be used: {problem}"):
            refused()
    assert Ledger.beside(data).account(data).entries == ()
    assert len(list(hidden.rglob("*"))) == 3


def test_an_unfinished_folder_that_appears_after_the_check_is_not_taken(
    laid, tmp_path, monkeypatch
):
    hidden = unfinished_folder(tmp_path / "out")
    hidden.mkdir()
    (hidden / "precious").touch()
    problem = laid(hidden)
    monkeypatch.setattr(atomic_folder, "check_new", lambda *_, **__: None)
    with pytest.raises(ReleaseError, match=problem), new_folder(tmp_path / "out"):
        raise AssertionError
    assert (hidden / "precious").exists()


OF_HOME = {
    "saved projects": Autosaves.of_user,
    "projects of an account": lambda: Autosaves.of_account("0" * 64),
    "strategies": lambda: user_cache.__wrapped__(),
    "remembered ledgers": remembered_ledgers,
    "connections": connection_names,
    "the app": lambda: serve(1, data_folders=[], open_browser=False, say=print),
}


@pytest.mark.parametrize("use", OF_HOME.values(), ids=OF_HOME)
def test_what_is_kept_in_somebody_elses_folder_is_not_taken(use, laid, tmp_path, monkeypatch):
    folder = tmp_path / "home"
    folder.mkdir(0o700)
    monkeypatch.setenv("RPEXPLORE_HOME", str(folder))
    monkeypatch.delenv("RPEXPLORE_NO_CACHE", raising=False)
    problem = laid(folder)
    with pytest.raises(RpexploreError, match=f"cannot be used: {problem}.*RPEXPLORE_HOME"):
        use()
    assert list(folder.iterdir()) == []


def test_an_empty_home_is_not_the_root_of_all_files(monkeypatch):
    """With HOME="" notes went to `/.rpexplore`."""
    pwd = pytest.importorskip("pwd")
    monkeypatch.delenv("RPEXPLORE_HOME", raising=False)
    monkeypatch.setenv("HOME", "")
    assert home_folder() == Path(pwd.getpwuid(os.getuid()).pw_dir) / ".rpexplore"


def test_a_link_of_somebody_elses_is_not_followed_to_what_is_kept(tmp_path, monkeypatch):
    folder, link = tmp_path / "home", tmp_path / "link"
    folder.mkdir(0o700)
    link.symlink_to(folder)
    monkeypatch.setenv("RPEXPLORE_HOME", str(link))
    assert home_folder() == link
    if os.geteuid() != 0:
        pytest.skip("only the administrator can give a link to somebody else")
    os.chown(link, 65534, -1, follow_symlinks=False)
    with pytest.raises(RpexploreError, match="belongs to somebody else"):
        home_folder()


def test_a_file_of_secrets_is_ones_own(tmp_path, monkeypatch, laid):
    path = tmp_path / "secrets.toml"
    path.write_text('[connections]\nSURVEY = "postgresql://elsewhere/survey"\n')
    path.chmod(0o600)
    monkeypatch.setenv("RPEXPLORE_SECRETS", str(path))
    assert connection_named("SURVEY").url == "postgresql://elsewhere/survey"
    problem = laid(path)
    problem = problem if "belongs" in problem else "must be for its owner alone"
    with pytest.raises(DataError, match=problem):
        connection_named("SURVEY")


def test_settings_of_the_app_are_ones_own(tmp_path, monkeypatch, laid):
    monkeypatch.chdir(tmp_path)
    settings = tmp_path / ".streamlit" / "config.toml"
    settings.parent.mkdir(0o700)
    settings.write_text('[theme]\nfont = "Evil:http://127.0.0.1:9/evil.css"\n')
    settings.chmod(0o600)
    laid(settings)
    with pytest.raises(RpexploreError, match=r"would take settings from .*cannot be trusted"):
        serve(1, data_folders=(), open_browser=False, say=print)


def test_a_folder_that_is_usually_open_to_a_group_is_closed_until_it_has_its_name(tmp_path):
    seen = []
    before = os.umask(0o002)
    try:
        with new_folder(tmp_path / "out") as folder:
            seen.append(folder.stat().st_mode & 0o777)
    finally:
        os.umask(before)
    assert [*seen, (tmp_path / "out").stat().st_mode & 0o777] == [0o700, 0o775]


# --- what lies beside a ledger, in a folder that anybody may write to


@pytest.fixture
def taken_back(data, tmp_path) -> tuple[Path, bytes]:
    """A ledger whose limit is used up, and a journal that makes it what it was a run earlier."""
    ledger = Ledger.beside(data).path
    assert ledger is not None
    rp.release(PLAN, data, tmp_path / "first", limit_rho=2 * PLAN.record_rho)
    journal = journal_to(ledger.read_bytes())
    rp.release(PLAN, data, tmp_path / "second")
    data.parent.chmod(0o1777)
    return ledger, journal


@gives_away
@pytest.mark.parametrize("suffix", ["-journal", "-wal", "-shm"])
@pytest.mark.parametrize("kind", ["a file", "a link"])
def test_nothing_that_somebody_else_lays_beside_a_ledger_is_played_back(
    suffix, kind, taken_back, data, tmp_path
):
    ledger, journal = taken_back
    before = ledger.read_bytes()
    beside = ledger.with_name(ledger.name + suffix)
    laid = tmp_path / "laid" if kind == "a link" else beside
    laid.write_bytes(journal)
    os.chown(laid, NOBODY, -1)
    if kind == "a link":
        beside.symlink_to(laid)
        os.chown(beside, NOBODY, -1, follow_symlinks=False)
    for refused in (
        lambda: rp.dry_run(PLAN, data, tmp_path / "third"),
        lambda: rp.release(PLAN, data, tmp_path / "third"),
        lambda: Ledger(ledger).account(data),
        lambda: Ledger(ledger).set_limit(data, None),
    ):
        with pytest.raises(LedgerError, match=f"{suffix}' beside it was put there by somebody"):
            refused()
    assert ledger.read_bytes() == before
    beside.unlink()
    with pytest.raises(LedgerError, match="left of its budget limit"):
        rp.release(PLAN, data, tmp_path / "third")


WRITER = """
import os, sqlite3, sys
import duckdb
engine, path = sys.argv[1:]
if engine == "duckdb":
    database = duckdb.connect(path)
else:
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("PRAGMA journal_mode = WAL")
database.execute("INSERT INTO records SELECT * FROM records")
os._exit(0)
"""


@gives_away
@pytest.mark.parametrize(("engine", "ending"), [("duckdb", ".wal"), ("sqlite", "-wal")])
def test_records_are_not_taken_from_what_somebody_else_lays_beside_a_database(
    engine, ending, tmp_path
):
    """A log of what a writer was about, here of a copy of the database."""
    path, copy = tmp_path / "survey", tmp_path / "copy"
    with closing(duckdb.connect(path) if engine == "duckdb" else sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE records (sex varchar(9))")
        database.execute("INSERT INTO records VALUES ('f')")
        database.commit()
    shutil.copy(path, copy)
    command = [sys.executable, "-c", WRITER, engine, str(copy)]
    subprocess.run(command, check=True)
    source = DatabaseSource(Connection("SURVEY", f"{engine}://{path}"), "records")
    domain = rp.Domain(PLAN.domain.attributes[:1])
    laid = path.with_name(path.name + ending)
    shutil.copy(copy.with_name(copy.name + ending), laid)
    assert source.count(domain, [(0,)]).n_records == 2  # as a writer of one's own has left it
    for left in tmp_path.glob("survey?*"):
        left.unlink()
    shutil.copy(copy.with_name(copy.name + ending), laid)
    os.chown(laid, NOBODY, -1)
    for refused in (source.fingerprint, lambda: source.count(domain, [(0,)])):
        with pytest.raises(DataError, match=rf"'survey{ending}' was put by somebody"):
            refused()
    laid.unlink()
    assert source.count(domain, [(0,)]).n_records == 1


def test_what_a_writer_of_the_ledger_has_left_is_played_back(taken_back, data, monkeypatch):
    """Theirs is the right to write to it anyway, and a run of theirs may have been killed."""
    ledger, journal = taken_back
    monkeypatch.setenv("RPEXPLORE_HOME", str(data.parent / "home of another"))
    beside = ledger.with_name(f"{ledger.name}-journal")
    beside.write_bytes(journal)
    if os.geteuid() == 0:
        ledger.chmod(0o666)
        os.chown(beside, NOBODY, -1)
    assert len(Ledger(ledger).account(data).entries) == 1


def test_a_journal_that_appears_when_all_was_looked_at_is_noticed(
    taken_back, data, tmp_path, monkeypatch
):
    ledger, journal = taken_back
    monkeypatch.setenv("RPEXPLORE_HOME", str(tmp_path / "home of another"))
    look = ledger_file._end_of_file_alone

    def look_and_lay(path: Path):
        seen = look(path)
        ledger.with_name(f"{ledger.name}-journal").write_bytes(journal)
        return seen

    monkeypatch.setattr(ledger_file, "_end_of_file_alone", look_and_lay)
    with pytest.raises(LedgerError, match=r"taken out of the ledger .* while it was opened"):
        Ledger(ledger).account(data)


@pytest.mark.parametrize("end", ["", "-1", f"-{10**30}-1"])
def test_names_like_those_of_drafts_keep_nobody_from_making_a_ledger(end, data, tmp_path):
    (data.parent / f".{FILENAME}.new-{platform.node()}{end}").touch()
    rp.release(PLAN, data, tmp_path / "out")
    assert len(Ledger.beside(data).account(data).entries) == 1


def test_nobody_is_kept_from_making_a_ledger_by_what_lies_there(data, tmp_path):
    """A draft that is old, and cannot be removed."""
    draft = data.parent / f".{FILENAME}.new-a-1-1"
    draft.mkdir()
    os.utime(draft, (0, 0))
    rp.release(PLAN, data, tmp_path / "out")
    assert len(Ledger.beside(data).account(data).entries) == 1


@pytest.fixture
def laid_beside(data, tmp_path) -> Path:
    """A ledger of other records that somebody has put into a folder that all may write to."""
    other = tmp_path / "other" / "other.csv"
    other.parent.mkdir()
    other.write_text(CSV)
    Ledger.beside(other).set_limit(other, PLAN.record_rho)
    laid = Ledger.beside(data).path
    assert laid is not None
    laid.write_bytes((other.parent / FILENAME).read_bytes())
    laid.chmod(0o666)
    os.chown(laid, NOBODY, -1)
    data.parent.chmod(0o1777)
    return laid


@gives_away
@pytest.mark.parametrize("has_account", [False, True])
def test_nobody_books_unasked_in_a_ledger_that_somebody_else_laid_beside_the_records(
    has_account, laid_beside, data, tmp_path, monkeypatch
):
    if has_account:
        Ledger(laid_beside).set_limit(data, 9 * PLAN.record_rho)
    before = laid_beside.read_bytes()
    for refused in (
        lambda: rp.dry_run(PLAN, data, tmp_path / "out"),
        lambda: rp.release(PLAN, data, tmp_path / "out"),
        lambda: Ledger.of(data),
    ):
        with pytest.raises(LedgerError, match=r"beside the records, belongs to another user"):
            refused()
    named = laid_beside if has_account else tmp_path / "own.sqlite"
    rp.release(PLAN, data, tmp_path / "out", ledger=named)
    assert (laid_beside.read_bytes() == before) == (not has_account)
    # And it is not taken back unseen from whoever has booked there.
    if has_account:
        laid_beside.write_bytes(before)
        with pytest.raises(LedgerError, match="lacks entries that it had"):
            rp.release(PLAN, data, tmp_path / "again", ledger=named)


@gives_away
@pytest.mark.parametrize("right", ["the folder", "its group", "the records"])
def test_a_ledger_of_somebody_who_has_a_right_there_is_used(right, laid_beside, data, tmp_path):
    if right == "the records":
        os.chown(data, NOBODY, -1)
    else:
        data.parent.chmod(0o775)
        os.chown(data.parent, *((NOBODY, -1) if right == "the folder" else (-1, NOGROUP)))
    rp.release(PLAN, data, tmp_path / "out")
    assert len(Ledger(laid_beside).account(data).entries) == 1


@pytest.mark.parametrize("named", [False, True])
def test_a_ledger_beside_the_records_that_is_closed_to_us_is_not_led_around(
    named, data, tmp_path, monkeypatch
):
    """Its limit did not hold for whoever may not read it, where its folder is closed, too."""
    closed = Ledger.beside(data).path
    assert closed is not None
    Ledger(closed).set_limit(data, PLAN.record_rho / 2)
    if os.geteuid() == 0:
        may, opened = os.access, Path.open

        def refusing(path: Path, *args, **options):
            if path == closed:
                raise PermissionError(errno.EACCES, "Permission denied")
            return opened(path, *args, **options)

        monkeypatch.setattr(os, "access", lambda path, *rest: path != closed and may(path, *rest))
        monkeypatch.setattr(Path, "open", refusing)
    else:
        closed.chmod(0o200)
    # By another way of this user's memory, which does not have it.
    monkeypatch.setenv("RPEXPLORE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(overlaps, "_ledgers_to_note_in", lambda *_: [])
    with pytest.raises(LedgerError, match="ask its owner for the right to use it"):
        rp.release(PLAN, data, tmp_path / "out", ledger=tmp_path / "own.sqlite" if named else None)
    assert not (tmp_path / "own.sqlite").exists()


@pytest.mark.parametrize(
    ("user", "mode", "groups", "may"),
    [
        (1000, 0o600, [], True),
        (0, 0o600, [], True),
        (1001, 0o644, [50], False),
        (1001, 0o664, [50], True),
        (1001, 0o664, [51], False),
        (1001, 0o666, [51], True),
        (1001, 0o666, [50], True),
        (1002, 0o664, None, False),
    ],
)
def test_who_may_write_to_a_file(user, mode, groups, may, monkeypatch):
    """Of user 1000 and group 50; None: of a user without a name."""

    def known(number: int):
        if groups is None:
            raise KeyError
        return SimpleNamespace(pw_name="name", pw_gid=number)

    monkeypatch.setattr("pwd.getpwuid", known)
    monkeypatch.setattr(os, "getgrouplist", lambda *_: groups)
    status = os.stat_result((mode, 1, 1, 1, 1000, 50, 0, 0, 0, 0))
    assert may_write(user, status) == may
    assert may_write(user, status, as_anybody=False) == (may and not mode & 0o002)
