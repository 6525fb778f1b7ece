"""Why this budget, on the Plan page: what the targets take, and the few tables that hold it up."""

import streamlit as st

from pages.components.shared.charts import number, numbers
from pages.components.shared.session import change, current, escaped, show_messages
from pages.components.shared.solutions import targets_minimum
from rpexplore.analysis import binding_targets
from rpexplore.analysis.binding_targets import aim_for_targets
from rpexplore.errors import RpexploreError
from rpexplore.planning.losses.base import Loss
from rpexplore.planning.minimum_budget import MinimumBudget
from rpexplore.privacy.budget import Budget

HERE = "why this budget"


def use(budget: Budget, loss: Loss) -> None:
    change(HERE, lambda: current().replaced(budget=budget, loss=loss))


def can_be_met() -> bool:
    """Whether the musts, where they come first, can be met; the page says so where they cannot."""
    if not current().loss.meets_required_targets:
        return True
    found = targets_minimum(required_only=True)
    if found is None:
        return False
    told = _told(found, required_only=True)
    if told is None or told.is_within:
        return told is not None
    st.error(
        "The targets that must be met cannot all be met at this budget, whatever the others get. "
        "Take a larger budget, make some of the targets below wider, or untick “must” for some on "
        "the Tables page."
    )
    _panel(found, told, current().loss)
    return False


def why_this_budget() -> None:
    """What the targets take; of those that must be met where there are any, else of all.

    Where the present aim does not see to them, it is told for the one that does.
    """
    aim = aim_for_targets(current())
    with st.expander("Why this budget"):
        if aim is None:
            st.markdown(
                "Some tables have a target and others have none. Which budget that takes can be "
                "told once the targets are marked “must” on the Tables page, or every table has "
                "one."
            )
            return
        required_only = aim.meets_required_targets
        found = targets_minimum(required_only)
        told = None if found is None else _told(found, required_only)
        if found is not None and told is not None:
            _panel(found, told, aim)


def _told(found: MinimumBudget, required_only: bool) -> binding_targets.BudgetExplanation | None:
    try:
        return binding_targets.budget_explanation(
            found, current().budget, required_only=required_only
        )
    except RpexploreError as error:
        st.error(escaped(str(error)))
        return None


def _panel(found: MinimumBudget, told: binding_targets.BudgetExplanation, aim: Loss) -> None:
    budget, present = current().budget, current().loss
    if aim != present:
        st.markdown(
            "By the present aim the plan is not made for targets. With the aim "
            f"“{escaped(aim.title)}”:"
        )
    st.markdown(escaped(binding_targets.describe(told)))
    if advice := binding_targets.describe_advice(told):
        st.markdown(escaped(advice))
    st.button(
        f"Use ρ = {told.advised.rho}" + " and this aim" * (aim != present),
        key="use advised budget",
        on_click=use,
        args=(told.advised.budget, aim),
        disabled=told.advised.budget == budget and aim == present,
    )
    show_messages(HERE)
    frame = binding_targets.binding_targets_frame(found, budget, current().request)
    columns = {
        "table": "Table",
        "wanted": "Target",
        "required": "Must",
        "share": st.column_config.NumberColumn("Share of the budget", format="percent"),
        "saved": st.column_config.NumberColumn("Saved if 10 % wider", format="percent"),
        "rho": number("ρ then", frame["rho"]),
    }
    numbers(frame, columns, "why_this_budget.csv", "Tables that hold the budget up")
    st.caption(
        "The shares say whose targets make the smallest budget as large as it is: by how many per "
        "cent it falls when a target variance grows by one per cent. What would be saved follows "
        "from them, so it is approximate."
    )
