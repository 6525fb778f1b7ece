"""Own counts on the Tables page: their editor, and how accurate each becomes."""

from typing import Any

import streamlit as st

from pages.components.queries.list import (
    HERE,
    count_builder,
    many_at_once,
    own_attributes,
    query_list,
)
from pages.components.shared.background import worked_out
from pages.components.shared.charts import chart_with_numbers, folded, metrics, numbers
from pages.components.shared.inputs import tabs
from pages.components.shared.session import (
    attempt,
    bound,
    change_fields,
    current,
    escaped,
    kept,
    show_messages,
)
from pages.components.shared.solutions import (
    budget_of_whole,
    part_budget,
    query_solution,
    whole_plan,
)
from rpexplore.analysis.budget_units import privacy_as_stated
from rpexplore.analysis.queries import (
    CountUsefulness,
    budgets_needed,
    describe_free,
    describe_profile,
    drawn_answers,
    of_queries,
    profile_of_cells,
    query_baselines,
    spare_cells,
    targets_met,
    with_usefulness,
)
from rpexplore.analysis.sufficient_budgets import smallest_query_budget
from rpexplore.common.text import capitalised, describe_share, rounded
from rpexplore.figures.queries import (
    FREE_COLUMNS,
    OUTCOME_COLUMNS,
    baselines_chart,
    profile_chart,
)
from rpexplore.planning.counts import QueryPlan
from rpexplore.planning.counts_objectives import LARGEST, OBJECTIVES
from rpexplore.planning.counts_planner import QueryOptimum
from rpexplore.planning.minimum_budget import rho_of_unit
from rpexplore.privacy.conversions import rho_text
from rpexplore.workload.query_definitions import StatedQueries

# ---- What the plan of a list of queries gives: proven, query by query, as files, and beside
# others.


def counts_editor(planned: QueryPlan | None) -> None:
    """Counts to add, the list, what it is planned for, and how accurate it becomes."""
    show_messages(HERE)
    count_builder()
    with st.container(key="layout"):
        with st.container(key="inputs", gap="small"), st.container(gap="small"):
            own_attributes()
            query_list()
            if current().query_list is not None:
                objective_inputs()
            folded("Many at once, or a CSV file", "query files", many_at_once)
        answer = st.container(key="answer")
    stated = current().query_list
    with answer:
        if stated is None:
            st.info("Add a first count, or start from a preset; its accuracy then appears here.")
            return
        solution = None if planned is None else query_solution()
        if planned is not None and solution is not None:
            headline(planned, stated)
            certificate(planned, solution)
            smallest_budget(solution, planned)
        if planned is None or solution is None:
            return
        views = {
            "Count by count": lambda: outcomes(planned),
            "Baselines": lambda: baselines(solution),
            "Privacy profile": lambda: privacy_profile(planned),
        }
        if planned.budget.replaces:  # plainer methods are compared for added records
            del views["Baselines"]
        tabs("queries", views)


def headline(planned: QueryPlan, stated: StatedQueries) -> None:
    """How many queries, how many targets are met, privacy, and how far off the list is."""
    count_met, sentence = targets_met(planned, stated)
    amount, others = privacy_as_stated(planned)
    figures = [("Targets met", f"{count_met:,} of {len(stated):,}", "own counts")]
    answers, public, limit = _answers(stated), current().public_tables, current().cv_limit
    if answers is not None and public is not None:
        useful = CountUsefulness.of_answers(planned, answers, public, limit)
        percent = describe_share(limit).replace(" ", "\N{NO-BREAK SPACE}")
        caption = f"coefficient of variation (CV) of at most {percent}"
        text = f"{useful.count_text} of {len(stated):,}"
        figures.append(("Publishable counts", text, caption))
    privacy = ("Privacy", amount, f"{others}; protects {escaped(planned.budget.unit)}")
    metrics(*figures, privacy)
    st.markdown(f":material/straighten: **Targets.** {escaped(sentence)}")


def certificate(planned: QueryPlan, solution: QueryOptimum) -> None:
    """What is proven of the plan, and of the smallest budget; and what is free."""
    text = f":material/verified: **Proven optimal for this objective.** {escaped(planned.proven)}"
    if planned.objective is LARGEST:
        least = rho_of_unit(solution.lower_bound, planned.budget.max_records_per_person)
        text += (
            " No method with Gaussian noise meets all targets with less than "
            f"{rho_text(least, 4, 'down')}."
        )
    st.markdown(text)
    if planned.free_counts:
        st.markdown(f":material/money_off: **Free.** {escaped(describe_free(planned))}")


