"""Certificate: the proof that a plan is as good as it says."""

from dataclasses import dataclass

import numpy as np


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
        return f"No plan with this budget can have a loss smaller by more than {_share(self.gap)}."


def _share(gap: float) -> str:
    """A relative gap rounded up for reading: "0.0001 %", "1 part in 10 billion"."""
    if gap < 1e-9:
        return "one part in a billion"
    digits = f"{100 * gap * (1 + 5e-2):.1e}"
    mantissa, exponent = digits.split("e")
    value = float(mantissa) * 10 ** int(exponent)
    return f"{value:.12f}".rstrip("0").rstrip(".") + " %"
