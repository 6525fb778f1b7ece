"""Tables: one list of everything that is published, and the line of it that is edited."""

import streamlit as st

from pages.components.areas.plan import areas_editor
from pages.components.areas.source import READING
from pages.components.areas.source import apply_typed as apply_typed_areas
from pages.components.areas.study import HERE as OF_AREAS
from pages.components.areas.study import areas_can_be_planned, is_read
from pages.components.queries.list import HERE as OF_COUNTS
from pages.components.queries.list import take_typed
from pages.components.queries.results import counts_editor
from pages.components.shared.background import finish
from pages.components.shared.expected_counts import expected_total_input
from pages.components.shared.session import current, escaped, show_messages
from pages.components.shared.solutions import whole_plan
from pages.components.shared.texts import explained_title, next_page
from pages.components.workload import builders
from pages.components.workload.bases import basis_choices
from pages.components.workload.builders import take_lists, which_tables
from pages.components.workload.lines import (
    AGGREGATION,
    AREAS,
    CLOSED,
    COUNTS,
    FIRST,
    HERE,
    WEIGHTS,
    add_buttons,
    line_list,
    number_of_part,
    open_part,
    parts_of,
    show_part,
)
from pages.components.workload.settings import HERE as SETTINGS
from pages.components.workload.settings import apply_typed, settings
from pages.components.workload.weights import survey_weights
from rpexplore.analysis.published_lines import published_lines
from rpexplore.analysis.workload_grid import tables_set
from rpexplore.common.text import plural
from rpexplore.planning.plan import Plan

OF_ALL = {
    WEIGHTS: (
        "Weights and targets of single tables",
        "A table with a larger weight becomes more accurate, at the others' expense. With a target "
        "the page says whether the table is accurate enough.",
    ),
    AGGREGATION: (
        "Aggregation",
        "Usually single values. Where readers will add up values, such as ages 18 to 64, have the "
        "table count these sums: the noise is then made for them.",
    ),
}


def planned() -> Plan | None:
    """The plan of all lines; None, and the page says why, where there is none."""
    scenario = current()
    if not scenario.kinds or not are_read:
        return None
    if scenario.areas is not None and not areas_can_be_planned(scenario.areas):
        return None
    if "tables" in scenario.kinds and scenario.misses_target:
        st.error(
            f"There is no plan yet: table {escaped(scenario.misses_target)} has no target. Set one "
            f"for every table under {OF_ALL[WEIGHTS][0]}, or choose another objective on the Plan "
            "page."
        )
        return None
    return whole_plan()


def edited(part: str, outcome: Plan | None) -> None:
    """The editor of a part."""
    tables = None if outcome is None else outcome.part("tables")
    if part == AREAS:
        areas_editor(None if outcome is None else outcome.part("areas"), are_read=are_read)
    elif part == COUNTS:
        counts_editor(None if outcome is None else outcome.part("counts"))
    elif part in OF_ALL:
        with st.container(key="layout"):
            if part == WEIGHTS:
                settings(tables)
            else:
                basis_choices()
    else:
        which_tables(number_of_part(part))


finish(READING)
apply_typed_areas()
apply_typed()
take_lists()
take_typed()
explained_title("Tables")
show_messages(HERE)
scenario = current()
lines = published_lines(scenario)
has_tables = FIRST in parts_of(lines)
are_read = scenario.areas is None or is_read(scenario.areas)
listed = st.container()
added = st.container()
fit = builders.fit() if has_tables else None
outcome = planned() if fit is None or fit.can_be_planned else None
with listed:
    line_list(lines, outcome)
with added:
    add_buttons()
part = open_part(lines)
if fit is not None:
    builders.size(None if outcome is None else outcome.part("tables"))
    builders.obstacles(fit)
    if scenario.expected is None:
        st.markdown("**Is that accurate enough?** Type how many there will be, about.")
        expected_total_input()
    if scenario.settings_aside:
        st.caption(
            f"{plural(scenario.settings_aside, 'setting')} of tables outside the present ones kept "
            "aside."
        )
    aggregated = {choice.attribute for choice in scenario.request.basis_choices}
    counts = {
        WEIGHTS: (tables_set(scenario.workload), "table"),
        AGGREGATION: (len(aggregated), "attribute"),
    }
    with st.container(horizontal=True, vertical_alignment="center"):
        for name, (count, noun) in counts.items():
            title = OF_ALL[name][0]
            st.button(
                f"{title} ({plural(count, noun)})" if count else title,
                key=f"edit {name}",
                on_click=show_part,
                args=(name,),
                type="tertiary",
                icon=":material/tune:",
            )
    survey_weights()
for other, slot in ((WEIGHTS, SETTINGS), (AREAS, OF_AREAS), (COUNTS, OF_COUNTS)):
    if part != other:  # where they stand beside what they are about
        show_messages(slot)
if part != CLOSED:
    headings = dict(zip(parts_of(lines), (line.heading for line in lines), strict=True))
    fallback = {AREAS: "Areas", COUNTS: "Own counts"}
    heading, purpose = OF_ALL.get(part) or (headings.get(part) or fallback[part], "")
    with st.container(border=True, key="editor"):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.subheader(escaped(heading))
            st.button("Close", on_click=show_part, args=(CLOSED,), type="tertiary")
        if purpose:
            st.caption(purpose)
        edited(part, outcome)
next_page("plan", "Plan")
