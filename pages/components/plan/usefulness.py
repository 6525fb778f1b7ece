"""The answer of the Plan page: how much is publishable, how accurate it is, and what changed."""

from dataclasses import dataclass

import streamlit as st

from pages.components.plan.objective import LETTERS
from pages.components.shared.charts import chart_with_numbers
from pages.components.shared.expected_counts import (
    expected_total_input,
    judged_cells,
    usefulness_of,
)
from pages.components.shared.session import attempt, change_fields, current, escaped, kept
from pages.components.shared.solutions import budget_of_whole, optimum, part_budget
from rpexplore.analysis import accuracy
from rpexplore.analysis.accuracy import Headline
from rpexplore.analysis.budget_curves import publishable_at, publishable_by_budget
from rpexplore.analysis.budget_units import stated_text, stated_unit
from rpexplore.analysis.glossary import meaning
from rpexplore.analysis.sufficient_budgets import budgets_for_shares
from rpexplore.analysis.usefulness import (
    Usefulness,
    points_since,
)
from rpexplore.common.text import capitalised, describe_share, rounded
from rpexplore.figures.budget_curves import publishable_share_chart
from rpexplore.figures.queries import share_rows
from rpexplore.planning.table_plan import TablePlan

HERE = "usefulness"
EVENLY = "Publishable cells, if counts were even"
"""What is not public is spread evenly over the cells: the forecast above draws it instead."""


@dataclass(frozen=True, eq=False)
class Answer:
    """What the page says of a plan, and is compared with when the next one comes."""

    plan: TablePlan
    top: Headline
    useful: Usefulness | None

    @classmethod
    def of(cls, plan: TablePlan, useful: Usefulness | None) -> "Answer":
        return cls(plan, accuracy.headline(plan), useful)


def usefulness(planned: TablePlan) -> None:
    """The headline with its change since the last move, and the rows by number of attributes."""
    now, before = _answers(planned)
    _headline(now, before)
    # A plan with strategies is proven best among those with the same strategies.
    strategies = planned.closure.strategies
    best_for = "what is measured" if strategies else "this objective"
    st.markdown(
        f":material/verified: **Proven optimal for {best_for}.** {escaped(planned.proven)}",
        help=f"{meaning('Optimality')} "
        f"The proven gap is {rounded(planned.certificate.gap, 2, 'up')} of the objective.",
    )
    if now.useful is None:
        st.markdown(
            "**Is that accurate enough?** Type how many there will be, about (only what is already "
            "public), and every accuracy is shown beside the counts."
        )
        expected_total_input()
    _rows(now, before)
    if now.useful is not None and now.useful.cells.left_out:
        st.caption(escaped(now.useful.cells.left_out_text))


def former_plan() -> TablePlan | None:
    """The plan before the last change, where that had the same tables."""
    before = st.session_state.get(HERE, (None, None))[1]
    return None if before is None else before.plan


def _answers(planned: TablePlan) -> tuple[Answer, Answer | None]:
    """The answer, and the one before the last change, where that had the same tables."""
    useful = usefulness_of(planned)
    now, before = st.session_state.get(HERE, (None, None))
    if now is None or (now.plan, now.useful) != (planned, useful):
        same = now is not None and now.plan.workload.has_tables_of(planned.workload)
        now, before = Answer.of(planned, useful), now if same else None
        st.session_state[HERE] = now, before
    return now, before


