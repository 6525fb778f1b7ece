"""Smooth tables of pairs: the factor model, and what each pair's own residual says beyond it."""

from dataclasses import dataclass

import numpy as np

from rpexplore.common.concurrency import Progress
from rpexplore.domain.domain import AttributeIndices
from rpexplore.estimation.factor_model import FactorModel, factor_model
from rpexplore.estimation.fitting import fitted
from rpexplore.estimation.measured_residuals import MeasuredResiduals
from rpexplore.estimation.one_way import OneWay
from rpexplore.estimation.shrinkage import (
    kept_share,
    learned_weights,
    log_evidence,
    posterior_weights,
    shrunk,
)

_LOWEST = 0.02  # of independence, that the factor model may go down to
_ROUNDS_OF_MODEL, _ROUNDS = 10, 30  # of proportional fitting to the one-way tables


@dataclass(frozen=True)
class Pairs:
    """The tables of all pairs.

    tables   float64, above 0; they add up to the one-way tables
    weights  of `SCALES`, for each pair
    kept     share of the residual beyond the model that was kept, on average over records
    """

    model: FactorModel | None
    tables: dict[AttributeIndices, np.ndarray]
    weights: dict[AttributeIndices, np.ndarray]
    kept: dict[AttributeIndices, float]


def smooth_pairs(measured: MeasuredResiduals, low: OneWay, on_progress: Progress) -> Pairs:
    """The tables of all measured pairs."""
    model = factor_model(measured, low, on_progress)
    if model is None:
        return Pairs(None, {}, {}, {})
    baselines = {pair: _baseline(low, model, *pair) for pair in measured.of_order(2)}
    evidence = {
        pair: _evidence(measured, model, pair, baseline) for pair, baseline in baselines.items()
    }
    learned = learned_weights(list(evidence.values()))
    tables, weights, kept = {}, {}, {}
    for pair, baseline in baselines.items():
        variance = measured.cell_variance(pair)
        weights[pair] = posterior_weights(evidence[pair], learned)
        share = kept_share(baseline, variance, weights[pair])
        table = shrunk(baseline, share, measured.beyond(pair, baseline), variance)
        kept[pair] = float(np.sum(share * baseline) / baseline.sum())
        tables[pair] = fitted(table, _margins(low, *pair), _ROUNDS)
    return Pairs(model, tables, weights, kept)


def _evidence(
    measured: MeasuredResiduals, model: FactorModel, pair: AttributeIndices, baseline: np.ndarray
) -> np.ndarray:
    """Of each of `SCALES`, for what a pair shows beyond a baseline without its own noise.

    A baseline that repeats a share h of the pair's residual leaves 1 − h of it, of noise and
    deviation alike: taken as it is, it would look like less than noise.
    """
    j, k = pair
    left = 1 - model.leverage(j, k, measured.even_variance(pair))
    return log_evidence(
        baseline,
        measured.beyond(pair, baseline) / left,
        measured.cell_variance(pair),
        measured.degrees_of_freedom_per_cell(pair),
    )


def _baseline(low: OneWay, model: FactorModel, j: int, k: int) -> np.ndarray:
    independent = np.outer(low.tables[j], low.tables[k]) / model.total
    table = np.maximum(independent + model.deviation(j, k), _LOWEST * independent)
    return fitted(table, _margins(low, j, k), _ROUNDS_OF_MODEL)


def _margins(low: OneWay, j: int, k: int) -> list[np.ndarray]:
    return [low.tables[k], low.tables[j]]
