"""The Release page before and after the button: the dataset's account, progress, noisy tables."""

from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

import streamlit as st

from pages._any_range import any_range
from pages._exhibit import MOST_ROWS
from pages._run import Run, going_since
from pages._session import escaped
from pages._task import follow
from rpexplore.analysis.asking_words import margin_in_words
from rpexplore.errors import RpexploreError
from rpexplore.ledger import Account
from rpexplore.plan import Plan
from rpexplore.release import BOOKED, Release
from rpexplore.words import plural, rounded


def account_line(planned: Plan, account: Account, typed_cap: Fraction | None) -> None:
    """What the dataset has cost so far, what it would have after the run, and its cap."""
    factor = planned.budget.records_factor
    before = account.spent_record_rho * factor
    noted = account.cap_record_rho
    cap = typed_cap if noted is None else noted * factor
    columns = [column.container(gap="xxsmall") for column in st.columns(3)]
    columns[0].metric("Spent on these records", f"ρ = {rounded(before, 4, 'up')}")
    columns[0].caption(f"{plural(len(account.runs), 'run')} in the ledger")
    columns[1].metric("After this run", f"ρ = {rounded(before + planned.rho, 4, 'up')}")
    columns[2].metric("Cap", "none" if cap is None else f"ρ = {rounded(cap, 4, 'down')}")


def unfinished_runs(account: Account) -> None:
    """A note on runs that were booked and never came to an end."""
    for run in account.runs:
        if run.state != "finished":
            st.warning(
                f"A run on these records was started at {_minute(run.started)} and did not finish; "
                "it stays charged. (Unless another program is still at it.)"
            )


@st.fragment(run_every=1)
def elsewhere_in_progress(data: Path, account: Account | None) -> None:
    """Word of a run that this session did not begin, or began before the page was loaded again."""
    since = going_since(data)
    if since is None:
        st.rerun()
    runs = [] if account is None else [run for run in account.runs if run.state != "finished"]
    folder = escaped(runs[-1].output) if runs else "the folder it was given"
    st.info(
        f"A run on these records is in progress, since {_minute(since.isoformat())}. Its tables "
        f"will be in {folder}; what it costs is entered in the ledger."
    )


def _minute(moment: str) -> str:
    """An ISO moment as "2026-11-21 17:09 UTC"."""
    return f"{datetime.fromisoformat(moment).astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def run_in_progress(run: Run) -> None:
    """A bar that follows the run; the page itself is drawn again when it has ended."""
    follow(run.task, "release", run.cost_of_cancelling, BOOKED)
    st.caption("The run goes on if you look at other pages.")


def another() -> None:
    """Back to the form, with a new folder."""
    st.session_state.pop("run", None)
    st.session_state.pop("output", None)


def failed_run(run: Run) -> None:
    """Why there are no tables, and what was charged all the same."""
    st.error(escaped(f"{run.task.error} {run.charge}"))


def finished_run(run: Run) -> None:
    """The outcome: tables to look at."""
    done = run.release
    assert done is not None
    st.success(f"Finished: {plural(len(done.plan.workload), 'noisy table')}. {run.charge}")
    st.markdown("The files are in")
    st.code(str(done.folder.absolute()), language=None)
    show_table(done, run.job.counted)
    st.button("Prepare another release", on_click=another)


def show_table(done: Release, counted: str) -> None:
    """One table of the release, chosen by its attributes."""
    workload = done.plan.workload
    st.subheader("The noisy tables")
    names = workload.domain.names
    if "looked at" not in st.session_state:
        # The first of the largest tables' kind is telling enough to start with.
        st.session_state["looked at"] = list(workload.tables[len(workload) // 2])
    chosen = st.multiselect("Attributes of the table", names, key="looked at")
    try:
        frame = done.table(chosen)
    except RpexploreError:
        st.info("There is no released table with exactly these attributes.")
        return
    st.markdown(
        f"A count is within {escaped(margin_in_words(done.plan, chosen, counted))} of the true "
        "one, 95 % of the time. Counts are unbiased, not rounded, and may be negative."
    )
    st.dataframe(
        frame,
        hide_index=True,
        lazy=len(frame) > MOST_ROWS,
        alt="Noisy table",
        column_config={
            "value": st.column_config.NumberColumn("Noisy count", format="%.1f"),
            "standard_error": st.column_config.NumberColumn("Standard error σ", format="%.3g"),
            "lower_95": st.column_config.NumberColumn("95 % interval from", format="%.1f"),
            "upper_95": st.column_config.NumberColumn("to", format="%.1f"),
        },
    )
    any_range(done, tuple(chosen), counted)
