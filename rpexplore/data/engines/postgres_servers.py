"""PostgreSQL servers: which one is reached, what a name means there, and connections to one.

Whatever driver asks, the answers are the same, so that records have one account.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from rpexplore.data.engines.connections import Connection
from rpexplore.data.engines.session import Provenance, parts_of, quoted
from rpexplore.data.source import LIES_IN, UNCLEAR, PersonRule
from rpexplore.errors import DataError

# So that no function, operator or table of somebody else's is taken for one of the server: whoever
# may make functions in a schema of the path would read every value that a statement hands them.
OWN_NAMES = "SET LOCAL search_path = pg_catalog, pg_temp"
"""For a transaction; tables have to be named with their schemas then."""
TEXTS = """
SELECT coalesce(json_agg(attname), '[]')::text FROM pg_attribute
JOIN pg_type ON pg_type.oid = atttypid JOIN pg_class ON pg_class.oid = attrelid
JOIN pg_namespace ON pg_namespace.oid = relnamespace
WHERE nspname = $1::text AND relname = $2::text AND attnum > 0 AND NOT attisdropped
    AND (typtype = 'e' OR typname IN ('citext', 'bpchar', 'money'))
"""
"""The names of columns of enumerations, of texts without upper and lower case (citext), of those
that are filled up with blanks (char(n)), and of money, which comes in cents: read as texts."""
NONDETERMINISTIC_TEXTS = """
SELECT coalesce(json_agg(attname), '[]')::text FROM pg_attribute
JOIN pg_class ON pg_class.oid = attrelid JOIN pg_namespace ON pg_namespace.oid = relnamespace
JOIN pg_collation ON pg_collation.oid = attcollation
WHERE nspname = $1::text AND relname = $2::text AND attnum > 0 AND NOT attisdropped
    AND to_jsonb(pg_collation) @> '{"collisdeterministic": false}'
