"""Whole counts from the top down: nonnegative, and the parts of an area add up to it.

All tables of an area are margins of one table of cells, and so agree exactly. Of the parts of an
area first the totals are found, then the cells with these totals that add up to the area's cells:
by least squares, then in whole numbers (docs/mathematics.md §15.10). Biased, as whatever is
never negative is; deterministic; nothing but answers is looked at.
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
        possible = self.cells.possible
        answers, known = self.answers(0, slice(0, 1))[0], int(self.totals[0])
        total = max(round(float(np.sum(answers))), 0) if known == UNKNOWN else known
        counts = np.zeros((1, len(possible)), dtype=np.int64)
        if total and not np.any(possible):
            raise ReleaseError(
                f"All combinations of values are stated to be impossible, but there are {total:,} "
                "records; leave some out."
            )
        if total:
            first, totals = np.zeros(1, dtype=np.int64), np.array([total])
            nearest = nearest_parts(answers[possible], first, totals.astype(float))
            counts[0, possible] = _whole_parts(nearest, first, totals)
        return counts

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
        rows, columns = totals > 0, above > 0
        entries = rows[:, None] & columns[family]  # those of a family are a table, row by row
        counts = np.zeros(entries.shape, dtype=np.int64)
        counted = wholes > 0
        if np.any(counted):
            n_rows = np.add.reduceat(rows, first, dtype=np.int64)[counted]
            tables = FamilyTables(n_rows, np.count_nonzero(columns, axis=1)[counted])
            row_sums, column_sums = totals[rows], above[columns]
            nearest = nearest_tables(
                answers[entries], tables, row_sums.astype(float), column_sums.astype(float)
            )
            counts[entries] = rounded_tables(nearest, tables, row_sums, column_sums)
        return counts


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
