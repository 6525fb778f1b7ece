"""The cells of a noisy table as rows: labels, value, standard error, interval."""

# pyarrow.compute makes its functions when it is imported, so pyright cannot know them.
# pyright: reportAttributeAccessIssue=false

import re
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rpexplore.common.csv_text import FORMULA_SIGNS, without_formula
from rpexplore.common.numerics import normal_quantile
from rpexplore.domain.attribute import Attribute, Categories
from rpexplore.releases.manifest import CONFIDENCE
from rpexplore.workload.bases import Basis, Identity
from rpexplore.workload.query_matrix import query_matrix

ESTIMATES = ("value", "standard_error", "lower_95", "upper_95")
ESTIMATE_COLUMNS: dict[str, pa.DataType] = dict.fromkeys(ESTIMATES, pa.float64())

Labels = list[tuple[str, pa.Array]]
"""Name and contents of the columns that say what the cells along one axis count."""

_ROWS_AT_ONCE = 1 << 20
_FORMULA = rf"\A([{re.escape(FORMULA_SIGNS)}])"


def table_of_cells(labels: Sequence[Labels], values: np.ndarray, variances: np.ndarray) -> pa.Table:
    """One row a cell, row-major: attribute values and labels, value, standard error, interval.

    labels: for each axis of `values`, its `label_columns`.
    """
    return pa.concat_tables(pieces_of_cells(labels, values, variances))


def pieces_of_cells(
    labels: Sequence[Labels], values: np.ndarray, variances: np.ndarray
) -> Iterator[pa.Table]:
    """`table_of_cells` in pieces of a million rows, one after another; at least one."""
    names = column_names(labels)
    every_value = values.reshape(-1)
    for start in range(0, max(values.size, 1), _ROWS_AT_ONCE):
        stop = min(start + _ROWS_AT_ONCE, values.size)
        codes = _codes(start, stop, values.shape)
        columns: list[pa.Array] = []
        for code, named in zip(codes, labels, strict=True):
            columns += [pa.DictionaryArray.from_arrays(code, texts) for _, texts in named]
        piece, are_alike = every_value[start:stop], not any(variances.strides)
        error = np.sqrt(variances.flat[:1] if are_alike else variances[tuple(codes)])
        margin = normal_quantile(CONFIDENCE) * error
        numbers = (piece, np.broadcast_to(error, piece.shape), piece - margin, piece + margin)
        yield pa.table([*columns, *map(pa.array, numbers)], names=[*names, *ESTIMATES])


def _codes(start: int, stop: int, shape: Sequence[int]) -> list[np.ndarray]:
    """The indices of consecutive cells along each axis of a table: int32[stop − start] each."""
    codes, left = [], np.arange(start, stop, dtype=np.int32)
    for size in reversed(shape):
        above = left // np.int32(size)
        codes.append(left - above * np.int32(size))
        left = above
    return codes[::-1]


def column_names(labels: Sequence[Labels]) -> list[str]:
    """The names of the label columns, apart from each other and from those of the estimates."""
    names: list[str] = []
    for named in labels:
        for name, _ in named:
            while name in names or name in ESTIMATES:
                name += " (attribute)"
            names.append(name)
    return names


def label_columns(attribute: Attribute, basis: Basis | None = None) -> Labels:
    """Names and contents of the columns that say what a cell counts, one row a query."""
    values = attribute.values
    basis = basis or Identity()
    labels = attribute.labels() if basis.is_identity else query_matrix(basis, attribute).labels()
    if basis.ends_with_values and isinstance(values, Categories) and values.labels != values.values:
        # The single values come last; groups above them have no code but their name.
        codes = [*labels[: len(labels) - values.size], *values.values]
        return [(attribute.name, pa.array(codes)), (f"{attribute.name} label", pa.array(labels))]
    return [(attribute.name, pa.array(labels))]


def for_csv(rows: pa.Table, *, escape_formulas: bool) -> pa.Table:
    """Rows as a CSV file has them; an apostrophe before texts that would be formulas if wanted."""
    if not escape_formulas:
        return rows
    columns = []
    for column in rows.columns:
        if pa.types.is_dictionary(column.type):
            column = column.cast(pa.string())
        if pa.types.is_string(column.type):
            column = escaped_texts(column)
        columns.append(column)
    return pa.table(columns, names=list(map(without_formula, rows.column_names)))


def escaped_texts(texts: pa.Array) -> pa.Array:
    """Texts with an apostrophe before those that would be formulas."""
    return pc.replace_substring_regex(texts, _FORMULA, r"'\1")
