"""What would make a table good enough: proposals on the Plan page, each applied with one click."""

from dataclasses import replace

import streamlit as st

from pages.components.shared.background import worked_out
from pages.components.shared.session import change, current, escaped, say, show_messages
from pages.components.shared.solutions import budget_of_whole
from rpexplore.analysis.drawn_counts import DrawnCounts
from rpexplore.analysis.forecast import GOOD_SHARE
from rpexplore.analysis.suggestions import Proposal, TableSuggestions, suggestions
from rpexplore.common.processes import Progress
from rpexplore.common.text import describe_share
from rpexplore.domain.survey import SurveyDesign
from rpexplore.planning.table_plan import TablePlan
from rpexplore.scenarios.scenario import Scenario
from rpexplore.scenarios.table_changes import changed_by

HERE = "suggestions"


def suggested(planned: TablePlan, table: int, drawn: DrawnCounts | None) -> None:
    """The proposals for a table, the best first."""
    show_messages(HERE)
    if drawn is None:
        st.caption("With expected counts, you see here what would make the table good enough.")
        return
    scenario, attributes = current(), planned.workload.tables[table]
    design = scenario.design and scenario.design.among(planned.workload.tables)
    made = worked_out(_suggested, planned, drawn, scenario.cv_limit, attributes, design)
    if made is None:
        return
    noun = escaped(current().record_noun)
    st.caption(
        f"Now {made.people.text(describe_share)} of the {noun} are in good cells; wanted are "
        f"{describe_share(GOOD_SHARE)}. Proposals are planned at the same budget, unless they are "
        "more budget."
    )
    for number, proposal in enumerate(made.proposals):
        with st.container(horizontal=True, vertical_alignment="center", key=f"proposal {number}"):
            st.markdown(escaped(proposal.text(current().record_noun)))
            st.button(
                "Apply", key=f"apply {number}", on_click=_apply, args=(proposal,), type="tertiary"
            )


def _suggested(
    planned: TablePlan,
    drawn: DrawnCounts,
    limit: float,
    table: tuple[str, ...],
    design: SurveyDesign | None,
    on_progress: Progress,
) -> TableSuggestions:
    (made,) = suggestions(
        planned, drawn, limit, GOOD_SHARE, [table], survey=design, on_progress=on_progress
    )
    return made


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
