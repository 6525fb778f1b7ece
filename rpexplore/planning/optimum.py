"""Optimum: the solution of a planning problem, which scales to any budget.

Most losses are homogeneous in the variances, so the best noise scales of one budget are those of
another times the ratio of the two (docs/mathematics.md §6.2): solved once, at privacy cost 1.
Others, such as sums within targets, are solved for one budget, and their plan is for that alone.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from importlib.metadata import version

import numpy as np

from rpexplore.common.exact_numbers import Decimals
from rpexplore.errors import PlanError
from rpexplore.planning.certificate import Certificate
from rpexplore.planning.losses.base import Loss
from rpexplore.planning.mechanism.accounting import privacy_cost_upper_bound
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.mechanism.table_variances import TableVariances
from rpexplore.planning.solvers.solution import Solution
from rpexplore.planning.table_plan import TablePlan
from rpexplore.privacy.budget import Budget
from rpexplore.workload.workload import Workload


@cache
def _version() -> str:
    """That of this program, looked up once: a slider asks for many plans."""
    return version("rpexplore")


@dataclass(frozen=True, eq=False, repr=False)
class Optimum:
    """The solution of a planning problem at privacy cost 1 of one record, or for one budget.

    solution  at privacy cost 1, or at that of `budget`
    budget    the one it was solved for, where the loss is not homogeneous
    """

    workload: Workload
    loss: Loss
    closure: Closure
    solution: Solution
    budget: Budget | None = None

    @cached_property
    def table_variances(self) -> TableVariances:
        """Mean, worst and best cell variance of each table at privacy cost 1; at c: over c."""
        return TableVariances.of(self.workload, self.closure, self._sigma_squared)

    @cached_property
    def _sigma_squared(self) -> np.ndarray:
        """At privacy cost 1, float64[n_residuals]."""
        solved_at = 1.0 if self.budget is None else record_cost(self.budget)
        return self.solution.sigma_squared * solved_at

    @property
    def mean_variances(self) -> np.ndarray:
        """Mean cell variance of each table at privacy cost 1, float64[n_tables]; at c: over c."""
        return self.table_variances.mean

    def standard_errors(self, budget: Budget, cell: str = "mean") -> np.ndarray:
        """Standard error of a cell of each table within a budget, float64[n_tables].

        cell: "mean" (root of the mean variance), "largest" or "smallest"
        """
        return np.sqrt(self.table_variances.at(cell) / record_cost(budget))

    def at(self, budget: Budget) -> TablePlan:
        """The plan with the smallest loss within the budget, exact and with its certificate.

        Raises `PlanError` for a budget that cannot be computed with, or is not the one solved for.
        """
        cost, limit, solved_at = record_cost(budget), self.solution.limit, self.budget
        if solved_at and solved_at.record_privacy_cost != budget.record_privacy_cost:
            raise PlanError(
                f"With the objective {self.loss.title} the best plan of one budget is not that of "
                "another; plan again for this one."
            )
        sigma_squared, exact_cost = _within_budget(
            self.closure, self._sigma_squared / cost, budget.record_privacy_cost
        )
        variances = TableVariances.of(self.workload, self.closure, sigma_squared.floats)
        return TablePlan(
            workload=self.workload,
            loss=self.loss,
            budget=budget,
            closure=self.closure,
            sigma_squared=sigma_squared,
            table_variances=variances,
            exact_privacy_cost=exact_cost * budget.records_factor,
            certificate=Certificate(
                loss_value=self.loss.value(variances.of_loss(self.loss), self.workload),
                lower_bound=self.solution.lower_bound / (cost if self.budget is None else 1.0),
                shadow_prices=self.solution.shadow_prices,
                cells=self.solution.cells,
                dual_weights=self.solution.dual_weights,
                limit=None if limit is None else limit / cost,
            ),
            version=_version(),
        )


def record_cost(budget: Budget) -> float:
    """Privacy cost of one record; raises `PlanError` where it cannot be computed with."""
    cost = float(budget.record_privacy_cost)
    if not 1e-120 < cost < 1e120:
        raise PlanError(
            f"The budget leaves a privacy cost of {cost:.3g} for one record, which cannot be "
            "planned with; use a budget between 1e-120 and 1e120."
        )
    return cost


def _within_budget(
    closure: Closure, sigma_squared: np.ndarray, record_budget: Fraction
) -> tuple[Decimals, Fraction]:
    """The noise scales as decimals, raised as little as needed until their exact cost fits."""
    raised = 1.0
    for _ in range(20):
        rounded = Decimals.rounded_up(sigma_squared * raised)
        cost = privacy_cost_upper_bound(closure, rounded)
        if cost <= record_budget:
            return rounded, cost
        # What is over is rounding: far below a millionth of the budget.
        raised *= 1.0 + max(2.0 * float(cost / record_budget - 1), 1e-15)
    raise PlanError(
        "The noise scales could not be brought within the budget; please report this workload."
    )
