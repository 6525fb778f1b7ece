"""Areas on the Tables page: their editor, and accuracy by level, by area and on a map."""

from collections.abc import Callable
from dataclasses import replace

import streamlit as st

from pages.components.areas.study import (
    HERE,
    READING,
    change_study,
    choose_areas,
    file_is_missing,
    levels,
    tables_view,
)
from pages.components.plan.objective import weighting_input
from pages.components.shared.area_walk import looked_into, shapes_of, way_down, way_up
from pages.components.shared.background import follow_begun, worked_out
from pages.components.shared.charts import (
    chart_with_numbers,
    download_frame,
    listing,
    metrics,
    numbers,
)
from pages.components.shared.expected_counts import (
    area_totals_input,
    forecast_in_areas,
    show_forecast,
)
from pages.components.shared.files import download
from pages.components.shared.inputs import tabs
from pages.components.shared.session import (
    bound,
    change_fields,
    current,
    escaped,
    kept,
    show_messages,
)
from pages.components.shared.solutions import budget_of_whole
from rpexplore.analysis.accuracy import csv_of_accuracy, readable
from rpexplore.analysis.area_accuracy import (
    SIZES,
    AreaErrors,
    describe_required,
    describe_shares,
    describe_targets,
    divided_parts,
    level_accuracy,
    sufficient_budget,
)
from rpexplore.analysis.area_forecast import (
    levels_for_reading,
    sizes_for_reading,
    tables_for_reading,
)
from rpexplore.analysis.area_levels import beside_shares_by_level
from rpexplore.analysis.drawn_counts import NO_FORECAST_OF_SUMS
from rpexplore.analysis.glossary import meaning
from rpexplore.common.text import capitalised, count_of, number_text, rounded
from rpexplore.domain.expected_counts import MAX_COUNT, ExpectedCounts
from rpexplore.figures.areas import (
    ACCURACY_COLUMNS,
    AREA_COLUMNS,
    SIZE_COLUMNS,
    TABLE_COLUMNS,
    map_chart,
    parts_chart,
    shares_listed,
)
from rpexplore.planning.areas.area_loss import AREA_LOSSES
from rpexplore.planning.areas.area_plan import AreaPlan
from rpexplore.planning.losses.losses import MaxVariance, WeightedSum
from rpexplore.planning.serialization import loss_choices
from rpexplore.privacy.conversions import rho_text
from rpexplore.scenarios.area_study import AreaStudy
from rpexplore.workload.table_text import title

# ---- The plan for areas: objective and budget, how accurate each level is, and beside shares.


def areas_editor(planned: AreaPlan | None, *, are_read: bool) -> None:
    """Where the areas come from, their tables by level, and what is planned for them.

    are_read: whether they are in memory
    """
    opened = current().areas
    reads = follow_begun(READING)
    show_messages(HERE)
    if opened is None or not are_read:
        if not reads and (opened is None or file_is_missing(opened)):
            choose_areas()
        return
    views: dict[str, Callable[[], None]] = {
        "Levels": lambda: levels(opened),
        "Tables": lambda: tables_view(opened),
        "Plan": lambda: _plan_view(opened, planned),
        "By area": lambda: _by_area(planned),
        "Map": lambda: _on_a_map(opened, planned),
    }
    tabs("areas", views)


def _plan_view(opened: AreaStudy, planned: AreaPlan | None) -> None:
    """Inputs beside the answer."""
    with st.container(key="layout"):
        with st.container(key="inputs", gap="small"):
            _loss_input(opened)
        with st.container(key="answer"):
            if planned is not None:
                _answer(planned)


