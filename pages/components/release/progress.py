"""The Release page before and after the button: the dataset's account, progress, the release."""

from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

import streamlit as st

from pages.components.release.resume import finish_button
from pages.components.release.run import BackgroundRelease, going_since
from pages.components.results.browser import browse
from pages.components.shared.background import follow
from pages.components.shared.charts import number, numbers
from pages.components.shared.session import escaped, kept
from rpexplore.common.formatting import plural, rounded
from rpexplore.data.source import Source
from rpexplore.planning.release_plan import ReleasePlan
from rpexplore.releases.ledger import Account, Ledger
from rpexplore.releases.query_folder import QueryRelease
from rpexplore.releases.release import can_be_resumed
from rpexplore.releases.table_folder import Release


def account_line(planned: ReleasePlan, account: Account, typed_cap: Fraction | None) -> None:
    """What the dataset has cost so far, what it would have after the run, and its budget limit."""
    factor = planned.budget.records_factor
    before = account.spent_record_rho * factor
    noted = account.cap_record_rho
    cap = typed_cap if noted is None else noted * factor
    columns = [column.container(gap="xxsmall") for column in st.columns(3)]
    columns[0].metric("Spent on these records", f"ρ = {rounded(before, 4, 'up')}")
    columns[0].caption(f"{plural(len(account.runs), 'run')} in the ledger")
    columns[1].metric("After this run", f"ρ = {rounded(before + planned.rho, 4, 'up')}")
    columns[2].metric("Budget limit", "none" if cap is None else f"ρ = {rounded(cap, 4, 'down')}")


def unfinished_runs(account: Account, ledger: Ledger) -> None:
    """A note on runs that were booked and never came to an end, and the way to finish them."""
    for run in account.runs:
        if run.state == "finished":
            continue
        begun = f"A run on these records was started at {_minute(run.started)} and did not finish; "
        if can_be_resumed(Path(run.output)):
            st.warning(
                f"{begun}it is charged, and its noise is drawn and kept. (Unless another program "
                "is still at it.)"
            )
            finish_button(run, ledger)
        else:
            st.warning(f"{begun}it stays charged. (Unless another program is still at it.)")


@st.fragment(run_every=1)
def elsewhere_in_progress(data: Source, account: Account | None) -> None:
    """Word of a run that this session did not begin, or began before the page was loaded again."""
    since = going_since(data)
    if since is None:
        st.rerun()
    runs = [] if account is None else [run for run in account.runs if run.state != "finished"]
    folder = escaped(runs[-1].output) if runs else "the folder it was given"
    st.info(
        f"A run on these records is in progress, since {_minute(since.isoformat())}. Its release "
        f"will be in {folder}; what it costs is entered in the ledger."
    )


def _minute(moment: str) -> str:
    """An ISO moment as "2026-11-21 17:09 UTC"."""
    return f"{datetime.fromisoformat(moment).astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def run_in_progress(run: BackgroundRelease) -> None:
    """A bar that follows the run; the page itself is drawn again when it has ended."""
    follow(run.task, "release", run.cost_of_cancelling, run.booked_share)
    st.caption("The run goes on if you look at other pages.")


def another() -> None:
    """Back to the form, with a new folder."""
    st.session_state.pop("run", None)
    st.session_state.pop("output", None)


def failed_run(run: BackgroundRelease) -> None:
    """Why nothing was released, and what was charged all the same."""
    st.error(escaped(f"{run.task.error} {run.charge}"))


def finished_run(run: BackgroundRelease) -> None:
    """The outcome: tables, or answers, to look at."""
    finished = run.release
    assert finished is not None
    st.success(f"Finished: {finished.plan.contents}. {run.charge}")
    st.markdown("The files are in")
    st.code(str(finished.folder.absolute()), language=None)
    if isinstance(finished, Release):
        st.subheader("The noisy tables")
        browse(finished, run.job.record_noun)
        st.page_link(
            "pages/results.py",
            label="Tables without negative counts, whole numbers, several releases combined",
            icon=":material/tune:",
        )
    else:
        st.subheader("The noisy answers")
        answers_table(finished)
    st.button("Prepare another release", on_click=another)


def answers_table(finished: QueryRelease) -> None:
    """The answers of a release of queries, each with its accuracy."""
    answers = kept("answers", (finished,), lambda: finished.answers)
    columns = {
        "name": st.column_config.TextColumn("Query", width="medium"),
        "answer": number("Answer", answers["answer"]),
        "standard_error": number("Standard error σ", answers["standard_error"]),
        "margin_95": number("95 % margin of error", answers["margin_95"]),
        "target": number("Target", answers["target"]),
        "met": "Target met",
    }
    numbers(answers, columns, "answers.csv", "Every query with its noisy answer and its accuracy")
