"""Reconstruction: from measured residuals to tables, by centring and broadcast sums.

Measured is Ξ x + noise with Ξ = ⊗_{i∈A} (n_i I − 11ᵀ), in integers (docs/mathematics.md §7.2), or,
of an attribute with a strategy, its integer matrix. Divided by ∏ n_i and centred along every axis,
or decoded by D, it is the residual's contribution to the marginal A itself; a marginal is the sum
of the contributions of its subsets, each spread over the missing axes, evenly or by z.
"""

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from rpexplore.common.numerics import in_slabs, matrix_along
from rpexplore.planning.mechanism.strategy import Strategy
from rpexplore.workload.query_matrix import QueryMatrix, query_matrix
from rpexplore.workload.workload import Workload


def contribution(
    measured: np.ndarray, attributes: Sequence[int], strategies: Mapping[int, Strategy]
) -> np.ndarray:
    """A residual's part of its own marginal, float64, one axis an attribute, of all its values.

    measured: one axis an attribute, as `measurement` says; further axes before them for a stack of
        residuals that are measured alike
    """
    values = np.array(measured, dtype=float)
    del measured  # there may be no room for both
    for axis, attribute in enumerate(attributes, start=-len(attributes)):
        strategy = strategies.get(attribute)
        if strategy is None:
            values /= values.shape[axis]
            values -= values.mean(axis=axis, keepdims=True)
        else:
            decoded = strategy.decoding / float(2**strategy.bits)
            values = matrix_along(decoded, values, axis)
    return values


def marginal(
    attributes: Sequence[int],
    sizes: np.ndarray,
    contributions: Mapping[tuple[int, ...], np.ndarray],
    strategies: Mapping[int, Strategy],
) -> np.ndarray:
    """The unbiased marginal on ascending attribute indices, float64, one axis an attribute.

    contributions: of all subsets of `attributes` that have a residual, as `contribution` makes
        them; all stacks if one is
    """
    kept = [attribute for attribute in attributes if sizes[attribute] > 1]
    # Evenly is by one number: then what is spread stays as small as it is.
    shares = {
        attribute: strategies[attribute].reference
        if attribute in strategies
        else np.array([1 / int(sizes[attribute])])
        for attribute in kept
    }
    values = spread_sum(kept, contributions, shares)
    stack = values.shape[: values.ndim - len(kept)]
    return values.reshape([*stack, *(int(sizes[attribute]) for attribute in attributes)])


def spread_sum(
    attributes: Sequence[int],
    contributions: Mapping[tuple[int, ...], np.ndarray],
    shares: Mapping[int, np.ndarray],
) -> np.ndarray:
    """The sum of the contributions of all subsets, each spread over the missing axes by shares.

    shares: of every attribute, for each of its values or one number for all
    """
    parts, before, done = dict(contributions), list(attributes), 0
    while before:
        # Of the last attribute not done yet: what is known of its values, and the rest spread.
        attribute = before.pop()
        spread = shares[attribute].reshape([-1, *(1,) * done])
        parts = {
            subset: _sum(
                parts[(*subset, attribute)], np.expand_dims(part, part.ndim - done) * spread
            )
            for subset, part in parts.items()
            if attribute not in subset
        }
        done += 1
    return parts[()]


def _sum(values: np.ndarray, own: np.ndarray) -> np.ndarray:
    """The sum of arrays, of which the second is of no more use: in its memory if that is enough."""
    return np.add(values, own, out=own if own.shape == values.shape else None)


def answers(values: np.ndarray, matrices: Sequence[QueryMatrix | None]) -> np.ndarray:
    """The answers of a table from its marginal; a `QueryMatrix` an axis, None for single values.

    The axes are the last ones: there may be a stack of marginals.
    """
    for axis, matrix in enumerate(matrices, start=-len(matrices)):
        if matrix is not None:
            values = in_slabs(partial(matrix.of, axis=axis), values, axis)
    return values


def query_matrices(workload: Workload) -> list[QueryMatrix | None]:
    """The queries of each of `workload.attribute_bases`; None: single values. To be made once."""
    attributes = workload.domain.attributes
    return [
        None if basis.is_identity else query_matrix(basis, attributes[attribute])
        for attribute, basis in workload.attribute_bases
    ]
