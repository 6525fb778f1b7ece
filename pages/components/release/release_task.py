"""The release that a session has begun for its project."""

from contextlib import suppress

import streamlit as st

from pages.components.shared.autosave import autosaves, open_key
from rpexplore.serving.release_tasks import ReleaseTask

RELEASE_TASK = "release task"  # the session's own


def project_task() -> ReleaseTask | None:
    """The release that this session has begun for the open project."""
    task: ReleaseTask | None = st.session_state.get(RELEASE_TASK)
    return task if task is not None and task.project_key == open_key() else None


def give_up_release() -> None:
    """Part the release from the project, whose place another one takes; its folder stays."""
    task = project_task()
    if task is not None:
        task.project_key = ""
    with suppress(OSError):
        autosaves().forget_releases(open_key())
