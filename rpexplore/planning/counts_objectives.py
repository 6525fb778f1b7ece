"""Objectives of own counts: what is made of the ratios of variances to squared targets."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rpexplore.common.numbers import shown_value
from rpexplore.errors import WorkloadError
from rpexplore.planning.solvers.queries import mean_bound


@dataclass(frozen=True)
class CountsObjective:
    """What a plan of own counts minimises; a ratio is a count's variance over its squared target.

    option          its name in files, in Python and on the command line
    title           on screen: "minimise the average error"
    value_key       its name in certificates
    description     the value, for a sentence
    value           of ratios, float64[n]
    bound           (least, prices): what no plan's value can be below if none has Σ price · ratio
                    below `least`; prices: float64[n], sum 1
    power           p where the value is a p-norm, up to a factor; None where it is none
    is_homogeneous  whether the best plan of one budget, scaled, is that of every other one
    """

    option: str
    title: str
    value_key: str
    description: str
    value: Callable[[np.ndarray], float]
    bound: Callable[[float, np.ndarray], float]
    power: float | None = None
    is_homogeneous: bool = True


_MEAN = "mean_ratio", "the mean ratio of a variance to its squared target"

LARGEST = CountsObjective(
    "largest",
    "minimise the largest shortfall from targets",
    "largest_ratio",
    "the largest ratio of a variance to its squared target",
    lambda ratios: float(np.max(ratios)),
    lambda least, prices: least,
    power=np.inf,
)
SUM = CountsObjective(
    "sum",
    "minimise the average error relative to targets",
    *_MEAN,
    lambda ratios: float(np.mean(ratios)),
    # Σ ratio / m ≥ Σ price · ratio / (m · the largest price).
    lambda least, prices: least / (len(prices) * float(np.max(prices))),
    power=1.0,
)
TARGETS_THEN_SUM = CountsObjective(
    "targets-then-sum",
    "meet all targets, then minimise the average error relative to targets",
    *_MEAN,
    lambda ratios: float(np.mean(ratios)),
    mean_bound,
    is_homogeneous=False,
)
OBJECTIVES = {each.option: each for each in (LARGEST, SUM, TARGETS_THEN_SUM)}


def counts_objective(option: str) -> CountsObjective:
    """The objective of this name. Raises `WorkloadError` for another."""
    if option not in tuple(OBJECTIVES):
        raise WorkloadError(
            f"The objective of own counts must be one of {', '.join(OBJECTIVES)}, got "
            f"{shown_value(option)}."
        )
    return OBJECTIVES[option]
