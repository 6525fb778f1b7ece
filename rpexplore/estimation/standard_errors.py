"""Model-based errors of smooth tables: posterior variances, order by order.

The relative error of a cell is that of all its subtables together: what each adds of its own, taken
for independent (docs/mathematics.md §13.6).
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rpexplore.domain.domain import AttributeIndices
from rpexplore.estimation.factor_model import FactorModel
from rpexplore.estimation.measured_residuals import MeasuredResiduals
from rpexplore.estimation.one_way import OneWay
from rpexplore.estimation.shrinkage import remaining_variance
from rpexplore.estimation.table_map import subsets

_SMALLEST_COUNT = 1e-9  # whose relative error is asked for
_SMALLEST_VARIANCE = 1e-9
_FEWEST_EXPECTED = 1e-3  # counts: no cell is known to be empty


@dataclass(frozen=True)
class ErrorModel:
    """The inputs for the errors of all tables.

    weights  of `SCALES`, for each table of two attributes and more
    """

    measured: MeasuredResiduals
    low: OneWay
    model: FactorModel | None
    weights: Mapping[AttributeIndices, np.ndarray]

    def standard_errors(
        self, attributes: AttributeIndices, tables: Mapping[AttributeIndices, np.ndarray]
    ) -> np.ndarray:
        """Of each cell, as the model has them.

        tables: the smooth tables of all their subsets
        """
        if not attributes:
            return np.array(np.sqrt(self.measured.variances[()]))
        table = tables[attributes]
        variance = self.own_variance(attributes, table)
        for subset in subsets(attributes):
            if subset and subset != attributes:
                missing = [axis for axis, i in enumerate(attributes) if i not in subset]
                own, part = self.own_variance(subset, tables[subset]), tables[subset]
                relative = own / np.maximum(part, _SMALLEST_COUNT) ** 2
                variance = variance + table**2 * np.expand_dims(relative, missing)
        return np.sqrt(variance)

    def errors_after(
        self,
        attributes: AttributeIndices,
        tables: Mapping[AttributeIndices, np.ndarray],
        variance: float,
    ) -> np.ndarray:
        """`standard_errors` when the residual of the table is measured once more, with this σ²."""
        own = np.maximum(self.own_variance(attributes, tables[attributes]), _SMALLEST_VARIANCE)
        new = variance * self.measured.degrees_of_freedom_per_cell(attributes)
        before = self.standard_errors(attributes, tables) ** 2
        return np.sqrt(np.maximum(before - own + 1 / (1 / own + 1 / new), 0.0))

    def unbiased_errors(self, attributes: AttributeIndices) -> np.ndarray:
        """The standard error of each cell of the unbiased table."""
        variance: float | np.ndarray = 0.0
        for subset in subsets(attributes):
            spread = np.asarray(self.measured.cell_variance(subset))
            spread = spread.reshape(spread.shape or (1,) * len(subset))
            missing = [axis for axis, index in enumerate(attributes) if index not in subset]
            spread = np.expand_dims(spread, missing)
            for axis in missing:
                shares = self.measured.map.shares(attributes[axis])
                spread = spread * shares.reshape(-1, *(1,) * (len(attributes) - 1 - axis)) ** 2
            variance = variance + spread
        return np.sqrt(np.broadcast_to(variance, self.measured.shape(attributes)))

    def own_variance(self, attributes: AttributeIndices, table: np.ndarray) -> np.ndarray:
        """Of each cell, given the tables of one attribute less."""
        if len(attributes) == 1:
            share = table / self.measured.total
            return self.low.variances[attributes[0]] + share**2 * self.measured.variances[()]
        noise = self.measured.cell_variance(attributes)
        expected = np.maximum(table, _FEWEST_EXPECTED)
        remaining = remaining_variance(expected, noise, self.weights[attributes])
        if len(attributes) > 2 or self.model is None:
            return remaining
        of_model = np.maximum(self.model.variance(*attributes), _SMALLEST_VARIANCE)
        return np.maximum(1 / (1 / of_model + 1 / noise), remaining)
