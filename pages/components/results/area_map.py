"""Released figures of areas on a map, on the page Results."""

import streamlit as st

from pages.components.results.postprocess import HERE
from pages.components.results.views import cells_of, chosen_values
from pages.components.shared.area_shapes import shapes_of
from pages.components.shared.charts import chart_with_numbers
from pages.components.shared.session import escaped
from rpexplore.figures.areas import QUANTITIES, outcome_chart
from rpexplore.results.area_results import AreaTables
from rpexplore.results.publication import Publication
from rpexplore.results.results import ShownTables
from rpexplore.workload.table_text import title


def map_view(
    results: ShownTables, attributes: tuple[str, ...], record_noun: str, publication: Publication
) -> None:
    """One figure of each area, coloured by its count, its error, or whether to publish it."""
    assert isinstance(results, AreaTables)
    tree = results.results.tree
    left, right = st.columns([1, 3], gap="large")
    with left:
        shapes = shapes_of(tree, "map of results", HERE)
    if shapes is None:
        return
    level = tree.levels[results.level]
    if not results.axis or level != shapes.level:
        right.info(
            f"The shapes are areas of the level {escaped(shapes.level)}: choose them, side by "
            "side, at “Show” above."
        )
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
