"""Areas: tables for areas in areas, a country's geography or a classification, planned as one."""

import streamlit as st

from pages.components.areas.by_area import by_area
from pages.components.areas.map import on_a_map
from pages.components.areas.results import plan_view
from pages.components.areas.source import READING, choose_areas, levels
from pages.components.areas.study import HERE, file_is_missing, is_read, study
from pages.components.areas.tables import apply_typed, tables_view
from pages.components.shared.background import finish, follow_begun
from pages.components.shared.explanations import explained_title
from pages.components.shared.next_page import next_is_last_step
from pages.components.shared.session import show_messages

finish(READING)
apply_typed()
explained_title("Areas")
opened = study()
reads = follow_begun(READING)
show_messages(HERE)
if opened is None:
    if not reads:
        choose_areas()
elif not is_read(opened):
    if file_is_missing(opened) and not reads:
        choose_areas()
else:
    views = {
        "Levels": levels,
        "Tables": tables_view,
        "Plan": plan_view,
        "By area": by_area,
        "Map (optional)": on_a_map,
    }
    # Only the open one is drawn, and which one that is stands in the address.
    for tab, draw in zip(
        st.tabs(list(views), key="areas", bind="query-params"), views.values(), strict=True
    ):
        if tab.open:
            with tab:
                draw(opened)
next_is_last_step()
