"""Records in a table of a database or a cluster: a `Source` whose counting is done there.

Nothing but codes of categories and counts ever comes back, whatever the table holds.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from rpexplore.common.formatting import text_of_path
from rpexplore.data.blocks import maximal
from rpexplore.data.coding import coders
from rpexplore.data.counts import Counts
from rpexplore.data.databases.connections import Connection
from rpexplore.data.databases.engines import ENGINES
from rpexplore.data.databases.session import Session, engine_errors, opened, parts_of
from rpexplore.data.source import CountProgress, Fingerprint, PersonRule
from rpexplore.domain.attribute import Categories
from rpexplore.domain.domain import Domain
from rpexplore.errors import DataError


@dataclass(frozen=True)
class DatabaseSource:
    """The records of a table or view: table or schema.table, letter by letter.

    Counted in one statement, in a transaction that only reads. Memory here: 4 bytes for each cell
    of the tables that are counted, at most 4·10^8 cells, and 100,000 rows of counts at a time
    (Spark hands over all rows at once: some 100 bytes for each cell that is not empty).
    """

    connection: Connection
    table: str

    def __post_init__(self) -> None:
        parts_of(self.table)

    @property
    def name(self) -> str:
        return f"{self.table} at {self.connection.name}"

    @property
    def home(self) -> Path | None:
        """The folder of a DuckDB file; None for other engines."""
        return None if self._file is None else self._file.parent

    def dataset(self, folder: Path) -> str:
        """Engine, host, port, database, schema and table; no user and no options.

        For a DuckDB file its path as seen from the folder, where it lies inside.
        """
        if self._file is None:
            return self._place
        file = self._file.relative_to(folder) if self._file.is_relative_to(folder) else self._file
        schema, table = parts_of(self.table.lower())  # as DuckDB takes them
        return f"duckdb:{text_of_path(file)}/{schema or 'main'}.{table}"

    def fingerprint(self) -> Fingerprint:
        """A digest of columns, their types and, in PostgreSQL, the room that a table takes.

        Size and time for a DuckDB file alone.
        """
        with self._opened() as (session, table):
            seen = [
                session.place(self.table),
                *map(str, table.schema().items()),
                session.extent(self.table),
            ]
        stat = None if self._file is None else self._file.stat()
        if stat is not None:
            seen += [str(stat.st_mtime_ns), str(stat.st_ctime_ns)]
        digest = hashlib.sha256(json.dumps(seen).encode()).hexdigest()
        if stat is None:
            return Fingerprint(0, "", digest)
        modified = datetime.fromtimestamp(stat.st_mtime, UTC).isoformat(timespec="seconds")
        return Fingerprint(stat.st_size, modified, digest)

    def columns(self) -> tuple[str, ...]:
        with self._opened() as (_, table):
            return tuple(table.columns)

    def count(
        self,
        domain: Domain,
        tables: Sequence[Sequence[int]],
        *,
        unknown_values: Mapping[str, str] | None = None,
        person_rule: PersonRule | None = None,
        on_progress: CountProgress = lambda share: None,
    ) -> Counts:
        coders(domain, [], unknown_values)  # refuses what `unknown_values` may not say
        _check_rule(person_rule)
        sizes, wanted = domain.sizes.tolist(), maximal(tables)
        places = sorted({place for table in wanted for place in table})
        others = {
            domain.position(name): _value(domain, name, value)
            for name, value in (unknown_values or {}).items()
        }
        with self._opened() as (session, table), ExitStack() as held:
            # Of an optional extra.
            from rpexplore.data.databases.coding import coded
            from rpexplore.data.databases.counting import Tally, ranked, refuse_too_many, statement

            refuse_too_many(wanted, sizes)
            needed = [domain.names[place] for place in places]
            if person_rule is not None:
                needed += [person_rule.column, *([person_rule.order] if person_rule.order else [])]
            self._check_columns(table.columns, needed)
            with engine_errors(self.connection, self.table):
                more = (
                    {}
                    if person_rule is None
                    else _whose(table, person_rule, self.connection.engine)
                )
                engine = self.connection.engine
                records = coded(table, domain, places, others, engine, more)
                if person_rule is not None and person_rule.excess == "keep first":
                    records = ranked(records, places)
                records = held.enter_context(session.held(records))
                asked = statement(records, wanted, sizes, person_rule)
            tally = Tally(wanted, sizes)
            on_progress(0.0)
            for piece in session.pieces(asked, self.table, on_progress):
                tally.add(piece)
        counts = tally.counts(domain, person_rule, self.name)
        on_progress(1.0)
        return counts

    @cached_property
    def _file(self) -> Path | None:
        if not ENGINES[self.connection.engine].is_file:
            return None
        return Path(self.connection.location).resolve()

    @cached_property
    def _place(self) -> str:
        with self._opened() as (session, _):
            return session.place(self.table)

    @contextmanager
    def _opened(self) -> Iterator[tuple[Session, Any]]:
        with opened(self.connection) as session:
            yield session, session.table(self.table)

    def _check_columns(self, there: Sequence[str], needed: Sequence[str]) -> None:
        for name in needed:
            if name not in there:
                raise DataError(
                    f"The records {self.name} have no column {name!r}, which the plan needs; "
                    "rename the column, in a view say, or the attribute in the codebook.",
                    private=f"The columns are: {', '.join(there)}.",
                )


def _check_rule(rule: PersonRule | None) -> None:
    if rule is not None and rule.excess == "keep first" and rule.order is None:
        raise DataError(
            "The records of a database have no order, so the first of a person must be told by a "
            "column; name one whose smallest values come first."
        )


def _value(domain: Domain, name: str, value: str) -> int:
    """The place of a value among those of an attribute."""
    values = domain[name].values
    listed = values.values if isinstance(values, Categories) else domain[name].labels()
    return listed.index(value)


def _whose(table: Any, rule: PersonRule, engine: str) -> dict[str, Any]:
    """Whose a record is, null if nobody's, and by what theirs are ordered."""
    import ibis

    from rpexplore.data.databases.coding import as_text, hexed
    from rpexplore.data.databases.counting import ORDER, PERSON

    column = table[rule.column]
    kind = column.type()
    if kind.is_floating():
        person = column.nullif(ibis.literal("nan").cast(kind))
    elif kind.is_integer() or kind.is_decimal():
        person = column
    else:
        person = hexed(as_text(column), engine).nullif("")  # an empty text names nobody
    if rule.excess == "refuse":
        return {PERSON: person}
    assert rule.order is not None
    return {PERSON: person, ORDER: table[rule.order]}
