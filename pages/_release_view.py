"""The Release page before and after the button: the dataset's account, progress, noisy tables."""

from pathlib import Path

import streamlit as st

from pages._run import Run
from pages._session import current, escaped
from rpexplore.errors import RpexploreError
from rpexplore.ledger import Ledger
from rpexplore.plan import Plan
from rpexplore.release import Release
from rpexplore.words import plural, rounded


def account_line(planned: Plan, data: Path, ledger: str | None) -> bool:
    """What the dataset has cost so far and would after the run; whether it may be run."""
    try:
        account = (Ledger(ledger) if ledger else Ledger.beside(data)).account(data)
    except RpexploreError as error:
        st.error(escaped(str(error)))
        return False
    factor = planned.budget.records_factor
    before = account.spent_record_rho * factor
    left = account.left_record_rho
    columns = [column.container(gap="xxsmall") for column in st.columns(3)]
    columns[0].metric("Spent on these records", f"ρ = {rounded(before, 4, 'up')}")
    columns[0].caption(f"{plural(len(account.runs), 'run')} in the ledger")
    columns[1].metric("After this run", f"ρ = {rounded(before + planned.rho, 4, 'up')}")
    columns[2].metric(
        "Cap",
        "none"
        if account.cap_record_rho is None
        else f"ρ = {rounded(account.cap_record_rho * factor, 4, 'down')}",
    )
    if left is not None and planned.record_rho > left:
        st.error(
            "This run would go beyond the cap; plan with a smaller budget, or have the cap raised."
        )
        return False
    return True


@st.fragment(run_every=0.5)
def run_in_progress() -> None:
    """A bar that follows the run; the page itself is drawn again when it has ended."""
    run: Run = st.session_state["run"]
    st.progress(run.share, text=f"{run.doing} …")
    st.caption("The run goes on if you look at other pages.")
    if not run.is_going:
        st.rerun()


def another() -> None:
    """Back to the form, with a new folder."""
    st.session_state.pop("run", None)
    st.session_state.pop("output", None)


def finished_run(run: Run) -> None:
    """The outcome: tables to look at, or why there are none."""
    if run.release is None:
        st.error(escaped(run.error))
        st.button("Back", on_click=another)
        return
    done = run.release
    st.success(f"Finished: {plural(len(done.plan.workload), 'noisy table')}.")
    st.markdown("The files are in")
    st.code(str(done.folder.absolute()), language=None)
    show_table(done)
    st.button("Prepare another release", on_click=another)


def show_table(done: Release) -> None:
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
    margin = rounded(done.plan.margin_of_error(chosen))
    st.markdown(
        f"A count is within ±{margin} {escaped(current().counted)} of the true one, 95 % of the "
        "time. Counts are unbiased, not rounded, and may be negative."
    )
    st.dataframe(
        frame,
        hide_index=True,
        lazy=len(frame) > 2000,
        alt="Noisy table",
        column_config={
            "value": st.column_config.NumberColumn("Noisy count", format="%.1f"),
            "standard_error": st.column_config.NumberColumn("Standard error σ", format="%.3g"),
            "lower_95": st.column_config.NumberColumn("95 % interval from", format="%.1f"),
            "upper_95": st.column_config.NumberColumn("to", format="%.1f"),
        },
    )
