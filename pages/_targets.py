"""Targets on the Plan page: how many are met, and the smallest budget that meets them all."""

import streamlit as st

from pages._optima import optimum
from pages._session import change, current, escaped, show_messages
from rpexplore.analysis.standard_errors import headline, targets_met_in_words
from rpexplore.analysis.sufficient_budgets import smallest_budget
from rpexplore.analysis.target_curves import has_targets, last_to_be_met
from rpexplore.budget import Budget
from rpexplore.errors import RpexploreError
from rpexplore.plan import Plan
from rpexplore.words import rounded

HERE = "targets met"


def use(budget: Budget) -> None:
    change(HERE, lambda: current().replaced(budget=budget))


def targets_met(planned: Plan) -> None:
    """What is met, what is not and by how much, and a button to ask for just enough budget."""
    solution = optimum()
    if solution is None or not has_targets(solution)[0]:
        return
    budget, top = current().budget, headline(planned)
    met = top.targets_met == top.targets
    words = targets_met_in_words(top.targets_met, top.targets)
    if not met:
        first = last_to_be_met(solution, budget).iloc[0]
        words += (
            f" Furthest off is {first['table']}: σ = {rounded(first['standard_error'], 3)} for a "
            f"target of {rounded(first['target'], 3)}."
        )
    (st.success if met else st.warning)(escaped(words))
    try:
        enough = smallest_budget(solution, budget)
    except RpexploreError as error:
        st.info(escaped(str(error)))
        return
    left, right = st.columns([3, 2], vertical_alignment="center")
    left.markdown(
        f"The smallest budget that meets {'the target' if top.targets == 1 else 'all targets'} "
        f"with this aim is {escaped(enough.words)}: {escaped(enough.compared)}."
    )
    right.button(
        "Use this budget",
        key="use smallest budget",
        on_click=use,
        args=(enough.budget,),
        disabled=enough.budget == budget,
    )
    show_messages(HERE)
