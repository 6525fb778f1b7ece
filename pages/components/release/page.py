"""Release: take a plan along, run it on records, once, and look at the result."""

import streamlit as st

from pages.components.release.behind_pilot import behind_pilot, released_pilot, waiting_plan
from pages.components.release.confirmation import approvals_input, ask, confirmation
from pages.components.release.destinations import (
    account_of,
    escape_formulas_input,
    file_per_table_input,
    ledger_input,
    limit_input,
    output_folder,
    parquet_only_input,
    pilot_only_input,
)
from pages.components.release.export import take_along
from pages.components.release.form import ReleaseForm, plan_to_run, say_without_whole_counts
from pages.components.release.progress import (
    account_view,
    dry_run_button,
    finished_release,
    finishing,
    inputs_after_dry_run,
    is_paid,
    release_in_progress,
    run_elsewhere,
    unfinished_runs,
)
from pages.components.release.records import (
    count_impossible_input,
    data_source,
    person_rule_input,
    recall_typed,
    taker_caption,
    taker_inputs,
)
from pages.components.release.release_task import RELEASE_TASK, project_task
from pages.components.results.source import open_folder
from pages.components.shared.autosave import autosaves, is_saved, open_key, save_project
from pages.components.shared.files import download
from pages.components.shared.session import current, escaped, project, say, show_messages
from pages.components.shared.texts import explained_title, next_page
from rpexplore.common.files import typed_path
from rpexplore.errors import RpexploreError
from rpexplore.planning.approval import Approval
from rpexplore.planning.plan import Plan
from rpexplore.releases.finished_release import Release
from rpexplore.releases.ledger.account import check_limit
from rpexplore.releases.ledger.spent import Reading
from rpexplore.releases.pilot import pilot_folder
from rpexplore.reports import bundle
from rpexplore.serving.release_tasks import ReleaseInputs, ReleaseTask, any_going, going_since


def draw() -> None:
    """The page."""
    with st.container(key="layout"):
        left = st.container(gap="small")
        right = st.container()
    with left:
        explained_title("Release")
    with right:
        if not run_in_place_of_form():
            last_release()
            waiting = waiting_plan()
            planned = plan_to_run() if waiting is None else waiting.booked
            if planned is not None:
                with left:
                    take_along(planned)
                st.subheader("Run the release")
                say_without_whole_counts(planned)
                run_form(planned, waiting)
    next_page("results", "Results")


# ---- The run of a plan of tables, or of queries: the form, the button, how far it is, its result.


HERE = "release"


def run_in_place_of_form() -> bool:
    """Whether a run of the project goes on, or the last one is finished.

    Then the page shows how far it is, or its result; of a run that failed it says why.
    """
    task = project_task()
    if task is not None and task.is_going:
        release_in_progress(task)
        return True
    if task is not None and task.result is not None:
        if task.inputs.pilot_only:
            released_pilot(task.result, task)
        else:
            finished_release(task.result, task)
        return True
    is_finishing = finishing()
    task = project_task()  # whose failure may be mended now
    if task is not None and task.failed:
        st.error(escaped(f"{task.error} {task.charge}"))
    return is_finishing


def run_form(planned: Plan, waiting: Plan | None) -> None:
    """What is run, everything to be decided before it, and the button.

    waiting: by which the typed run goes on whose pilot is released, if it is one
    """
    recall_typed()
    st.markdown(
        f"The plan: {planned.full_contents}, {planned.amount_text} for "
        f"{escaped(planned.budget.full_unit)}. It is run **once**, on records that stay where they "
        "are; the cost is entered in a ledger first."
    )
    _set_up(planned, waiting)


