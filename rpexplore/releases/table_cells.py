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
    names = _column_names(labels)
    every_value = values.reshape(-1)
    for start in range(0, max(values.size, 1), _ROWS_AT_ONCE):
        rows = np.arange(start, min(start + _ROWS_AT_ONCE, values.size))
        indices = np.unravel_index(rows, values.shape) if values.ndim else ()
        columns: list[pa.Array] = []
        for index, named in zip(indices, labels, strict=True):
            code = pa.array(index.astype(np.int32))
            columns += [pa.DictionaryArray.from_arrays(code, texts) for _, texts in named]
        piece = every_value[rows]
        error = np.broadcast_to(np.sqrt(variances[indices]), piece.shape)
        margin = normal_quantile(CONFIDENCE) * error
        numbers = (piece, error, piece - margin, piece + margin)
        yield pa.table([*columns, *map(pa.array, numbers)], names=[*names, *ESTIMATES])


def _column_names(labels: Sequence[Labels]) -> list[str]:
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
            column = pc.replace_substring_regex(column, _FORMULA, r"'\1")
        columns.append(column)
    return pa.table(columns, names=list(map(without_formula, rows.column_names)))
