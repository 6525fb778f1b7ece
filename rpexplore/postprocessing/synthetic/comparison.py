"""The tables of synthetic records beside the released ones: where records may be used, where not.

A table of records differs from the released one by the noise of the release and by the error of the
records, so that the mean of the squared differences, less that of the squared standard errors,
estimates the squared error of the records (docs/mathematics.md §14.4). Records that were fitted to
the same noise come out a little better than they are.
"""

import math
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa

from rpexplore.common.concurrency import Progress, in_order
from rpexplore.planning.mechanism.reconstruction import answers
from rpexplore.postprocessing.estimates import Estimates
from rpexplore.postprocessing.table_queries import queries_of_tables
from rpexplore.releases.table_cells import ESTIMATES
from rpexplore.releases.table_release import Release
from rpexplore.workload.query_matrix import QueryMatrix

TABLES_COLUMNS = {
    "table": pa.string(),
    "cells": pa.int64(),
    "cells_outside_interval": pa.int64(),
    "released_error": pa.float64(),
    "difference": pa.float64(),
    "records_error": pa.float64(),
    "ratio": pa.float64(),
    "use": pa.string(),
}
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
_CELLS_LISTED, _CELLS_OF_A_TABLE = 1000, 20


@dataclass(frozen=True, eq=False)
class Comparison:
    """How far the records' tables are from the released ones, in released counts.

    tables  one row a table, the worst for the records first: `table` (its attributes), `cells`,
            `cells_outside_interval` (those where the records' count is outside the released 95 %
            interval), `released_error` (root mean square of the standard errors), `difference`
            (of records and release), `records_error` (estimated), `ratio` of the two errors,
            `use`: "records" or "table", whichever is estimated to be nearer to the true counts
    cells   the cells where records and release are most standard errors apart, worst first
    """

    tables: pd.DataFrame
    cells: pd.DataFrame


def compare(
    source: Release | Estimates,
    attributes: Sequence[int],
    codes: np.ndarray,
    total: float,
    on_progress: Progress,
) -> Comparison:
    """Compare records with all tables that were released.

    Args:
        attributes: Those of the records, by their indices in the domain.
        codes: The records' values, int16[n, d].
        total: What the records' counts are scaled to: the total of what they were fitted to.
    """
    queries, names = queries_of_tables(source), source.table_names
    columns = {index: codes[:, i] for i, index in enumerate(attributes)}
    scale = total / len(codes)

    def compared(position: int) -> tuple[dict[str, object], pd.DataFrame]:
        indices = source.domain.positions(names[position])
        shape = tuple(source.domain.sizes[list(indices)].tolist())
        counts = scale * _counts([columns[index] for index in indices], shape, len(codes))
        if isinstance(source, Release):
            rows = source.cells(position)
        else:
            rows = source.cells(names[position])
        return _compared(", ".join(names[position]) or "total", counts, queries[position], rows)

    tables, worst = [], []
    with closing(in_order(compared, range(len(names)))) as results:
        for position, (table, cells) in enumerate(results):
            tables.append(table)
            worst.append(cells)
            if position % 16 == 0:
                on_progress("Comparing their tables with the released ones", position / len(names))
    by_table = pd.DataFrame(tables, columns=list(TABLES_COLUMNS))
    by_table = by_table.sort_values(["ratio", "table"], ascending=[False, True])
    cells = pd.concat(worst).sort_values("standard_errors_away", ascending=False, kind="stable")
    return Comparison(
        by_table.reset_index(drop=True), cells.head(_CELLS_LISTED).reset_index(drop=True)
    )


def _counts(columns: Sequence[np.ndarray], shape: tuple[int, ...], n: int) -> np.ndarray:
    if not columns:
        return np.array(float(n))
    cells = np.ravel_multi_index(tuple(column.astype(np.int64) for column in columns), shape)
    return np.bincount(cells, minlength=math.prod(shape)).reshape(shape).astype(float)


def _compared(
    name: str, counts: np.ndarray, queries: Sequence[QueryMatrix | None], rows: pa.Table
) -> tuple[dict[str, object], pd.DataFrame]:
    """The row of a table, and those cells of it that are farthest apart."""
    values = answers(counts, queries).ravel()
    released, errors, lower, upper = (rows[column].to_numpy() for column in ESTIMATES)
    difference = values - released
    squared, noise = float(np.mean(difference**2)), float(np.mean(errors**2))
    records_error = math.sqrt(max(squared - noise, 0.0))
    outside = (values < lower) | (values > upper)
    table = {
        "table": name,
        "cells": values.size,
        "cells_outside_interval": int(np.count_nonzero(outside)),
        "released_error": math.sqrt(noise),
        "difference": math.sqrt(squared),
        "records_error": records_error,
        "ratio": records_error / math.sqrt(noise),
        "use": "table" if records_error > math.sqrt(noise) else "records",
    }
    away = np.abs(difference) / errors
    farthest = np.argsort(-away, kind="stable")[:_CELLS_OF_A_TABLE]
    chosen = rows.take(pa.array(farthest))
    labels = [chosen.column(i).to_pylist() for i in range(rows.num_columns - len(ESTIMATES))]
    kinds = rows.column_names[: len(labels)]
    cells = pd.DataFrame(
        {
            "table": name,
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
