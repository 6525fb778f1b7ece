"""Tables being made of released ones: work that goes on while other pages are looked at."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from pages.components.results.source import open_folder
from pages.components.shared.background import Task, follow
from pages.components.shared.paths import path_of
from pages.components.shared.session import say
from rpexplore.common.concurrency import Progress

Work = Callable[[Progress], object]


@dataclass(frozen=True)
class Making:
    """A task, the folder that it writes, and the field that the folder was typed in."""

    task: Task[object]
    output: Path
    field: str


def begin(work: Work, output: Path, field: str) -> None:
    """Start making a folder, unless one is being made: a second click comes here too."""
    if st.session_state.get("making") is None:
        st.session_state["making"] = Making(Task(work).start(), output, field)


def finished_making() -> None:
    """Once a folder is made, have it opened; what went wrong is said at "results"."""
    making: Making | None = st.session_state.get("making")
    if making is None or making.task.is_going:
        return
    del st.session_state["making"]
    if making.task.error:
        say("results", "error", making.task.error)
        return
    st.session_state.pop(making.field, None)
    open_folder(making.output)
    say("results", "success", f"Finished: the tables are in {making.output}.")


def is_making() -> bool:
    """Whether a folder is being made; its progress is then on the page."""
    making: Making | None = st.session_state.get("making")
    if making is not None:
        follow(making.task, "making")
    return making is not None


def new_folder(label: str, field: str, usual: Path) -> Path | None:
    """A field for a folder that is not there yet; None, with the reason, if it cannot be."""
    if not st.session_state.get(field):
        st.session_state[field] = _free(usual)
    output = path_of(st.text_input(label, key=field, persist_state="session")).absolute()
    if os.path.lexists(output):
        st.error(
            "There is something in that place already, and nothing is ever overwritten; name "
            "another folder, or empty the field to get a new name."
        )
        return None
    return output


def _free(usual: Path) -> str:
    names = (f"{usual}-{n}" if n > 1 else str(usual) for n in range(1, 1000))
    return next(name for name in names if not os.path.lexists(name))
