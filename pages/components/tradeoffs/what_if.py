"""What if: tables left out, counted differently or added, and how all others move."""

import streamlit as st

from pages.components.shared.background import Note, worked_out
from pages.components.shared.charts import exhibit, number, numbers
from pages.components.shared.session import current, escaped, kept
from pages.components.tradeoffs.change_input import apply_or_save, change_inputs
from rpexplore.analysis import what_if
from rpexplore.errors import RpexploreError
from rpexplore.figures.what_if import before_and_after
from rpexplore.planning.optimum import Optimum
from rpexplore.planning.planner import optimum_with_strategies_of
from rpexplore.scenarios.workload_changes import changed_workload

MOST_DRAWN = 10  # single tables


def changed_tables(solution: Optimum) -> None:
    """Choose tables and what becomes of them; see how every other table moves."""
    left, right = st.columns([1, 2], gap="large")
    with left:
        workload_change = change_inputs()
    if workload_change is None:
        right.info(
            "Choose attributes, or a number of attributes: which tables is it about? All other "
            "tables are then compared with how they are now, at the same budget."
        )
        return
    scenario = current()
    try:
        workload = kept(
            "what if tables",
            (scenario.domain, scenario.request, scenario.loss, workload_change),
            lambda: changed_workload(scenario, workload_change),
        )
    except RpexploreError as error:  # the change means nothing, as after it was applied
        right.info(escaped(str(error)))
        return

    def work(note: Note) -> what_if.AccuracyChanges:
        note(0.1, "Planning for the changed tables")
        after = optimum_with_strategies_of(
            solution,
            workload,
            scenario.loss,
            on_progress=lambda doing, share: note(share, doing),
        )
        return what_if.accuracy_changes(solution, after, workload_change)

    with right:
        if not workload.is_marginals:
            st.caption(
                "How attributes are measured stays as in your plan; standard errors are root mean "
                "squares over cells. Applied, the tables are planned anew, which may do a little "
                "better."
            )
        found = worked_out("what if", (solution, workload), work)
        if found is not None:
            _show(found)
    if found is not None:
        with left:
            apply_or_save(
                workload_change,
                workload,
                what_if.describe_changes(found, scenario.budget, scenario.record_noun),
            )
        _all_tables(found)


def _show(found: what_if.AccuracyChanges) -> None:
    """The change in words, by number of attributes, and for the tables that move most."""
    budget, record_noun = current().budget, current().record_noun
    sentence = what_if.describe_changes(found, budget, record_noun)
    by_order = what_if.by_order(found, budget)
    exhibit(
        before_and_after(by_order, record_noun),
        sentence,
        "Standard errors before and after the change, by number of attributes",
        "Hollow: now; filled: then. Medians; in brackets the range of the changes, if any.",
    )
    if what_if.others_differ(found):
        st.markdown("**The other tables that move most and least**")
        frame = what_if.extremes(found, budget, MOST_DRAWN)
        exhibit(
            before_and_after(frame, record_noun),
            what_if.describe_extremes(frame, record_noun),
            "Standard errors of single tables before and after the change",
        )


def _all_tables(found: what_if.AccuracyChanges) -> None:
    """The numbers of both charts, and of every table."""
    budget = current().budget
    with st.expander("The numbers of these charts, and every table"):
        by_order = what_if.by_order(found, budget)
        errors = {
            "before": number("Standard error now", by_order["before"]),
            "after": number("Standard error then", by_order["after"]),
        }
        change = st.column_config.NumberColumn("Change", format="%+.3g %%")
        columns = {
            "name": "Attributes",
            "tables": st.column_config.NumberColumn("Tables", format="localized"),
            "lost": st.column_config.NumberColumn("Not to be had then", format="localized"),
            **errors,
            "smallest": st.column_config.NumberColumn("Change from", format="%+.3g %%"),
            "change": st.column_config.NumberColumn("Median change", format="%+.3g %%"),
            "largest": st.column_config.NumberColumn("Change to", format="%+.3g %%"),
        }
        numbers(by_order, columns, "what_if_by_order.csv", "Changes by number of attributes")
        frame = kept("what if rows", (found, budget), lambda: what_if.of_tables(found, budget))
        columns = {
            "table": st.column_config.TextColumn("Table", width="medium"),
            "order": "Attributes",
            "concerned": "Changed itself",
            **errors,
            "change": change,
        }
        numbers(frame, columns, "what_if.csv", "Changes of every table")
