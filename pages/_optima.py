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
from rpexplore.words import plural, rounded, share_in_words
from rpexplore.workload import Workload

MOST_KEPT = 12  # workloads whose solutions stay with the session
SEARCH = 0.8  # share of the bar that the search for what to measure takes


class Optima:
    """The solutions for one workload; all of them share its closure.

    tasks  by the loss, and whether totals are spread evenly
    """

    def __init__(self, workload: Workload, closure: Closure | None = None) -> None:
        self.workload = workload
        self.tasks: dict[tuple[Loss, bool], Task[Optimum]] = {}
        self._closure = closure
        self._lock = threading.Lock()

    def key(self, loss: Loss, even_totals: bool) -> tuple[Loss, bool]:
        """What a solution is kept under; where nothing is spread, how is no difference."""
        return loss, even_totals and not self.workload.is_pure

    def task(self, loss: Loss, even_totals: bool) -> Task[Optimum]:
        """The task that solves for this loss, begun when first asked for."""
        key = self.key(loss, even_totals)
        if key not in self.tasks:
            self.tasks[key] = Task(partial(self._solve, *key)).start()
        return self.tasks[key]

    def forget(self, loss: Loss, even_totals: bool) -> None:
        """Solve anew when it is asked for again."""
        self.tasks.pop(self.key(loss, even_totals), None)

    def closure_of(self, workload: Workload) -> Closure | None:
        """The closure, if it is there already and the workload has the same tables."""
        return self._closure if self.workload.has_tables_of(workload) else None

    def give_up(self) -> None:
        """Ask what is not finished to stop, and forget it: asked for again, it starts anew."""
        for task in self.tasks.values():
            task.cancel()
        self.tasks = {key: task for key, task in self.tasks.items() if task.result is not None}

    def _solve(self, loss: Loss, even_totals: bool, note: Note) -> Optimum:
        tables = plural(len(self.workload), "table")
        with self._lock:
            note(0.0, f"Listing what {tables} contain")
            if self._closure is None:
                self._closure = Closure.of(self.workload)
        # The search for strategies, where there is one, takes most of the time.
        searched = 0.0 if self.workload.is_pure else SEARCH

        def tell_search(share: float) -> None:
            note(searched * share, f"Looking for what to measure best: {share_in_words(share)}")

        def tell(gap: float) -> None:
            percent = rounded(100 * gap, 2, "up")
            note(
                searched + (1 - searched) * share_done(gap),
                f"Planning {tables}: within {percent} % of the best possible",
            )

        note(0.0, f"Planning {tables}")
        return solved(
            self.workload,
            loss=loss,
            even_totals=even_totals,
            closure=self._closure,
            note=tell,
            note_strategies=tell_search,
        )


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
    task = optima.task(loss, scenario.even_totals)
    if not has_ended(task, f"planning {scenario.name} {loss}", "Planning"):
        return None
    if task.result is None:
        st.error(escaped(f"There is no plan: {task.error}"))
        if task.was_cancelled:
            again = f"plan again {scenario.name} {loss}"
            kept_under = loss, scenario.even_totals
            st.button("Plan again", key=again, on_click=optima.forget, args=kept_under)
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
