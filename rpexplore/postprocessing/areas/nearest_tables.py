"""The nearest nonnegative tables with given row and column sums, by least squares.

Minimises ½ Σ (x − y)² with x ≥ 0 and these sums; the best x is max(y + α_row + β_column, 0). The
dual problem in α and β is concave and piecewise quadratic: its maximum over all β for given α, and
over all α for given β, are looked for in turns, which ends at the maximum of all
(docs/mathematics.md §15.10).
"""

from typing import Protocol

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
    shifted = values.copy()
    for last in [False] * (most_rounds - 1) + [True]:
        _fit(_Columns(left), shifted, column_sums, tolerance / 10)
        rows = _Rows(left)
        missed = np.abs(rows.sums(np.maximum(shifted, 0.0)) - row_sums)
        done = np.maximum.reduceat(missed, np.cumsum(left.n_rows) - left.n_rows) <= tolerance
        if last:
            done[:] = True
        if np.any(done):
            finished = done[left.table_of_row][left.rows]
            found[places[finished]] = np.maximum(shifted[finished], 0.0)
            places, shifted = places[~finished], shifted[~finished]
            if not len(places):
                break
            left, of_rows, of_columns = left.some(~done)
            row_sums, column_sums = row_sums[of_rows], column_sums[of_columns]
        _fit(_Rows(left), shifted, row_sums, tolerance / 10)
    return found


class _Lines(Protocol):
    """The rows, or the columns, of tables."""

    of_entries: np.ndarray
    sizes: np.ndarray

    def sums(self, values: np.ndarray) -> np.ndarray: ...


class _Rows:
    def __init__(self, tables: FamilyTables) -> None:
        self.of_entries, self.sums = tables.rows, tables.row_sums
        self.sizes = tables.n_columns[tables.table_of_row]


class _Columns:
    def __init__(self, tables: FamilyTables) -> None:
        self.of_entries = tables.columns
        self.sizes = tables.n_rows[tables.table_of_column]

    def sums(self, values: np.ndarray) -> np.ndarray:
        return np.bincount(self.of_entries, values, minlength=len(self.sizes))


def _fit(lines: _Lines, shifted: np.ndarray, wanted: np.ndarray, tolerance: float) -> None:
    """Shift the entries of each line alike so that those above 0 have the wanted sum.

    By Newton's method: a line's sum is convex in its shift, so that after the first step it is too
    large, and then falls to what is wanted in finitely many steps.
    """
    while True:
        excess = lines.sums(np.maximum(shifted, 0.0)) - wanted
        if np.all(np.abs(excess) <= tolerance):
            return
        counts = lines.sums((shifted > 0).astype(float))
        none = counts == 0
        if np.any(none):
            # All are shifted to have the sum together: then some are above 0.
            excess[none] = (lines.sums(shifted) - wanted)[none]
            counts[none] = lines.sizes[none]
        shifted -= (excess / counts)[lines.of_entries]
