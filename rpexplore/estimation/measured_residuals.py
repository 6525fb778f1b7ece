"""What was measured, as the smooth fit uses it: contributions and the variance of their cells."""

from collections.abc import Mapping
from functools import cached_property
from math import prod

import numpy as np

from rpexplore.domain.domain import AttributeIndices
from rpexplore.estimation.table_map import ContributionArrays, TableMap
from rpexplore.planning.mechanism.strategy import Strategy


class MeasuredResiduals:
    """The contribution of every residual with its noise, and the number of records.

    contributions  float64, one axis an attribute; of a downward closed family
    variances      σ² of each
    sizes          int64[d], number of values of all attributes
    total          the measured number of records, or 1 if that is less
    """

    def __init__(
        self,
        contributions: ContributionArrays,
        variances: Mapping[AttributeIndices, float],
        sizes: np.ndarray,
        strategies: Mapping[int, Strategy],
    ) -> None:
        self.contributions, self.variances = contributions, variances
        self.map = TableMap(contributions, sizes, strategies)
        self.sizes, self.strategies = sizes, strategies
        # Below 1 there would be no shares to speak of.
        self.total = max(float(contributions[()]), 1.0)

    def of_order(self, order: int) -> list[AttributeIndices]:
        """The sets of this many attributes, in lexicographical order."""
        return self._by_order.get(order, [])

    @cached_property
    def largest_order(self) -> int:
        return max(self._by_order)

    @cached_property
    def _by_order(self) -> dict[int, list[AttributeIndices]]:
        by_order: dict[int, list[AttributeIndices]] = {}
        for subset in self.map.family:
            by_order.setdefault(len(subset), []).append(subset)
        return by_order

    def shape(self, subset: AttributeIndices) -> tuple[int, ...]:
        return tuple(int(self.sizes[index]) for index in subset)

    def beyond(self, subset: AttributeIndices, table: np.ndarray) -> np.ndarray:
        """The measured contribution less that of a table: 0 and noise if the table is right."""
        return self.contributions[subset] - self.map.decomposed(subset, table)

    def cell_variance(self, subset: AttributeIndices) -> float | np.ndarray:
        """The variance of the contribution's cells: one number if it is the same for all."""
        if not any(index in self.strategies for index in subset):
            return self.variances[subset] * self.degrees_of_freedom_per_cell(subset)
        variance = np.full((1,) * len(subset), self.variances[subset])
        for axis, index in enumerate(subset):
            strategy = self.strategies.get(index)
            size = int(self.sizes[index])
            of_axis = (
                np.full(size, 1 - 1 / size)
                if strategy is None
                else np.diag(strategy.decoded_covariance)
            )
            variance = variance * np.expand_dims(
                of_axis, [other for other in range(len(subset)) if other != axis]
            )
        return variance

    def even_variance(self, subset: AttributeIndices) -> float:
        """σ² that noise alike in all cells would have for the same sum of cell variances."""
        variance = self.variances[subset]
        for index in subset:
            strategy = self.strategies.get(index)
            if strategy is not None:
                variance *= np.trace(strategy.decoded_covariance) / (strategy.size - 1)
        return float(variance)

    def degrees_of_freedom_per_cell(self, subset: AttributeIndices) -> float:
        """∏ (n_i − 1)/n_i: contributions sum to 0 along every axis."""
        return prod(1 - 1 / int(self.sizes[index]) for index in subset)
