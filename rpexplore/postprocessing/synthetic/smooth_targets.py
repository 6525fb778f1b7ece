"""Targets of synthetic records from a release: its smooth two-way tables."""

from math import pi, sqrt

import numpy as np

from rpexplore.common.concurrency import Progress, no_progress
from rpexplore.domain.domain import AttributeIndices
from rpexplore.estimation.smooth_tables import SmoothTables, smooth_residuals
from rpexplore.estimation.table_map import ContributionArrays, subsets
from rpexplore.planning.mechanism.reconstruction import marginal
from rpexplore.postprocessing.estimates import Estimates
from rpexplore.postprocessing.smooth import measured_residuals
from rpexplore.postprocessing.synthetic.targets import PairTargets, targets_from_tables

MOST_RESIDUALS = 5_000
"""Up to so many all smooth tables are fitted, as larger tables tell pairs a little; else pairs."""

_MOST_PAIRS = 150  # whose errors are averaged


def smooth_tables(estimates: Estimates, on_progress: Progress = no_progress) -> SmoothTables:
    """The smooth tables that records are fitted to; of many residuals, those of pairs alone."""
    largest_order = 2 if len(estimates.contributions) > MOST_RESIDUALS else None
    measured = measured_residuals(estimates, largest_order)
    return smooth_residuals(measured, on_progress=on_progress)


def smooth_targets(
    estimates: Estimates, contributions: ContributionArrays, attributes: AttributeIndices
) -> tuple[PairTargets, float]:
    """What records are fitted to, from the contributions of smooth tables; and their total."""

    def counts(table: AttributeIndices) -> np.ndarray:
        return smooth_counts(estimates, contributions, table)

    pairs = [subset for subset in contributions if len(subset) == 2]
    targets = targets_from_tables(counts, attributes, pairs, estimates.domain)
    return targets, max(float(contributions[()]), 1.0)


def smooth_counts(
    estimates: Estimates, contributions: ContributionArrays, table: AttributeIndices
) -> np.ndarray:
    """The counts of the single values of a smooth table, one axis an attribute."""
    sizes = estimates.domain.sizes
    several = tuple(index for index in table if sizes[index] > 1)
    within = {subset: contributions[subset] for subset in subsets(several)}
    return marginal(table, sizes, within, estimates.strategies)


def smooth_misfit(smooth: SmoothTables, total: float) -> float:
    """By how much noise has moved smooth two-way tables, as their model-based errors have it.

    As `PairTargets.misfit`: the share of the records in another cell than without noise, mean over
    tables. Of a normal error the mean deviation is √(2/π) times the standard error.
    """
    pairs = [subset for subset in smooth.contributions if len(subset) == 2]
    some = pairs[:: max(len(pairs) // _MOST_PAIRS, 1)]
    misfits = [smooth.standard_errors(pair).sum() / (sqrt(2 * pi) * total) for pair in some]
    return float(np.mean(misfits)) if misfits else 0.0
