"""What is said to PostgreSQL of a ledger: its tables, who may do what with them, and transactions.

Three tables in a schema of their own. `events` and `last` are those of a ledger in a file,
`version` says of what form they are. Nobody but the owner writes to them directly: entries are
added by two functions of the owner's, `book` and `set_limits` (`ledger_functions`). A trigger
refuses changes to the owner as well, who would have to take it away first.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import Any

import psycopg
import psycopg.conninfo
import sqlalchemy as sa

from rpexplore.data.engines.connections import Connection
from rpexplore.data.engines.postgres_servers import CONNECT_DEFAULTS, OWN_NAMES
from rpexplore.errors import DataError
from rpexplore.releases.ledger.chain import START, Row
from rpexplore.releases.ledger.ledger_functions import BOOKED, FUNCTIONS, SCHEMA

VERSION = 7
READABLE = (1, 2, 3, 4, 5, 6, 7)
"""In version 1, whoever booked wrote to the tables directly; 2 took over no other ledger, 3 took
amounts of thousands of digits, 4 knew of no table that it was part of another one, 5 noted no
claim of the noise of runs, and 6 no pilot that was shown."""
_SECONDS = 60  # for a statement, and between two of them; then others may go on

_METADATA = sa.MetaData(schema=SCHEMA)
_EVENTS = sa.Table(
    "events",
    _METADATA,
    sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("kind", sa.Text, nullable=False),
    # Text, not jsonb, which keeps neither the order of keys nor every number.
    sa.Column("content", sa.Text, nullable=False),
    sa.Column("digest", sa.Text, nullable=False),
)
_LAST = sa.Table(
    "last",
    _METADATA,
    sa.Column("n_events", sa.BigInteger, nullable=False),
    sa.Column("digest", sa.Text, nullable=False),
)
_VERSION = sa.Table("version", _METADATA, sa.Column("version", sa.Integer, nullable=False))

_KEPT = (  # as the server writes it
    f"DELETE OR UPDATE OR TRUNCATE ON {SCHEMA}.events FOR EACH STATEMENT "
    f"EXECUTE FUNCTION {SCHEMA}.refuse()",
    f"DELETE OR TRUNCATE ON {SCHEMA}.last FOR EACH STATEMENT EXECUTE FUNCTION {SCHEMA}.refuse()",
)
_GUARD = f"""
CREATE FUNCTION {SCHEMA}.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'entries of the ledger are never changed or removed'
    USING ERRCODE = 'insufficient_privilege';
END $$;
CREATE TRIGGER kept BEFORE {_KEPT[0]};
CREATE TRIGGER kept BEFORE {_KEPT[1]};
"""
_TABLES = f"{SCHEMA}.events, {SCHEMA}.last, {SCHEMA}.version"
_OF_ENTRIES = "(text[], text[])"
_TO_READ = (f"USAGE ON SCHEMA {SCHEMA}", f"SELECT ON {_TABLES}")
_TO_ADD = (*_TO_READ, f"EXECUTE ON FUNCTION {SCHEMA}.hold_off_others()")
_TO_BOOK = (*_TO_ADD, f"EXECUTE ON FUNCTION {SCHEMA}.book{_OF_ENTRIES}")
_TO_LIMIT = (*_TO_ADD, f"EXECUTE ON FUNCTION {SCHEMA}.set_limits{_OF_ENTRIES}")
# Who writes directly to the tables of a ledger of version 1, and whether that is to book.
_WRITERS = sa.text(f"""
SELECT CASE WHEN grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(grantee)) END,
    bool_or(oid = '{SCHEMA}.events'::regclass AND privilege_type = 'INSERT')
FROM pg_class, aclexplode(relacl)
WHERE relnamespace = '{SCHEMA}'::regnamespace AND grantee <> relowner
GROUP BY grantee HAVING bool_or(privilege_type <> 'SELECT')
""")
# For this transaction alone. No less than `on`, whatever is usual there: an entry is on disk, and
# on that of a synchronous standby, when the commit is answered.
_SETTINGS = sa.text("""
SELECT set_config('synchronous_commit', CASE current_setting('synchronous_commit')
        WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true),
    set_config('lock_timeout', :for_lock, true),
    set_config('statement_timeout', :for_statement, true),
    set_config('idle_in_transaction_session_timeout', :for_statement, true)
