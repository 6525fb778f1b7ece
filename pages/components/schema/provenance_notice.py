"""The warning that values of the codebook were taken from the records."""

import streamlit as st

from pages.components.shared.session import escaped
from rpexplore.domain.domain import Domain
from rpexplore.domain.provenance import describe_attributes_from_records


def values_from_records_warning(domain: Domain) -> None:
    """Say which attributes have values that nothing protects; nothing if there are none."""
    if names := describe_attributes_from_records(domain):
        st.warning(
            f"From the records: the values of {escaped(names)}. Nothing protects that they are "
            "listed, and they are published with every table: take out what is not publicly "
            "known, add what nobody happens to have, and then change the label, all on the "
            "Codebook page."
        )
