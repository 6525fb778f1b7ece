"""Release: run a plan of tables, or of queries, on records, once, and look at the result."""

import streamlit as st

from pages.components.queries.solutions import chosen_query_plan
from pages.components.release.confirmation import ask, confirmation
from pages.components.release.destinations import (
    account_of,
    escape_formulas_input,
    ledger_input,
    limit_input,
    output_folder,
)
from pages.components.release.export import export_section
from pages.components.release.form import ReleaseForm
from pages.components.release.last_release import last_release
from pages.components.release.ledger import account_view, finishing, is_paid, unfinished_runs
from pages.components.release.progress import (
    finished_release,
    inputs_after_dry_run,
    release_in_progress,
    run_elsewhere,
)
from pages.components.release.records import (
    data_source,
    person_rule_input,
    unknown_value_caption,
    unknown_value_input,
)
from pages.components.release.release_task import (
    RELEASE_TASK,
    ReleaseInputs,
    ReleaseTask,
    any_going,
    going_since,
    project_task,
)
from pages.components.shared.autosave import is_saved, open_key, save_project
from pages.components.shared.explanations import explained_title
from pages.components.shared.session import current, escaped, project, say, show_messages
from pages.components.shared.solutions import plan
from rpexplore.common.formatting import describe_count
from rpexplore.errors import RpexploreError
from rpexplore.planning.plan import Plan
from rpexplore.planning.release_plan import ReleasePlan
from rpexplore.privacy.conversions import rho_text
from rpexplore.releases.ledger import check_limit

HERE = "release"
TABLES, QUERIES = "The tables", "The list of queries"


def chosen_plan() -> ReleasePlan | None:
    """The plan to release; None, and the page says why, while there is none."""
    if current().query_list is None:
        return plan()
    choice = st.radio(
        "What to release",
        [TABLES, QUERIES],
        key="plan to release",
        horizontal=True,
        persist_state="session",
        help="Each is a release of its own, with its own cost.",
    )
    if choice == TABLES:
        return plan()
    st.page_link("pages/queries.py", label="The queries, their targets and their budget")
    return chosen_query_plan()


def start(inputs: ReleaseInputs) -> None:
    """Begin the release, unless one was begun already: a second click comes here too."""
    held = project_task()
    if held is not None and not held.failed:
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


def set_up(planned: ReleasePlan) -> None:
    """Everything to be decided before a release, and the button."""
    data = data_source(planned)
    is_going = data is not None and going_since(data) is not None
    if any_going() and not is_going:  # after a reload the page no longer knows its records
        st.info("A run on other records than these is in progress.")
    if data is None:
        return
    form = ReleaseForm(planned, data)
    unknown_values = unknown_value_input(form)
    person_rule = person_rule_input(form)
    st.subheader("Output and cost")
    output = output_folder(form)
    escape_formulas = escape_formulas_input(planned)
    left, right = st.columns(2)
    with left:
        ledger = ledger_input(form)
        account = None if ledger is None else account_of(form, ledger)
    with right:
        limit = limit_input(form, account)
        paid = account is not None and is_paid(planned, output, account)
        if account is not None and not paid:
            record_limit = None if limit is None else limit / planned.budget.records_factor
            form.attempt(lambda: check_limit(account, planned, record_limit))
    if ledger is not None and account is not None:
        account_view(form, ledger, account, limit, paid)
        if not is_going:
            unfinished_runs(account, ledger)
    if is_going:
        run_elsewhere(data, account)
    unknown_value_caption(planned.domain, unknown_values)
    show_messages(HERE)
    label = f"Run the release: spend {rho_text(planned.rho, 4)}"
    if paid:
        label = "Run the release again: nothing further is spent"
    if output is None or ledger is None or account is None or is_going or not form.is_complete:
        st.button(label, type="primary", disabled=True)
        return
    inputs = ReleaseInputs(
        plan=planned,
        scenario=current(),
        data=data,
        output=output,
        unknown_values=unknown_values,
        person_rule=person_rule,
        ledger=ledger,
        limit=limit,
        account=account,
        escape_formulas=escape_formulas,
    )
    checked = inputs_after_dry_run(inputs)
    if checked is None:
        st.button(label, type="primary", disabled=True)
    else:
        st.button(label, type="primary", on_click=ask)
        confirmation(checked, start, paid=paid)


explained_title("Release")
task = project_task()
if task is not None and task.is_going:
    release_in_progress(task)
elif task is not None and task.result is not None:
    finished_release(task.result, task)
else:
    is_finishing = finishing()
    if task is not None and RELEASE_TASK in st.session_state:
        st.error(escaped(f"{task.error} {task.charge}"))
    planned = None if is_finishing else chosen_plan()
    last_release()
    if isinstance(planned, Plan):
        export_section(planned, current())
    st.subheader("Run the release")
    st.markdown(
        "The plan is run on the records **once**: they are counted, noise is added, and noisy "
        "figures with their intervals are written to a new folder. The cost is entered in a "
        "ledger first. The records stay where they are."
    )
    if planned is not None:
        contents = planned.contents
        if isinstance(planned, Plan):
            contents += f" with {describe_count(sum(planned.workload.exact_cells.tolist()))} cells"
        st.markdown(f"The plan: {contents}, {rho_text(planned.rho, 4)} for {planned.budget.unit}.")
        set_up(planned)
