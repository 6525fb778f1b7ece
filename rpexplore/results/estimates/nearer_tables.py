"""Whole cells whose tables are near to what is wanted: records are moved one after another.

Rounded cell by cell, tables of many small cells can be off by many records together.
"""

from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_array

_MOVED_FROM = 8  # cells that a record may be moved from, of which the best is taken
_MOVED_PARTS = 3  # of an area, likewise
_MOST_EXCHANGED = 200  # records, for each part of an area
_MOST_COMPARED = 2_000_000_000  # cells of all tables in all steps: some ten seconds


def with_nearer_tables(
    counts: np.ndarray,
    within: np.ndarray,
    wanted: Sequence[np.ndarray],
    kept: np.ndarray | None = None,
) -> np.ndarray:
    """Cells with the same total and tables nearer to what is wanted, by least squares.

    Until no record of the cells that stand out most can be moved with a gain, or it takes long.

    Args:
        counts: int64[n_cells] ≥ 0.
        within: int64[n_tables, n_cells]: the cell of each table that each cell is in.
        wanted: Of each table float64[n].
        kept: int64[n_cells], of which sum each cell is part: a record is moved within one.
    """
    counts = counts.copy()
    beyond = [
        np.bincount(own, counts, minlength=len(each)) - each
        for own, each in zip(within, wanted, strict=True)
    ]
    for _ in range(_MOST_COMPARED // max(within.size * (_MOVED_FROM + 1), 1)):
        by_table = np.stack([each[own] for own, each in zip(within, beyond, strict=True)])
        together = np.where(counts > 0, by_table.sum(axis=0), -np.inf)
        n_sources = min(_MOVED_FROM, int(np.count_nonzero(counts)))
        sources = np.argpartition(-together, n_sources - 1)[:n_sources] if n_sources else []
        best = -1e-9, 0, 0
        for source in sources:
            changes = by_table - by_table[:, source, None] + 1
            changes = np.where(within == within[:, source, None], 0.0, changes).sum(axis=0)
            if kept is not None:
                changes = np.where(kept == kept[source], changes, np.inf)
            target = int(np.argmin(changes))
            best = min(best, (float(changes[target]), int(source), target))
        _, source, target = best
        if source == target:
            break
        counts[source] -= 1
        counts[target] += 1
        for own, each in zip(within, beyond, strict=True):
            each[own[source]] -= 1
            each[own[target]] += 1
    return counts


_TO_BE_MOVED = 1.0  # records by which a table of a part must be off for its cells to be changed


def with_nearer_parts(
    counts: np.ndarray, wanted: np.ndarray, tables: Sequence[np.ndarray], n_margins: int
) -> np.ndarray:
    """Cells of the parts of an area with the same sums, and tables nearer to those of the wanted.

    Two parts exchange records in two cells, which leaves the sums of both parts and of both cells
    as they are, as long as this brings tables nearer, or until it takes long.

    Args:
        counts: int64[n_parts, n_cells] ≥ 0.
        wanted: float64[n_parts, n_cells].
        tables: Of each the cell that each cell is in, int64[n_cells].
        n_margins: How many sums of cells after another stay in each part.
    """
    some = np.flatnonzero(counts.any(axis=0))
    if len(counts) < 2 or not len(some):
        return counts
    margin = some // (counts.shape[1] // n_margins)
    within = np.unique(np.stack([each[some] for each in tables]), axis=0)
    sizes = [int(each.max()) + 1 for each in within]
    starts = np.cumsum([0, *sizes])
    # Each cell is in one cell of every table; those of all tables are one after another.
    cells = within + starts[:-1, None]
    rows = len(cells) * np.arange(len(some) + 1)  # where each begins
    is_in = csr_array((np.ones(cells.size), cells.T.ravel(), rows), (len(some), starts[-1]))
    beyond = (counts[:, some] - wanted[:, some]) @ is_in
    if np.max(np.abs(beyond)) < _TO_BE_MOVED:
        return counts
    found = counts[:, some]
    n_compared = _MOVED_PARTS * _MOVED_FROM * found.size
    for _ in range(min(_MOST_EXCHANGED * len(counts), _MOST_COMPARED // max(n_compared, 1))):
        excess = beyond @ is_in.T
        best = -1e-9, 0, 0, 0, 0
        worst = np.argsort(-np.max(np.abs(beyond), axis=1), kind="stable")[:_MOVED_PARTS]
        for part in worst[np.max(np.abs(beyond[worst]), axis=1) >= _TO_BE_MOVED].tolist():
            sources = np.flatnonzero(found[part])
            if not len(sources):
                continue
            sources = sources[np.argsort(-excess[part, sources], kind="stable")[:_MOVED_FROM]]
            # Tables in which two cells are apart. Of all pairs of cells they would fill memory.
            n_apart = np.sum(within[:, sources, None] != within[:, None, :], axis=0, dtype=float)
            n_apart[margin[sources, None] != margin] = np.inf
            n_apart[np.arange(len(sources)), sources] = np.inf
            # By how much |beyond|² changes if a record of this part goes from a source to a cell,
            # and one of another part from there to the source.
            apart = excess[part] - excess
            changes = 2 * (apart[:, None, :] - apart[:, sources, None]) + 4 * n_apart
            changes[part] = np.inf
            changes = np.where(found[:, None, :] > 0, changes, np.inf)
            at = int(np.argmin(changes))
            if changes.flat[at] < best[0]:
                other, source, target = np.unravel_index(at, changes.shape)
                best = (
                    float(changes.flat[at]),
                    part, int(other), int(sources[source]), int(target),
                )  # fmt: skip
        _, part, other, source, target = best
        if part == other:
            break
        for own, sign in ((part, 1), (other, -1)):
            found[own, source] -= sign
            found[own, target] += sign
            beyond[own, cells[:, source]] -= sign
            beyond[own, cells[:, target]] += sign
    changed = counts.copy()
    changed[:, some] = found
    return changed
