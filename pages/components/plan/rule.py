"""The rule on the Plan page: a field, the budget at which all tables meet it, a plan for it."""

import streamlit as st

from pages.components.shared.background import worked_out
from pages.components.shared.session import (
    bound,
    change,
    change_fields,
    current,
    escaped,
    show_messages,
)
from pages.components.shared.solutions import budget_of_whole, optimum, part_budget
from rpexplore.analysis.forecast import Forecast
from rpexplore.analysis.glossary import meaning
from rpexplore.analysis.rule_targets import RuleTargets, budget_with_objective
from rpexplore.analysis.sufficient_budgets import TARGET_LOSS, SufficientBudget, smallest_budget
from rpexplore.errors import BudgetError
from rpexplore.scenarios.scenario import Scenario
from rpexplore.scenarios.table_settings import TableSetting
from rpexplore.serving.planning_tasks import solve_for_rule
from rpexplore.workload.rules import EXAMPLE, SURELY, Rule, rules_from_text, rules_of

HERE = "rule"
_WANTED = "tables to be planned for the rule"
_DOING = "Working out the budget for the rule"
_MOST_TABLES = 1000  # that get a target of their own in the scenario


def rule_input() -> None:
    """What the tables must be good enough for, as people type it."""

    def take(typed: str) -> None:
        tables = current().workload
        change(
            HERE,
            lambda: current().replaced(
                rules=rules_of(tables, rules_from_text(tables.domain, typed))
            ),
        )

    st.text_input(
        "Rule that tables must meet",
        placeholder=EXAMPLE,
        help=f"{meaning('Rule')} Several are separated by semicolons.",
        **bound("typed rule", "; ".join(map(str, current().rules)), take),
    )
    show_messages(HERE)


def budget_for_rule(made: Forecast) -> None:
    """The budgets at which all tables meet the rule: with the present objective, or one for it."""
    label = "Budget at which all do"
    assert made.drawn is not None
    rules = made.rules or (Rule(made.limit, made.share),)
    ruled = worked_out(RuleTargets.worked_out, rules, made.drawn, made.survey, doing=_DOING)
    solution = optimum()
    if ruled is None or solution is None:
        return
    budget, remark = part_budget("tables"), ruled.reason
    enough = surely = None
    try:
        enough = budget_with_objective(ruled, solution, budget)
        surely = budget_with_objective(ruled, solution, budget, SURELY)
    except BudgetError as error:
        remark = str(error)
    if enough is not None:
        remark = f"surely {'at none' if surely is None else f'from {surely.short_text}'}"
    st.metric(label, "–" if enough is None else enough.short_text, help=meaning("Rule"))
    st.caption(escaped(remark) or "With this objective each budget has a plan of its own.")
    if ruled.reason:
        return
    with st.container(horizontal=True, gap="small"):
        if enough is not None:
            st.button(
                "Take it",
                key="budget for rule",
                help="The smallest budget at which every table meets the rule, with this "
                "objective. The rule stays with the scenario and the plan.",
                on_click=change_fields,
                args=("plan",),
                kwargs={
                    "budget": budget_of_whole("tables", enough.budget),
                    "rules": ruled.rules,
                },
                disabled=enough.is_stated_as(budget),
            )
        _plan_for_rule(ruled)


# ---- The rule as the objective: each table gets the target that the rule comes to.


def _plan_for_rule(ruled: RuleTargets) -> None:
    """A button that looks for the smallest budget of all plans, and takes the plan it finds."""
    if len(ruled.tables) > _MOST_TABLES or not ruled.is_about_all:
        return  # tables without a target would get nothing
    key = ruled.tables, ruled.rules, ruled.counts
    if st.session_state.get(_WANTED) != key:
        st.button(
            "Use this rule",
            key="plan for rule",
            help="Makes the rule the objective, at the smallest budget of all plans that meet it: "
            "every table gets the target that the rule comes to. The rule stays with the scenario "
            "and the plan. Undo takes it back.",
            on_click=st.session_state.update,
            args=({_WANTED: key},),
        )
        return
    budget = part_budget("tables")
    solved = worked_out(solve_for_rule, ruled, current().uniform_reference)
    if solved is None:
        return
    del st.session_state[_WANTED]
    try:
        smallest = smallest_budget(solved, budget)
    except BudgetError as error:
        st.caption(escaped(str(error)))
        return
    _take(ruled, smallest)
    st.rerun()


def _take(ruled: RuleTargets, enough: SufficientBudget) -> None:
    targets = zip(ruled.tables.tables, ruled.targets().tolist(), strict=True)
    weights = dict(zip(ruled.tables.tables, ruled.tables.weights.tolist(), strict=True))

    def changed() -> Scenario:
        settings = [TableSetting(table, weights[table], target) for table, target in targets]
        budget = budget_of_whole("tables", enough.budget)
        changed = current().with_settings(settings)
        return changed.replaced(loss=TARGET_LOSS, budget=budget, rules=ruled.rules)

    change(HERE, changed)
