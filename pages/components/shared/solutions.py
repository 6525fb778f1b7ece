"""What is planned for the open scenario: solved once for each loss, outside the script thread.

All that it asks for is one plan, `whole_plan`; its parts share the budget of the scenario.
"""

from collections import deque
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import streamlit as st

from pages.components.shared.background import result_of, worked_out
from pages.components.shared.session import attempt, current, escaped, kept, project
from rpexplore.analysis.budget_units import with_privacy_unit
from rpexplore.analysis.sufficient_budgets import sufficient_budget
from rpexplore.errors import OutOfReachError
from rpexplore.planning.areas.area_plan import AreaPlan
from rpexplore.planning.counts_objectives import OBJECTIVES
from rpexplore.planning.counts_planner import QueryOptimum
from rpexplore.planning.losses.losses import Loss
from rpexplore.planning.minimum_budget import MinimumBudget
from rpexplore.planning.part_plan import TITLES, keeping
from rpexplore.planning.pilot import with_pilot
from rpexplore.planning.plan import Plan
from rpexplore.planning.planner import Optimum
from rpexplore.planning.request import AtBudget, combined
from rpexplore.planning.table_plan import TablePlan
from rpexplore.privacy.budget import Budget
from rpexplore.scenarios.project import check_limits
from rpexplore.scenarios.scenario import NOTHING_ASKED, Scenario
from rpexplore.serving.planning_tasks import (
    FoundAreas,
    FoundCounts,
    FoundTables,
    WorkloadTasks,
    at_any,
    solve_areas,
    solve_counts,
)
from rpexplore.serving.sessions import limits, plans_only
from rpexplore.workload.workload import Workload

NO_PLAN = "There is no plan: "
MOST_LISTS = 6  # of own counts, whose solutions stay with the session, for an undo


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
    budget = scenario.budget
    if "tables" in scenario.kinds:
        budget = scenario.budget_to_solve("tables")
    task = tasks.optimum(loss, scenario.uniform_reference, budget)
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
    """The tables of the plan of a scenario; None, which the page explains, where there are none."""
    return part("tables", scenario)


def part(kind: str, scenario: Scenario | None = None) -> Any:
    """A part of the plan of a scenario (the open one), at its share of the budget.

    None, which the page explains, where there is no plan, or nothing of this kind in it.
    """
    scenario = current() if scenario is None else scenario
    if kind not in scenario.kinds:
        st.info(f"This scenario asks for no {TITLES[kind].lower()}.")
        return None
    if len(scenario.kinds) > 1:
        whole = whole_plan(scenario)
        return None if whole is None else whole.part(kind)
    solved = _SOLVED[kind](scenario)
    if solved is None:
        return None
    solution, at = solved
    by_rho = bool(scenario.then)
    by = solution, scenario.budget, by_rho
    found = attempt(
        lambda: kept(keeping, scenario.budget, at, slot=scenario.name, by=by, by_rho=by_rho),
        NO_PLAN,
    )
    return None if found is None else _with_pilot(found.alone, scenario, kind)


def _with_pilot(planned: Plan, scenario: Scenario, kind: str | None = None) -> Any:
    """A plan, or a part of it, with the pilot that the scenario wants; None if it can have none."""
    made: Plan | None = planned
    if scenario.pilot is not None and planned.part("tables") is not None:
        made = attempt(
            lambda: kept(
                with_pilot,
                planned,
                scenario.pilot,
                slot=scenario.name,
                by=(planned, scenario.pilot, scenario.rest_objective),
                then=scenario.rest_objective,
            ),
            NO_PLAN,
        )
    return made if kind is None or made is None else made.part(kind)


def whole_plan(scenario: Scenario | None = None, *, by_rho: bool = False) -> Plan | None:
    """The plan of all that a scenario (the open one) asks for.

    by_rho: whether an (ε, δ) must follow from ρ alone, as beside adaptive tables
    None, which the page explains, where there is none, or while it is being worked out.
    """
    scenario = current() if scenario is None else scenario
    if len(scenario.kinds) == 1:
        only = part(scenario.kinds[0], scenario)
        return None if only is None else only.alone
    if not scenario.kinds:
        st.info(NOTHING_ASKED)
        return None
    if scenario.stated_shares is None and not scenario.splits_itself:
        say_how_to_split(scenario)
        return None
    solutions, parts = [], {}
    for kind in scenario.kinds:
        solved = _SOLVED[kind](scenario)
        if solved is None:
            return None
        solution, parts[kind] = solved
        solutions.append(solution)
    stated = scenario.stated_shares
    objective, by_rho = scenario.objective, by_rho or bool(scenario.then)
    by = (*solutions, scenario.budget, scenario.shares, objective, by_rho)
    options = {"slot": scenario.name, "by": by, "by_rho": by_rho}
    made = attempt(
        lambda: kept(combined, parts, scenario.budget, objective, stated, **options), NO_PLAN
    )
    return None if made is None else _with_pilot(made, scenario)


def say_how_to_split(scenario: Scenario) -> None:
    """Why the shares must be stated, and where."""
    asked = scenario.areas
    differ = "tables" in scenario.kinds and asked is not None and asked.loss != scenario.loss
    why = (
        "Tables and areas have different objectives, which do not say how to split the budget. "
        "State the shares of the parts, or choose the same objective for both."
        if differ
        else "This objective does not say how the parts compare. State their shares of the budget."
    )
    st.warning(f"{NO_PLAN}its shares of the budget are missing. {why}")
    st.page_link(
        "pages/plan.py", label="State the shares on the Plan page, under Parts of the plan"
    )


