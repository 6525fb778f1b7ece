"""The areas that the session has open, what is asked for them, and their plan."""

from collections.abc import Callable, Mapping

import streamlit as st

from pages.components.shared.background import worked_out
from pages.components.shared.editors import revision
from pages.components.shared.session import current, escaped, project, say
from pages.components.shared.solutions import NO_PLAN
from rpexplore.analysis.area_grid import Setting
from rpexplore.common.concurrency import Progress
from rpexplore.common.formatting import plural
from rpexplore.common.typed_numbers import needed_number_of
from rpexplore.errors import RpexploreError
from rpexplore.planning.areas.area_plan import AreaPlan
from rpexplore.planning.areas.area_planner import plan_areas
from rpexplore.privacy.budget import Budget
from rpexplore.scenarios.area_study import AreaStudy

HERE = "areas"  # where messages of the page go
GRIDS: Mapping[Setting, str] = {"weight": "area weights", "target": "area targets"}
_STUDY, _TARGET = "area study", "area target for all"


def study() -> AreaStudy | None:
    """What is open; None before areas were chosen."""
    project()  # a first visit that went straight to this page comes back with all of the app
    return st.session_state.get(_STUDY)


def open_study(opened: AreaStudy | None) -> None:
    """Go over to other areas, or to none."""
    st.session_state[_STUDY] = opened
    for name in ("area map", "area looked into"):
        st.session_state.pop(name, None)


def change_study(make: Callable[[AreaStudy], AreaStudy]) -> bool:
    """Replace the open study; what is refused leaves the old one, and a message."""
    opened = study()
    if opened is None:
        return False
    try:
        st.session_state[_STUDY] = make(opened)
    except RpexploreError as error:
        say(HERE, "error", f"{error} Nothing was changed.")
        return False
    return True


def area_plan(opened: AreaStudy) -> AreaPlan | None:
    """The plan at the scenario's budget; None, and the page says why, without."""
    if missing := opened.misses_targets:
        with st.container(border=True):
            st.markdown(
                "This objective compares every table with a target, a standard error of a cell. "
                f"Some have none yet, such as {escaped(missing)}: set one for all of these here, "
                "or each in the view Tables above."
            )
            target_for_all()
        return None
    budget = current().budget
    return worked_out(_solve, opened, budget, problem=NO_PLAN, by=(opened, budget))


def target_for_all() -> None:
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
            needed_number_of(typed, "The target", least=0.0)
        )
    ):
        forget_typed()


def forget_typed() -> None:
    """The grids of weights and targets forget what was typed."""
    for name in GRIDS.values():
        revision(name, step=True)


def _solve(opened: AreaStudy, budget: Budget, on_progress: Progress) -> AreaPlan:
    on_progress(f"Planning {plural(opened.workload.n_tables, 'table')}", 0.0)
    planned = plan_areas(
        opened.workload,
        loss=opened.loss,
        budget=budget,
        uniform_levels=opened.uniform,
        on_progress=on_progress,
    )
    on_progress("Working out the accuracy of all areas", 0.99)
    _ = planned.residual_variances  # kept by the plan, for all that the page shows
    return planned
