"""The parts of the plan: what each publishes, and its share of the budget."""

from fractions import Fraction

import pandas as pd
import streamlit as st

from pages.components.shared.charts import metrics
from pages.components.shared.session import (
    bound,
    change,
    change_fields,
    current,
    escaped,
    forget_typed,
    show_messages,
)
from pages.components.shared.solutions import whole_plan
from rpexplore.common.numbers import exact_fraction
from rpexplore.common.text import joined, rounded
from rpexplore.errors import PlanError
from rpexplore.planning.part_plan import TITLES
from rpexplore.planning.part_shares import stated_shares
from rpexplore.planning.plan import Plan
from rpexplore.privacy.conversions import rho_text
from rpexplore.scenarios.scenario import Scenario

HERE = "sections"
PAGES = {"areas": "pages/areas.py", "counts": "pages/queries.py"}


def sections(scenario: Scenario) -> bool:
    """The whole plan and its split, where there are parts beside tables.

    False if there is no plan of them, which is said then.
    """
    if scenario.kinds == ("tables",):
        return True
    with st.container(border=True):
        st.subheader("Parts of the plan")
        planned = whole_plan(scenario)
        if planned is not None:
            _split(planned, scenario)
        tables_input(scenario)
        if len(scenario.kinds) > 1:
            _shares_input(scenario)
        show_messages(HERE)
        if planned is not None and planned.part("tables") is not None:
            st.caption("The figures below are about the tables, at their share of the budget.")
        with st.container(horizontal=True):
            for kind in scenario.kinds:
                if kind in PAGES:
                    st.page_link(PAGES[kind], label=f"Look at {TITLES[kind].lower()}")
    return planned is not None


def tables_input(scenario: Scenario) -> None:
    """Whether tables are in the plan, where there is something beside them."""
    beside = [kind for kind in scenario.kinds if kind != "tables"]
    if not beside and scenario.asks_for_tables:
        return
    st.checkbox(
        "Tables are part of the plan",
        help="Without them the whole budget is for the other parts. The choice of tables is kept.",
        **bound(
            "asks for tables",
            scenario.asks_for_tables,
            lambda wanted: change_fields(HERE, asks_for_tables=wanted),
        ),
    )


def _split(planned: Plan, scenario: Scenario) -> None:
    """Total, shares and certificate."""
    metrics(
        (
            "Privacy of the whole plan",
            rho_text(planned.rho, 3),
            "; ".join(planned.epsilon_texts[:2]),
        )
    )
    frame = pd.DataFrame(
        {
            "Part": TITLES[part.kind],
            "Share": f"{rounded(100 * planned.shares[part.kind], 3)} %",
            "Publishes": part.full_contents,
        }
        for part in planned.parts
    )
    st.dataframe(frame, hide_index=True, alt="The parts of the plan and their shares")
    if scenario.stated_shares is None and len(planned.parts) > 1:
        st.caption("The shares of the budget are those that serve the objective best.")
    if planned.proven:
        st.markdown(f":material/verified: {escaped(planned.proven)}")


def _shares_input(scenario: Scenario) -> None:
    """The best split of the budget, or shares typed for each part."""
    with st.expander("State the shares", expanded=not scenario.splits_itself):
        stated = scenario.stated_shares or {}
        with st.form("shares", border=False):
            for column, kind in zip(st.columns(len(scenario.kinds)), scenario.kinds, strict=True):
                share = stated.get(kind)
                column.text_input(
                    f"{TITLES[kind]} (%)",
                    value="" if share is None else f"{float(100 * share):.10g}",
                    key=f"share of {kind}",
                )
            with st.container(horizontal=True):
                st.form_submit_button("Use these shares", on_click=_take, args=(scenario.kinds,))
                st.form_submit_button("Use the best shares", on_click=_take, args=((),))


def _take(kinds: tuple[str, ...]) -> None:
    def changed() -> Scenario:
        typed = {kind: st.session_state[f"share of {kind}"].strip() for kind in kinds}
        if not kinds:
            return current().replaced(shares=())
        missing = [TITLES[kind].lower() for kind in kinds if not typed[kind]]
        if missing:
            raise PlanError(f"Type the share of {joined(missing)}, in per cent.")
        shares: dict[str, Fraction] = {
            kind: exact_fraction(text, f"The share of {TITLES[kind].lower()}") / 100
            for kind, text in typed.items()
        }
        return current().replaced(shares=tuple(stated_shares(shares, kinds).items()))

    if change(HERE, changed):
        forget_typed()
