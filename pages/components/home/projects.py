"""All saved projects on the Home page: found, opened, renamed, copied, deleted, imported."""

from collections.abc import Callable
from datetime import datetime
from zoneinfo import ZoneInfo

import streamlit as st

from pages.components.shared import autosave
from pages.components.shared.autosave import autosaves, open_key
from pages.components.shared.files import upload
from pages.components.shared.session import (
    attempt,
    change_names,
    escaped,
    open_new,
    open_saved,
    project,
    say,
    show_messages,
)
from rpexplore.common.text import plural
from rpexplore.errors import RpexploreError
from rpexplore.scenarios.autosave import SavedProject
from rpexplore.serving.sessions import plans_only

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
            key: one for key, one in saved.items() if wanted.strip().lower() in _words(one).lower()
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


def _words(saved: SavedProject) -> str:
    """What a search looks in: the name of the project and those of its scenarios."""
    return " ".join((saved.project.name, *saved.project.names))


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