def _loss_input(opened: AreaStudy) -> None:
    """The objective, how tables count in a sum, and whether areas of a level are alike."""
    offered = {
        choice: loss for choice, loss in loss_choices().items() if isinstance(loss, AREA_LOSSES)
    }
    loss = opened.loss
    st.radio(
        "Objective",
        list(offered),
        format_func=lambda choice: capitalised(offered[choice].objective),
        help=meaning("Objective"),
        **bound(
            "area objective",
            loss.choice,
            lambda choice: change_study(lambda study: replace(study, loss=offered[choice])),
        ),
    )
    if isinstance(loss, WeightedSum):
        weighting_input(
            loss,
            "area weighting",
            lambda changed: change_study(lambda study: replace(study, loss=changed)),
        )
        st.caption("All levels count alike, however many areas they have.")
    st.toggle(
        "The same noise for all areas of a level",
        help="Without it each area has the noise that is best for it, which is more accurate.",
        **bound(
            "area uniform",
            opened.uniform,
            lambda uniform: change_study(lambda study: replace(study, uniform=uniform)),
        ),
    )


def _answer(planned: AreaPlan) -> None:
    tree = planned.workload.tree
    metrics(
        ("Tables in all areas", f"{planned.n_items:,}", f"{tree.n_areas:,} areas"),
        (
            "Privacy",
            rho_text(planned.rho, 3),
            f"{planned.epsilon_text}; protects {escaped(planned.budget.unit)}",
        ),
    )
    st.markdown(
        f":material/verified: **Proven optimal for this objective.** {escaped(planned.proven)}",
        help=f"{meaning('Optimality')} "
        f"The proven gap is {rounded(planned.certificate.gap, 2, 'up')} of the objective.",
    )
    if isinstance(planned.loss, MaxVariance) and planned.loss.compares_with_targets:
        _targets(planned)
    if planned.loss.meets_required_targets:
        required = kept(describe_required, planned)
        st.markdown(f":material/straighten: **Required targets.** {escaped(required)}")
    _levels(planned)
    forecast_of_areas(planned)
    _tables(planned)
    if planned.loss.meets_required_targets:
        st.caption(
            "Shares of the budget by level are not set beside this plan: they are not made to meet "
            "required targets."
        )
    else:
        _shares(planned)
    with st.expander("What this plan guarantees, in full"):
        st.markdown(escaped(planned.guarantee))


def _levels(planned: AreaPlan) -> None:
    st.subheader("How accurate each level is")
    levels = kept(level_accuracy, planned)
    listing(levels, ACCURACY_COLUMNS, "Accuracy of the tables of each level")
    download_frame(levels, "levels.csv")
    st.caption(
        "Standard error σ and its margin are root mean squares over the areas and tables of a "
        "level; the largest σ is that of a cell of the least accurate table in one area."
    )


def _tables(planned: AreaPlan) -> None:
    with st.expander("Every table on every level"):
        tables = readable(kept(planned.accuracy))
        columns = {name: column for name, column in TABLE_COLUMNS.items() if name in tables}
        listing(tables, columns, "Accuracy of each table on each level")
        download("area_tables.csv", lambda: csv_of_accuracy(planned))


def fairness_of_areas(planned: AreaPlan) -> None:
    """How unequal levels, their tables and their areas are, for the Fairness page."""
    _levels(planned)
    _tables(planned)
    _by_area(planned)


def _targets(planned: AreaPlan) -> None:
    """Whether all targets are met, and the budget that is enough."""
    st.markdown(f":material/straighten: **Targets.** {escaped(describe_targets(planned))}")
    enough = sufficient_budget(planned)
    is_own = enough.stated == planned.budget.stated
    enough = budget_of_whole("areas", enough)
    st.button(
        "Make that the budget",
        on_click=change_fields,
        args=(HERE,),
        kwargs={"budget": enough},
        disabled=is_own,
        help="The budget of the Plan page is then this one, too.",
    )


def _shares(planned: AreaPlan) -> None:
    st.subheader("Beside shares of the budget by level")
    beside = worked_out(beside_shares_by_level, planned)
    if beside is not None:
        st.markdown(escaped(describe_shares(beside)))
        listing(*shares_listed(beside), "The plan beside shares of the budget by level")
        st.caption(
            "Agencies often give each level a share of the budget, and all its areas the same "
            "noise. The objective is to be as small as possible; this plan's stands beside it as a "
            "share of it. Compared only where all areas of a level have the same tables, as they "
            "always do on this page."
        )


# ---- How good tables in areas will be, by level, where it is known how many records there are.


