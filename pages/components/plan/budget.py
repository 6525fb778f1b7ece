"""The privacy part of the Plan page: the privacy unit and the privacy budget."""

import streamlit as st

from pages.components.shared.session import bound, change, current, show_messages
from rpexplore.analysis import budget_units

HERE = "plan"
RECORD, PERSON = "A record", "A person"
UNITS = {"rho": "ρ (zCDP)", "epsilon": "(ε, δ)", "mu": "μ"}
LETTERS = {"rho": "ρ", "epsilon": "ε", "mu": "μ"}


def unit_inputs() -> None:
    """The privacy unit: a record, or a person with a limit of records."""
    records = current().budget.max_records_per_person

    def set_limit(limit: int | None) -> None:
        change(
            HERE,
            lambda: current().replaced(
                budget=budget_units.with_privacy_unit(current().budget, limit)
            ),
        )

    def set_unit(unit: str) -> None:
        limit = int(st.session_state.get("records per person") or 1)
        set_limit(limit if unit == PERSON else None)

    st.radio(
        "Privacy unit",
        [RECORD, PERSON],
        horizontal=True,
        help="Who is protected: the release is nearly as likely with this record or person in the "
        "data as without; the privacy budget says how nearly.",
        **bound("protected", RECORD if records is None else PERSON, set_unit),
    )
    if records is not None:
        st.number_input(
            "At most how many records can one person have?",
            min_value=1,
            **bound("records per person", records, set_limit),
        )


def budget_inputs() -> None:
    """The budget: a typed value beside a slider, in a unit of the user's choice."""
    budget = current().budget
    if st.session_state.get("unit") is None:  # a new visit, or the chosen one clicked again
        st.session_state["unit"] = budget_units.stated_unit(budget)
    unit = st.segmented_control(
        "Privacy budget, stated as",
        list(UNITS),
        format_func=UNITS.__getitem__,
        key="unit",
        required=True,
    )
    unit = unit or budget_units.stated_unit(budget)
    delta = budget_units.stated_delta(budget)
    value = budget_units.text_in_unit(budget, unit, delta)

    def restate(value: str, delta: str = delta) -> None:
        change(
            HERE,
            lambda: current().replaced(
                budget=budget_units.with_value(current().budget, unit, str(value), delta)
            ),
        )

    letter = LETTERS[unit]
    boxes = st.columns(2 if unit == "epsilon" else 1)
    boxes[0].text_input(letter, **bound("typed budget", value, restate))
    if unit == "epsilon":
        boxes[1].text_input(
            "δ",
            help="The chance left over in which ε is not promised; far below one in the number of "
            "records. Usual: 1e-6 and smaller.",
            **bound("delta", delta, lambda delta: restate(value, delta)),
        )
    st.select_slider(
        f"{letter}: ← more private · more accurate →",
        budget_units.slider_stops(unit, value),
        **bound("slid budget", value, restate),
    )
    show_messages(HERE)
    for note in budget_units.budget_warnings(budget):
        st.info(note)
    st.caption(budget_units.describe_guess(budget))
    with st.expander("The same budget in other units"):
        st.dataframe(
            budget_units.equivalents(budget),
            hide_index=True,
            alt="The budget in other units",
            column_order=["measure", "value"],
            column_config={"measure": "Measure", "value": "Value"},
        )
        st.caption(
            "The promise is ρ; each ε follows from it, rounded up. μ would be exact for "
            "continuous noise; the noise drawn here is discrete."
        )
