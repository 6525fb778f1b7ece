"""What the pages share: the session's project with its one open scenario, and messages to the user.

Streamlit forgets the widgets of a page that is not shown. So the scenario is the truth: before a
widget is drawn its value is set from there, and only a change by the user goes back.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import streamlit as st

from pages import all_pages
from pages.components.shared.autosave import save_project, take_saved
from rpexplore.domain.domain import Domain
from rpexplore.errors import RpexploreError
from rpexplore.scenarios.project import Project
from rpexplore.scenarios.scenario import Scenario

T = TypeVar("T")
MOST_STEPS_BACK = 100
EVERYWHERE = "everywhere"  # where messages go that belong to no part of a page


def project() -> Project:
    """The project of this session."""
    if "project" not in st.session_state:
        # The first visit to a new server went straight to this page: until Streamlit has seen
        # st.navigation, it takes pages/ for the whole app and runs a page without app.py.
        st.navigation(all_pages(), position="hidden")
        st.rerun()
    return st.session_state["project"]


def current() -> Scenario:
    """The open scenario of this session."""
    return project().current


def change(
    place: str, make: Callable[[], Scenario], otherwise: str = "Nothing was changed."
) -> bool:
    """Replace the open scenario; what is refused leaves the old one and a message at `place`."""
    return _replace(place, lambda: project().with_current(make()), otherwise)


def change_project(place: str, make: Callable[[], Project]) -> bool:
    """Replace the project, maybe open another scenario; a refusal is told as by `change`."""
    done = _replace(place, make)
    if done:
        forget_typed()
    return done


def _replace(
    place: str, make: Callable[[], Project], otherwise: str = "Nothing was changed."
) -> bool:
    try:
        changed = make()
    except RpexploreError as error:
        say(place, "error", f"{error} {otherwise}")
        return False
    before = project()
    if changed != before:
        steps = st.session_state.setdefault("steps back", [])
        steps.append(before)
        del steps[:-MOST_STEPS_BACK]
        st.session_state["steps forward"] = []
        _keep(changed)
    return True


def add_scenario(place: str, make: Callable[[], Scenario]) -> bool:
    """Keep a further scenario, and open it."""
    return change_project(place, lambda: project().added(make()))


def step(back: bool) -> None:
    """Undo the last change, or make it again."""
    here, there = ("steps back", "steps forward")[:: 1 if back else -1]
    steps = st.session_state.get(here, [])
    if steps:
        st.session_state.setdefault(there, []).append(project())
        _keep(steps.pop())
        forget_typed()


def can_step(back: bool) -> bool:
    """Whether there is something to undo, or to make again."""
    return bool(st.session_state.get("steps back" if back else "steps forward"))


def open_saved(key: str) -> None:
    """Go over to another saved project of this browser; the current one stays saved."""
    if not take_saved(key):
        say(EVERYWHERE, "error", "That project is not there any more.")
        return
    st.session_state["steps back"] = []
    st.session_state["steps forward"] = []
    forget_typed()


def _keep(changed: Project) -> None:
    undivided = save_project(changed)
    st.session_state["project"] = changed
    if not undivided:
        say(
            EVERYWHERE,
            "warning",
            "This project was changed in another window as well. Nothing is lost: the other window "
            "keeps its own, and this one goes on with a copy. The Scenarios page has both, under "
            "“Open another project”.",
        )


def change_domain(
    place: str,
    make: Callable[[], Domain],
    *,
    renamed: dict[str, str] | None = None,
    from_elsewhere: bool = False,
    **more: Any,
) -> bool:
    """Replace the codebook, and tell what of the workload had to be given up for it."""
    notes: list[str] = []

    def scenario() -> Scenario:
        changed, given_up = current().with_domain(
            make(), renamed=renamed, from_elsewhere=from_elsewhere
        )
        notes.extend(given_up)
        return changed.replaced(**more)

    done = change(place, scenario)
    for note in notes if done else []:
        say(place, "warning", note)
    return done


def kept(name: str, key: tuple, make: Callable[[], T]) -> T:
    """What `make` returned last time, as long as `key` stays equal. For this session alone."""
    held = st.session_state.get(f"kept {name}")
    if held is None or held[0] != key:
        held = (key, make())
        st.session_state[f"kept {name}"] = held
    return held[1]


def say(place: str, kind: str, text: str) -> None:
    """Keep a message ("error", "warning", "success") until `place` is drawn."""
    st.session_state.setdefault("messages", []).append((place, kind, text))


def show_messages(place: str) -> None:
    """Draw the messages kept for `place`, once."""
    waiting = st.session_state.get("messages", [])
    for where, kind, text in waiting:
        if where == place:
            getattr(st, kind)(escaped(text))
    st.session_state["messages"] = [message for message in waiting if message[0] != place]


def bind(key: str, value: Any) -> str:
    """Set a widget's value from the scenario, just before it is drawn; returns the key."""
    st.session_state[key] = value
    return key


def typed(name: str) -> dict[int, dict[str, Any]]:
    """What was typed into an editor since it was first drawn: {row: {column: value}}.

    Applied anew in every run, before the editor is drawn: the values are absolute, so that changes
    nothing, and what cannot be used keeps its message for as long as it stands in the grid.
    """
    return dict(st.session_state.get(revision(name), {}).get("edited_rows", {}))


def tell_refused(name: str, place: str, refused: Sequence[str] = ()) -> None:
    """Say what of an editor's cells is not in effect, and once more when the cells are gone.

    Call it in every run. An editor forgets its cells when its page is left, or for a new codebook.
    """
    for reason in refused:
        say(place, "error", f"{reason} This change is not in effect until it is mended.")
    before = f"{name} refused"
    if not typed(name):
        for reason in st.session_state.get(before, ()):
            say(place, "warning", f"A change you had typed was given up: {reason}")
    st.session_state[before] = refused


def revision(name: str, step: bool = False) -> str:
    """A key for an editor; another one after a step, which makes it forget what was typed."""
    st.session_state[f"{name} revision"] = st.session_state.get(f"{name} revision", 0) + step
    forgotten = st.session_state.get("typed forgotten", 0)
    return f"{name} {forgotten}.{st.session_state[f'{name} revision']}"


def forget_typed() -> None:
    """Make all editors forget what was typed: it belongs to what was open before."""
    st.session_state["typed forgotten"] = st.session_state.get("typed forgotten", 0) + 1
    st.session_state["typed list"] = None


def escaped(text: str) -> str:
    """User text for Markdown, where it would be read as formatting, formulas or links."""
    return re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", text)
