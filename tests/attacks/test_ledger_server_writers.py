"""Attacks on a ledger in PostgreSQL by those who may write to it: lifted limits, other names.

Those who book can do nothing else, whatever program they use: what is tried here is said to the
server directly, as their role.
"""

import json
import random
from fractions import Fraction
from pathlib import Path

import psycopg
import pytest

import rpexplore as rp
from rpexplore.data.files.source import FileSource
from rpexplore.data.source import names_with_parts
from rpexplore.errors import ApprovalError, LedgerError
from rpexplore.releases import charged_run
from rpexplore.releases.ledger import ledger as ledger_module
from rpexplore.releases.ledger import ledger_tables
from rpexplore.releases.ledger.ledger import Ledger
from rpexplore.releases.ledger.ledger_database import LedgerDatabase
from tests.attacks.books import DEMAND, THIRD, costing, run_of
from tests.data.engines.servers import Server
from tests.support.ledgers import OWNER, database_ledger, version_1

KEY = "AAAAC3NzaC1lZDI1NTE5AAAAI"  # the beginning of one


@pytest.fixture
def ledger(postgres, monkeypatch) -> Ledger:
    """One whose role may book, and nothing else."""
    return database_ledger(postgres, monkeypatch, sets_limits=False)


@pytest.fixture
def owned(ledger) -> Ledger:
    return Ledger(f"postgresql:{OWNER}")


def said_by(server: Server, role: str, *statements: str) -> None:
    """Statements of a role that uses another program."""
    url = server.url.replace("keeper@", f"{role}@")
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def call(kind: str, content: dict, function: str = "book") -> str:
    text = json.dumps(content).replace("'", "''")
    return f"SELECT rpexplore_ledger.{function}(ARRAY['{kind}'], ARRAY['{text}'])"


DIRECT = {
    "an entry": "INSERT INTO rpexplore_ledger.events VALUES (1, 'run', '{}', '')",
    "an edited entry": "UPDATE rpexplore_ledger.events SET content = '{}'",
    "a lost entry": "DELETE FROM rpexplore_ledger.events",
    "the last one": "UPDATE rpexplore_ledger.last SET n_events = 7",
    "its loss": "DELETE FROM rpexplore_ledger.last",
    "another version": "UPDATE rpexplore_ledger.version SET version = 1",
    "a lock": "BEGIN; LOCK TABLE rpexplore_ledger.events IN ROW EXCLUSIVE MODE",
    "what checks": "SELECT rpexplore_ledger.append(ARRAY['run'], ARRAY['{}'], ARRAY['run'])",
    "another check": "CREATE OR REPLACE FUNCTION rpexplore_ledger.is_sound(text, text) "
    "RETURNS boolean LANGUAGE sql AS 'SELECT true'",
}


def test_nothing_is_written_to_the_tables_directly(ledger, postgres):
    LedgerDatabase(OWNER).create(limiters=("booker",))  # to set limits is no right to write either
    for statement in DIRECT.values():
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            said_by(postgres, "booker", statement)
    assert ledger.accounts() == ()


LIFTED = {
    "limit": {"record_rho": None},
    "approvals": {"n": 0, "allowed_signers": ""},
    "elsewhere": {"ledger": "/nowhere.sqlite"},
}


def test_who_books_neither_lifts_limits_nor_sends_others_elsewhere(ledger, owned, data, postgres):
    owned.set_limit(data, Fraction(1, 3))
    names = [*owned.account(data).names]
    for kind, lifted in LIFTED.items():
        content = {"names": names, "noted": "", "user": "booker", **lifted}
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            said_by(postgres, "booker", call(kind, content, "set_limits"))
        with pytest.raises(psycopg.Error, match="no sound entry"):
            said_by(postgres, "booker", call(kind, content))
    with pytest.raises(LedgerError, match=r"may not set limits or demands.*--grant-limits ROLE"):
        ledger.set_limit(data, None)
    account = ledger.account(data)
    assert (account.limit_record_rho, account.elsewhere) == (Fraction(1, 3), ())


