"""Attacks on accounts: records led away from what was spent on them.

Whatever is done to files between two runs, without changing or copying them, one account is meant,
with its limit and its demands.
"""

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import rpexplore as rp
from rpexplore.common import files
from rpexplore.data.engines.connections import Connection
from rpexplore.data.engines.session import quoted
from rpexplore.data.engines.source import DatabaseSource
from rpexplore.data.files.source import FileSource
from rpexplore.errors import ApprovalError, DataError, LedgerError
from rpexplore.releases.approvals import check_approvals
from rpexplore.releases.ledger.ledger import FILENAME, Ledger
from rpexplore.releases.release import release
from tests.attacks.books import (
    DEMAND,
    PLAN,
    a_file_that_was_written_anew,
    moved,
    n_runs,
    renamed,
    unmounted,
    written_anew_then_its_folder,
)
from tests.cli.program import Program
from tests.data.engines.servers import in_duckdb, missing
from tests.support.ledgers import database_ledger
from tests.support.ssh_keys import public, requires_ssh_keygen, with_keys

# --- records


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


@pytest.mark.parametrize("way", [moved, moved_with_its_folder, its_folder])
def test_a_disk_that_has_another_number_by_now_is_the_same_disk(way, folder, tmp_path, monkeypatch):
    """Numbers go by the order in which disks are found; file systems have their own identity."""

    class Numbered:  # what the module that names files sees of the system
        number = 7

        def __getattr__(self, name: str) -> Any:
            return getattr(os, name)

        def fstat(self, descriptor: int) -> SimpleNamespace:
            told = os.fstat(descriptor)
            facts = {name: getattr(told, name) for name in dir(told) if name.startswith("st_")}
            return SimpleNamespace(**facts | {"st_dev": self.number})

        def fstatvfs(self, descriptor: int) -> SimpleNamespace:
            return SimpleNamespace(f_fsid=0xF76703A9)

    disks = Numbered()
    monkeypatch.setattr(files, "os", disks)
    data = folder / "one.csv"
    release(PLAN, data, tmp_path / "out", limit_rho="1/2")
    (tmp_path / "elsewhere").mkdir()
    data = way(data, tmp_path / "elsewhere")
    disks.number = 8
    with pytest.raises(
        LedgerError, match=r"left of its budget limit|has its account in the ledger"
    ):
        release(PLAN, data, tmp_path / "again")


def a_file_in_it(folder: Path) -> Path:
    return folder / "one.csv"


def a_file_that_is_new_in_it(folder: Path) -> Path:
    (folder / "new.csv").write_text("a\n0\n")
    return folder / "new.csv"


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


@pytest.mark.by_day(1)
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


def views_in_sqlite(name: str, folder: Path) -> list[DatabaseSource]:
    """A table of this name, and views of it and of these, by every way of SQLite to quote it."""
    pytest.importorskip("adbc_driver_sqlite")
    with closing(sqlite3.connect(folder / "survey.sqlite")) as database:
        database.execute(f"CREATE TABLE {quoted(name)} (a int)")
        written = [quoted(name), f"[{name}]"]
        written += [mark + name.replace(mark, 2 * mark) + mark for mark in "`'"]
        for number, reader in enumerate(written):
            database.execute(f"CREATE VIEW view{number} AS SELECT * FROM {reader.upper()}")
            database.execute(f'CREATE VIEW "Ärzte{number}" AS SELECT * FROM VIEW{number}')
    connection = Connection("FILE", f"sqlite://{folder}/survey.sqlite")
    views = [f"{view}{number}" for view in ("view", "Ärzte") for number in range(len(written))]
    return [DatabaseSource(connection, table) for table in (name, *views)]


def views_in_duckdb(name: str, folder: Path) -> list[DatabaseSource]:
    """A view of this name of a file, beside one of its name in another schema, and views of it."""
    (folder / "one.csv").write_text("a\n0\n")
    made = in_duckdb(pa.table({"a": [0]}), folder / "survey.duckdb")
    with duckdb.connect(made.connection.location) as database:
        database.execute("CREATE SCHEMA other")
        for schema, file in (("main", "one"), ("other", "two")):
            named = f"{schema}.{quoted(name)}"
            database.execute(f"CREATE VIEW {named} AS FROM '{folder}/{file}.csv'")
        database.execute(f"CREATE VIEW view AS FROM {quoted(name)}")
        database.execute('CREATE VIEW "Ärzte" AS FROM VIEW')
    return [DatabaseSource(made.connection, table) for table in (name, "view", "Ärzte")]


