"""Smooth tables of three and more attributes.

The baseline is the table of largest entropy that agrees with the smooth tables of one attribute
less; what the table's own residual says beyond it is shrunk as for pairs. That no cell is below 0
also tells something of the smaller tables, which is given back to them (docs/mathematics.md §13.4).
"""

from collections.abc import Callable, Container, MutableMapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from rpexplore.common.processes import Progress
from rpexplore.domain.domain import AttributeIndices
from rpexplore.estimation.agreement import fitted
from rpexplore.estimation.one_way import (
    SCALES,
    kept_share,
    learned_weights,
    log_evidence,
    posterior_weights,
    shrunk,
)
from rpexplore.estimation.table_map import MeasuredResiduals

Tables = MutableMapping[AttributeIndices, np.ndarray]

# Of proportional fitting: of the baseline, when smaller tables have moved, of the table itself, and
# of smaller tables that have moved to still smaller ones.
_ROUNDS_OF_BASELINE, _ROUNDS_AGAIN, _ROUNDS, _ROUNDS_OF_MOVED = 6, 3, 5, 10
_LOWEST_START = 1e-9  # counts; fitting cannot lift a 0
_MOST_LEARNED_FROM = 600  # tables of one order, whose scales tell those of all
_NEGLIGIBLE = 1e-4  # the largest τe/v for which the residual is left aside

_TURNS = 3  # in which smaller tables move
_STEP = 2.0  # of these moves; 1 is safe and slower, 3 too much where triples are noisy
_LARGEST_SHARE = 0.98  # of a smaller table's error that one larger table is said to see
_LOWEST = 0.02  # of itself, to which a cell of a smaller table may move at once
_SMALLEST_VARIANCE = 1e-20
_NEGLIGIBLE_MOVE = 1e-3  # of the records, on average over smaller tables

_LARGE_DEVIATION = 0.3  # τ over the mean count, from which on a table is not what its parts suggest
_OF_THE_MODEL = 0.8  # of the variance of its measurement, up to which a part is the model's as well


@dataclass(frozen=True)
class HigherTables:
    """How tables of one order were fitted.

    weights  of `SCALES`, for each table
    kept     share of the residual that was kept, on average over records
    """

    weights: dict[AttributeIndices, np.ndarray]
    kept: dict[AttributeIndices, float]


def higher_tables(
    measured: MeasuredResiduals,
    order: int,
    tables: Tables,
    own_variance: Callable[[AttributeIndices, np.ndarray], np.ndarray],
    on_progress: Progress,
) -> HigherTables:
    """All tables of an order, float32 and above 0.

    Args:
        tables: Smooth tables of every subset of these tables, to which these are added; those of
            one attribute less move.
        own_variance: Of a smaller table, the variance of its cells given its own subsets.
    """
    fit = _Fit(measured, order, tables)
    variances = {part: own_variance(part, tables[part]) for part in fit.parts}
    for turn in range(_TURNS):
        on_progress(f"Fitting {order}-way tables", (turn + 1) / (_TURNS + 2))
        if fit.move_parts(variances) <= _NEGLIGIBLE_MOVE:
            break
        fit.follow_parts()
    on_progress(f"Fitting {order}-way tables", (_TURNS + 1) / (_TURNS + 2))
    return fit.result(fit.beyond_the_model(variances))


