"""Which tables are good enough on the Plan page, and what would make the opened one good."""

from dataclasses import replace
from functools import partial
from typing import Any

import streamlit as st
from streamlit.components.v2 import component

from pages.components.plan.headline import former_plan
from pages.components.shared.background import worked_out
from pages.components.shared.charts import folded, listing
from pages.components.shared.expected_counts import forecast_in_areas, show_forecast
from pages.components.shared.session import (
    attempt,
    change,
    current,
    escaped,
    kept,
    say,
    show_messages,
)
from pages.components.shared.solutions import budget_of_whole
from rpexplore.analysis.area_forecast import AreaForecast, levels_for_reading
from rpexplore.analysis.area_suggestions import area_suggestions
from rpexplore.analysis.drawn_counts import NO_FORECAST_OF_SUMS
from rpexplore.analysis.explanation import describe_former, explanation
from rpexplore.analysis.forecast import Forecast
from rpexplore.analysis.good_tables import Mark, marks, marks_of_items, matrix_of, worst_first
from rpexplore.analysis.proposals import AreaProposal, Proposal, TableSuggestions
from rpexplore.analysis.ranges import range_columns
from rpexplore.analysis.shared_suggestions import SharedProposal, shared_suggestions
from rpexplore.analysis.suggestions import Bench, suggestions
from rpexplore.analysis.typical_counts import TypicalCounts, typical_counts
from rpexplore.common.text import describe_share, plural, rounded
from rpexplore.figures.chart import columns_of
from rpexplore.figures.good_tables import CSS, SCRIPT, bars, squares, typical_table
from rpexplore.planning.areas.area_plan import AreaPlan
from rpexplore.planning.part_plan import Z_95, PartPlan
from rpexplore.planning.plan import TITLES, Plan
from rpexplore.planning.table_plan import TablePlan
from rpexplore.scenarios.scenario import Scenario
from rpexplore.scenarios.table_changes import changed_by, changed_together
from rpexplore.workload.rules import PEOPLE
from rpexplore.workload.table_text import title, title_of

# ---- Which tables are good enough: one number of attributes, or another part of the plan.


_VIEW, _THIRD = "tables of", "third attribute"
_OPENED = "opened table"  # its attributes, which mean the same table in every workload
_LEGEND = "Strong blue: meets the rule; medium: likely to; faint: does not. Click to open."
_MARGINS = "95 % margins of error"

_MOUNT = component(
    "tables to open", html='<div class="good-tables shown"></div>', css=CSS, js=SCRIPT
)


def overview(planned: TablePlan | None, made: Forecast | None, whole: Plan | None) -> Mark | None:
    """Squares or bars, and the mark of the table that is opened; None: none is.

    planned: the tables of the plan, if it has some; made: their forecast; whole: the plan
    """
    orders = [] if planned is None else sorted({*planned.workload.orders.tolist()})
    by_order = {f"{order}-way": order for order in orders if order or len(orders) == 1}
    beside = [] if whole is None else [part for part in whole.parts if part.kind != "tables"]
    by_part: dict[str, Any] = {TITLES[part.kind]: part for part in beside}
    views = [*by_order, *by_part]
    if st.session_state.get(_VIEW) not in views:
        st.session_state[_VIEW] = "2-way" if "2-way" in views else [*by_order, *by_part][-1]
    view = st.segmented_control(
        "Which tables are good enough",
        views,
        key=_VIEW,
        required=True,
        on_change=st.session_state.pop,
        args=(_OPENED, None),
    )
    if view in by_part:
        _of_part(by_part[view])
        if view == TITLES["areas"]:
            _of_areas(by_part[view])
        return None
    assert planned is not None
    return _of_order(planned, made, by_order[view or views[0]])


def _of_part(part: PartPlan) -> None:
    """The margins of error of areas by level, or of own counts."""
    frame = kept(part.accuracy)
    levels = list(dict.fromkeys(frame["level"])) if part.kind == "areas" else []
    _mount(bars(marks_of_items(frame, levels), -1))
    st.caption(f"{_MARGINS}{', root mean squares over areas and tables' if levels else ''}.")


def _of_areas(part: AreaPlan) -> None:
    """The forecast of areas, and where to see them on a map."""
    in_areas = forecast_in_areas(part)
    if in_areas is not None:
        shown = kept(levels_for_reading, in_areas)
        show_forecast(in_areas, shown, "Forecast of areas by level")
        suggested_in_areas(in_areas)
    where = {"part": "areas", "areas": "Map"}
    st.page_link("pages/workload.py", label="Areas on a map", query_params=where)


