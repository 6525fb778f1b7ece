"""The areas of the open scenario, what is asked for them, and their plan."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import streamlit as st

from pages.components.shared.autosave import autosaves
from pages.components.shared.background import task_name, worked_out
from pages.components.shared.inputs import revision
from pages.components.shared.session import attempt, change, change_fields, current, escaped, say
from pages.components.shared.solutions import NO_PLAN, budget_of_stated, part, solved_areas
from rpexplore.analysis.area_accuracy import budget_within_reach
from rpexplore.analysis.budget_units import stated_text
from rpexplore.analysis.scenario_comparison import AreaOutcome
from rpexplore.analysis.workload_grid import Setting, typed_target
from rpexplore.common.processes import Progress
from rpexplore.common.text import plural
from rpexplore.errors import OutOfReachError
from rpexplore.planning.areas.area_plan import AreaPlan
from rpexplore.scenarios.area_study import AreaStudy
from rpexplore.scenarios.scenario import Scenario

HERE = "areas"  # where messages of the page go
GRIDS: Mapping[Setting, str] = {"weight": "area weights", "target": "area targets"}
_TARGET = "area target for all"


def study() -> AreaStudy | None:
    """The areas of the open scenario, and what is asked for them; None if it has none."""
    return current().areas


def open_study(opened: AreaStudy | None) -> None:
    """Give the open scenario these areas, or none.

    If they are those that it has, and whose file was missing, their tables stay.
    """
    before = study()
    if opened is not None and before is not None:
        if (before.areas.sha256, before.domain) == (opened.areas.sha256, opened.domain):
            before.areas.give(opened.areas.tree)
            opened = replace(before, filename=opened.filename)
        else:
            say(
                HERE,
                "warning",
                f"The areas of {opened.filename} are not those that this scenario had, so that "
                "their tables begin anew. Undo brings back the others.",
            )
    change_fields(HERE, areas=opened)


def change_study(make: Callable[[AreaStudy], AreaStudy]) -> bool:
    """Replace the open study; what is refused leaves the old one, and a message."""
    opened = study()
    return opened is not None and change(HERE, lambda: current().replaced(areas=make(opened)))


def is_read(opened: AreaStudy) -> bool:
    """Whether the areas are in memory; they are read, and the page says how far or what is wrong.

    Where their file is missing, the page asks for it.
    """
    if opened.areas.is_read:
        st.session_state.pop(task_name(_read), None)  # it would keep them in memory
        return True
    sha256 = opened.areas.sha256
    by = sha256, autosaves().has_tree(sha256)  # read anew if a missing file is there again
    return worked_out(_read, opened, by=by) is not None


def file_is_missing(opened: AreaStudy) -> bool:
    """Whether the areas could not be read; then the page says how they come back."""
    _, task = st.session_state[task_name(_read)]
    if opened.areas.is_read or task.is_going:
        return False
    st.info(
        f"The tables of these areas are kept. Open {escaped(opened.filename)} with its file of "
        "areas below, or the project.zip in which they were saved, on the Scenarios page."
    )
    return True


def _read(opened: AreaStudy, on_progress: Progress) -> bool:
    on_progress(f"Reading {plural(opened.areas.n_areas, 'area')}", 0.0)
    return opened.areas.tree is not None


def areas_can_be_planned(opened: AreaStudy) -> bool:
    """Whether there is a plan for the areas; if not, the page says why, and what to do."""
    if missing := opened.misses_targets:
        with st.container(border=True):
            st.markdown(
                "The objective of the areas compares every table with a target, a standard error "
                f"of a cell. Some have none yet, such as {escaped(missing)}: set one for all of "
                "these here, or each in the areas' view Tables."
            )
            _target_for_all()
        return False
    if opened.requires_none:
        st.info(
            "No target of the areas is required yet: write required behind one in their view "
            "Tables, such as 20 required."
        )
        return False
    found = solved_areas(current())
    if isinstance(found, OutOfReachError):
        _offer_budget(found, opened)
    return isinstance(found, AreaPlan)


def _offer_budget(refused: OutOfReachError, opened: AreaStudy) -> None:
    """Say that required targets cannot be met, and offer the budget at which they can."""
    st.error(escaped(f"{NO_PLAN}{refused}"))
    found = attempt(
        lambda: budget_within_reach(
            refused,
            current().budget_to_solve("areas"),
            (current().planned_areas or opened).workload,
        )
    )
    if found is None:
        return
    enough, text = found
    budget = budget_of_stated("areas", enough.budget)
    st.markdown(escaped(text))
    st.button(
        f"Use {escaped(stated_text(budget))}",
        key="use the budget of required targets",
        on_click=change_fields,
        args=(HERE,),
        kwargs={"budget": budget},
        help="The budget of the Plan page is then this one, too.",
    )


def area_outcome(scenario: Scenario) -> AreaOutcome | None:
    """What comes of a scenario's areas; None while it is planned, and where there is no plan."""
    planned = part("areas", scenario)
    if planned is None:
        return None
    return worked_out(
        AreaOutcome.of,
        planned,
        scenario,
        doing="Working out what comes of the areas",
        problem=f"{scenario.name}: {NO_PLAN}",
        slot=scenario.name,
        by=(planned, scenario.public, scenario.expected, scenario.areas),
    )


def _target_for_all() -> None:
    """A box for the target of every table without one."""
    with (
        st.form("area targets", border=False),
        st.container(horizontal=True, vertical_alignment="bottom"),
    ):
        st.text_input("Target for every table without one", key=_TARGET, width=260)
        st.form_submit_button("Set", on_click=_set_missing)


def _set_missing() -> None:
    typed = st.session_state[_TARGET]
    if change_study(
        lambda opened: opened.with_target_where_missing(
            typed_target(typed.strip() or "none", "The target")
        )
    ):
        forget_typed()


def forget_typed() -> None:
    """The grids of weights and targets forget what was typed."""
    for name in GRIDS.values():
        revision(name, step=True)
