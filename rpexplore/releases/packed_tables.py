"""Small tables of a release in one Parquet file, where there are many: written and read.

tables.parquet  one row a cell, the cells of each table together, row-major, the tables in the
                plan's order:
                table           its number, as files of single tables have it in their names
                attributes      of the table, in words
                category_1, …   what the cell counts of each of them; "" behind the last
                value, standard_error, and `NOTE` where the codebook states impossible combinations;
                of processed tables more figures (`results.processed_tables`)

Intervals are not in it: they follow from the standard error. A row group holds whole tables, so
that a table is read without the others. Tables of amounts, whose figures have other meanings, and
tables of many cells have files of their own (`table_cells`).
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from rpexplore.common.processes import in_order
from rpexplore.domain.result_schema import (
    DISTINCT,
    IMPOSSIBLE_NOTE,
    KNOWN_NOTE,
    NOTE,
    PLANNED_ANEW,
    RELEASED,
    Column,
)
from rpexplore.planning.table_plan import TablePlan
from rpexplore.releases.large_tables import are_large
from rpexplore.releases.manifest import CheckedFolder
from rpexplore.releases.table_cells import (
    BYTES_PER_CELL,
    BYTES_PER_CELL_IN_PARQUET,
    BYTES_PER_TABLE,
    LARGEST_ESTIMATE,
    TEXT,
    Labels,
    arrays_of_figures,
    check_roles,
    check_schema,
    not_what_was_written,
    notes_of,
    refuse_gaps,
    rows_of_arrays,
)
from rpexplore.workload.workload import Workload

PACKED = "tables.parquet"
MOST_FILES = 100
"""So many small tables at most have files of their own; more are in one file."""
MOST_CELLS = 1 << 20
"""Of a table in it."""
_BYTES_PER_CELL = 24  # or fewer
# Of a large table, with what is measured of it: figures, and indices of texts; where an attribute
# has many values, their texts themselves. Measured: 30 to 34, and 36 to 39.
_BYTES_PER_LARGE_CELL, _BYTES_WITH_TEXTS, _MANY_VALUES = 34, 40, 100_000
_ROWS = 1 << 16  # of the tables in a row group, at least, where there are so many

_TABLE = Column(
    "table", "code", "The number of the table: its place among those of the plan, from 0 on."
)
_ATTRIBUTES = Column("attributes", "label", "The attributes of the table.")


def packed_tables(workload: Workload, *, file_per_table: bool = False) -> np.ndarray:
    """The tables of a workload that are in one file, ascending: int64[m], m = 0 or > 100."""
    is_small = (workload.cells <= MOST_CELLS) & ~workload.has_amounts
    tables = np.flatnonzero(is_small)
    return tables if len(tables) > MOST_FILES and not file_per_table else tables[:0]


def tables_in_files(workload: Workload, packed: np.ndarray) -> list[int]:
    """The tables that have files of their own."""
    return np.setdiff1d(np.arange(len(workload)), packed).tolist()


def bytes_of_tables(
    workload: Workload, *, parquet_only: bool = False, file_per_table: bool = False
) -> np.ndarray:
    """About how much each table takes on the disk, or less: float64[n_tables]."""
    per_cell = BYTES_PER_CELL_IN_PARQUET if parquet_only else BYTES_PER_CELL
    n_bytes = per_cell * workload.cells + BYTES_PER_TABLE
    # Tables of sums have a table of means beside them, with a row for two or more of theirs.
    n_bytes[workload.has_means] += per_cell / 2 * workload.cells[workload.has_means]
    n_bytes[workload.has_means] += BYTES_PER_TABLE
    for table in np.flatnonzero(are_large(workload)).tolist():  # without CSV
        n_values = max(workload.domain.sizes[index] for index in workload.attribute_indices(table))
        per_cell = _BYTES_PER_LARGE_CELL if n_values < _MANY_VALUES else _BYTES_WITH_TEXTS
        n_bytes[table] = per_cell * workload.cells[table]
    packed = packed_tables(workload, file_per_table=file_per_table)
    n_bytes[packed] = _BYTES_PER_CELL * workload.cells[packed]
    return n_bytes


# ---- written

Figures = tuple[Sequence[np.ndarray | float], np.ndarray | None]
"""The figures of the cells of a table, each with one axis an attribute (all but the first may be
one number for all), and which cells no record can be in; None for none."""
VALUE_AND_ERROR = RELEASED[:2]
"""The figures of released and of combined tables."""


def released_figures(plan: TablePlan) -> tuple[Column, ...]:
    """The columns of figures of a plan's tables of counts; the first two are `VALUE_AND_ERROR`."""
    return RELEASED if plan.first is None else PLANNED_ANEW


