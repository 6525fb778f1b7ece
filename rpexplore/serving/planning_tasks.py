"""Planning in the background: the tasks that a session's pages wait for, and what they found.

A solution is found once; `at` states it as a part of a plan at a budget, and `again` finds the one
of another budget where that is another solution.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from rpexplore.analysis.rule_targets import RuleTargets
from rpexplore.analysis.sufficient_budgets import TARGET_LOSS
from rpexplore.common.processes import Progress
from rpexplore.common.text import plural
from rpexplore.errors import OutOfReachError
from rpexplore.planning import planner
from rpexplore.planning.adaptive import AdaptivePlan, adaptive_plan
from rpexplore.planning.areas.area_plan import AreaPlan, with_budget
from rpexplore.planning.areas.area_planner import plan_areas
from rpexplore.planning.counts import QueryPlan
from rpexplore.planning.counts_planner import QueryOptimum, query_optimum
from rpexplore.planning.losses.losses import Loss
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.minimum_budget import MinimumBudget, minimum_budget
from rpexplore.planning.part_plan import PartPlan, keeping, solution_keeping
from rpexplore.planning.planner import Optimum
from rpexplore.planning.request import AtBudget
from rpexplore.planning.table_plan import TablePlan
from rpexplore.privacy.budget import Budget
from rpexplore.scenarios.area_study import AreaStudy
from rpexplore.serving.sessions import plan_solved
from rpexplore.serving.tasks import Task
from rpexplore.workload.query_list import QueryList
from rpexplore.workload.rules import Rule
from rpexplore.workload.workload import Workload

MOST_BUDGETS = 6  # for which an objective that depends on the budget stays solved


class WorkloadTasks:
    """The tasks that plan one workload and share its closure, each begun when first needed."""

    def __init__(self, workload: Workload, closure: Closure | None = None) -> None:
        self.workload = workload
        self._tasks: dict[tuple[tuple, Budget | None], Task[Any]] = {}
        self._closure = closure
        self._lock = threading.Lock()

    def optimum(self, loss: Loss, uniform_reference: bool, budget: Budget) -> Task[Optimum]:
        """The task that solves for this loss."""
        for_budget = None if loss.is_homogeneous else budget
        uniform = self._uniform(uniform_reference)

        def solve(on_progress: Progress) -> Optimum:
            def solve_for(within: Budget | None) -> Optimum:
                closure = self._shared_closure(on_progress)
                return planner.optimum(
                    self.workload,
                    loss=loss,
                    budget=within,
                    uniform_reference=uniform,
                    closure=planner.with_neighbours(closure, self.workload, budget),
                    on_progress=on_progress,
                )

            with plan_solved(type(loss).__name__, len(self.workload)):
                if for_budget is None:
                    return solve_for(None)
                return solution_keeping(for_budget, solve_for)

        return self._begun((loss, uniform, budget.neighbours, budget.exact), for_budget, solve)

    def minimum_budget(self, required_only: bool, uniform_reference: bool) -> Task[MinimumBudget]:
        """The task that finds the smallest budget for targets."""
        uniform = self._uniform(uniform_reference)

        def solve(on_progress: Progress) -> MinimumBudget:
            closed = self.workload.is_marginals
            with plan_solved("MinimumBudget", len(self.workload)):
                return minimum_budget(
                    self.workload,
                    required_only=required_only,
                    closure=self._shared_closure(on_progress) if closed else None,
                    uniform_reference=uniform,
                    on_progress=on_progress,
                )

        return self._begun((required_only, uniform), None, solve)

    def _begun(
        self, key: tuple, budget: Budget | None, work: Callable[[Progress], Any]
    ) -> Task[Any]:
        """The task for this work, which only some losses make depend on a budget."""
        if (key, budget) not in self._tasks:
            # A slider goes over many budgets: what was begun for those of long ago is dropped.
            others = [other for other in self._tasks if other[0] == key and other[1] is not None]
            for other in others[: max(len(others) - MOST_BUDGETS + 1, 0)]:
                self._tasks.pop(other).cancel()
            self._tasks[key, budget] = Task(work).start()
        return self._tasks[key, budget]

    def forget(self, task: Task) -> None:
        """Begin a task anew when it is next needed."""
        self._tasks = {key: other for key, other in self._tasks.items() if other is not task}

    def give_up(self) -> None:
        """Cancel and forget what is not finished."""
        for task in self._tasks.values():
            task.cancel()
        self._tasks = {key: task for key, task in self._tasks.items() if task.result is not None}

    def closure_of(self, workload: Workload) -> Closure | None:
        """The closure, if it is there already and the workload has the same tables."""
        return self._closure if self.workload.has_tables_of(workload) else None

    def _uniform(self, uniform_reference: bool) -> bool:
        """Whether the reference is uniform; of marginals, any reference is the same."""
        return uniform_reference and not self.workload.is_marginals

    def _shared_closure(self, on_progress: Progress) -> Closure:
        tables = plural(len(self.workload), "table")
        with self._lock:
            on_progress(f"Listing what {tables} contain", 0.0)
            if self._closure is None:
                self._closure = Closure.of(self.workload)
        on_progress(f"Planning {tables}", 0.0)
        return self._closure


def solve_areas(
    opened: AreaStudy, budget: Budget, on_progress: Progress
) -> AreaPlan | OutOfReachError:
    """The plan, or why the budget is too small, with what it takes."""
    on_progress(f"Planning {plural(opened.n_tables, 'table')}", 0.0)
    try:
        with plan_solved("areas", opened.n_tables):

            def at(within: Budget) -> AreaPlan:
                return plan_areas(
                    opened.workload,
                    loss=opened.loss,
                    budget=within,
                    uniform_levels=opened.uniform,
                    on_progress=on_progress,
                )

            planned = at(budget) if opened.loss.is_homogeneous else keeping(budget, at)
    except OutOfReachError as refused:
        return refused.with_traceback(None)  # which would keep all arrays of the search
    on_progress("Working out the accuracy of all areas", 0.99)
    _ = planned.residual_variances  # kept by the plan, for all that the page shows
    return planned


def solve_counts(
    queries: QueryList,
    objective: str,
    free: tuple[str, ...],
    budget: Budget | None,
    replaces: bool,
    exact: tuple[tuple[str, ...], ...],
    on_progress: Progress,
) -> QueryOptimum:
    on_progress(f"Planning {plural(len(queries), 'own count')}", 0.0)
    with plan_solved("queries", len(queries)):

        def solve(within: Budget | None) -> QueryOptimum:
            return query_optimum(
                queries,
                objective=objective,
                budget=within,
                free=free,
                replaces=replaces,
                exact=exact,
                on_progress=on_progress,
            )

        return solve(None) if budget is None else solution_keeping(budget, solve)


def solve_adaptive(
    tables: Workload, budget: Budget, records: int, on_progress: Progress
) -> AdaptivePlan:
    on_progress("Planning", 0.0)
    with plan_solved("adaptive", len(tables)):
        return adaptive_plan(tables, budget=budget, expected_records=records)


def solve_for_rule(ruled: RuleTargets, uniform_reference: bool, on_progress: Progress) -> Optimum:
    return planner.optimum(
        ruled.workload,
        loss=TARGET_LOSS,
        uniform_reference=uniform_reference,
        on_progress=on_progress,
    )


# ---- What was found, as a part of a plan at any budget.


class Found(Protocol):
    """A solution of one part."""

    def at(self, budget: Budget) -> PartPlan:
        """The part at a budget that the solution is for."""
        ...

    def again(self, budget: Budget) -> PartPlan:
        """The part at any budget, solved for it."""
        ...


def at_any(found: Found, solved_for: Budget | None) -> AtBudget:
    """How a part is planned at any budget.

    solved_for: the one that its solution is for; None for one that scales. Of an (ε, δ) that is the
    whole budget it has the cost that its noise proves. A part of several is solved again, as its
    share of a cost that all parts prove together is known only when all are planned.
    """
    if solved_for is None:
        return found.at

    def at_budget(budget: Budget) -> PartPlan:
        if budget.record_privacy_cost == solved_for.record_privacy_cost:
            return found.at(budget)
        if solved_for.stated_epsilon is not None:
            return found.at(solved_for)
        return found.again(budget)

    return at_budget


@dataclass(frozen=True)
class FoundTables:
    solution: Optimum
    rules: tuple[Rule, ...]
    uniform_reference: bool

    def at(self, budget: Budget) -> TablePlan:
        return self.solution.at(budget, self.rules)

    def again(self, budget: Budget) -> TablePlan:
        of_budget = planner.optimum(
            self.solution.workload,
            loss=self.solution.loss,
            budget=budget,
            uniform_reference=self.uniform_reference,
        )
        return of_budget.at(budget, self.rules)


@dataclass(frozen=True)
class FoundAreas:
    found: AreaPlan
    asked: AreaStudy

    def at(self, budget: Budget) -> AreaPlan:
        return self.found if budget == self.found.budget else with_budget(self.found, budget)

    def again(self, budget: Budget) -> AreaPlan:
        asked = self.asked
        return plan_areas(
            asked.workload, loss=asked.loss, budget=budget, uniform_levels=asked.uniform
        )


@dataclass(frozen=True)
class FoundCounts:
    solution: QueryOptimum
    objective: str
    free: tuple[str, ...]

    def at(self, budget: Budget) -> QueryPlan:
        return self.solution.at(budget)

    def again(self, budget: Budget) -> QueryPlan:
        of_budget = query_optimum(
            self.solution.queries,
            objective=self.objective,
            budget=budget,
            free=self.free,
            replaces=budget.replaces,
            exact=budget.exact,
        )
        return of_budget.at(budget)
