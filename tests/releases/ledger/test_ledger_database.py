"""Ledgers in PostgreSQL: how they are named, who may do what, servers that fail, machines."""

import os
import time
from fractions import Fraction
from functools import partial
from pathlib import Path
from unittest.mock import Mock

import psycopg
import pytest
import sqlalchemy as sa

from rpexplore import Budget, Domain, SumOfVariances, Workload
from rpexplore.data.files.source import FileSource
from rpexplore.errors import LedgerError, ReleaseError
from rpexplore.planning.planner import plan_tables
from rpexplore.releases.ledger import ledger_database, ledger_tables, overlaps
from rpexplore.releases.ledger.account import Elsewhere
from rpexplore.releases.ledger.ledger import FILENAME, Ledger
from rpexplore.releases.ledger.ledger_database import LedgerDatabase
from rpexplore.releases.ledger.overlaps import ledger_of, remembered_ledgers
from rpexplore.releases.manifest import manifest_sha256
from rpexplore.releases.release import release, resume
from rpexplore.results.combination import ReleaseId, refuse_other_records
from tests.data.engines.servers import Server, running_postgres
from tests.support.ledgers import BOOKER, OWNER, database_ledger

PLAN = plan_tables(
    Workload.all_up_to(Domain.from_sizes({"a": 2}), 1),
    loss=SumOfVariances(),
    budget=Budget(rho="1/2"),
)


@pytest.fixture
def ledger(postgres, monkeypatch) -> Ledger:
    return database_ledger(postgres, monkeypatch)


@pytest.fixture
def data(tmp_path) -> Path:
    path = tmp_path / "survey" / "records.csv"
    path.parent.mkdir()
    path.write_text("a\n0\n1\n")
    return path


def states(ledger: Ledger, data: Path) -> list[str]:
    return [entry.state for entry in ledger.account(data).entries]


# --- names


