"""Fairness by area: a tree that is walked down, and the least accurate areas of a level."""

import streamlit as st

from pages.components.areas.study import area_plan
from pages.components.shared.area_walk import looked_into, way_down, way_up
from pages.components.shared.charts import chart_with_numbers, listing, numbers
from pages.components.shared.session import escaped, kept
from rpexplore.analysis.areas.accuracy import (
    SIZES,
    AreaErrors,
    divided_parts,
)
from rpexplore.figures.areas import AREA_COLUMNS, SIZE_COLUMNS, parts_chart
from rpexplore.planning.areas.area_plan import AreaPlan
from rpexplore.scenarios.area_study import AreaStudy
from rpexplore.workload.table_text import title

_MOST_LISTED = 1000  # areas in a list, and to choose from
_WALK = "area looked into"


def table_of_areas(planned: AreaPlan) -> AreaErrors:
    """The table to look at, chosen by the user, with its errors in all areas."""
    tables = {title(table): table for table in planned.workload.tables.tables}
    chosen = st.selectbox(
        "Table", list(tables), key="table of areas", width=360, persist_state="session"
    )
    return kept(AreaErrors.of, planned, tables.get(chosen, next(iter(tables.values()))))


def by_area(opened: AreaStudy) -> None:
    """The treemap of one area, and under it the areas of a level, the least accurate first."""
    planned = area_plan(opened)
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
