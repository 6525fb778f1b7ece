"""A dry run, and a run after its button was pressed: how far it is, and the result."""

from dataclasses import replace
from functools import partial

import streamlit as st

from pages.components.release.export import export_section
from pages.components.release.ledger import utc_minute
from pages.components.release.release_task import RELEASE_TASK
from pages.components.results.files import page_for_readers
from pages.components.shared.background import follow, has_ended, worked_out
from pages.components.shared.expected_counts import show_forecast
from pages.components.shared.session import escaped, kept
from rpexplore.analysis.drawn_counts import DrawnCounts
from rpexplore.analysis.glossary import meaning
from rpexplore.analysis.published_lines import forecast_of_scenario
from rpexplore.analysis.ranges import range_columns
from rpexplore.common.text import capitalised
from rpexplore.data.source import Source
from rpexplore.releases.finished_release import Release
from rpexplore.releases.ledger.account import Account
from rpexplore.releases.release import dry_run
from rpexplore.releases.release_steps import DryRun
from rpexplore.results.pilot_tables import pilot_known
from rpexplore.results.publication import Publication, sampling_of
from rpexplore.serving.release_tasks import ReleaseInputs, ReleaseTask, going_since
from rpexplore.serving.tasks import Task

KEPT = "dry run"


def dry_run_button(inputs: ReleaseInputs) -> None:
    """The button that begins a dry run."""
    st.button(
        "Dry run",
        key="dry run button",
        help=meaning("Dry run"),
        on_click=_begin_dry_run,
        args=(inputs,),
    )


def inputs_after_dry_run(inputs: ReleaseInputs) -> ReleaseInputs | None:
    """The inputs, with what a dry run of exactly these has seen of the records, if there was one.

    None, and the page says why, after one that failed. Draws how far it is, and its result.
    """
    held: tuple[ReleaseInputs, Task[DryRun]] | None = st.session_state.get(KEPT)
    if held is None or not held[0].is_same_run(inputs):
        return inputs
    task = held[1]
    if not has_ended(task, KEPT, "Checking"):
        return inputs
    if task.result is None:
        st.error(escaped(f"{task.error} Nothing was charged."))
        if task.was_cancelled:
            return inputs
        st.info(
            "The release would fail for the same reason. Fix the problem or change your choices "
            "above, then repeat the dry run."
        )
        return None
    told = (*task.result.findings, *task.result.taken)
    findings = "\n".join(f"- {escaped(finding)}" for finding in told)
    st.success(f"All is in order; nothing was spent.\n{findings}")
    return replace(inputs, expected_fingerprint=task.result.fingerprint)


def _begin_dry_run(inputs: ReleaseInputs) -> None:
    held = st.session_state.get(KEPT)
    if held is not None:
        held[1].cancel()
    st.session_state[KEPT] = (inputs, Task(partial(inputs.call, dry_run)).start())


@st.fragment(run_every=1)
def run_elsewhere(data: Source, account: Account | None) -> None:
    """A note on a run that this session did not begin, or began before the page was reloaded."""
    since = going_since(data)
    if since is None:
        st.rerun()
    runs = [] if account is None else [run for run in account.entries if run.state != "finished"]
    folder = escaped(runs[-1].output) if runs else "the folder it was given"
    st.info(
        f"A run on these records is in progress, since {utc_minute(since.isoformat())}. Its "
        f"release will be in {folder}; its cost is entered in the ledger."
    )


def release_in_progress(task: ReleaseTask) -> None:
    """A bar that follows the run; the page itself is drawn again when it has ended."""
    follow(task, "release", task.cost_of_cancelling, task.kept_from)
    st.caption("The run goes on if you look at other pages.")


def finished_release(release: Release, task: ReleaseTask) -> None:
    """What was charged, where the files are, and the way to the results."""
    st.success(f"Finished: {release.plan.contents}. {task.charge}")
    st.markdown("The files are in")
    st.code(str(release.folder.absolute()), language=None)
    for part in release.parts:
        if part.kind == "rounds":
            st.warning(f"{escaped(capitalised(part.label))}.", icon=":material/label_important:")
    publication = Publication(task.inputs.scenario.cv_limit, sampling=sampling_of(release))
    with st.container(horizontal=True, vertical_alignment="center"):
        page_for_readers(release, release.folder.absolute(), publication, type="primary")
        st.page_link("pages/results.py", label="Look at the results", icon=":material/table_view:")
        st.button("Prepare another release", on_click=_prepare_another)
    if release.part("tables") is not None:
        export_section(release.plan, task.inputs.scenario)


def released_pilot(release: Release, task: ReleaseTask) -> None:
    """The forecast of all tables from the figures of a pilot, and the way to the rest."""
    st.success(f"The pilot is released: {release.plan.contents}. {task.charge}")
    st.code(str(release.folder.absolute()), language=None)
    planned, scenario = task.inputs.plan.part("tables"), task.inputs.scenario
    st.subheader("How good all tables will be")
    known = kept(pilot_known, planned, release.folder)
    drawn = worked_out(DrawnCounts.of, planned.workload, known, by=(planned, release.folder))
    if drawn is not None:
        made = kept(forecast_of_scenario, planned, drawn, scenario)
        shown = range_columns(kept(made.by_order), "attributes", "meeting")
        show_forecast(made, shown, "Forecast from the pilot")
    with st.container(horizontal=True):
        st.button(
            "Go on: draw the rest",
            type="primary",
            help="The run is booked; nothing further is spent. What the pilot has measured counts "
            "in all tables.",
            on_click=_go_on,
            args=(task,),
        )
        st.button("Leave it at the pilot", on_click=_prepare_another)
    st.caption("The run can also go on later, into the same folder, at no further cost.")


def _go_on(task: ReleaseTask) -> None:
    inputs = task.inputs
    account = inputs.ledger.account(inputs.data)
    rest = ReleaseTask.begin(replace(inputs, pilot_only=False, account=account), task.project_key)
    if rest is not None:
        st.session_state[RELEASE_TASK] = rest


def _prepare_another() -> None:
    """Back to the form, with a new folder."""
    st.session_state.pop(RELEASE_TASK, None)
    st.session_state.pop("output", None)
