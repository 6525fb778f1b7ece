"""Fairness: how accurate each table is, and which tables are least accurate.

Views are in `components/fairness`; their charts in `rpexplore.figures` (`accuracy`, `fairness`,
`trade_offs`, `cells`).
"""

from functools import partial

import streamlit as st

from pages.components.areas.plan import fairness_of_areas
from pages.components.fairness import accuracy
from pages.components.fairness.accuracy import (
    CELLS_VIEW,
    accuracies,
    cells_view,
    choose_plan,
    good_cells_view,
    headline,
    seen_as_chosen,
)
from pages.components.queries.results import outcomes
from pages.components.shared.inputs import part_input, tabs
from pages.components.shared.session import current
from pages.components.shared.solutions import part, plan
from pages.components.shared.texts import explained_title, next_page


def tables() -> None:
    """The tables under the plan, and under other plans at the same budget."""
    compared = accuracies(current())
    if not compared:
        return
    with st.container(horizontal=True, gap="medium"):
        chosen = choose_plan(compared)
        compared, chosen = seen_as_chosen(compared, chosen)
    headline(chosen)
    views = {
        "Plans": lambda: accuracy.plans(compared, chosen),
        "By size": lambda: accuracy.tables_by_size(compared, chosen),
        "Distribution": lambda: accuracy.distribution(chosen),
        "Tables": lambda: accuracy.all_tables(chosen),
        "Attributes": lambda: accuracy.tables_by_attribute(chosen),
        "Binding targets": lambda: accuracy.binding_tables(chosen),
    }
    if (planned := plan()) is not None:
        views["Good cells"] = partial(good_cells_view, planned, compared, chosen)
    if chosen.cells_differ:
        views[CELLS_VIEW] = lambda: cells_view(chosen)
    tabs("fairness", views)


explained_title("Fairness")
kind = part_input()
if kind == "tables":
    tables()
elif (found := part(kind)) is not None:
    if kind == "areas":
        fairness_of_areas(found)
    else:
        outcomes(found)
next_page("tradeoffs", "Trade-offs")
