"""Unbiased estimate of a marginal, with the exact accuracy of its cells and of queries on it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from rpexplore.common.numerics import normal_quantile
from rpexplore.domain.domain import AttributeIndices
from rpexplore.planning.mechanism.marginal_noise import MarginalNoise, Where
from rpexplore.planning.mechanism.reconstruction import marginal
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

    noise          in the marginal
    contributions  of every subset that has a residual, as `reconstruction.contribution` returns it
    """

    noise: MarginalNoise
    contributions: Mapping[AttributeIndices, np.ndarray]

    @cached_property
    def values(self) -> np.ndarray:
        """The counts of the single values, float64, one axis an attribute."""
        noise = self.noise
        return marginal(noise.attributes, noise.domain.sizes, self.contributions, noise.strategies)

    def cells(self, labels: Sequence[Labels]) -> pa.Table:
        """One row a cell: labels, value, standard_error, lower_95, upper_95."""
        return table_of_cells(labels, self.values, self.noise.variances)

    def answer(self, where: Where) -> Answer:
        """The answer to a product query; what it leaves out is summed over."""
        vectors = self.noise.vectors(where)
        variance = self.noise.covariance(vectors, vectors)
        values = self.values
        for attribute in self.noise.attributes:
            values = np.tensordot(vectors[attribute], values, axes=(0, 0))
        return Answer(float(values), float(np.sqrt(variance)))
