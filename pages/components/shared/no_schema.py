"""What every page but the Codebook page says as long as there is nothing to plan for."""

import streamlit as st

from pages.components.shared.session import current, escaped
from rpexplore.domain.provenance import unfinished

WITHOUT = ("Codebook", "Scenarios", "Results")  # the pages that need no attributes


def lacks_attributes(page: str) -> bool:
    """Whether the page of this title must wait for attributes; then it says so.

    Attributes without values are named as well, for they make tables look smaller than they are.
    """
    if page in WITHOUT:
        return False
    domain = current().domain
    waiting = unfinished(domain)
    if len(domain) > 0:
        if waiting:
            shown = ", ".join(waiting[:5]) + (", …" if len(waiting) > 5 else "")
            st.warning(
                f"No values yet for {escaped(shown)}: each counts as a single value, and tables "
                "with it look smaller and more accurate than they will be."
            )
            st.page_link("pages/schema.py", label="To the codebook")
        return False
    st.title(page)
    st.info(
        "No attributes yet: tables are made of attributes, such as age or region. Name at least "
        "one on the Codebook page, or start there from a codebook or from the sample survey."
    )
    st.page_link("pages/schema.py", label="To the codebook")
    return True