"""
"""The names of columns whose collation (of ICU, from PostgreSQL 12 on) may take two texts for one.
The server matches no patterns in these."""
# A policy would leave rows out without a word; where one applies the server then refuses.
_ALL_ROWS = "SET LOCAL row_security = off"

STARTUP_OPTIONS = "-c search_path=pg_catalog,pg_temp -c row_security=off"
"""The same from the start of a connection, for drivers that ask the server before one can."""


# ---- Which server is reached, and what a table or view comes from, by the server's own numbers.
#
# A server has many addresses, and a table has a new name when it, or its schema or its database,
# is renamed or it is moved to another schema. The numbers stay.


Ask = Callable[..., str]
"""Gives the one value of a statement and its parameters ($1 and so on); raises the driver's errors.
"""

_ADDRESS = """
SELECT 'postgresql:' || system_identifier || '/' || current_database() FROM pg_control_system()
"""
_IS_THERE = "SELECT CASE WHEN to_regclass($1::text) IS NULL THEN 'no' ELSE 'yes' END"
# A table, and all that it reads: tables and views of a view, partitions and heirs of a table. Of
# what a materialised view reads, only its own state counts: it is read as it was when it was made.
# Tables around these, whose partitions or heirs they are, are not read.
# Functions may read anything, and the text of a query from a table: all are meant that views call,
# by an operator and in an aggregate as well, which a view does not say that it depends on. Left out
# are those of the server (numbers below 16384) but for `_READERS`, and those in C that say of
# themselves that they read no table (immutable).
_READERS = (
    "^(?:query|cursor|table|schema|database)_to_xml|^ts_stat|^tsquery_rewrite_query"
    "|^be_lo(?:_get|read)|^pg_read_|^pg_logical_slot_"
)
"""The server's functions that read a query, a table, a file or a large object, by the names that
they have in C: an administrator may give them others in SQL."""
_CATALOGUE = f"""
WITH RECURSIVE relations(id, is_read) AS (
    SELECT $1::text::regclass::oid, true
  UNION
    SELECT below.id, relations.is_read AND pg_class.relkind <> 'm'
    FROM relations JOIN pg_class ON pg_class.oid = relations.id CROSS JOIN LATERAL (
        SELECT refobjid FROM pg_rewrite JOIN pg_depend
        ON pg_depend.classid = 'pg_rewrite'::regclass AND pg_depend.objid = pg_rewrite.oid
        WHERE ev_class = relations.id AND ev_type = '1' AND refclassid = 'pg_class'::regclass
      UNION ALL
        SELECT inhrelid FROM pg_inherits WHERE inhparent = relations.id
    ) AS below(id)
), found AS (
    SELECT id, nspname || '.' || relname AS name, relkind::text AS kind,
        CASE WHEN bool_or(is_read) THEN concat_ws(' ',
            id, pg_relation_filenode(id), pg_relation_size(id), pg_stat_get_tuples_inserted(id),
            pg_stat_get_tuples_updated(id), pg_stat_get_tuples_deleted(id),
            CASE WHEN relkind IN ('v', 'm') THEN md5(pg_get_viewdef(id)) END) END AS state
    FROM relations JOIN pg_class ON pg_class.oid = id
    JOIN pg_namespace ON pg_namespace.oid = relnamespace
    WHERE relkind IN ('r', 'p', 'v', 'm', 'f')
    GROUP BY id, nspname, relname, relkind
), around(inner_id, outer_id) AS (
    SELECT inhrelid, inhparent FROM pg_inherits WHERE inhrelid IN (SELECT id FROM found)
  UNION
    SELECT inner_id, inhparent FROM around JOIN pg_inherits ON inhrelid = outer_id
), called(id) AS (
    SELECT written[1]::oid
    FROM pg_rewrite, regexp_matches(
        ev_action::text, ':(?:funcid|opfuncid|aggfnoid|winfnoid) ([0-9]+)', 'g') AS written
    WHERE ev_class IN (SELECT id FROM found)
  UNION
    SELECT step FROM called JOIN pg_aggregate ON aggfnoid = called.id
    CROSS JOIN LATERAL unnest(ARRAY[
        aggtransfn, aggfinalfn, aggcombinefn, aggmtransfn, aggminvtransfn, aggmfinalfn
    ]::oid[]) AS step
), functions AS (
    SELECT pg_proc.oid::regprocedure::text AS name
    FROM pg_proc JOIN pg_language ON prolang = pg_language.oid
    WHERE pg_proc.oid IN (SELECT id FROM called) AND CASE
        WHEN lanname = 'internal' OR pg_proc.oid < 16384 THEN prosrc ~ '{_READERS}'
        WHEN lanname = 'c' THEN provolatile <> 'i'
        ELSE true END
), own AS (
    SELECT DISTINCT nspname || '.' || relname AS name
    FROM pg_rewrite CROSS JOIN LATERAL regexp_matches(
        ev_action::text, ':relid ([0-9]+)', 'g') AS read(written)
    JOIN pg_class ON pg_class.oid = written[1]::oid
    JOIN pg_namespace ON pg_namespace.oid = relnamespace
    WHERE ev_class IN (SELECT id FROM found WHERE id >= 16384) AND pg_class.oid < 16384
)
SELECT json_build_object(
    'database', (SELECT oid::text FROM pg_database WHERE datname = current_database()),
    'relations', (
        SELECT json_agg(json_build_array(id::text, name, kind, state)
            ORDER BY id <> $1::text::regclass, name)
        FROM found),
    'around', (
        SELECT coalesce(
            json_agg(json_build_array(inner_id::text, outer_id::text)
                ORDER BY inner_id, outer_id), '[]')
        FROM around WHERE outer_id NOT IN (SELECT id FROM found)),
    'functions', (SELECT coalesce(json_agg(name ORDER BY name), '[]') FROM functions),
    'own', (SELECT coalesce(json_agg(name ORDER BY name), '[]') FROM own))::text
