"""The views of a table of the results beside its crosstab: a list, bars, a heat map, a map."""

from collections.abc import Mapping, Sequence
from typing import Literal

import plotly.graph_objects as go
import streamlit as st

from pages.components.results.files import table_downloads
from pages.components.results.postprocess import HERE
from pages.components.shared.area_walk import looked_into, shapes_of
from pages.components.shared.charts import chart_with_numbers, listing
from pages.components.shared.session import escaped, kept
from rpexplore.analysis.cell_accuracy import Axis
from rpexplore.analysis.released_cells import ReleasedCells, describe_margin
from rpexplore.common.text import capitalised
from rpexplore.figures.areas import QUANTITIES, outcome_chart
from rpexplore.figures.cells import (
    MOST_BARS,
    MOST_CELLS,
    MOST_GROUPS,
    bars_with_intervals,
    heat_map,
    is_crossed,
)
from rpexplore.figures.chart import Chart
from rpexplore.releases.means import Figures, figures_of
from rpexplore.results.area_results import AreaTables
from rpexplore.results.formats.listed_columns import columns_of
from rpexplore.results.publication import Publication
from rpexplore.results.results import ShownTables
from rpexplore.workload.table_text import title

MOST_OPTIONS = 1000  # values of an attribute, to choose from
TOGETHER = "all together"
FIGURES, MARGINS = "Figures", "Margins of error"


def list_view(
    results: ShownTables, attributes: tuple[str, ...], record_noun: str, publication: Publication
) -> None:
    """The table as it was released, one row a cell, with its interval and CV."""
    released = kept(results.table, attributes)
    margin = escaped(describe_margin(released, record_noun))
    if results.is_estimated:
        st.markdown(
            "The estimated count is the best guess of a model, and biased; its error and interval "
            "hold if the model does."
        )
    elif results.is_smooth:
        st.markdown(
            "The smooth count is the best guess at a cell, with its model-based error beside it. "
            f"The unbiased count is within {margin} of the true one, 95 % of the time, whatever "
            "the model."
        )
    elif results.is_biased:
        st.markdown(
            f"The unbiased count is within {margin} of the true one, 95 % of the time. The "
            "processed count is biased: no error of it is known, and it may lie outside the "
            "interval."
        )
    elif results.clamping_of(attributes):
        st.markdown(
            "Sums and counts are unbiased, not rounded, and may be negative. Each row has an "
            "interval of its own, which holds the true figure 95 % of the time."
        )
    else:
        st.markdown(
            f"A count is within {margin} of the true one, 95 % of the time. Counts are unbiased, "
            "not rounded, and may be negative."
        )
    frame = publication.table(released)
    figure = "figure" if results.clamping_of(attributes) else "count"
    listing(frame, columns_of(frame, figure), alt_of(results))
    table_downloads(frame, publication.file_of(named(results, attributes)))


def bar_view(
    results: ShownTables, attributes: tuple[str, ...], record_noun: str, publication: Publication
) -> None:
    """One attribute on the axis, maybe a second side by side; others fixed or together."""
    cells = cells_of(results, attributes)
    left, right = st.columns([1, 3], gap="large")
    with left:
        along = st.selectbox(
            "Along the axis", by_size(results, cells), key=f"bars along {attributes}"
        )
        others = [name for name in attributes if name != along]
        beside, groups = _groups(cells, along, others) if others else (None, ())
        axes = [along] if beside is None else [along, beside]
        part, remark, figures = _part(results, cells, axes, publication, record_noun)
    with right:
        if part is None:
            st.info(remark)
            return
        if beside is not None:
            part = part.only(beside, groups)
        most = MOST_BARS // max(len(groups), 1)
        part = part.first([most, MOST_GROUPS][: len(axes)])
        _chart(
            bars_with_intervals(part, figures.unit),
            part,
            part.describe_bars(figures.what),
            "Figures with their 95 % intervals as bars",
            remark,
            publication,
            results,
        )


