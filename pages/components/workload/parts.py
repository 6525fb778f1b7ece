"""The parts of the Tables page: which of them is open, and how many there are of what it sets."""

from dataclasses import dataclass

import streamlit as st

from pages.components.shared.next_page import next_page
from pages.components.shared.session import bound
from rpexplore.analysis.workload_grid import tables_set
from rpexplore.common.formatting import plural
from rpexplore.scenarios.scenario import Scenario

ADDRESS = "part"
_LAST_OPEN = "part of tables"


@dataclass(frozen=True)
class Part:
    """A part of the page: its name, the question it answers, how, and of what it sets some."""

    name: str
    question: str
    purpose: str
    noun: str = ""


PARTS = {
    "which": Part(
        "Which tables",
        "Which tables do you want to publish?",
        "With fewer and smaller tables each becomes more accurate at the same privacy budget. Sums "
        "of cells of a table need no table of their own.",
    ),
    "weights": Part(
        "Weights and targets",
        "Which tables matter more, and how accurate must they be?",
        "A table with a larger weight becomes more accurate, at the others' expense. With a target "
        "the page says whether the table is accurate enough.",
        "table",
    ),
    "aggregation": Part(
        "Aggregation",
        "What does a table count along each attribute?",
        "Usually single values. Where readers will add up values, such as ages 18 to 64, have the "
        "table count these sums: the noise is then made for them.",
        "attribute",
    ),
}
FIRST = next(iter(PARTS))


def counts(scenario: Scenario) -> dict[str, int]:
    """How many tables there are, tables with a weight or target, and attributes aggregated."""
    aggregated = {choice.attribute for choice in scenario.request.basis_choices}
    return {
        "which": len(scenario.workload),
        "weights": tables_set(scenario.workload),
        "aggregation": len(aggregated),
    }


def label(part: str, count: int) -> str:
    """ "Which tables (576)", "Weights and targets (11 tables)", "Aggregation (1 attribute)"."""
    noun = PARTS[part].noun
    text = plural(count, noun) if noun else f"{count:,}"
    return PARTS[part].name + (f" ({text})" if count else "")


def choose_part(scenario: Scenario) -> str:
    """The part in the address, or the one that was open last."""
    part = st.query_params.get(ADDRESS) or st.session_state.get(_LAST_OPEN, FIRST)
    if part not in PARTS:
        part = FIRST
    st.session_state[_LAST_OPEN] = part
    number = counts(scenario)
    st.segmented_control(
        "Part of the page",
        list(PARTS),
        format_func=lambda part: label(part, number[part]),
        required=True,
        label_visibility="collapsed",
        **bound("open part", part, _open),
    )
    return part


def _open(part: str) -> None:
    st.query_params[ADDRESS] = part


def lead_on(part: str) -> None:
    """The next part, if there is one, and the plan."""
    names = list(PARTS)
    following = names[names.index(part) + 1 :][:1]
    with st.container(horizontal=True, vertical_alignment="center"):
        for name in following:
            st.button(
                f"Next: {PARTS[name].name}",
                icon=":material/arrow_forward:",
                on_click=_open,
                args=(name,),
                type="tertiary",
            )
        if following:
            st.page_link("pages/plan.py", label="Straight to Plan")
        else:
            next_page("plan", "Plan")
