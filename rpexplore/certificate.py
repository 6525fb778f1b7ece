"""Certificate: the proof that a plan is as good as it says."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from rpexplore.words import rounded


@dataclass(frozen=True, eq=False)
class Certificate:
    """Loss of a plan, and a bound that no plan within the same budget can go below.

    The bound is the Lagrangian dual (Σ √(p · Bᵀy))² / c at the table weights y that the shadow
    prices give, so anybody can recompute it from the plan file (math.md §2.1, §2.2).

    shadow_prices  float64[n_tables], sum 1: by how many per cent the smallest possible loss grows
                   when a table's importance grows by one per cent; 0: the table costs nothing
    """

    loss_value: float
    lower_bound: float
    shadow_prices: np.ndarray

    def __post_init__(self) -> None:
        self.shadow_prices.setflags(write=False)

    @property
    def gap(self) -> float:
        """How far the plan's loss can be above the smallest possible one, relative, ≥ 0."""
        return max(self.loss_value / self.lower_bound - 1, 0.0)

    @property
    def sentence(self) -> str:
        """What is proven, in words."""
        share = (
            "one part in a billion"
            if self.gap < 1e-9
            else f"{rounded(100 * Fraction(self.gap), 2, 'up')} %"
        )
        return f"By the aim chosen, no plan within this budget can be better by more than {share}."
