"""Planner: (workload, loss, budget) → plan. Never sees a record."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from importlib.metadata import version

import numpy as np

from rpexplore.common.numbers import Decimals
from rpexplore.common.processes import Progress, no_progress
from rpexplore.errors import PlanError
from rpexplore.planning.losses.losses import Loss, SumOfVariances
from rpexplore.planning.mechanism.accounting import privacy_cost_upper_bound
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.mechanism.exact_totals import (
    exact_totals,
    kept_totals,
    refuse_unprotected,
    refuse_unprotected_by_residual,
)
from rpexplore.planning.mechanism.panel import Panel
from rpexplore.planning.mechanism.replacement import FREE_NOISE, Replacement
from rpexplore.planning.mechanism.strategy import Strategy, measured_attributes
from rpexplore.planning.mechanism.variances import TableVariances
from rpexplore.planning.part_plan import Certificate, keeping, refuse_fine_steps
from rpexplore.planning.solvers.solution import TOLERANCE, Solution
from rpexplore.planning.solving import (
    LOSSES,
    Problem,
    solve,
    solve_with_optimal_strategies,
)
from rpexplore.planning.table_plan import TablePlan, noise_of_residuals
from rpexplore.privacy.budget import Budget
from rpexplore.privacy.discrete_noise import DiscreteNoise
from rpexplore.workload.rules import Rule
from rpexplore.workload.workload import Workload

# ---- Optimum: the solution of a planning problem, which scales to any budget.
#
# Most losses are homogeneous in the variances, so the best noise scales of one budget are those of
# another times the ratio of the two (docs/mathematics.md §6.2): solved once, at privacy cost 1.
# Others, such as sums within targets, are solved for one budget, and their plan is for that alone.


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
    _for_others: "Optimum | None" = None  # the last that was asked for

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

        cell: "mean" (root of the mean variance), "largest" or "smallest"; of tables with amounts as
        of a `TablePlan`
        """
        optimum = self.for_neighbours(budget)
        variances = optimum.table_variances.at(cell) / record_cost(budget)
        return np.sqrt(variances) * self.workload.units

    def for_neighbours(self, budget: Budget) -> "Optimum":
        """The optimum where neighbours are those of a budget: this one if it was solved for them.

        Raises `PlanError` where they replace a record, and what that costs is not known.
        """
        if suits(self.closure, self.workload, budget):
            return self
        found = self._for_others
        if found is None or not suits(found.closure, self.workload, budget):
            found = optimum(self.workload, loss=self.loss, budget=budget, closure=self.closure)
            if self.budget is None:  # else it is for one budget
                object.__setattr__(self, "_for_others", found)
        return found

    def noise(self, budget: Budget) -> DiscreteNoise:
        """The noise of its plans for the privacy unit of a budget, at whatever scale, for (ε, δ).

        Of a plan with a pilot it is the noise of both measurements together.
        """
        optimum = self.for_neighbours(budget)
        if optimum is not self:
            return optimum.noise(budget)
        factor = budget.records_factor
        if factor not in self._noises:
            self._noises[factor] = noise_of_residuals(
                self.closure,
                np.arange(len(self.closure)),
                self._sigma_squared,
                Fraction(factor),
                factor,
            )
        return self._noises[factor]

    @cached_property
    def _noises(self) -> dict[int, DiscreteNoise]:
        return {}

    def at(self, budget: Budget, rules: tuple[Rule, ...] = ()) -> TablePlan:
        """The plan with the smallest loss within the budget, exact and with its certificate.

        rules: for the plan to keep

        Raises `PlanError` for a budget that cannot be computed with, that is not the one solved
        for, or whose noise cannot be drawn in the steps of amounts.
        """
        if not suits(self.closure, self.workload, budget):
            return self.for_neighbours(budget).at(budget, rules)
        cost, limit, solved_at = record_cost(budget), self.solution.limit, self.budget
        if solved_at and solved_at.record_privacy_cost != budget.record_privacy_cost:
            raise PlanError(
                f"With the objective {self.loss.title} the best plan of one budget is not that of "
                "another; plan again for this one."
            )
        sigma_squared = self._sigma_squared / cost
        is_public = self.closure.is_public  # the number of records, and exact totals
        free = FREE_NOISE / self.closure.squared_scales[is_public]
        sigma_squared[is_public] = np.minimum(free, sigma_squared[is_public])
        sigma_squared, exact_cost = _within_budget(
            self.closure, sigma_squared, budget.record_privacy_cost
        )
        gamma_squared = sigma_squared.floats * self.closure.squared_scales
        refuse_fine_steps(self.closure, self.workload.domain, gamma_squared)
        variances = TableVariances.of(self.workload, self.closure, sigma_squared.floats)
        prices = self.solution.shadow_prices
        if self.closure.replaces and isinstance(self.loss, SumOfVariances):
            # Those of the noise with which the total is released.
            parts = self.loss.table_weights(self.workload) * variances.mean
            prices = parts / np.sum(parts)
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
                shadow_prices=prices,
                cells=self.solution.cells,
                dual_weights=self.solution.dual_weights,
                limit=None if limit is None else limit / cost,
            ),
            version=_version(),
            rules=rules,
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


