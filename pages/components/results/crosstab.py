"""A table of the results as a crosstab: rows and columns, levels, shares, order, totals."""

from dataclasses import replace
from pathlib import Path

import streamlit as st

from pages.components.results.files import shown_download, table_downloads
from pages.components.results.views import (
    amounts_of,
    cells_of,
    chosen_values,
    down_and_across,
    figures_shown,
    named,
)
from pages.components.shared.session import escaped, kept
from rpexplore.common.text import capitalised, joined
from rpexplore.results.formats.crosstab import Crosstab, crosstab, levels_of
from rpexplore.results.formats.crosstab_html import CSS, html_of, legend
from rpexplore.results.publication import Publication
from rpexplore.results.results import ShownTables

COUNTS, ROW_SHARES, COLUMN_SHARES = "Counts", "Row %", "Column %"
_ORDERS = ("as listed", "largest first", "smallest first")
_MOST_CELLS = 20_000  # in a browser, of which the first rows are shown
_STYLE = f"""<style>{CSS}
.crosstab-frame {{ overflow: auto; max-height: 75vh; width: fit-content; max-width: 100%; }}
.crosstab-frame:focus-visible {{ outline: 2px solid light-dark(#1d4f91, #8fb8f0); }}
.crosstab thead {{ position: sticky; top: 0; background: light-dark(#ffffff, #12171e); }}
</style>"""


def crosstab_view(
    results: ShownTables,
    attributes: tuple[str, ...],
    record_noun: str,
    publication: Publication,
    *,
    folder: Path,
) -> None:
    """The table with its totals, as it can be published. folder: where the results are"""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        axes = _axes(results, attributes)
        all_axes = cells_of(results, attributes).axes if attributes else ()
        fixed: dict[str, int] = {}
        summed: list[str] = []
        problem = ""
        if len(attributes) > len(axes):
            fixed, summed, problem = chosen_values(results, all_axes, axes, width=200)
        levels = _levels(results, axes)
        figures = st.container(horizontal=True, vertical_alignment="bottom", width="content")
    if problem:
        st.info(problem)
        return
    down, across = axes[:1], axes[1] if len(axes) > 1 else None
    by = (results, down, across, tuple(levels.items()), tuple(fixed.items()))
    table = kept(crosstab, results, down, across, by=by, levels=levels, fixed=fixed)
    table = table.with_sampling(publication.sampling)
    with figures:
        values = COUNTS
        if set(attributes).intersection(amounts_of(results)):
            table, values = replace(table, head="head_value"), "Values"
        shown = _as_chosen(table, publication, values)
    what = figures_shown(results, all_axes, fixed, record_noun).heading
    caption = capitalised(what) + (f" by {joined(axes)}" if axes else "")
    remark = f"{', '.join(summed)}: all together." if summed else ""
    show(shown, publication, caption, remark)
    released = kept(results.table, attributes)
    file = publication.file_of(named(results, attributes))
    with st.container(horizontal=True):
        table_downloads(publication.table(released), file)
        heading = f"{caption}. {remark}".strip(" .")
        shown_download(folder, shown, heading, publication, f"{Path(file).stem}.xlsx")


def show(table: Crosstab, publication: Publication, caption: str, remark: str = "") -> None:
    """A crosstab with the sentences below it; a long one with its first rows."""
    table = table.first(max(_MOST_CELLS // table.values.shape[1], 1))
    st.html(
        f'{_STYLE}<div class="crosstab-frame" role="region" tabindex="0" aria-label="Crosstab">'
        f"{html_of(table, publication, caption)}</div>"
    )
    st.caption(escaped(" ".join(filter(None, [*legend(table, publication), remark]))))


def _axes(results: ShownTables, attributes: tuple[str, ...]) -> list[str]:
    """The attribute down, and the one across if there are two, which the user may exchange."""
    if len(attributes) < 2:
        return list(attributes)
    names = down_and_across(results, cells_of(results, attributes))
    if len(attributes) > 2:
        # Areas that stand side by side are not added up: one of the sides is theirs.
        first = names[:1] if results.axis else names
        down = st.selectbox("Rows", first, key=f"rows of {attributes}", width=200)
        others = [name for name in names if name != down]
        across = st.selectbox("Columns", others, key=f"columns of {others}", width=200)
        names = [down, across]
    key = f"exchanged {attributes}"
    if st.session_state.get(key):
        names = names[::-1]

    def exchange() -> None:
        st.session_state[key] = not st.session_state.get(key)

    st.button("Exchange rows and columns", icon=":material/swap_horiz:", on_click=exchange)
    return names


def _levels(results: ShownTables, axes: list[str]) -> dict[str, str]:
    """The level of each attribute that has several, chosen by the user."""
    offered = {name: levels_of(results, name) for name in axes}
    several = {name: levels for name, levels in offered.items() if len(levels) > 1}
    return {
        name: st.selectbox(
            escaped(f"{name} at"), levels, key=f"level of {name} of {levels}", width=220
        )
        for name, levels in several.items()
    }


def _as_chosen(table: Crosstab, publication: Publication, values: str) -> Crosstab:
    """Counts, or the shares that there are, in the order of rows that the user chooses.

    values: what the counts are called, which may be sums
    """
    figures = [COUNTS]
    figures += [ROW_SHARES] if table.has_total_column else []
    figures += [COLUMN_SHARES] if table.has_total_row else []
    shown = COUNTS
    if len(figures) > 1:
        shown = st.segmented_control(
            "Figures",
            figures,
            default=COUNTS,
            format_func=lambda option: values if option == COUNTS else option,
            required=True,
            key=f"figures of {figures}",
            help="Shares have exact errors, with the covariance of figure and total. They are "
            "left empty where the total is not publishable.",
        )
    order = st.selectbox("Order of rows", _ORDERS, key="order of rows", width=180)
    if order != _ORDERS[0]:
        table = table.sorted_by(-1, ascending=order == _ORDERS[2])
    if shown == COUNTS:
        return table
    return table.shares("row" if shown == ROW_SHARES else "column", publication.cv_limit)
