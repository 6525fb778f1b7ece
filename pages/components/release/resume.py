"""Finishing a run that was stopped after its noise had been drawn: it costs nothing more."""

import streamlit as st

from pages.components.results.source import open_folder
from pages.components.shared.background import Task, has_ended
from pages.components.shared.session import escaped
from rpexplore.common.concurrency import Progress
from rpexplore.releases.ledger import Ledger, LedgerEntry
from rpexplore.releases.plan_run import FinishedRelease
from rpexplore.releases.release import resume
from rpexplore.releases.table_folder import Release

TASK = "finishing"


def finish_button(entry: LedgerEntry, ledger: Ledger) -> None:
    """A button to finish the run of a ledger's entry."""
    st.button(
        "Finish it without further cost",
        key=f"finish {entry.output}",
        on_click=_begin,
        args=(entry.output, ledger),
    )


def finishing() -> bool:
    """How far the finishing of a run is, or what came of it; whether it goes on."""
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
    st.success(
        escaped(f"Finished: {task.result.plan.contents}. The files are in {task.result.folder}.")
    )
    if isinstance(task.result, Release):
        open_folder(task.result.folder)
        st.page_link("pages/results.py", label="Look at them")
    return False


def _begin(output: str, ledger: Ledger) -> None:
    def work(on_progress: Progress) -> FinishedRelease:
        return resume(output, ledger=ledger.path, on_progress=on_progress)

    st.session_state[TASK] = Task(work, keep_on=True).start()