# ---- Planner: (workload, loss, budget) → plan. Never sees a record.


_LEAST_TOLERANCE = 1e-10


def plan_tables(
    workload: Workload,
    *,
    loss: Loss,
    budget: Budget,
    tolerance: float = TOLERANCE,
    uniform_reference: bool = False,
    on_progress: Progress = no_progress,
) -> TablePlan:
    """The plan with the smallest loss within the budget, with its certificate.

    Args:
        workload: The tables, with weights and targets.
        loss: What is minimised.
        budget: The most that the plan may cost.
        tolerance: Relative gap to the optimum at which a search may stop; a larger one is faster
            for MaxVariance on very many tables, and SumOfVariances is exact whatever it is.
        uniform_reference: Whether attributes in other bases than single values are measured as by
            ResidualPlanner+, with uniform reference distributions instead of optimised ones
            (docs/mathematics.md §5.2).
        on_progress: As of `optimum`.

    Returns:
        The plan, which no other within the budget is better than by more than its certificate says.

    Raises:
        PlanError: If the workload is too large to plan, or its weights or targets too far from 1.
        OutOfReachError: If required targets cannot all be met.
        WorkloadError: If the loss needs targets that are missing.

    Example:
        >>> import rpexplore as rp
        >>> tables = rp.Workload.all_up_to(rp.Domain.from_sizes({"age": 100, "sex": 2}), 2)
        >>> best = rp.plan(tables, loss=rp.SumOfVariances(), budget=rp.Budget(rho="0.5"))
        >>> rp.verify(best).holds
        True
    """
    refuse_type(budget, {Budget}, "budget", "Budget(rho=0.5)")

    def solve(within: Budget) -> Optimum:
        return optimum(
            workload,
            loss=loss,
            budget=within,
            tolerance=tolerance,
            uniform_reference=uniform_reference,
            on_progress=on_progress,
        )

    known = solve(budget.largest)
    return keeping(budget, known.at if known.budget is None else lambda of: solve(of).at(of))


def optimum(
    workload: Workload,
    *,
    loss: Loss,
    budget: Budget | None = None,
    tolerance: float = TOLERANCE,
    uniform_reference: bool = False,
    closure: Closure | None = None,
    strategies: Mapping[int, Strategy] | None = None,
    on_progress: Progress = no_progress,
) -> Optimum:
    """The best noise for a workload and a loss; `.at(budget)` makes the plan of a budget.

    Args:
        workload, loss, tolerance, uniform_reference: As of `plan`.
        budget: For losses that are not homogeneous, whose best noise differs by budget.
        closure: Of this workload or of one with the same tables, where there is one already.
        strategies: Attribute index -> strategy, instead of looking for the best ones.
        on_progress: Called with what is being done and the share that is done; what it raises
            ends the search.

    Returns:
        The optimum at privacy cost 1 of one record, or for the budget of a loss that needs one.

    Raises:
        PlanError, OutOfReachError, WorkloadError: As by `plan`.

    Example:
        >>> import rpexplore as rp
        >>> tables = rp.Workload.all_up_to(rp.Domain.from_sizes({"age": 100, "sex": 2}), 2)
        >>> best = rp.optimum(tables, loss=rp.MaxVariance())
        >>> rp.verify(best.at(rp.Budget(rho="0.5"))).holds
        True
    """
    refuse_type(workload, {Workload}, "workload", "Workload.all_up_to(domain, 2)")
    refuse_type(loss, LOSSES, "loss", "SumOfVariances() or MaxVariance()")
    if len(workload.domain) == 0:
        raise PlanError("The codebook has no attributes yet; give it at least one.")
    if not _LEAST_TOLERANCE <= tolerance < 1:
        raise PlanError(f"The tolerance must be {_LEAST_TOLERANCE} to 1, got {tolerance}.")
    if not np.all(workload.cells < 1e150):
        table = int(np.argmax(workload.cells))
        raise PlanError(
            f"The table {workload.describe(table)} has {workload.cells[table]:.3g} cells, too many "
            "to plan; leave it out."
        )
    refuse_weights(loss.table_weights(workload), workload)
    if loss.meets_required_targets:
        with np.errstate(over="ignore"):
            inverse = np.maximum(workload.planned_targets**-2.0, np.finfo(float).smallest_subnormal)
        refuse_weights(np.where(workload.required, inverse, 0.0), workload)
    if not loss.is_homogeneous and budget is None:
        raise PlanError(
            f"With the objective {loss.title} the best plan of one budget is not that of another; "
            "say which budget it is for."
        )
    cost = 1.0 if loss.is_homogeneous or budget is None else record_cost(budget)
    if closure is None:
        closure = Closure.of(workload)
    if strategies is not None:
        closure = closure.with_strategies(workload, strategies)
    if budget is not None:
        closure = with_neighbours(closure, workload, budget)
    problem = Problem(workload, closure, loss, cost, tolerance, on_progress, uniform_reference)
    if strategies is not None:
        closure, solution = solve(problem)
    else:
        closure, solution = solve_with_optimal_strategies(problem)
    return Optimum(workload, loss, closure, solution, None if loss.is_homogeneous else budget)


