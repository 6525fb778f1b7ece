"""Release: run a plan of tables, or of queries, on records, once, and look at the result."""

import streamlit as st

from pages.components.queries.solutions import chosen_query_plan
from pages.components.release.destinations import ledger_of, limit_input, output_folder
from pages.components.release.export import export_section
from pages.components.release.ledger import (
    account_metrics,
    finishing,
    is_paid,
    ledger_view,
    unfinished_runs,
)
from pages.components.release.progress import (
    finished_run,
    job_after_dry_run,
    run_elsewhere,
    run_in_progress,
)
from pages.components.release.records import (
    data_source,
    person_rule_input,
    sample_records,
    unknown_value_caption,
    unknown_value_input,
)
from pages.components.release.run import BackgroundRelease, Job, any_going, going_since
from pages.components.shared.session import current, escaped, say, show_messages
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


def start(job: Job) -> None:
    """Begin the run, unless one was begun already: a second click comes here too."""
    held: BackgroundRelease | None = st.session_state.get("run")
    if held is not None and not held.failed:
        return
    try:
        account = job.ledger.account(job.data)
    except RpexploreError as error:
        say(HERE, "error", str(error))
        return
    if account != job.account:  # another tab, or the command line, has spent something meanwhile
        say(
            HERE,
            "warning",
            "The ledger has changed since this page was drawn; look at the figures and press "
            "again.",
        )
        return
    run = BackgroundRelease.begin(job)
    if run is not None:
        st.session_state["run"] = run


def set_up(planned: ReleasePlan) -> None:
    """Everything to be decided before a run, and the button."""
    data = data_source(planned)
    is_going = data is not None and going_since(data) is not None
    if any_going() and not is_going:  # after a reload the page no longer knows its records
        st.info("A run on other records than these is in progress.")
    if data is None:
        return
    unknown_values = unknown_value_input(planned.domain)
    persons_are_good, person_rule = person_rule_input(planned, data)
    st.subheader("Output and cost")
    output = output_folder(planned, data)
    escape_formulas = escape_formulas_input(planned)
    left, right = st.columns(2)
    with left:
        booked = ledger_of(data, sample=data == sample_records())
    with right:
        limit_is_good, limit = limit_input()
        paid = booked is not None and is_paid(planned, output, booked[1])
        if booked is not None and limit_is_good and not paid:
            record_limit = None if limit is None else limit / planned.budget.records_factor
            try:
                check_limit(booked[1], planned, record_limit)
            except RpexploreError as error:
                limit_is_good = False
                st.error(escaped(str(error)))
    if booked is not None:
        ledger, account = booked
        account_metrics(planned, account, limit, paid)
        ledger_view(planned, ledger, account)
        if not is_going:
            unfinished_runs(account, ledger)
    if is_going:
        run_elsewhere(data, None if booked is None else booked[1])
    if unknown_values is None:
        st.info("Choose the category for out-of-codebook values above to go on.")
    else:
        unknown_value_caption(planned.domain, unknown_values)
    show_messages(HERE)
    label = f"Run the release: spend {rho_text(planned.rho, 4)}"
    if paid:
        label = "Run the release again: nothing further is spent"
    is_good = limit_is_good and persons_are_good and not is_going
    if output is None or booked is None or unknown_values is None or not is_good:
        st.button(label, type="primary", disabled=True)
        return
    job = Job(
        planned,
        current().record_noun,
        data,
        output,
        unknown_values,
        person_rule,
        booked[0],
        limit,
        booked[1],
        escape_formulas,
    )
    st.button(label, type="primary", on_click=start, args=(job_after_dry_run(job),))


st.title("Export and release")
run: BackgroundRelease | None = st.session_state.get("run")
if run is not None and run.is_going:
    run_in_progress(run)
elif run is not None and run.release is not None:
    finished_run(run)
else:
    is_finishing = finishing()
    if "run" in st.session_state and run is not None:
        st.error(escaped(f"{run.task.error} {run.charge}"))
    planned = None if is_finishing else chosen_plan()
    if isinstance(planned, Plan):
        export_section(planned)
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