"""


@dataclass(frozen=True)
class Catalogue:
    """What a server's catalogue says of a table or view and of all that it reads.

    relations  of each, the named one first: number, schema.name, kind (as in pg_class), and what
               changes with its records, or None if it is not read as it is now
    functions  that views call, and that may read anything
    own        tables and views of the server itself that views read, such as pg_stats, which has
               values of all tables
    """

    database: str
    relations: list[tuple[str, str, str, str | None]]
    around: list[tuple[str, str]]
    functions: list[str]
    own: list[str]

    def provenance(self, address: str) -> Provenance:
        """The origin of the table in a database of this address."""
        prefix = f"{address.partition('/')[0]}/{self.database}/"
        foreign = [name for _, name, kind, _ in self.relations if kind == "f"]
        return Provenance(
            address,
            tuple(name for _, name, _, _ in self.relations),
            ids=(
                *(f"{prefix}{number}" for number, *_ in self.relations),
                *(f"{prefix}{inner}{LIES_IN}{prefix}{outer}" for inner, outer in self.around),
            ),
            unseen=(
                *(f"the foreign table {name}" for name in foreign),
                *(f"the function {name}" for name in self.functions),
                *(f"the server's own {name}" for name in self.own),
            ),
            state=tuple(state for *_, state in self.relations if state is not None),
        )


def located(ask: Ask, name: str, schemas: Sequence[str]) -> tuple[str, str]:
    """Schema and table of a name; without a schema, in the first of these that has such a table."""
    schema, table = parts_of(name)
    if schema:
        return schema, table
    for candidate in schemas:
        if ask(_IS_THERE, f"{quoted(candidate)}.{quoted(table)}") == "yes":
            return candidate, table
    return next(iter(schemas), ""), table  # where it is missed


def refuse_equal_ids(ask: Ask, schema: str, table: str, rule: PersonRule) -> None:
    """Raise `DataError` for two ids that the collation of their column takes for one.

    Of all records, also where some are in no universe.
    """
    if rule.column not in json.loads(ask(NONDETERMINISTIC_TEXTS, schema, table)):
        return
    column, records = quoted(rule.column), ".".join(quoted(p) for p in (schema, table) if p)
    forms = f"count(DISTINCT convert_to({column}::text, 'UTF8'))"
    found = f"SELECT FROM {records} GROUP BY {column} HAVING {forms} > 1"
    if ask(f"SELECT CASE WHEN EXISTS ({found}) THEN 'yes' ELSE 'no' END") == "yes":
        raise rule.error(UNCLEAR)


def catalogue_of(ask: Ask, schema: str, table: str) -> Catalogue:
    """What the server knows of a table; raises the driver's error if it is not there."""
    content = json.loads(
        ask(_CATALOGUE, ".".join(quoted(part) for part in (schema, table) if part))
    )
    relations = [
        (number, relation, kind, state) for number, relation, kind, state in content["relations"]
    ]
    around = [(inner, outer) for inner, outer in content["around"]]
    return Catalogue(content["database"], relations, around, content["functions"], content["own"])


def address_of(ask: Ask, connection: Connection) -> str:
    """Server and database: the server by its number, because it has many addresses.

    Raises `DataError` if the server does not tell, and other errors of the driver.
    """
    try:
        return ask(_ADDRESS)
    except Exception as error:
        state = getattr(error, "sqlstate", None)
        if state == "42501":  # insufficient_privilege
            raise DataError(
                f"The connection {connection.name!r} may not ask which server it reaches, without "
                "which a table would have an account for each of its addresses; ask for: GRANT "
                "EXECUTE ON FUNCTION pg_control_system() TO role, with the connection's user as "
                "role."
            ) from None
        if state == "42883":  # undefined_function
            raise DataError(
                f"The connection {connection.name!r} reaches a server that has no "
                "pg_control_system(), without which a table would have an account for each of its "
                "addresses; use PostgreSQL 10 or later, or count an export of the records."
            ) from None
        raise


# ---- Connections to one server: set up alike, and some that see what another one sees.
#
# The server works on a statement in one process, so that what is divided among connections is done
# sooner. Those beside the first one read its snapshot of the records; where there can be none (a
# pooler on the way, no place left, a server that refuses), the first one works alone.


# A server has 20 seconds to answer; one that is gone is noticed within a minute or so.
CONNECT_DEFAULTS = {
    "application_name": "rpexplore",
    "connect_timeout": 20,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
}
_MOST_SERVERS = 4
_EXPORT = "SELECT pg_export_snapshot(), pg_backend_pid()"
_BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
# Asked before the path is set, and so with every name in full.
_SCHEMAS = "SELECT pg_catalog.current_schemas(false)"