def _headline(now: Answer, before: Answer | None) -> None:
    top, record_noun = now.top, escaped(current().record_noun)
    since = "" if before is None else _since(now, before)
    with st.container(key="figures"):
        if now.useful is not None:
            former = None if before is None else before.useful
            points = None if former is None else points_since(now.useful, former)
            with st.container(key="publishable"):
                st.metric(
                    EVENLY,
                    now.useful.share_text,
                    f"{rounded(points, 2)} points" if points else None,
                    delta_description=since if points else None,
                    help=meaning("Publishable share"),
                    border=True,
                )
        former_top = None if before is None else before.top
        # Of one table whose cells are alike, both say the same.
        for text, (margin, former_margin) in {
            top.median_text: (top.median_margin, former_top and former_top.median_margin),
            top.largest_text: (top.largest_margin, former_top and former_top.largest_margin),
        }.items():
            less = None if former_margin is None else margin - former_margin
            st.metric(
                f"{capitalised(text)}, 95 %",
                f"±{rounded(margin, 3)} {record_noun}",
                rounded(less, 2) if less else None,
                delta_color="inverse",
                help=meaning("Margin of error"),
                delta_description=since if less else None,
                border=True,
            )
    even = "Publishable if counts were even"
    useful = "" if now.useful is None else f"{even}: {now.useful.tables_text}. "
    smooth = ""
    if current().request.smooth_weights is not None:
        smooth = (
            " All this is of unbiased tables; the smooth ones, for which the weights are, can be "
            "rehearsed below."
        )
    st.caption(f"{useful}Standard error: {escaped(top.errors_text)}.{smooth}")


def _since(now: Answer, before: Answer) -> str:
    if now.plan.budget == before.plan.budget:
        return "since the last change"
    return f"since {stated_text(before.plan.budget)}"


def _rows(now: Answer, before: Answer | None) -> None:
    """One row a number of attributes, with bars where there are expected counts."""
    record_noun = current().record_noun
    if now.useful is None:
        st.html(share_rows(accuracy.margins_by_order(now.plan), record_noun))
        return
    frame, former = now.useful.by_order(), []
    if before is not None and before.useful is not None:
        former = before.useful.by_order()["share"].tolist()
    st.html(share_rows(frame.rename(columns={"attributes": "name"}), record_noun, former))
    limit = f"{100 * now.useful.cv_limit:g} %"
    has_design = now.useful.cells.survey is not None
    of_what = "total error (CV of noise and sampling)" if has_design else "coefficient of variation"
    st.caption(
        f"Publishable: cells with a {of_what} of at most {limit}."
        f"{' Tick: before the last change.' if former else ''}"
        f" Expected counts: {escaped(now.useful.cells.expected.text)}."
    )
    levels = now.useful.by_level()
    if len(levels):
        with st.expander("Publishable cells by level of a hierarchy"):
            names = levels["attribute"] + ": " + levels["level"]
            st.html(share_rows(levels.assign(name=names), record_noun))


def budgets_for_shares_input() -> None:
    """Buttons for the smallest budgets at which 50, 80 and 95 % of the cells are publishable."""
    solution, cells = optimum(), judged_cells(current().workload)
    if solution is None or solution.budget is not None or cells is None or not cells.held.any():
        return
    budget = part_budget("tables")
    budgets = attempt(lambda: kept(budgets_for_shares, solution, budget, cells, current().cv_limit))
    if not budgets:
        return
    st.caption("Smallest budget for a publishable share of")
    with st.container(horizontal=True, gap="xsmall"):
        for share, enough in budgets.items():
            st.button(
                f"{describe_share(share)}: " + ("none" if enough is None else enough.short_text),
                key=f"budget for {share}",
                on_click=change_fields,
                args=("plan",),
                kwargs={}
                if enough is None
                else {"budget": budget_of_whole("tables", enough.budget)},
                disabled=enough is None or enough.budget == budget,
            )


def share_by_budget() -> None:
    """What another budget would buy."""
    now, before = st.session_state.get(HERE, (None, None))
    solution = optimum()
    if now is None or now.useful is None or solution is None:
        return
    if solution.budget is not None:
        st.caption(
            "With this objective each budget has a plan of its own: move the slider to see another."
        )
        return
    frame = kept(publishable_by_budget, solution, now.useful)
    former = None if before is None else before.useful
    budget = now.useful.budget
    chart = publishable_share_chart(
        frame,
        LETTERS[stated_unit(budget)],
        publishable_at(now.useful, budget),
        None if former is None else publishable_at(former, budget),
    )
    chart_with_numbers(chart)
