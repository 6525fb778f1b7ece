"""What the ledger holds: what the records have cost, its runs, and finishing those that stopped."""

from datetime import UTC, datetime
from fractions import Fraction
from functools import partial
from pathlib import Path

import streamlit as st

from pages.components.release.form import ReleaseForm
from pages.components.release.release_task import RELEASE_TASK
from pages.components.results.source import open_folder
from pages.components.shared.background import has_ended
from pages.components.shared.charts import listing, metrics
from pages.components.shared.session import attempt, escaped
from rpexplore.common.processes import Progress
from rpexplore.common.text import plural
from rpexplore.planning.plan import Plan
from rpexplore.privacy.conversions import rho_text
from rpexplore.releases.charged_run import booked_run
from rpexplore.releases.finished_release import Release
from rpexplore.releases.ledger.account import Account
from rpexplore.releases.ledger.ledger import Ledger
from rpexplore.releases.ledger.overlaps import datasets, describe_earlier_run, runs
from rpexplore.releases.release import can_be_resumed, resume
from rpexplore.serving.tasks import Task

RUN_COLUMNS = {
    "number": "Run",
    "started": "Started (UTC)",
    "rho": "Charged ρ",
    "epsilon": "Charged ε",
    "state": "State",
    "plan": "Plan (SHA-256)",
    "output": "Folder",
}
DATASET_COLUMNS = {
    "dataset": "Records",
    "runs": "Runs",
    "rho": "Spent ρ",
    "epsilon": "Spent ε",
    "limit": "Budget limit",
}
TASK = "finishing"


def is_paid(planned: Plan, output: Path | None, account: Account) -> bool:
    """Whether this very run was booked and stopped before: again, it costs nothing further."""
    entry = None if output is None else attempt(lambda: booked_run(output))
    return entry is not None and entry.plan_sha256 == planned.sha256 and entry in account.entries


def account_view(
    form: ReleaseForm, ledger: Ledger, account: Account, typed_limit: Fraction | None, paid: bool
) -> None:
    """What the records have cost so far and what they would after the run, run by run as well.

    paid: whether the run is charged already
    """
    budget = form.planned.budget
    spent, noted = account.spent, account.limit_record_rho
    then = spent if paid else account.spent_after(form.planned)
    before, after = (one.record_rho * budget.records_factor for one in (spent, then))
    limit = typed_limit if noted is None else noted * budget.records_factor
    n_runs = plural(len(account.entries), "run")
    limit_text, limit_epsilon = "none", ""
    if limit is not None:  # rounded as what is spent, which else seems more where it is as much
        limit_text, limit_epsilon = rho_text(limit, 4), budget.epsilon_text(limit)
    metrics(
        ("Spent on these records", rho_text(before, 4), spent.epsilon_text(budget)),
        ("After this run", rho_text(after, 4), then.epsilon_text(budget)),
        ("Budget limit", limit_text, limit_epsilon),
    )
    earlier = "" if paid else describe_earlier_run(form.planned, account)
    if earlier:
        st.info(escaped(earlier))
    with st.expander(f"Ledger: {n_runs} on these records"):
        if account.entries:
            listing(runs(account, budget), RUN_COLUMNS, "Runs on these records")
        st.caption(
            f"Each ρ and ε is for {escaped(budget.unit)}, which this plan protects. The ε of all "
            f"runs after this one is proven {escaped(then.proof_for(budget))}. A run is entered "
            "before its noise is drawn, and stays charged whether or not it finished."
        )
        others = attempt(lambda: datasets(ledger, budget, without=account))
        if others is not None and len(others):
            st.markdown("Other records in this ledger")
            listing(others, DATASET_COLUMNS, "Other records in this ledger")


def unfinished_runs(account: Account, ledger: Ledger) -> None:
    """A note on runs that were booked and never came to an end, and the way to finish them."""
    for entry in account.entries:
        if entry.state == "finished":
            continue
        state, way_on = "It stays charged.", None
        if can_be_resumed(entry.output, entry.id):
            state = "It is charged, and its noise is drawn and kept."
            way_on = "Finish it without further cost", _begin_finishing, (entry.output, ledger)
        elif attempt(partial(booked_run, Path(entry.output))) == entry:
            state = (
                "It is charged; run the same plan into that folder again, which costs nothing "
                "further."
            )
            way_on = "Take its folder", st.session_state.update, ({"output": entry.output},)
        st.warning(
            f"A run on these records into {escaped(entry.output)} was started at "
            f"{utc_minute(entry.started)} and did not finish. {state} (Unless another program is "
            "still at it.)"
        )
        if way_on is not None:
            label, on_click, args = way_on
            st.button(label, key=f"{label} {entry.id}", on_click=on_click, args=args)


def utc_minute(moment: str) -> str:
    """An ISO moment as "2026-11-21 17:09 UTC"."""
    return f"{datetime.fromisoformat(moment).astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def finishing() -> bool:
    """How far the finishing of a run is, or its result; whether it goes on."""
    task: Task[Release] | None = st.session_state.get(TASK)
    if task is None:
        return False
    if not has_ended(task, TASK, "Finishing"):
        return True
    del st.session_state[TASK]
    if task.result is None:
        st.error(escaped(task.error))
        return False
    # The failure that it had is mended, and its folder is not for another run.
    st.session_state.pop(RELEASE_TASK, None)
    st.session_state["output"] = ""
    folder, contents = task.result.folder, task.result.plan.contents
    st.success(
        escaped(f"Finished: {contents}. Nothing further was charged. The files are in {folder}.")
    )
    open_folder(folder)
    st.page_link("pages/results.py", label="Look at them")
    return False


def _begin_finishing(output: str, ledger: Ledger) -> None:
    def work(on_progress: Progress) -> Release:
        return resume(output, ledger=ledger.name, on_progress=on_progress)

    st.session_state[TASK] = Task(work, kept_from=0).start()
