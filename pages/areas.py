"""Areas: tables for areas in areas, a country's geography or a classification, planned as one."""

import streamlit as st

from pages.components.areas.plan import by_area, on_a_map, plan_view
from pages.components.areas.source import READING, apply_typed, choose_areas, levels, tables_view
from pages.components.areas.study import HERE, file_is_missing, is_read, study
from pages.components.shared.background import finish, follow_begun
from pages.components.shared.session import show_messages
from pages.components.shared.texts import explained_title, next_is_last_step

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