@pytest.mark.parametrize("text", ["postgresql:LEDGER", " PostgreSQL:LEDGER", "postgres:LEDGER"])
def test_a_connection_is_told_from_a_file(text, ledger, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert Ledger(text) == ledger
    assert (ledger.name, ledger.path) == ("postgresql:LEDGER", None)
    assert Ledger(f"./{text.strip()}").path == tmp_path.resolve() / text.strip()
    assert Ledger("postgresql").path == tmp_path.resolve() / "postgresql"


def test_what_could_be_a_file_or_a_connection_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(LedgerError, match="can be a file, or a ledger in PostgreSQL"):
        Ledger(Path("postgresql:LEDGER"))
    Path("postgresql:LEDGER").touch()
    with pytest.raises(LedgerError, match="can be a file, or a ledger in PostgreSQL"):
        Ledger("postgresql:LEDGER")


@pytest.mark.parametrize("kind", [str, Path])
def test_an_address_is_refused_and_not_said_again(kind):
    with pytest.raises(LedgerError, match="must be given by the name of a connection") as caught:
        Ledger(kind("postgresql://keeper:s3cr3t@host/survey"))
    assert not [part for part in ("s3cr3t", "keeper", "host/") if part in str(caught.value)]


# --- who may do what


def test_who_books_changes_and_removes_nothing(ledger, data, postgres):
    ledger.book(data, PLAN, "out")
    statements = ["UPDATE {}events SET digest = ''", "UPDATE {}version SET version = 2"]
    for how in ("DELETE FROM", "TRUNCATE", "DROP TABLE"):
        statements += [f"{how} {{}}{table}" for table in ("events", "last", "version")]
    url = postgres.url.replace("keeper@", "booker@")
    with psycopg.connect(url, autocommit=True) as server:
        for statement in statements:
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                server.execute(statement.format("rpexplore_ledger.").encode())
    assert states(ledger, data) == ["started"]


RULES = {
    "left out": "CREATE RULE r AS ON INSERT TO rpexplore_ledger.events DO INSTEAD NOTHING",
    "not the last": "CREATE RULE r AS ON UPDATE TO rpexplore_ledger.last DO INSTEAD NOTHING",
    "changed": "CREATE TRIGGER r BEFORE INSERT ON rpexplore_ledger.events FOR EACH ROW "
    "EXECUTE FUNCTION rpexplore_ledger.emptied()",
}
EMPTIED = """
CREATE FUNCTION rpexplore_ledger.emptied() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN NEW.content := '{}'; RETURN NEW; END $$
"""


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_an_entry_that_the_server_does_not_take_as_it_is_is_not_booked(
    rule, ledger, data, postgres, monkeypatch
):
    """Even if it were not seen before."""
    ledger.book(data, PLAN, "out")
    postgres.run(EMPTIED, rule)
    monkeypatch.setattr(ledger_tables, "foreign_object", lambda _: "")
    monkeypatch.setattr(ledger_tables, "foreign_right", lambda _: "")
    with pytest.raises(LedgerError, match="has not kept what was entered"):
        ledger.book(data, PLAN, "out")
    assert states(ledger, data) == ["started"]


def test_nothing_of_others_is_taken_for_the_servers_own(ledger, data, postgres):
    postgres.run(
        "DROP SCHEMA IF EXISTS shadows CASCADE",
        "CREATE SCHEMA shadows",
        "GRANT USAGE ON SCHEMA shadows TO booker",
        "CREATE FUNCTION shadows.pg_is_in_recovery() RETURNS boolean LANGUAGE sql "
        "AS $$ SELECT true $$",
        "CREATE FUNCTION shadows.set_config(text, text, boolean) RETURNS text LANGUAGE sql "
        "AS $$ SELECT (1 / 0)::text $$",
        "ALTER ROLE booker SET search_path = shadows, pg_catalog",
    )
    try:
        ledger.book(data, PLAN, "out")
    finally:
        postgres.run("ALTER ROLE booker RESET search_path", "DROP SCHEMA shadows CASCADE")
    assert states(ledger, data) == ["started"]


def test_texts_are_utf8_whatever_the_address_or_the_system_says(ledger, data, monkeypatch):
    monkeypatch.setenv(BOOKER, f"{os.environ[BOOKER]}&client_encoding=LATIN1")
    data = data.rename(data.with_name("€.csv"))
    ledger.book(data, PLAN, "\udcff")  # a byte that is no UTF-8
    (entry,) = ledger.account(data).entries
    assert (entry.user, entry.output[-6:]) == ("booker", "\\udcff")


def test_the_owner_would_have_to_take_the_trigger_away_first(ledger, data, postgres):
    ledger.book(data, PLAN, "out")
    for statement in ("UPDATE {}events SET kind = ''", "DELETE FROM {}last", "TRUNCATE {}events"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="never changed or removed"):
            postgres.run(statement.format("rpexplore_ledger."))
    assert states(ledger, data) == ["started"]


def test_a_ledger_is_made_once_and_lets_roles_book_of_any_name(ledger, postgres, data):
    made = LedgerDatabase(OWNER)
    postgres.run('DROP ROLE IF EXISTS "a""b%c:d"', 'CREATE ROLE "a""b%c:d"')
    assert made.create(('a"b%c:d',), ('a"b%c:d',)) == "there"
    postgres.run(
        'SET ROLE "a""b%c:d"', "SELECT rpexplore_ledger.hold_off_others()", "RESET ROLE",
        'DROP OWNED BY "a""b%c:d"', 'DROP ROLE "a""b%c:d"',
    )  # fmt: skip
    for roles, problem in (((), "is there already"), (("nobody",), "has no role 'nobody'")):
        with pytest.raises(LedgerError, match=problem):
            made.create(roles)


# --- servers that cannot be used

_S = "rpexplore_ledger"
UNUSABLE = {
    "no ledger": ([f"DROP SCHEMA {_S} CASCADE"], "holds no ledger; have its owner make it"),
    "another program's schema": (
        [f"DROP SCHEMA {_S} CASCADE", f"CREATE SCHEMA {_S}", f"CREATE TABLE {_S}.version (a int)",
         f"GRANT USAGE ON SCHEMA {_S} TO booker", f"GRANT SELECT ON {_S}.version TO booker"],
        "that of another program",
    ),
    "a later version": ([f"UPDATE {_S}.version SET version = 8"], "version 8.*reads version 7"),
    "no version": ([f"DELETE FROM {_S}.version"], "the row with its version is missing"),
    "no rights": ([f"REVOKE USAGE ON SCHEMA {_S} FROM booker"], "may not do that.*--grant ROLE"),
    "nothing but reading": ([f"REVOKE EXECUTE ON FUNCTION {_S}.book FROM booker"], "may not do"),
    "a role that reads": (
        ["ALTER ROLE booker SET default_transaction_read_only = on"],
        "may not do that|only reads",
    ),
    "no place for another connection": (["ALTER ROLE booker CONNECTION LIMIT 0"], "no room"),
    "a role without a login": (["ALTER ROLE booker NOLOGIN"], "refuses the user"),
}  # fmt: skip


@pytest.mark.parametrize("how", UNUSABLE)
def test_a_server_that_cannot_be_used_is_one_sentence(how, ledger, data, postgres, tmp_path):
    statements, problem = UNUSABLE[how]
    postgres.run(*statements)
    try:
        for refused in (
            ledger.store.check_bookable,
            lambda: ledger.book(data, PLAN, "out"),
            lambda: release(PLAN, data, tmp_path / "out", ledger=ledger.name),
        ):
            with pytest.raises(
                LedgerError, match=rf"'postgresql:LEDGER' .*(?:{problem})"
            ) as caught:
                refused()
            assert "\n" not in str(caught.value)
            assert str(postgres.folder) not in str(caught.value)
        assert [path.name for path in tmp_path.iterdir()] == ["survey"]
    finally:
        postgres.run(
            "ALTER ROLE booker LOGIN CONNECTION LIMIT -1",
            "ALTER ROLE booker RESET default_transaction_read_only",
        )


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("postgresql://keeper:s3cr3t@127.0.0.1:1/survey", "no server answers"),
        ("postgresql://keeper:s3cr3t@no host/survey", "is not an address that PostgreSQL takes"),
        ("duckdb:///s3cr3t.duckdb", "is one of duckdb; name one of PostgreSQL"),
        ("s3cr3t", "must be an address like"),
        ("", "There is no connection 'LEDGER'"),
    ],
)
def test_a_connection_that_leads_nowhere_is_told_without_its_address(url, problem, monkeypatch):
    monkeypatch.setenv(BOOKER, url)
    with pytest.raises(LedgerError, match=problem) as caught:
        Ledger("postgresql:LEDGER").accounts()
    assert "s3cr3t" not in str(caught.value)


