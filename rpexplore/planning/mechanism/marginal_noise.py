"""Noise of a marginal: what it does to cells, pairs of cells and queries.

The formulas of docs/mathematics.md §3.2; all for exact noise scales, without any records.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
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


@dataclass(frozen=True, eq=False)
class MarginalNoise:
    """The noise in a marginal, by single values, whatever the bases of the table that holds it.

    attributes     ascending indices
    strategies     how attributes are measured that are not by single values
    sigma_squared  σ² of the residual of every subset, without single-valued attributes
    """

    domain: Domain
    attributes: AttributeIndices
    strategies: Mapping[int, Strategy]
    sigma_squared: Mapping[AttributeIndices, float]

    @cached_property
    def variances(self) -> np.ndarray:
        """The variance of every cell, one axis an attribute."""
        sizes = self.domain.sizes
        several = [attribute for attribute in self.attributes if sizes[attribute] > 1]
        variances = np.zeros((2,) * len(several))
        for subset, sigma_squared in self.sigma_squared.items():
            variances[tuple(int(attribute in subset) for attribute in several)] = sigma_squared
        for attribute in several:
            strategy = self.strategies.get(attribute)
            size = int(sizes[attribute])
            moments = strategy.value_moments if strategy else Moments.of_single_values(size)
            variances = np.tensordot(
                variances, np.stack([moments.total, moments.spread]), axes=(0, 0)
            )
        return variances.reshape([int(sizes[attribute]) for attribute in self.attributes])

    def vectors(self, where: Where) -> dict[int, np.ndarray]:
        """The vector of each attribute in a product query, float64[n_i]; ones if not named.

        Raises `WorkloadError` for an attribute not in the table, and numbers that do not fit it;
        `DomainError` for a text that names no values.
        """
        vectors = {
            attribute: np.ones(int(self.domain.sizes[attribute])) for attribute in self.attributes
        }
        for name, values in where.items():
            attribute = self.domain.position(name)
            if attribute not in vectors:
                raise WorkloadError(
                    f"The table {self.domain.describe(self.attributes)} does not have the "
                    f"attribute {name!r}; ask a table that has it."
                )
            try:
                if _is_selection(values):
                    values = coefficients(self.domain[name], values)
                vector = np.asarray(values, dtype=float)
            except (TypeError, ValueError):
                vector = np.empty(0)
            if vector.shape != vectors[attribute].shape or not np.all(np.isfinite(vector)):
                raise WorkloadError(
                    f"The query on {name!r} must be {len(vectors[attribute])} finite numbers, one "
                    f"for each of its values, got the shape {vector.shape}."
                )
            vectors[attribute] = vector
        return vectors

    def covariance(self, left: Mapping[int, np.ndarray], right: Mapping[int, np.ndarray]) -> float:
        """Covariance of two product queries ⊗_{i∈A} q_i on the marginal on A.

        The last row of docs/mathematics.md §3.2 (cells: q_i a unit vector); §4.2 for strategies.

        left, right: a vector q_i float64[n_i] for each attribute of A
        """
        inside, outside = {}, {}
        for attribute, one in left.items():
            other, strategy = right[attribute], self.strategies.get(attribute)
            if strategy is not None:
                decoding = strategy.decoding  # not D Dᵀ: a variance must not round to below 0
                inside[attribute] = float((one @ decoding) @ (other @ decoding))
                z = strategy.reference
                outside[attribute] = float(one @ z) * float(other @ z)
                continue
            size = int(self.domain.sizes[attribute])
            totals = float(np.sum(one)) * float(np.sum(other))
            inside[attribute] = float(np.dot(one, other)) - totals / size
            outside[attribute] = totals / size**2
        covariance = 0.0
        for subset, factor in self.sigma_squared.items():
            for attribute in left:
                factor *= inside[attribute] if attribute in subset else outside[attribute]
            covariance += factor
        return float(covariance)


def _is_selection(values: str | Sequence[str] | Sequence[float]) -> TypeGuard[str | Sequence[str]]:
    """Whether values are named by texts; else there is a number for each."""
    if isinstance(values, str):
        return True
    return isinstance(values, list | tuple) and all(isinstance(value, str) for value in values)
