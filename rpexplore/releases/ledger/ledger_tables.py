"""What is said to PostgreSQL of a ledger: its tables, who may do what with them, and transactions.

Three tables in a schema of their own. `events` and `last` are those of a ledger in a file,
`version` says of what form they are. Who may add entries may not change or remove any, and a
trigger refuses that to the owner as well, who would have to take it away first.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
import psycopg.conninfo
import sqlalchemy as sa

from rpexplore.data.engines.connections import Connection
from rpexplore.data.engines.postgres_servers import CONNECT_DEFAULTS
from rpexplore.errors import DataError
from rpexplore.releases.ledger.account import START

SCHEMA, VERSION = "rpexplore_ledger", 1
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

_GUARD = f"""
CREATE FUNCTION {SCHEMA}.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'entries of the ledger are never changed or removed'
    USING ERRCODE = 'insufficient_privilege';
END $$;
CREATE TRIGGER kept BEFORE UPDATE OR DELETE OR TRUNCATE ON {SCHEMA}.events
    FOR EACH STATEMENT EXECUTE FUNCTION {SCHEMA}.refuse();
CREATE TRIGGER kept BEFORE DELETE OR TRUNCATE ON {SCHEMA}.last
    FOR EACH STATEMENT EXECUTE FUNCTION {SCHEMA}.refuse();
"""
_GRANTS = (
    f"USAGE ON SCHEMA {SCHEMA}",
    f"SELECT ON {SCHEMA}.version",
    f"SELECT, INSERT ON {SCHEMA}.events",
    f"SELECT, UPDATE ON {SCHEMA}.last",
)
# For this transaction alone. No less than `on`, whatever is usual there: an entry is on disk, and
# on that of a synchronous standby, when the commit is answered.
_SETTINGS = sa.text("""
SELECT set_config('synchronous_commit', CASE current_setting('synchronous_commit')
        WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true),
    set_config('lock_timeout', :for_lock, true),
    set_config('statement_timeout', :for_statement, true),
    set_config('idle_in_transaction_session_timeout', :for_statement, true)
""")
# So that no function, operator or table of somebody else's is taken for one of the server.
_OWN_NAMES = "SET LOCAL search_path = pg_catalog, pg_temp"
_SERVER = sa.text("""
SELECT pg_is_in_recovery(), current_setting('fsync') = 'off',
    current_setting('server_encoding') <> 'UTF8'
""")
_MAY_ADD = sa.text(f"""
SELECT has_table_privilege('{SCHEMA}.events', 'INSERT')
    AND has_table_privilege('{SCHEMA}.last', 'UPDATE')
    AND current_setting('default_transaction_read_only') = 'off'
""")


_SCHEMA_NUMBER = sa.text(f"SELECT oid FROM pg_namespace WHERE nspname = '{SCHEMA}'")
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
    server.exec_driver_sql(_OWN_NAMES)
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
    server.execute(sa.text(f"LOCK TABLE {SCHEMA}.last IN EXCLUSIVE MODE"))


def _set(server: sa.Connection, seconds_for_lock: float) -> None:
    times = {"for_lock": round(1000 * seconds_for_lock), "for_statement": 1000 * _SECONDS}
    server.exec_driver_sql(_OWN_NAMES)
    server.execute(_SETTINGS, {name: f"{number}ms" for name, number in times.items()})


def problem_with_version(server: sa.Connection) -> str:
    """Why the tables cannot be read by this program, and what to do; "" if they can."""
    versions = list(server.scalars(sa.select(_VERSION.c.version)))
    if versions == [VERSION]:
        return ""
    if len(versions) != 1:
        return "the row with its version is missing; restore it from a copy"
    return (
        f"it has version {versions[0]}, and this program reads version {VERSION}; use the program "
        "that it was made with, or a newer one"
    )


def rows(server: sa.Connection) -> tuple[Sequence[Any], Sequence[Any]]:
    """The rows of all events in their order, and those of the last one."""
    events = server.execute(sa.select(_EVENTS).order_by(_EVENTS.c.id)).all()
    return events, server.execute(sa.select(_LAST)).all()


def append(server: sa.Connection, number: int, kind: str, text: str, digest: str) -> bool:
    """Write an event, and that it is the last one; whether the tables have both as written.

    A rule or a trigger may leave out or change what is written.
    """
    row = {"id": number, "kind": kind, "content": text, "digest": digest}
    written = server.execute(sa.insert(_EVENTS).values(row).returning(_EVENTS)).all()
    last = sa.update(_LAST).values(n_events=number, digest=digest).returning(_LAST)
    return (written, server.execute(last).all()) == (
        [(number, kind, text, digest)],
        [(number, digest)],
    )


def may_add(server: sa.Connection) -> bool:
    """Whether the role of the connection may add events."""
    return bool(server.scalar(_MAY_ADD))


def create(server: sa.Connection) -> bool:
    """Make the tables, and their schema if it is not there; False if it has tables already."""
    _set(server, 0)
    number = server.scalar(_SCHEMA_NUMBER)
    if number is None:
        server.execute(sa.schema.CreateSchema(SCHEMA))
    elif server.scalar(_N_RELATIONS, {"number": number}):
        return False
    _METADATA.create_all(server, checkfirst=False)
    server.exec_driver_sql(_GUARD)
    server.execute(sa.insert(_VERSION), {"version": VERSION})
    server.execute(sa.insert(_LAST), {"n_events": 0, "digest": START})
    return True


def grant(server: sa.Connection, role: str) -> bool:
    """Let a role add events; False if there is no such role."""
    if not server.scalar(_N_ROLES, {"role": role}):
        return False
    quoted = server.dialect.identifier_preparer.quote_identifier(role)
    for right in _GRANTS:
        server.exec_driver_sql(f"GRANT {right} TO {quoted}")
    return True
