"""Accuracy: what measurement noise does to cells, pairs of cells and queries on a marginal.

The formulas of docs/mathematics.md §3.2; all for exact noise scales, without any records.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TypeGuard

import numpy as np

from rpexplore.domain.domain import AttributeIndices, AttributeSet, Domain
from rpexplore.domain.value_selection import coefficients
from rpexplore.errors import WorkloadError
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.mechanism.strategy import Moments, Strategy

Where = Mapping[str, str | Sequence[str] | Sequence[float]]
"""A product query: attribute name -> its values as texts ("0..17"), or a number for each value."""


def residuals_within(closure: Closure, attributes: Sequence[int]) -> dict[AttributeIndices, int]:
    """The residual of every subset of these ascending attribute indices.

    Raises `WorkloadError` if no table of the plan holds them together.
    """
    kept = [attribute for attribute in attributes if closure.sizes[attribute] > 1]
    if closure.find(kept) is None:
        raise WorkloadError(
            "The plan holds no table with these attributes together, so it says nothing about "
            "them; add such a table to the workload."
        )
    subsets = [subset for order in range(len(kept) + 1) for subset in combinations(kept, order)]
    residuals = {subset: closure.find(subset) for subset in subsets}
    return {subset: residual for subset, residual in residuals.items() if residual is not None}


def query_attributes(
    domain: Domain, attributes: Sequence[AttributeSet], where: Where | None = None
) -> AttributeIndices:
    """The attributes that are named one by one, or as one collection; if none, those of `where`."""
    if not attributes:
        return domain.positions(where or ())
    if len(attributes) == 1:
        return domain.positions(attributes[0])
    return domain.positions(str(name) for name in attributes)


def query_vectors(
    domain: Domain, attributes: AttributeIndices, where: Where
) -> dict[int, np.ndarray]:
    """The vector of each attribute of a table in a product query, float64[n_i]; ones if not named.

    Raises `WorkloadError` for an attribute not in the table, and numbers that do not fit it;
    `DomainError` for a text that names no values.
    """
    vectors = {attribute: np.ones(int(domain.sizes[attribute])) for attribute in attributes}
    for name, values in where.items():
        attribute = domain.position(name)
        if attribute not in vectors:
            raise WorkloadError(
                f"The table {domain.describe(attributes)} does not have the attribute {name!r}; "
                "ask a table that has it."
            )
        try:
            if _is_selection(values):
                values = coefficients(domain[name], values)
            vector = np.asarray(values, dtype=float)
        except (TypeError, ValueError):
            vector = np.empty(0)
        if vector.shape != vectors[attribute].shape or not np.all(np.isfinite(vector)):
            raise WorkloadError(
                f"The query on {name!r} must be {len(vectors[attribute])} finite numbers, one for "
                f"each of its values, got the shape {vector.shape}."
            )
        vectors[attribute] = vector
    return vectors


def _is_selection(values: str | Sequence[str] | Sequence[float]) -> TypeGuard[str | Sequence[str]]:
    """Whether values are named by texts; else there is a number for each."""
    if isinstance(values, str):
        return True
    return isinstance(values, list | tuple) and all(isinstance(value, str) for value in values)


def query_covariance(
    sizes: np.ndarray,
    strategies: Mapping[int, Strategy],
    noise: Mapping[AttributeIndices, float],
    left: Mapping[int, np.ndarray],
    right: Mapping[int, np.ndarray],
) -> float:
    """Covariance of two product queries ⊗_{i∈A} q_i on the marginal on A.

    The last row of docs/mathematics.md §3.2 (cells: q_i a unit vector); §4.2 for strategies.

    Args:
        sizes: int64[d], of all attributes.
        strategies: How attributes are measured that are not by single values.
        noise: σ² of the residual of every subset of A, without single-valued attributes.
        left: A vector q_i float64[n_i] for each attribute of A.
        right: The same for the other query.
    """
    inside, outside = {}, {}
    for attribute in left:
        strategy = strategies.get(attribute)
        if strategy is not None:
            decoding = strategy.decoding  # and not D Dᵀ: a variance must not round to below 0
            inside[attribute] = float((left[attribute] @ decoding) @ (right[attribute] @ decoding))
            z = strategy.reference
            outside[attribute] = float(left[attribute] @ z) * float(right[attribute] @ z)
            continue
        size = int(sizes[attribute])
        totals = float(np.sum(left[attribute])) * float(np.sum(right[attribute]))
        inside[attribute] = float(np.dot(left[attribute], right[attribute])) - totals / size
        outside[attribute] = totals / size**2
    covariance = 0.0
    for subset, factor in noise.items():
        for attribute in left:
            factor *= inside[attribute] if attribute in subset else outside[attribute]
        covariance += factor
    return float(covariance)


def marginal_variances(
    sizes: np.ndarray,
    strategies: Mapping[int, Strategy],
    noise: Mapping[AttributeIndices, float],
    attributes: AttributeIndices,
) -> np.ndarray:
    """Variance of every cell of the marginal on these attributes, one axis an attribute.

    noise: σ² of the residual of every subset, without single-valued attributes
    """
    several = [attribute for attribute in attributes if sizes[attribute] > 1]
    variances = np.zeros((2,) * len(several))
    for subset, sigma_squared in noise.items():
        variances[tuple(int(attribute in subset) for attribute in several)] = sigma_squared
    for attribute in several:
        strategy = strategies.get(attribute)
        size = int(sizes[attribute])
        moments = strategy.value_moments if strategy else Moments.of_single_values(size)
        variances = np.tensordot(variances, np.stack([moments.total, moments.spread]), axes=(0, 0))
    return variances.reshape([int(sizes[attribute]) for attribute in attributes])