def test_a_server_that_may_lose_entries_is_refused(ledger, data, postgres):
    for value in ("off", "on"):
        postgres.run(f"ALTER SYSTEM SET fsync = {value}", "SELECT pg_reload_conf()")
        while postgres.run("SHOW fsync") != [(value,)]:
            time.sleep(0.02)
        if value == "off":
            with pytest.raises(LedgerError, match="may lose entries at a power failure"):
                ledger.book(data, PLAN, "out")
    assert states(ledger, data) == []


def test_a_lock_that_somebody_holds_is_waited_for_and_told(ledger, data, postgres, monkeypatch):
    monkeypatch.setattr(ledger_database, "SECONDS_FOR_LOCK", 0.2)
    with psycopg.connect(postgres.url) as server:
        server.execute("LOCK TABLE rpexplore_ledger.last IN EXCLUSIVE MODE")
        with pytest.raises(LedgerError, match="somebody else has been writing to it for 30 sec"):
            ledger.book(data, PLAN, "out")
        assert states(ledger, data) == []  # reading waits for nobody
    ledger.book(data, PLAN, "out")


@pytest.mark.nightly
def test_a_standby_is_refused(data, monkeypatch):
    with running_postgres() as server:
        ledger = database_ledger(server, monkeypatch)
        server.run("CHECKPOINT")
        server.stop()
        (server.folder / "data" / "standby.signal").touch()
        server.start()
        for refused in (ledger.accounts, partial(ledger.book, data, PLAN, "out")):
            with pytest.raises(LedgerError, match="is a standby, which may lag behind"):
                refused()


# --- what is on disk, and what a lost connection leaves


@pytest.mark.parametrize(("usual", "expected"), [("off", "on"), ("remote_apply", "remote_apply")])
def test_an_entry_is_on_disk_whatever_is_usual_there(usual, expected, ledger, postgres):
    postgres.run(f"ALTER ROLE booker SET synchronous_commit = {usual}")
    try:
        with ledger.store.transaction() as opened:
            assert opened._server.scalar(sa.text("SHOW synchronous_commit")) == expected
    finally:
        postgres.run("ALTER ROLE booker RESET synchronous_commit")


def test_entries_are_there_after_the_machine_has_failed(ledger, data, postgres):
    """The server answers other commits before they are on disk: see `running_postgres`."""
    numbers = [ledger.book(data, PLAN, f"out{n}") for n in range(3)]
    postgres.stop()
    with pytest.raises(LedgerError, match="no server answers"):
        ledger.account(data)
    postgres.start()
    assert [entry.id for entry in ledger.account(data).entries] == numbers


def lost(server: sa.Connection) -> None:
    """Cut a connection, as a network does: the server is told nothing."""
    pgconn = server.connection.driver_connection.pgconn
    pgconn.send_query(b"COMMIT")
    pgconn.flush()
    pgconn.finish()
    raise psycopg.OperationalError("the connection is lost")


def killed(server: sa.Connection, keeper: Server) -> None:
    (number,) = server.execute(sa.text("SELECT pg_backend_pid()")).one()
    keeper.run(f"SELECT pg_terminate_backend({number})")


