"""The way out where a required target is missed by an objective that does not see to it."""

import streamlit as st

from pages.components.shared.session import change_fields, current
from rpexplore.analysis.targets_met import target_counts
from rpexplore.planning.losses.constrained import SumWithinTargets
from rpexplore.planning.table_plan import TablePlan


def required_first_button(planned: TablePlan, here: str) -> None:
    """Offered while it would change something. here: where refusals of the change are told."""
    counts = target_counts(planned)
    if counts.required_met == counts.required or current().loss.meets_required_targets:
        return
    st.button(
        "Put required targets first",
        help="At the same budget: required targets are met if the budget allows it, and the error "
        "of the other tables is then as small as it can be.",
        on_click=change_fields,
        args=(here,),
        kwargs={"loss": SumWithinTargets(getattr(current().loss, "weighting", "equal"))},
        key=f"required first, {here}",
    )
