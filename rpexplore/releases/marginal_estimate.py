"""Unbiased estimate of a marginal, with the exact accuracy of its cells and of queries on it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from rpexplore.common.numerics import normal_quantile
from rpexplore.domain.domain import AttributeIndices, Domain
from rpexplore.planning.mechanism.query_covariance import (
    Where,
    marginal_variances,
    query_covariance,
    query_vectors,
)
from rpexplore.planning.mechanism.reconstruction import marginal
from rpexplore.planning.mechanism.strategy import Strategy
from rpexplore.releases.manifest import CONFIDENCE
from rpexplore.releases.table_cells import Labels, table_of_cells


@dataclass(frozen=True)
class Answer:
    """The noisy answer to a query.

    The standard error is of the privacy noise alone. The interval contains the true answer 95 % of
    the time (about that where the standard error is below 2).
    """

    value: float
    standard_error: float

    @property
    def lower_95(self) -> float:
        return self.value - self._margin

    @property
    def upper_95(self) -> float:
        return self.value + self._margin

    @property
    def _margin(self) -> float:
        return normal_quantile(CONFIDENCE) * self.standard_error


@dataclass(frozen=True, eq=False)
class MarginalEstimate:
    """A marginal from the contributions of its residuals, whatever they were measured by.

    attributes     of the marginal
    strategies     how attributes are measured that are not by single values
    noise          σ² of the residual of every subset, without single-valued attributes
    contributions  of the same subsets, as `reconstruction.contribution` returns them
    """

    domain: Domain
    attributes: AttributeIndices
    strategies: Mapping[int, Strategy]
    noise: Mapping[AttributeIndices, float]
    contributions: Mapping[AttributeIndices, np.ndarray]

    @cached_property
    def values(self) -> np.ndarray:
        """The counts of the single values, float64, one axis an attribute."""
        return marginal(self.attributes, self.domain.sizes, self.contributions, self.strategies)

    @cached_property
    def variances(self) -> np.ndarray:
        """The variance of every cell."""
        return marginal_variances(self.domain.sizes, self.strategies, self.noise, self.attributes)

    def cells(self, labels: Sequence[Labels]) -> pa.Table:
        """One row a cell: labels, value, standard_error, lower_95, upper_95."""
        return table_of_cells(labels, self.values, self.variances)

    def answer(self, where: Where) -> Answer:
        """The answer to a product query; what it leaves out is summed over."""
        vectors = query_vectors(self.domain, self.attributes, where)
        variance = query_covariance(
            self.domain.sizes, self.strategies, self.noise, vectors, vectors
        )
        values = self.values
        for attribute in self.attributes:
            values = np.tensordot(vectors[attribute], values, axes=(0, 0))
        return Answer(float(values), float(np.sqrt(variance)))

    def covariance(self, first: Where, second: Where) -> float:
        """Covariance of the noise in the answers to two product queries."""
        left, right = (
            query_vectors(self.domain, self.attributes, where) for where in (first, second)
        )
        return query_covariance(self.domain.sizes, self.strategies, self.noise, left, right)
