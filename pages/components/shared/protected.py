"""Who is protected: the privacy unit, what neighbours are, and a picture of two of them."""

from collections.abc import Callable

import streamlit as st

from pages.components.shared.session import bound, change, current, escaped
from rpexplore.analysis import budget_units
from rpexplore.analysis.glossary import meaning
from rpexplore.common.text import capitalised, with_article
from rpexplore.figures.first_look import neighbours_picture
from rpexplore.planning.held_totals import total_from_text
from rpexplore.privacy.budget import ADD_REMOVE, REPLACE, Budget

RECORD, PERSON = "A record", "A person"
KINDS = {ADD_REMOVE: "That they are in the data", REPLACE: "Only what their records hold"}


def _restate(here: str, restated: Callable[[Budget], Budget]) -> None:
    """Replace the budget of the open scenario by what `restated` makes of it."""
    change(here, lambda: current().replaced(budget=restated(current().budget)))


def protected_inputs(here: str) -> None:
    """The privacy unit and the kind of neighbours; here: the place of messages."""
    budget = current().budget
    records = budget.max_records_per_person

    def take(limit: int | None, neighbours: str) -> None:
        _restate(here, lambda before: budget_units.with_privacy_unit(before, limit, neighbours))

    def take_noun(typed: str) -> None:
        _restate(here, lambda before: budget_units.with_noun(before, typed.strip() or None))

    def set_unit(unit: str) -> None:
        limit = int(st.session_state.get("records per person") or 1)
        take(limit if unit == PERSON else None, budget.neighbours)

    st.radio(
        "Privacy unit",
        [RECORD, PERSON],
        format_func=lambda kind: (
            kind if kind == RECORD else capitalised(with_article(budget.holder))
        ),
        horizontal=True,
        help=meaning("Privacy unit"),
        **bound("protected", RECORD if records is None else PERSON, set_unit),
    )
    st.text_input(
        "The word for who is protected",
        placeholder=budget.noun,
        help="One, in the singular: household, enterprise, patient. Texts and exports use it; no "
        "number depends on it.",
        **bound("unit noun", budget.unit_noun or "", take_noun),
    )
    if records is None or budget.distinct is not None:
        _distinct_input(here, budget)
    if records is not None and budget.distinct is None:
        st.number_input(
            f"At most how many records can one {escaped(budget.noun)} have?",
            min_value=1,
            **bound("records per person", records, lambda limit: take(limit, budget.neighbours)),
        )
        _panel_input(here, budget)
    st.radio(
        "What of them is protected",
        list(KINDS),
        format_func=KINDS.__getitem__,
        horizontal=True,
        help=meaning("Neighbours"),
        **bound("neighbours", budget.neighbours, lambda kind: take(records, kind)),
    )
    if budget.replaces and records is None:
        _exact_totals_input(here, budget)


def _distinct_input(here: str, budget: Budget) -> None:
    """The column whose distinct values are counted, such as the number of a household."""

    def take(typed: str) -> None:
        _restate(here, lambda before: budget_units.with_distinct(before, typed.strip() or None))

    st.text_input(
        "Count each value of a column once, not records",
        placeholder="none; such as: household",
        help="The column with the number of the household, say, on every record. Each number is "
        "counted once, however many records have it; what is counted must be the same on all of "
        "them. If the column is not called like one of them, first give the word for who is "
        "protected. Tables in areas and sums cannot be counted so.",
        **bound("count distinct", budget.distinct or "", take),
    )


def _exact_totals_input(here: str, budget: Budget) -> None:
    """Totals that are released as they are, and that neighbours keep."""

    def take(typed: str) -> None:
        def stated(before: Budget) -> Budget:
            areas, domain = current().areas, current().domain
            tree = None if areas is None else areas.areas.tree
            if areas is not None and "tables" not in current().kinds:
                domain = areas.domain
            texts = [text for text in typed.split(";") if text.strip()]
            exact = [total_from_text(domain.with_levels, tree, text) for text in texts]
            return budget_units.with_exact_totals(before, exact)

        _restate(here, stated)

    st.text_input(
        "Totals that must be exact, with ; between them",
        placeholder="none; such as: region; sex, age",
        help=meaning("Exact totals"),
        **bound("exact totals", "; ".join(map(", ".join, budget.exact)), take),
    )


def _panel_input(here: str, budget: Budget) -> None:
    """The period of a panel, where a person has at most one record in each."""
    names = [name for name in current().domain.names if current().domain[name].size > 1]
    if budget.replaces or not names:
        return

    def take(period: str | None) -> None:
        _restate(here, lambda before: budget_units.in_panel(before, period))

    st.selectbox(
        "At most one record in each (panel)",
        [None, *names],
        format_func=lambda name: name or "No: records can be any",
        help=meaning("Panel"),
        **bound("period", budget.period if budget.period in names else None, take),
    )


def who_is_protected(here: str) -> None:
    """The section of the Data page: the choice, and what it means, as a picture."""
    st.subheader("Who is protected")
    choice, picture = st.columns(2)
    with choice:
        protected_inputs(here)
    with picture:
        budget = current().budget
        st.html(neighbours_picture(budget))
        st.caption(
            escaped(
                f"Protected is {budget.unit}; {budget.neighbours_text}: two data sets like these "
                f"must give nearly the same results.{budget.public_text}"
            )
        )
