"""Certificate: the proof that a plan is as good as it says."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from rpexplore.common.formatting import rounded
from rpexplore.planning.solvers.solution import CellPrices


@dataclass(frozen=True, eq=False)
class Certificate:
    """Loss of a plan, and a bound that no plan within the same budget can go below.

    The bound is the Lagrangian dual (Σ √(p · Bᵀy))² / c at the table weights y that the shadow
    prices give, so anybody can recompute it from the plan file (docs/mathematics.md §6.9).

    shadow_prices  float64[n_tables], sum 1: by how many per cent the smallest possible loss grows
                   when a table's weight grows by one per cent; 0: the table costs nothing
    cells          the cells that make the shadow prices up, where tables have unequal cells and
                   the loss looks at the worst one
    dual_weights   float64[n_tables], of losses other than sums and largest variances: the weight
                   d on each table's variance from which the bound follows by the loss's minorant;
                   the shadow prices are then each table's share of Σ d · Var
    limit          of a `SumWithBoundedMax`: the largest weighted variance allowed
    """

    loss_value: float
    lower_bound: float
    shadow_prices: np.ndarray
    cells: CellPrices | None = None
    dual_weights: np.ndarray | None = None
    limit: float | None = None

    def __post_init__(self) -> None:
        for array in (self.shadow_prices, self.dual_weights):
            if array is not None:
                array.setflags(write=False)

    @property
    def gap(self) -> float:
        """How far the plan's loss can be above the smallest possible one, relative, ≥ 0."""
        return max(self.loss_value / self.lower_bound - 1, 0.0)

    def sentence(self, *, any_strategies: bool = True) -> str:
        """The bound as a sentence: of all plans, or of those with the strategies of this one."""
        share = f"{rounded(100 * Fraction(self.gap), 2, 'up')} %"
        if self.gap < 1e-9:
            share = "one part in a billion"
        plans = "no plan within this budget"
        if not any_strategies:
            plans += " that measures the attributes as this one does"
        return f"By the objective, {plans} can be better by more than {share}."
