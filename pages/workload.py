"""Tables: one list of everything that is published, and the line of it that is edited."""

import streamlit as st

from pages.components.areas.plan import areas_editor
from pages.components.areas.study import HERE as OF_AREAS
from pages.components.areas.study import READING, areas_can_be_planned, is_read
from pages.components.areas.study import apply_typed as apply_typed_areas
from pages.components.queries.list import HERE as OF_COUNTS
from pages.components.queries.list import take_typed
from pages.components.queries.results import counts_editor
from pages.components.shared.background import finish
from pages.components.shared.expected_counts import expected_total_input
from pages.components.shared.session import current, escaped, show_messages
from pages.components.shared.solutions import whole_plan
from pages.components.shared.texts import explained_title, next_page
from pages.components.workload import builders, lines
from pages.components.workload.bases import basis_choices
from pages.components.workload.settings import HERE as SETTINGS
from pages.components.workload.settings import apply_typed, settings
from pages.components.workload.weights import survey_weights
from rpexplore.analysis.published_lines import published_lines
from rpexplore.analysis.workload_grid import tables_set
from rpexplore.common.text import plural
from rpexplore.planning.plan import Plan

OF_ALL = {
    lines.WEIGHTS: (
        "Weights and targets of single tables",
        "A table with a larger weight becomes more accurate, at the others' expense. With a target "
        "the page says whether the table is accurate enough.",
    ),
    lines.AGGREGATION: (
        "Aggregation",
        "Usually single values. Where readers will add up values, such as ages 18 to 64, have the "
        "table count these sums: the noise is then made for them.",
    ),
}


def planned() -> Plan | None:
    """The plan of all lines; None, and the page says why, where there is none."""
    scenario = current()
    if not published or not are_read:
        return None
    if scenario.areas is not None and not areas_can_be_planned(scenario.areas):
        return None
    if "tables" in scenario.kinds and scenario.misses_target:
        st.error(
            f"There is no plan yet: table {escaped(scenario.misses_target)} has no target. Set one "
            "for every table in the lines, or choose another objective on the Plan page."
        )
        return None
    return whole_plan()


def edited(part: str, outcome: Plan | None) -> None:
    """The editor of a part."""
    if part == lines.AREAS:
        areas_editor(None if outcome is None else outcome.part("areas"), are_read=are_read)
    elif part == lines.COUNTS:
        counts_editor(None if outcome is None else outcome.part("counts"))
    elif part in OF_ALL:
        with st.container(key="layout"):
            if part == lines.WEIGHTS:
                settings(None if outcome is None else outcome.part("tables"))
            else:
                basis_choices()
    else:
        builders.which_tables(lines.number_of_part(part))


finish(READING)
apply_typed_areas()
apply_typed()
builders.take_lists()
take_typed()
explained_title("Tables")
show_messages(lines.HERE)
scenario = current()
published = published_lines(scenario)
parts = lines.parts_of(published)
are_read = scenario.areas is None or is_read(scenario.areas)
above = st.container()
fit = builders.fit() if lines.FIRST in parts else None
outcome = planned() if fit is None or fit.can_be_planned else None
with above:
    lines.line_list(published, outcome)
    lines.add_buttons()
part = lines.open_part(published)
if fit is not None:
    builders.size(outcome)
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
        lines.WEIGHTS: (tables_set(scenario.workload), "table"),
        lines.AGGREGATION: (len(aggregated), "attribute"),
    }
    with st.container(horizontal=True, vertical_alignment="center"):
        for name, (count, noun) in counts.items():
            title = OF_ALL[name][0]
            st.button(
                f"{title} ({plural(count, noun)})" if count else title,
                key=f"edit {name}",
                on_click=lines.show_part,
                args=(name,),
                type="tertiary",
                icon=":material/tune:",
            )
    survey_weights()
for other, slot in ((lines.WEIGHTS, SETTINGS), (lines.AREAS, OF_AREAS), (lines.COUNTS, OF_COUNTS)):
    if part != other:  # where they stand beside what they are about
        show_messages(slot)
if part != lines.CLOSED:
    headings = {lines.AREAS: "Areas", lines.COUNTS: "Own counts"} | {
        name: line.heading for name, line in zip(parts, published, strict=True)
    }
    heading, purpose = OF_ALL.get(part) or (headings[part], "")
    with st.container(border=True, key="editor"):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.subheader(escaped(heading))
            st.button("Close", on_click=lines.show_part, args=(lines.CLOSED,), type="tertiary")
        if purpose:
            st.caption(purpose)
        edited(part, outcome)
next_page("plan", "Plan")
