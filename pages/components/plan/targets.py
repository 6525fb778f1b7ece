"""Targets on the Plan page: how many are met, the smallest budget for them, and binding targets."""

import streamlit as st

from pages.components.shared.charts import numbers
from pages.components.shared.inputs import required_first_button
from pages.components.shared.session import (
    attempt,
    change_fields,
    current,
    escaped,
    kept,
    show_messages,
)
from pages.components.shared.solutions import (
    budget_of_whole,
    minimum_budget_for_targets,
    optimum,
    part_budget,
)
from rpexplore.analysis import binding_targets
from rpexplore.analysis.binding_targets import BudgetExplanation, objective_for_targets
from rpexplore.analysis.sufficient_budgets import smallest_budget
from rpexplore.analysis.targets_met import of_targets, target_counts
from rpexplore.figures.chart import Column
from rpexplore.planning.losses.losses import Loss
from rpexplore.planning.planner import Optimum
from rpexplore.planning.table_plan import TablePlan

HERE = "targets"


def required_targets_can_be_met() -> bool:
    """Whether they can, for an objective that meets them first; the page says so if not."""
    loss = current().loss
    if not loss.meets_required_targets:
        return True
    explanation = explanation_of_targets(required_only=True)
    if explanation is None:
        return False
    if explanation.is_within:
        return True
    st.error(
        "The required targets cannot all be met at this budget, whatever the other tables get. "
        "Take a larger budget, make some of the targets named below wider, or untick “Required” "
        "for some on the Tables page."
    )
    _binding_targets(explanation, loss)
    return False


def targets_met(planned: TablePlan) -> None:
    """What is met or not, by how much, what that costs, and the budget that the targets take."""
    counts = target_counts(planned)
    solution = optimum()
    if solution is None or counts.targets == 0:
        return
    text = counts.text
    if counts.met < counts.targets:
        first = of_targets(planned, current().request, most=1).iloc[0]
        text += (
            f" Furthest off is {first['table']}: {first['now']} for a target of {first['wanted']}."
        )
    st.markdown(f":material/straighten: **Targets.** {escaped(text)}")
    required_first_button(planned, HERE)
    _cost_to_others(planned)
    if solution.budget is None:  # else the plan is another one at another budget
        _smallest_budget(solution, counts.targets)
    with st.expander("Binding targets"):
        _budget_for_targets()
    show_messages(HERE)


def _cost_to_others(planned: TablePlan) -> None:
    """What targets that are met first cost the tables without one."""
    free = binding_targets.objective_without_required(planned.loss, planned.workload)
    without = None if free is None else optimum(free)
    if without is not None:
        cost = kept(binding_targets.cost_to_others, planned, without)
        st.markdown(f":material/balance: **Cost to the others.** {escaped(cost.text)}")
        if taken := binding_targets.describe_taken(planned, without, current().request):
            st.warning(escaped(taken))


def _smallest_budget(solution: Optimum, targets: int) -> None:
    """The smallest budget that meets all targets with the current objective."""
    budget = part_budget("tables")
    by_rho = bool(current().then)
    enough = attempt(lambda: smallest_budget(solution, budget, by_rho=by_rho), show=st.info)
    if enough is None:
        return
    left, right = st.columns([3, 2], vertical_alignment="center")
    left.markdown(
        f"The smallest budget that meets {'the target' if targets == 1 else 'all targets'} with "
        f"this objective is {escaped(enough.text)}: {escaped(enough.compared)}."
    )
    right.button(
        "Use this budget",
        key="use smallest budget",
        on_click=change_fields,
        args=(HERE,),
        kwargs={"budget": budget_of_whole("tables", enough.budget)},
        disabled=enough.is_stated_as(budget),
    )


def _budget_for_targets() -> None:
    """The smallest budget for the required targets, or for all where none is required.

    Where the current objective ignores them, it is that of an objective which meets them.
    """
    objective = objective_for_targets(current())
    if objective is None:
        st.markdown(
            "Some tables have a target and others have none. The smallest budget for the targets "
            "can be worked out once they are required (on the Tables page), or every table has one."
        )
        return
    if explanation := explanation_of_targets(objective.meets_required_targets):
        _binding_targets(explanation, objective)


def explanation_of_targets(required_only: bool) -> BudgetExplanation | None:
    """The smallest budget for targets, and what it means; None, and the page says why, without."""
    minimum, budget = minimum_budget_for_targets(required_only), part_budget("tables")
    by_rho = bool(current().then)
    return minimum and attempt(
        lambda: binding_targets.budget_explanation(
            minimum, budget, required_only=required_only, by_rho=by_rho
        )
    )


def _binding_targets(explanation: BudgetExplanation, objective: Loss) -> None:
    """The smallest budget for the targets with an objective that meets them, and its reasons."""
    budget, present = part_budget("tables"), current().loss
    if objective != present:
        st.markdown(
            "The current objective ignores targets. With the objective "
            f"“{escaped(objective.title)}”:"
        )
    st.markdown(escaped(binding_targets.describe_binding(explanation)))
    if advice := binding_targets.describe_advice(explanation):
        st.markdown(escaped(advice))
    # With the current objective alone, the button above does the same.
    if objective != present or not present.is_homogeneous:
        advised = explanation.advised
        label = f"Use ρ = {advised.rho}"
        if objective != present:
            label += " and this objective"
        st.button(
            label,
            key="use advised budget",
            on_click=change_fields,
            args=(HERE,),
            kwargs={"budget": budget_of_whole("tables", advised.budget), "loss": objective},
            disabled=advised.is_stated_as(budget) and objective == present,
        )
    if len(explanation.minimum.tables) == 1:
        return  # the sentences say it all
    frame = binding_targets.binding_targets_frame(explanation.minimum, budget, current().request)
    columns = {
        "table": Column("table", "text"),
        "wanted": Column("target", "text"),
        "required": Column("required", "text"),
        "share": Column("share of the smallest budget", "share", term="Binding targets"),
        "saved": Column("saving if 10 % wider", "share"),
        "rho": Column("smallest ρ then"),
    }
    numbers(frame, columns, "binding_targets.csv", "Binding targets")