def _set_up(planned: Plan, waiting: Plan | None) -> None:
    data = data_source(planned)
    is_going = data is not None and going_since(data) is not None
    if any_going() and not is_going:  # after a reload the page no longer knows its records
        st.info("A run on other records than these is in progress.")
    if data is None:
        return
    _leave_used_folder()
    form = ReleaseForm(planned, data)
    takers = taker_inputs(form)
    count_impossible = count_impossible_input(planned)
    person_rule = person_rule_input(form)
    st.subheader("Output and cost")
    place = st.container()
    has_csv = any(part.kind != "areas" for part in planned.parts)
    parquet_only = not has_csv or parquet_only_input()
    file_per_table = file_per_table_input(planned)
    pilot_only = waiting is None and pilot_only_input(planned)
    escape_formulas = not parquet_only and escape_formulas_input(planned)
    with place:
        output = output_folder(form, parquet_only=parquet_only, file_per_table=file_per_table)
    left, right = st.columns(2)
    with left:
        ledger = ledger_input(form)
        account = None if ledger is None else account_of(form, ledger)
    with right:
        limit = limit_input(form, account)
        paid = False
        if ledger is not None and account is not None:
            paid = is_paid(planned, output, account, ledger)
        if account is not None and not paid:
            record_limit = None if limit is None else limit / planned.budget.records_factor
            form.attempt(lambda: check_limit(account, planned, record_limit))
    approvals: tuple[Approval, ...] = ()
    if ledger is not None and account is not None:
        reading = Reading(data.reading, **takers, person_rule=person_rule)
        account_view(form, ledger, account, limit, reading, paid=paid)
        if not paid:  # what is booked has the approvals that it was booked with
            approvals = approvals_input(form, account)
        if not is_going:
            unfinished_runs(account, ledger, None if waiting is None else output)
    if is_going:
        run_elsewhere(data, account)
    taker_caption(planned.domain, takers)
    show_messages(HERE)
    label = f"Run the release: spend {planned.amount_text}"
    if paid:
        label = "Run the release again: nothing further is spent"
    if waiting is not None and not paid:
        st.info(
            "The run into that folder is of other records, or in another ledger. Choose those to "
            "go on with it, or empty the field to get a new folder."
        )
        return
    if output is None or ledger is None or account is None or is_going or not form.is_complete:
        st.button(label, type="primary", disabled=True)
        return
    inputs = ReleaseInputs(
        plan=planned,
        scenario=current(),
        data=data,
        output=output,
        missing_values=takers["missing_values"],
        unknown_values=takers["unknown_values"],
        count_impossible=count_impossible,
        person_rule=person_rule,
        ledger=ledger,
        limit=limit,
        account=account,
        escape_formulas=escape_formulas,
        parquet_only=parquet_only,
        file_per_table=file_per_table,
        approvals=approvals,
        pilot_only=pilot_only,
    )
    if waiting is not None:
        behind_pilot(Release.load(pilot_folder(output)), inputs, waiting, open_key())
        return
    buttons = st.container(horizontal=True)
    with buttons:
        dry_run_button(inputs)
    checked = inputs_after_dry_run(inputs)
    is_refused = checked is None
    buttons.button(label, type="primary", disabled=is_refused, on_click=ask, args=(planned,))
    if checked is not None:
        confirmation(checked, _start, paid=paid)


def _leave_used_folder() -> None:
    """Have a new folder proposed after a release, of the other kind of plan, has taken the last."""
    task, typed = project_task(), st.session_state.get("output")
    if task is None or task.result is None or not typed:
        return
    if typed_path(typed).absolute() == task.inputs.output:
        st.session_state["output"] = ""


def _start(inputs: ReleaseInputs) -> None:
    """Begin the release, unless one was begun already: a second click comes here too."""
    held = project_task()
    kinds = {part.kind for part in inputs.plan.parts}
    if held is not None and (held.is_going or (held.kinds == kinds and not held.failed)):
        return
    try:
        account = inputs.ledger.account(inputs.data)
    except RpexploreError as error:
        say(HERE, "error", str(error))
        return
    if account != inputs.account:  # another tab, or the command line, has spent something meanwhile
        say(
            HERE,
            "warning",
            "The ledger has changed since this page was drawn; look at the figures and press "
            "again.",
        )
        return
    if not is_saved():  # for the release to be found again with its project
        save_project(project())
    task = ReleaseTask.begin(inputs, open_key())
    if task is not None:
        st.session_state[RELEASE_TASK] = task


# ---- The last release of the open project, found again after a reload.


def last_release() -> None:
    """The way to the last release of the open project and to its exports, if there was one."""
    saved = autosaves().last_release(open_key())
    if saved is None:
        return
    with st.container(border=True):
        st.markdown(
            f"**Last release of this project:** {saved.contents}, in {escaped(str(saved.folder))}"
        )
        with st.container(horizontal=True):
            if st.button("Look at its results"):
                open_folder(saved.folder)
                st.switch_page("pages/results.py")
            if "tables" in saved.plan_format.split(","):
                download(
                    f"released-{bundle.FILENAME}",
                    lambda: bundle.bundle(
                        Plan.load(saved.folder / "plan.json").booked, saved.scenario
                    ),
                    "Download its plan and report (.zip)",
                )