@pytest.mark.by_day(1)
@pytest.mark.parametrize("when", ["before it is added", "before COMMIT", "after COMMIT"])
def test_a_server_process_that_is_killed(when, ledger, data, postgres, tmp_path, monkeypatch):
    append, commit, n_done = ledger_tables.append, sa.Connection.commit, []

    def appending(server, *row, **options):
        if when == "before it is added":
            n_done.append(1)
            killed(server, postgres)
        return append(server, *row, **options)

    def committing(server):
        if n_done:
            return commit(server)
        n_done.append(1)
        if when == "after COMMIT":
            commit(server)
            raise psycopg.OperationalError("the answer is lost")
        return (killed(server, postgres), commit(server))[1]

    with monkeypatch.context() as patch:
        patch.setattr(ledger_tables, "append", appending)
        patch.setattr(sa.Connection, "commit", committing)
        charged = "The run is charged" if when == "after COMMIT" else "Nothing was charged"
        # The note beside the records comes first, and is in a file.
        with pytest.raises(LedgerError, match=f"the connection was lost .*{charged}"):
            release(PLAN, data, tmp_path / "out", ledger=ledger.name)
    assert states(ledger, data) == ["started"] * (when == "after COMMIT")
    release(PLAN, data, tmp_path / "out", ledger=ledger.name)
    assert states(ledger, data) == ["finished"]


SLOW_COMMIT = """
CREATE FUNCTION rpexplore_ledger.slow() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN PERFORM pg_catalog.pg_sleep(1); RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON rpexplore_ledger.events
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION rpexplore_ledger.slow();
"""


def test_a_commit_that_goes_on_without_its_caller_is_waited_for(
    ledger, data, postgres, tmp_path, monkeypatch
):
    """Else it would be told that nothing was charged, and the run would be charged twice."""
    postgres.run(*SLOW_COMMIT.split(";\n\n"))
    monkeypatch.setattr(ledger_tables, "foreign_object", lambda _: "")
    monkeypatch.setattr(ledger_tables, "foreign_right", lambda _: "")
    with monkeypatch.context() as patch:
        commit, n_done = sa.Connection.commit, []
        patch.setattr(
            sa.Connection,
            "commit",
            lambda server: commit(server) if n_done else (n_done.append(1), lost(server)),
        )
        with pytest.raises(LedgerError, match=r"the connection was lost .* The run is charged"):
            release(PLAN, data, tmp_path / "out", ledger=ledger.name)
    postgres.run("DROP TRIGGER slow ON rpexplore_ledger.events")
    release(PLAN, data, tmp_path / "out", ledger=ledger.name)
    assert states(ledger, data) == ["finished"]


def test_the_run_of_another_machine_is_not_taken_for_ones_own(ledger, data, tmp_path, monkeypatch):
    """Containers have the same paths: one that is killed before it books has paid for nothing."""

    def killed_before(*_arguments, **_options):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "book", killed_before)
        with pytest.raises(KeyboardInterrupt):
            release(PLAN, data, tmp_path / "out", ledger=ledger.name)
    ledger.book(data, PLAN, tmp_path / "out")
    release(PLAN, data, tmp_path / "out", ledger=ledger.name)
    assert states(ledger, data) == ["started", "finished"]


def test_a_server_that_is_gone_leaves_open_whether_the_run_is_charged(
    ledger, data, tmp_path, monkeypatch
):
    with monkeypatch.context() as patch:
        commit = sa.Connection.commit

        def gone(server):
            commit(server)
            patch.setenv(BOOKER, "postgresql://127.0.0.1:1/none")
            raise psycopg.OperationalError

        patch.setattr(sa.Connection, "commit", gone)
        with pytest.raises(LedgerError, match="Whether the run is charged is not known"):
            release(PLAN, data, tmp_path / "out", ledger=ledger.name)
    release(PLAN, data, tmp_path / "out", ledger=ledger.name)
    assert states(ledger, data) == ["finished"]


# --- other ledgers, other machines


def test_a_run_is_noted_beside_the_records_and_binds_others(ledger, data, tmp_path):
    release(PLAN, data, tmp_path / "first", ledger=ledger.name)
    assert Ledger.beside(data).account(data).elsewhere == (Elsewhere(ledger.name, ledger.id),)
    with pytest.raises(LedgerError, match="has its account in the ledger 'postgresql:LEDGER'"):
        release(PLAN, data, tmp_path / "second", ledger=tmp_path / "other.sqlite")
    release(PLAN, data, tmp_path / "second")
    assert states(ledger, data) == ["finished"] * 2


