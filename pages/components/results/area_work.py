"""What is made of a release of areas: sums over any areas, and whole counts."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st

from pages.components.results.downloads import table_downloads
from pages.components.results.postprocess import POSTPROCESSING, section, work_button
from pages.components.shared.background import follow_begun, worked_out
from pages.components.shared.charts import listing
from pages.components.shared.files import new_folder_input
from pages.components.shared.session import attempt, kept
from rpexplore.analysis.glossary import meaning
from rpexplore.common.concurrency import Progress
from rpexplore.domain.named_areas import lists_of_areas, totals_of_areas, typed_lists
from rpexplore.figures.chart import COLUMNS, Column
from rpexplore.planning.areas.area_sums import AreaName
from rpexplore.postprocessing.areas.area_counts import whole_area_counts
from rpexplore.postprocessing.areas.area_results import AreaResults
from rpexplore.postprocessing.areas.released_sums import sums_of_areas
from rpexplore.workload.table_text import Table, title

_FILES = ["csv", "parquet"]
_SUM_COLUMNS = {
    "list": Column("list", "text"),
    "value": Column("noisy count", "estimate"),
    "standard_error": COLUMNS["standard_error"],
    "lower_95": Column("95 % interval from", "estimate"),
    "upper_95": Column("95 % interval to", "estimate"),
}


def area_work(results: AreaResults) -> None:
    """Sums over lists of areas, and whole counts in a folder of their own."""
    st.subheader("More from this release")
    field = f"areas added up, of {results.home}"
    with section("Add up areas that are no area of the tree, such as a school district", field):
        _sums(results)
    st.markdown(f"{meaning('Post-processing')} The released tables stay as they are.")
    if follow_begun(POSTPROCESSING):
        return
    field = f"whole counts into, of {results.home}"
    with section("Make whole counts that are never negative and add up", field):
        _whole_counts(results, field)


def _sums(results: AreaResults) -> None:
    st.caption(
        "Unbiased, with exact standard errors. Areas of a list may be of any levels, but must not "
        "overlap."
    )
    typed = st.text_area(
        "Lists, one a line: a name, a colon, and codes of areas",
        key="lists of areas",
        persist_state="session",
        placeholder="Harbour school district: R030101, R030102",
        help="Each area by its own code, where no other has it, or by its codes from the top, such "
        "as R03 > R0301.",
    )
    file = st.file_uploader(
        "Or a file of lists",
        type=_FILES,
        key="file of lists of areas",
        help="One row an area of a list: a column list, and a column code or one for each level.",
    )
    tables = {title(table): table for table in results.plan.workload.tables.tables}
    table = tables[st.selectbox("Table to add up", list(tables), width=360)]
    lists = attempt(lambda: _lists(results, typed, file))
    if not lists:
        return
    by = (results, table, typed, None if file is None else file.getvalue())
    sums = worked_out(_sums_of, results, lists, table, by=by)
    if sums is None:
        return
    labels = {name: Column(name, "name") for name in sums if name not in _SUM_COLUMNS}
    columns = {"list": _SUM_COLUMNS["list"], **labels, **_SUM_COLUMNS}
    listing(sums, columns, "Sums over lists of areas")
    table_downloads(sums, "sums_of_areas.csv")


def _lists(results: AreaResults, typed: str, file: Any) -> dict[str, Iterable[AreaName]]:
    """The typed lists and those of the file."""
    lists: dict[str, Iterable[AreaName]] = {}
    lists.update(typed_lists(typed))
    if file is not None:
        lists.update(kept(lists_of_areas, results.tree, file.name, file.getvalue()))
    return lists


def _sums_of(
    results: AreaResults,
    lists: dict[str, Iterable[AreaName]],
    table: Table,
    on_progress: Progress,
) -> pd.DataFrame:
    on_progress("Adding up areas", 0.0)
    return sums_of_areas(results.release, lists, *table)


def _whole_counts(results: AreaResults, field: str) -> None:
    st.caption(
        "Whole numbers, none below 0; areas add up to what they are parts of, and all tables of an "
        "area agree. Biased, and labelled so in every row, beside the unbiased count and its "
        "interval. Single cells of small areas come nearer to the truth, totals hardly; sums of "
        "large cells are better taken from the unbiased counts."
    )
    file = st.file_uploader(
        "Totals that are publicly known, to be met (optional)",
        type=_FILES,
        key="file of known totals",
        help="One row an area: a column total, and a column code or one for each level. They are "
        "not protected: give only what is public.",
    )
    totals: dict[AreaName, int] = {}
    if file is not None:
        known = attempt(lambda: kept(totals_of_areas, results.tree, file.name, file.getvalue()))
        if known is None:
            return
        totals |= known

    def work(on_progress: Progress, output: Path) -> None:
        whole_area_counts(results.release, output, totals=totals, on_progress=on_progress)

    output = new_folder_input("Folder for the whole counts", field, Path(f"{results.home}-whole"))
    work_button("Make whole counts", work, output, field, "whole counts")
