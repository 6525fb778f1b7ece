"""Whole counts from the top down: nonnegative, and the parts of an area add up to it.

All tables of an area are margins of one table of cells, and so agree exactly. Of the parts of an
area first the totals are found, then tables of more and more attributes up to all cells, each with
the sums of the one before, that add up to the area's: by least squares, then in whole numbers
(docs/mathematics.md §15.10). Biased, as whatever is never negative is; deterministic; nothing but
answers is looked at.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from rpexplore.domain.area_tree import AreaTree
from rpexplore.errors import ReleaseError
from rpexplore.postprocessing.areas.area_cells import AreaCells
from rpexplore.postprocessing.areas.controlled_rounding import rounded_tables
from rpexplore.postprocessing.areas.family_tables import FamilyTables
from rpexplore.postprocessing.areas.known_totals import UNKNOWN
from rpexplore.postprocessing.areas.nearest_tables import nearest_parts, nearest_tables

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
        answers, known = self.answers(0, slice(0, 1))[0], int(self.totals[0])
        total = max(round(float(np.sum(answers))), 0) if known == UNKNOWN else known
        if total and not np.any(self.cells.possible):
            raise ReleaseError(
                f"All combinations of values are stated to be impossible, but there are {total:,} "
                "records; leave some out."
            )
        own = self.cells.in_stages(answers[None], 0)[0]
        possible = self.cells.in_stages(self.cells.possible[None], 0)[0]
        counts = np.array([total])
        for n_cells in self.cells.stages[0][1:]:
            counts = _cells_of_top(
                own.reshape(n_cells, -1).sum(axis=1),
                np.any(possible.reshape(n_cells, -1), axis=1),
                counts,
            )
        return self.cells.from_stages(counts[None], 0)

    def downwards(
        self, level: int, areas: slice, counts: np.ndarray, last: int
    ) -> Iterator[tuple[int, slice, np.ndarray]]:
        """Some areas of a level, and all that lies in them down to another: their counts.

        (level, areas by their numbers, counts int64[n_areas, n_cells]): some areas that follow one
        another, then all within them, so that no more is held than counts of some areas of each
        level. Those of a level come in their order.
        """
        yield level, areas, counts
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
            found = self._parts(level + 1, parts, n_parts[start:stop], margins[start:stop])
            yield from self.downwards(level + 1, parts, found, last)
            start = stop

    def _parts(
        self, level: int, areas: slice, n_parts: np.ndarray, above: np.ndarray
    ) -> np.ndarray:
        """Counts of the parts of some areas of which these are the counts, [n_areas, n_cells]."""
        answers, wholes = self.answers(level, areas), above.sum(axis=1)
        first = np.cumsum(n_parts) - n_parts
        family = np.repeat(np.arange(len(n_parts)), n_parts)
        totals = self.totals[areas]
        if np.any(totals == UNKNOWN):
            nearest = nearest_parts(answers.sum(axis=1), first, wholes.astype(float))
            totals = np.where(totals == UNKNOWN, _whole_parts(nearest, first, wholes), totals)
        if self.cells.has_unknown(level):
            shares = totals / np.maximum(wholes, 1)[family]
            answers = answers + self.cells.unknown_part(level, above[family] * shares[:, None])
        answers, above = (self.cells.in_stages(each, level) for each in (answers, above))
        counts = totals[:, None]
        for n_cells in self.cells.stages[level][1:]:
            own, wanted = (
                each.reshape(len(each), n_cells, -1).sum(axis=2) for each in (answers, above)
            )
            counts = _cells_of_parts(own, n_parts, counts, wanted)
        return self.cells.from_stages(counts, level)


def _cells_of_top(answers: np.ndarray, possible: np.ndarray, above: np.ndarray) -> np.ndarray:
    """Whole cells of the top, int64[n_cells], of which those after another add up to `above`.

    possible: bool[n_cells]: where there may be records; somewhere in each count above 0
    """
    counts = np.zeros(len(answers), dtype=np.int64)
    cells = np.flatnonzero(possible & np.repeat(above > 0, len(answers) // len(above)))
    _, first = np.unique(cells // (len(answers) // len(above)), return_index=True)
    if len(cells):
        wholes = above[above > 0]
        nearest = nearest_parts(answers[cells], first, wholes.astype(float))
        counts[cells] = _whole_parts(nearest, first, wholes)
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


def _whole_parts(values: np.ndarray, first: np.ndarray, wholes: np.ndarray) -> np.ndarray:
    """Values ≥ 0 that add up to whole numbers, in whole numbers: the largest fractions go up."""
    sizes = np.diff(first, append=len(values))
    family = np.repeat(np.arange(len(first)), sizes)
    below = np.floor(values + 1e-9)
    missing = wholes - np.add.reduceat(below, first).astype(np.int64)
    order = np.lexsort((below - values, family))
    rank = np.empty(len(values), dtype=np.int64)
    rank[order] = np.arange(len(values)) - first[family]
    return below.astype(np.int64) + (rank < missing[family])
