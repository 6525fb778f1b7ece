"""The areas of the scenario on the Codebook page, and where they are planned."""

import streamlit as st

from pages.components.areas.study import is_read, study
from pages.components.shared.area_levels import area_levels


def areas_of_codebook() -> None:
    """The levels of the areas, if the scenario has any."""
    opened = study()
    if opened is None:
        return
    st.subheader("Areas")
    st.markdown(
        "Areas are beside the attributes above, with a codebook of their own. Their tables are "
        "chosen and planned on the page Areas."
    )
    if is_read(opened):
        area_levels(opened)
    st.page_link("pages/areas.py", label="Plan these areas", icon=":material/arrow_forward:")