def test_who_sets_limits_books_nothing(ledger, data, postgres, monkeypatch):
    postgres.run("DROP ROLE IF EXISTS limiter", "CREATE ROLE limiter LOGIN")
    try:
        LedgerDatabase(OWNER).create(limiters=("limiter",))
        monkeypatch.setenv("LIMITER", postgres.url.replace("keeper@", "limiter@"))
        limiting = Ledger("postgresql:LIMITER")
        limiting.set_limit(data, Fraction(1))
        with pytest.raises(LedgerError, match=r"may not do that.*--grant ROLE"):
            limiting.book(data, THIRD, "out")
        content = run_of(ledger, data, user="limiter")
        for function in ("book", "set_limits"):
            with pytest.raises(psycopg.Error, match=r"permission denied|no sound entry"):
                said_by(postgres, "limiter", call("run", content, function))
        account = ledger.account(data)
        assert (account.limit_record_rho, account.entries) == (1, ())
    finally:
        postgres.run("DROP OWNED BY limiter", "DROP ROLE limiter")


def test_a_first_limit_that_the_role_may_not_set_is_refused_before_records_are_counted(
    ledger, data, tmp_path, monkeypatch
):
    monkeypatch.setattr(charged_run.ChargedRun, "count", lambda *_: pytest.fail("counted"))
    with pytest.raises(LedgerError, match="may not set limits or demands"):
        rp.release(THIRD, data, tmp_path / "out", ledger=ledger.name, limit_rho=1)


def test_an_entry_is_in_the_name_of_the_role_that_has_logged_in(ledger, data, postgres):
    with pytest.raises(psycopg.Error, match="no sound entry"):
        said_by(postgres, "booker", call("run", run_of(ledger, data, user="ledger_owner")))
    ledger.book(data, THIRD, "out")
    assert [entry.user for entry in ledger.account(data).entries] == ["booker"]


UNSOUND = {
    "nothing": {"names": []},
    "no text": {"names": [1]},
    "more": {"surplus": ""},
    "no amount": {"record_rho": "0"},
    "a negative amount": {"record_rho": "-1"},
    "an endless amount": {"record_rho": "1e-3"},
    "a divided amount": {"record_rho": "1/0"},
    "a long amount": {"record_rho": f"1/{'3' * 402}"},
    "a tiny amount": {"record_rho": f"1/1{'0' * 401}"},
    "a huge amount": {"record_rho": f"1{'0' * 101}"},
    "a claim that is no list": {"noise": "1"},
    "a claim of two numbers": {"noise": ["1", "1"]},
    "a claim that is below its ρ": {"noise": ["1/2", "0.1", "1.1"]},
    "a claim of texts": {"noise": ["1", "much", "1.1"]},
    "a claim without its factor": {"noise": ["1", "0.1", "1"]},
    "another type": {"data_bytes": 1.5},
    "a number as text": {"data_bytes": "1"},
    "too much": {"output": "x" * 8_000_001},
}


def test_nobody_makes_the_ledger_unreadable_for_others(ledger, data, postgres):
    sound = run_of(ledger, data)
    for unsound in UNSOUND.values():
        with pytest.raises(psycopg.Error, match="no sound entry"):
            said_by(postgres, "booker", call("run", {**sound, **unsound}))
    ledger.book(data, THIRD, "out")
    assert len(ledger.account(data).entries) == 1


def test_a_unit_that_states_no_totals_leaves_the_ledger_readable(ledger, data, postgres):
    """The server takes any text for the unit of a run; what no plan writes is the usual one."""
    sound = run_of(ledger, data)
    for n, totals in enumerate(["", "1", "x", "{}", "[[1]]", "[[]]", '"a"', "[" * 10_000]):
        unit = f"one record; neighbours keep the exact totals {totals}"
        said_by(postgres, "booker", call("run", {**sound, "unit": unit}))
        assert len(ledger.account(data).entries) == n + 1
    ledger.book(data, THIRD, "out")
    assert len(ledger.account(data).entries) == 9


def test_a_run_of_records_without_a_name_leaves_the_ledger_readable(ledger, data, postgres):
    ledger.book(data, THIRD, "out")
    names = ["", *run_of(ledger, data)["names"]]
    said_by(
        postgres,
        "booker",
        call("run", run_of(ledger, data, names=names)),
        call("finished", {"run": 2, "finished": "", "manifest_sha256": ""}),
    )
    assert [entry.state for entry in ledger.account(data).entries] == ["started", "finished"]