@pytest.mark.parametrize("name", ["Österreich", """a"b`c'd"""])
@pytest.mark.parametrize("made", [views_in_sqlite, views_in_duckdb])
def test_views_are_bound_as_what_they_read_whatever_it_is_called(made, name, folder):
    views = made(name, folder)
    ledger = Ledger.beside(views[0])
    ledger.set_limit(folder / "one.csv" if made is views_in_duckdb else views[0], Fraction(1, 4))
    assert {ledger.account(view).limit_record_rho for view in views} == {Fraction(1, 4)}


def test_a_virtual_table_of_sqlite_is_bound_as_the_table_that_it_names(tmp_path):
    pytest.importorskip("adbc_driver_sqlite")
    path = tmp_path / "survey.sqlite"
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE people (a text)")
        database.execute("CREATE VIRTUAL TABLE found USING fts5(a, content=People)")
        database.execute("CREATE VIEW all_found AS SELECT a FROM found")
    connection = Connection("FILE", f"sqlite://{path}")
    people, *others = (
        DatabaseSource(connection, table) for table in ("people", "found", "all_found")
    )
    ledger = Ledger.beside(people)
    ledger.set_limit(people, Fraction(1, 4))
    assert [ledger.account(one).limit_record_rho for one in others] == [Fraction(1, 4)] * 2
    assert "the virtual table found, which cannot be followed" in others[1].remarks()[-1]


@pytest.mark.by_day(1)
@pytest.mark.parametrize(
    ("whole", "added"),
    [
        ("PARTITION BY LIST (n)", "ALTER TABLE waves ATTACH PARTITION w{0} FOR VALUES IN ({0})"),
        ("", "ALTER TABLE w{0} INHERIT waves"),
    ],
)
def test_a_part_of_a_table_that_comes_later_is_bound_as_the_table(whole, added, postgres, tmp_path):
    """Two parts have accounts of their own until the whole is charged, or has a limit."""
    numbers = (25, 26, 27)
    postgres.run(
        "DROP TABLE IF EXISTS waves, w25, w26, w27 CASCADE",
        f"CREATE TABLE waves (a int, n int) {whole}",
        *(f"CREATE TABLE w{n} (a int, n int)" for n in numbers),
        *(f"CREATE VIEW v{n} AS SELECT a FROM w{n}" for n in numbers),
        *(added.format(n) for n in (25, 26)),
    )
    ledger = Ledger(tmp_path / "ledger.sqlite")

    def limit(table: str) -> Fraction | None:
        return ledger.account(DatabaseSource(postgres.connection, table)).limit_record_rho

    ledger.set_limit(DatabaseSource(postgres.connection, "w26"), Fraction(2))
    assert [limit(table) for table in ("v26", "w25", "v25")] == [2, None, None]
    ledger.set_limit(DatabaseSource(postgres.connection, "waves"), Fraction(1, 2))
    assert (limit("w25"), limit("w27")) == (Fraction(1, 2), None)
    postgres.run(added.format(27))
    assert limit("w27") == limit("v27") == Fraction(1, 2)


HIDDEN = {
    "public.hidden()": "SELECT hidden() AS a",
    "public.hidden(integer,integer)": "SELECT a FROM base WHERE a OPERATOR(public.<<<) 1",
    "public.hidden(bigint,integer)": "SELECT hiding(a) AS a FROM base",
    "query_to_xml(text,boolean,boolean,text)": "SELECT a FROM xmltable('//row' PASSING "
    "query_to_xml('SELECT a FROM public.base', false, false, '') COLUMNS a int PATH 'a')",
    "table_to_xml(regclass,boolean,boolean,text)": "SELECT a FROM xmltable('//row' PASSING "
    "table_to_xml('public.base', false, false, '') COLUMNS a int PATH 'a')",
    "ts_stat(text)": "SELECT ndoc AS a FROM ts_stat('SELECT to_tsvector(''a'') FROM public.base')",
    "public.crosstab(text)": "SELECT a FROM public.crosstab("
    "'SELECT 1, ''x'', a FROM public.base') AS wide(n int, a int)",
    "": "SELECT max(a) OVER () AS a, lpad(upper('x'), 3), now() FROM base WHERE a = ANY(ARRAY[1])",
}