""")
# What the server says its objects are is written, and what is said to it is read, in one way.
_OWN_WRITING = (
    "SET LOCAL quote_all_identifiers = off",
    "SET LOCAL standard_conforming_strings = on",
)
_SERVER = sa.text("""
SELECT pg_is_in_recovery(), current_setting('fsync') = 'off',
    current_setting('server_encoding') <> 'UTF8'
""")
_MAY = sa.text(f"""
SELECT session_user, has_function_privilege('{SCHEMA}.book{_OF_ENTRIES}', 'EXECUTE')
    AND has_function_privilege('{SCHEMA}.hold_off_others()', 'EXECUTE')
    AND current_setting('default_transaction_read_only') = 'off',
    has_function_privilege('{SCHEMA}.set_limits{_OF_ENTRIES}', 'EXECUTE')
    AND has_function_privilege('{SCHEMA}.hold_off_others()', 'EXECUTE'),
    has_function_privilege('{SCHEMA}.append(text[], text[], text[])', 'EXECUTE')
""")


_SCHEMA_OF = sa.text(f"""
SELECT oid, pg_get_userbyid(nspowner) = current_user FROM pg_namespace WHERE nspname = '{SCHEMA}'
""")
# What `create` makes: kind, name, and what it does.
_OBJECTS = (
    ("table", f"{SCHEMA}.events", "p id bigint!, kind text!, content text!, digest text!"),
    ("table", f"{SCHEMA}.last", "p n_events bigint!, digest text!"),
    ("table", f"{SCHEMA}.version", "p version integer!"),
    (
        "index",
        f"{SCHEMA}.events_pkey",
        f"CREATE UNIQUE INDEX events_pkey ON {SCHEMA}.events USING btree (id)",
    ),
    *(("trigger", "kept", f"BEFORE {does}") for does in _KEPT),
)
_FUNCTION = re.compile(
    rf"CREATE FUNCTION {SCHEMA}\.(\w+)\(([^)]*)\) RETURNS (.*?)\s+LANGUAGE (.*?) AS \$\$(.*?)\$\$;",
    re.DOTALL,
)
# Whatever is in the schema or at its tables, in the same form. Of a table that is whether it is
# logged, its columns (! may not be null, = has a default) and whether a policy can hide its rows.
_OBJECTS_THERE = sa.text(f"""
WITH schema AS (SELECT oid, nspowner AS owner FROM pg_namespace WHERE nspname = '{SCHEMA}'),
    relations AS (SELECT pg_class.* FROM pg_class JOIN schema ON relnamespace = schema.oid)
SELECT CASE relkind WHEN 'r' THEN 'table' WHEN 'i' THEN 'index' WHEN 'v' THEN 'view'
        WHEN 'S' THEN 'sequence' ELSE 'relation' END,
    relations.oid::regclass::text,
    CASE relkind WHEN 'i' THEN pg_get_indexdef(relations.oid) ELSE relpersistence::text || ' ' || (
        SELECT string_agg(attname || ' ' || format_type(atttypid, atttypmod)
            || CASE WHEN attnotnull THEN '!' ELSE '' END
            || CASE WHEN atthasdef THEN '=' ELSE '' END, ', ' ORDER BY attnum)
        FROM pg_attribute WHERE attrelid = relations.oid AND attnum > 0 AND NOT attisdropped) END
    || CASE WHEN relrowsecurity OR relforcerowsecurity THEN ' ROW SECURITY' ELSE '' END
    || CASE WHEN relowner <> owner THEN ' OWNER' ELSE '' END
FROM relations, schema WHERE relkind <> 't'
UNION ALL
SELECT 'trigger', tgname, regexp_replace(
    pg_get_triggerdef(pg_trigger.oid), '^CREATE (CONSTRAINT )?TRIGGER [^ ]+ ', '\\1')
    || CASE tgenabled WHEN 'O' THEN '' ELSE ' ENABLED ' || tgenabled::text END
