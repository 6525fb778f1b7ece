"""What the pages share: the session's one scenario, its plan, and messages to the user.

Streamlit forgets the widgets of a page that is not shown. So the scenario is the truth: before a
widget is drawn its value is set from there, and only a change by the user goes back.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from pages import all_pages
from rpexplore.domain import Domain
from rpexplore.errors import RpexploreError
from rpexplore.plan import Plan
from rpexplore.scenario import Scenario


def current() -> Scenario:
    """The scenario of this session."""
    if "scenario" not in st.session_state:
        # The first visit to a new server went straight to this page: until Streamlit has seen
        # st.navigation, it takes pages/ for the whole app and runs a page without app.py.
        st.navigation(all_pages(), position="hidden")
        st.rerun()
    return st.session_state["scenario"]


def change(
    place: str, make: Callable[[], Scenario], otherwise: str = "Nothing was changed."
) -> bool:
    """Replace the scenario; what is refused leaves the old one and a message at `place`."""
    try:
        changed = make()
    except RpexploreError as error:
        say(place, "error", f"{error} {otherwise}")
        return False
    if changed != current():
        st.session_state["scenario"] = changed
    return True


def change_domain(
    place: str,
    make: Callable[[], Domain],
    *,
    renamed: dict[str, str] | None = None,
    from_elsewhere: bool = False,
    **more: Any,
) -> bool:
    """Replace the schema, and tell what of the workload had to be given up for it."""
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


def plan() -> Plan | None:
    """The plan of the scenario, made when first asked for; without one, says why."""
    scenario = current()
    planned_for, outcome = st.session_state.get("planned", (None, None))
    if planned_for is not scenario:
        with st.spinner("Planning …"):
            try:
                outcome = scenario.plan()
            except RpexploreError as error:
                outcome = str(error)
        st.session_state["planned"] = (scenario, outcome)
    if isinstance(outcome, Plan):
        return outcome
    st.error(escaped(f"There is no plan: {outcome}"))
    return None


def say(place: str, kind: str, text: str) -> None:
    """Keep a message ("error", "warning", "success") until `place` is drawn."""
    st.session_state.setdefault("messages", []).append((place, kind, text))


def show_messages(place: str) -> None:
    """Draw the messages kept for `place`, once."""
    kept = st.session_state.get("messages", [])
    for where, kind, text in kept:
        if where == place:
            getattr(st, kind)(escaped(text))
    st.session_state["messages"] = [message for message in kept if message[0] != place]


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

    Call it in every run. An editor forgets its cells when its page is left, or for a new schema.
    """
    for reason in refused:
        say(place, "error", f"{reason} This change is not in effect until it is mended.")
    kept = f"{name} refused"
    if not typed(name):
        for reason in st.session_state.get(kept, ()):
            say(place, "warning", f"A change you had typed was given up: {reason}")
    st.session_state[kept] = refused


def revision(name: str, step: bool = False) -> str:
    """A key for an editor; another one after a step, which makes it forget what was typed."""
    st.session_state[f"{name} revision"] = st.session_state.get(f"{name} revision", 0) + step
    return f"{name} {st.session_state[f'{name} revision']}"


def escaped(text: str) -> str:
    """User text for Markdown, where it would be read as formatting, formulas or links."""
    return re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", text)