def test_what_a_function_reads_is_said_to_be_apart(postgres):
    """In whatever way a view calls it, and whoever has made it; not of functions that read none."""
    if not postgres.run("SELECT 1 FROM pg_available_extensions WHERE name = 'tablefunc'"):
        missing("extension tablefunc", "on Debian: apt-get install postgresql")
    count = "LANGUAGE sql STABLE AS 'SELECT count(*) FROM public.base'"
    postgres.run(
        "DROP TABLE IF EXISTS base CASCADE",
        "DROP FUNCTION IF EXISTS hidden(), hidden(int, int), hidden(bigint, int) CASCADE",
        "CREATE TABLE base (a int)",
        "CREATE EXTENSION IF NOT EXISTS tablefunc",
        f"CREATE FUNCTION hidden() RETURNS bigint {count}",
        f"CREATE FUNCTION hidden(bigint, int) RETURNS bigint {count}",
        f"CREATE FUNCTION hidden(int, int) RETURNS boolean {count.replace('*)', '*) > 0')}",
        "CREATE OPERATOR <<< (LEFTARG = int, RIGHTARG = int, FUNCTION = hidden)",
        "CREATE AGGREGATE hiding(int) (SFUNC = hidden, STYPE = bigint, INITCOND = '0')",
        *(f"CREATE VIEW sly{n} AS {text}" for n, text in enumerate(HIDDEN.values())),
    )
    for n, function in enumerate(HIDDEN):
        remarks = " ".join(DatabaseSource(postgres.connection, f"sly{n}").remarks())
        assert (
            "cannot be followed: as far as that goes it has an account of its own" in remarks
        ) == bool(function)
        assert not function or f"reads the function {function}, which" in remarks


def test_what_a_view_reads_of_the_server_itself_is_said_to_be_apart(postgres):
    """Its statistics hold values of all tables, and its large objects may be anything."""
    views = {
        "pg_stats": "SELECT length(most_common_vals::text) AS a FROM pg_stats",
        "pg_largeobject": "SELECT length(data) AS a FROM pg_largeobject",
    }
    postgres.run(*(f"CREATE OR REPLACE VIEW of_{own} AS {text}" for own, text in views.items()))
    for own in views:
        (*_, remark) = DatabaseSource(postgres.connection, f"of_{own}").remarks()
        assert f"reads the server's own pg_catalog.{own}, which cannot be followed" in remark


def test_no_file_that_a_view_of_duckdb_reads_is_passed_over(tmp_path):
    """However many names are spelled beside it, and hidden ones among those with wildcards."""
    connection = in_duckdb(pa.table({"a": [0]}), tmp_path / "survey.duckdb").connection
    folder = tmp_path / "files"
    folder.mkdir()
    one, two = spelled = [folder / "one.csv", folder / "two.csv"]
    files = [*spelled, folder / ".hidden.csv"]
    for number, path in enumerate((*files, tmp_path / "other.csv")):
        path.write_text(f"a\n{number}\n")
    both, other = (
        f"FROM read_csv(['{one}', '{two}'])",
        f"FROM read_csv('{tmp_path}' || '/other.csv')",
    )
    views = {
        both: "",
        f"FROM read_csv('{folder}/*.csv')": "",
        f"{both} UNION ALL {other}": "READ_CSV",
        f"{other} WHERE '{two}' > 'a'": "READ_CSV",
        f"{both} UNION ALL SELECT a FROM duckdb_table_sample('records')": "DUCKDB_TABLE_SAMPLE",
    }
    with duckdb.connect(connection.location) as database:
        for number, text in enumerate(views):
            database.execute(f"CREATE VIEW view{number} AS {text}")
    sources = [DatabaseSource(connection, f"view{number}") for number in range(len(views))]
    for source, function in zip(sources, views.values(), strict=True):
        unseen = [remark for remark in source.remarks() if "cannot be followed" in remark]
        assert len(unseen) == bool(function)
        assert all(f"reads {function}, which" in remark for remark in unseen)
    for source, read in zip(sources, (spelled, files), strict=False):
        assert all({*FileSource(path).names(None)} & {*source.names(None)} for path in read)


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


def test_a_file_has_one_account_however_large_its_letters_are_typed(tmp_path, monkeypatch):
    """As on a disk on which People.csv and people.csv are one file: here three names of one."""
    listed, typed = tmp_path / "People.csv", tmp_path / "people.csv"

    def written_anew():
        for path in (listed, typed, tmp_path / "PEOPLE.CSV"):
            path.unlink(missing_ok=True)
        listed.write_text("a\n0\n1\n")
        for path in (typed, tmp_path / "PEOPLE.CSV"):
            os.link(listed, path)

    names = os.listdir
    others = {"people.csv", "PEOPLE.CSV"}
    monkeypatch.setattr(os, "listdir", lambda path: [n for n in names(path) if n not in others])
    written_anew()
    release(PLAN, listed, tmp_path / "out")
    written_anew()
    assert n_runs(typed) == 1
    assert n_runs(tmp_path / "PEOPLE.CSV") == 1