# The server's own word on how many processes may work on one statement beside the first, and half
# of the places that it has left.
_MOST_BESIDE = """
SELECT least(current_setting('max_parallel_workers_per_gather')::int,
    (current_setting('max_connections')::int
     - current_setting('superuser_reserved_connections')::int
     - (SELECT sum(numbackends) FROM pg_stat_database)::int) / 2)
"""
# A standby has the number of its primary, and may have a snapshot of the same name.
_SEEN = """
SELECT pg_postmaster_start_time(), txid_current_snapshot()::text, current_database(), current_user,
    current_setting('search_path')
"""


def connect(given: Mapping[str, Any]) -> Any:
    """A connection outside of a transaction, which the caller closes.

    given: what an address gives, as libpq names it
    """
    import psycopg

    server = psycopg.connect(**(CONNECT_DEFAULTS | dict(given)), autocommit=True)
    try:
        # Compiling hundreds of groupings takes longer than running them.
        server.execute("SET jit = off")
        server.execute("SET work_mem = '64MB'")
        server.execute("SET client_encoding = 'UTF8'")
        with suppress(psycopg.Error):  # older servers do not look whether somebody still waits
            server.execute("SET client_connection_check_interval = '10s'")
    except BaseException:
        server.close()
        raise
    return server


@dataclass(frozen=True)
class Snapshot:
    """The transaction of a connection, which reads only and sees one state of the records.

    schemas  in which the connection looks for tables that are named without one
    name     by which others can read the same state; "" where they cannot
    """

    server: Any
    given: Mapping[str, Any] = field(repr=False)
    schemas: Sequence[str]
    name: str

    @contextmanager
    def servers_beside(self, n_wanted: int) -> Iterator[list[Any]]:
        """Connections in transactions that see the same, closed at the end; at most so many."""
        import psycopg

        with ExitStack() as opened:
            servers: list[Any] = []
            # Whatever the server refuses, the connection that is there goes on without it.
            with suppress(psycopg.Error), self.server.transaction():
                for _ in range(min(n_wanted, self._n_most())):
                    # The address of the one server that answered, where the URI names several.
                    info = self.server.info
                    one = {"host": info.host, "port": info.port}
                    if info.hostaddr:
                        one["hostaddr"] = info.hostaddr
                    server = opened.enter_context(closing(connect({**self.given, **one})))
                    # What Ibis sets as well, before there is a transaction.
                    server.execute("SET TIMEZONE = UTC")
                    server.execute(_BEGIN)
                    server.execute(f"SET TRANSACTION SNAPSHOT '{self.name}'")
                    server.execute(OWN_NAMES)
                    server.execute(_ALL_ROWS)
                    if _seen(server) != _seen(self.server):
                        break
                    servers.append(server)
            yield servers

    def _n_most(self) -> int:
        if not self.name:
            return 0
        (n_beside,) = self.server.execute(_MOST_BESIDE).fetchone()
        is_here = not self.server.info.hostaddr or self.server.info.hostaddr in ("127.0.0.1", "::1")
        n_processors = (os.cpu_count() or 1) if is_here else _MOST_SERVERS
        return max(0, min(n_beside, n_processors - 1, _MOST_SERVERS - 1))


def begin(server: Any, given: Mapping[str, Any]) -> Snapshot:
    """Begin the transaction of a connection; closing the connection ends it."""
    import psycopg

    schemas = _begun(server)
    try:
        name, process = server.execute(_EXPORT).fetchone()
    except psycopg.Error:
        if server.closed:
            raise
        # The error ended a transaction in which nothing had been seen.
        server.execute("ROLLBACK")
        return Snapshot(server, given, _begun(server), "")
    # A pooler gives a process of its own making, and may have nobody wait for further ones.
    return Snapshot(server, given, schemas, name if process == server.info.backend_pid else "")


def _begun(server: Any) -> Sequence[str]:
    """Begin a transaction with the server's own names and all rows; the schemas of its path."""
    server.execute(_BEGIN)
    (schemas,) = server.execute(_SCHEMAS).fetchone()
    server.execute(OWN_NAMES)
    server.execute(_ALL_ROWS)
    return schemas


def _seen(server: Any) -> Any:
    return server.execute(_SEEN).fetchone()
