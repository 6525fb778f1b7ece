"""Tables of parts of areas, many after another: the nearest with given sums, and whole ones."""

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

# ---- Tables with a row for each part of an area and a column for each cell, many after another.


@dataclass(frozen=True, eq=False)
class FamilyTables:
    """How tables of different sizes lie in one array, each of them row by row.

    n_rows, n_columns  int64[n_tables], above 0
    """

    n_rows: np.ndarray
    n_columns: np.ndarray

    @cached_property
    def table_of_row(self) -> np.ndarray:
        """int64[n_rows of all]."""
        return np.repeat(np.arange(len(self.n_rows)), self.n_rows)

    @cached_property
    def table_of_column(self) -> np.ndarray:
        """int64[n_columns of all]."""
        return np.repeat(np.arange(len(self.n_columns)), self.n_columns)

    @cached_property
    def row_starts(self) -> np.ndarray:
        """The entry that each row begins with, int64[n_rows of all]."""
        widths = self.n_columns[self.table_of_row]
        return np.cumsum(widths) - widths

    @cached_property
    def column_starts(self) -> np.ndarray:
        """Where each column begins in entries in the order of `by_column`."""
        heights = self.n_rows[self.table_of_column]
        return np.cumsum(heights) - heights

    @cached_property
    def rows(self) -> np.ndarray:
        """The row of each entry, int32."""
        widths = self.n_columns[self.table_of_row]
        return np.repeat(np.arange(len(widths), dtype=np.int32), widths)

    @cached_property
    def columns(self) -> np.ndarray:
        """The column of each entry, int32."""
        first = np.cumsum(self.n_columns) - self.n_columns
        offsets = first[self.table_of_row] - self.row_starts
        return (np.arange(len(self.rows)) + offsets[self.rows]).astype(np.int32)

    @cached_property
    def by_column(self) -> np.ndarray:
        """The entries column by column, int64."""
        return np.argsort(self.columns, kind="stable")

    def entries(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """The entry in a row and a column of the same table, for each of them."""
        first = np.cumsum(self.n_columns) - self.n_columns
        return self.row_starts[rows] + columns - first[self.table_of_column[columns]]

    def row_sums(self, values: np.ndarray) -> np.ndarray:
        """Of numbers for entries, [n_rows of all]."""
        return np.add.reduceat(values, self.row_starts)

    def column_sums(self, values: np.ndarray) -> np.ndarray:
        """Of numbers for entries, [n_columns of all]."""
        return np.add.reduceat(values[self.by_column], self.column_starts)

    def some(self, tables: np.ndarray) -> tuple["FamilyTables", np.ndarray, np.ndarray]:
        """Some of the tables, bool[n_tables]; and whether each row, and each column, is theirs."""
        return (
            FamilyTables(self.n_rows[tables], self.n_columns[tables]),
            tables[self.table_of_row],
            tables[self.table_of_column],
        )


# ---- The nearest nonnegative tables with given row and column sums, by least squares.
#
# Minimises ½ Σ (x − y)² with x ≥ 0 and these sums; the best x is max(y + α_row + β_column, 0). The
# dual problem in α and β is concave and piecewise quadratic: its maximum over all β for given α,
# and over all α for given β, are looked for in turns, which ends at the maximum of all
# (docs/mathematics.md §15.10).


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


def nearest_whole_parts(values: np.ndarray, first: np.ndarray, wholes: np.ndarray) -> np.ndarray:
    """The nearest numbers ≥ 0 that add up to whole ones, then whole: the largest fractions go up.

    Args:
        values: float64[n], those of a whole after another.
        first: int64[n_wholes]: where the values of each begin.
        wholes: int64[n_wholes] ≥ 0.
    """
    values = nearest_parts(values, first, wholes.astype(float))
    sizes = np.diff(first, append=len(values))
    family = np.repeat(np.arange(len(first)), sizes)
    below = np.floor(values + 1e-9)
    missing = wholes - np.add.reduceat(below, first).astype(np.int64)
    order = np.lexsort((below - values, family))
    rank = np.empty(len(values), dtype=np.int64)
    rank[order] = np.arange(len(values)) - first[family]
    return below.astype(np.int64) + (rank < missing[family])


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


# ---- Controlled rounding: tables in whole numbers whose row and column sums stay as they are.
#
# Each entry becomes one of its two whole neighbours (Cox 1987 shows that this can always be done).
# Binary digit by binary digit from the lowest on: as the sums are whole, every row and column has
# an even number of entries with the digit, so that these entries are paired within their rows and
# within their columns. Going from pair to pair leads around cycles, along which entries are changed
# up and down in turns, in whichever of the two ways is nearer to the numbers that are rounded.


DIGITS = 24  # binary digits of a fraction


def rounded_tables(
    values: np.ndarray, tables: FamilyTables, row_sums: np.ndarray, column_sums: np.ndarray
) -> np.ndarray:
    """Whole numbers ≥ 0 with exactly these sums, int64[n_entries].

    Numbers that do not have these sums yet are made to have them first, with little change where
    they nearly do. Then each entry moves by less than 1.

    Args:
        values: float64[n_entries] ≥ 0.
        row_sums: int64[n_rows] ≥ 0, in each table with the same total as the columns.
        column_sums: int64[n_columns] ≥ 0.
    """
    numbers = _with_sums(values, tables, row_sums, column_sums)
    unit = np.int64(1) << DIGITS
    fractional = np.flatnonzero(numbers % unit)  # row by row
    own, columns = numbers[fractional], tables.columns[fractional]
    by_column, wanted = np.argsort(columns, kind="stable"), own.copy()
    for digit in range(DIGITS):
        step = np.int64(1) << digit
        has_digit = (own & step) != 0
        at = np.flatnonzero(has_digit)
        if len(at):
            position = np.cumsum(has_digit) - 1
            in_columns = position[by_column[has_digit[by_column]]]
            up = _turns(in_columns, (own - wanted)[at])
            own[at] += np.where(up, step, -step)
    numbers[fractional] = own
    return numbers >> DIGITS


def _turns(in_columns: np.ndarray, excess: np.ndarray) -> np.ndarray:
    """Which entries go up, bool[n]; the others go down, as many in each row and column.

    in_columns: the entries, which are numbered row by row, in the order of their columns
    excess: by how much each is above what it should be
    """
    n = len(excess)
    row_partner = np.arange(n) ^ 1
    column_partner = np.empty(n, dtype=np.int64)
    column_partner[in_columns[0::2]], column_partner[in_columns[1::2]] = (
        in_columns[1::2],
        in_columns[0::2],
    )
    # Two steps at a time lead around a cycle through every second entry of it.
    two_steps = csr_array(
        (np.ones(n, dtype=np.int8), column_partner[row_partner], np.arange(n + 1)), shape=(n, n)
    )
    _, halves = connected_components(two_steps, directed=False)
    sums = np.bincount(halves, excess)
    own, others = sums[halves], sums[halves[row_partner]]
    return (own < others) | ((own == others) & (halves < halves[row_partner]))


def _with_sums(
    values: np.ndarray, tables: FamilyTables, row_sums: np.ndarray, column_sums: np.ndarray
) -> np.ndarray:
    """Whole multiples ≥ 0 of 2^−DIGITS that have the sums, int64[n_entries].

    Rows and columns that are too large are scaled down, and what then is missing is filled in
    (Altschuler, Weed and Rigollet 2017), here from the first row and column of a table on.
    """
    scaled = values * _at_most_one(column_sums, tables.column_sums(values))[tables.columns]
    scaled *= _at_most_one(row_sums, tables.row_sums(scaled))[tables.rows]
    # A sum in floats can be above what it should be by its last digits.
    numbers = np.floor(scaled * (2.0**DIGITS * (1 - 1e-12))).astype(np.int64)
    missing_in_rows = (row_sums << DIGITS) - tables.row_sums(numbers)
    missing_in_columns = (column_sums << DIGITS) - tables.column_sums(numbers)
    ends = [np.cumsum(missing) for missing in (missing_in_rows, missing_in_columns)]
    # Both lists of sums go up to the same total in every table: between two neighbouring ends
    # there is one row and one column.
    points = np.union1d(*ends)
    points = points[points > 0]
    amounts = np.diff(points, prepend=0)
    row, column = (np.searchsorted(end, points) for end in ends)
    np.add.at(numbers, tables.entries(row, column), amounts)
    return numbers


def _at_most_one(wanted: np.ndarray, found: np.ndarray) -> np.ndarray:
    return np.divide(wanted, found, out=np.ones(len(found)), where=found > wanted)