def write_packed(
    path: Path,
    workload: Workload,
    tables: np.ndarray,
    labels_of: Callable[[int], Labels],
    figures_of: Callable[[int], Figures],
    *,
    figures: Sequence[Column] = VALUE_AND_ERROR,
    numbers: np.ndarray | None = None,
    metadata: Mapping[bytes | str, bytes | str] = MappingProxyType({}),
) -> Iterator[int]:
    """Write these tables of a workload into one file; yields how many cells there are so far.

    Args:
        labels_of: The label columns of one of `workload.attribute_bases`.
        figures_of: The figures of the table at a position; called in threads.
        figures: The columns of these.
        numbers: Of each table in the file, int64[m]; by default its position.
        metadata: Of the file.
    """
    schema = _schema(workload, tables, figures).with_metadata(dict(metadata))
    number_of = dict(zip(tables.tolist(), (tables if numbers is None else numbers), strict=True))
    rows = partial(_rows, workload, schema, labels_of, figures_of, figures, number_of)
    of_table: Any = [_TABLE.name]
    distinct = {column.name for column in figures if column.role in DISTINCT}
    repeated: Any = [name for name in schema.names if name not in distinct]
    n_cells = 0
    groups = in_order(rows, _groups(workload.exact_cells, tables))
    with (
        closing(groups),
        pyarrow.parquet.ParquetWriter(
            path, schema, use_dictionary=repeated, write_statistics=of_table
        ) as writer,
    ):
        for group in groups:
            writer.write_table(group, row_group_size=max(len(group), 1))
            n_cells += len(group)
            yield n_cells


def _schema(workload: Workload, tables: np.ndarray, figures: Sequence[Column]) -> pa.Schema:
    order = int(workload.orders[tables].max())
    categories = [
        Column(f"category_{k}", "code", f"What a row counts of attribute {k} of its table.")
        for k in range(1, order + 1)
    ]
    texts = [_ATTRIBUTES, *categories]
    return pa.schema(
        [
            _TABLE.field(pa.int32()),
            *(column.field(TEXT) for column in texts),
            *(column.field(pa.float64()) for column in figures),
            *([NOTE.field(TEXT)] if workload.domain.impossible else []),
        ]
    )


def _groups(cells: np.ndarray, tables: np.ndarray) -> Iterator[list[int]]:
    """The tables of each row group: enough of them, or a large one alone."""
    group: list[int] = []
    n_rows = 0
    for table in tables.tolist():
        if group and (n_rows >= _ROWS or cells[table] > _ROWS):
            yield group
            group, n_rows = [], 0
        group.append(table)
        n_rows += int(cells[table])
    yield group


def _rows(
    workload: Workload,
    schema: pa.Schema,
    labels_of: Callable[[int], Labels],
    figures_of: Callable[[int], Figures],
    figures: Sequence[Column],
    number_of: Mapping[int, int],
    tables: Sequence[int],
) -> pa.Table:
    """The rows of some tables, one after another."""
    sizes = [int(workload.exact_cells[table]) for table in tables]
    n_rows, n_categories = sum(sizes), sum(name.startswith("category_") for name in schema.names)
    columns = np.empty((len(figures), n_rows))
    has_notes = NOTE.name in schema.names
    impossible = np.zeros(n_rows if has_notes else 0, dtype=bool)
    codes = np.zeros((n_categories, n_rows), dtype=np.int32)
    # A dictionary in which a text is twice becomes another one in a Parquet file.
    texts, titles = {"": 0}, dict[str, int]()
    codes_of: dict[int, np.ndarray] = {}
    stop = 0
    for table, size in zip(tables, sizes, strict=True):
        rows = slice(stop, stop := stop + size)
        of_cells, without_record = figures_of(table)
        shape = np.shape(of_cells[0])
        for column, own in zip(columns, of_cells, strict=True):
            column[rows].reshape(shape)[...] = own
        if without_record is not None:
            impossible[rows] = without_record.ravel()
        for axis, basis in enumerate(workload.attribute_basis_index[table, : len(shape)].tolist()):
            if basis not in codes_of:
                labels = labels_of(basis)[0][1].to_pylist()
                codes_of[basis] = np.array(
                    [texts.setdefault(text, len(texts)) for text in labels], dtype=np.int32
                )
            along = codes_of[basis].reshape(-1, *[1] * (len(shape) - axis - 1))
            codes[axis, rows].reshape(shape)[...] = along
    names = [" × ".join(workload.tables[table]) or "total" for table in tables]
    of_table = np.array([titles.setdefault(name, len(titles)) for name in names], dtype=np.int32)
    arrays = [
        pa.array(np.repeat(np.array([number_of[t] for t in tables], dtype=np.int32), sizes)),
        pa.DictionaryArray.from_arrays(np.repeat(of_table, sizes), pa.array([*titles])),
        *(pa.DictionaryArray.from_arrays(code, pa.array([*texts])) for code in codes),
        *map(pa.array, columns),
    ]
    if has_notes:
        arrays.append(notes_of(impossible))
    return pa.table(arrays, schema=schema)


# ---- read


