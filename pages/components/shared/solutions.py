"""What is planned for the open scenario: solved once for each loss, outside the script thread."""

import threading
from functools import partial

import streamlit as st

from pages.components.shared.background import Note, Task, has_ended
from pages.components.shared.session import current, escaped, kept, project
from rpexplore.common.formatting import plural
from rpexplore.errors import RpexploreError
from rpexplore.planning.losses.base import Loss
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.minimum_budget import MinimumBudget, minimum_budget
from rpexplore.planning.optimum import Optimum
from rpexplore.planning.plan import Plan
from rpexplore.planning.planner import optimum as solved
from rpexplore.privacy.budget import Budget
from rpexplore.scenarios.scenario import Scenario
from rpexplore.workload.workload import Workload

MOST_KEPT = 12  # workloads whose solutions stay with the session


MOST_BUDGETS = 6  # for which an aim that depends on the budget stays solved
Key = tuple[Loss, bool, Budget | None]


class Optima:
    """The solutions for one workload; all of them share its closure.

    tasks    by the loss, whether totals are spread evenly, and the budget where it matters
    minimum_budgets  what it takes to meet targets: by whether only those that must be met, and the
    spread
    """

    def __init__(self, workload: Workload, closure: Closure | None = None) -> None:
        self.workload = workload
        self.tasks: dict[Key, Task[Optimum]] = {}
        self.minimum_budgets: dict[tuple[bool, bool], Task[MinimumBudget]] = {}
        self._closure = closure
        self._lock = threading.Lock()

    def key(self, loss: Loss, uniform_reference: bool, budget: Budget) -> Key:
        """What a solution is kept under; where nothing is spread, how is no difference."""
        spread = uniform_reference and not self.workload.is_marginals
        return loss, spread, None if loss.is_homogeneous else budget

    def task(self, loss: Loss, uniform_reference: bool, budget: Budget) -> Task[Optimum]:
        """The task that solves for this loss, begun when first asked for."""
        key = self.key(loss, uniform_reference, budget)
        if key not in self.tasks:
            self._make_room(key)
            self.tasks[key] = Task(partial(self._solve, *key)).start()
        return self.tasks[key]

    def minimum_budget(self, required_only: bool, uniform_reference: bool) -> Task[MinimumBudget]:
        """The task that finds what the targets take, begun when first asked for."""
        key = required_only, uniform_reference and not self.workload.is_marginals
        if key not in self.minimum_budgets:
            self.minimum_budgets[key] = Task(partial(self._minimum_budget, *key)).start()
        return self.minimum_budgets[key]

    def forget(self, loss: Loss, uniform_reference: bool, budget: Budget) -> None:
        """Solve anew when it is asked for again."""
        self.tasks.pop(self.key(loss, uniform_reference, budget), None)

    def forget_minimum(self, required_only: bool, uniform_reference: bool) -> None:
        """Find anew what the targets take when it is asked for again."""
        self.minimum_budgets.pop(
            (required_only, uniform_reference and not self.workload.is_marginals), None
        )

    def _make_room(self, key: Key) -> None:
        """Drop what was solved for the budgets of long ago, while a slider goes over many."""
        others = [other for other in self.tasks if other[:2] == key[:2] and other[2] is not None]
        for other in others[: max(len(others) - MOST_BUDGETS + 1, 0)]:
            self.tasks.pop(other).cancel()

    def closure_of(self, workload: Workload) -> Closure | None:
        """The closure, if it is there already and the workload has the same tables."""
        return self._closure if self.workload.has_tables_of(workload) else None

    def give_up(self) -> None:
        """Ask what is not finished to stop, and forget it: asked for again, it starts anew."""
        for task in (*self.tasks.values(), *self.minimum_budgets.values()):
            task.cancel()
        self.tasks = {key: task for key, task in self.tasks.items() if task.result is not None}
        self.minimum_budgets = {
            key: task for key, task in self.minimum_budgets.items() if task.result is not None
        }

    def _solve(
        self, loss: Loss, uniform_reference: bool, budget: Budget | None, note: Note
    ) -> Optimum:
        return solved(
            self.workload,
            loss=loss,
            budget=budget,
            uniform_reference=uniform_reference,
            closure=self._listed(note),
            on_progress=lambda doing, share: note(share, doing),
        )

    def _minimum_budget(
        self, required_only: bool, uniform_reference: bool, note: Note
    ) -> MinimumBudget:
        return minimum_budget(
            self.workload,
            required_only=required_only,
            closure=self._listed(note) if self.workload.is_marginals else None,
            uniform_reference=uniform_reference,
            on_progress=lambda doing, share: note(share, doing),
        )

    def _listed(self, note: Note) -> Closure:
        tables = plural(len(self.workload), "table")
        with self._lock:
            note(0.0, f"Listing what {tables} contain")
            if self._closure is None:
                self._closure = Closure.of(self.workload)
        note(0.0, f"Planning {tables}")
        return self._closure


