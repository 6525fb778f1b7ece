"""What is planned for the open scenario: solved once for each loss, outside the script thread."""

import threading
from functools import partial

import streamlit as st

from pages._session import current, escaped, kept, study
from pages._task import Note, Task, has_ended
from rpexplore.closure import Closure
from rpexplore.errors import RpexploreError
from rpexplore.losses import Loss
from rpexplore.optimum import Optimum
from rpexplore.plan import Plan
from rpexplore.planner import optimum as solved
from rpexplore.scenario import Scenario
from rpexplore.solvers.solution import share_done
from rpexplore.words import plural, rounded
from rpexplore.workload import Workload

MOST_KEPT = 12  # workloads whose solutions stay with the session


class Optima:
    """The solutions for one workload, by loss; all of them share its closure."""

    def __init__(self, workload: Workload, closure: Closure | None = None) -> None:
        self.workload = workload
        self.tasks: dict[Loss, Task[Optimum]] = {}
        self._closure = closure
        self._lock = threading.Lock()

    def task(self, loss: Loss) -> Task[Optimum]:
        """The task that solves for this loss, begun when first asked for."""
        if loss not in self.tasks:
            self.tasks[loss] = Task(partial(self._solve, loss)).start()
        return self.tasks[loss]

    def closure_of(self, workload: Workload) -> Closure | None:
        """The closure, if it is there already and the workload has the same tables."""
        return self._closure if self.workload.has_tables_of(workload) else None

    def give_up(self) -> None:
        """Ask what is not finished to stop, and forget it: asked for again, it starts anew."""
        for task in self.tasks.values():
            task.cancel()
        self.tasks = {loss: task for loss, task in self.tasks.items() if task.result is not None}

    def _solve(self, loss: Loss, note: Note) -> Optimum:
        tables = plural(len(self.workload), "table")
        with self._lock:
            note(0.0, f"Listing what {tables} contain")
            if self._closure is None:
                self._closure = Closure.of(self.workload)

        def tell(gap: float) -> None:
            percent = rounded(100 * gap, 2, "up")
            note(share_done(gap), f"Planning {tables}: within {percent} % of the best possible")

        note(0.0, f"Planning {tables}")
        return solved(self.workload, loss=loss, closure=self._closure, note=tell)


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
    task = optima.task(loss)
    if not has_ended(task, f"planning {scenario.name} {loss}", "Planning"):
        return None
    if task.result is None:
        st.error(escaped(f"There is no plan: {task.error}"))
        if task.was_cancelled:
            again = f"plan again {scenario.name} {loss}"
            st.button("Plan again", key=again, on_click=optima.tasks.pop, args=(loss,))
        return None
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
        wanted = [vars(scenario).get("workload") for scenario in study().scenarios]
        for optima in held:
            if not any(optima.workload is each for each in wanted):
                optima.give_up()
    else:
        held.remove(found)
    held.append(found)
    del held[:-MOST_KEPT]
    return found