_MOST_TABLES = 20  # listed


def forecast_of_areas(planned: AreaPlan) -> None:
    """People, cells and tables by level, and in small areas; or a field for the number."""
    st.subheader("Is that accurate enough?")
    if planned.workload.tables.has_amounts.all():
        st.caption(NO_FORECAST_OF_SUMS)
        return
    _total_input()
    area_totals_input(planned)
    made = forecast_in_areas(planned)
    if made is None:
        st.caption("With it, a forecast says how good the tables of every level will be.")
        return
    show_forecast(made, kept(levels_for_reading, made), "Forecast of each level")
    with st.expander("Small areas and large ones; the tables with the fewest people in good cells"):
        sizes, tables = kept(sizes_for_reading, made), kept(tables_for_reading, made, _MOST_TABLES)
        st.dataframe(sizes, hide_index=True, alt="Forecast by the number of people in an area")
        st.dataframe(tables, hide_index=True, alt="Forecast of tables by level")


def _total_input() -> None:
    opened = current().areas
    expected = None if opened is None else opened.expected

    def take(typed: str) -> None:
        def expect(before: AreaStudy) -> AreaStudy:
            total = count_of(typed, "The number of records", most=MAX_COUNT)
            return replace(before, expected=ExpectedCounts.of_total(total) if total else None)

        change_study(expect)

    st.text_input(
        "About how many records there will be, in all areas together",
        width=420,
        placeholder="as the public tables say",
        help=f"{meaning('Expected counts')} Give only what is already public. It is saved with the "
        "scenario, and stands in place of what is public of its tables.",
        **bound(
            "expected records of areas",
            number_text(None if expected is None else expected.total),
            take,
        ),
    )


# ---- Fairness by area: a tree that is walked down, and the least accurate areas of a level.


_MOST_LISTED = 1000  # areas in a list, and to choose from
_WALK = "area looked into"


def table_of_areas(planned: AreaPlan) -> AreaErrors:
    """The table to look at, chosen by the user, with its errors in all areas."""
    tables = {title(table): table for table in planned.workload.tables.tables}
    chosen = st.selectbox(
        "Table", list(tables), key="table of areas", width=360, persist_state="session"
    )
    return kept(AreaErrors.of, planned, tables.get(chosen, next(iter(tables.values()))))


def _by_area(planned: AreaPlan | None) -> None:
    """The treemap of one area, and under it the areas of a level, the least accurate first."""
    if planned is None:
        return
    errors = table_of_areas(planned)
    way_up(errors.tree, _WALK)
    top = looked_into(errors.tree, _WALK)
    way_down(errors.tree, _WALK, divided_parts(errors.tree, top, _MOST_LISTED))
    chart_with_numbers(kept(parts_chart, errors, top))
    st.subheader("The least accurate areas of a level, and why")
    level = st.selectbox(
        "Level",
        errors.levels,
        errors.levels.index(errors.most_different_level),
        key="level of areas",
        width=360,
    )
    st.markdown(escaped(kept(errors.describe, level)))
    frame = kept(errors.least_accurate, level, _MOST_LISTED)
    columns = {name: column for name, column in AREA_COLUMNS.items() if name in frame}
    numbers(frame, columns, "least_accurate_areas.csv", f"The least accurate areas of {level}")
    for kind, heading in SIZES.items():
        sizes = kept(errors.by_size, level, kind, slot=kind)
        if len(sizes) > 1:
            st.markdown(f"**{heading}**")
            listing(sizes, SIZE_COLUMNS, heading)


# ---- The areas of a level on a map, where the user gives their shapes.


def _on_a_map(opened: AreaStudy, planned: AreaPlan | None) -> None:
    """A box for a GeoJSON file, and its shapes coloured by accuracy."""
    if planned is None:
        return
    left, right = st.columns([1, 3], gap="large")
    with left:
        errors = table_of_areas(planned)
        shapes = shapes_of(opened.areas.tree, "area map file", HERE)
    with right:
        if shapes is None:
            return
        chart_with_numbers(kept(map_chart, shapes, errors))
