"""The figures of exported tables: their decimals, units and statuses, for every format."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rpexplore.domain.expected_counts import CV_LIMIT
from rpexplore.domain.readings import are_publishable_as_estimated
from rpexplore.domain.result_schema import Schema
from rpexplore.releases.adaptive_release import LEAST_ERROR
from rpexplore.releases.table_cells import csv_decimals

# pyarrow.compute makes its functions when it is imported, so pyright cannot know them.
# pyright: reportAttributeAccessIssue=false

STATUSES = ("A", "E", "U", "O")
"""What a figure is, by the codes of SDMX for all domains; see `statuses_of`."""


def as_written(rows: pa.Table) -> pa.Table:
    """Rows in which every column is float64, or a text by a dictionary."""
    for index, stored in enumerate(rows.schema):
        column = rows.column(index)
        if pa.types.is_boolean(stored.type):
            column = pc.if_else(column, "yes", "no").dictionary_encode()
        elif pa.types.is_string(stored.type):
            column = column.dictionary_encode()
        elif pa.types.is_integer(stored.type):
            column = column.cast(pa.float64())
        else:
            continue
        rows = rows.set_column(index, stored.with_type(column.type), column)
    return rows.combine_chunks().unify_dictionaries()


def decimals_of(rows: pa.Table) -> int:
    """How many decimals the numbers of a table have as CSV, as in a release's own files."""
    schema = Schema.of(rows)
    numbers = [np.asarray(rows[one.name]) for one in schema.columns if one.is_number]
    largest = max(np.max(np.abs(one), where=~np.isnan(one), initial=0.0) for one in numbers)
    errors = np.asarray(rows[schema.error_and_count[0]])
    # Without unbiased figures beside it, a model may be sure of a cell.
    by_model = schema.is_smooth and not schema.has_unbiased
    if schema.has("error"):
        errors = np.asarray(rows[schema.name("error")])
    if schema.has("share_error"):
        errors = np.append(errors, np.asarray(rows[schema.name("share_error")]))
    if by_model:
        return csv_decimals(max(errors.min(), LEAST_ERROR), largest)
    if np.all(errors == 0) and all(np.array_equal(one, np.rint(one)) for one in numbers):
        return 0  # exact totals
    errors = errors[errors > 0]  # 0 in empty areas, and none where no mean is told
    return csv_decimals(errors.min() if errors.size else 1.0, largest)


def statuses_of(rows: pa.Table) -> pa.DictionaryArray:
    """What each figure is, by a code of `STATUSES`.

    A where it is exact: 0 in empty areas, and what is public where neighbours replace records
    (by a model, where the noisy count beside it is exact); U
    where it is not publishable: its CV is above 20 %, or it is not above 0; O where there is none,
    and E elsewhere, because it holds noise.
    """
    schema = Schema.of(rows)
    names = schema.name("value"), *schema.error_and_count
    values, errors, counts = (np.asarray(rows[name], dtype=float) for name in names)
    is_exact = (errors == 0) & (values == counts)
    if schema.is_smooth:
        noise = np.asarray(rows[schema.name("error")]) if schema.has("error") else np.nan
        is_exact &= noise == 0
    is_unsure = ~np.isnan(errors) & ~are_publishable_as_estimated(errors, counts, CV_LIMIT)
    codes = list(STATUSES)
    places = np.select(
        [np.isnan(values), is_exact, is_unsure],
        [codes.index("O"), codes.index("A"), codes.index("U")],
        codes.index("E"),
    )
    return pa.DictionaryArray.from_arrays(places.astype(np.int32), pa.array(codes))