FROM pg_trigger JOIN relations ON tgrelid = relations.oid WHERE NOT tgisinternal
UNION ALL
SELECT 'rule', rulename, '' FROM pg_rewrite JOIN relations ON ev_class = relations.oid
UNION ALL
SELECT 'policy', polname, '' FROM pg_policy JOIN relations ON polrelid = relations.oid
UNION ALL
SELECT 'constraint', conname, '' FROM pg_constraint JOIN relations ON conrelid = relations.oid
WHERE contype NOT IN ('n', 'p', 't')  -- for columns, the index and triggers, which are above
UNION ALL
SELECT 'table', inhrelid::regclass::text, 'inherits' FROM pg_inherits JOIN relations
    ON relations.oid IN (inhparent, inhrelid)
UNION ALL
SELECT 'function', proname, pg_get_function_arguments(pg_proc.oid)
    || ' RETURNS ' || pg_get_function_result(pg_proc.oid) || ' LANGUAGE ' || lanname
    || CASE provolatile WHEN 'i' THEN ' IMMUTABLE' WHEN 's' THEN ' STABLE' ELSE '' END
    || CASE WHEN proisstrict THEN ' STRICT' ELSE '' END
    || CASE WHEN prosecdef THEN ' SECURITY DEFINER' ELSE '' END
    || (SELECT coalesce(string_agg(' SET ' || replace(replace(setting, '"', ''), '=', ' = '), ''
        ORDER BY place), '') FROM unnest(proconfig) WITH ORDINALITY AS one (setting, place))
    || ' AS ' || prosrc || CASE WHEN proowner <> owner THEN ' OWNER' ELSE '' END
FROM pg_proc JOIN schema ON pronamespace = schema.oid JOIN pg_language ON prolang = pg_language.oid
UNION ALL
SELECT object.type, object.identity, ''
FROM schema JOIN pg_depend ON refclassid = 'pg_namespace'::regclass AND refobjid = schema.oid,
    pg_identify_object(classid, objid, objsubid) AS object
WHERE deptype = 'n' AND classid NOT IN ('pg_class'::regclass, 'pg_proc'::regclass)
""")
# Who may do what with them, other than to read the tables and to call the functions for that; who
# may pass the latter on; and who may be their owner. To a superuser no right has to be given, and
# who may only make somebody a member (as, since PostgreSQL 16, whoever made a role) is the server's
# administrator.
_GRANTS_THERE = sa.text(f"""
WITH schema AS (SELECT * FROM pg_namespace WHERE nspname = '{SCHEMA}'),
    relations AS (SELECT pg_class.* FROM pg_class JOIN schema ON relnamespace = schema.oid),
    granted AS (
        SELECT nspname::text AS whose, nspowner AS owner, one.*
        FROM schema, aclexplode(nspacl) AS one WHERE privilege_type <> 'USAGE'
        UNION ALL
        SELECT relations.oid::regclass::text, relowner, one.*
        FROM relations, aclexplode(relacl) AS one WHERE privilege_type <> 'SELECT'
        UNION ALL
        SELECT relations.oid::regclass::text, relowner, one.*
        FROM relations JOIN pg_attribute ON attrelid = relations.oid, aclexplode(attacl) AS one
        WHERE privilege_type <> 'SELECT'
        UNION ALL
        SELECT pg_proc.oid::regproc::text, proowner, one.*
        FROM pg_proc JOIN schema ON pronamespace = schema.oid,
            aclexplode(coalesce(proacl, acldefault('f', proowner))) AS one
        WHERE proname NOT IN ('book', 'set_limits', 'hold_off_others')
            OR grantee = 0 OR is_grantable)
SELECT privilege_type || ' on ' || whose || ' to '
    || CASE grantee WHEN 0 THEN 'PUBLIC' ELSE pg_get_userbyid(grantee)::text END
    || CASE WHEN is_grantable THEN ' WITH GRANT OPTION' ELSE '' END
FROM granted WHERE grantee <> owner
UNION ALL
SELECT pg_get_userbyid(nspowner) || ' to ' || rolname
FROM schema, pg_roles WHERE pg_roles.oid <> nspowner AND NOT rolsuper AND (
    pg_has_role(pg_roles.oid, nspowner, 'USAGE') OR pg_has_role(pg_roles.oid, nspowner,
        CASE WHEN current_setting('server_version_num')::int < 160000 THEN 'MEMBER' ELSE 'SET' END))
