"""The nearest nonnegative tables with given row and column sums, by least squares.

Minimises ½ Σ (x − y)² with x ≥ 0 and these sums; the best x is max(y + α_row + β_column, 0). The
dual problem in α and β is concave and piecewise quadratic; Newton steps for all columns and for all
rows in turns go up on it (docs/mathematics.md §15.10).
"""

import numpy as np

from rpexplore.postprocessing.areas.family_tables import FamilyTables

_MOST_ROUNDS = 100


def nearest_parts(values: np.ndarray, first: np.ndarray, totals: np.ndarray) -> np.ndarray:
    """The nearest numbers ≥ 0 that add up to totals: a projection on a simplex for each total.

    Args:
        values: float64[n], those of a total after another.
        first: int64[n_totals]: where the values of each total begin.
        totals: float64[n_totals] ≥ 0.
    """
    sizes = np.diff(first, append=len(values))
    # From here on all sums are too large, and Newton's steps for a convex function stay there.
    shifted = values + np.repeat((totals - np.add.reduceat(values, first)) / sizes, sizes)
    while True:
        found = np.maximum(shifted, 0.0)
        excess = np.add.reduceat(found, first) - totals
        if np.all(excess <= 1e-12 * (1 + totals)):
            return np.where(np.repeat(totals > 0, sizes), found, 0.0)
        positive = np.maximum(np.add.reduceat(shifted > 0, first, dtype=np.int64), 1)
        shifted -= np.repeat(np.maximum(excess, 0.0) / positive, sizes)


def nearest_tables(
    values: np.ndarray,
    tables: FamilyTables,
    row_sums: np.ndarray,
    column_sums: np.ndarray,
    *,
    tolerance: float = 0.01,
    most_rounds: int = _MOST_ROUNDS,
) -> np.ndarray:
    """The nearest entries ≥ 0 with these sums, float64[n_entries], up to the tolerance.

    Args:
        values: float64[n_entries].
        row_sums: float64[n_rows] > 0, in each table with the same total as the columns.
        column_sums: float64[n_columns] > 0.
        tolerance: By how much the sums of a table may be missed at most, in records.
        most_rounds: After which the tables are left as they are.
    """
    found = np.empty_like(values)
    places, left = np.arange(len(values)), tables
    means = (column_sums - left.column_sums(values)) / left.n_rows[left.table_of_column]
    shifted = values + means[left.columns]  # no column's sum of these is too small
    for last in [False] * (most_rounds - 1) + [True]:
        shifted -= _column_step(left, shifted, column_sums)[left.columns]
        step, missed = _row_step(left, shifted, row_sums)
        first_rows = np.cumsum(left.n_rows) - left.n_rows
        done = np.maximum.reduceat(missed, first_rows) <= tolerance
        if last:
            done[:] = True
        if np.any(done):
            finished = done[left.table_of_row][left.rows]
            found[places[finished]] = np.maximum(shifted[finished], 0.0)
            places = places[~finished]
            if not len(places):
                break
            shifted = (shifted - step[left.rows])[~finished]
            left, rows, columns = left.some(~done)
            row_sums, column_sums = row_sums[rows], column_sums[columns]
        else:
            shifted -= step[left.rows]
    return found


def _column_step(tables: FamilyTables, shifted: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """What to take off each column's entries to come nearer to its sum."""
    positive, n = np.maximum(shifted, 0.0), len(wanted)
    counts = np.bincount(tables.columns, shifted > 0, minlength=n)
    sums = np.bincount(tables.columns, positive, minlength=n)
    if np.any(counts == 0):
        # All are shifted to have the sum together: then some are positive.
        none = counts == 0
        sums[none] = np.bincount(tables.columns, shifted, minlength=n)[none]
        counts[none] = tables.n_rows[tables.table_of_column][none]
    return (sums - wanted) / counts


def _row_step(
    tables: FamilyTables, shifted: np.ndarray, wanted: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The same for rows; and by how much each misses its sum."""
    counts = tables.row_sums((shifted > 0).astype(np.int64))
    sums = tables.row_sums(np.maximum(shifted, 0.0))
    missed = np.abs(sums - wanted)
    if np.any(counts == 0):
        none = counts == 0
        sums[none] = tables.row_sums(shifted)[none]
        counts[none] = tables.n_columns[tables.table_of_row][none]
    return (sums - wanted) / counts, missed
