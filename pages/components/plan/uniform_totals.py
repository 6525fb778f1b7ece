"""How totals are spread over values, on the Plan page, where attributes are asked specially."""

import streamlit as st

from pages.components.shared.session import bind, change, current


def totals_input(place: str) -> None:
    """A switch, on by default, where some attribute is asked other than by its single values."""
    if current().workload.is_marginals:
        return

    def set_spread() -> None:
        change(
            place,
            lambda: current().replaced(uniform_reference=not st.session_state["optimise totals"]),
        )

    st.toggle(
        "Optimise how totals are spread (recommended)",
        key=bind("optimise totals", not current().uniform_reference),
        on_change=set_spread,
    )
    st.caption(
        "Attributes asked in running totals, ranges or groups are measured as a total, spread over "
        "their values, and the differences from that spread: on, it is the one that makes the "
        "tables most accurate; off, an even one (classical ResidualPlanner+). It depends on the "
        "tables asked for alone, never on records, and answers stay unbiased either way."
    )