@dataclass(frozen=True, eq=False, repr=False)
class PackedTables:
    """The tables of a folder that are in one file.

    folder      with the file, which is checked whenever rows are read
    tables      their numbers in it, ascending: int64[m]
    sizes       how many cells each has: int64[m]
    columns     of their figures; those of `or_empty` may be empty
    """

    folder: CheckedFolder
    tables: np.ndarray
    sizes: np.ndarray
    columns: Sequence[Column] = VALUE_AND_ERROR
    or_empty: Collection[Column] = ()

    @property
    def path(self) -> Path:
        return self.folder / PACKED

    def __contains__(self, table: int) -> bool:
        at = int(np.searchsorted(self.tables, table))
        return at < len(self.tables) and int(self.tables[at]) == table

    def figures(self, table: int) -> list[np.ndarray]:
        """The figures of the cells of a table: float64[n_cells] each.

        Raises `ReleaseError` for a file that does not hold them.
        """
        rows = self._rows(table)
        return [rows[column.name].to_numpy() for column in self.columns]

    def impossible(self, table: int) -> np.ndarray | None:
        """Which cells of a table no record can be in, as the file says: bool[n_cells], or None."""
        if NOTE.name not in self._metadata.schema.names:
            return None
        impossible = np.array(self._rows(table)[NOTE.name].to_pylist()) == IMPOSSIBLE_NOTE
        return impossible if impossible.any() else None

    def _rows(self, table: int) -> pa.Table:
        at = int(np.searchsorted(self.tables, table))
        start, stop = self._starts[at : at + 2].tolist()
        group = int(np.searchsorted(self._ends, start, side="right"))
        first = int(self._ends[group - 1]) if group else 0
        if stop > self._ends[group]:
            raise not_what_was_written(self.path, "a table must be in one row group")
        rows = self._group(group).slice(start - first, stop - start)
        if np.any(rows[_TABLE.name].to_numpy() != table):
            raise not_what_was_written(self.path, "its tables must be in the order of the plan")
        return rows

    def _group(self, group: int) -> pa.Table:
        """A row group; the last one is kept, as tables are often read one after another."""
        kept = self._kept.get(group)
        if kept is None:
            metadata, names = self._metadata, [*self._read]
            if NOTE.name in metadata.schema.names:
                names.append(NOTE.name)
            try:
                with pyarrow.parquet.ParquetFile(self.path, metadata=metadata) as file:
                    kept = file.read_row_group(group, columns=names)
            except (OSError, pa.ArrowException):
                raise not_what_was_written(self.path, "it cannot be read any more") from None
            kept = kept.combine_chunks()
            optional = {column.name for column in self.or_empty}
            full = {name: kind for name, kind in self._read.items() if name not in optional}
            refuse_gaps(self.path, kept, full, LARGEST_ESTIMATE)
            self._kept.clear()
            self._kept[group] = kept
        return kept

    @cached_property
    def _read(self) -> dict[str, pa.DataType]:
        """The columns that are read, and their types."""
        return {_TABLE.name: pa.int32(), **{one.name: pa.float64() for one in self.columns}}

    @cached_property
    def _kept(self) -> dict[int, pa.Table]:
        return {}

    @cached_property
    def _metadata(self) -> pyarrow.parquet.FileMetaData:
        try:
            metadata = pyarrow.parquet.read_metadata(self.path)
            schema = metadata.schema.to_arrow_schema()
        except (OSError, pa.ArrowException):
            raise not_what_was_written(self.path, "it cannot be read any more") from None
        check_schema(self.path, schema, self._read)
        check_roles(self.path, schema, (_TABLE, *self.columns))
        n_rows = int(self._starts[-1])
        if metadata.num_rows != n_rows:
            reason = f"it must have {n_rows:,} rows, and has {metadata.num_rows:,}"
            raise not_what_was_written(self.path, reason)
        return metadata

    @cached_property
    def _ends(self) -> np.ndarray:
        """Where each row group ends: int64[n_groups]."""
        groups = self._metadata.num_row_groups
        return np.cumsum([self._metadata.row_group(group).num_rows for group in range(groups)])

    @cached_property
    def _starts(self) -> np.ndarray:
        """Where the rows of each table begin, and the end: int64[n_tables + 1]."""
        return np.concatenate([[0], np.cumsum(self.sizes)]).astype(int)


def rows_of_packed(
    labels: Sequence[Labels],
    shape: Sequence[int],
    values: np.ndarray,
    errors: np.ndarray,
    impossible: np.ndarray | None,
    figures: Sequence[Column] = RELEASED,
    note: str = "",
    *,
    is_known: bool = False,
) -> pa.Table:
    """The rows of a table from its figures, as files of single tables have them.

    note: what was done to all values, if one of the figures is for that
    is_known: whether they are publicly known, as for `table_of_cells`
    """
    if is_known and impossible is None:
        impossible = np.zeros(values.shape, dtype=bool)
    figures = figures if impossible is None else (*figures, NOTE)
    arrays = arrays_of_figures(figures, values, errors, note)
    if impossible is not None:
        arrays[-1] = notes_of(impossible.ravel(), KNOWN_NOTE if is_known else "")
    return rows_of_arrays(labels, shape, arrays, figures)
