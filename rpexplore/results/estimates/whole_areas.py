"""Whole counts from the top down: nonnegative, and the parts of an area add up to it."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from rpexplore.common.numbers import read_only
from rpexplore.domain.area_tree import AreaTree
from rpexplore.errors import ReleaseError
from rpexplore.results.estimates.area_cells import AreaCells

# All tables of an area are margins of one table of cells, and so agree exactly. Of the parts of an
# area first the totals are found, then tables of more and more attributes up to all cells, each
# with the sums of the one before, that add up to the area's: by least squares, then in whole
# numbers (docs/mathematics.md §15.10). Biased, as whatever is never negative is; deterministic;
# nothing but answers is looked at.


_AT_ONCE = 1 << 21  # cells of parts, 8 bytes each

Answers = Callable[[int, slice], np.ndarray]
"""(level, its areas by their numbers) -> unbiased answers to cells, float64[n_areas, n_cells]."""


@dataclass(frozen=True, eq=False)
class WholeCounts:
    """Consistent counts in whole numbers ≥ 0.

    cells    of which attributes there are counts on each level
    answers  the unbiased ones; 0 in all directions that `cells` calls unknown
    totals   int64[n_areas], of `known_totals`
    """

    tree: AreaTree
    cells: AreaCells
    answers: Answers
    totals: np.ndarray

    def of_top(self) -> np.ndarray:
        """Counts of the top, int64[1, n_cells]."""
        answers = self.answers(0, slice(0, 1))[0]
        first = self.first_of_top(answers)
        return whole_top(self.cells, answers, first, self.cells.stages[0])

    def first_of_top(self, answers: np.ndarray) -> np.ndarray:
        """What the counts of the top are made from: the total, or a table that is exact.

        int64[n_cells of a stage]
        """
        total, order = self.top_total(answers), self.cells.orders[0]
        for count in range(len(order), 0, -1):
            n_cells = int(np.prod([self.cells.sizes[index] for index in order[:count]]))
            if self.cells.is_exact(order[:count]) and n_cells in self.cells.stages[0]:
                own = self.cells.in_stages(answers[None], 0).reshape(n_cells, -1).sum(axis=1)
                return np.maximum(np.rint(own), 0).astype(np.int64)
        return np.array([total])

    def top_total(self, answers: np.ndarray) -> int:
        """The total of the top: the known one, or that of the answers to its cells."""
        known = int(self.totals[0])
        total = max(round(float(np.sum(answers))), 0) if known == UNKNOWN else known
        if total and not np.any(self.cells.possible):
            raise ReleaseError(
                f"All combinations of values are stated to be impossible, but there are {total:,} "
                "records; leave some out."
            )
        return total

    def downwards(
        self,
        level: int,
        areas: slice,
        counts: np.ndarray,
        last: int,
        errors: np.ndarray | None = None,
    ) -> Iterator[tuple[int, slice, np.ndarray, np.ndarray | None]]:
        """Some areas of a level, and all that lies in them down to another: their counts.

        (level, areas by their numbers, counts int64[n_areas, n_cells], squared errors where these
        are estimated): some areas that follow one another, then all within them, so that no more is
        held than counts of some areas of each level. Those of a level come in their order.
        """
        yield level, areas, counts, errors
        if level == last:
            return
        tree = self.tree
        n_parts = tree.n_parts[areas].astype(np.int64)
        divided = np.flatnonzero(n_parts)
        if not len(divided):
            return
        margins = self.cells.margins(counts[divided], level)
        n_parts = n_parts[divided]
        ends = np.cumsum(n_parts)
        start = 0
        while start < len(divided):
            done = ends[start - 1] if start else 0
            fitting = np.searchsorted(ends, done + _AT_ONCE // margins.shape[1], side="right")
            stop = max(int(fitting), start + 1)
            first_part = int(tree.first_parts[areas.start + divided[start]])
            parts = slice(first_part, first_part + int(ends[stop - 1] - done))
            own = None if errors is None else errors[divided[start:stop]]
            found, squared = self.counts_of_parts(
                level + 1,
                np.arange(parts.start, parts.stop),
                n_parts[start:stop],
                margins[start:stop],
                self.answers(level + 1, parts),
                own,
            )
            yield from self.downwards(level + 1, parts, found, last, squared)
            start = stop

    def counts_of_parts(
        self,
        level: int,
        areas: np.ndarray,
        n_parts: np.ndarray,
        above: np.ndarray,
        answers: np.ndarray,
        errors: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Counts of the parts of some areas, int64[n_areas, n_cells], and their squared errors.

        Args:
            level: Of the parts.
            areas: int64[n_areas]: the parts by their numbers, those of an area after another.
            n_parts: int64[n_families], of each of the areas that they are parts of.
            above: int64[n_families, n_cells]: the counts of these.
            answers: float64[n_areas, n_cells], unbiased.
            errors: Squared, of the areas above; not used here, where no error is known.
        """
        totals = self.totals_of_parts(areas, n_parts, above, answers)
        if self.cells.has_unknown(level):
            family = np.repeat(np.arange(len(n_parts)), n_parts)
            shares = totals / np.maximum(above.sum(axis=1), 1)[family]
            answers = answers + self.cells.unknown_part(level, above[family] * shares[:, None])
        return self.in_whole_numbers(level, n_parts, above, totals, answers), None

    def totals_of_parts(
        self, areas: np.ndarray, n_parts: np.ndarray, above: np.ndarray, answers: np.ndarray
    ) -> np.ndarray:
        """Whole totals, int64[n_areas]: the known ones, or the nearest that add up."""
        totals, wholes = self.totals[areas], above.sum(axis=1)
        if not np.any(totals == UNKNOWN):
            return totals
        first = np.cumsum(n_parts) - n_parts
        nearest = nearest_whole_parts(answers.sum(axis=1), first, wholes)
        return np.where(totals == UNKNOWN, nearest, totals)

    def in_whole_numbers(
        self,
        level: int,
        n_parts: np.ndarray,
        above: np.ndarray,
        totals: np.ndarray,
        cells: np.ndarray,
    ) -> np.ndarray:
        """The nearest whole cells ≥ 0 with these sums, stage by stage: int64[n_areas, n_cells].

        cells: float64[n_areas, n_cells]
        """
        cells, above = (self.cells.in_stages(each, level) for each in (cells, above))
        counts = totals[:, None]
        for n_cells in self.cells.stages[level][1:]:
            own, wanted = (
                each.reshape(len(each), n_cells, -1).sum(axis=2) for each in (cells, above)
            )
            counts = _cells_of_parts(own, n_parts, counts, wanted)
        return self.cells.from_stages(counts, level)