def _of_order(planned: TablePlan, made: Forecast | None, order: int) -> Mark:
    """The tables of a number of attributes; returns the mark of the opened one."""
    workload, third = planned.workload, ""
    listed, n_tables = worst_first(planned, made, order)
    meeting = "" if made is None else made.describe_order(order)
    if meeting and order > 2:  # of which only some are seen at once
        worst = escaped(title_of(workload, listed[0]))
        st.caption(f"{meeting} meet the rule. The worst: {worst}.")
    names = [workload.domain.names[index] for index in workload.used]
    if order == 3:
        third = st.session_state.get(_THIRD, "")
        third = third if third in names else workload.tables[listed[0]][0]
    matrix = kept(matrix_of, workload, third) if order == 2 or third else None
    if third and matrix is not None:
        st.session_state[_THIRD] = third
        st.selectbox("With the attribute", names, key=_THIRD, width=260)
    if matrix is not None:
        listed = matrix.tables
    of_tables = kept(marks, planned, made, listed)
    opened = _opened(planned, of_tables)
    if matrix is not None:
        _mount(squares(matrix, of_tables, opened))
    else:
        _mount(bars([of_tables[place] for place in listed], opened))
    legend = f"{_MARGINS}. A click opens the table."
    if made is not None:
        legend = f"% of {escaped(made.whom)} in good cells. {_LEGEND}"
    if len(listed) < n_tables and matrix is None:
        legend = f"The worst {len(listed)} of {n_tables:,} tables. {legend}"
    st.caption(legend)
    if opened in of_tables:
        return of_tables[opened]
    return kept(marks, planned, made, [opened], slot="opened")[opened]


def _opened(planned: TablePlan, of_tables: dict[int, Mark]) -> int:
    """The table that was clicked, or as long as none was the worst of those that are shown."""
    names = st.session_state.get(_OPENED)
    if names is not None and set(names) <= set(planned.domain.names):
        place = planned.workload.find(planned.domain.positions(names))
        if place is not None:
            return place
    return min(of_tables, key=lambda place: of_tables[place].rank)


def _mount(html: str) -> None:
    """The squares or bars; a click on one opens its table."""

    def open_table() -> None:
        place, tables = st.session_state["tables to open"].get("table"), current().workload.tables
        if isinstance(place, int) and 0 <= place < len(tables):
            st.session_state[_OPENED] = tables[place]

    _MOUNT(key="tables to open", data={"html": html}, on_table_change=open_table)


# ---- The table that is opened: how it may look, what would make it good, why it errs so much.


COUNTS, IMPROVE, EXPLAIN = "Typical counts", "What would make it good", "Explain this number"


def opened_table(planned: TablePlan, made: Forecast | None, mark: Mark) -> None:
    """One table: its people in good cells, and one of three views."""
    place = mark.place
    title = escaped(title_of(planned.workload, place))
    unit = planned.workload.unit_of(place, current().counted)
    margin = f"±{rounded(planned.standard_errors[place] * Z_95, 3)} {unit}"
    people = ""
    if made is not None and mark.full != mark.text:
        people = f"{mark.full} of {made.whom} in good cells, "
    st.markdown(f"**{title}** :small[{escaped(people)}margin of error {escaped(margin)}]")
    view = st.segmented_control(
        "The opened table",
        [COUNTS, IMPROVE, EXPLAIN],
        default=COUNTS,
        required=True,
        key="view of one table",
        label_visibility="collapsed",
    )
    former = former_plan()
    if view == EXPLAIN:
        explained(planned, place, former)
    elif view == IMPROVE:
        suggested(planned, place, made)
    else:
        if change := describe_former(planned, former, place):
            st.caption(change)
        if planned.workload.has_amounts[place]:
            st.caption(NO_FORECAST_OF_SUMS)
            return
        if made is None or made.drawn is None:
            if current().expected is None:
                st.caption("With expected counts, you see here how the table may look.")
            return
        shown = attempt(lambda: kept(_typical, planned, made, place), show=st.caption)
        if shown is not None:
            st.html(typical_table(shown))
            st.caption(escaped(shown.caption))


def _typical(planned: TablePlan, made: Forecast, place: int) -> TypicalCounts:
    assert made.drawn is not None
    return typical_counts(planned, made.drawn, place, made.limit, made.survey)


def explained(planned: TablePlan, table: int, former: TablePlan | None) -> None:
    """Why the error of a table is as large as it is, in sentences and part by part."""
    reasons = kept(explanation, planned, table)
    st.markdown(
        "\n".join(
            f"- {escaped(sentence)}"
            for sentence in reasons.describe(current().record_noun, current().request, former)
        )
    )
    frame = reasons.frame()
    listing(
        frame,
        columns_of(frame.filter(["measured", "sigma", "share", "tables", "budget_share"])),
        "The parts of the variance of the table",
    )


# ---- What would make a table good enough: proposals on the Plan page, each applied with one click.


_SUGGESTIONS = "suggestions"
TOGETHER = "One change for many tables"