def part_budget(kind: str, scenario: Scenario | None = None) -> Budget:
    """The budget of a part in the plan, at the cost of its noise; all of it without a plan."""
    scenario = current() if scenario is None else scenario
    is_found = len(scenario.kinds) > 1 or scenario.budget.stated_epsilon is not None
    if is_found and kind in scenario.kinds:
        planned = part(kind, scenario)
        if planned is not None:
            return planned.budget
    return scenario.budget


def budget_of_whole(kind: str, budget: Budget) -> Budget:
    """The budget of the scenario at whose shares a part has this one."""
    if len(current().kinds) < 2:  # all of it, at whatever cost the noise of its plan proves it
        return with_privacy_unit(budget, budget.max_records_per_person)
    planned = whole_plan()
    whole = current().budget if planned is None else planned.budget
    scaled = _scaled(budget, part_budget(kind), whole.privacy_cost)
    if planned is None or whole.stated_epsilon is None:
        return scaled
    enough = sufficient_budget(float(scaled.rho), whole, noise=planned.noise).budget
    return with_privacy_unit(enough, budget.max_records_per_person)


def budget_of_stated(kind: str, budget: Budget) -> Budget:
    """`budget_of_whole` for a part that cannot be planned yet, by its stated share."""
    whole = current().budget.largest  # whose shares those of the parts are
    return _scaled(budget, current().budget_to_solve(kind), whole.privacy_cost)


def _scaled(budget: Budget, of_part: Budget, whole: Fraction) -> Budget:
    if of_part.privacy_cost == whole:
        return with_privacy_unit(budget, budget.max_records_per_person)
    return budget.of_unit(privacy_cost=budget.privacy_cost * (whole / of_part.privacy_cost))


# ---- how each part is solved: what tells one solution from another, and the part at a budget


Solved = tuple[Any, AtBudget]


def _solved_tables(scenario: Scenario) -> Solved | None:
    solution = optimum(scenario=scenario)
    if solution is None:
        return None
    found = FoundTables(solution, scenario.rules_in_use, scenario.uniform_reference)
    return found, at_any(found, solution.budget)


def _solved_areas(scenario: Scenario) -> Solved | None:
    assert scenario.areas is not None
    asked = attempt(lambda: scenario.planned_areas, NO_PLAN)
    if asked is None:
        return None
    needed = "a target of " + scenario.areas.misses_targets
    if scenario.areas.requires_none:
        needed = "a required target"
    if scenario.areas.misses_targets or scenario.areas.requires_none:
        st.info(escaped(f"{NO_PLAN}the objective of the areas needs {needed}."))
        st.page_link("pages/workload.py", label="To the areas", query_params={"part": "areas"})
        return None
    found = solved_areas(scenario)
    if found is None:
        return None
    if isinstance(found, OutOfReachError):
        st.error(escaped(f"{NO_PLAN}{found}"))
        return None
    solved_for = None if scenario.areas.loss.is_homogeneous else found.budget
    return found, at_any(FoundAreas(found, asked), solved_for)


def _solved_counts(scenario: Scenario) -> Solved | None:
    assert scenario.query_list is not None
    solution = query_solution(scenario)
    if solution is None:
        return None
    found = FoundCounts(solution, scenario.counts_objective, scenario.used_free_counts)
    return solution, at_any(found, solution.budget)


_SOLVED: dict[str, Callable[[Scenario], Solved | None]] = {
    "tables": _solved_tables,
    "areas": _solved_areas,
    "counts": _solved_counts,
}


def solved_areas(scenario: Scenario) -> AreaPlan | OutOfReachError | None:
    """The plan for areas at the budget at which it is solved, or why that is too small.

    None while it is worked out, and where it failed, which the page explains.
    """
    asked = attempt(lambda: scenario.planned_areas, NO_PLAN)
    if asked is None:
        return None
    by = (asked.planned, scenario.budget_to_solve("areas"))
    return worked_out(solve_areas, *by, problem=NO_PLAN, slot=scenario.name, by=by)


def query_solution(scenario: Scenario | None = None) -> QueryOptimum | None:
    """The solution of a scenario's own counts; None, and the page says why, without."""
    scenario = current() if scenario is None else scenario
    stated, objective = scenario.query_list, scenario.counts_objective
    if stated is None:
        return None
    budget = None
    if not OBJECTIVES[objective].is_homogeneous:
        budget = scenario.budget_to_solve("counts")
    neighbours = scenario.budget.replaces, scenario.budget.exact
    asked = objective, scenario.used_free_counts, budget, *neighbours
    solutions: deque[tuple[tuple, QueryOptimum]] = st.session_state.setdefault(
        "query optima", deque(maxlen=MOST_LISTS)
    )
    for known, solution in solutions:
        if solution.queries is stated.queries and known == asked:
            return solution
    solution = worked_out(solve_counts, stated.queries, *asked, problem=NO_PLAN)
    if solution is not None:
        solutions.append((asked, solution))
    return solution


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
