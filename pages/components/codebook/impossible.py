"""Impossible combinations on the Codebook page, one a line."""

import streamlit as st

from pages.components.shared.session import bound, change, current, escaped, show_messages
from rpexplore.analysis.glossary import meaning
from rpexplore.domain.impossible import describe_combinations, example_of
from rpexplore.scenarios.impossible_lines import domain_with_lines, lines_of

HERE = "impossible"
REFUSED = "refused combinations"  # in the session: the codebook, and lines that do not fit it


def stated_combinations() -> None:
    """What the codebook states to be impossible, in short."""
    if stated := current().domain.impossible:
        st.markdown(escaped(f"The codebook states {describe_combinations(stated)}"))


def impossible_combinations() -> None:
    """The combinations that the codebook states, editable; refused lines stay to be mended."""
    domain = current().domain
    refused_by, typed = st.session_state.get(REFUSED, (None, ""))
    st.markdown(
        f"{meaning('Impossible combination')} Synthetic records are made without them. Planning "
        "does not use them, and the noise stays the same."
    )
    st.text_area(
        "Impossible combinations, one a line",
        placeholder=example_of(domain),
        height=110,
        help="Values are named as in a query: a value, a range such as 0..14, several with commas "
        "between. An empty field states none.",
        **bound(
            "impossible combinations", typed if refused_by == domain else lines_of(domain), _take
        ),
    )
    show_messages(HERE)


def _take(typed: str) -> None:
    domain = current().domain
    taken = change(HERE, lambda: current().replaced(domain=domain_with_lines(domain, typed)))
    st.session_state[REFUSED] = (None, "") if taken else (domain, typed)
