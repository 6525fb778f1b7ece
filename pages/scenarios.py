"""Scenarios: named plans, kept and compared side by side."""

import streamlit as st

from pages.components.scenarios.comparison import comparison
from pages.components.scenarios.project_file import project_file
from pages.components.shared.session import (
    bind,
    change_project,
    current,
    escaped,
    project,
    say,
    show_messages,
)
from rpexplore.analysis.scenario_comparison import in_a_line
from rpexplore.scenarios.scenario import NAME_LENGTH, NOTE_LENGTH

HERE = "scenarios"


def describe(key: int) -> None:
    """Apply name and note of the scenario that they were drawn for, still open or not."""
    now = project()
    if key not in now.keys:
        return
    place = now.keys.index(key)
    name, note = (st.session_state[f"scenario {each}"].strip() for each in ("name", "note"))
    change_project(
        HERE,
        lambda: now.with_scenario(place, now.scenarios[place].replaced(name=name, note=note)),
    )


def arrange(change_of: str, key: int) -> None:
    """What one of the buttons of a scenario does; nothing for one that is not there any more.

    By key: after a double click another scenario may stand in its place, and a click may come
    together with a new name.
    """
    now = project()
    if key not in now.keys:
        return
    place = now.keys.index(key)
    name = now.names[place]
    arranged = {
        "open": lambda: now.opened(place),
        "duplicate": lambda: now.opened(place).added(now.scenarios[place]),
        "up": lambda: now.moved(place, -1),
        "down": lambda: now.moved(place, 1),
        "delete": lambda: now.removed(place),
    }[change_of]
    done = change_project(HERE, arranged)
    if done and change_of == "delete":
        say(HERE, "success", f"Deleted “{name}”. Undo, above, brings it back.")


def scenario_line(place: int) -> None:
    """One scenario in the list: its name, what it asks for, its note, and what can be done."""
    scenario, last = project().scenarios[place], len(project().scenarios) - 1
    with st.container(border=True):
        words, buttons = st.columns([3, 2], vertical_alignment="center")
        is_open = place == project().place
        name = f"**{escaped(scenario.name)}**" + (" (open)" if is_open else "")
        words.markdown(f"{name}  \n{escaped(in_a_line(scenario))}")
        if scenario.note:
            words.caption(escaped(scenario.note))
        line = buttons.container(horizontal=True, horizontal_alignment="right", gap="small")
        for change_of, label, icon, disabled in (
            ("open", "Open", None, is_open),
            ("duplicate", "Duplicate", None, False),
            ("up", "Up", "arrow_upward", place == 0),
            ("down", "Down", "arrow_downward", place == last),
            ("delete", "Delete", None, last == 0),
        ):
            line.button(
                label,
                icon=icon and f":material/{icon}:",
                key=f"{change_of} scenario {project().keys[place]}",
                on_click=arrange,
                args=(change_of, project().keys[place]),
                disabled=disabled,
                type="tertiary",
            )


st.title("Scenarios")
st.markdown(
    "Which of several plans to choose. A scenario is everything a plan is made from: codebook, "
    "tables, objective and budget, under a name. Duplicate one, change the copy on the other "
    "pages, and compare."
)
show_messages(HERE)
for place in range(len(project().scenarios)):
    scenario_line(place)

left, right = st.columns([1, 2])
left.text_input(
    "Name of the open scenario",
    key=bind("scenario name", current().name),
    on_change=describe,
    args=(project().keys[project().place],),
    max_chars=NAME_LENGTH,
)
right.text_area(
    "Note on it",
    key=bind("scenario note", current().note),
    on_change=describe,
    args=(project().keys[project().place],),
    max_chars=NOTE_LENGTH,
    height=68,
    placeholder="Why this one, what was agreed",
    help="It is printed in the report and in the files that are exported with the plan.",
)
comparison()
project_file(HERE)
st.page_link("pages/release.py", label="Next: export and release", icon=":material/arrow_forward:")
