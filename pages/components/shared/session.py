"""The session: its project with one open scenario, undo, and messages to the user.

Streamlit forgets the widgets of a page that is not shown. So the scenario is the truth: before a
widget is drawn its value is set from there, and only a change by the user goes back.
"""

import re
from collections.abc import Callable
from typing import Any, TypeVar

import streamlit as st

from pages import all_pages
from pages.components.shared.autosave import (
    is_saved,
    open_key,
    save_project,
    start_project,
    take_saved,
)
from rpexplore.common.server_files import log_event
from rpexplore.domain.domain import Domain
from rpexplore.errors import LimitError, RpexploreError
from rpexplore.scenarios.examples import without_invented_counts
from rpexplore.scenarios.project import Project, check_limits
from rpexplore.scenarios.scenario import Scenario
from rpexplore.serving.sessions import limits, plans_only

T = TypeVar("T")
EVERYWHERE = "everywhere"  # where messages go that belong to no part of a page


def project() -> Project:
    """The project of this session."""
    opened = st.session_state.get("project")
    if opened is None:
        # The first visit to a new server went straight to this page: until Streamlit has seen
        # st.navigation, it takes pages/ for the whole app and runs a page without app.py.
        st.navigation(all_pages(), position="hidden")
        st.rerun()
    return opened


def current() -> Scenario:
    """The open scenario of this session."""
    return project().current


def change(
    slot: str, make: Callable[[], Scenario], otherwise: str = "Nothing was changed."
) -> bool:
    """Replace the open scenario; what is refused leaves the old one and a message in `slot`."""
    return change_names(slot, lambda: project().with_current(make()), otherwise)


def change_fields(slot: str, **fields: Any) -> None:
    """`change` some fields of the open scenario."""
    change(slot, lambda: current().replaced(**fields))


def change_project(slot: str, make: Callable[[], Project]) -> bool:
    """Replace the project, maybe open another scenario; refusals leave a message in `slot`."""
    done = change_names(slot, make)
    if done:
        forget_typed()
    return done


def change_names(
    slot: str, make: Callable[[], Project], otherwise: str = "Nothing was changed."
) -> bool:
    """`change_project` to one with other names or notes, or one scenario; what is typed stays."""
    changed = accepted(slot, lambda: _within_limits(make()), otherwise)
    if changed is None:
        return False
    before = project()
    if changed != before:
        steps = st.session_state.setdefault("steps back", [])
        steps.append(before)
        del steps[: -limits().undo_steps]
        st.session_state["steps forward"] = []
        _keep(changed)
    return True


def _within_limits(changed: Project) -> Project:
    """The project, if it is not too large for a shared server; else what is open stays as it is."""
    if plans_only():
        try:
            for scenario in changed.scenarios:
                check_limits(scenario, limits())
        except LimitError as error:
            log_event("refused by a limit", limit=error.limit)
            raise
    return changed


def step(back: bool) -> None:
    """Undo the last change, or make it again."""
    steps = st.session_state.get("steps back" if back else "steps forward", [])
    if steps:
        st.session_state.setdefault("steps forward" if back else "steps back", []).append(project())
        _keep(steps.pop())
        forget_typed()


def can_step(back: bool) -> bool:
    """Whether there is something to undo, or to make again."""
    return bool(st.session_state.get("steps back" if back else "steps forward"))


def open_saved(key: str) -> None:
    """Go over to another saved project; the current one stays saved."""
    if key == open_key():
        return
    if not take_saved(key):
        say(EVERYWHERE, "error", "That project is not there any more.")
        return
    _forget_steps()


def open_new(project: Project, name: str = "") -> None:
    """Go over to another project than a saved one; the current one stays saved.

    name: as `start_project` has it

    Raises `LimitError` for one that is too large for a shared server.
    """
    start_project(_within_limits(project), name)
    _forget_steps()


def open_beside(project: Project, name: str = "") -> None:
    """`open_new`, and say where the project before is found again."""
    was_saved = is_saved()
    open_new(project, name)
    if was_saved:
        say(EVERYWHERE, "success", "The project before is kept: Home lists it.")


def _forget_steps() -> None:
    """Another project is open: undo does not lead back to the one before."""
    st.session_state.update({"steps back": [], "steps forward": []})
    forget_typed()