def whole_top(
    cells: AreaCells, values: np.ndarray, first: np.ndarray, stages: tuple[int, ...]
) -> np.ndarray:
    """The nearest whole cells ≥ 0 of the top, int64[1, n_cells].

    With fewer stages than all, the last one's cells in the order of `AreaCells.in_stages`.

    values: float64[n_cells]; first: as of `WholeCounts.first_of_top`
    """
    own = cells.in_stages(values[None], 0)[0]
    possible = cells.in_stages(cells.possible[None], 0)[0]
    counts = first
    for n_cells in (each for each in stages if each > len(first)):
        counts = _cells_of_top(
            own.reshape(n_cells, -1).sum(axis=1),
            np.any(possible.reshape(n_cells, -1), axis=1),
            counts,
        )
    complete = len(stages) == len(cells.stages[0])
    return cells.from_stages(counts[None], 0) if complete else counts[None]


def _cells_of_top(answers: np.ndarray, possible: np.ndarray, above: np.ndarray) -> np.ndarray:
    """Whole cells of the top, int64[n_cells], of which those after another add up to `above`.

    possible: bool[n_cells]: where there may be records; somewhere in each count above 0
    """
    counts = np.zeros(len(answers), dtype=np.int64)
    cells = np.flatnonzero(possible & np.repeat(above > 0, len(answers) // len(above)))
    _, first = np.unique(cells // (len(answers) // len(above)), return_index=True)
    if len(cells):
        wholes = above[above > 0]
        counts[cells] = nearest_whole_parts(answers[cells], first, wholes)
    return counts


def _cells_of_parts(
    answers: np.ndarray, n_parts: np.ndarray, margins: np.ndarray, above: np.ndarray
) -> np.ndarray:
    """Whole cells of the parts of some areas, int64[n_areas, n_cells].

    Args:
        answers: float64[n_areas, n_cells].
        n_parts: int64[n_families], of each of the areas that they are parts of.
        margins: int64[n_areas, n_margins]: of cells after another, what they sum to in a part.
        above: int64[n_families, n_cells]: what the parts of an area sum to in a cell.
    """
    n_margins = margins.shape[1]
    # A table for each area and margin cell: a row for each part, a column for each cell in it.
    family = np.repeat(np.arange(len(n_parts)), n_parts)
    order = np.argsort((family[:, None] * n_margins + np.arange(n_margins)).ravel(), kind="stable")
    answers = answers.reshape(len(order), -1)[order]
    row_sums, column_sums = margins.ravel()[order], above.reshape(-1, answers.shape[1])
    n_parts = np.repeat(n_parts, n_margins)
    rows, columns = row_sums > 0, column_sums > 0
    entries = rows[:, None] & np.repeat(columns, n_parts, axis=0)  # of a table, row by row
    counts = np.zeros(entries.shape, dtype=np.int64)
    counted = np.any(columns, axis=1)
    if np.any(counted):
        n_rows = np.add.reduceat(rows, np.cumsum(n_parts) - n_parts, dtype=np.int64)[counted]
        tables = FamilyTables(n_rows, np.count_nonzero(columns, axis=1)[counted])
        row_sums, column_sums = row_sums[rows], column_sums[columns]
        nearest = nearest_tables(
            answers[entries], tables, row_sums.astype(float), column_sums.astype(float)
        )
        counts[entries] = rounded_tables(nearest, tables, row_sums, column_sums)
    found = np.empty_like(counts)
    found[order] = counts
    return found.reshape(len(margins), -1)


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


# ---- Totals of areas that are publicly known, which whole counts are made to meet.
#
# They are not protected: a total that is no public knowledge must not be given here.


UNKNOWN = -1


def known_totals(tree: AreaTree, totals: Mapping[int, int]) -> np.ndarray:
    """Totals by the numbers of areas as int64[n_areas], `UNKNOWN` for all others.

    Raises:
        ReleaseError: For a negative total, parts that do not add up, or parts of which some
            are known and some are not, or that lie in an area whose total is not known.
    """
    found = np.full(tree.n_areas, UNKNOWN, dtype=np.int64)
    areas = np.fromiter(totals.keys(), dtype=np.int64, count=len(totals))
    found[areas] = np.fromiter(totals.values(), dtype=np.int64, count=len(totals))
    if np.any(found[areas] < 0):
        area = int(areas[np.argmax(found[areas] < 0)])
        raise ReleaseError(
            f"The known total of {_name(tree, area)} is negative; it must be 0 or more."
        )
    known = found >= 0
    n_known = np.bincount(tree.parents[1:][known[1:]], minlength=tree.n_areas)
    sums = np.bincount(tree.parents[1:], np.maximum(found[1:], 0), minlength=tree.n_areas)
    for wrong, why in (
        ((n_known > 0) & (n_known < tree.n_parts), "is known for some of its parts only"),
        ((n_known > 0) & ~known, "is known for its parts, but not for itself"),
        (
            (n_known > 0) & (sums != found),
            "is not the sum of those of its parts",
        ),
    ):
        if np.any(wrong):
            area = int(np.argmax(wrong))
            raise ReleaseError(
                f"The total of {_name(tree, area)} {why}; give totals that add up, of all areas "
                "from the top down to a level."
            )
    return read_only(found)


def _name(tree: AreaTree, area: int) -> str:
    return f"the area {' > '.join(tree.path(area)) or tree.levels[0]}"
