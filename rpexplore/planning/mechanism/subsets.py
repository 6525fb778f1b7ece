"""Subsets of tables: all that there are, each once, and which of them lie in which table."""

from collections.abc import Mapping
from itertools import combinations

import numpy as np
from scipy import sparse

from rpexplore.common.numbers import read_only
from rpexplore.errors import PlanError

MAX_INCIDENCES = 60_000_000  # of residuals in tables
MAX_LARGEST_ORDER = 22  # a table of more attributes has too many subsets by itself


def residuals_of(
    members: np.ndarray, sizes: np.ndarray
) -> tuple[np.ndarray, sparse.csr_array, np.ndarray]:
    """The subsets of tables: `members` of residuals, the incidence, and orders of the tables.

    members: of tables, int32[n_tables, max_order], ascending, −1 behind
    """
    # Single-valued attributes are taken out, the rest moved up front.
    single = np.append(sizes == 1, False)[members]
    last = np.iinfo(np.int32).max
    moved = np.sort(np.where(single | (members < 0), last, members), axis=1)
    tables = np.where(moved == last, -1, moved)
    orders = np.count_nonzero(tables >= 0, axis=1)
    largest, incidences = int(orders.max()), float(np.sum(2.0 ** np.minimum(orders, 100.0)))
    if incidences > MAX_INCIDENCES or largest > MAX_LARGEST_ORDER:
        raise PlanError(
            f"The workload's tables have {incidences:.3g} subsets in all (the largest table "
            f"has {largest} attributes); at most {MAX_INCIDENCES:,} can be planned, and tables "
            f"of at most {MAX_LARGEST_ORDER} attributes. Ask for tables of fewer attributes."
        )
    of_order = {k: np.flatnonzero(orders == k) for k in np.unique(orders).tolist()}
    by_order = {k: tables[indices, :k] for k, indices in of_order.items()}
    levels, subsets = _subsets_by_level(by_order, len(sizes))

    starts = np.cumsum([0, *map(len, levels)])  # of each level among all residuals
    residuals = np.full((starts[-1], len(levels) - 1), -1, dtype=np.int32)
    for j, level in enumerate(levels):
        residuals[starts[j] : starts[j + 1], :j] = level

    # The incidence row by row: a table of k attributes has 2^k residuals.
    offsets = np.concatenate([[0], np.cumsum(2 ** orders.astype(np.int64))])
    columns = np.empty(offsets[-1], dtype=np.int32)
    for k, indices in of_order.items():
        within = np.hstack([level + starts[j] for j, level in enumerate(subsets[k])])
        columns[offsets[indices][:, None] + np.arange(2**k)] = within
    incidence = sparse.csr_array(
        (np.ones(len(columns)), columns, offsets.astype(np.int32)),
        shape=(len(tables), len(residuals)),
    )
    return read_only(residuals), incidence, orders


def _subsets_by_level(
    tables: Mapping[int, np.ndarray], d: int
) -> tuple[list[np.ndarray], dict[int, list[np.ndarray]]]:
    """All subsets of tables: those of j attributes follow from those of j − 1.

    Every prefix of a set is there, so (index of the prefix, last attribute) is a sortable key that
    fits 64 bits.

    Args:
        tables: The attributes of the tables of k attributes, int[m, k], by k.
        d: Number of attributes there are.

    Returns:
        For each j from 0 on the sets of j attributes, int32[·, j], lexicographic; and by k, for
        each j up to k, which of these sets each table has, int64[m, C(k, j)].
    """
    levels = [np.empty((1, 0), dtype=np.int32)]
    within = {k: [np.zeros((len(rows), 1), dtype=np.int64)] for k, rows in tables.items()}
    for j in range(1, max(tables) + 1):
        keys = {}
        for k, rows in tables.items():
            if k >= j:
                last, prefix = _subset_columns(k, j)
                keys[k] = within[k][j - 1][:, prefix] * d + rows[:, last]
        distinct, indices = _unique(list(keys.values()), len(levels[-1]) * d)
        for k, of_order in zip(keys, indices, strict=True):
            within[k].append(of_order)
        sets = np.column_stack([levels[-1][distinct // d], distinct % d])
        levels.append(sets.astype(np.int32))
    return levels, within


def _subset_columns(k: int, j: int) -> tuple[np.ndarray, np.ndarray]:
    """Last column of each j-subset of k columns, and the index of the rest among (j−1)-subsets.

    Both int64[C(k, j)]; subsets in lexicographic order.
    """
    shorter = {subset: index for index, subset in enumerate(combinations(range(k), j - 1))}
    subsets = list(combinations(range(k), j))
    last = np.array([subset[-1] for subset in subsets])
    prefix = np.array([shorter[subset[:-1]] for subset in subsets])
    return last, prefix


def _unique(keys: list[np.ndarray], bound: int) -> tuple[np.ndarray, list[np.ndarray]]:
    """The distinct keys (0 ≤ key < bound), ascending, and the index of each key among them."""
    count = sum(key.size for key in keys)
    if bound <= 16 * count + 1_000_000:  # a table of all possible keys beats sorting
        present = np.zeros(bound, dtype=bool)
        for key in keys:
            present[key] = True
        rank = np.cumsum(present) - 1
        return np.flatnonzero(present), [rank[key] for key in keys]
    distinct, indices = np.unique(
        np.concatenate([key.ravel() for key in keys]), return_inverse=True
    )
    parts = np.split(indices, np.cumsum([key.size for key in keys])[:-1])
    return distinct, [part.reshape(key.shape) for part, key in zip(parts, keys, strict=True)]
