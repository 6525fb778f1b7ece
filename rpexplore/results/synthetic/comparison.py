"""The tables of synthetic records beside the released ones: where records may be used, where not.

Records repeat the noise of the release, so that their distance from the released tables does not
show their error. It is estimated by its two parts: the model-based error of the smooth tables that
they were fitted to, and the distance of the records from these (docs/mathematics.md §14.4).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from rpexplore.common.processes import Progress, in_order
from rpexplore.domain.domain import AttributeIndices
from rpexplore.domain.result_schema import INTERVAL_ROLES, Schema
from rpexplore.planning.mechanism.reconstruction import answers
from rpexplore.releases.table_release import TableRelease
from rpexplore.results.unbiased import Estimates, positions_of_counts
from rpexplore.workload.table_text import QueryMatrix

TABLES_COLUMNS = {
    "table": pa.string(),
    "cells": pa.int64(),
    "cells_outside_interval": pa.int64(),
    "released_error": pa.float64(),
    "smooth_error": pa.float64(),
    "from_smooth": pa.float64(),
    "records_error": pa.float64(),
    "ratio": pa.float64(),
    "nearer": pa.string(),
}
MODEL_BASED = ("smooth_error", "from_smooth", "records_error", "ratio")  # NaN where not known
CELLS_COLUMNS = {
    "table": pa.string(),
    "cell": pa.string(),
    "records": pa.float64(),
    "released": pa.float64(),
    "standard_error": pa.float64(),
    "lower_95": pa.float64(),
    "upper_95": pa.float64(),
    "standard_errors_away": pa.float64(),
}
RELEASED, MEASURED, NO_DIFFERENCE, RECORDS, UNKNOWN = (
    "released table",
    "measured table",
    "no clear difference",
    "records, if the model holds",
    "unknown",
)
"""Which is estimated to be nearer to the true counts; measured tables are of adaptive releases."""

_LEAST, _MOST = 0.9, 1.1  # ratios of the two errors without a clear difference
_CELLS_LISTED, _CELLS_OF_A_TABLE = 1000, 20


class SmoothCounts(NamedTuple):
    """A smooth table of single values, and the model-based errors of its cells."""

    counts: np.ndarray
    errors: np.ndarray


@dataclass(frozen=True, eq=False)
class Comparison:
    """How far the records' tables are from the released ones, in released counts.

    tables  one row a table, the worst for the records first: `table` (its attributes), `cells`,
            `cells_outside_interval` (those where the records' count is outside the released 95 %
            interval), and root mean squares over the cells: `released_error` (standard errors),
            `smooth_error` (model-based, of the smooth table), `from_smooth` (distance of the
            records from it), `records_error` (estimated, of these two), `ratio` of the records'
            error to the released one; which is `nearer` to the true counts by this ratio:
            `RELEASED` (or `MEASURED`) above 1.1, `NO_DIFFERENCE`, or `RECORDS` below 0.9. Where no
            model-based error is known, four of these are NaN and the last is `UNKNOWN`
    cells   the cells where records and release are most standard errors apart, worst first
    """

    tables: pd.DataFrame
    cells: pd.DataFrame


def compare(
    source: TableRelease | Estimates,
    smooth: Callable[[AttributeIndices], SmoothCounts | None],
    attributes: Sequence[int],
    codes: np.ndarray,
    total: float,
    on_progress: Progress,
) -> Comparison:
    """Compare records with all tables that were released, or measured in adaptive rounds.

    Args:
        smooth: The smooth table of some attributes, or None where there is none.
        attributes: Those of the records, by their indices in the domain.
        codes: The records' values, int16[n, d].
        total: What the records' counts are scaled to: the total of what they were fitted to.
    """
    queries, names, positions = source.queries, source.table_names, positions_of_counts(source)
    columns = {index: codes[:, i] for i, index in enumerate(attributes)}
    scale = total / len(codes)

    def compared(position: int) -> tuple[dict[str, object], pd.DataFrame]:
        indices = source.domain.positions(names[position])
        shape = tuple(source.domain.sizes[list(indices)].tolist())
        counts = scale * _counts([columns[index] for index in indices], shape, len(codes))
        rows = source.items[position].read()
        # Of sums of single values no model-based error is known.
        is_single = all(query is None for query in queries[position])
        row = {
            "table": " × ".join(names[position]) or "total",
            **_distances(counts, smooth(indices) if is_single else None),
        }
        return _compared(row, counts, queries[position], rows)

    tables, worst = [], []
    with closing(in_order(compared, positions)) as results:
        for done, (table, cells) in enumerate(results):
            tables.append(table)
            worst.append(cells)
            if done % 16 == 0:
                on_progress("Comparing their tables with the released ones", done / len(positions))
    by_table = pd.DataFrame(tables, columns=list(TABLES_COLUMNS))
    by_table = by_table.sort_values(["ratio", "table"], ascending=[False, True])
    if source.is_adaptive:
        by_table["nearer"] = by_table["nearer"].replace(RELEASED, MEASURED)
    cells = pd.concat(worst).sort_values("standard_errors_away", ascending=False, kind="stable")
    return Comparison(
        by_table.reset_index(drop=True), cells.head(_CELLS_LISTED).reset_index(drop=True)
    )


_SAME = 1e-6  # of a count, by which sums of what was measured may be off


def _counts(columns: Sequence[np.ndarray], shape: tuple[int, ...], n: int) -> np.ndarray:
    if not columns:
        return np.array(float(n))
    cells = np.ravel_multi_index(tuple(column.astype(np.int64) for column in columns), shape)
    return np.bincount(cells, minlength=math.prod(shape)).reshape(shape).astype(float)


def _distances(counts: np.ndarray, smooth: SmoothCounts | None) -> dict[str, float]:
    """How far a table of records is from the smooth one, and about how far from the true counts."""
    if smooth is None:
        return {"smooth_error": math.nan, "from_smooth": math.nan, "records_error": math.nan}
    error, distance = _root_mean_square(smooth.errors), _root_mean_square(counts - smooth.counts)
    return {
        "smooth_error": error,
        "from_smooth": distance,
        "records_error": math.hypot(error, distance),
    }


def _root_mean_square(values: np.ndarray) -> float:
    return math.sqrt(float(np.mean(values**2)))


def _nearer(ratio: float) -> str:
    """What is nearer to the true counts by the error of the records over the released one."""
    if math.isnan(ratio):
        return UNKNOWN
    if ratio > _MOST:
        return RELEASED
    return RECORDS if ratio < _LEAST else NO_DIFFERENCE


def _compared(
    row: Mapping[str, Any],
    counts: np.ndarray,
    queries: Sequence[QueryMatrix | None],
    rows: pa.Table,
) -> tuple[dict[str, Any], pd.DataFrame]:
    """The row of a table, completed, and those cells of it that are farthest apart."""
    values = answers(counts, queries).ravel()
    schema = Schema.of(rows)
    released, errors, lower, upper = (rows[schema.name(role)].to_numpy() for role in INTERVAL_ROLES)
    difference = values - released
    difference[(errors == 0) & (np.abs(difference) < _SAME)] = 0  # exact totals, which are whole
    outside = ((values < lower) | (values > upper)) & (difference != 0)
    released_error = _root_mean_square(errors)
    if released_error > 0:
        ratio = row["records_error"] / released_error
    else:
        ratio = math.inf if np.any(difference) else 1.0
    table = {
        **row,
        "cells": values.size,
        "cells_outside_interval": int(np.count_nonzero(outside)),
        "released_error": released_error,
        "ratio": ratio,
        "nearer": _nearer(ratio),
    }
    beyond = np.where(difference == 0, 0.0, np.inf)
    away = np.divide(np.abs(difference), errors, out=beyond, where=errors > 0)
    farthest = np.argsort(-away, kind="stable")[:_CELLS_OF_A_TABLE]
    chosen = rows.take(pa.array(farthest))
    kinds = [column.name for column in schema.labels]
    labels = [chosen[kind].to_pylist() for kind in kinds]
    cells = pd.DataFrame(
        {
            "table": row["table"],
            "cell": [
                "; ".join(f"{kind}: {text}" for kind, text in zip(kinds, texts, strict=True))
                for texts in (zip(*labels, strict=True) if labels else [()] * len(farthest))
            ],
            "records": values[farthest],
            "released": released[farthest],
            "standard_error": errors[farthest],
            "lower_95": lower[farthest],
            "upper_95": upper[farthest],
            "standard_errors_away": away[farthest],
        },
        columns=list(CELLS_COLUMNS),
    )
    return table, cells
