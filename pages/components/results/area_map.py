"""Released figures of areas on a map, on the page Results."""

import streamlit as st

from pages.components.results.postprocess import HERE
from pages.components.results.views import cells_of, chosen_values
from pages.components.shared.area_shapes import shapes_of
from pages.components.shared.area_walk import looked_into
from pages.components.shared.charts import chart_with_numbers
from pages.components.shared.session import escaped, kept
from rpexplore.figures.areas import QUANTITIES, outcome_chart
from rpexplore.results.area_results import AreaTables
from rpexplore.results.publication import Publication
from rpexplore.results.results import ShownTables
from rpexplore.workload.table_text import title


def map_view(
    results: ShownTables, attributes: tuple[str, ...], record_noun: str, publication: Publication
) -> None:
    """One figure of each area of a level, coloured by count, error, or whether to publish it."""
    assert isinstance(results, AreaTables)
    of_release = results.results
    tree = of_release.tree
    left, right = st.columns([1, 3], gap="large")
    with left:
        shapes = shapes_of(tree, "map of results", HERE)
    if shapes is None:
        return
    # All areas of the shapes' level within the area that is looked into, or the one around it.
    level = tree.levels.index(shapes.level)
    top = looked_into(tree, f"area of {of_release.release.named}")
    while tree.level_of[top] > level:
        top = int(tree.parents[top])
    table = attributes[1:] if results.axis else attributes
    results = kept(of_release.side_by_side, level, of_release.within(top, level), slot="on a map")
    attributes = (results.axis, *table)
    if not results.has_counts(attributes):
        right.info(f"There is no such table on the level {escaped(shapes.level)}; choose another.")
        return
    with left:
        shown = st.selectbox(
            "Colour by",
            list(QUANTITIES),
            format_func=QUANTITIES.__getitem__,
            key="map shows",
            persist_state="session",
        )
        fixed, summed, problem = chosen_values(
            results, cells_of(results, attributes).axes, [results.axis]
        )
    with right:
        if problem:
            st.info(problem)
            return
        names = results.in_column_order([results.axis, *fixed])
        cells = cells_of(results, names).at(fixed).along([results.axis])
        numbers, limit = results.area_numbers(names), publication.cv_limit
        frame = shapes.outcome(cells, numbers, limit, publication.sampling)
        if publication.leave_empty:
            frame = frame.loc[frame["publishable"] == "yes"]
        if frame.empty:
            st.info("None of the shapes is an area with a figure to show; choose other areas.")
            return
        remark = f"{', '.join(summed)}: all together." if summed else cells.remarks
        subject = f"{record_noun} by {title(names)}"
        chart_with_numbers(outcome_chart(shapes, frame, shown, subject, remark))