def optimum(
    loss: Loss | None = None, scenario: Scenario | None = None, workload: Workload | None = None
) -> Optimum | None:
    """The solution of a scenario (the open one), for its own loss and tables or other ones.

    None while it is being worked out (its progress is then on the page), and where there is none
    (the page then says why).
    """
    scenario = current() if scenario is None else scenario
    loss = scenario.loss if loss is None else loss
    try:
        optima = _optima_of(scenario.workload if workload is None else workload)
    except RpexploreError as error:
        st.error(escaped(f"There is no plan: {error}"))
        return None
    kept_under = loss, scenario.uniform_reference, scenario.budget
    task = optima.task(*kept_under)
    if not has_ended(task, f"planning {scenario.name} {loss}", "Planning"):
        return None
    if task.result is None:
        st.error(escaped(f"There is no plan: {task.error}"))
        if task.was_cancelled:
            again = f"plan again {scenario.name} {loss}"
            st.button("Plan again", key=again, on_click=optima.forget, args=kept_under)
        return None
    return task.result


def targets_minimum(required_only: bool) -> MinimumBudget | None:
    """What it takes to meet the open scenario's targets, or those that must be met.

    None while it is being worked out, and where there is no answer (the page then says why).
    """
    optima = _optima_of(current().workload)
    kept_under = required_only, current().uniform_reference
    task = optima.minimum_budget(*kept_under)
    if not has_ended(task, f"minimum budget {kept_under}", "Working out what the targets take"):
        return None
    if task.result is None:
        st.error(escaped(f"What the targets take is not known: {task.error}"))
        if task.was_cancelled:
            st.button(
                "Try again",
                key="minimum budget again",
                on_click=optima.forget_minimum,
                args=kept_under,
            )
    return task.result


def plan(scenario: Scenario | None = None) -> Plan | None:
    """The plan of a scenario (the open one); None, which the page explains, where there is none."""
    scenario = current() if scenario is None else scenario
    solution = optimum(scenario=scenario)
    if solution is None:
        return None
    budget = scenario.budget
    try:
        return kept(f"plan of {scenario.name}", (solution, budget), lambda: solution.at(budget))
    except RpexploreError as error:
        st.error(escaped(f"There is no plan: {error}"))
        return None


def _optima_of(workload: Workload) -> Optima:
    """The solutions for a workload: those of the workloads used last are kept for this session."""
    held: list[Optima] = st.session_state.setdefault("optima", [])
    found = next((optima for optima in held if optima.workload is workload), None)
    if found is None:
        closures = (optima.closure_of(workload) for optima in held)
        found = Optima(workload, next((each for each in closures if each is not None), None))
        wanted = [vars(scenario).get("workload") for scenario in project().scenarios]
        for optima in held:
            if not any(optima.workload is each for each in wanted):
                optima.give_up()
    else:
        held.remove(found)
    held.append(found)
    del held[:-MOST_KEPT]
    return found