def test_a_ledger_beside_the_records_binds_a_database(ledger, data, tmp_path):
    release(PLAN, data, tmp_path / "first")
    with pytest.raises(LedgerError, match=f"has its account in the ledger '.*{FILENAME}'"):
        release(PLAN, data, tmp_path / "second", ledger=ledger.name)
    assert states(ledger, data) == []


@pytest.mark.by_day(1)
@pytest.mark.parametrize("file_first", [False, True])
def test_a_file_in_a_folder_that_has_runs_is_not_charged_apart(file_first, ledger, data, tmp_path):
    first, second = (data, data.parent) if file_first else (data.parent, data)
    release(PLAN, first, tmp_path / "first", ledger=ledger.name)
    release(PLAN, second, tmp_path / "second", ledger=ledger.name)
    assert len(ledger.account(first).entries) == len(ledger.account(second).entries) == 2


def test_releases_are_told_apart_by_it(ledger, data, tmp_path):
    other = data.with_name("other.csv")
    other.write_text("a\n0\n")
    parts = []
    for number, records in enumerate((data, other)):
        done = release(PLAN, records, tmp_path / str(number), ledger=ledger.name)
        manifest = manifest_sha256(done.folder)
        parts.append(ReleaseId(PLAN.sha256, manifest, str(done.folder)))
    refuse_other_records(ledger.name, parts[:1] * 2)
    with pytest.raises(ReleaseError, match="are of different records"):
        refuse_other_records(ledger.name, parts)


def test_a_run_that_was_stopped_is_finished_by_the_note_of_its_ledger(ledger, data, tmp_path):
    def stop(doing: str, share: float) -> None:
        if doing == "Writing the release":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        release(PLAN, data, tmp_path / "out", ledger=ledger.name, on_progress=stop)
    assert states(ledger, data) == ["started"]
    resume(tmp_path / "out")
    assert states(ledger, data) == ["finished"]


def test_it_is_remembered_by_its_name_and_passed_over_when_it_is_gone(
    ledger, data, tmp_path, monkeypatch
):
    monkeypatch.setattr(overlaps, "_passed_over", {})
    ledger.set_limit(data, Fraction(3))
    assert [(one.name, one.ledger_id) for one in remembered_ledgers()] == [(ledger.name, ledger.id)]
    Ledger.beside(data).path.unlink()
    assert ledger_of(FileSource(data)) == ledger
    other = FileSource(data.with_name("other.csv"))
    other.path.write_text("a\n0\n")
    url, look = os.environ[BOOKER], Mock(wraps=overlaps._look)
    monkeypatch.setattr(overlaps, "_look", look)
    monkeypatch.setenv(BOOKER, "postgresql://127.0.0.1:1/none")
    assert ledger_of(other) == ledger_of(other) == Ledger.beside(data)
    assert look.call_count == 1  # not tried again for a minute
    monkeypatch.setenv(BOOKER, url)
    monkeypatch.setattr(overlaps, "_passed_over", {ledger: time.monotonic()})
    ledger.book(other.path, PLAN, "out")
    assert ledger_of(other) == ledger


def test_files_of_two_machines_are_two_datasets_unless_these_are_named_alike(
    ledger, data, monkeypatch
):
    identity = "rpexplore.common.files._identity"
    monkeypatch.setattr(identity, lambda: "one")
    ledger.book(data, PLAN, "out")
    assert ledger.account(data).dataset == f"{data} at one"
    monkeypatch.setattr(identity, lambda: "two")
    assert states(ledger, data) == []
    monkeypatch.setenv("RPEXPLORE_MACHINE", "cluster")
    assert states(ledger, data) == []
    monkeypatch.setattr(identity, lambda: "one")
    assert states(ledger, data) == ["started"]  # it is still the one that it was
    ledger.book(data, PLAN, "out")
    monkeypatch.setattr(identity, lambda: "two")
    assert states(ledger, data) == ["started"] * 2


def test_what_is_booked_while_somebody_looks_is_not_missed_in_what_they_see(
    ledger, data, monkeypatch
):
    """They see the state in which their look began; the end that is remembered is later."""
    ledger.book(data, PLAN, "out")
    look = ledger_tables.rows

    def look_and_book(server):
        monkeypatch.setattr(ledger_tables, "rows", look)
        seen = look(server)
        ledger.book(data, PLAN, "out")
        return seen

    monkeypatch.setattr(ledger_tables, "rows", look_and_book)
    assert states(ledger, data) == ["started"]
    assert states(ledger, data) == ["started"] * 2
