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

from rpexplore.common.concurrency import Progress, no_progress
from rpexplore.data.blocks import maximal
from rpexplore.data.coding import unknown_codes
from rpexplore.data.counts import Counts
from rpexplore.data.databases.connections import ENGINES, Connection
from rpexplore.data.databases.session import Session, engine_errors, parts_of, session_of
from rpexplore.data.source import COUNTING, Fingerprint, PersonRule, check_column, file_names
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

    def names(self, folder: Path) -> tuple[str, ...]:
        """Engine, host, port, database, schema and table; no user and no options.

        For a DuckDB file its path as seen from the folder, where it lies inside, and what it is.
        """
        if self._file is None:
            return (self._table_address,)
        schema, table = parts_of(self.table.lower())  # as DuckDB takes them
        return file_names(folder, self._file, "duckdb:", f"/{schema or 'main'}.{table}")

    def fingerprint(self) -> Fingerprint:
        """A digest of columns, their types and, in PostgreSQL, the room that a table takes.

        Size and time for a DuckDB file alone.
        """
        with self._session() as (session, table):
            seen = [
                session.table_address(self.table),
                *map(str, table.schema().items()),
                session.extent(self.table),
            ]
        size, modified = 0, ""
        if self._file is not None:
            stat = self._file.stat()
            seen += [str(stat.st_mtime_ns), str(stat.st_ctime_ns)]
            size = stat.st_size
            modified = datetime.fromtimestamp(stat.st_mtime, UTC).isoformat(timespec="seconds")
        return Fingerprint(size, modified, hashlib.sha256(json.dumps(seen).encode()).hexdigest())

    def columns(self) -> tuple[str, ...]:
        with self._session() as (_, table):
            return tuple(table.columns)

    def count(
        self,
        domain: Domain,
        tables: Sequence[Sequence[int]],
        *,
        unknown_values: Mapping[str, str] | None = None,
        person_rule: PersonRule | None = None,
        on_progress: Progress = no_progress,
    ) -> Counts:
        codes = unknown_codes(domain, unknown_values)
        if person_rule is not None and person_rule.excess == "keep first" and not person_rule.order:
            raise DataError(
                "The records of a database have no order, so the first of a person must be told by "
                "a column; name one whose smallest values come first."
            )
        sizes, wanted = domain.sizes.tolist(), maximal(tables)
        attribute_indices = sorted({index for table in wanted for index in table})
        with self._session() as (session, table), ExitStack() as stack:
            # Of an optional extra.
            from rpexplore.data.databases.coding import code_columns, person_columns
            from rpexplore.data.databases.counting import (
                Tally,
                refuse_too_many,
                statement,
                with_ranks,
            )

            refuse_too_many(wanted, sizes)
            needed = [domain.names[index] for index in attribute_indices]
            for name in needed + ([] if person_rule is None else person_rule.columns):
                check_column(self.name, name, table.columns)
            with engine_errors(self.connection, self.table):
                engine = self.connection.engine
                persons = {} if person_rule is None else person_columns(table, person_rule, engine)
                records = code_columns(table, domain, attribute_indices, codes, engine, persons)
                if person_rule is not None and person_rule.excess == "keep first":
                    records = with_ranks(records, attribute_indices)
                records = stack.enter_context(session.hold(records))
                expression = statement(records, wanted, sizes, person_rule)
            tally = Tally(wanted, sizes)
            on_progress(COUNTING, 0.0)
            for piece in session.pieces(expression, self.table, on_progress):
                tally.add(piece)
        counts = tally.counts(domain, person_rule, self.name)
        on_progress(COUNTING, 1.0)
        return counts

    @cached_property
    def _file(self) -> Path | None:
        if not ENGINES[self.connection.engine].is_file:
            return None
        return Path(self.connection.location).resolve()

    @cached_property
    def _table_address(self) -> str:
        with self._session() as (session, _):
            return session.table_address(self.table)

    @contextmanager
    def _session(self) -> Iterator[tuple[Session, Any]]:
        with session_of(self.connection) as session:
            yield session, session.table(self.table)
