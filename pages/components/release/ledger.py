"""What the ledger holds: what the records have cost, its runs, and finishing those that stopped."""

from datetime import UTC, datetime
from fractions import Fraction
from functools import partial
from pathlib import Path

import streamlit as st

from pages.components.results.source import open_folder
from pages.components.shared.background import Task, has_ended
from pages.components.shared.charts import listing
from pages.components.shared.session import attempt, escaped
from rpexplore.common.concurrency import Progress
from rpexplore.common.formatting import plural
from rpexplore.planning.release_plan import ReleasePlan
from rpexplore.privacy.conversions import rho_text
from rpexplore.releases.charged_run import booked_run
from rpexplore.releases.ledger import Account, Ledger
from rpexplore.releases.ledger_frames import datasets, runs
from rpexplore.releases.manifest import FinishedRelease
from rpexplore.releases.release import can_be_resumed, resume

RUN_COLUMNS = {
    "run": "Run",
    "started": "Started (UTC)",
    "rho": "Charged ρ",
    "state": "State",
    "plan": "Plan (SHA-256)",
    "output": "Folder",
}
DATASET_COLUMNS = {"dataset": "Records", "runs": "Runs", "rho": "Spent ρ", "limit": "Budget limit"}
TASK = "finishing"


def is_paid(planned: ReleasePlan, output: Path | None, account: Account) -> bool:
    """Whether this very run was booked and stopped before: again, it costs nothing further."""
    run = None if output is None else attempt(lambda: booked_run(output))
    return run is not None and run.plan_sha256 == planned.sha256 and run in account.entries


def account_metrics(
    planned: ReleasePlan, account: Account, typed_limit: Fraction | None, paid: bool
) -> None:
    """What the dataset has cost so far, what it would have after the run, and its budget limit.

    paid: whether the run is charged already
    """
    factor = planned.budget.records_factor
    before = account.spent_record_rho * factor
    noted = account.limit_record_rho
    limit = typed_limit if noted is None else noted * factor
    spent, after, limit_column = (column.container(gap="xxsmall") for column in st.columns(3))
    spent.metric("Spent on these records", rho_text(before, 4))
    spent.caption(f"{plural(len(account.entries), 'run')} in the ledger")
    further = 0 if paid else planned.rho
    after.metric("After this run", rho_text(before + further, 4))
    limit_column.metric("Budget limit", "none" if limit is None else rho_text(limit, 4, "down"))


def ledger_view(planned: ReleasePlan, ledger: Ledger, account: Account) -> None:
    """Every run on the records, and in a line what has been spent on others."""
    factor = planned.budget.records_factor
    with st.expander(f"Ledger: {plural(len(account.entries), 'run')} on these records"):
        if account.entries:
            listing(runs(account, factor), RUN_COLUMNS, "Runs on these records")
        st.caption(
            f"Each ρ is for {escaped(planned.budget.unit)}, which this plan protects. A run is "
            "entered before its noise is drawn, and stays charged whether or not it finished."
        )
        others = attempt(lambda: datasets(ledger, factor, without=account.dataset))
        if others is not None and len(others):
            st.markdown("Other records in this ledger")
            listing(others, DATASET_COLUMNS, "Other records in this ledger")


def unfinished_runs(account: Account, ledger: Ledger) -> None:
    """A note on runs that were booked and never came to an end, and the way to finish them."""
    for run in account.entries:
        if run.state == "finished":
            continue
        is_kept, state = can_be_resumed(run.output, run.id), "It stays charged."
        if is_kept:
            state = "It is charged, and its noise is drawn and kept."
        is_booked = not is_kept and attempt(partial(booked_run, Path(run.output))) == run
        if is_booked:
            state = (
                "It is charged; run the same plan into "
                f"{escaped(run.output)} again, which costs nothing further."
            )
        st.warning(
            f"A run on these records was started at {utc_minute(run.started)} and did not finish. "
            f"{state} (Unless another program is still at it.)"
        )
        if is_kept:
            st.button(
                "Finish it without further cost",
                key=f"finish {run.id}",
                on_click=_begin_finishing,
                args=(run.output, ledger),
            )
        if is_booked:
            st.button(
                "Take its folder",
                key=f"folder of {run.id}",
                on_click=_take_folder,
                args=(run.output,),
            )


def utc_minute(moment: str) -> str:
    """An ISO moment as "2026-11-21 17:09 UTC"."""
    return f"{datetime.fromisoformat(moment).astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def finishing() -> bool:
    """How far the finishing of a run is, or its result; whether it goes on."""
    task: Task[FinishedRelease] | None = st.session_state.get(TASK)
    if task is None:
        return False
    if not has_ended(task, TASK, "Finishing"):
        return True
    del st.session_state[TASK]
    if task.result is None:
        st.error(escaped(task.error))
        return False
    # The failure that it had is mended, and its folder is not for another run.
    st.session_state.pop("run", None)
    st.session_state["output"] = ""
    folder = task.result.folder
    st.success(escaped(f"Finished: {task.result.plan.contents}. The files are in {folder}."))
    open_folder(folder)
    st.page_link("pages/results.py", label="Look at them")
    return False


def _take_folder(output: str) -> None:
    st.session_state["output"] = output


def _begin_finishing(output: str, ledger: Ledger) -> None:
    def work(on_progress: Progress) -> FinishedRelease:
        return resume(output, ledger=ledger.path, on_progress=on_progress)

    st.session_state[TASK] = Task(work, kept_from=0).start()
