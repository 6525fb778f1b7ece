"""Certificate: the proof that a plan is as good as it says (docs/mathematics.md §6.9)."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from rpexplore.common.formatting import rounded
from rpexplore.common.json_fields import not_negative, positive
from rpexplore.common.numerics import read_only
from rpexplore.errors import PlanError
from rpexplore.planning.losses.base import Loss
from rpexplore.planning.mechanism.cell_variances import CellVariances
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.solvers.solution import CellPrices, dual_bound
from rpexplore.workload.workload import Workload

# Gaps below these are too small to be read as per cent.
_SMALL_PARTS = (
    (1e-5, "one part in 100,000"),
    (1e-6, "one part in a million"),
    (1e-9, "one part in a billion"),
)


@dataclass(frozen=True, eq=False)
class Certificate:
    """Loss of a plan, and a bound that no plan within the same budget can go below.

    The bound is the Lagrangian dual (Σ √(p · Bᵀy))² / c at the table weights y that the shadow
    prices give, so anybody can recompute it from the plan file. Arrays are float64[n_tables]:

    shadow_prices  sum 1; by how many per cent the smallest possible loss grows when a table's
                   weight grows by one per cent
    cells, dual_weights, limit   as of `Solution`
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
                read_only(array)

    @property
    def gap(self) -> float:
        """How far the plan's loss can be above the smallest possible one, relative, ≥ 0."""
        return max(self.loss_value / self.lower_bound - 1, 0.0)

    def sentence(self, restriction: str = "") -> str:
        """The bound as a sentence: of all plans, or of those with a restriction (" that …")."""
        share = f"{rounded(100 * Fraction(self.gap), 2, 'up')} %"
        for part, text in _SMALL_PARTS:
            if self.gap < part:
                share = text
        return (
            f"By the objective, no plan within this budget{restriction} can be better by more than "
            f"{share}."
        )


def certificate_from_json(
    content: dict[str, Any],
    loss_key: str,
    shadow_prices: np.ndarray,
    *,
    cells: CellPrices | None = None,
    dual_weights: np.ndarray | None = None,
) -> Certificate:
    """The certificate whose loss stands under `loss_key`; `PlanError` where it cannot be right."""

    def number(key: str, check: Callable[[list[Any], str], np.ndarray] = positive) -> float:
        return float(check([content[key]], key)[0])

    loss, lower_bound, gap = number(loss_key), number("lower_bound"), number("gap", not_negative)
    limit = None if content.get("limit") is None else number("limit")
    certificate = Certificate(loss, lower_bound, shadow_prices, cells, dual_weights, limit)
    if certificate.gap != gap:
        raise PlanError(
            f"the certificate's gap does not follow from its {loss_key} and lower_bound: it must "
            f"be {certificate.gap!r}, got {gap!r}."
        )
    return certificate


def smallest_weighted_sum(
    workload: Workload,
    closure: Closure,
    loss: Loss,
    dual_weights: np.ndarray,
    cells: CellPrices | None,
    cost: float,
) -> float:
    """Up to rounding, no plan's Σ dual_weights · Var is below it at this privacy cost.

    It is RP+ Lemma 2, and a loss bounds itself from below by such a sum (`Loss.minorant`). cells:
    how the part on least accurate cells is spread over them; what is stated of no cell counts for
    the table's mean.
    """
    on_means = loss.weights_on_means(workload, dual_weights)
    prices = dual_weights - on_means
    if workload.is_marginals or cells is None:
        residual_weights = closure.residual_weights(dual_weights)
    else:
        of_tables = np.bincount(cells.tables, cells.prices, len(workload))
        on_mean = on_means + np.where(of_tables > 0, 0.0, prices)
        spread = cells.prices * (prices / np.where(of_tables > 0, of_tables, 1.0))[cells.tables]
        of_cells = CellVariances(workload, closure).map(cells.tables, cells.rows)
        residual_weights = of_cells.residual_weights(spread) + closure.residual_weights(on_mean)
    return dual_bound(closure.privacy_cost_factor, residual_weights, cost)