@pytest.mark.nightly
def test_sums_of_many_long_amounts_stay_short_on_the_server(ledger, owned, data, monkeypatch):
    """PostgreSQL holds no number of 131,073 digits, and later bookings would be refused."""
    monkeypatch.setattr(ledger_tables, "_SECONDS", 900)  # however busy the machine is
    owned.set_limit(data, Fraction(1))
    names = [*owned._names(FileSource(data))]
    with owned.store.transaction(merging=True) as events:
        for number in range(400):
            amount = f"1/{10**399 + number}"
            events.add("run", run_of(owned, data, names=names, record_rho=amount))
    ledger.book(data, costing("1/3"), "out")
    unchecked(monkeypatch)
    with pytest.raises(LedgerError, match="goes beyond a budget limit"):
        ledger.book(data, costing("2/3"), "out")


DEMANDS_OF_NOBODY = {
    "garbage": ("approvals", {"n": 1, "allowed_signers": "garbage"}),
    "no list": ("approvals", {"n": 1, "allowed_signers": ""}),
    "a short list": ("approvals", {"n": 7, "allowed_signers": DEMAND.allowed_signers}),
    "a long list": ("approvals", {"n": 1, "allowed_signers": "#" * 2_000_000}),
    "a bound": ("bound", {"n": 1, "allowed_signers": "garbage", "record_rho": None}),
}


@pytest.mark.by_day(2)
@pytest.mark.parametrize("how", DEMANDS_OF_NOBODY)
def test_a_demand_that_nobody_can_meet_leaves_the_ledger_readable(
    how, ledger, owned, data, postgres, tmp_path, no_noise
):
    """It binds, for its records alone, until another one is set for them."""
    kind, demand = DEMANDS_OF_NOBODY[how]
    content = {"names": [*owned._names(FileSource(data))], "noted": "", "user": "ledger_owner"}
    said_by(postgres, "ledger_owner", call(kind, {**content, **demand}, "set_limits"))
    with pytest.raises(ApprovalError, match="of a list that cannot be read or has not so many"):
        rp.release(THIRD, data, tmp_path / "out", ledger=ledger.name)
    other = tmp_path / "other" / "records.csv"
    other.parent.mkdir()
    other.write_text("a\n0\n")
    ledger.book(other, THIRD, "out")
    assert len(ledger.accounts()) == 2
    owned.set_limit(data, Fraction(1))  # which notes beside the records what is demanded
    (noted,) = Ledger.beside(data).account(data).elsewhere
    assert [one.n for one in noted.known.demands] == [demand["n"]]
    if kind == "approvals":
        owned.require_approvals(data, None)
        ledger.book(data, THIRD, "out")


def test_texts_that_other_readers_take_for_something_else_are_refused(ledger, data, postgres):
    text = json.dumps(run_of(ledger, data))
    for changed in (
        text.replace('"data_bytes": 1', '"data_bytes": 1e2'),  # a float for Python
        text.replace('"unit": ""', '"unit": "", "unit": "x"'),
        text.replace('"unit": ""', '"unit": "\\ud800"'),
        text[:-1],
        f"[{text}]",
    ):
        assert changed != text
        called = f"SELECT rpexplore_ledger.book(ARRAY['run'], ARRAY['{changed}'])"
        with pytest.raises(psycopg.Error):
            said_by(postgres, "booker", called)
    # More kinds than contents, and kinds in rows.
    for kinds in ("ARRAY['run', 'run']", "ARRAY[['run']]", "ARRAY[NULL]"):
        called = f"SELECT rpexplore_ledger.book({kinds}, ARRAY['{text}'])"
        if "[[" in kinds:
            said_by(postgres, "booker", called)  # as one row
        else:
            with pytest.raises(psycopg.Error):
                said_by(postgres, "booker", called)
    assert len(ledger.account(data).entries) == 1


def unchecked(monkeypatch) -> None:
    """A program that checks nothing itself."""
    for module in (charged_run, ledger_module):
        monkeypatch.setattr(module, "check_limit", lambda *_: None)
        monkeypatch.setattr(module, "check_approvals", lambda *_: None)


def test_the_server_keeps_a_limit_exactly(ledger, owned, data, tmp_path, monkeypatch):
    """3 · 1/3 fits into 1, and nothing is left then."""
    owned.set_limit(data, Fraction(1))
    unchecked(monkeypatch)
    for _ in range(3):
        ledger.book(data, costing("1/3"), "out")
    for refused in (
        lambda: ledger.book(data, costing(f"1/{10**300}"), "out"),
        lambda: rp.release(THIRD, data, tmp_path / "out", ledger=ledger.name),
    ):
        with pytest.raises(LedgerError, match=r"goes beyond a budget limit"):
            refused()
    assert ledger.account(data).spent_record_rho == 1


