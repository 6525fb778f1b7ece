"""The Home page: a picture to try, examples, one's own data, and all saved projects."""

import base64
from collections.abc import Callable
from datetime import datetime
from zoneinfo import ZoneInfo

import streamlit as st

from pages.components.shared import autosave
from pages.components.shared.autosave import BLANK, autosaves, open_key, unsaved_project
from pages.components.shared.files import upload
from pages.components.shared.session import (
    attempt,
    change_names,
    escaped,
    open_beside,
    open_new,
    open_saved,
    project,
    say,
    show_messages,
)
from rpexplore.analysis.first_look import first_look
from rpexplore.common.text import plural
from rpexplore.errors import RpexploreError
from rpexplore.figures.first_look import KEY, first_look_table
from rpexplore.scenarios.autosave import SavedProject
from rpexplore.scenarios.examples import COUNTRY_KEY, COUNTRY_QUESTION, EXAMPLES, SUMMARY, SURVEY
from rpexplore.serving.sessions import plans_only

CODEBOOK = "pages/codebook.py"
BUDGETS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)


def enter_opened() -> None:
    """Go to the page of what a door has opened, if one has."""
    if page := st.session_state.pop(OPENED, ""):
        st.switch_page(page)


def open_example(key: str) -> None:
    """Open an example on the Plan page."""
    project = unsaved_project(key)
    assert project is not None
    open_beside(project, key)
    st.session_state[OPENED] = PLAN


@st.fragment
def picture() -> None:
    """A table of an example, whose cells become good enough as the budget grows."""
    epsilon = st.select_slider(
        "Privacy budget ε",
        BUDGETS,
        1.0,
        format_func=lambda value: f"{value:g}",
        key="first look",
        help="Smaller is more private, and noisier.",
    )
    shown = first_look(epsilon)
    # Wider than a narrow screen, and to be moved by keyboard there.
    st.html(
        '<div class="first-look-frame" role="region" tabindex="0" aria-label="A table at this '
        f'budget">{first_look_table(shown)}</div>'
    )
    st.caption(escaped(f"{shown.sentence} {KEY}"))


def doors() -> None:
    """Two ways to begin."""
    with st.container(border=True):
        st.subheader("Try an example")
        st.markdown(
            "A finished plan to look at and to change. "
            + ("No records come here." if plans_only() else "Nothing leaves this computer.")
        )
        st.button(
            "Open the household survey",
            type="primary",
            on_click=open_example,
            args=(EXAMPLES[0].key,),
        )
    with st.container(border=True):
        st.subheader("My own data")
        if plans_only():
            st.markdown("A codebook, uploaded or typed. Records are neither needed nor taken.")
        else:
            st.markdown("A codebook, or the column names of a data file. No records are needed.")
        st.button("Start with a codebook", on_click=_begin)


def _begin() -> None:
    blank = unsaved_project(BLANK)
    assert blank is not None
    open_new(blank, BLANK)
    from pages.components.codebook.files import FILE  # only now: it needs pandas

    st.session_state.update({"codebook source": FILE, OPENED: CODEBOOK})


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
    COUNTRY_KEY: """<g fill="#3c76c3" opacity=".55" stroke="#fff" stroke-width="1.5">
<path d="M6 16L24 4l16 8-4 16-18 6z"/><path d="M40 12l22-9 14 10-8 17-32-2z"/>
<path d="M18 34l18-6 10 18-22 1z"/><path d="M36 28l32 2 22-6 3 14-20 8-27 0z"/></g>""",
}


def gallery() -> None:
    """Every example: what it is, what it answers, and a button that opens it."""
    st.subheader("Examples")
    st.caption("Each opens afresh, and becomes a project of yours with your first change.")
    cards = [(one.key, one.title, one.question, one.summary) for one in EXAMPLES]
    cards.append((COUNTRY_KEY, SURVEY, COUNTRY_QUESTION, SUMMARY))
    for column, (key, title, question, summary) in zip(st.columns(len(cards)), cards, strict=True):
        with column.container(border=True, height="stretch", gap="xsmall"):
            _picture(PICTURES[key])
            st.button(
                title,
                key=f"example {key}",
                width="stretch",
                on_click=open_example,
                args=(key,),
            )
            st.markdown(escaped(question))
            st.caption(escaped(summary))