def heat_view(
    results: ShownTables, attributes: tuple[str, ...], record_noun: str, publication: Publication
) -> None:
    """Two attributes on the axes; others fixed or together."""
    left, right = st.columns([1, 3], gap="large")
    with left:
        above = st.container()  # what is coloured follows from what is chosen below
        part, remark, figures = _across_and_down(results, attributes, publication, record_noun)
        colour = above.radio(
            "Colour",
            [FIGURES, MARGINS],
            format_func=lambda option: capitalised(figures.what) if option == FIGURES else option,
            key="heat colour",
            persist_state="session",
            help="A margin of error is shown as a share of the figure. At 100 % and more the "
            "figure cannot be told from 0.",
        )
    with right:
        if part is None:
            st.info(remark)
            return
        part, by_margin = part.first([MOST_CELLS, MOST_CELLS]), colour == MARGINS
        _chart(
            heat_map(part, figures.what, by_margin=by_margin),
            part,
            part.describe_heat(figures.what, by_margin=by_margin, crossed=is_crossed(part)),
            f"{'Margins of error as a share of the figures' if by_margin else 'Figures'} as a heat "
            "map",
            remark,
            publication,
            results,
        )


def _across_and_down(
    results: ShownTables, attributes: tuple[str, ...], publication: Publication, record_noun: str
) -> tuple[ReleasedCells | None, str, Figures]:
    """Cells along two attributes, of which it draws the choice, as `_part` has them."""
    cells = cells_of(results, attributes)
    names = down_and_across(results, cells)
    listed = [*names[1:], names[0]] if results.axis else names  # areas side by side are rows
    across = st.selectbox("Across", listed, key=f"heat across {attributes}")
    others = [name for name in names if name != across]
    down = st.selectbox("Down", others, key=f"heat down {others}")
    return _part(results, cells, [down, across], publication, record_noun)


def _groups(
    cells: ReleasedCells, along: str, others: list[str]
) -> tuple[str | None, tuple[int, ...]]:
    """The attribute whose values stand side by side, and which of them; None: there is none."""
    beside = st.selectbox(
        "Side by side",
        [None, *others],
        format_func=lambda name: name or "nothing",
        key=f"bars beside {along} of {others}",
    )
    if beside is None:
        return None, ()
    labels = next(axis.labels for axis in cells.axes if axis.name == beside)
    first = tuple(range(min(len(labels), MOST_GROUPS)))
    if len(labels) <= MOST_GROUPS:
        return beside, first
    # Options are labels: a browser keeps what it shows, and results may number others alike.
    picked = st.multiselect(
        escaped(f"Values of {beside}, up to {MOST_GROUPS}"),
        labels,
        labels[:MOST_GROUPS],
        max_selections=MOST_GROUPS,
        key=f"bars groups of {beside}",
    )
    return beside, tuple(sorted(labels.index(label) for label in picked)) or first


def _part(
    results: ShownTables,
    cells: ReleasedCells,
    axes: Sequence[str],
    publication: Publication,
    record_noun: str,
) -> tuple[ReleasedCells | None, str, Figures]:
    """The cells along these axes, and a remark on attributes that are summed; or None and why.

    Also what these cells are.

    Draws a choice for each other attribute: one of its values, or all together.
    """
    fixed, summed, problem = chosen_values(results, cells.axes, axes)
    figures = figures_shown(results, cells.axes, fixed, record_noun)
    if problem:
        return None, problem, figures
    names = results.in_column_order([*axes, *fixed])
    remark = f"{', '.join(summed)}: {TOGETHER}." if summed else ""
    return _shown(cells_of(results, names), publication).at(fixed).along(axes), remark, figures


def figures_shown(
    results: ShownTables, axes: Sequence[Axis], fixed: Mapping[str, int], record_noun: str
) -> Figures:
    """What a view shows of a table with these axes, some of them fixed at one value."""
    labels = {axis.name: axis.labels for axis in axes}
    chosen = {name: labels[name][index] for name, index in fixed.items()}
    return figures_of(results.domain, labels, chosen, record_noun)