def objective_inputs() -> None:
    """What the list is planned for, and which of its counts are free."""
    scenario = current()
    assert scenario.query_list is not None
    st.selectbox(
        "Objective of own counts",
        list(OBJECTIVES),
        format_func=lambda option: capitalised(OBJECTIVES[option].title),
        help="The error of each count is compared with its target. With targets first the plan is "
        "for the present budget, and there is none where that is too small.",
        **bound(
            "objective of counts",
            scenario.counts_objective,
            lambda option: change_fields(HERE, counts_objective=option),
        ),
    )
    st.multiselect(
        "Free counts",
        list(scenario.query_list.queries.names),
        help="They take only what the other counts leave of the budget: no record costs more for "
        "them.",
        **bound(
            "free counts",
            list(scenario.used_free_counts),
            lambda names: change_fields(HERE, free_counts=tuple(names)),
        ),
    )


def outcomes(planned: QueryPlan) -> None:
    """Every query with its target and how accurate it is, the missed targets first."""
    stated = current().query_list
    assert stated is not None
    frame = with_usefulness(kept(of_queries, planned, stated), _answers(stated))
    has_binding = planned.objective is LARGEST
    if not has_binding:
        frame = frame.drop(columns="share")
    columns = {name: OUTCOME_COLUMNS[name] for name in OUTCOME_COLUMNS if name in frame}
    numbers(
        frame,
        columns,
        "own-counts-accuracy.csv",
        "Every own count with its target and its standard error",
    )
    expected = current().expected
    source = ""
    if expected is not None and "expected" in columns:
        source = f"Expected counts: {escaped(expected.text)}. "
    binding = (
        " Counts with a share of the budget have binding targets: only wider ones of these would "
        "make the smallest sufficient budget smaller."
    )
    queries, noun = stated.queries, current().record_noun
    has_amounts = any(queries.adds_up_amounts(query) for query in range(len(queries)))
    of_sums = ", of sums in the unit of their amounts" if has_amounts else ""
    st.caption(f"{source}Errors are in {escaped(noun)}{of_sums}.{binding if has_binding else ''}")


def _answers(stated: StatedQueries) -> Any:
    """What the counts may be, by what is public; None where that is not known."""
    public = attempt(lambda: current().public_tables)
    if public is None:
        return None
    by = (stated.queries, current().public, current().expected)
    return kept(drawn_answers, stated.queries, public, by=by)


def privacy_profile(planned: QueryPlan) -> None:
    """The share of the budget that each cell uses, and the counts that would be free."""
    sentence = describe_profile(planned, current().record_noun)
    if not planned.spare.any():
        st.markdown(escaped(sentence))
        return
    frame = kept(profile_of_cells, planned)
    chart_with_numbers(profile_chart(frame, sentence))
    with st.expander("Counts that would cost nothing more"):
        st.markdown(
            "Each of these cells can be counted as well without anybody's protection falling below "
            "the promise, all of them together: a record is in one cell only. Add any of them to "
            "the list with the error below as its target, and all targets that are met now can "
            "still be met at the same budget."
        )
        free = kept(spare_cells, planned)
        alt = "Cells with unused budget and the error of counting them"
        numbers(free, FREE_COLUMNS, "free_counts.csv", alt)


def baselines(solution: QueryOptimum) -> None:
    """The budget that each plainer method needs for the same targets, drawn and in numbers."""
    ratios = worked_out(query_baselines, solution)
    if ratios is None:
        return
    budget = part_budget("counts")
    chart_with_numbers(baselines_chart(budgets_needed(ratios, budget), budget.unit))


# ---- The smallest budget with which all own counts are as accurate as wanted.


def smallest_budget(solution: QueryOptimum, planned: QueryPlan) -> None:
    """The budget that is enough for the targets of own counts."""
    whole = whole_plan() if len(current().kinds) > 1 else None
    if whole is not None:
        share = rounded(100 * whole.shares[planned.kind], 3)
        st.caption(
            f"Own counts have {share} % of the budget; the rest is for the other parts of the plan."
        )
    if not planned.objective.is_homogeneous:
        st.caption("With another objective you see the smallest budget that meets all targets.")
        return
    enough = attempt(lambda: smallest_query_budget(solution, planned.budget))
    if enough is None:
        return
    is_own, needed = (
        enough.is_stated_as(planned.budget),
        "their part" if whole else "the budget",
    )
    st.markdown(
        f"{escaped(enough.text)} is the smallest budget that meets all targets."
        if is_own
        else f"The smallest budget that meets all targets is {escaped(enough.text)}: "
        f"{escaped(enough.compared)} of {needed}."
    )
    st.button(
        "Make it the budget",
        on_click=change_fields,
        args=(HERE,),
        kwargs={"budget": budget_of_whole("counts", enough.budget)},
        disabled=is_own,
        help="The budget of the whole plan becomes the one at which own counts have this much.",
    )
