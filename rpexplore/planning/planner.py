"""Planner: (workload, loss, budget) → plan, and the smallest budget. Never sees a record."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, cached_property
from importlib.metadata import version
from typing import TypeVar

import numpy as np

from rpexplore.common.numbers import Decimals
from rpexplore.common.processes import Progress, no_progress, one_thread
from rpexplore.common.text import rounded
from rpexplore.errors import PlanError, WorkloadError
from rpexplore.planning.losses.losses import Loss, SumOfVariances
from rpexplore.planning.mechanism.accounting import privacy_cost_upper_bound
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.mechanism.exact_totals import exact_totals, refuse_unprotected
from rpexplore.planning.mechanism.panel import Panel
from rpexplore.planning.mechanism.replacement import FREE_NOISE, Replacement
from rpexplore.planning.mechanism.strategy import Strategy, measured_attributes
from rpexplore.planning.mechanism.variances import CellVariances, TableVariances
from rpexplore.planning.optimal_strategies import with_best_strategies
from rpexplore.planning.part_plan import Certificate, keeping
from rpexplore.planning.solvers.caps import FeasiblePoint, find_feasible
from rpexplore.planning.solvers.kinds_of_records import find_feasible_with_kinds
from rpexplore.planning.solvers.panels import minimise_in_panel
from rpexplore.planning.solvers.replacements import LEAST_COST, minimise_replacing
from rpexplore.planning.solvers.solution import TOLERANCE, Solution, dual_bound, rounding_allowance
from rpexplore.planning.solving import (
    LOSSES,
    Problem,
    phases,
    solve,
    solve_with_optimal_strategies,
    weights_within,
)
from rpexplore.planning.table_plan import TablePlan, noise_of_residuals
from rpexplore.privacy.budget import ADD_REMOVE, REPLACE, Budget
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

        Raises `PlanError` for a budget that cannot be computed with, or is not the one solved for.
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
    if budget.period is not None:
        return closure.in_panel(_panel_of(closure, workload, budget))
    if not budget.replaces:
        return closure
    exact = exact_totals(workload, budget)
    is_simple = workload.is_marginals and not workload.has_levels
    if exact and not is_simple:
        raise PlanError(
            f"Exact totals ({budget.exact_text}) go with tables of single values, as exchanges of "
            "values between two records are charged only there: leave out levels, amounts and "
            "aggregations such as cumulative sums, or the exact totals."
        )
    if closure.members.shape[1] == 0:
        raise PlanError(
            "Where neighbours replace a record the number of records is public, and nothing else "
            "is asked for; ask for a table with an attribute of several values."
        )
    if not is_simple:
        return closure.replacing_by_residual(replaces=True)
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
    if not set(measured_attributes(workload)) <= strategies.keys():
        searched = optimum(
            workload, loss=loss, budget=reference.budget, closure=closure, on_progress=on_progress
        )
        strategies = {**searched.closure.strategies, **strategies}
    return optimum(
        workload,
        loss=loss,
        budget=reference.budget,
        closure=closure,
        strategies=None if workload.is_marginals else strategies,
        on_progress=on_progress,
    )


# ---- The smallest budget at which all targets can be met, and the targets that bind it.
#
# It is the one at which the smallest possible largest ratio of variance to target is 1
# (docs/mathematics.md §6.2), whose shadow prices tell which targets bind it.


Cost = TypeVar("Cost", float, np.ndarray)

# What a plan can be worse than the optimum scaled to its budget, relative: its noise scales are
# rounded up to 12 digits, its variances are sums of fewer than 2^23 positive floats.
_ROUNDING_ALLOWANCE = Fraction(1, 10**8)

# Privacy costs that follow from their squares are numbers that budgets can have.
_LEAST_TARGET, _MOST_TARGET = 1e-40, 1e40

_BUDGET_DIGITS = 5  # of a budget that people type
_LEAST_SHARE = 1e-3  # of the budget: below it a target hardly binds


@dataclass(frozen=True, eq=False, repr=False)
class MinimumBudget:
    """The smallest budget for the targets of some tables, whatever the others get.

    tables                  int64[m]: indices of these tables, ascending
    point                   the plan at privacy cost 1 of one record that comes furthest inside them
    max_records_per_person  the privacy unit, as in `Budget`; None: one record
    exact                   the exact totals, as in `Budget`
    unit_noun               the word for the privacy unit, as in `Budget`
    """

    workload: Workload
    closure: Closure
    tables: np.ndarray
    point: FeasiblePoint
    max_records_per_person: int | None = None
    exact: tuple[tuple[str, ...], ...] = ()
    unit_noun: str | None = None

    @property
    def budget(self) -> Budget:
        """The smallest budget that is enough, in ρ, rounded up to five digits."""
        rho = typed_above(rho_with_allowance(self.rho))
        closure, names = self.closure, self.workload.domain.names
        return Budget(
            rho=rho,
            max_records_per_person=self.max_records_per_person,
            neighbours=REPLACE if closure.replaces else ADD_REMOVE,
            period=None if closure.panel is None else names[closure.panel.period],
            exact=self.exact,
            unit_noun=self.unit_noun,
        )

    @property
    def rho(self) -> float:
        """ρ of the privacy unit at which all these targets are met, as computed."""
        return rho_of_unit(self.record_privacy_cost, self.max_records_per_person)

    @property
    def record_privacy_cost(self) -> float:
        """Privacy cost of one record at which all these targets are met."""
        return self.point.largest

    @cached_property
    def noise(self) -> DiscreteNoise:
        """The noise of the plan that comes furthest inside the targets, at whatever scale."""
        factor = (self.max_records_per_person or 1) ** 2
        sigma_squared = self.point.solution.sigma_squared
        residuals = np.arange(len(self.closure))
        return noise_of_residuals(self.closure, residuals, sigma_squared, Fraction(factor), factor)

    @property
    def lower_bound(self) -> float:
        """No plan with these strategies meets them at a smaller privacy cost of one record."""
        return self.point.solution.lower_bound

    @property
    def covers_all_tables(self) -> bool:
        """Whether all tables are among them; others get nothing at the smallest budget."""
        return len(self.tables) == len(self.workload)

    @property
    def shares(self) -> np.ndarray:
        """By how many per cent the smallest budget falls when a table's target variance grows by
        one per cent: float64[n_tables], sum 1; 0: the target does not bind."""
        return self.point.solution.shadow_prices

    @property
    def binding_tables(self) -> np.ndarray:
        """The tables whose targets bind it (share above a thousandth), largest share first."""
        order = np.argsort(-self.shares, kind="stable")
        return order[self.shares[order] > _LEAST_SHARE]

    def saving_if_relaxed(self, by: float) -> np.ndarray:
        """The share of the smallest budget saved if one target were wider (0.1: by 10 %).

        float64[n_tables]; exact for a table that binds alone, to first order otherwise.
        """
        return 1 - (1 + by) ** (-2 * self.shares)

    def for_unit_of(self, budget: Budget) -> "MinimumBudget":
        """The same for the privacy unit and the neighbours of a budget."""
        if suits(self.closure, self.workload, budget):
            return replace(
                self,
                max_records_per_person=budget.max_records_per_person,
                exact=budget.exact,
                unit_noun=budget.unit_noun,
            )
        of_tables = np.isin(np.arange(len(self.workload)), self.tables)
        return _minimum_budget(self.workload, of_tables, self.closure, budget, TOLERANCE)


def minimum_budget(
    workload: Workload,
    *,
    required_only: bool = False,
    max_records_per_person: int | None = None,
    neighbours: str | None = None,
    period: str | None = None,
    exact: Sequence[str | Sequence[str]] = (),
    unit_noun: str | None = None,
    closure: Closure | None = None,
    uniform_reference: bool = False,
    tolerance: float = TOLERANCE,
    on_progress: Progress = no_progress,
) -> MinimumBudget:
    """The smallest budget at which all targets of a workload can be met.

    Args:
        required_only: Whether only required targets have to be met.
        max_records_per_person: Most records of a person, who then is the privacy unit.
        neighbours, period, exact: As of `Budget`; by default the first two are those of the
            closure, or "add-remove".
        unit_noun: The word for that unit, as in `Budget`.
        closure: Of the workload, with strategies where it needs them; by default with those that
            suit these targets.
        uniform_reference: Whether reference distributions are uniform, as in `optimum`.
        tolerance: Relative gap at which the search may stop.
        on_progress: Called with what is being done and the share that is done.

    Returns:
        The budget, and the tables whose targets bind it.

    Raises:
        WorkloadError: If no table has a target, or a required one.

    Example:
        >>> import rpexplore as rp
        >>> domain = rp.Domain.from_sizes({"age": 10, "sex": 2})
        >>> workload = rp.Workload.all_up_to(domain, 1).with_targets({"age": 20, "sex": 10})
        >>> float(rp.minimum_budget(workload).budget.rho)
        0.0060176
    """
    capped = workload.required if required_only else ~np.isnan(workload.targets)
    if not np.any(capped):
        if required_only:
            raise WorkloadError("No target is marked required; mark those that have to be met.")
        raise WorkloadError("No table has a target; set targets for the tables that need them.")
    targets = workload.planned_targets
    unusable = capped & ~((targets > _LEAST_TARGET) & (targets < _MOST_TARGET))
    if np.any(unusable):
        table = int(np.argmax(unusable))
        raise WorkloadError(
            f"The target of table {workload.describe(table)} must be a standard error of "
            f"{_LEAST_TARGET:g} to {_MOST_TARGET:g} to find the budget for it, got "
            f"{workload.targets[table]:g}; give one that can be met."
        )
    caps = np.where(capped, targets**2, np.inf)
    if closure is None:
        searching, on_progress = phases(workload, on_progress)
        closure = with_best_strategies(
            workload,
            Closure.of(workload),
            weights_within(caps),
            largest=True,
            uniform_reference=uniform_reference,
            on_progress=searching,
        )
    if neighbours is None:
        neighbours = REPLACE if closure.replaces else ADD_REMOVE
    if period is None and closure.panel is not None:
        period, max_records_per_person = (
            workload.domain.names[closure.panel.period], closure.panel.most
        )  # fmt: skip
    unit = Budget(
        rho=1,
        max_records_per_person=max_records_per_person,
        neighbours=neighbours,
        period=period,
        exact=exact,
        unit_noun=unit_noun,
    )
    return _minimum_budget(workload, capped, closure, unit, tolerance, on_progress)


def _minimum_budget(
    workload: Workload,
    capped: np.ndarray,
    closure: Closure,
    unit: Budget,
    tolerance: float,
    on_progress: Progress = no_progress,
) -> MinimumBudget:
    """The smallest budget for the targets of some tables, bool[n_tables], for a unit of privacy."""
    caps = np.where(capped, workload.planned_targets**2, np.inf)
    closure = with_neighbours(closure, workload, unit)
    by_residual = closure.by_residual
    if by_residual:
        closure = closure.replacing_by_residual(replaces=True, least_cost=LEAST_COST)
    with one_thread():
        cells = CellVariances(workload, closure)
        if closure.has_own_costs and not by_residual:
            closure, point = _feasible_at_prices(workload, closure, caps, tolerance, on_progress)
        elif closure.classes is None:
            point = find_feasible(cells, caps, 1.0, tolerance, on_progress=on_progress)
        else:
            closure, point = find_feasible_with_kinds(cells, caps, 1.0, on_progress=on_progress)
    if by_residual:
        closure = closure.replacing_by_residual(replaces=True)
    return MinimumBudget(
        workload,
        closure,
        np.flatnonzero(capped),
        point,
        unit.max_records_per_person,
        unit.exact,
        unit.unit_noun,
    )


def _feasible_at_prices(
    workload: Workload,
    closure: Closure,
    caps: np.ndarray,
    tolerance: float,
    on_progress: Progress,
) -> tuple[Closure, FeasiblePoint]:
    """`find_feasible` at privacy cost 1 for neighbours with costs of their own, and the closure."""

    def solve(priced: Closure, cost: float) -> Solution:
        cells = CellVariances(workload, priced)
        return find_feasible(cells, caps, cost, tolerance, on_progress=on_progress).solution

    minimise = minimise_replacing if closure.panel is None else minimise_in_panel
    closure, solution = minimise(closure, 1.0, solve, tolerance, scales=True)
    of_residuals = closure.residual_weights(solution.shadow_prices / caps)
    bound = dual_bound(closure.privacy_cost_factor, of_residuals, 1.0)
    bound *= 1 - rounding_allowance(len(workload))
    least_accurate = CellVariances(workload, closure).least_accurate(solution.sigma_squared)
    largest = float(np.max(least_accurate.variances / caps))
    return closure, FeasiblePoint(replace(solution, lower_bound=bound), largest)


def rho_of_unit(record_privacy_cost: Cost, max_records_per_person: int | None) -> Cost:
    """ρ of the privacy unit where one record costs this: c m² / 2, for a number or an array."""
    return record_privacy_cost * ((max_records_per_person or 1) ** 2 / 2)


def rho_with_allowance(rho: float) -> Fraction:
    """The ρ at which a plan surely does what the optimum does at this one."""
    return Fraction(rho) * (1 + _ROUNDING_ALLOWANCE)


def typed_above(value: float | Fraction) -> str:
    """A number rounded up to five digits, as people type it: "0.34654"."""
    return rounded(value, _BUDGET_DIGITS, "up").replace(",", "")
