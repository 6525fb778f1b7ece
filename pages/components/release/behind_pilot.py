"""A run whose pilot is released: its forecast, the plan of the rest, and how the run goes on.

All that tells of such a run is in its folders, so that any session can go on with it.
"""

from dataclasses import replace

import streamlit as st

from pages.components.release.release_task import RELEASE_TASK
from pages.components.shared.background import worked_out
from pages.components.shared.expected_counts import show_forecast
from pages.components.shared.session import attempt, escaped, kept
from rpexplore.analysis.drawn_counts import DrawnCounts
from rpexplore.analysis.most_people import planned_rest
from rpexplore.analysis.published_lines import forecast_of_scenario
from rpexplore.analysis.ranges import range_columns
from rpexplore.common.files import typed_path
from rpexplore.planning.plan import Plan
from rpexplore.releases.finished_release import Release
from rpexplore.releases.pilot import plan_behind_pilot
from rpexplore.results.pilot_tables import pilot_known, pilot_tables
from rpexplore.serving.release_tasks import ReleaseInputs, ReleaseTask


def waiting_plan() -> Plan | None:
    """The plan by which the run into the typed folder goes on behind its pilot; None without."""
    typed = st.session_state.get("output", "").strip()
    if not typed:
        return None
    return attempt(lambda: plan_behind_pilot(typed_path(typed).absolute()))


def released_pilot(release: Release, task: ReleaseTask) -> None:
    """What was released and charged, and how the run goes on."""
    st.success(f"The pilot is released: {release.plan.contents}. {task.charge}")
    st.code(str(release.folder.absolute()), language=None)
    waiting = attempt(lambda: plan_behind_pilot(task.inputs.output))
    if waiting is None:
        st.info("This run has gone on elsewhere; the page Results opens its release.")
        st.button("Prepare another release", on_click=leave_run)
    else:
        behind_pilot(release, task.inputs, waiting, task.project_key)


def behind_pilot(release: Release, inputs: ReleaseInputs, waiting: Plan, project_key: str) -> None:
    """The forecast from the figures of a pilot, and the ways on.

    Where the rest is planned from these figures, the forecast is that of the plan of the rest, to
    be accepted.

    inputs: of the run, by its first plan
    waiting: by which it goes on: the first plan, or that of its rest if one was accepted
    """
    first, folder, run = inputs.plan, release.folder, release.manifest["run"]
    tables, scenario = first.part("tables"), inputs.scenario
    is_accepted, way_on = waiting.sha256 != first.sha256, "Go on: draw the rest"
    if tables.then is not None:
        scenario = scenario.replaced(cv_limit=float(tables.then.limit))
    following: Plan | None = waiting
    if tables.then is None or is_accepted:
        known = kept(pilot_known, tables, folder, by=(first.sha256, run))
        drawn = worked_out(DrawnCounts.of, tables.workload, known, by=(first.sha256, run))
    else:
        way_on = "Accept this plan and draw the rest"
        public = kept(pilot_tables, folder, by=(run,))
        rest = worked_out(planned_rest, first, public, by=(first.sha256, run))
        following, drawn = (None, None) if rest is None else (rest.plan, rest.found.counts)
        if rest is not None:
            st.subheader("The plan of the rest")
            st.markdown(escaped(rest.text))
    if is_accepted:
        st.subheader("The plan of the rest")
        st.markdown("It was accepted before, and the run goes on with it.")
    if following is not None and tables.then is not None:
        st.caption(f"{escaped(following.proven)}  \nSHA-256 of this plan: `{following.sha256}`")
    if following is not None and drawn is not None:
        st.subheader("How good all tables will be")
        made = kept(forecast_of_scenario, following.part("tables"), drawn, scenario)
        shown = range_columns(kept(made.by_order), "attributes", "meeting")
        show_forecast(made, shown, "Forecast from the pilot")
        if tables.then is not None:
            before = kept(forecast_of_scenario, tables, drawn, scenario, slot="first")
            st.caption(f"With the weights of the first plan: {escaped(before.describe())}")
    with st.container(horizontal=True):
        st.button(
            way_on,
            type="primary",
            disabled=following is None,
            help="The run is booked; nothing further is spent. What the pilot has measured counts "
            "in all tables.",
            on_click=_go_on,
            args=(inputs, following, project_key),
        )
        st.button("Leave it at the pilot", on_click=leave_run)
    st.caption("The run can also go on later, into the same folder, at no further cost.")


def _go_on(inputs: ReleaseInputs, following: Plan, project_key: str) -> None:
    account = inputs.ledger.account(inputs.data)
    going = replace(inputs, plan=following, pilot_only=False, account=account)
    rest = ReleaseTask.begin(going, project_key)
    if rest is not None:
        st.session_state[RELEASE_TASK] = rest


def leave_run() -> None:
    """Back to the form, with a new folder."""
    st.session_state.pop(RELEASE_TASK, None)
    st.session_state.pop("output", None)
