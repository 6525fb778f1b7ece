"""The doors of the Home page: examples, a codebook of one's own, a saved project."""

import base64
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
from rpexplore.common.text import plural
from rpexplore.domain.domain import Domain
from rpexplore.errors import RpexploreError
from rpexplore.scenarios.autosave import SavedProject
from rpexplore.scenarios.examples import EXAMPLES, Example
from rpexplore.scenarios.project import Project
from rpexplore.scenarios.scenario import Scenario

# ---- The doors of the Home page: an example, a codebook of one's own, a saved project.


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
        from pages.components.codebook.files import FILE  # only now: it needs pandas

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


# ---- The gallery of examples on the Home page, each with a small picture.


# What the tables of each example are about, by its key: SVG of 100 × 48.
PICTURES = {
    "household": """<g fill="#3c76c3" opacity=".55"><path d="M2 24h18v24H2zM26 8h18v40H26z"/>
<path d="M50 16h18v32H50zM74 30h18v18H74z"/></g>""",
    "redistricting": """<path d="M2 2h92v44H2zM48 2v44M48 24h46M71 24v22" fill="none"
stroke="#3c76c3" stroke-width="2.5"/>""",
    "labour-force": """<path d="M2 42L28 26L52 32L94 6" fill="none" stroke="#3c76c3"
stroke-width="3"/><path d="M2 14h92" stroke="#3c76c3" stroke-dasharray="5 5"/>""",
    "hospital-stays": """<g fill="#3c76c3" opacity=".55"><circle cx="12" cy="34" r="9"/>
<circle cx="41" cy="30" r="14"/><circle cx="76" cy="26" r="19"/></g>""",
}


def gallery() -> None:
    """Every example: what it is, what it answers, and a button that opens it."""
    st.subheader("Examples")
    st.caption("Each opens afresh; earlier work is kept under “A saved project”.")
    for column, example in zip(st.columns(len(EXAMPLES)), EXAMPLES, strict=True):
        with column.container(border=True, height="stretch", gap="xsmall"):
            _picture(PICTURES[example.key])
            st.button(
                example.title,
                key=f"example {example.key}",
                width="stretch",
                on_click=open_example,
                args=(example,),
            )
            st.markdown(escaped(example.question))
            st.caption(escaped(example.summary))


def _picture(drawing: str) -> None:
    """An ornament: it has no text, and no button to see it larger as Streamlit's images have."""
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 100 48">{drawing}</svg>'
    data = base64.b64encode(svg.encode()).decode()
    st.html(f'<img alt="" width="100" height="48" src="data:image/svg+xml;base64,{data}">')