def _keep(changed: Project) -> None:
    undivided = save_project(changed)
    st.session_state["project"] = changed
    if not undivided:
        say(
            EVERYWHERE,
            "warning",
            "This project was changed in another window as well. Nothing is lost: the other window "
            "keeps its own, and this one goes on with a copy. Home lists both.",
        )


def change_domain(
    slot: str,
    make: Callable[[], Domain],
    *,
    renamed: dict[str, str] | None = None,
    from_elsewhere: bool = False,
    **more: Any,
) -> bool:
    """Replace the codebook, and say what of the workload does not fit it."""
    notes: list[str] = []

    def scenario() -> Scenario:
        before, domain = current(), make()
        if from_elsewhere:
            before = without_invented_counts(before, domain)
        changed, given_up = before.with_domain(
            domain, renamed=renamed, from_elsewhere=from_elsewhere
        )
        notes.extend(given_up)
        return changed.replaced(**more)

    done = change(slot, scenario)
    for note in notes if done else []:
        say(slot, "warning", note)
    return done


def kept(make: Callable[..., T], *args: Any, slot: str = "", by: tuple = (), **options: Any) -> T:
    """What the named function or method `make` returned, kept while its arguments stay equal.

    slot tells apart what is kept of one function; `by` is compared in place of the arguments, and
    has to be given where there are named ones.
    """
    name, key = kept_name(make, slot), by or (getattr(make, "__self__", None), *args)
    held = st.session_state.get(name)
    if held is None or held[0] != key:
        held = st.session_state[name] = (key, make(*args, **options))
    return held[1]


def kept_name(make: Callable, slot: str = "") -> str:
    """Where the session keeps what a function returned."""
    return f"kept {make.__module__}.{make.__qualname__} {slot}".rstrip()


def attempt(
    make: Callable[[], T], problem: str = "", show: Callable[[str], Any] = st.error
) -> T | None:
    """What `make` returns; None where it is refused, and the page says why, after `problem`."""
    try:
        return make()
    except RpexploreError as error:
        show(escaped(f"{problem}{error.on_screen()}"))
        return None


def accepted(slot: str, make: Callable[[], T], otherwise: str = "") -> T | None:
    """`attempt` in a callback: what is refused leaves a message in `slot`."""
    try:
        return make()
    except RpexploreError as error:
        say(slot, "error", f"{error} {otherwise}".strip())
        return None


_DRAWN = "messages of this run"


def say(slot: str, kind: str, text: str) -> None:
    """Keep a message ("error", "warning", "success") until `slot` is drawn."""
    st.session_state.setdefault("messages", []).append((slot, kind, text))


def show_messages(slot: str) -> None:
    """Draw the messages kept for `slot`, once."""
    messages = st.session_state.get("messages", [])
    drawn = [message for message in messages if message[0] == slot]
    for _, kind, text in drawn:
        getattr(st, kind)(escaped(text))
    st.session_state["messages"] = [message for message in messages if message[0] != slot]
    st.session_state.setdefault(_DRAWN, []).extend(drawn)


def forget_messages() -> None:
    """Let what the last run has drawn go, in the next one."""
    st.session_state[_DRAWN] = []


def repeat_messages() -> None:
    """Keep what this run has drawn for a run that nobody asks for: it would vanish unread."""
    st.session_state.setdefault("messages", []).extend(st.session_state.pop(_DRAWN, []))


def bound(key: str, value: Any, take: Callable[[Any], Any]) -> dict[str, Any]:
    """Options of a widget that shows `value`, set just now; `take` is given what is typed."""
    st.session_state[key] = value
    return {"key": key, "on_change": lambda: take(st.session_state[key])}


def forget_typed() -> None:
    """Make all editors forget what was typed: it belongs to the scenario before."""
    st.session_state["typed forgotten"] = st.session_state.get("typed forgotten", 0) + 1
    st.session_state["typed list"] = None


def escaped(text: str) -> str:
    """Text for Markdown, in which nothing is formatting, a formula or a link; "5 %" stays whole."""
    # Addresses become links whatever is escaped, unless another character is in between.
    text = re.sub(r"(?i)https?://|www(?=\.)|(?<=\w)@", "\\g<0>\N{WORD JOINER}", text)
    text = re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", text)
    return text.replace(" \\%", "\N{NO-BREAK SPACE}\\%")
