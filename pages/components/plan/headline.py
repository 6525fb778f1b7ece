"""The answer of the Plan page: people in good cells, tables that meet the rule, budget, margin."""

from dataclasses import dataclass

import streamlit as st

from pages.components.plan.rule import budget_for_rule
from pages.components.shared.expected_counts import expected_total_input
from pages.components.shared.session import current, escaped
from rpexplore.analysis import accuracy
from rpexplore.analysis.accuracy import Headline
from rpexplore.analysis.budget_units import stated_text
from rpexplore.analysis.forecast import Forecast
from rpexplore.analysis.glossary import meaning
from rpexplore.common.text import capitalised, describe_share, rounded
from rpexplore.planning.table_plan import TablePlan

HERE = "answer of the plan"
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
                st.caption(f"{_range(low, high)}. {escaped(capitalised(made.criterion))}")
            with st.container(border=True, gap="xxsmall"):
                budget_for_rule(made)
        with st.container(border=True, gap="xxsmall"):
            _margin(now, before, noun)


def former_plan() -> TablePlan | None:
    """The plan before the last change, where that had the same tables."""
    before = st.session_state.get(HERE, (None, None))[1]
    return None if before is None else before.plan


def _answers(planned: TablePlan, made: Forecast | None) -> tuple[Answer, Answer | None]:
    """The answer, and the one before the last change, where that had the same tables."""
    people = None if made is None else made.people.median
    now, before = st.session_state.get(HERE, (None, None))
    limit = current().cv_limit
    if now is None or (now.plan, now.limit, now.people) != (planned, limit, people):
        same = now is not None and now.plan.workload.has_tables_of(planned.workload)
        now, before = Answer(planned, limit, accuracy.headline(planned), people), now
        before = before if same else None
        st.session_state[HERE] = now, before
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
    if before is None or now.plan.budget == before.plan.budget:
        return "since the last change"
    return f"since {stated_text(before.plan.budget)}"