@pytest.mark.parametrize(("limit_of_other", "fits"), [(None, True), ("100", True), ("1/2", False)])
def test_of_records_that_come_together_each_limit_binds(
    limit_of_other, fits, ledger, owned, data, monkeypatch
):
    """2/3 is spent on the one, which has the limit 1, and 1/3 is left for both."""
    other = data.with_name("other.csv")
    other.write_text("a\n0\n")
    owned.set_limit(data, Fraction(1))
    if limit_of_other:
        owned.set_limit(other, Fraction(limit_of_other))
    unchecked(monkeypatch)
    ledger.book(data, costing("2/3"), "out")
    both = [name for path in (other, data) for name in ledger._names(FileSource(path))]
    monkeypatch.setattr(Ledger, "_names", lambda *_: tuple(both))
    if fits:
        ledger.book(other, costing("1/3"), "out")
    with pytest.raises(LedgerError, match="goes beyond a budget limit"):
        ledger.book(other, costing("1/3"), "out")


def test_a_limit_that_is_set_anew_replaces_the_one_before(ledger, owned, data, monkeypatch):
    unchecked(monkeypatch)
    owned.set_limit(data, Fraction(1, 4))
    with pytest.raises(LedgerError, match="goes beyond a budget limit"):
        ledger.book(data, costing("1/3"), "out")
    for limit in (Fraction(1, 3), None):
        owned.set_limit(data, limit)
        ledger.book(data, costing("1/3"), "out")
    assert len(ledger.account(data).entries) == 2


def approved_run(run: str, given: list[dict]) -> str:
    """Booked as the second entry."""
    approved = json.dumps({"run": 2, "n": 2, "approvals": given})
    kinds, contents = "ARRAY['run', 'approved']", f"ARRAY['{run}', '{approved}']"
    return f"SELECT rpexplore_ledger.book({kinds}, {contents})"


def test_the_server_demands_approvals(ledger, owned, data, postgres, monkeypatch):
    listed = "".join(f"{name} ssh-ed25519 {KEY}{name:A>7}\n" for name in ("alice", "bob"))
    demand = {"n": 2, "allowed_signers": listed}
    names = [*ledger._names(FileSource(data))]
    with owned.store.transaction() as opened:
        opened.add("approvals", {"names": names, "noted": "", "user": "", **demand})
    unchecked(monkeypatch)
    with pytest.raises(LedgerError, match="has fewer approvals than are demanded"):
        ledger.book(data, THIRD, "out")
    one = {"sha256": "", "name": "alice", "key": "1", "approved": ""}
    run = json.dumps(run_of(ledger, data))
    for other in ({}, one, {**one, "name": "bob"}, {**one, "name": "Alice", "key": "2"}):
        given = [one, other] if other else [one]
        with pytest.raises(psycopg.Error, match="not approved"):
            said_by(postgres, "booker", approved_run(run, given))
    said_by(postgres, "booker", approved_run(run, [one, {**one, "name": "bob", "key": "2"}]))
    # Who approved a run is not said later, and of another run nothing that was not written.
    later = {"run": 2, "n": 2, "approvals": [one]}
    with pytest.raises(psycopg.Error, match="no sound entry"):
        said_by(postgres, "booker", call("approved", later))
    ledger.note_pilot(2, "pilot")
    of_pilot = call("pilot", {"run": 2, "noted": "", "pilot_sha256": "other"})
    with pytest.raises(psycopg.Error, match="no sound entry"):
        said_by(postgres, "booker", of_pilot)
    ledger.finish(2, "digest", "pilot")
    for finished in ({"run": 2, "manifest_sha256": "other"}, {"run": 1, "manifest_sha256": ""}):
        with pytest.raises(psycopg.Error, match="no sound entry"):
            said_by(postgres, "booker", call("finished", {**finished, "finished": ""}))


