"""Panel: what a person costs who has at most one record in each period, and in m periods at most.

One attribute, of n values, is the period. A residual S without it and the one with it, S ∪ {q}, are
about the same contrasts w_i of the person's records i: as these are in different periods,

    Σ_i Σ_j ⟨w_i, w_j⟩ t_S + (Σ_i ‖w_i‖² − Σ_i Σ_j ⟨w_i, w_j⟩ / n) t_Sq
        ≤ p_S (m t_Sq + m² max(0, t_S − t_Sq / n)),    t = 1/σ², p_S = ∏ (n_k − 1)/n_k,

with equality for m records that are the same but for the period, if t_S ≥ t_Sq / n for all S
(docs/guarantees.md, "Panels"). All costs here are over m², as those of a record are.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rpexplore.common.numbers import read_only

if TYPE_CHECKING:
    from rpexplore.planning.mechanism.closure import Closure


@dataclass(frozen=True, eq=False)
class Panel:
    """The period, and prices on the two sides of each max(0, ·).

    period  the index of its attribute
    most    m: in how many periods a person can have a record
    shares  float64[n_residuals], 0 to 1: of residuals without the period, the price of the side
            t_S − t_Sq / n, against that of 0; 1 for those that are not measured by period as well
    """

    period: int
    most: int
    shares: np.ndarray

    def __post_init__(self) -> None:
        read_only(self.shares)

    @classmethod
    def of(cls, closure: "Closure", period: int, most: int) -> "Panel":
        """Of equal prices."""
        partners = partners_of(closure, period)
        shares = np.where((partners < 0) & ~has_period(closure, period), 1.0, 0.5)
        return cls(period, most, shares)

    def cost_factors(self, closure: "Closure") -> np.ndarray:
        """What each residual costs at σ² = 1 and these prices, over m²: float64[n_residuals]."""
        without = cost_without(closure, self.period)
        partners, n = partners_of(closure, self.period), float(closure.sizes[self.period])
        factors = without * self.shares
        paired = np.flatnonzero(partners >= 0)
        of_period = 1 / self.most - self.shares[paired] / n
        factors[partners[paired]] = without[paired] * np.maximum(of_period, 0.0)
        return factors

    def best_shares(self, closure: "Closure", weights: np.ndarray) -> np.ndarray:
        """The prices that bound Σ weights · σ² best: float64[n_residuals].

        They maximise √(s v) + √((1/m − s/n) v_q) for each pair, s at most 1.
        """
        partners, n = partners_of(closure, self.period), float(closure.sizes[self.period])
        paired = np.flatnonzero(partners >= 0)
        own, of_period = weights[paired], weights[partners[paired]]
        shares = np.array(self.shares)
        shares[paired] = np.minimum(n**2 * own / (self.most * (n * own + of_period)), 1.0)
        return shares


def has_period(closure: "Closure", period: int) -> np.ndarray:
    """Whether each residual is by period: bool[n_residuals]."""
    return np.any(closure.members == period, axis=1)


def cost_without(closure: "Closure", period: int) -> np.ndarray:
    """∏ (n_k − 1)/n_k over the attributes of each residual but the period: float64[n_residuals]."""
    n = float(closure.sizes[period])
    return closure.full_cost_factor / np.where(has_period(closure, period), (n - 1) / n, 1.0)


def partners_of(closure: "Closure", period: int) -> np.ndarray:
    """Of each residual without the period the one with it; −1 where there is none: int64[·]."""
    partners = np.full(len(closure), -1)
    for residual in np.flatnonzero(has_period(closure, period)).tolist():
        rest = [index for index in closure.attributes(residual) if index != period]
        own = closure.find(rest)
        assert own is not None  # all subsets of tables are there
        partners[own] = residual
    return partners


def largest_factors(closure: "Closure", panel: Panel) -> np.ndarray:
    """The most that each residual alone costs a person at σ² = 1, over m²: float64[n_residuals]."""
    factors = cost_without(closure, panel.period)
    return np.where(has_period(closure, panel.period), factors / panel.most, factors)


def dearest_person(closure: "Closure", panel: Panel, sigma_squared: np.ndarray) -> float:
    """What a person costs at most, over m², in floats."""
    without, partners = cost_without(closure, panel.period), partners_of(closure, panel.period)
    t, n = 1 / sigma_squared, float(closure.sizes[panel.period])
    of_period = np.where(partners >= 0, t[partners], 0.0)
    terms = of_period / panel.most + np.maximum(t - of_period / n, 0.0)
    return float(np.sum((without * terms)[~has_period(closure, panel.period)]))
