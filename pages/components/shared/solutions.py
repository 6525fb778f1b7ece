"""What is planned for the open scenario: solved once for each loss, outside the script thread."""

import threading
from collections.abc import Callable
from typing import Any

import streamlit as st

from pages.components.shared.background import Task, result_of
from pages.components.shared.serving import limits, plans_only
from pages.components.shared.session import attempt, current, kept, project
from pages.components.shared.session_log import plan_solved
from rpexplore.common.concurrency import Progress
from rpexplore.common.formatting import plural
from rpexplore.planning import planner
from rpexplore.planning.losses.base import Loss
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.minimum_budget import MinimumBudget, minimum_budget
from rpexplore.planning.optimum import Optimum
from rpexplore.planning.table_plan import TablePlan
from rpexplore.privacy.budget import Budget
from rpexplore.scenarios.limits import check_limits
from rpexplore.scenarios.scenario import Scenario
from rpexplore.workload.workload import Workload

NO_PLAN = "There is no plan: "
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
            with plan_solved(type(loss).__name__, len(self.workload)):
                return planner.optimum(
                    self.workload,
                    loss=loss,
                    budget=for_budget,
                    uniform_reference=uniform,
                    closure=self._shared_closure(on_progress),
                    on_progress=on_progress,
                )

        return self._begun((loss, uniform), for_budget, solve)

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


def optimum(
    loss: Loss | None = None, scenario: Scenario | None = None, workload: Workload | None = None
) -> Optimum | None:
    """The solution of a scenario (the open one), for its own loss and tables or other ones.

    None while it is being worked out, which the page shows, and where there is none.
    """
    scenario = current() if scenario is None else scenario
    loss = scenario.loss if loss is None else loss
    tasks = attempt(lambda: _tasks_within_limits(scenario, workload), NO_PLAN)
    if tasks is None:
        return None
    task = tasks.optimum(loss, scenario.uniform_reference, scenario.budget)
    key = f"planning {scenario.name} {loss}"
    return result_of(task, key, "Planning", lambda: tasks.forget(task), NO_PLAN)


def minimum_budget_for_targets(required_only: bool) -> MinimumBudget | None:
    """The smallest budget for the open scenario's targets; None, and the page says why, without."""
    tasks = _tasks_of(current().workload)
    task = tasks.minimum_budget(required_only, current().uniform_reference)
    return result_of(
        task,
        f"minimum budget {required_only}",
        "Working out the smallest budget for the targets",
        lambda: tasks.forget(task),
        "The smallest budget for the targets is not known: ",
    )


def plan(scenario: Scenario | None = None) -> TablePlan | None:
    """The plan of a scenario (the open one); None, which the page explains, where there is none."""
    scenario = current() if scenario is None else scenario
    solution = optimum(scenario=scenario)
    if solution is None:
        return None
    return attempt(lambda: kept(solution.at, scenario.budget, slot=scenario.name), NO_PLAN)


def _tasks_within_limits(scenario: Scenario, workload: Workload | None) -> WorkloadTasks:
    if plans_only():  # a saved project may be of a time with other limits
        check_limits(scenario, limits())
    return _tasks_of(scenario.workload if workload is None else workload)


def _tasks_of(workload: Workload) -> WorkloadTasks:
    """The tasks of a workload: those of the workloads used last are kept for this session."""
    held: list[WorkloadTasks] = st.session_state.setdefault("workload tasks", [])
    known = next((tasks for tasks in held if tasks.workload is workload), None)
    if known is None:
        closures = (tasks.closure_of(workload) for tasks in held)
        known = WorkloadTasks(workload, next(filter(None, closures), None))
        wanted = [vars(scenario).get("workload") for scenario in project().scenarios]
        for tasks in held:
            if not any(tasks.workload is workload for workload in wanted):
                tasks.give_up()
    else:
        held.remove(known)
    held.append(known)
    del held[: -limits().workloads]
    return known
