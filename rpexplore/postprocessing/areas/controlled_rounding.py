"""Controlled rounding: tables in whole numbers whose row and column sums stay as they are.

Each entry becomes one of its two whole neighbours (Cox 1987 shows that this can always be done).
Binary digit by binary digit from the lowest on: as the sums are whole, every row and column has an
even number of entries with the digit, so that these entries are paired within their rows and
within their columns. Going from pair to pair leads around cycles, along which entries are changed
up and down in turns, in whichever of the two ways is nearer to the numbers that are rounded.
"""

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from rpexplore.postprocessing.areas.family_tables import FamilyTables

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