def chosen_values(
    results: ShownTables,
    all_axes: Sequence[Axis],
    axes: Sequence[str],
    width: Literal["stretch"] | int = "stretch",
) -> tuple[dict[str, int], list[str], str]:
    """Of other axes: the chosen value of each, those that are summed, and why that cannot be.

    Draws a choice for each: one of its values, or all together.
    """
    fixed, summed, can_be_summed = {}, [], results.has_counts(axes)
    for axis in all_axes:
        if axis.name in axes:
            continue
        label = TOGETHER
        if axis.name in amounts_of(results):
            key = f"results value of {axis.name}"
            label = st.selectbox(escaped(axis.name), axis.labels, key=key, width=width)
        elif len(axis.labels) <= MOST_OPTIONS:
            label = st.selectbox(
                escaped(axis.name),
                [TOGETHER, *axis.labels],
                index=0 if can_be_summed else 1,
                key=f"results value of {axis.name}{'' if can_be_summed else ', no sum'}",
                width=width,
            )
        if label == TOGETHER:
            summed.append(axis.name)
        else:
            fixed[axis.name] = axis.labels.index(label)
    if results.has_counts(results.in_column_order([*axes, *fixed])):
        return fixed, summed, ""
    names = escaped(" and ".join(summed))
    if results.is_biased:
        return (
            fixed,
            summed,
            (
                "Biased counts cannot be summed any further here, and there is no table without "
                f"{names}; choose a value there."
            ),
        )
    return fixed, summed, f"Areas are not added up here; choose one at {names}."


def _shown(cells: ReleasedCells, publication: Publication) -> ReleasedCells:
    if not publication.leave_empty:
        return cells
    return cells.suppressed(publication.cv_limit, publication.sampling)


def cells_of(results: ShownTables, attributes: tuple[str, ...]) -> ReleasedCells:
    """All cells of the table of these attributes."""
    return kept(_all_cells, results, attributes, slot=str(len(attributes)))


def _all_cells(results: ShownTables, attributes: tuple[str, ...]) -> ReleasedCells:
    return ReleasedCells.of(results.counts(attributes), attributes)


def down_and_across(results: ShownTables, cells: ReleasedCells) -> list[str]:
    """The attributes by size; areas that stand side by side come first, one row each."""
    names = by_size(results, cells)
    return sorted(names, key=lambda name: name != results.axis)


def by_size(results: ShownTables, cells: ReleasedCells) -> list[str]:
    """The attributes, those with the most values first; amounts last, of which one row is shown."""
    sizes = {axis.name: len(axis.labels) for axis in cells.axes}
    return sorted(sizes, key=lambda name: (name in amounts_of(results), -sizes[name]))


def amounts_of(results: ShownTables) -> list[str]:
    """The attributes of amounts."""
    domain = results.domain
    return [] if domain is None else [domain.names[index] for index in domain.amounts]


def _chart(
    figure: go.Figure,
    cells: ReleasedCells,
    sentence: str,
    subject: str,
    remark: str,
    publication: Publication,
    results: ShownTables,
) -> None:
    """A chart of cells, and its numbers as a table and as CSV."""
    frame = publication.table(cells.frame)
    file = publication.file_of(named(results, tuple(axis.name for axis in cells.axes)))
    columns = columns_of(frame, "figure")  # chosen values may make it one of sums
    chart_with_numbers(Chart(figure, subject, sentence, frame, columns, file, remark))


def alt_of(results: ShownTables) -> str:
    if results.is_estimated:
        return "Estimated table"
    return "Processed table" if results.is_biased else "Noisy table"


def named(results: ShownTables, attributes: tuple[str, ...]) -> tuple[str, ...]:
    """The attributes that a file is named by; of areas after the one that they are, or lie in."""
    return (*results.whose, *(attributes or ("total",)))


# ---- Released figures of areas on a map, on the page Results.


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
        all_axes = cells_of(results, attributes).axes
        fixed, summed, problem = chosen_values(results, all_axes, [results.axis])
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
        by = [name for name in names if name not in amounts_of(results)]
        figures = figures_shown(results, all_axes, fixed, record_noun)
        subject = f"{figures.heading} by {title(tuple(by))}"
        chart_with_numbers(outcome_chart(shapes, frame, shown, subject, remark))
