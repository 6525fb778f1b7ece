"""Query planner: (queries with targets, budget) → query plan. Never sees a record."""

from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from importlib.metadata import version

import numpy as np

from rpexplore.common.numbers import read_only
from rpexplore.common.processes import Progress, no_progress, one_thread
from rpexplore.errors import PlanError
from rpexplore.planning.counts import QueryPlan, check_scale
from rpexplore.planning.counts_strategy import QueryStrategy
from rpexplore.planning.part_plan import Certificate
from rpexplore.planning.planner import refuse_type
from rpexplore.planning.solvers.queries import TOLERANCE, fitness_for_use, integer_measurement
from rpexplore.privacy.budget import Budget
from rpexplore.workload.query_list import QueryList

TOLERANCE_LEAST = 1e-6

_DIGITS = 12  # of the noise scale


def query_plan(queries: QueryList, *, budget: Budget, tolerance: float = TOLERANCE) -> QueryPlan:
    """The plan within the budget whose largest ratio of variance to squared target is smallest.

    Args:
        queries: The queries, each with its target.
        budget: At one that is too small or more than enough, all queries miss or beat their
            targets by one common factor.
        tolerance: How far (relative) the largest ratio may be from the smallest possible one, at
            least 1e-6; the certificate says how far it is.

    Returns:
        The plan, with its certificate.

    Raises:
        PlanError: If integers cannot measure the queries, or the budget is so small that its noise
            cannot be drawn.

    Example:
        >>> import rpexplore as rp
        >>> domain = rp.Domain.from_sizes({"sex": 2})
        >>> queries = rp.QueryList(domain, [[1, 1], [0, 1]], ("everybody", "women"), [5, 3])
        >>> rp.verify(query_plan(queries, budget=rp.Budget(rho="0.5"))).holds
        True
    """
    refuse_type(budget, {Budget}, "budget", "Budget(rho=0.5)")
    return query_optimum(queries, tolerance=tolerance).at(budget)


def query_optimum(
    queries: QueryList,
    *,
    tolerance: float = TOLERANCE,
    on_progress: Progress = no_progress,
) -> "QueryOptimum":
    """The best measurement for a list of queries; `.at(budget)` makes the plan of a budget.

    Args:
        queries: The queries, each with its target.
        tolerance: As of `query_plan`.
        on_progress: Called after every step; what it raises ends the search.

    Raises:
        PlanError: If integers cannot measure the queries.
    """
    if type(queries) is not QueryList:
        raise PlanError(
            f"A plan of own counts is made for a QueryList, got {type(queries).__name__}."
        )
    if not TOLERANCE_LEAST <= tolerance < 1:
        raise PlanError(f"The tolerance must be {TOLERANCE_LEAST} to 1, got {tolerance}.")
    solution = fitness_for_use(
        queries.coefficients, queries.targets, tolerance, on_progress=on_progress
    )
    with one_thread():
        integers = integer_measurement(
            solution.matrix, queries.coefficients, queries.integers, queries.targets
        )
    if integers is None:
        raise PlanError(
            "These counts cannot be measured in whole numbers without losing accuracy: some are "
            "nearly, but not quite, sums of others. Use coefficients with fewer decimals and of "
            "more similar size."
        )
    return QueryOptimum(
        strategy=QueryStrategy(queries, integers),
        lower_bound=solution.lower_bound,
        shadow_prices=solution.shadow_prices,
        cell_weights=solution.cell_weights,
    )


@dataclass(frozen=True, eq=False, repr=False)
class QueryOptimum:
    """The best measurement for a list of queries, whatever the budget (docs/mathematics.md §6.2).

    lower_bound    of the privacy cost of one record at which any mechanism meets all targets
    shadow_prices  float64[n_queries]; cell_weights: float64[n_cells]; both sum to 1
    """

    strategy: QueryStrategy
    lower_bound: float
    shadow_prices: np.ndarray
    cell_weights: np.ndarray

    @property
    def queries(self) -> QueryList:
        return self.strategy.queries

    @property
    def variances(self) -> np.ndarray:
        """Of each query's answer at privacy cost 1, float64[n_queries]; at c: over c."""
        return self.strategy.variance_factors * self.strategy.squared_sensitivity

    @property
    def needed_costs(self) -> np.ndarray:
        """Privacy cost of one record at which each query meets its target, float64[n_queries]."""
        return self.variances / self.queries.targets**2

    @property
    def cost(self) -> float:
        """Privacy cost of one record at which all queries meet their targets."""
        return float(np.max(self.needed_costs))

    def at(self, budget: Budget) -> QueryPlan:
        """The plan with the smallest largest ratio within the budget, exact and certified.

        Raises `PlanError` for a budget so small that its noise cannot be drawn.
        """
        allowed = budget.record_privacy_cost
        squared = self.strategy.squared_sensitivity
        # Rounded up to a decimal of `_DIGITS` digits, so that the cost stays within the budget.
        value = squared / allowed
        context = Context(prec=_DIGITS, rounding=ROUND_CEILING)
        gamma_squared = Fraction(
            context.divide(Decimal(value.numerator), Decimal(value.denominator))
        )
        check_scale(gamma_squared)
        variances = self.strategy.variance_factors * float(gamma_squared)
        return QueryPlan(
            strategy=self.strategy,
            budget=budget,
            gamma_squared=gamma_squared,
            variances=read_only(variances),
            exact_privacy_cost=squared / gamma_squared * budget.records_factor,
            certificate=Certificate(
                loss_value=float(np.max(variances / self.queries.targets**2)),
                lower_bound=self.lower_bound / float(allowed),
                shadow_prices=self.shadow_prices,
            ),
            cell_weights=read_only(self.cell_weights),
            version=version("rpexplore"),
        )
