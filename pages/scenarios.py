"""Scenarios: named plans, kept and compared side by side."""

import streamlit as st

from pages.components.scenarios.comparison import comparison, project_file
from pages.components.shared.session import (
    bound,
    change_names,
    change_project,
    current,
    escaped,
    project,
    say,
    show_messages,
)
from pages.components.shared.texts import explained_title, next_is_last_step
from rpexplore.analysis.scenario_comparison import summary
from rpexplore.scenarios.scenario import NAME_LENGTH, NOTE_LENGTH

HERE = "scenarios"


def describe(key: int, **texts: str) -> None:
    """Apply a name or note to the scenario that it was drawn for, still open or not."""
    now = project()
    if key not in now.keys:
        return
    position = now.keys.index(key)
    texts = {name: text.strip() for name, text in texts.items()}
    change_names(
        HERE, lambda: now.with_scenario(position, now.scenarios[position].replaced(**texts))
    )


def arrange(action: str, key: int) -> None:
    """What one of the buttons of a scenario does; nothing for one that is not there any more.

    By key: after a double click another scenario may stand in its position, and a click may come
    together with a new name.
    """
    now = project()
    if key not in now.keys:
        return
    position = now.keys.index(key)
    changed = {
        "open": lambda: now.opened(position),
        "duplicate": lambda: now.opened(position).added(now.scenarios[position]),
        "up": lambda: now.moved(position, -1),
        "down": lambda: now.moved(position, 1),
        "delete": lambda: now.removed(position),
    }[action]
    if change_project(HERE, changed) and action == "delete":
        say(HERE, "success", f"Deleted “{now.names[position]}”. Undo, above, brings it back.")


def name_and_note(key: int) -> None:
    """Fields for those of the open scenario, which has this key."""
    left, right = st.columns([1, 2])
    left.text_input(
        "Name of the open scenario",
        max_chars=NAME_LENGTH,
        **bound("scenario name", current().name, lambda name: describe(key, name=name)),
    )
    right.text_area(
        "Note on it",
        max_chars=NOTE_LENGTH,
        height=68,
        placeholder="Why this one, what was agreed",
        help="It is printed in the report and in the files that are exported with the plan.",
        **bound("scenario note", current().note, lambda note: describe(key, note=note)),
    )


def scenario_line(position: int) -> None:
    """One scenario in the list: its name, its inputs, its note, and buttons."""
    scenario, last = project().scenarios[position], len(project().scenarios) - 1
    key, is_open = project().keys[position], position == project().open_index
    with st.container(border=True):
        text, buttons = st.columns([3, 2], vertical_alignment="center")
        with text:
            if is_open:
                name_and_note(key)
                st.markdown(f"Open: {escaped(summary(scenario))}")
            else:
                st.markdown(f"**{escaped(scenario.name)}**  \n{escaped(summary(scenario))}")
                if scenario.note:
                    st.caption(escaped(scenario.note))
        line = buttons.container(horizontal=True, horizontal_alignment="right", gap="small")
        for action, label, icon, disabled in (
            ("open", "Open", None, is_open),
            ("duplicate", "Duplicate", None, False),
            ("up", "Up", ":material/arrow_upward:", position == 0),
            ("down", "Down", ":material/arrow_downward:", position == last),
            ("delete", "Delete", None, last == 0),
        ):
            line.button(
                label,
                icon=icon,
                key=f"{action} scenario {key}",
                on_click=arrange,
                args=(action, key),
                disabled=disabled,
                type="tertiary",
            )


explained_title("Scenarios")
show_messages(HERE)
for position in range(len(project().scenarios)):
    scenario_line(position)

comparison()
project_file(HERE)
next_is_last_step()
