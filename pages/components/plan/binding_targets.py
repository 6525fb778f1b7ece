"""Why this budget, on the Plan page: the budget that targets take, and the binding targets."""

import streamlit as st

from pages.components.shared.charts import number, numbers
from pages.components.shared.session import change, current, escaped, show_messages
from pages.components.shared.solutions import minimum_budget_for_targets
from rpexplore.analysis import binding_targets
from rpexplore.analysis.binding_targets import objective_for_targets
from rpexplore.errors import RpexploreError
from rpexplore.planning.losses.base import Loss
from rpexplore.planning.minimum_budget import MinimumBudget
from rpexplore.privacy.budget import Budget

HERE = "why this budget"


def use(budget: Budget, loss: Loss) -> None:
    change(HERE, lambda: current().replaced(budget=budget, loss=loss))


def can_be_met() -> bool:
    """Whether required targets that come first can be met; the page says so where they cannot."""
    if not current().loss.meets_required_targets:
        return True
    found = minimum_budget_for_targets(required_only=True)
    if found is None:
        return False
    told = _told(found, required_only=True)
    if told is None or told.is_within:
        return told is not None
    st.error(
        "The required targets cannot all be met at this budget, whatever the other tables get. "
        "Take a larger budget, make some of the targets below wider, or untick “Required” for some "
        "on the Tables page."
    )
    _panel(found, told, current().loss)
    return False


def why_this_budget() -> None:
    """The budget that the required targets take, or all targets where none is required.

    Where the current objective ignores them, it is that of an objective which meets them.
    """
    objective = objective_for_targets(current())
    with st.expander("Why this budget"):
        if objective is None:
            st.markdown(
                "Some tables have a target and others have none. The budget that the targets take "
                "can be worked out once they are required (on the Tables page), or every table has "
                "one."
            )
            return
        required_only = objective.meets_required_targets
        found = minimum_budget_for_targets(required_only)
        told = None if found is None else _told(found, required_only)
        if found is not None and told is not None:
            _panel(found, told, objective)


def _told(found: MinimumBudget, required_only: bool) -> binding_targets.BudgetExplanation | None:
    try:
        return binding_targets.budget_explanation(
            found, current().budget, required_only=required_only
        )
    except RpexploreError as error:
        st.error(escaped(str(error)))
        return None


def _panel(found: MinimumBudget, told: binding_targets.BudgetExplanation, objective: Loss) -> None:
    budget, present = current().budget, current().loss
    if objective != present:
        st.markdown(
            "The current objective ignores targets. With the objective "
            f"“{escaped(objective.title)}”:"
        )
    st.markdown(escaped(binding_targets.describe(told)))
    if advice := binding_targets.describe_advice(told):
        st.markdown(escaped(advice))
    st.button(
        f"Use ρ = {told.advised.rho}" + " and this objective" * (objective != present),
        key="use advised budget",
        on_click=use,
        args=(told.advised.budget, objective),
        disabled=told.advised.budget == budget and objective == present,
    )
    show_messages(HERE)
    frame = binding_targets.binding_targets_frame(found, budget, current().request)
    columns = {
        "table": "Table",
        "wanted": "Target",
        "required": "Required",
        "share": st.column_config.NumberColumn("Share of the budget", format="percent"),
        "saved": st.column_config.NumberColumn("Saved if 10 % wider", format="percent"),
        "rho": number("ρ then", frame["rho"]),
    }
    numbers(frame, columns, "why_this_budget.csv", "Binding targets")
    st.caption(
        "Binding targets make the smallest budget as large as it is. The share of a target is by "
        "how many per cent that budget falls when the target variance grows by one per cent. The "
        "saving follows from the shares and is approximate."
    )