def test_the_functions_of_the_ledger_look_into_nobody_elses_schema(
    ledger, owned, data, postgres, monkeypatch
):
    """They run with the rights of the owner, and a bare name could be taken over."""
    owned.set_limit(data, Fraction(1, 3))
    postgres.run(
        "DROP SCHEMA IF EXISTS shadows CASCADE",
        "CREATE SCHEMA shadows AUTHORIZATION booker",
        "GRANT USAGE ON SCHEMA shadows TO PUBLIC",  # else the owner would not see into it
    )
    content = run_of(ledger, data)
    try:
        with pytest.raises(psycopg.Error, match="beyond the limit"):
            said_by(
                postgres,
                "booker",
                "CREATE FUNCTION shadows.length(text) RETURNS int LANGUAGE sql AS 'SELECT 1/0'",
                "CREATE FUNCTION shadows.sha256(bytea) RETURNS bytea LANGUAGE sql AS 'SELECT $1'",
                "CREATE FUNCTION shadows.evil(numeric, numeric) RETURNS boolean LANGUAGE sql "
                "AS 'SELECT false'",
                "CREATE OPERATOR shadows.> (FUNCTION = shadows.evil, LEFTARG = numeric, "
                "RIGHTARG = numeric)",
                "CREATE TEMP TABLE events (id bigint, kind text, content text, digest text)",
                "CREATE TEMP TABLE last (n_events bigint, digest text)",
                "SET search_path = shadows, pg_temp, pg_catalog",
                call("run", {**content, "record_rho": "1/3"}),
                call("run", {**content, "record_rho": "1/3"}),
            )
    finally:
        postgres.run("DROP SCHEMA shadows CASCADE")
    assert ledger.account(data).spent_record_rho == Fraction(1, 3)


DEFERRED = """
CREATE FUNCTION rpexplore_ledger.emptied() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    SET LOCAL session_replication_role = replica;
    DELETE FROM rpexplore_ledger.events WHERE id = new.id;
    UPDATE rpexplore_ledger.last SET n_events = new.id - 1,
        digest = (SELECT digest FROM rpexplore_ledger.events WHERE id = new.id - 1);
    RETURN NULL;
END $$;
ALTER FUNCTION rpexplore_ledger.emptied() SECURITY DEFINER;
CREATE CONSTRAINT TRIGGER emptied AFTER INSERT ON rpexplore_ledger.events
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION rpexplore_ledger.emptied();
"""


def test_a_ledger_is_not_made_in_a_schema_of_somebody_elses(ledger, postgres):
    """Its owner could drop the functions, and put others in their place."""
    postgres.run(
        "SET client_min_messages = error",
        "DROP SCHEMA rpexplore_ledger CASCADE",
        "CREATE SCHEMA rpexplore_ledger AUTHORIZATION booker",
        "GRANT ALL ON SCHEMA rpexplore_ledger TO ledger_owner",
    )
    with pytest.raises(LedgerError, match="its schema rpexplore_ledger belongs to another role"):
        LedgerDatabase(OWNER).create(("booker",))


def test_nobody_finishes_the_run_of_another_role(ledger, data, postgres):
    run_id = ledger.book(data, THIRD, "out")
    postgres.run("DROP ROLE IF EXISTS other", "CREATE ROLE other LOGIN")
    try:
        LedgerDatabase(OWNER).create(("other",))
        content = {"run": run_id, "finished": "", "manifest_sha256": "false"}
        pilot = {"run": run_id, "noted": "", "pilot_sha256": "false"}
        for kind, one in (("finished", content), ("pilot", pilot)):
            with pytest.raises(psycopg.Error, match="no sound entry"):
                said_by(postgres, "other", call(kind, one))
    finally:
        postgres.run("DROP OWNED BY other", "DROP ROLE other")
    ledger.finish(run_id, "true")
    assert [entry.manifest_sha256 for entry in ledger.account(data).entries] == ["true"]


def test_a_booking_that_the_server_drops_at_commit_is_noticed_before_noise_is_drawn(
    ledger, owned, data, postgres, tmp_path, no_noise, monkeypatch
):
    """Even if the trigger itself were not seen."""
    owned.set_limit(data, Fraction(1))
    postgres.run(*DEFERRED.split(";\n\n"))
    monkeypatch.setattr(ledger_tables, "foreign_object", lambda _: "")
    monkeypatch.setattr(ledger_tables, "foreign_right", lambda _: "")
    with pytest.raises(LedgerError, match=r"has not kept what was entered.*Nothing was charged"):
        rp.release(THIRD, data, tmp_path / "out", ledger=ledger.name)