def suggested(planned: TablePlan, table: int, made: Forecast | None) -> None:
    """The proposals for a table, the best first; judged by a rule about its people, if one is."""
    show_messages(_SUGGESTIONS)
    if made is None or made.drawn is None:
        if current().expected is None:
            st.caption("With expected counts, you see here what would make the table good enough.")
        return
    limit, share = made.limit, made.share
    for rule in made.rules:
        if rule.of == PEOPLE and table in rule.places(planned.workload):
            limit, share = float(rule.cv), float(rule.share)
    if planned.workload.has_amounts[table]:
        st.caption(NO_FORECAST_OF_SUMS)
        return
    attributes = planned.workload.tables[table]
    made_for = planned, made.drawn, limit, share, (attributes,), 1, made.survey
    suggested = worked_out(suggestions, *made_for)
    if suggested is None:
        return
    (found,) = suggested
    if found.people.low >= share:
        st.caption("The table meets the rule already.")
    else:
        _proposals(found, share)
    folded(TOGETHER, "changes together", partial(_suggested_together, planned, made, limit, share))


def _suggested_together(planned: TablePlan, made: Forecast, limit: float, share: float) -> None:
    """One change for all tables that an attribute makes miss, each with a button to apply it."""
    assert made.drawn is not None
    bench = kept(Bench, planned, made.drawn, limit, share, made.survey, made.whom)
    found = worked_out(shared_suggestions, bench)
    if found is None:
        return
    if not found.proposals:
        st.caption("No one change makes more tables good enough.")
        return
    st.caption("Wherever tables with the attribute miss, at the same budget.")
    for number, proposal in enumerate(found.proposals):
        text, button = st.columns([5, 1], vertical_alignment="center")
        text.markdown(escaped(proposal.text(found.whom)))
        button.button(
            "Apply", key=f"apply together {number}", on_click=_apply_together, args=(proposal,)
        )


def _apply_together(proposal: SharedProposal) -> None:
    wanted = proposal.change
    if change(
        _SUGGESTIONS,
        lambda: changed_together(current(), proposal.replacements, wanted.levels),
    ):
        tables = plural(proposal.n_changed, "table")
        say(_SUGGESTIONS, "success", f"Applied to {tables}: {wanted.text}. Undo takes it back.")


def suggested_in_areas(made: AreaForecast) -> None:
    """The proposals for a table on a level of areas, chosen from those that miss the rule."""
    show_messages(_SUGGESTIONS)
    scenario, missing = current(), made.missing
    if not missing or scenario.planned_areas is not scenario.areas:  # weighted: in files only
        return
    st.markdown(f"**{IMPROVE}**")
    names = [f"{level}: {title(table)}" for level, table in missing]
    chosen = st.selectbox("A table that misses the rule", names, key="table in areas")
    table = missing[names.index(chosen)]
    suggested = worked_out(area_suggestions, made, (table,), 1)
    if suggested is not None:
        _proposals(suggested[0], made.share)


def _proposals(found: TableSuggestions, share: float) -> None:
    """What is wanted of a table, and its proposals, each with a button that applies it."""
    st.caption(
        f"Wanted: {describe_share(share)} of {escaped(found.whom)} in good cells. At the same "
        "budget, unless a larger one is named."
    )
    for number, proposal in enumerate(found.proposals):
        text, button = st.columns([5, 1], vertical_alignment="center")
        text.markdown(escaped(proposal.text(found.whom)))
        button.button("Apply", key=f"apply {number}", on_click=_apply_proposal, args=(proposal,))


def _apply_proposal(proposal: Proposal) -> None:
    wanted, areas = proposal.change, current().areas
    in_areas = proposal.areas if isinstance(proposal, AreaProposal) else None

    def changed() -> Scenario:
        if wanted.budget is not None:
            part = "tables" if in_areas is None else "areas"
            return changed_by(
                current(), replace(wanted, budget=budget_of_whole(part, wanted.budget))
            )
        if in_areas is None or areas is None:
            return changed_by(current(), wanted)
        return current().replaced(areas=areas.with_workload(in_areas))

    if change(_SUGGESTIONS, changed):
        say(_SUGGESTIONS, "success", f"Applied: {wanted.text}. Undo takes it back.")


# ---- The figures of the forecast by number of attributes and by group, on the Plan page.


_NOT_BY_GROUP = "of all"


def by_size_and_group(made: Forecast) -> None:
    """The figures by number of attributes, and by the values of an attribute."""
    st.dataframe(
        range_columns(kept(made.by_order), "attributes", "meeting", made.whom),
        hide_index=True,
        alt="Forecast by number of attributes",
    )
    planned = made.tables_of_plan
    names = [_NOT_BY_GROUP, *(planned.domain.names[index] for index in planned.workload.used)]
    chosen = st.selectbox("Who loses most: by the values of", names, key="forecast by")
    if chosen != _NOT_BY_GROUP:
        frame = attempt(lambda: kept(made.by_group, chosen))
        if frame is not None:
            shown = range_columns(frame, "value", "count", made.whom)
            st.dataframe(shown, hide_index=True, alt=f"Forecast by {chosen}")