def _picture(drawing: str) -> None:
    """An ornament: it has no text, and no button to see it larger as Streamlit's images have."""
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 100 48">{drawing}</svg>'
    data = base64.b64encode(svg.encode()).decode()
    st.html(f'<img alt="" width="100" height="48" src="data:image/svg+xml;base64,{data}">')


# ---- All saved projects on the Home page: found, opened, renamed, copied, deleted, imported.


HERE = "projects"
OPENED = "opened on home"  # the page to go to, once
PLAN = "pages/plan.py"
MOST_SHOWN, MANY = 10, 5


def projects() -> None:
    """A row a project, the one saved last first, and a box for the file of one."""
    saved = autosaves().projects()
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.subheader("Your projects" if plans_only() else "Projects on this computer")
        with st.popover("Import a project file"):
            upload(
                "A project file saved by this app", ["json", "zip"], "project file on home", _load
            )
    show_messages(HERE)
    _undo()
    if not saved:
        st.caption("None yet. An example or a codebook becomes one with your first change.")
        return
    if len(saved) > MANY:
        wanted = st.text_input("Search projects", key="search projects", placeholder="name")
        saved = {
            key: one
            for key, one in saved.items()
            if wanted.strip().lower() in " ".join((one.project.name, *one.project.names)).lower()
        }
    with st.container(gap=None, key="projects"):
        for key in list(saved)[:MOST_SHOWN]:
            _row(key, saved[key])
    if len(saved) > MOST_SHOWN:
        st.caption(f"{plural(len(saved) - MOST_SHOWN, 'further project')}: search by name.")


def _row(key: str, saved: SavedProject) -> None:
    name = saved.project.name
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.button(
            escaped(name),
            key=f"open project {key}",
            type="tertiary",
            icon=":material/folder_open:",
            on_click=_open,
            args=(key,),
        )
        scenarios = plural(len(saved.project.scenarios), "scenario")
        st.caption(escaped(f"{_last_step(key, saved)} · {scenarios} · {_local(saved.saved)}"))
        with st.popover("More", type="tertiary", key=f"more {key}"):
            with st.form(f"rename {key}", border=False):
                typed = st.text_input("Name", name, max_chars=60, key=f"name {key} {name}")
                if st.form_submit_button("Rename"):
                    attempt(lambda: _rename(key, typed.strip()))
            for label, do in (
                ("Duplicate", autosaves().duplicate),
                ("Delete", autosave.delete_saved),
            ):
                st.button(label, key=f"{label} {key}", on_click=_doing(do), args=(key,))


def _doing(do: Callable[[str], None]) -> Callable[[str], None]:
    def done(key: str) -> None:
        try:
            do(key)
        except (RpexploreError, OSError) as error:
            say(HERE, "error", f"{error} Nothing was changed.")

    return done


def _open(key: str) -> None:
    open_saved(key)
    st.session_state[OPENED] = PLAN


def _rename(key: str, name: str) -> None:
    if key == open_key():
        change_names(HERE, lambda: project().with_survey(name))
    else:
        autosaves().rename(key, name)
    st.rerun()


def _load(content: bytes, name: str) -> None:
    try:
        open_new(autosave.project_of_upload(content, name))
    except RpexploreError as error:
        say(HERE, "error", f"{error} Nothing was opened.")
        return
    st.session_state[OPENED] = PLAN


def _undo() -> None:
    name = autosave.deleted()
    if name is not None:
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.markdown(f"“{escaped(name)}” was deleted.", width="content")
            st.button("Undo", key="undelete", on_click=autosave.undelete)


def _last_step(key: str, saved: SavedProject) -> str:
    release = None if plans_only() else autosaves().last_release(key)
    if release is not None:
        return f"released: {release.contents}"
    scenario = saved.project.current
    if scenario.kinds:
        return "planned"
    return "codebook" if len(scenario.domain) else "begun"


def _local(saved: datetime) -> str:
    """A time as the clock beside the browser shows it."""
    zone = st.context.timezone
    if isinstance(zone, str) and zone:  # under the test runner it is no text
        return f"{saved.astimezone(ZoneInfo(zone)):%d %b %Y, %H:%M}"
    return f"{saved:%d %b %Y, %H:%M} UTC"