FOREIGN = {
    "trigger": DEFERRED,
    "rule": "CREATE RULE r AS ON INSERT TO rpexplore_ledger.events DO INSTEAD NOTHING",
    "policy": "CREATE POLICY p ON rpexplore_ledger.events USING (false)",
    "table": "CREATE TABLE rpexplore_ledger.more (a int)",
    "view": "CREATE VIEW rpexplore_ledger.more AS SELECT 1",
    "function": "CREATE OR REPLACE FUNCTION rpexplore_ledger.is_sound(of_kind text, content text) "
    "RETURNS boolean LANGUAGE sql AS 'SELECT true'",
}


CHANGED = [
    "ALTER FUNCTION {}book SET search_path = public, pg_catalog",
    "ALTER FUNCTION {}book RESET standard_conforming_strings",
    "ALTER FUNCTION {}set_limits SECURITY INVOKER",
    "ALTER FUNCTION {}spent SET search_path = public",
    "ALTER FUNCTION {}append OWNER TO booker",
    "ALTER FUNCTION {}is_sound STRICT",
    "ALTER TABLE {}last SET UNLOGGED",
    "ALTER TABLE {}version OWNER TO booker",
    "ALTER TABLE {}events ADD CHECK (kind <> 'closed')",
    "ALTER TABLE {}events DISABLE TRIGGER kept",
    "ALTER TABLE {}events ENABLE ROW LEVEL SECURITY",
    "ALTER TABLE {}events ADD more text DEFAULT ''",
    "CREATE OPERATOR {}<> (FUNCTION = textne, LEFTARG = text, RIGHTARG = text)",
    "CREATE DOMAIN {}text AS int",
    "CREATE TABLE public.heir () INHERITS ({}events)",
]


@pytest.mark.by_day(8)
@pytest.mark.parametrize("statement", CHANGED)
def test_what_its_owner_changes_in_a_ledger_is_noticed(statement, ledger, data, postgres):
    postgres.run(statement.format("rpexplore_ledger."))
    try:
        for refused in (ledger.accounts, lambda: ledger.book(data, THIRD, "out")):
            with pytest.raises(LedgerError, match=r"holds a .* this program has not made"):
                refused()
    finally:
        postgres.run("DROP TABLE IF EXISTS public.heir")


# By what it is given, and by what it is taken away again.
GIVEN = {
    f"{right} to {whom}": (
        f"GRANT {of or right.replace('rpexplore_ledger.', '{}')} TO {whom}",
        f"REVOKE {of or right.replace('rpexplore_ledger.', '{}')} FROM {whom}",
    )
    for right, of, whom in (
        ("INSERT on rpexplore_ledger.events", "", "booker"),
        ("UPDATE on rpexplore_ledger.last", "UPDATE (digest) ON {}last", "booker"),
        ("CREATE on rpexplore_ledger", "CREATE ON SCHEMA rpexplore_ledger", "booker"),
        *(
            (f"EXECUTE on rpexplore_ledger.{name}", f"EXECUTE ON FUNCTION {{}}{name}", "PUBLIC")
            for name in ("append", "book", "set_limits", "hold_off_others")
        ),
    )
}
GIVEN |= {
    "EXECUTE on rpexplore_ledger.book to booker WITH GRANT OPTION": (
        "GRANT EXECUTE ON FUNCTION {}book TO booker WITH GRANT OPTION",
        "REVOKE GRANT OPTION FOR EXECUTE ON FUNCTION {}book FROM booker",
    ),
    # Who is a member may write to the tables, and take the trigger away.
    "ledger_owner to eve": ("CREATE ROLE eve; GRANT ledger_owner TO eve", "DROP ROLE eve"),
    "ledger_owner to (eve|mid)": (
        "CREATE ROLE eve; CREATE ROLE mid; GRANT ledger_owner TO mid; GRANT mid TO eve",
        "DROP ROLE eve, mid",
    ),
    "ledger_owner to eve$": (
        "CREATE ROLE eve NOINHERIT; GRANT ledger_owner TO eve",
        "DROP ROLE eve",
    ),
}


