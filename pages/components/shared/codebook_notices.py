"""What several pages say of a codebook that lacks attributes or values, or shows records."""

import streamlit as st

from pages.components.shared.serving import HAND_OVER
from pages.components.shared.session import current, escaped
from rpexplore.common.exact_numbers import shown_few
from rpexplore.domain.domain import Domain
from rpexplore.domain.provenance import (
    describe_attributes_from_records,
    formulas_warning,
    unfinished,
)

WITHOUT = ("Home", "Codebook", "Areas", "Scenarios", "Results")  # the pages that need no attributes
OF_ANY_PLAN = ("Plan", "Release", HAND_OVER)  # which need none for areas and own counts alone


def lacks_attributes(page: str) -> bool:
    """Whether the page of this title must wait for attributes; then it says so.

    Attributes without values are named as well, for they make tables look smaller than they are.
    """
    asks_for_others = current().kinds and "tables" not in current().kinds
    if page in WITHOUT or (page in OF_ANY_PLAN and asks_for_others):
        return False
    domain = current().domain
    waiting, is_empty = unfinished(domain), len(domain) == 0
    if is_empty:
        st.title(page)
        st.info(
            "No attributes yet: tables are made of attributes, such as age or region. Name at "
            "least one on the Codebook page, or start there from a codebook or from an example."
        )
    elif waiting:
        st.warning(
            f"No values yet for {escaped(shown_few(waiting))}: each counts as a single value, and "
            "tables with it look smaller and more accurate than they will be."
        )
    if is_empty or waiting:
        st.page_link("pages/codebook.py", label="To the codebook")
    return is_empty


def values_from_records_warning(domain: Domain) -> None:
    """Say which attributes have values that nothing protects; nothing if there are none."""
    if names := describe_attributes_from_records(domain):
        st.warning(
            f"From the records: the values of {escaped(names)}. Nothing protects that they are "
            "listed, and they are published with every table: take out what is not publicly "
            "known, add what nobody happens to have, and then change the label, all on the "
            "Codebook page."
        )
    if warning := formulas_warning(domain):
        st.warning(escaped(warning))
