"""Finishing a run that was stopped after its noise had been drawn: it costs nothing more."""

import streamlit as st

from pages._opened import open_folder
from pages._session import escaped
from pages._task import Note, Task, has_ended
from rpexplore.ledger import Ledger
from rpexplore.ledger import Run as Entry
from rpexplore.release import Release, resume


def finish_button(entry: Entry, ledger: Ledger) -> None:
    """A button to finish the run of a ledger's entry, and how that goes."""
    key = f"finishing {entry.output}"
    st.button(
        "Finish it without further cost",
        key=f"button {key}",
        on_click=_begin,
        args=(key, entry.output, ledger),
    )
    task: Task[Release] | None = st.session_state.get(key)
    if task is None or not has_ended(task, key, "Finishing"):
        return
    del st.session_state[key]
    if task.result is None:
        st.error(escaped(task.error))
        return
    open_folder(task.result.folder)
    st.success(escaped(f"Finished: the tables are in {task.result.folder}."))
    st.page_link("pages/released.py", label="Look at them")


def _begin(key: str, output: str, ledger: Ledger) -> None:
    def work(note: Note) -> Release:
        return resume(output, ledger=ledger.path, progress=lambda doing, share: note(share, doing))

    st.session_state[key] = Task(work, keep_on=True).start()
