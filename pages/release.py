"""Release: run a plan of tables, or of queries, on records, once, and look at what it gives."""

import streamlit as st

from pages.components.release.dry_run import job_after_dry_run
from pages.components.release.export import export_section
from pages.components.release.ledger import ledger_view
from pages.components.release.person_rule import person_rule
from pages.components.release.plan_choice import chosen_plan
from pages.components.release.progress import (
    account_line,
    elsewhere_in_progress,
    failed_run,
    finished_run,
    run_in_progress,
    unfinished_runs,
)
from pages.components.release.records import data_source, sample_records
from pages.components.release.resume import finishing
from pages.components.release.run import BackgroundRelease, Job, any_going, going_since
from pages.components.release.unknown_values import other_categories, others_line
from pages.components.shared.paths import cap_input, ledger_of, output_folder
from pages.components.shared.session import current, escaped, say, show_messages
from rpexplore.common.formatting import describe_count, rounded
from rpexplore.errors import RpexploreError
from rpexplore.planning.plan import Plan
from rpexplore.planning.release_plan import ReleasePlan


def start(job: Job) -> None:
    """Begin the run, unless one was begun already: a second click comes here too."""
    held: BackgroundRelease | None = st.session_state.get("run")
    if held is not None and not held.failed:
        return
    try:
        now = job.ledger.account(job.data)
    except RpexploreError as error:
        say("release", "error", str(error))
        return
    if now != job.account:  # another tab, or the command line, has spent something meanwhile
        say(
            "release",
            "warning",
            "The ledger has changed since this page was drawn; look at the figures and press "
            "again.",
        )
    elif (begun := BackgroundRelease.begun(job)) is not None:
        st.session_state["run"] = begun


def set_up(planned: ReleasePlan) -> None:
    """Everything to be decided before a run, and the button."""
    data = data_source(planned)
    going = None if data is None else going_since(data)
    if going is None and any_going():  # after a reload the page no longer knows its records
        st.info("A run on other records than these is in progress.")
    if data is None:
        return
    unknown_values = other_categories(planned)
    persons_are_good, persons = person_rule(planned, data)
    st.subheader("Where to write, and what it costs")
    output = output_folder(planned, data)
    left, right = st.columns(2)
    with left:
        booked = ledger_of(data, sample=data == sample_records())
    with right:
        cap_is_good, cap = cap_input(planned)
        if booked is not None and cap_is_good:
            try:
                record_cap = None if cap is None else cap / planned.budget.records_factor
                booked[0].check(data, planned, planned.record_rho, record_cap)
            except RpexploreError as error:
                cap_is_good = False
                st.error(escaped(str(error)))
    if booked is not None:
        account_line(planned, booked[1], cap)
        ledger_view(planned, *booked)
        if going is None:
            unfinished_runs(booked[1], booked[0])
    if going is not None:
        elsewhere_in_progress(data, None if booked is None else booked[1])
    if unknown_values is None:
        st.info("Choose the category for other values above to go on.")
    else:
        others_line(planned, unknown_values)
    show_messages("release")
    label = f"Run the release: spend ρ = {rounded(planned.rho, 4, 'up')}"
    is_good = cap_is_good and persons_are_good
    if (
        (output is None or booked is None or unknown_values is None)
        or not is_good
        or going is not None
    ):
        st.button(label, type="primary", disabled=True)
        return
    record_noun = current().record_noun
    job = Job(
        planned, record_noun, data, output, unknown_values, persons, booked[0], cap, booked[1]
    )
    job = job_after_dry_run(job)
    st.button(label, type="primary", on_click=start, args=(job,))


def _contents(planned: ReleasePlan) -> str:
    """What a release holds: "7 noisy tables with 62 cells", "3 noisy answers"."""
    if not isinstance(planned, Plan):
        return planned.contents
    cells = describe_count(sum(planned.workload.exact_cells.tolist()))
    return f"{planned.contents} with {cells} cells"


st.title("Export and release")
run: BackgroundRelease | None = st.session_state.get("run")
if run is not None and run.is_going:
    run_in_progress(run)
elif run is not None and run.release is not None:
    finished_run(run)
else:
    goes_on = finishing()
    if "run" in st.session_state and run is not None:
        failed_run(run)
    planned = None if goes_on else chosen_plan()
    if isinstance(planned, Plan):
        export_section(planned)
    st.subheader("Run the release")
    st.markdown(
        "The plan is run on the records **once**: they are counted, noise is added, and noisy "
        "figures with their intervals are written to a new folder. What it costs is entered in a "
        "ledger first. The records stay where they are."
    )
    if planned is not None:
        st.markdown(
            f"The plan: {_contents(planned)}, ρ = {rounded(planned.rho, 4, 'up')} for "
            f"{planned.budget.unit}."
        )
        set_up(planned)
