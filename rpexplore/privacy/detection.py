"""Detection: how well anybody could tell from a release whether somebody was in the data."""

import numpy as np

from rpexplore.common.exact_numbers import Exact
from rpexplore.privacy.conversions import delta_from_rho

_EPSILONS = np.geomspace(1e-4, 100.0, 150).tolist()


def most_detected(rho: Exact, false_alarms: float) -> float:
    """The largest share of those in the data whom any test of this release could recognise.

    false_alarms: the share of those not in the data whom the test takes to be in it

    A release that is (ε, δ)-DP allows e^ε · false_alarms + δ at most, and, with the roles of the
    two changed, 1 − e^−ε (1 − δ − false_alarms) at most (Kairouz, Oh, Viswanath: The Composition
    Theorem for Differential Privacy, ICML 2015, Thm. 2.1). Of ρ this holds for every ε and its
    δ(ε), so the smallest of some is a bound: a coarse choice costs tightness, never validity.
    """
    least = 1.0
    for epsilon in _EPSILONS:
        delta = delta_from_rho(rho, epsilon)
        factor = np.exp(epsilon)
        least = min(least, factor * false_alarms + delta, 1 - (1 - delta - false_alarms) / factor)
    return float(least)
