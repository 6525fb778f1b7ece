"""Records with exact totals: the fewest of those drawn are changed so that all totals are met.

Of each total in turn, records are moved from cells that have too many to cells that have too few,
first where the cells differ in one attribute alone, then in two, and so on. Attributes of totals
that were met before stay as they are: these have the same margins as the total, as all are counts
of the same records, so that what is too much and too little is the same within each of their cells
(docs/mathematics.md §14.3).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rpexplore.common.seeded_numbers import SeededNumbers
from rpexplore.results.synthetic.impossible import Impossible


@dataclass(frozen=True, eq=False)
class ExactMargin:
    """A total that records are to have.

    attributes  positions of the records' attributes, ascending
    counts      int64, one axis an attribute
    """

    attributes: tuple[int, ...]
    counts: np.ndarray

    def missing(self, codes: np.ndarray) -> np.ndarray:
        """How many records each cell has too few: int64, as `counts`."""
        counted = np.bincount(self.cells(codes), minlength=self.counts.size)
        return self.counts - counted.reshape(self.counts.shape)

    def cells(self, codes: np.ndarray) -> np.ndarray:
        """The cell of each record, [n, d]: int64[n]."""
        own = codes[:, list(self.attributes)].T.astype(np.int64)
        return np.asarray(np.ravel_multi_index(tuple(own), self.counts.shape))


def in_order(margins: Sequence[ExactMargin]) -> list[ExactMargin]:
    """Totals that can all be met one after another; others are left out.

    What a total shares with those before is all in one of them.
    """
    left, found = sorted(margins, key=lambda one: (-len(one.attributes), one.attributes)), []
    seen: set[int] = set()
    while left:
        for margin in left:
            shared = seen & set(margin.attributes)
            if not shared or any(shared <= set(other.attributes) for other in found):
                break
        else:
            break
        left.remove(margin)
        found.append(margin)
        seen |= set(margin.attributes)
    return found


def with_exact_margins(
    codes: np.ndarray, margins: Sequence[ExactMargin], impossible: Impossible, seed: bytes
) -> np.ndarray:
    """Records that have these totals where no change makes one impossible, [n, d].

    codes: of as many records as the totals count; it is not changed
    """
    codes, numbers = codes.copy(), SeededNumbers(seed)
    fixed: set[int] = set()
    for margin in margins:
        kept = [axis for axis, index in enumerate(margin.attributes) if index in fixed]
        for n_changed in range(1, len(margin.attributes) - len(kept) + 1):
            _move(codes, margin, kept, n_changed, impossible, numbers)
        fixed |= set(margin.attributes)
    return codes


def _move(
    codes: np.ndarray,
    margin: ExactMargin,
    kept: Sequence[int],
    n_changed: int,
    impossible: Impossible,
    numbers: SeededNumbers,
) -> None:
    """Move records between cells that differ in so many attributes, none of them on kept axes."""
    missing, cells = margin.missing(codes).ravel(), margin.cells(codes)
    few = np.flatnonzero(missing > 0)
    values = np.stack(np.unravel_index(np.arange(missing.size), margin.counts.shape), axis=1)
    in_cells = np.argsort(cells, kind="stable")
    starts = np.searchsorted(cells[in_cells], np.arange(missing.size + 1))
    for cell in np.flatnonzero(missing < 0).tolist():
        differ = values[few] != values[cell]
        near = ~np.any(differ[:, list(kept)], axis=1) & (differ.sum(axis=1) == n_changed)
        if not np.any(near):
            continue
        rows = in_cells[starts[cell] : starts[cell + 1]]
        rows = rows[numbers.permutation(len(rows))]
        for to in few[near].tolist():
            most = int(min(missing[to], -missing[cell]))
            if most <= 0:
                continue
            moved = codes[rows]
            moved[:, list(margin.attributes)] = values[to]
            possible = np.flatnonzero(~impossible.are_met(moved))[:most]
            codes[rows[possible]] = moved[possible]
            missing[to] -= len(possible)
            missing[cell] += len(possible)
            rows = np.delete(rows, possible)
