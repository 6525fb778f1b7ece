"""Smooth tables of three and more attributes, one at a time.

The baseline is the table of largest entropy that agrees with the smooth tables of one attribute
less; what the table's own residual says beyond it is shrunk as for pairs (docs/mathematics.md
§13.4).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from rpexplore.domain.domain import AttributeIndices
from rpexplore.postprocessing.smooth.fitting import fitted
from rpexplore.postprocessing.smooth.measured_residuals import MeasuredResiduals
from rpexplore.postprocessing.smooth.shrinkage import (
    SCALES,
    kept_share,
    learned_weights,
    log_evidence,
    posterior_weights,
    shrunk,
)

_ROUNDS_OF_BASELINE, _ROUNDS = 6, 10  # of proportional fitting
_LOWEST_START = 1e-9  # counts; fitting cannot lift a 0
_MOST_LEARNED_FROM = 600  # tables of one order, whose scales tell those of all
_NEGLIGIBLE = 1e-4  # the largest τe/v for which the residual is left aside


@dataclass(frozen=True)
class HigherTable:
    """A smooth table, float32; the weights of `SCALES` for it; the share of its residual kept."""

    table: np.ndarray
    weights: np.ndarray
    kept: float


class HigherTables:
    """Tables of one order, from all smooth tables of lower orders.

    lower: float32, of every subset of these tables
    """

    def __init__(
        self,
        measured: MeasuredResiduals,
        order: int,
        lower: dict[AttributeIndices, np.ndarray],
    ) -> None:
        self._measured, self._lower = measured, lower
        self.subsets = measured.of_order(order)
        step = max(len(self.subsets) // _MOST_LEARNED_FROM, 1)
        self._learned = learned_weights(
            [self._evidence(subset, self._baseline(subset)) for subset in self.subsets[::step]]
        )

    def tables(self) -> Iterator[tuple[AttributeIndices, HigherTable]]:
        """Every table of the order, worked out when it is asked for."""
        for subset in self.subsets:
            yield subset, self._table(subset)

    def _table(self, subset: AttributeIndices) -> HigherTable:
        baseline = self._baseline(subset)
        weights = posterior_weights(self._evidence(subset, baseline), self._learned)
        variance = self._measured.cell_variance(subset)
        most = float(weights @ SCALES) * float(np.max(baseline / np.float32(np.min(variance))))
        if most <= _NEGLIGIBLE:
            return HigherTable(baseline, weights, 0.0)
        share = kept_share(baseline, variance, weights)
        kept = float((share * baseline).sum(dtype=float) / baseline.sum(dtype=float))
        table = shrunk(baseline, share, self._residual(subset, baseline), variance)
        return HigherTable(fitted(table, self._margins(subset), _ROUNDS), weights, kept)

    def _baseline(self, subset: AttributeIndices) -> np.ndarray:
        """Kirkwood's product of all smaller tables, fitted to those of one attribute less."""
        start = np.ones(self._measured.shape(subset), dtype=np.float32)
        for order in range(len(subset) - 1, -1, -1):
            for axes in combinations(range(len(subset)), order):
                part = self._lower[tuple(subset[axis] for axis in axes)]
                factor = np.expand_dims(
                    part, [axis for axis in range(len(subset)) if axis not in axes]
                )
                if (len(subset) - order) % 2:
                    start *= factor
                else:
                    start /= factor
        start = np.maximum(start, np.float32(_LOWEST_START))
        return fitted(start, self._margins(subset), _ROUNDS_OF_BASELINE)

    def _margins(self, subset: AttributeIndices) -> list[np.ndarray]:
        return [self._lower[subset[:axis] + subset[axis + 1 :]] for axis in range(len(subset))]

    def _residual(self, subset: AttributeIndices, baseline: np.ndarray) -> np.ndarray:
        return self._measured.beyond(subset, baseline).astype(np.float32)

    def _evidence(self, subset: AttributeIndices, baseline: np.ndarray) -> np.ndarray:
        return log_evidence(
            baseline,
            self._residual(subset, baseline),
            self._measured.cell_variance(subset),
            self._measured.degrees_of_freedom_per_cell(subset),
        )
