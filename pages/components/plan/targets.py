"""Targets on the Plan page: how many are met, and the smallest budget that meets them all."""

import streamlit as st

from pages.components.shared.session import change, current, escaped, show_messages
from pages.components.shared.solutions import optimum
from rpexplore.analysis.accuracy import headline
from rpexplore.analysis.sufficient_budgets import smallest_budget
from rpexplore.analysis.target_curves import has_targets
from rpexplore.analysis.targets_met import of_targets, target_counts
from rpexplore.errors import RpexploreError
from rpexplore.planning.plan import Plan
from rpexplore.privacy.budget import Budget

HERE = "targets met"


def use(budget: Budget) -> None:
    change(HERE, lambda: current().replaced(budget=budget))


def targets_met(planned: Plan) -> bool:
    """What is met, what is not and by how much, and a button for just enough budget.

    Returns whether there are targets.
    """
    solution = optimum()
    if solution is None or not has_targets(solution)[0]:
        return False
    budget, top = current().budget, headline(planned)
    met = top.targets_met == top.targets
    words = target_counts(planned).text
    if not met:
        first = of_targets(planned, current().request, most=1).iloc[0]
        words += (
            f" Furthest off is {first['table']}: {first['now']} for a target of {first['wanted']}."
        )
    st.markdown(f":material/straighten: **Targets.** {escaped(words)}")
    if solution.budget is not None:  # the plan with this objective is another one at another budget
        return True
    try:
        enough = smallest_budget(solution, budget)
    except RpexploreError as error:
        st.info(escaped(str(error)))
        return True
    left, right = st.columns([3, 2], vertical_alignment="center")
    left.markdown(
        f"The smallest budget that meets {'the target' if top.targets == 1 else 'all targets'} "
        f"with this objective is {escaped(enough.text)}: {escaped(enough.compared)}."
    )
    right.button(
        "Use this budget",
        key="use smallest budget",
        on_click=use,
        args=(enough.budget,),
        disabled=enough.budget == budget,
    )
    show_messages(HERE)
    return True