def test_rights_that_nobody_but_its_owner_may_have_are_noticed(
    ledger, owned, data, postgres, tmp_path, no_noise
):
    owned.set_limit(data, Fraction(1))
    refusing = [
        ledger.accounts,
        lambda: ledger.book(data, THIRD, "out"),
        lambda: rp.release(THIRD, data, tmp_path / "out", ledger=ledger.name),
    ]
    for right, (given, taken) in GIVEN.items():
        postgres.run(*given.format("rpexplore_ledger.").split("; "))
        try:
            for refused in refusing:
                with pytest.raises(
                    LedgerError, match=rf"'{right.rstrip('$')}'; have its owner or .*REVOKE"
                ):
                    refused()
        finally:
            postgres.run(taken.format("rpexplore_ledger."))
        del refusing[1:]  # all three ask the same: once is enough
    ledger.book(data, THIRD, "out")
    assert len(ledger.account(data).entries) == 1


@pytest.mark.parametrize(
    "setting", ["quote_all_identifiers = on", "standard_conforming_strings = off"]
)
def test_how_a_role_has_texts_written_and_read_makes_no_difference(
    setting, ledger, owned, data, postgres
):
    postgres.run("SET client_min_messages = error", f"ALTER ROLE booker SET {setting}")
    try:
        owned.set_limit(data.parent, Fraction(1, 3))
        ledger.book(data, THIRD, "out")
        with pytest.raises(psycopg.Error, match="beyond the limit"):
            said_by(postgres, "booker", call("run", run_of(ledger, data)))
    finally:
        postgres.run(f"ALTER ROLE booker RESET {setting.split()[0]}")
    assert len(ledger.account(data).entries) == 1


def test_a_role_that_was_given_one_function_by_hand_is_refused_before_records_are_counted(
    ledger, owned, data, postgres, tmp_path, monkeypatch
):
    monkeypatch.setattr(charged_run.ChargedRun, "count", lambda *_: pytest.fail("counted"))
    postgres.run("REVOKE EXECUTE ON FUNCTION rpexplore_ledger.hold_off_others FROM booker")
    with pytest.raises(LedgerError, match=r"may not do that.*--grant ROLE"):
        rp.release(THIRD, data, tmp_path / "out", ledger=ledger.name)


@pytest.mark.by_day(3)
@pytest.mark.parametrize("kind", FOREIGN)
def test_a_server_with_what_this_program_does_not_make_there_is_no_ledger(
    kind, ledger, data, postgres, tmp_path, no_noise
):
    postgres.run(*FOREIGN[kind].split(";\n\n"))
    for refused in (
        ledger.accounts,
        lambda: ledger.book(data, THIRD, "out"),
        lambda: rp.release(THIRD, data, tmp_path / "out", ledger=ledger.name),
    ):
        with pytest.raises(LedgerError, match=rf"holds a .*{kind}.* this program has not made"):
            refused()


def test_the_server_binds_a_file_that_comes_later_into_a_folder_with_a_limit(
    ledger, owned, data, monkeypatch
):
    """And a folder by the limit of a file that has left it; a folder beside it is not bound."""
    owned.set_limit(data.parent, Fraction(1, 3))
    later, beside = data.with_name("later.csv"), data.parent.with_name("survey 2") / "one.csv"
    beside.parent.mkdir()
    for path in (later, beside):
        path.write_text("a\n0\n")
    unchecked(monkeypatch)
    ledger.book(later, costing("1/3"), "out")
    ledger.book(beside, costing("1"), "out")
    with pytest.raises(LedgerError, match="goes beyond a budget limit"):
        ledger.book(later, costing(f"1/{10**9}"), "out")
    owned.set_limit(beside, Fraction(2))
    beside.unlink()
    (beside.parent / "two.csv").write_text("a\n1\n")
    with pytest.raises(LedgerError, match="goes beyond a budget limit"):
        ledger.book(beside.parent, costing("3/2"), "out")
    latest = data.parent.rename(data.parent.with_name("renamed")) / "latest.csv"
    latest.write_text("a\n0\n")
    with pytest.raises(LedgerError, match="goes beyond a budget limit"):
        ledger.book(latest, costing(f"1/{10**9}"), "out")