class _Fit:
    """The baselines of all tables of an order, and the smaller tables that they are fitted to."""

    def __init__(self, measured: MeasuredResiduals, order: int, tables: Tables) -> None:
        self._measured, self._tables = measured, tables
        self._subsets = measured.of_order(order)
        self.parts = sorted({part for subset in self._subsets for part in _parts(subset)})
        self._single = {part: tables[part].astype(np.float32) for part in tables}
        evidence = {}
        for subset in self._subsets:
            # The table is its baseline first, to save memory.
            baseline = tables[subset] = self._first_baseline(subset)
            evidence[subset] = log_evidence(
                baseline,
                self._residual(subset, baseline),
                measured.cell_variance(subset),
                measured.degrees_of_freedom_per_cell(subset),
            )
        step = max(len(self._subsets) // _MOST_LEARNED_FROM, 1)
        learned = learned_weights([evidence[subset] for subset in self._subsets[::step]])
        # In the room of the evidence: there may be as many as cells in small tables.
        self._weights = evidence
        for subset, logs in evidence.items():
            self._weights[subset] = posterior_weights(logs, learned)
        self._kept = dict.fromkeys(self._subsets, 0.0)
        self._says_something = [subset for subset in self._subsets if self._is_visible(subset)]

    def move_parts(self, variances: Tables) -> float:
        """Give back what projected tables say of smaller ones; the mean move, as a share of all.

        A cell of a smaller table has variance V of its own, and a larger table's noise adds R to
        the same sum: it sees a share g = V/(V + R) of what is wrong with it, and several together
        count like independent observations.
        """
        moves: Tables = {}
        precisions: Tables = {}
        for subset in self._says_something:
            baseline, noise = self._tables[subset], self._measured.cell_variance(subset)
            share, projected = self._projected(subset, baseline)
            remaining = share * np.asarray(noise, dtype=np.float32)
            for axis, part in enumerate(_parts(subset)):
                off = projected.sum(axis=axis) - baseline.sum(axis=axis)
                own = variances[part]
                both = np.maximum(own + remaining.sum(axis=axis), _SMALLEST_VARIANCE)
                seen = np.minimum(own / both, _LARGEST_SHARE)
                precision = seen / (1 - seen)
                moves[part] = moves.get(part, 0.0) + off * precision
                precisions[part] = precisions.get(part, 0.0) + precision
        moved = 0.0
        for part, move in moves.items():
            table = self._tables[part]
            better = table + _STEP * move / (1 + precisions[part])
            better = fitted(
                np.maximum(better, _LOWEST * table),
                [self._tables[smaller] for smaller in _parts(part)],
                _ROUNDS_OF_MOVED,
            )
            moved += float(np.abs(better - table).sum(dtype=float))
            self._tables[part], self._single[part] = better, better.astype(np.float32)
        return moved / self._measured.total / max(len(self.parts), 1)

    def follow_parts(self) -> None:
        """Fit the baselines to the smaller tables again."""
        for subset in self._subsets:
            baseline = self._tables[subset].copy()
            self._tables[subset] = fitted(baseline, self._margins(subset), _ROUNDS_AGAIN)

    def beyond_the_model(self, variances: Tables) -> set[AttributeIndices]:
        """The tables that deviate by much, though the model tells of all their parts.

        A model that is wrong about a table may be wrong about its parts. Parts that are known from
        their own measurements alone are not the model's.
        """
        found = set()
        for subset in self._says_something:
            large = _LARGE_DEVIATION * float(self._tables[subset].mean())
            if float(self._weights[subset][large <= SCALES].sum()) > 0.5:
                of_model = (self._unmeasured(part, variances[part]) for part in _parts(subset))
                if all(share <= _OF_THE_MODEL for share in of_model):
                    found.add(subset)
        return found

    def _unmeasured(self, part: AttributeIndices, variance: np.ndarray) -> float:
        """A smaller table's variance over that of its own measurement, mean over records."""
        noise = float(np.mean(self._measured.cell_variance(part)))
        return float(np.average(variance, weights=self._tables[part])) / noise

    def result(self, beyond_the_model: Container[AttributeIndices]) -> HigherTables:
        """The baselines become tables, fitted to their parts.

        beyond_the_model: those that are not; their parts follow them when all are made to agree
        """
        for subset in self._says_something:
            baseline = self._tables[subset]
            share, projected = self._projected(subset, baseline)
            self._kept[subset] = float((share * baseline).sum() / baseline.sum())
            if subset not in beyond_the_model:
                projected = fitted(projected, self._margins(subset), _ROUNDS)
            self._tables[subset] = projected
        return HigherTables(self._weights, self._kept)

    def _projected(
        self, subset: AttributeIndices, baseline: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Which share of the residual is kept in each cell, and the table that this gives.

        Twice, as large deviations are mostly upwards: what turns out larger than its baseline may
        deviate as a count of that size does.
        """
        noise, weights = self._measured.cell_variance(subset), self._weights[subset]
        residual = self._residual(subset, baseline)
        first = shrunk(baseline, kept_share(baseline, noise, weights), residual, noise)
        share = kept_share(np.maximum(baseline, first), noise, weights)
        return share, shrunk(baseline, share, residual, noise)

    def _is_visible(self, subset: AttributeIndices) -> bool:
        noise = float(np.min(self._measured.cell_variance(subset)))
        largest = float(self._tables[subset].max()) / noise
        return float(self._weights[subset] @ SCALES) * largest > _NEGLIGIBLE

    def _first_baseline(self, subset: AttributeIndices) -> np.ndarray:
        """Kirkwood's product of all smaller tables, fitted to those of one attribute less."""
        start = np.ones(self._measured.shape(subset), dtype=np.float32)
        for order in range(len(subset) - 1, -1, -1):
            for axes in combinations(range(len(subset)), order):
                part = self._single[tuple(subset[axis] for axis in axes)]
                factor = part[
                    tuple(slice(None) if axis in axes else None for axis in range(len(subset)))
                ]
                if (len(subset) - order) % 2:
                    start *= factor
                else:
                    start /= factor
        start = np.maximum(start, np.float32(_LOWEST_START))
        return fitted(start, self._margins(subset), _ROUNDS_OF_BASELINE)

    def _margins(self, subset: AttributeIndices) -> list[np.ndarray]:
        return [self._single[part] for part in _parts(subset)]

    def _residual(self, subset: AttributeIndices, baseline: np.ndarray) -> np.ndarray:
        return self._measured.beyond(subset, baseline).astype(np.float32)


def _parts(subset: AttributeIndices) -> list[AttributeIndices]:
    """The subsets without one attribute, by the axis that is left out."""
    return [subset[:axis] + subset[axis + 1 :] for axis in range(len(subset))]
