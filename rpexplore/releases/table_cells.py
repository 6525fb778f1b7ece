"""The cells of a table as rows: what each counts, and the figures of a `result_schema`."""

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
from rpexplore.domain.result_schema import RELEASED, Column, apart_from
from rpexplore.releases.manifest import CONFIDENCE
from rpexplore.workload.bases import Basis, Identity
from rpexplore.workload.query_matrix import query_matrix

Labels = list[tuple[Column, pa.Array]]
"""The columns that say what the cells along one axis count, and their contents."""

TEXT = pa.dictionary(pa.int32(), pa.string())  # the type of all columns of texts
_ROWS_AT_ONCE = 1 << 20
_FORMULA = rf"\A([{re.escape(FORMULA_SIGNS)}])"


def table_of_cells(labels: Sequence[Labels], values: np.ndarray, variances: np.ndarray) -> pa.Table:
    """One row a cell, row-major: attribute values and labels, and the columns `RELEASED`.

    labels: for each axis of `values`, its `label_columns`.
    """
    return pa.concat_tables(pieces_of_cells(labels, values, variances))


def pieces_of_cells(
    labels: Sequence[Labels],
    values: np.ndarray,
    variances: np.ndarray,
    figures: Sequence[Column] = RELEASED,
    note: str = "",
) -> Iterator[pa.Table]:
    """`table_of_cells` in pieces of a million rows, one after another; at least one.

    figures: the columns beside the labels; note: what was done to all values, if one is for that
    """
    schema = schema_of_cells([column for named in labels for column, _ in named], figures)
    every_value = values.reshape(-1)
    for start in range(0, max(values.size, 1), _ROWS_AT_ONCE):
        stop = min(start + _ROWS_AT_ONCE, values.size)
        codes = _codes(start, stop, values.shape)
        columns: list[pa.Array] = []
        for code, named in zip(codes, labels, strict=True):
            columns += [pa.DictionaryArray.from_arrays(code, texts) for _, texts in named]
        piece, are_alike = every_value[start:stop], not any(variances.strides)
        error = np.sqrt(variances.flat[:1] if are_alike else variances[tuple(codes)])
        yield pa.table([*columns, *arrays_of_figures(figures, piece, error, note)], schema=schema)


def schema_of_cells(labels: Sequence[Column], figures: Sequence[Column]) -> pa.Schema:
    """The columns of a table: texts by a dictionary, then numbers, and what was done to them."""
    return pa.schema(
        [
            column.field(pa.float64() if column.is_number else TEXT)
            for column in (*apart_from(labels, figures), *figures)
        ]
    )


def arrays_of_figures(
    figures: Sequence[Column], values: np.ndarray, errors: np.ndarray, note: str = ""
) -> list[pa.Array]:
    """The figures of cells by their roles: values, their errors, and intervals around them.

    errors: a number for each value, or one for all; note: what was done to all values
    """
    margins = normal_quantile(CONFIDENCE) * errors
    numbers = {
        "value": values,
        "error": errors,
        "model_error": errors,
        "margin": margins,
        "lower": values - margins,
        "upper": values + margins,
    }
    return [
        constant_text(note, values.shape[0])
        if column.role == "note"
        else pa.array(np.broadcast_to(numbers[column.role], values.shape))
        for column in figures
    ]


def constant_text(text: str, n_rows: int) -> pa.Array:
    """A column with the same text in all rows."""
    return pa.DictionaryArray.from_arrays(np.zeros(n_rows, dtype=np.int32), pa.array([text]))


def _codes(start: int, stop: int, shape: Sequence[int]) -> list[np.ndarray]:
    """The indices of consecutive cells along each axis of a table: int32[stop − start] each."""
    codes, left = [], np.arange(start, stop, dtype=np.int32)
    for size in reversed(shape):
        above = left // np.int32(size)
        codes.append(left - above * np.int32(size))
        left = above
    return codes[::-1]


def label_columns(attribute: Attribute, basis: Basis | None = None) -> Labels:
    """The columns that say what a cell counts, and their contents, one row a query."""
    name, title = attribute.name, attribute.label or attribute.name
    code = Column(name, "code", f"{title}: what a row counts.", attribute=name)
    values = attribute.values
    basis = basis or Identity()
    labels = attribute.labels() if basis.is_identity else query_matrix(basis, attribute).labels()
    if basis.ends_with_values and isinstance(values, Categories) and values.labels != values.values:
        # The single values come last; groups above them have no code but their name.
        codes = [*labels[: len(labels) - values.size], *values.values]
        meaning = f"{title}: what its codes are called."
        label = Column(f"{name} label", "label", meaning, attribute=name)
        return [(code, pa.array(codes)), (label, pa.array(labels))]
    return [(code, pa.array(labels))]


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
