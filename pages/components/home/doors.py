"""The doors of the Home page: an example, a codebook of one's own, a saved project."""

from collections.abc import Callable
from typing import Any

import streamlit as st

from pages.components.shared.autosave import project_of_upload, recent_projects
from pages.components.shared.files import upload
from pages.components.shared.serving import plans_only
from pages.components.shared.session import (
    escaped,
    open_beside,
    open_new,
    open_saved,
    say,
    show_messages,
)
from rpexplore.common.formatting import plural
from rpexplore.domain.domain import Domain
from rpexplore.errors import RpexploreError
from rpexplore.scenarios.autosave import SavedProject
from rpexplore.scenarios.examples import EXAMPLES, Example
from rpexplore.scenarios.project import Project
from rpexplore.scenarios.scenario import Scenario

HERE = "home"
OPENED = "opened on home"  # the page to go to, once
MOST_RECENT = 4
CODEBOOK, PLAN = "pages/codebook.py", "pages/plan.py"


def enter_opened() -> None:
    """Go to the page of what a door has opened, if one has."""
    if page := st.session_state.pop(OPENED, ""):
        st.switch_page(page)


def open_example(example: Example) -> None:
    """Open an example on the Plan page."""
    open_beside(example.project())
    st.session_state[OPENED] = PLAN


def doors() -> None:
    """Three ways to begin, side by side."""
    show_messages(HERE)
    contents: tuple[Callable[[], Any], ...] = (_example, _own_data, _saved)
    for column, content in zip(st.columns(len(contents)), contents, strict=True):
        with column.container(border=True, height="stretch"):
            content()


def _example() -> None:
    st.subheader("An example")
    st.markdown(
        "A finished plan to look at and to change. It opens afresh; earlier work is kept. "
        + ("No records come here." if plans_only() else "Nothing leaves this computer.")
    )
    st.button(
        "Open the household survey", type="primary", on_click=open_example, args=(EXAMPLES[0],)
    )


def _own_data() -> None:
    def begin() -> None:
        open_new(Project((Scenario(Domain(())),)))
        from pages.components.codebook.sources import FILE  # only now: it needs pandas

        st.session_state.update({"codebook source": FILE, OPENED: CODEBOOK})

    st.subheader("My own data")
    if plans_only():
        st.markdown("A codebook, uploaded or typed. Records are neither needed nor taken.")
    else:
        st.markdown("A codebook, or the column names of a data file. No records are needed.")
    st.button("Start with a codebook", on_click=begin)


def _saved() -> None:
    def load(content: bytes, name: str) -> None:
        try:
            open_new(project_of_upload(content, name))
        except RpexploreError as error:
            say(HERE, "error", f"{error} Nothing was opened.")
            return
        st.session_state[OPENED] = PLAN

    def carry_on(key: str) -> None:
        open_saved(key)
        st.session_state[OPENED] = PLAN

    st.subheader("A saved project")
    recent = recent_projects(MOST_RECENT)
    if not recent:
        st.markdown("Saved here as a file, or sent by a colleague.")
    with st.container(gap=None, key="recent"):
        for key, saved in recent.items():
            st.button(
                escaped(_described(saved)),
                key=f"recent {key}",
                type="tertiary",
                icon=":material/history:",
                on_click=carry_on,
                args=(key,),
            )
    with st.popover("Open a project file"):
        upload("A project file saved by this app", ["json", "zip"], "project file on home", load)


def _described(saved: SavedProject) -> str:
    """Its survey (else its open scenario), how many scenarios there are, and when it was saved."""
    project = saved.project
    name = project.current.survey or project.current.name
    scenarios = plural(len(project.scenarios), "scenario")
    return f"{name} · {scenarios} · {saved.saved:%Y-%m-%d %H:%M} UTC"
