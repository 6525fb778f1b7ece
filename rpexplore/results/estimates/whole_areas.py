"""Whole counts from the top down: nonnegative, and the parts of an area add up to it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from rpexplore.common.numbers import read_only
from rpexplore.domain.area_tree import AreaTree
from rpexplore.errors import ReleaseError
from rpexplore.results.estimates.area_cells import AreaCells
from rpexplore.results.estimates.family_tables import (
    FamilyTables,
    nearest_parts,
    nearest_tables,
    nearest_whole_parts,
    rounded_tables,
)
from rpexplore.results.estimates.nearer_tables import with_nearer_parts, with_nearer_tables

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
    noise    of each level the mean variance of an answer to a cell; 0: what is known is kept as
             nearly as counts can
    """

    tree: AreaTree
    cells: AreaCells
    answers: Answers
    totals: np.ndarray
    noise: Sequence[float] = field(default=(), kw_only=True)

    def of_top(self) -> np.ndarray:
        """Counts of the top, int64[1, n_cells]."""
        answers = self.answers(0, slice(0, 1))[0]
        first = self.first_of_top(answers)
        noise = self.noise[0] if self.noise else 0.0
        return whole_top(self.cells, answers, first, self.cells.stages[0], noise)

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
        stages = self.cells.stages[level]
        cells, above = (self.cells.in_stages(each, level) for each in (cells, above))
        counts = totals[:, None]
        for n_cells in stages[1:]:
            own, wanted = (
                each.reshape(len(each), n_cells, -1).sum(axis=2) for each in (cells, above)
            )
            if n_cells == stages[-1] and self.cells.has_unknown(level):
                counts = self._with_near_tables(level, own, n_parts, counts, wanted)
            else:
                sums = PartSums(n_parts, counts, wanted)
                counts = sums.rounded(sums.nearest(own))
        return self.cells.from_stages(counts, level)

    def _with_near_tables(
        self,
        level: int,
        values: np.ndarray,
        n_parts: np.ndarray,
        margins: np.ndarray,
        above: np.ndarray,
    ) -> np.ndarray:
        """Whole cells with these sums whose known tables are near those of the values.

        As of `in_whole_numbers`, all in the order of stages.
        """
        unknown = self.cells.unknown_in_stages(level)
        noise = self.noise[level] if self.noise else 0.0
        weights = weight_of_unknown(noise, margins.sum(axis=1), n_parts, values.shape[1])
        nearest = nearest_in_known(values, n_parts, margins, above, unknown, weights)
        counts = PartSums(n_parts, margins, above).rounded(nearest)
        tables = self.cells.known_tables_in_stages(level)
        first = np.cumsum(n_parts) - n_parts
        for start, n in zip(first.tolist(), n_parts.tolist(), strict=True):
            own = slice(start, start + n)
            counts[own] = with_nearer_parts(counts[own], nearest[own], tables, margins.shape[1])
        return counts


def whole_top(
    cells: AreaCells,
    values: np.ndarray,
    first: np.ndarray,
    stages: tuple[int, ...],
    noise: float = 0.0,
) -> np.ndarray:
    """The nearest whole cells ≥ 0 of the top, int64[1, n_cells].

    With fewer stages than all, the last one's cells in the order of `AreaCells.in_stages`.

    values: float64[n_cells]; first: as of `WholeCounts.first_of_top`; noise: as of `WholeCounts`
    """
    own = cells.in_stages(values[None], 0)[0]
    possible = cells.in_stages(cells.possible[None], 0)[0]
    counts = first
    for n_cells in (each for each in stages if each > len(first)):
        within = TopSums(np.any(possible.reshape(n_cells, -1), axis=1), counts)
        answers = own.reshape(n_cells, -1).sum(axis=1)
        if n_cells == cells.stages[0][-1] and cells.has_unknown(0):
            counts = _top_with_near_tables(cells, answers, within, noise)
        else:
            counts = within.rounded(answers)
    complete = len(stages) == len(cells.stages[0])
    return cells.from_stages(counts[None], 0) if complete else counts[None]


