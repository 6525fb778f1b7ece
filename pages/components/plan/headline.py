"""The answer of the Plan page: people in good cells, the rule and the budget for it, margin."""

from dataclasses import dataclass, replace

import streamlit as st

from pages.components.shared.background import worked_out
from pages.components.shared.expected_counts import expected_total_input
from pages.components.shared.session import (
    bound,
    change,
    change_fields,
    current,
    escaped,
    show_messages,
)
from pages.components.shared.solutions import budget_of_whole, optimum, part_budget
from rpexplore.analysis import accuracy
from rpexplore.analysis.accuracy import Headline
from rpexplore.analysis.budget_units import stated_text
from rpexplore.analysis.forecast import Forecast
from rpexplore.analysis.glossary import meaning
from rpexplore.analysis.rule_targets import RuleTargets, budget_with_objective
from rpexplore.analysis.sufficient_budgets import TARGET_LOSS, SufficientBudget, smallest_budget
from rpexplore.common.text import capitalised, describe_share, rounded
from rpexplore.errors import BudgetError
from rpexplore.planning.table_plan import TablePlan
from rpexplore.scenarios.scenario import Scenario
from rpexplore.scenarios.table_settings import TableSetting
from rpexplore.serving.planning_tasks import solve_for_rule
from rpexplore.workload.rules import EXAMPLE, SURELY, Rule, rules_from_text, rules_of

ANSWER = "answer of the plan"
_LEAST_POINTS = 0.05  # a change of the share by less counts as none


@dataclass(frozen=True, eq=False)
class Answer:
    """What the page says of a plan; people: the median share in good cells, if there is one."""

    plan: TablePlan
    limit: float
    top: Headline
    people: float | None


def headline(planned: TablePlan, made: Forecast | None) -> None:
    """Four figures, each with its range and its change since the last move."""
    now, before = _answers(planned, made)
    noun = escaped(current().record_noun)
    with st.container(key="figures"):
        if made is None and current().expected is None:
            with st.container(border=True):
                st.markdown(
                    "**Is that accurate enough?** Type about how many there will be, as far as "
                    "that is public, and see how many are in good cells."
                )
                expected_total_input()
        if made is not None:
            with st.container(border=True, gap="xxsmall", key="people"):
                _people(made, now, before)
            with st.container(border=True, gap="xxsmall"):
                low, median, high = made.meeting.texts(lambda value: f"{round(value):,}")
                of = int(made.judged.sum())
                st.metric("Tables that meet the rule", f"{median} of {of:,}", help=meaning("Rule"))
                said = f"{_range(low, high)}. {escaped(capitalised(made.criterion))}"
                one_by_one = f"{made.n_meeting():,}"
                if one_by_one != median:  # so many tables, and not always the same ones
                    said += f". Judged one by one, by their medians, {one_by_one} meet it"
                st.caption(f"{said}. {escaped(made.left_out_text)}" if made.left_out_text else said)
            with st.container(border=True, gap="xxsmall"):
                budget_for_rule(made)
        with st.container(border=True, gap="xxsmall"):
            _margin(now, before, noun)


def former_plan() -> TablePlan | None:
    """The plan before the last change, where that had the same tables."""
    before = st.session_state.get(ANSWER, (None, None))[1]
    return None if before is None else before.plan


def _answers(planned: TablePlan, made: Forecast | None) -> tuple[Answer, Answer | None]:
    """The answer, and the one before the last change, where that had the same tables."""
    people = None if made is None else made.people.median
    now, before = st.session_state.get(ANSWER, (None, None))
    limit = current().cv_limit
    if now is None or (now.plan, now.limit, now.people) != (planned, limit, people):
        same = now is not None and now.plan.workload.has_tables_of(planned.workload)
        now, before = Answer(planned, limit, accuracy.headline(planned), people), now
        before = before if same else None
        st.session_state[ANSWER] = now, before
    return now, before


def _people(made: Forecast, now: Answer, before: Answer | None) -> None:
    low, median, high = made.people.texts(describe_share)
    points = None
    if before is not None and before.people is not None and now.people is not None:
        points = 100 * (now.people - before.people)
    moved = points is not None and abs(points) >= _LEAST_POINTS
    st.metric(
        f"{escaped(capitalised(made.whom))} in good cells",
        median,
        f"{rounded(points, 2)} points" if moved and points is not None else None,
        delta_description=_since(now, before) if moved else None,
        help=meaning("Good cell"),
    )
    cells = made.cells.text(describe_share)
    st.caption(escaped(f"{_range(low, high)}. Good cells: {cells}"))


def _margin(now: Answer, before: Answer | None, noun: str) -> None:
    """The margin of error of the median table, and that of the least accurate one."""
    top = now.top
    less = None if before is None else rounded(top.median_margin - before.top.median_margin, 2)
    st.metric(
        f"95 % margin of error, {top.median_of}",
        f"±{rounded(top.median_margin, 3)} {noun}",
        less if less != "0" else None,
        delta_color="inverse",
        help=meaning("Margin of error"),
        delta_description=_since(now, before) if less and less != "0" else None,
    )
    if top.largest_text != top.median_text:
        largest = f"at most ±{rounded(top.largest_margin, 3)}"
        st.caption(f"{capitalised(largest)}: {escaped(top.least_accurate_table)}")


def _range(low: str, high: str) -> str:
    return f"{low} to {high}" if low != high else "For certain"


def _since(now: Answer, before: Answer | None) -> str:
    if before is None:
        return "since the last change"
    # The same (ε, δ) is another ρ with a rest that is planned behind a pilot.
    then, present = stated_text(before.plan.budget), stated_text(now.plan.budget)
    return "since the last change" if then == present else f"since {then}"


# ---- The rule on the Plan page: a field, the budget at which all tables meet it, a plan for it.


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
    by_rho = bool(current().then)
    try:
        enough = budget_with_objective(ruled, solution, budget, by_rho=by_rho)
        surely = budget_with_objective(ruled, solution, budget, SURELY, by_rho=by_rho)
    except BudgetError as error:
        remark = str(error)
    if enough is not None:
        remark = f"surely {'at none' if surely is None else f'from {_text_of_whole(surely)}'}"
        remark = f"By the median of each table's forecast; {remark}"
    st.metric(label, "–" if enough is None else _text_of_whole(enough), help=meaning("Rule"))
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


def _text_of_whole(of_tables: SufficientBudget) -> str:
    """The budget of the whole plan at which its tables have this one."""
    return replace(of_tables, budget=budget_of_whole("tables", of_tables.budget)).short_text


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
        smallest = smallest_budget(solved, budget, by_rho=bool(current().then))
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
