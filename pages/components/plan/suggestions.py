"""What would make a table good enough: proposals on the Plan page, each applied with one click."""

from dataclasses import replace

import streamlit as st

from pages.components.shared.background import worked_out
from pages.components.shared.session import change, current, escaped, say, show_messages
from pages.components.shared.solutions import budget_of_whole
from rpexplore.analysis.forecast import Forecast
from rpexplore.analysis.suggestions import Proposal, suggestions
from rpexplore.common.text import describe_share
from rpexplore.planning.table_plan import TablePlan
from rpexplore.scenarios.scenario import Scenario
from rpexplore.scenarios.table_changes import changed_by
from rpexplore.workload.rules import PEOPLE

HERE = "suggestions"


def suggested(planned: TablePlan, table: int, made: Forecast | None) -> None:
    """The proposals for a table, the best first; judged by a rule about its people, if one is."""
    show_messages(HERE)
    if made is None or made.drawn is None:
        if current().expected is None:
            st.caption("With expected counts, you see here what would make the table good enough.")
        return
    limit, share = made.limit, made.share
    for rule in made.rules:
        if rule.of == PEOPLE and table in rule.places(planned.workload):
            limit, share = float(rule.cv), float(rule.share)
    attributes = planned.workload.tables[table]
    made_for = planned, made.drawn, limit, share, (attributes,), 1, made.survey
    suggested = worked_out(suggestions, *made_for)
    if suggested is None:
        return
    (found,) = suggested
    if found.people.low >= share:
        st.caption("The table meets the rule already.")
        return
    st.caption(
        f"Wanted: {describe_share(share)} of {escaped(made.whom)} in good cells. At the same "
        "budget, unless a larger one is named."
    )
    for number, proposal in enumerate(found.proposals):
        text, button = st.columns([5, 1], vertical_alignment="center")
        text.markdown(escaped(proposal.text(made.whom)))
        button.button("Apply", key=f"apply {number}", on_click=_apply, args=(proposal,))


def _apply(proposal: Proposal) -> None:
    wanted = proposal.change

    def changed() -> Scenario:
        if wanted.budget is None:
            return changed_by(current(), wanted)
        return changed_by(
            current(), replace(wanted, budget=budget_of_whole("tables", wanted.budget))
        )

    if change(HERE, changed):
        say(HERE, "success", f"Applied: {wanted.text}. Undo takes it back.")