@dataclass(frozen=True, eq=False)
class TopSums:
    """What the cells of the top must sum to.

    possible  bool[n_cells]: where there may be records; somewhere in each count above 0
    above     int64[n]: what cells after another sum to
    """

    possible: np.ndarray
    above: np.ndarray

    @cached_property
    def cells(self) -> np.ndarray:
        """Those that may be above 0, int64."""
        n_within = len(self.possible) // len(self.above)
        return np.flatnonzero(self.possible & np.repeat(self.above > 0, n_within))

    @cached_property
    def _first(self) -> np.ndarray:
        n_within = len(self.possible) // len(self.above)
        return np.unique(self.cells // n_within, return_index=True)[1]

    def nearest(self, values: np.ndarray) -> np.ndarray:
        """The nearest cells ≥ 0, float64[n_cells]."""
        found, wholes = np.zeros(len(values)), self.above[self.above > 0].astype(float)
        if len(self.cells):
            found[self.cells] = nearest_parts(values[self.cells], self._first, wholes)
        return found

    def rounded(self, values: np.ndarray) -> np.ndarray:
        """The same in whole numbers, int64[n_cells]."""
        found, wholes = np.zeros(len(values), dtype=np.int64), self.above[self.above > 0]
        if len(self.cells):
            found[self.cells] = nearest_whole_parts(values[self.cells], self._first, wholes)
        return found


def _top_with_near_tables(
    cells: AreaCells, values: np.ndarray, sums: TopSums, noise: float
) -> np.ndarray:
    """Whole cells with these sums whose known tables are near those of the values.

    As `nearest_in_known`, for one area.
    """
    unknown = cells.unknown_in_stages(0)
    found = ahead = sums.nearest(values)
    (weight,) = weight_of_unknown(
        noise, sums.above.sum(keepdims=True), np.ones(1, int), len(values)
    )
    speed = 1.0
    for _ in range(10 * _MOST_ROUNDS_OF_KNOWN):
        off = found - values
        if np.max(np.abs(off - unknown(off[None])[0])) <= _MET:
            break
        wanted = values + (1 - weight) * unknown((ahead - values)[None])[0]
        following = sums.nearest(wanted)
        moved = following - found
        speed = 1.0 if (ahead - wanted) @ moved > 0 else speed
        faster = (1 + np.sqrt(1 + 4 * speed**2)) / 2
        found, ahead, speed = following, following + (speed - 1) / faster * moved, faster
        if np.max(np.abs(moved)) <= _MET / 10:
            break
    counts, places = sums.rounded(found), sums.cells
    tables = cells.known_tables_in_stages(0)
    wanted = [np.bincount(own, found) for own in tables]
    within = np.stack([own[places] for own in tables])
    kept = places // (len(values) // len(sums.above))
    counts[places] = with_nearer_tables(counts[places], within, wanted, kept)
    return counts


@dataclass(frozen=True, eq=False)
class PartSums:
    """What the cells of the parts of some areas must sum to.

    n_parts  int64[n_families], of each of the areas that they are parts of
    margins  int64[n_areas, n_margins]: of cells after another, what they sum to in a part
    above    int64[n_families, n_cells]: what the parts of an area sum to in a cell
    """

    n_parts: np.ndarray
    margins: np.ndarray
    above: np.ndarray

    @cached_property
    def _order(self) -> np.ndarray:
        """A table for each area and margin: a row for each part, a column for each cell in it."""
        n_margins = self.margins.shape[1]
        family = np.repeat(np.arange(len(self.n_parts)), self.n_parts)
        numbers = family[:, None] * n_margins + np.arange(n_margins)
        return np.argsort(numbers.ravel(), kind="stable")

    @cached_property
    def _tables(self) -> tuple[FamilyTables, np.ndarray, np.ndarray, np.ndarray] | None:
        """Tables with somebody, where their entries are in all, and their sums of rows, columns."""
        n_margins = self.margins.shape[1]
        row_sums = self.margins.ravel()[self._order]
        column_sums = self.above.reshape(len(self.n_parts) * n_margins, -1)
        n_parts = np.repeat(self.n_parts, n_margins)
        rows, columns = row_sums > 0, column_sums > 0
        counted = np.any(columns, axis=1)
        if not np.any(counted):
            return None
        entries = rows[:, None] & np.repeat(columns, n_parts, axis=0)  # of a table, row by row
        n_rows = np.add.reduceat(rows, np.cumsum(n_parts) - n_parts, dtype=np.int64)[counted]
        tables = FamilyTables(n_rows, np.count_nonzero(columns, axis=1)[counted])
        return tables, entries, row_sums[rows], column_sums[columns]

    def nearest(self, values: np.ndarray, tolerance: float = 0.01) -> np.ndarray:
        """The nearest cells ≥ 0 with these sums, float64[n_areas, n_cells] as the values."""
        return self._by_table(
            values,
            lambda own, tables, rows, columns: nearest_tables(
                own, tables, rows.astype(float), columns.astype(float), tolerance=tolerance
            ),
        )

    def rounded(self, values: np.ndarray) -> np.ndarray:
        """Cells that have these sums nearly in whole numbers with exactly these sums, int64."""
        return self._by_table(values, rounded_tables).astype(np.int64)

    def _by_table(self, values: np.ndarray, cells_of: Callable[..., np.ndarray]) -> np.ndarray:
        own = values.reshape(len(self._order), -1)[self._order]
        cells = np.zeros_like(own)
        if self._tables is not None:
            tables, entries, *sums = self._tables
            cells[entries] = cells_of(own[entries], tables, *sums)
        found = np.empty_like(cells)
        found[self._order] = cells
        return found.reshape(len(self.margins), -1)


def weight_of_unknown(
    noise: float, totals: np.ndarray, n_parts: np.ndarray, n_cells: int
) -> np.ndarray:
    """How much the unknown part of tables counts beside what is known, float64[n_families].

    What is unknown of a part is taken from the whole, from which it differs by chance, with the
    variance of a mean cell; what is known has the variance of the noise. Without noise, 0.
    """
    first = np.cumsum(n_parts) - n_parts
    cell = np.add.reduceat(totals, first) / (n_parts * n_cells)
    return noise / np.maximum(noise + cell, np.finfo(float).tiny)


_MOST_ROUNDS_OF_KNOWN = 200
_MET = 0.02  # records by which cells may be off in what is known


def nearest_in_known(
    values: np.ndarray,
    n_parts: np.ndarray,
    margins: np.ndarray,
    above: np.ndarray,
    unknown: Callable[[np.ndarray], np.ndarray],
    weights: np.ndarray,
) -> np.ndarray:
    """Cells ≥ 0 with the sums of `PartSums`, the nearest to the values in what is known of these.

    The distance is ½ |K(x − y)|² + ½ w |U(x − y)|², where U x is what is `unknown` of tables and
    K x all else of them; w float64[n_families]. Gradient steps have the length 1: the values, with
    the unknown part of the cells before in place of their own but for w, and then the nearest cells
    to that; accelerated, family by family (Beck and Teboulle 2009; begun anew where it turns
    uphill, O'Donoghue and Candès 2015).
    """
    found = PartSums(n_parts, margins, above).nearest(values)
    family = np.repeat(np.arange(len(n_parts)), n_parts)
    left, cells, ahead = np.arange(len(n_parts)), found, found
    speed, kept = np.ones(len(n_parts)), 1 - weights
    for _ in range(_MOST_ROUNDS_OF_KNOWN):
        own = np.flatnonzero(np.isin(family, left))
        places = np.searchsorted(left, family[own])
        first = np.searchsorted(family[own], left)
        off = cells - values[own]
        off -= unknown(off)
        met = np.maximum.reduceat(np.max(np.abs(off), axis=1), first) <= _MET
        wanted = values[own] + kept[left][places][:, None] * unknown(ahead - values[own])
        sums = PartSums(n_parts[left], margins[own], above[left])
        following = sums.nearest(wanted, _MET / 10)
        moved = following - cells
        uphill = np.add.reduceat(np.sum((ahead - wanted) * moved, axis=1), first) > 0
        speed[uphill] = 1.0
        faster = (1 + np.sqrt(1 + 4 * speed**2)) / 2
        ahead = following + ((speed - 1) / faster)[places][:, None] * moved
        found[own] = np.where(met[places][:, None], cells, following)
        done = met | (np.maximum.reduceat(np.max(np.abs(moved), axis=1), first) <= _MET / 10)
        if np.all(done):
            break
        stays = ~done[places]
        cells, ahead, speed, left = following[stays], ahead[stays], faster[~done], left[~done]
    return found


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
