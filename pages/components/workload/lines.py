"""The list on the Tables page: all that is published, a line each; and which part is open."""

from collections.abc import Sequence

import streamlit as st

from pages.components.queries.list import choosable, replace_list
from pages.components.queries.preset_dialog import preset_button
from pages.components.shared.expected_counts import forecast, forecast_in_areas
from pages.components.shared.session import change, change_fields, current, escaped, forget_typed
from rpexplore.analysis.published_lines import PublishedLine
from rpexplore.planning.plan import Plan
from rpexplore.scenarios.workload_request import TableLine

HERE = "workload"
ADDRESS, _LAST_OPEN = "part", "part of tables"
FIRST, AREAS, COUNTS = "which", "areas", "counts"  # of lines, those of tables with their numbers
WEIGHTS, AGGREGATION, CLOSED = "weights", "aggregation", "list"
_WIDTHS = [6, 3, 2, 3, 3, 3]

# ---- Which part of the page is open, in the address; there are parts of lines and of all tables.


def part_of_line(number: int) -> str:
    return FIRST if number == 0 else f"{FIRST}-{number + 1}"


def number_of_part(part: str) -> int:
    return int(part.partition("-")[2] or 1) - 1


def parts_of(lines: Sequence[PublishedLine]) -> list[str]:
    """The part of each line."""
    numbers = iter(range(len(lines)))
    others = {"areas": AREAS, "counts": COUNTS}
    return [others.get(line.kind) or part_of_line(next(numbers)) for line in lines]


def open_part(lines: Sequence[PublishedLine]) -> str:
    """The part in the address, or the one that was open last; at first that of the first line."""
    parts = [*parts_of(lines), AREAS, COUNTS, WEIGHTS, AGGREGATION, CLOSED]
    part = st.query_params.get(ADDRESS) or st.session_state.get(_LAST_OPEN)
    if part not in parts or (part in (WEIGHTS, AGGREGATION) and FIRST not in parts):
        part = parts[0] if part is None else CLOSED
    st.session_state[_LAST_OPEN] = part
    return part


def show_part(part: str) -> None:
    st.query_params[ADDRESS] = part


# ---- The lines, and what is added to them.


def line_list(lines: Sequence[PublishedLine], planned: Plan | None) -> None:
    """Every line with its size, weight, target and forecast, and buttons to edit and remove it."""
    tables = None if planned is None else planned.part("tables")
    made = None if tables is None else forecast(tables)
    areas = None if planned is None else planned.part("areas")
    in_areas = None if areas is None else forecast_in_areas(areas)
    with st.container(key="lines", gap="xsmall"):
        for line, part in zip(lines, parts_of(lines), strict=True):
            *cells, buttons = st.columns(_WIDTHS, vertical_alignment="center")
            texts = [
                (f"**{escaped(line.heading)}**", line.about),
                (escaped(line.size), line.cells),
                (escaped(line.weight), "weight"),
                (escaped(line.wanted), "rule or target"),
            ]
            if planned is not None:
                figure, noun = line.accuracy(planned, made, in_areas)
                texts.append((escaped(figure), noun))
            for cell, (text, below) in zip(cells, texts, strict=False):
                cell.markdown(f"{text}  \n:small[{escaped(below)}]" if below else text)
            with buttons.container(horizontal=True, gap="small"):
                st.button("Edit", key=f"edit {part}", on_click=show_part, args=(part,))
                st.button(
                    "Remove", key=f"remove {part}", on_click=_remove, args=(part,), type="tertiary"
                )
    if not lines:
        st.info("Nothing is published yet; add tables, areas or counts.")


def _remove(part: str) -> None:
    if part == AREAS:
        change_fields(HERE, areas=None)
    elif part == COUNTS:
        replace_list(lambda: None)
    else:
        lines = list(current().request.lines)
        if len(lines) == 1:  # the choice is kept, for when tables are asked for again
            change_fields(HERE, asks_for_tables=False)
        else:
            del lines[number_of_part(part)]
            forget_typed()  # of lines that have other numbers now
            change(HERE, lambda: current().with_lines(lines))
    show_part(CLOSED)


def add_line(line: TableLine | None = None) -> None:
    """Put a line of tables behind the others, and open it; None: one to begin with."""
    scenario = current()
    if "tables" not in scenario.kinds and line is None:
        added = change(HERE, lambda: scenario.replaced(asks_for_tables=True))
        show_part(FIRST)
    else:
        there = scenario.request.lines if scenario.asks_for_tables else ()
        lines = [*there, line or TableLine(order=1)]
        added = change(HERE, lambda: scenario.with_lines(lines).replaced(asks_for_tables=True))
        show_part(part_of_line(len(lines) - 1) if added else CLOSED)


def add_buttons() -> None:
    """What can be added: tables, one table, sums of amounts, areas, own counts, a preset."""
    domain = current().domain.with_levels
    others = choosable(domain)
    amounts = [name for name in domain.names if name not in others]
    with st.container(horizontal=True, gap="small", key="add"):
        if len(current().domain):
            st.button("Tables", icon=":material/add:", on_click=add_line, type="primary")
            _one_table("One table", others, [])
            if amounts:
                _one_table("Sums and means", others, amounts)
        for label, part in (("Areas", AREAS), ("Own counts", COUNTS)):
            st.button(
                label, icon=":material/add:", key=f"add {part}", on_click=show_part, args=(part,)
            )
        if len(current().domain):
            preset_button()


def _one_table(label: str, names: Sequence[str], amounts: Sequence[str]) -> None:
    """A table picked by its attributes, at their levels; with an amount it has sums and means."""
    with st.popover(label, icon=":material/add:"):
        summed = [st.selectbox("Sum and mean of", amounts, key="summed")] if amounts else []
        picked = st.multiselect(
            "By" if amounts else "Attributes of the table",
            names,
            key=f"attributes of {label}",
            placeholder="none: all records together",
        )
        table = current().domain.with_levels.in_order([*picked, *filter(None, summed)])
        st.button(
            "Add this table",
            key=f"add {label}",
            on_click=_add_picked,
            args=(TableLine("listed", listed=(table,)), f"attributes of {label}"),
        )


def _add_picked(line: TableLine, picked: str) -> None:
    """Add a table; the next one is picked from none, not beside the attributes of this one."""
    before = current()
    add_line(line)
    if current() is not before:  # else it was refused, and can be corrected
        st.session_state[picked] = []