LIMIT 1
""")
_N_RELATIONS = sa.text("SELECT count(*) FROM pg_class WHERE relnamespace = :number")
_N_ROLES = sa.text("SELECT count(*) FROM pg_roles WHERE rolname = :role")


@contextmanager
def connected(connection: Connection) -> Iterator[sa.Connection]:
    """A connection to a server, closed at the end; raises errors of SQLAlchemy and Psycopg."""
    try:
        given = psycopg.conninfo.conninfo_to_dict(connection.url)
    except psycopg.Error:  # its text quotes the address
        raise DataError(
            f"The connection {connection.name!r} is not an address that PostgreSQL takes; write "
            "postgresql://user:password@host:5432/database, with special signs as %40 and so on."
        ) from None

    def connect() -> psycopg.Connection[Any]:
        # No prepared statements: a pooler may lead the next one to another process.
        options = {**CONNECT_DEFAULTS, **given, "client_encoding": "UTF8"}
        return psycopg.connect(**options, prepare_threshold=None)

    engine = sa.create_engine(
        "postgresql+psycopg://", creator=connect, poolclass=sa.NullPool, use_native_hstore=False
    )
    with engine.connect() as server:
        yield server


def problem_with_server(server: sa.Connection) -> str:
    """Why no ledger can be on a server, and what to do; "" if one can."""
    server.exec_driver_sql(OWN_NAMES)
    is_standby, loses, is_foreign = server.execute(_SERVER).one()
    server.rollback()
    if is_standby:
        return "the server is a standby, which may lag behind; name a connection to its primary"
    if loses:
        return (
            "the server may lose entries at a power failure (fsync is off); have it set to on, or "
            "name another server"
        )
    if is_foreign:
        return "its database does not hold texts as UTF8; use another database"
    return ""


def begin_reading(server: sa.Connection) -> None:
    """Begin a transaction that sees one state of the ledger, and holds off nobody."""
    server.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
    _set(server, 0)


def begin_writing(server: sa.Connection, seconds_for_lock: float) -> None:
    """Begin a transaction whose every statement sees all that is committed."""
    server.execution_options(isolation_level="READ COMMITTED")
    _set(server, seconds_for_lock)


def hold_off_others(server: sa.Connection) -> None:
    """Wait till nobody else is adding events, and let nobody till the end of the transaction."""
    server.execute(sa.text(f"SELECT {SCHEMA}.hold_off_others()"))


def _set(server: sa.Connection, seconds_for_lock: float) -> None:
    times = {"for_lock": round(1000 * seconds_for_lock), "for_statement": 1000 * _SECONDS}
    for setting in (OWN_NAMES, *_OWN_WRITING):
        server.exec_driver_sql(setting)
    server.execute(_SETTINGS, {name: f"{number}ms" for name, number in times.items()})


def problem_with_version(server: sa.Connection, *, to_write: bool = False) -> str:
    """Why the tables cannot be read, or written to, by this program, and what to do; "" if so."""
    versions = list(server.scalars(sa.select(_VERSION.c.version)))
    if len(versions) != 1:
        return "the row with its version is missing; restore it from a copy"
    if versions[0] not in READABLE:
        return (
            f"it has version {versions[0]}, and this program reads version {VERSION}; use the "
            "program that it was made with, or a newer one"
        )
    if to_write and versions[0] != VERSION:
        return (
            f"it has version {versions[0]}, which can be read, and to which nothing is added, "
            "because its server checks less; have its owner renew it: rpexplore ledger --create"
        )
    return ""


def rows(server: sa.Connection) -> tuple[Sequence[Any], Sequence[Any]]:
    """The rows of all events in their order, and those of the last one."""
    events = server.execute(sa.select(_EVENTS).order_by(_EVENTS.c.id)).all()
    return events, server.execute(sa.select(_LAST)).all()


def append(server: sa.Connection, added: Sequence[Row], *, merging: bool = False) -> None:
    """Have the server add events, in their order; merging: those of another ledger, as they are."""
    if merging:
        _, kinds, contents, _ = zip(*added, strict=True)
        call = f"SELECT {SCHEMA}.append(:kinds, :contents, NULL)"
        server.execute(sa.text(call), {"kinds": list(kinds), "contents": list(contents)})
        return
    for is_booked, group in groupby(added, key=lambda row: row[1] in BOOKED):
        call = f"SELECT {SCHEMA}.{'book' if is_booked else 'set_limits'}(:kinds, :contents)"
        _, kinds, contents, _ = zip(*group, strict=True)
        server.execute(sa.text(call), {"kinds": list(kinds), "contents": list(contents)})


def kept(server: sa.Connection, added: Sequence[Row]) -> list[Row]:
    """What the tables have where these events should be; nothing if `last` passes them over."""
    numbers = [number for number, *_ in added]
    reaches = sa.select(sa.func.max(_LAST.c.n_events)).scalar_subquery() >= numbers[-1]
    found = sa.select(_EVENTS).where(_EVENTS.c.id.in_(numbers), reaches).order_by(_EVENTS.c.id)
    return [tuple(row) for row in server.execute(found)]


def rights(server: sa.Connection) -> tuple[str, bool, bool, bool]:
    """The role that has logged in, and whether it may book, set limits, and merge ledgers."""
    role, may_book, may_limit, may_merge = server.execute(_MAY).one()
    return role, may_book, may_limit, may_merge


def foreign_object(server: sa.Connection) -> str:
    """Something in the ledger's schema, or at its tables, that `create` has not made; "" if none.

    Tables and functions, triggers and rules, with what they do and whose they are. Ledgers of
    version 1 had no functions but for the trigger's, and those of versions 2 and 3 others.
    """
    is_present = list(server.scalars(sa.select(_VERSION.c.version))) == [VERSION]
    own = set(_OBJECTS)
    for name, arguments, returned, how, text in _FUNCTION.findall(_GUARD + FUNCTIONS):
        does = f"{arguments} RETURNS {returned} LANGUAGE {how} AS {text}"
        own.add(("function", name, does))
    for kind, name, does in server.execute(_OBJECTS_THERE):
        if (kind, name, does) not in own and (is_present or kind != "function"):
            return f"{kind} {name!r}"
    return ""


def foreign_right(server: sa.Connection) -> str:
    """A right that `create` has not given, as GRANT and REVOKE have it; "" if none.

    To write to the tables, to add entries for everybody or with the right to pass that on, or to be
    the ledger's owner. Not of versions before the present one, whose rights were others.
    """
    is_present = list(server.scalars(sa.select(_VERSION.c.version))) == [VERSION]
    return (server.scalar(_GRANTS_THERE) if is_present else None) or ""


def create(server: sa.Connection) -> bool:
    """Make the tables, and their schema if it is not there; False if it has tables already.

    Raises `PermissionError` for a schema of somebody else's, who could exchange what is in it.
    """
    _set(server, 0)
    schema = server.execute(_SCHEMA_OF).one_or_none()
    if schema is None:
        server.execute(sa.schema.CreateSchema(SCHEMA))
    elif server.scalar(_N_RELATIONS, {"number": schema[0]}):
        return False
    elif not schema[1]:
        raise PermissionError
    _METADATA.create_all(server, checkfirst=False)
    server.exec_driver_sql(_GUARD)
    server.exec_driver_sql(FUNCTIONS)
    server.execute(sa.insert(_VERSION), {"version": VERSION})
    server.execute(sa.insert(_LAST), {"n_events": 0, "digest": START})
    return True


def renew(server: sa.Connection) -> bool:
    """Bring a ledger of an earlier version to the present one; whether it was of one.

    Whoever could add entries by writing to its tables can book from now on, and no more.
    """
    server.exec_driver_sql(f"LOCK TABLE {SCHEMA}.last IN ACCESS EXCLUSIVE MODE")
    if list(server.scalars(sa.select(_VERSION.c.version))) == [VERSION]:
        return False
    # Replaced, not dropped: who may call one may still.
    server.exec_driver_sql(FUNCTIONS.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION"))
    for role, books in server.execute(_WRITERS).all():
        server.exec_driver_sql(f"REVOKE ALL ON {_TABLES} FROM {role}")
        for right in _TO_BOOK if books else _TO_READ:
            server.exec_driver_sql(f"GRANT {right} TO {role}")
    server.execute(sa.update(_VERSION).values(version=VERSION))
    return True


def grant(server: sa.Connection, role: str, *, limits: bool = False) -> bool:
    """Let a role book, or set limits and demands; False if there is no such role."""
    if not server.scalar(_N_ROLES, {"role": role}):
        return False
    quoted = server.dialect.identifier_preparer.quote_identifier(role)
    for right in _TO_LIMIT if limits else _TO_BOOK:
        server.exec_driver_sql(f"GRANT {right} TO {quoted}")
    return True
