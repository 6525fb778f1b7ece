"""The rule on the Plan page: a field, and the budget at which all tables meet it."""

import streamlit as st

from pages.components.shared.session import (
    attempt,
    bound,
    change,
    change_fields,
    current,
    escaped,
    kept,
    show_messages,
)
from pages.components.shared.solutions import budget_of_whole, optimum, part_budget
from rpexplore.analysis.drawn_counts import DrawnCounts
from rpexplore.analysis.forecast import Forecast
from rpexplore.analysis.glossary import meaning
from rpexplore.analysis.rule_targets import RuleTargets, budget_with_objective, describe_meeting
from rpexplore.workload.rules import EXAMPLE, Rule, rules_from_text, rules_of
from rpexplore.workload.workload import Workload

HERE = "rule"


def rule_input() -> None:
    """What the tables must be good enough for, as people type it."""

    def take(typed: str) -> None:
        change(HERE, lambda: current().replaced(rules=typed_rules(typed)))

    def typed_rules(typed: str) -> tuple[Rule, ...]:
        tables = current().workload
        return rules_of(tables, rules_from_text(tables.domain, typed))

    st.text_input(
        "Rule that tables must meet",
        placeholder=EXAMPLE,
        help=f"{meaning('Rule')} Several are separated by semicolons.",
        **bound("typed rule", "; ".join(map(str, current().rules)), take),
    )
    show_messages(HERE)
    if current().rules and current().expected is None:
        st.caption("Type or load expected counts to see which tables meet it.")


def budget_for_rule(made: Forecast, drawn: DrawnCounts) -> None:
    """How many tables meet the rule, and a button for the budget at which all do."""
    ruled = kept(_ruled, drawn.workload, made.rules, drawn)
    st.caption(escaped(describe_meeting(made)))
    if ruled.reason:
        st.warning(escaped(ruled.reason))
        return
    solution = optimum()
    if solution is None:
        return
    budget = part_budget("tables")
    enough = attempt(lambda: budget_with_objective(ruled, solution, budget))
    if enough is not None:
        st.button(
            f"All meet it from {enough.short_text}",
            key="budget for rule",
            help="The smallest budget at which every table meets the rule, with this objective.",
            on_click=change_fields,
            args=("plan",),
            kwargs={"budget": budget_of_whole("tables", enough.budget)},
            disabled=enough.budget == budget,
        )


def _ruled(tables: Workload, rules: tuple[Rule, ...], drawn: DrawnCounts) -> RuleTargets:
    return RuleTargets(tables, rules, drawn=drawn)