def with_neighbours(closure: Closure, workload: Workload, budget: Budget) -> Closure:
    """The closure of a workload at the costs of a budget's neighbours.

    Raises `PlanError` where they replace a record, and what that costs is not known.
    """
    if suits(closure, workload, budget):
        return closure
    if closure.has_own_costs:
        closure = closure.replacing(None).in_panel(None).replacing_by_residual(replaces=False)
    if closure.residual_moments and (budget.replaces or budget.period is not None):
        # What such neighbours cost is known of strategies that are alike in all residuals.
        closure = closure.with_strategies(workload, closure.without_own_matrices)
    if budget.period is not None:
        return closure.in_panel(_panel_of(closure, workload, budget))
    if not budget.replaces:
        return closure
    exact = exact_totals(workload, budget)
    is_simple = workload.is_marginals and not workload.has_levels
    if closure.members.shape[1] == 0:
        raise PlanError(
            "Where neighbours replace a record the number of records is public, and nothing else "
            "is asked for; ask for a table with an attribute of several values."
        )
    if not is_simple:
        kept = kept_totals(workload, closure, budget)
        closure = closure.replacing_by_residual(replaces=True, kept=kept)
        refuse_unprotected_by_residual(closure, workload)
        return closure
    if exact:
        refuse_unprotected(closure, workload, exact)
    return closure.replacing(Replacement.of_all(closure, exact))


def suits(closure: Closure, workload: Workload, budget: Budget) -> bool:
    """Whether costs of a closure are those of the neighbours of a budget."""
    own, panel = None, closure.panel
    if panel is not None:
        own = (workload.domain.names[panel.period], panel.most)
    wanted = None if budget.period is None else (budget.period, budget.max_records_per_person)
    if closure.replaces != budget.replaces or own != wanted:
        return False
    if closure.by_residual:
        return closure.kept == kept_totals(workload, closure, budget)
    return not budget.replaces or closure.exact_totals == exact_totals(workload, budget)


def _panel_of(closure: Closure, workload: Workload, budget: Budget) -> Panel:
    """The panel of a budget; raises `PlanError` where the cost of a person in it is not known."""
    assert budget.period is not None
    period, most = workload.domain.position(budget.period), budget.max_records_per_person or 1
    if not workload.is_marginals or workload.has_levels:
        raise PlanError(
            f"A panel by {budget.period!r} goes with tables of single values, as records of one "
            "person in several periods are charged only there; leave out levels, amounts and "
            "aggregations, or plan for people with any records "
            f"(--records-per-person {most})."
        )
    n = int(closure.sizes[period])
    if not np.any(closure.members == period) or most > n:
        raise PlanError(
            f"A person can have records in {most} of the periods {budget.period!r}, which must be "
            "an attribute of some table with at least so many values, and more than one; got "
            f"{n} values{'' if np.any(workload.members == period) else ', and no table with it'}."
        )
    return Panel.of(closure, period, most)


def refuse_weights(table_weights: np.ndarray, workload: Workload) -> None:
    """Raise `PlanError` unless all weights (0: not counted) can be computed with."""
    unusable = ~((table_weights > 1e-100) & (table_weights < 1e200)) & (table_weights != 0)
    if np.any(unusable):
        table = int(np.argmax(unusable))
        raise PlanError(
            f"The weight of table {workload.describe(table)} in the loss is "
            f"{table_weights[table]:.3g}, which cannot be planned with; bring weights and targets "
            "closer to 1."
        )


def refuse_type(value: object, kinds: Collection[type], noun: str, example: str) -> None:
    """Raise `PlanError` unless what a plan is made of is of one of these types."""
    if type(value) not in kinds:
        raise PlanError(
            f"The {noun} of a plan must be one of the library's, such as {example}, got "
            f"{type(value).__name__}."
        )


def optimum_with_strategies_of(
    reference: Optimum,
    workload: Workload,
    loss: Loss,
    *,
    on_progress: Progress = no_progress,
) -> Optimum:
    """The optimum of other tables, or for another loss, with `reference`'s strategies and budget.

    Strategies that it lacks are searched for. Raises what `optimum` raises.
    """
    same_tables = reference.workload.has_tables_of(workload)
    closure = reference.closure if same_tables else Closure.of(workload)
    strategies = dict(reference.closure.strategies)
    # Other tables have other levels, and so other blocks.
    are_other_blocks = bool(closure.trees) and not same_tables
    if are_other_blocks or not set(measured_attributes(workload)) <= strategies.keys():
        searched = optimum(
            workload, loss=loss, budget=reference.budget, closure=closure, on_progress=on_progress
        )
        strategies = {**searched.closure.strategies, **({} if are_other_blocks else strategies)}
    return optimum(
        workload,
        loss=loss,
        budget=reference.budget,
        closure=closure,
        strategies=None if workload.is_marginals else strategies,
        on_progress=on_progress,
    )
