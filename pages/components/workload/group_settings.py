"""Weight and targets of many tables at once, on the Tables page."""

import streamlit as st

from pages.components.shared.session import change, current, escaped, revision, say
from rpexplore.analysis import workload_grid
from rpexplore.scenarios.table_settings import GroupSetting
from rpexplore.workload.targets import CV, MARGIN, UNITS, Target

HERE = "settings"
GRID = "workload grid"
TIMES, SET = "multiplied by", "set to"


def set_group(containing: list[str]) -> None:
    state = st.session_state
    weight, value, required = (
        state[f"{name} of many"] for name in ("weight", "target", "required")
    )
    if value is None and (required or weight is None):
        words = "Type a required target" if required else "Type a weight or a target"
        say(HERE, "info", f"{words} for these tables first.")
        return
    how = "factor" if state["how to weight"] == TIMES else "weight"

    def target() -> Target | None:
        unit, more = state["unit of many"], {}
        if name := {MARGIN: "confidence", CV: "count"}.get(unit):
            more[name] = state[f"{name} of many"]
        return None if value is None else Target(value, unit, **more, required=required)

    done = change(
        HERE,
        lambda: current().with_group(
            GroupSetting(tuple(containing), target=target(), **{how: weight})
        ),
    )
    if done:
        revision(GRID, step=True)
        # A second click should not multiply once more.
        state.update({"weight of many": None, "target of many": None, "required of many": False})


def drop_group(place: int) -> None:
    change(HERE, lambda: workload_grid.without_group(current(), place))
    revision(GRID, step=True)


def forget() -> None:
    change(HERE, lambda: current().with_request(settings=(), groups=()))
    revision(GRID, step=True)


def many_at_once(containing: list[str], found: int) -> None:
    """Weight and target of all tables that the filter leaves."""
    line = st.container(horizontal=True, vertical_alignment="bottom")
    line.segmented_control(
        "Weight is", [TIMES, SET], required=True, key="how to weight", default=TIMES
    )
    line.number_input(
        "Weight for these",
        min_value=0.0,
        value=None,
        key="weight of many",
        format="%g",
        width=150,
        placeholder="unchanged",
    )
    line = st.container(horizontal=True, vertical_alignment="bottom")
    line.number_input(
        "Target for these",
        min_value=0.0,
        value=None,
        key="target of many",
        format="%g",
        width=150,
        placeholder="unchanged",
    )
    unit = line.selectbox(
        "Target is a", list(UNITS), format_func=UNITS.get, key="unit of many", width=230
    )
    if unit == MARGIN:
        line.number_input(
            "Confidence, %", 0.0, 100.0, 95.0, key="confidence of many", format="%g", width=150
        )
    if unit == CV:
        line.number_input(
            "Expected count of a cell",
            min_value=0.0,
            value=None,
            key="count of many",
            format="%g",
            width=200,
        )
    line.checkbox("Required", key="required of many")
    which = "the table below" if found == 1 else f"all {found:,} tables"
    if containing and found > 1:
        which += f" with {escaped(' and '.join(containing))}"
    line.button(f"Set for {which}", on_click=set_group, args=(containing,))


def groups_in_effect() -> None:
    """What was asked of groups of tables, in the order in which it takes effect."""
    request = current().request
    if not request.groups and not request.settings:
        return
    for place, group in enumerate(request.groups):
        line = st.container(horizontal=True, vertical_alignment="center", gap="small")
        line.markdown(escaped(group.text), width="content")
        line.button(
            "Remove",
            key=f"drop group {place}",
            on_click=drop_group,
            args=(place,),
            type="tertiary",
        )
    st.button("Forget all weights and targets", on_click=forget)
