"""Symmetry: tables that no loss can tell apart, and residuals alike, merged into classes.

Colour refinement splits the classes of tables and of residuals by how many entries of B lead into
each class of the other side, until nothing splits any more (docs/mathematics.md §6.8; Grohe,
Kersting, Mladenov, Selman 2014, for linear programs). One σ² per class of residuals is then enough
for a convex loss that does not change when tables of a class swap their variances.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from rpexplore.common.numerics import scattered_bits
from rpexplore.planning.losses.custom import scattered
from rpexplore.planning.mechanism.closure import Closure

_SAME = 1e-12  # relative: what differs by less does so by rounding


@dataclass(frozen=True, eq=False)
class Classes:
    """Classes of tables and of residuals, and the map between them.

    tables           int64[n_tables]: the class of each table
    residuals        int64[n_residuals]: the class of each residual
    table_counts     float64[n_table_classes]: tables in each
    matrix           csr float64[n_table_classes, n_residual_classes]: weighted variance of a table
                     of each class, when all residuals of a class have the same σ²
    costs            float64[n_residual_classes]: privacy cost of a class at σ² = 1
    """

    tables: np.ndarray
    residuals: np.ndarray
    table_counts: np.ndarray
    matrix: sparse.csr_array
    costs: np.ndarray

    @property
    def are_single(self) -> bool:
        """Whether no two tables and no two residuals are merged."""
        return len(self.table_counts) == len(self.tables) and len(self.costs) == len(self.residuals)


def symmetric_classes(
    closure: Closure, table_weights: np.ndarray, distinctions: Sequence[np.ndarray] = ()
) -> Classes:
    """The coarsest classes for a loss of the weighted variances, table_weights · Var.

    distinctions: numbers for each table, [n_tables]; tables that differ in one are kept apart.
    """
    incidence = closure.incidence
    mirrored = sparse.csr_array(incidence.T)
    scale = closure.per_cell(table_weights)
    # First colours: what B's rows and columns are scaled by, and what tells tables apart by itself.
    tables = _joint(
        [_alike(scale), *(np.unique(numbers, return_inverse=True)[1] for numbers in distinctions)]
    )
    residuals = _joint([_alike(closure.pairs), _alike(closure.privacy_cost_factor)])
    while True:
        before = tables.max(), residuals.max()
        tables = _split(tables, incidence, residuals)
        residuals = _split(residuals, mirrored, tables)
        # Colours only ever split: an unchanged number of them is the end.
        if (tables.max(), residuals.max()) == before:
            return _classes(closure, scale, tables, residuals)


def single_classes(closure: Closure, table_weights: np.ndarray) -> Classes:
    """Every table and every residual in a class of its own."""
    scale = closure.per_cell(table_weights)
    return _classes(closure, scale, np.arange(len(scale)), np.arange(len(closure)))


def is_same_when_swapped(
    value: Callable[[np.ndarray], float], variances: np.ndarray, classes: np.ndarray
) -> bool:
    """Whether a loss was never seen to change when tables of one class swap variances.

    Tried near these variances, float64[n_tables], where all differ: with each class turned round,
    and shifted by one.
    """
    # All different, as equal variances would swap without a trace.
    different = variances * (1 + scattered(len(variances), 1))
    present = value(different)
    order = np.argsort(classes, kind="stable")
    first = np.flatnonzero(np.diff(classes[order], prepend=-1))
    turned_round = np.lexsort((-np.arange(len(classes)), classes))
    shifted = np.roll(order, -1)
    shifted[np.append(first[1:], len(order)) - 1] = order[first]
    for moved in (turned_round, shifted):
        swapped = different.copy()
        swapped[order] = different[moved]
        if not abs(value(swapped) - present) <= 1e-9 * abs(present):
            return False
    return True


def _classes(
    closure: Closure, scale: np.ndarray, tables: np.ndarray, residuals: np.ndarray
) -> Classes:
    _, first, counts = np.unique(tables, return_index=True, return_counts=True)
    into = sparse.csr_array(
        (np.ones(len(residuals)), (np.arange(len(residuals)), residuals)),
        shape=(len(residuals), residuals.max() + 1),
    )
    # A table of a class stands for all: same sums of B by classes of residuals.
    rows = closure.incidence[first] @ sparse.diags_array(closure.pairs) @ into
    return Classes(
        tables=tables,
        residuals=residuals,
        table_counts=counts.astype(float),
        matrix=sparse.csr_array(sparse.diags_array(scale[first]) @ rows),
        costs=np.bincount(residuals, closure.privacy_cost_factor),
    )


def _split(colours: np.ndarray, neighbours: sparse.csr_array, theirs: np.ndarray) -> np.ndarray:
    """Colours split by how many neighbours of each of their colours there are, from 0.

    Neighbours are compared by a sum of 64-bit hashes. Should two sums ever agree by accident, the
    plan's certificate would show it.
    """
    edges = scattered_bits(theirs)[neighbours.indices]
    if np.any(neighbours.data != 1):
        edges = scattered_bits(edges + scattered_bits(_alike(neighbours.data)))
    sums = np.add.reduceat(edges, neighbours.indptr[:-1].astype(np.int64))
    return np.unique(scattered_bits(colours) + scattered_bits(sums), return_inverse=True)[1]


def _joint(colourings: Sequence[np.ndarray]) -> np.ndarray:
    """Colours that tell apart what any of the colourings does, from 0."""
    joint = np.zeros(len(colourings[0]), dtype=np.uint64)
    for colours in colourings:
        joint = scattered_bits(joint + scattered_bits(colours))
    return np.unique(joint, return_inverse=True)[1]


def _alike(values: np.ndarray) -> np.ndarray:
    """A colour for each value, from 0; those that differ by rounding alone share one."""
    order = np.argsort(values)
    ascending = values[order]
    colours = np.empty(len(values), dtype=np.int64)
    colours[order] = np.cumsum(np.diff(ascending, prepend=ascending[0]) > _SAME * ascending)
    return colours
