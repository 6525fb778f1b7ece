"""Counts below a limit that exports print as "fewer than 6": presentation, and no protection.

The figures of such a cell are empty in files of data, and the column `shown_as` has the words. The
noise is the same with and without: totals, other tables and the release itself may tell the count.
"""

from dataclasses import replace

import numpy as np
import pyarrow as pa

from rpexplore.common.numbers import shown_value
from rpexplore.domain.result_schema import NOTE, Column, Role, Schema
from rpexplore.errors import ReleaseError
from rpexplore.releases.items import Item, PartReader
from rpexplore.results.formats.amount_texts import amounts_in
from rpexplore.results.formats.crosstab import Crosstab
from rpexplore.results.formats.languages import Language

_LEAST = 2  # fewer than 1 is none
# What would tell the count.
_LEFT_EMPTY: tuple[Role, ...] = ("value", "estimate", "lower", "upper")


def checked_limit(limit: int) -> int:
    """The limit; raises `ReleaseError` for one that no counts can be below."""
    if isinstance(limit, bool) or not isinstance(limit, int) or (limit and limit < _LEAST):
        raise ReleaseError(
            f"The limit of small counts must be a whole number of {_LEAST} or more, got "
            f"{shown_value(limit)}; give one such as 6, or 0 for none."
        )
    return limit


def count_records(part: PartReader, item: Item) -> np.ndarray:
    """Which rows of a table count records, bool[n_rows]: no sums, means and weighted counts."""
    has_amounts = item.is_of_means or bool(amounts_in(part.domain, item))
    return np.full(item.n_rows, not has_amounts) & part.rows_count_records


def are_small(values: np.ndarray, errors: np.ndarray, limit: int) -> np.ndarray:
    """Which counts are below a limit, bool: but for zeros that are exact."""
    with np.errstate(invalid="ignore"):
        return (values < limit) & ~((values == 0) & (errors == 0))


def with_small_counts(
    rows: pa.Table, are_counts: np.ndarray, limit: int, language: Language
) -> pa.Table:
    """Rows in which the figures of small counts are empty, and a last column `shown_as`."""
    schema = Schema.of(rows)
    values = np.asarray(rows[schema.name("value")], dtype=float)
    errors = np.asarray(rows[schema.error_and_count[0]], dtype=float)
    small = are_counts & are_small(values, errors, limit) & ~_are_stated(rows)
    for name in schema.names(*_LEFT_EMPTY):
        index = rows.schema.get_field_index(name)
        figures = np.where(small, np.nan, np.asarray(rows[name], dtype=float))
        kept = rows.schema.field(index).with_type(pa.float64())
        rows = rows.set_column(index, kept, pa.array(figures, from_pandas=False))
    said = pa.array(["", language.text("fewer_than", n=limit)])
    column = Column("shown_as", "shown", language.text("shown_meaning", n=limit))
    texts = pa.DictionaryArray.from_arrays(small.astype(np.int32), said)
    return rows.append_column(column.field(texts.type), texts)


def marked_crosstab(table: Crosstab, part: PartReader, item: Item, limit: int) -> Crosstab:
    """The crosstab of a table, whose small counts are printed as such."""
    are_counts = count_records(part, item)
    if not are_counts.any() or table.unit:
        return table
    small = are_small(table.values, table.errors, limit)
    if not are_counts.all():
        small &= are_counts.reshape(table.values.shape)
    rows = item.read()
    stated = _are_stated(rows)
    if stated.any():
        schema = Schema.of(rows)
        # The last column of an attribute has what a crosstab shows of it.
        shown = {one.attribute: rows[one.name].to_pylist() for one in schema.labels}
        cells = {
            frozenset((name, texts[row]) for name, texts in shown.items())
            for row in np.flatnonzero(stated).tolist()
        }
        for row, down in enumerate(table.rows.labels):
            for column, across in enumerate(table.columns.labels):
                named = (*zip(table.rows.names, down, strict=True),
                         *zip(table.columns.names, across, strict=True))  # fmt: skip
                if frozenset(named) in cells:
                    small[row, column] = False
    return replace(table, small=small, fewer_than=limit)


def _are_stated(rows: pa.Table) -> np.ndarray:
    """Whether a note says that a count is public: impossible, of an empty area, or known; bool."""
    if NOTE.name not in rows.column_names or Schema.of(rows).name("note") != NOTE.name:
        return np.zeros(rows.num_rows, dtype=bool)
    notes = rows[NOTE.name].cast(pa.string()).fill_null("").to_pylist()
    return np.array([bool(note) for note in notes], dtype=bool)
