"""Weight and targets of many tables at once, on the Tables page."""

from typing import Any

import streamlit as st

from pages.components.shared.editors import revision
from pages.components.shared.session import change, current, escaped, say
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
        missing = "a required target" if required else "a weight or a target"
        say(HERE, "info", f"Type {missing} for these tables first.")
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


def drop_group(position: int) -> None:
    change(HERE, lambda: workload_grid.without_group(current(), position))
    revision(GRID, step=True)


def forget() -> None:
    change(HERE, lambda: current().with_request(settings=(), groups=()))
    revision(GRID, step=True)


def many_at_once(containing: list[str], n_tables: int) -> None:
    """Weight and target of all tables that the filter leaves."""
    line = st.container(horizontal=True, vertical_alignment="bottom")
    line.segmented_control(
        "Weight is", [TIMES, SET], required=True, key="how to weight", default=TIMES
    )
    _number(line, "Weight for these", "weight of many", placeholder="unchanged")
    line = st.container(horizontal=True, vertical_alignment="bottom")
    _number(line, "Target for these", "target of many", placeholder="unchanged")
    unit = line.selectbox(
        "Target is a", list(UNITS), format_func=UNITS.__getitem__, key="unit of many", width=230
    )
    if unit == MARGIN:
        _number(line, "Confidence, %", "confidence of many", value=95.0, max_value=100.0)
    if unit == CV:
        _number(line, "Expected count of a cell", "count of many", width=200)
    line.checkbox("Required", key="required of many")
    which = "the table below" if n_tables == 1 else f"all {n_tables:,} tables"
    if containing and n_tables > 1:
        which += f" with {escaped(' and '.join(containing))}"
    line.button(f"Set for {which}", on_click=set_group, args=(containing,))


def _number(
    line: Any, label: str, key: str, *, value: float | None = None, width: int = 150, **more: Any
) -> None:
    line.number_input(label, 0.0, value=value, key=key, format="%g", width=width, **more)


def groups_in_effect() -> None:
    """The settings of groups of tables, in the order in which they take effect."""
    request = current().request
    if not request.groups and not request.settings:
        return
    for position, group in enumerate(request.groups):
        line = st.container(horizontal=True, vertical_alignment="center", gap="small")
        line.markdown(escaped(group.text), width="content")
        line.button(
            "Remove",
            key=f"drop group {position}",
            on_click=drop_group,
            args=(position,),
            type="tertiary",
        )
    st.button("Forget all weights and targets", on_click=forget)