@pytest.mark.parametrize("n_events", [30, pytest.param(240, marks=pytest.mark.nightly)])
def test_accounts_are_the_same_on_the_server_as_in_the_program(n_events, ledger, owned, postgres):
    """What is spent and what is in force, of any events, some of which are about the same files."""
    chance = random.Random(7)
    places = ["", "/b", "/b/c.csv", " b/c.csv", "/b at M/c.csv", "/d/c.csv"]
    with owned.store.transaction(merging=True) as events:
        for number in range(n_events):
            group = number // 15
            names = [f"/{group}{place} at {one}" for place in places for one in ("M", "N.1")]
            names += [f"file:M:{group}:{one}" for one in range(6)]
            names += [f"file:M:{group}:{one} in file:M:{group}:{one + 3}" for one in range(4)]
            tables = [f"postgresql:1/{group}/{one}" for one in range(3)]
            names += [*tables, *(f"{one} in {tables[-1]}" for one in tables), f"{tables[0]} in s.t"]
            names += [f"grpc://{group}", f"grpc://{group}/a", f"x at {group}"]
            own = chance.sample(names, chance.choice([1, 1, 1, 2]))
            held = names_with_parts(own, chance.sample(names, chance.choice([0, 0, 0, 1])))
            about = {"names": [*held], "noted": "", "user": "x"}
            amount = chance.choice([None, f"1/{number + 1}"])
            bound = {**about, "record_rho": amount}
            of_kinds = {
                "run": run_of(owned, Path("/x"), names=[*held], record_rho=f"1/{number + 7}"),
                "limit": bound,
                "bound": {**bound, "n": 0, "allowed_signers": ""},
                "forgotten": {**bound, "ledger": "l", "ledger_id": ""},
            }
            kind = chance.choice([*of_kinds])
            events.add(kind, of_kinds[kind])
    accounts = owned.accounts()
    assert len(accounts) > n_events / 12
    url = postgres.url.replace("keeper@", "ledger_owner@")
    with psycopg.connect(url, autocommit=True) as connection:
        for account in accounts:
            row = connection.execute(
                "SELECT rpexplore_ledger.spent(known), ARRAY(SELECT term ->> 'record_rho' "
                "FROM rpexplore_ledger.in_force('limit', known) AS term "
                "WHERE term ->> 'record_rho' IS NOT NULL) "
                "FROM rpexplore_ledger.connected(%s) AS known",
                [[account.dataset]],
            ).fetchone()
            assert row is not None
            (above, below), limits = row
            assert Fraction(int(above), int(below)) == account.spent_record_rho
            assert sorted(map(Fraction, limits)) == sorted(limit for _, limit in account.limits)


def test_a_ledger_of_version_1_is_read_and_renewed_by_its_owner(ledger, data, postgres, tmp_path):
    """There, whoever booked could write to the tables."""
    made = LedgerDatabase(OWNER)
    ledger.book(data, THIRD, "out")
    version_1(postgres)
    assert len(ledger.account(data).entries) == 1
    for refused in (
        lambda: ledger.book(data, THIRD, "out"),
        lambda: rp.release(THIRD, data, tmp_path / "out", ledger=ledger.name),
    ):
        with pytest.raises(LedgerError, match=r"has version 1.*have its owner renew it"):
            refused()
    assert made.create() == "renewed"
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        said_by(postgres, "booker", DIRECT["an entry"])
    ledger.book(data, THIRD, "out")
    assert len(ledger.account(data).entries) == 2
    with pytest.raises(LedgerError, match="is there already"):
        made.create()


@pytest.mark.parametrize("version", [2, 6])
def test_a_ledger_of_an_earlier_version_is_renewed_and_its_roles_keep_their_rights(
    version, ledger, data, postgres
):
    """There other functions were in place of the present ones; in version 2 the server saw no
    paths."""
    ledger.book(data, THIRD, "out")
    postgres.run(
        "SET client_min_messages = error",
        "CREATE OR REPLACE FUNCTION rpexplore_ledger.connected(given text[]) RETURNS text[] "
        "LANGUAGE sql AS 'SELECT given'",
        "DROP FUNCTION rpexplore_ledger.places_of, rpexplore_ledger.around",
        "ALTER FUNCTION rpexplore_ledger.book RESET standard_conforming_strings",
        f"UPDATE rpexplore_ledger.version SET version = {version}",
    )
    assert len(ledger.account(data).entries) == 1
    with pytest.raises(LedgerError, match=rf"has version {version}.*have its owner renew it"):
        ledger.book(data, THIRD, "out")
    assert LedgerDatabase(OWNER).create() == "renewed"
    ledger.book(data, THIRD, "out")
    assert len(ledger.account(data).entries) == 2
