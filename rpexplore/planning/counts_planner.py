"""Query planner: (queries with targets, budget) → query plan. Never sees a record."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from importlib.metadata import version

import numpy as np

from rpexplore.common.numbers import read_only
from rpexplore.common.processes import Progress, no_progress, one_thread
from rpexplore.common.text import rounded
from rpexplore.errors import OutOfReachError, PlanError
from rpexplore.planning.counts import QueryPlan, check_scale, noise_of_counts
from rpexplore.planning.counts_moves import KeptByCounts
from rpexplore.planning.counts_objectives import (
    LARGEST,
    SUM,
    TARGETS_THEN_SUM,
    CountsObjective,
    counts_objective,
)
from rpexplore.planning.counts_strategy import QueryStrategy, without
from rpexplore.planning.free_counts import indices_of_free, with_free_counts
from rpexplore.planning.part_plan import Certificate
from rpexplore.planning.replaced_counts import Changes, planned_for_moves, replaced_strategy
from rpexplore.planning.solvers.queries import (
    TOLERANCE,
    Fitness,
    fitness_for_use,
    least_mean_within_targets,
)
from rpexplore.planning.solvers.query_rounding import integer_measurement
from rpexplore.privacy.budget import Budget
from rpexplore.privacy.discrete_noise import DiscreteNoise
from rpexplore.workload.query_list import QueryList

TOLERANCE_LEAST = 1e-6

_DIGITS = 12  # of the noise scale
_LEFT_BY_ROUNDING = 1e-11  # of a budget, at most, by these digits
_NOT_IN_INTEGERS = (
    "These counts cannot be measured in whole numbers without losing accuracy: some are nearly, "
    "but not quite, sums of others. Use coefficients with fewer decimals and of more similar size."
)
_AIMS = 8  # tries to keep targets in integers


def query_optimum(
    queries: QueryList,
    *,
    objective: str = LARGEST.option,
    budget: Budget | None = None,
    free: Collection[str] = (),
    tolerance: float = TOLERANCE,
    replaces: bool = False,
    exact: Sequence[Sequence[str]] = (),
    on_progress: Progress = no_progress,
) -> "QueryOptimum":
    """The best measurement for a list of queries; `.at(budget)` makes the plan of a budget.

    Args:
        queries: The queries, each with its target.
        budget: The one to plan for, where the objective depends on it.
        objective, free, tolerance: As of `query_plan`.
        replaces: Whether neighbours replace a record; plans for others follow from any optimum.
        exact: The totals that they keep, as of a `Budget`.
        on_progress: Called after every step; what it raises ends the search.

    Raises:
        PlanError: If integers cannot measure the queries, a budget is needed, or a count cannot be
            free.
        OutOfReachError: If targets that come first cannot all be met within it.
    """
    if type(queries) is not QueryList:
        raise PlanError(
            f"A plan of own counts is made for a QueryList, got {type(queries).__name__}."
        )
    if not TOLERANCE_LEAST <= tolerance < 1:
        raise PlanError(f"The tolerance must be {TOLERANCE_LEAST} to 1, got {tolerance}.")
    if replaces:
        if free:
            raise PlanError(
                "Free counts go with neighbours that add or remove a record: what a replaced "
                "record leaves of the budget depends on what it becomes. Plan them with the others."
            )
        kept = KeptByCounts.of(queries.domain, exact) if exact else None
        return _replaced_optimum(queries, counts_objective(objective), kept, tolerance, on_progress)
    if free:
        places = indices_of_free(queries, free)
        optimum = query_optimum(
            without(queries, places), objective=objective, budget=budget, tolerance=tolerance,
            on_progress=on_progress,
        )  # fmt: skip
        strategy = with_free_counts(
            optimum.strategy, queries, places, tolerance=tolerance, on_progress=on_progress
        )
        prices = np.zeros(len(queries))
        prices[strategy.is_charged] = optimum.shadow_prices
        return replace(optimum, strategy=strategy, shadow_prices=prices)
    chosen = counts_objective(objective)
    solution = fitness_for_use(
        queries.coefficients,
        queries.targets,
        tolerance,
        average=1.0 if chosen is SUM else 0.0,
        on_progress=on_progress,
    )
    strategy = _in_integers(queries, solution.matrix, 1.0 if chosen is SUM else 0.0)
    if strategy is None:
        raise PlanError(_NOT_IN_INTEGERS)
    optimum = QueryOptimum(
        strategy=strategy,
        lower_bound=solution.lower_bound,
        shadow_prices=solution.shadow_prices,
        cell_weights=solution.cell_weights,
        objective=LARGEST if chosen is TARGETS_THEN_SUM else chosen,
    )
    if chosen is not TARGETS_THEN_SUM:
        return optimum
    if budget is None:
        raise PlanError("Own counts whose targets come first are planned for one budget; name it.")
    return _with_targets_first(optimum, solution, budget, tolerance, on_progress)


def _replaced_optimum(
    queries: QueryList,
    objective: CountsObjective,
    kept: KeptByCounts | None,
    tolerance: float,
    on_progress: Progress,
) -> "QueryOptimum":
    """The best measurement where neighbours replace a record, or keep exact totals."""
    if objective is TARGETS_THEN_SUM:
        raise PlanError(
            f"The objective {objective.option} is for neighbours that add or remove a record; take "
            f"{LARGEST.option} or {SUM.option}."
        )
    average, public = 1.0 if objective is SUM else 0.0, None
    if kept is not None:
        changes, solution, public = planned_for_moves(
            queries, kept, tolerance, average, on_progress
        )
    else:
        changes = Changes.of(queries)
        solution = fitness_for_use(
            changes.differences,
            queries.targets[changes.is_moved],
            tolerance,
            average=average,
            on_progress=on_progress,
        )
    strategy = replaced_strategy(queries, changes, solution, average, kept, public)
    if strategy is None:
        raise PlanError(_NOT_IN_INTEGERS)
    prices = np.zeros(len(queries))
    prices[changes.is_moved] = solution.shadow_prices
    held = solution.cell_weights > 0
    return QueryOptimum(
        strategy=strategy,
        lower_bound=solution.lower_bound,
        shadow_prices=prices,
        cell_weights=solution.cell_weights[held],
        objective=objective,
        cell_pairs=read_only(changes.cells[held]),
    )


def _with_targets_first(
    largest: "QueryOptimum",
    solution: Fitness,
    budget: Budget,
    tolerance: float,
    on_progress: Progress,
) -> "QueryOptimum":
    """The optimum with the smallest mean ratio at this budget of which none is above 1.

    largest: the one with the smallest largest ratio, and its solution before rounding
    """
    queries, allowed = largest.queries, float(budget.record_privacy_cost)
    cost = allowed * (1 - _LEFT_BY_ROUNDING)
    if largest.cost > cost:
        furthest = int(np.argmax(largest.needed_costs))
        raise OutOfReachError(
            f"The targets of own counts cannot all be met at this budget; among those that bind is "
            f"that of {queries.names[furthest]!r}. Use {rounded(largest.cost / cost, 4, 'up')} "
            "times the budget, make targets wider, or choose the objective "
            f"{LARGEST.option} or {SUM.option}.",
            needed=largest.cost / cost,
        )
    found = least_mean_within_targets(
        queries.coefficients, queries.targets, cost, tolerance,
        largest=solution, on_progress=on_progress,
    )  # fmt: skip
    best, aim = largest.strategy, cost
    for _ in range(_AIMS):
        strategy = _in_integers(queries, found.matrix(aim), 0.0)
        if strategy is None:
            break
        needed = float(np.max(_needed_costs(strategy)))
        if needed <= cost:
            best = min(best, strategy, key=lambda one: float(np.mean(_needed_costs(one))))
            break
        aim *= cost / needed * (1 - _LEFT_BY_ROUNDING)  # what rounding to integers costs
    return QueryOptimum(
        strategy=best,
        lower_bound=found.proof.lower_bound,
        shadow_prices=found.proof.shadow_prices,
        cell_weights=found.proof.cell_weights,
        objective=TARGETS_THEN_SUM,
        budget=budget,
    )


def _in_integers(queries: QueryList, matrix: np.ndarray, average: float) -> QueryStrategy | None:
    """R in integers; None where it cannot be without losing accuracy."""
    with one_thread(with_scipy=True):
        integers = integer_measurement(
            matrix, queries.coefficients, queries.integers, queries.targets, average
        )
    return None if integers is None else QueryStrategy(queries, integers)


def _needed_costs(strategy: QueryStrategy) -> np.ndarray:
    """Privacy cost of one record at which each query meets its target, float64[n_queries]."""
    variances = strategy.variance_factors * strategy.squared_sensitivity
    return variances / strategy.queries.targets**2


@dataclass(frozen=True, eq=False, repr=False)
class QueryOptimum:
    """The best measurement for a list of queries, whatever the budget (docs/mathematics.md §6.2).

    lower_bound    of the privacy cost of one record at which any mechanism meets all targets: at
                   cost 1 the weighted mean of ratios by the shadow prices is not below it
    shadow_prices  float64[n_queries]; cell_weights: float64[n_cells]; both sum to 1
    budget         the one it was made for, where the objective depends on it
    cell_pairs     int64[n, 2], where neighbours replace a record: the pairs of cells that
                   `cell_weights` are of; around exact totals changes by four cells, int64[n, 4];
                   None where neighbours add or remove a record
    """

    strategy: QueryStrategy
    lower_bound: float
    shadow_prices: np.ndarray
    cell_weights: np.ndarray
    objective: CountsObjective = LARGEST
    budget: Budget | None = None
    cell_pairs: np.ndarray | None = None
    _for_others: "QueryOptimum | None" = None

    def for_neighbours(self, budget: Budget) -> "QueryOptimum":
        """The optimum for the neighbours of a budget: this one if it was solved for them."""
        kept = KeptByCounts.of(self.queries.domain, budget.exact) if budget.exact else None
        replaces = self.cell_pairs is not None
        if (budget.replaces, kept) == (replaces, self.strategy.kept):
            return self
        others = self._for_others
        if others is None or (others.cell_pairs is None, others.strategy.kept) != (
            not budget.replaces,
            kept,
        ):
            free = [self.queries.names[place] for place in self.strategy.free]
            found = query_optimum(
                self.queries,
                objective=self.objective.option,
                budget=budget,
                free=free,
                replaces=budget.replaces,
                exact=budget.exact,
            )
            object.__setattr__(self, "_for_others", found)
        assert self._for_others is not None
        return self._for_others

    @property
    def squared_change(self) -> int:
        """The largest change of R x between neighbours, as a squared norm: exact."""
        if self.cell_pairs is None:
            return self.strategy.squared_sensitivity
        return self.strategy.squared_diameter

    @property
    def queries(self) -> QueryList:
        return self.strategy.queries

    @property
    def variances(self) -> np.ndarray:
        """Of each query's answer at privacy cost 1, float64[n_queries]; at c: over c."""
        return self._factors * self.squared_change

    @property
    def _factors(self) -> np.ndarray:
        """The variance of each query over γ², float64[n_queries]."""
        if self.cell_pairs is None:
            return self.strategy.variance_factors
        return self.strategy.replaced_factors

    @property
    def needed_costs(self) -> np.ndarray:
        """Privacy cost of one record at which each query meets its target, float64[n_queries].

        0 of free counts, which get what there is.
        """
        needed = self.variances / self.queries.targets**2
        return np.where(self.strategy.is_charged, needed, 0.0)

    @property
    def cost(self) -> float:
        """Privacy cost of one record at which all queries meet their targets."""
        return float(np.max(self.needed_costs))

    def noise(self, budget: Budget) -> DiscreteNoise:
        """The noise of its plans for the privacy unit of a budget, at whatever scale."""
        if (optimum := self.for_neighbours(budget)) is not self:
            return optimum.noise(budget)
        squared = float(self.squared_change)
        return noise_of_counts(self.strategy, squared, Fraction(budget.records_factor))

    def at(self, budget: Budget) -> QueryPlan:
        """The plan with the smallest value of the objective within the budget, certified.

        Raises `PlanError` for a budget so small that its noise cannot be drawn, or that is not the
        one it was made for.
        """
        if (optimum := self.for_neighbours(budget)) is not self:
            return optimum.at(budget)
        allowed = budget.record_privacy_cost
        if self.budget is not None and self.budget.record_privacy_cost != allowed:
            raise PlanError(
                f"With the objective {self.objective.option} the best plan of one budget is not "
                "that of another; plan again for this one."
            )
        squared = self.squared_change
        # Rounded up to a decimal of `_DIGITS` digits, so that the cost stays within the budget.
        value = squared / allowed
        context = Context(prec=_DIGITS, rounding=ROUND_CEILING)
        gamma_squared = Fraction(
            context.divide(Decimal(value.numerator), Decimal(value.denominator))
        )
        check_scale(gamma_squared, self.queries.steps)
        variances = self._factors * float(gamma_squared)
        charged = self.strategy.is_charged
        return QueryPlan(
            strategy=self.strategy,
            budget=budget,
            gamma_squared=gamma_squared,
            variances=read_only(variances),
            exact_privacy_cost=squared / gamma_squared * budget.records_factor,
            certificate=Certificate(
                loss_value=self.objective.value((variances / self.queries.targets**2)[charged]),
                lower_bound=self.objective.bound(
                    self.lower_bound / float(allowed), self.shadow_prices[charged]
                ),
                shadow_prices=self.shadow_prices,
            ),
            cell_weights=read_only(self.cell_weights),
            version=version("rpexplore"),
            objective=self.objective,
            cell_pairs=self.cell_pairs,
        )
