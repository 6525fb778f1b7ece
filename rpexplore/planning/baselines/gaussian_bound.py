"""A bound for all Gaussian mechanisms on weighted sums of variances of tables in any basis.

For any weights λ on the cells of all attributes, no Gaussian mechanism of privacy cost 1 has a
smaller Σ w · variance than (tr (Λ^½ V Λ^½)^½)², V = Σ w QᵀQ over the tables' queries Q
(docs/mathematics.md §16). Here λ is a product of one weight for each value of an attribute. Then
the root falls apart into blocks that are no larger than what a plan measures.
"""

from dataclasses import dataclass
from functools import reduce

import numpy as np

from rpexplore.common.processes import one_thread
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.strategies import StrategySearch
from rpexplore.workload.workload import Workload

_MOST_COORDINATES = 600  # of one block, which is decomposed
_MOST_WORK = 4e8  # cubes of sizes of blocks, added up; about a fifth of a second a step
_MOST_STEPS = 25
_STILL = 1e-4  # a step that raises the bound by less (relative) is the last one
_LEAST_WEIGHT = 1e-9  # of a value


@one_thread()
def gaussian_bound(workload: Workload, closure: Closure, table_weights: np.ndarray) -> float | None:
    """No Gaussian mechanism of privacy cost 1 has a smaller Σ weight · mean variance of a table.

    Args:
        closure: With the strategies of a plan, whose references the search for weights starts from.
        table_weights: float64[n_tables], at least 0.

    Returns:
        None where it would take long, or attributes are in tables at several levels.
    """
    if closure.trees or not closure.strategies:
        return None
    search = StrategySearch(workload, closure, table_weights, keep_references=True)
    sizes = {index: len(search.grams[bases[0]]) for index, bases in search.bases_of.items()}
    blocks = _blocks(closure, sizes)
    work = sum(float(block.size) ** 3 for block in blocks)
    if max(block.size for block in blocks) > _MOST_COORDINATES or work > _MOST_WORK:
        return None
    search.start({index: closure.strategies[index].reference for index in sizes})
    weights = {index: search.measuring[index].value_weights for index in sizes}
    best = 0.0
    for _ in range(_MOST_STEPS):
        weights = {
            index: np.maximum(of_values, _LEAST_WEIGHT)
            / np.sum(np.maximum(of_values, _LEAST_WEIGHT))
            for index, of_values in weights.items()
        }
        before = best
        root, weights = _root(workload, closure, search, table_weights, blocks, weights)
        best = max(best, root**2)
        if best <= before * (1 + _STILL):
            break
    # What rounding can have added: far more than eigenvalues of such blocks are off by.
    return best * (1 - 1e-9)


@dataclass(frozen=True, eq=False)
class _Block:
    """The residuals that have the same attributes of single values among theirs.

    single     these attributes
    times      how many directions of them are alike
    positions  of a residual's other attributes the places of its coordinates, one axis an attribute
    """

    single: frozenset[int]
    times: float
    positions: dict[tuple[int, ...], np.ndarray]
    size: int


def _blocks(closure: Closure, sizes: dict[int, int]) -> list[_Block]:
    of_single: dict[frozenset[int], list[tuple[int, ...]]] = {}
    for residual in range(len(closure)):
        attributes = closure.attributes(residual)
        single = frozenset(index for index in attributes if index not in sizes)
        others = tuple(index for index in attributes if index in sizes)
        of_single.setdefault(single, []).append(others)
    blocks = []
    for single, residuals in of_single.items():
        positions, size = {}, 0
        for others in residuals:
            shape = [sizes[index] - 1 for index in others]
            count = int(np.prod(shape))
            positions[others] = size + np.arange(count).reshape(shape)
            size += count
        times = float(np.prod([closure.sizes[index] - 1.0 for index in single]))
        blocks.append(_Block(single, times, positions, size))
    return blocks


def _root(
    workload: Workload,
    closure: Closure,
    search: StrategySearch,
    table_weights: np.ndarray,
    blocks: list[_Block],
    weights: dict[int, np.ndarray],
) -> tuple[float, dict[int, np.ndarray]]:
    """tr (Λ^½ V Λ^½)^½ for these weights of values, and the next ones: its diagonal, by value."""
    # For each attribute an orthonormal basis whose first vector is λ^½: that of tables without it.
    turns = {}
    for index, of_values in weights.items():
        vectors = np.linalg.qr(np.column_stack([np.sqrt(of_values), np.eye(len(of_values))[:, 1:]]))
        turns[index] = vectors[0]
    halves = {index: np.sqrt(weights[index])[:, None] * turns[index] for index in weights}
    grams = {
        basis: halves[index].T @ search.grams[basis] @ halves[index]
        for index, bases in search.bases_of.items()
        for basis in bases
    }
    total, diagonals = 0.0, {index: np.zeros((len(w), len(w))) for index, w in weights.items()}
    for block in blocks:
        gram = np.zeros((block.size, block.size))
        for table in np.flatnonzero(table_weights > 0).tolist():
            attributes = workload.attribute_indices(table)
            if not block.single <= set(attributes):
                continue
            factor, own, of_axes = float(table_weights[table]), [], []
            for index, basis in zip(
                attributes, workload.attribute_basis_index[table], strict=False
            ):
                if index in weights:
                    own.append(index)
                    of_axes.append(grams[basis])
                else:  # η of single values, and of single-valued attributes; τ is as large
                    factor *= search.total[basis]
            places = np.zeros([len(weights[index]) for index in own], dtype=np.int64)
            for others, positions in block.positions.items():
                if set(others) <= set(own):
                    where = tuple(slice(1, None) if index in others else 0 for index in own)
                    places[where] = positions
            product = reduce(np.kron, of_axes, np.ones((1, 1)))
            gram[np.ix_(places.ravel(), places.ravel())] += factor * product
        squares, vectors = np.linalg.eigh(gram)
        # Eigenvalues lowered by what rounding may have added to them.
        rounding = 4 * block.size * np.finfo(float).eps * float(np.max(squares))
        roots = np.sqrt(np.maximum(squares - rounding, 0.0))
        total += block.times * float(np.sum(roots))
        root = vectors * roots @ vectors.T
        for index, diagonal in diagonals.items():
            for others, positions in block.positions.items():
                if index in others:
                    continue
                rows = positions.reshape(1, -1)
                with_it = tuple(sorted((*others, index)))
                if with_it in block.positions:
                    axis = with_it.index(index)
                    inside = np.moveaxis(block.positions[with_it], axis, 0)
                    rows = np.concatenate([rows, inside.reshape(len(inside), rows.shape[1])])
                n = len(rows)
                diagonal[:n, :n] += block.times * np.sum(root[rows[:, None], rows[None]], axis=2)
    following = {}
    for index, diagonal in diagonals.items():
        of_values = np.sum((turns[index] @ diagonal) * turns[index], axis=1)
        following[index] = np.maximum(of_values, 0.0) / np.sum(np.maximum(of_values, 0.0))
    return total, following
