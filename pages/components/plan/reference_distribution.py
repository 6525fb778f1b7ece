"""The reference distribution on the Plan page, for tables other than of single values."""

import streamlit as st

from pages.components.shared.session import bind, change, current


def reference_distribution_input(place: str) -> None:
    """A switch, on by default, where some attribute's aggregation is not single values."""
    if current().workload.is_marginals:
        return

    def set_reference() -> None:
        change(
            place,
            lambda: current().replaced(uniform_reference=not st.session_state["optimise totals"]),
        )

    st.toggle(
        "Optimise the reference distribution (recommended)",
        key=bind("optimise totals", not current().uniform_reference),
        on_change=set_reference,
    )
    st.caption(
        "Attributes in cumulative counts, moving sums, ranges or a hierarchy are measured as a "
        "total, divided over their values by a reference distribution, and the differences from "
        "it. On: the distribution that makes the tables most accurate. Off: a uniform one "
        "(classical ResidualPlanner+). It depends on the tables alone, never on records, and "
        "answers stay unbiased either way."
    )
