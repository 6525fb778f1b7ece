"""Synthetic records: made in the background, and looked at beside the released tables."""

from pathlib import Path
from typing import Any

import streamlit as st

from pages.components.results.postprocess import (
    POSTPROCESSING,
    leave_open,
    section,
    told_beforehand,
    work_button,
)
from pages.components.results.source import open_folder, origin_of
from pages.components.shared.charts import listing
from pages.components.shared.files import download, new_folder_input
from pages.components.shared.session import attempt, escaped, kept
from rpexplore.analysis.glossary import meaning
from rpexplore.common.processes import Progress
from rpexplore.common.text import plural
from rpexplore.domain.values import combination_from_text, describe_combinations, example_of
from rpexplore.figures.chart import Column
from rpexplore.releases.table_release import TableRelease
from rpexplore.results.area_results import AreaResults
from rpexplore.results.duration import records_seconds
from rpexplore.results.processed_tables import ProcessedTables
from rpexplore.results.synthetic.area_records import AreaRecords, synthesize_areas
from rpexplore.results.synthetic.impossible import of_names
from rpexplore.results.synthetic.records import RECORDS, TABLES, SyntheticRecords
from rpexplore.results.synthetic.records_folder import MOST_RECORDS, synthesize
from rpexplore.results.unbiased import Estimates

FIRST = 100  # records that are shown
TABLE_COLUMNS = {  # what matters first: a narrow screen shows no more
    "table": Column("table", "text"),
    "nearer": Column("nearer to the true counts", "text"),
    "ratio": Column("ratio of the errors"),
    "records_error": Column("estimated error of the records"),
    "released_error": Column("standard error of the released cells"),
    "cells": Column("cells", "count"),
    "cells_outside_interval": Column("outside the 95 % interval", "count"),
}
CELL_COLUMNS = {
    "table": Column("table", "text"),
    "cell": Column("cell", "text"),
    "records": Column("records", "estimate"),
    "released": Column("released", "estimate"),
    "lower_95": Column("95 % interval from", "estimate"),
    "upper_95": Column("to", "estimate"),
    "standard_errors_away": Column("standard errors away"),
}


def synthesizing(source: TableRelease | Estimates, folder: Path) -> None:
    """What can be drawn from unbiased tables; folder: where they are."""
    if POSTPROCESSING in st.session_state:
        return
    field = _field(folder)
    with section("Make synthetic records", field):
        st.markdown(
            f"{meaning('Synthetic records')} They go to a folder of their own, with a label and a "
            "comparison with the release."
        )
        options: dict[str, Any] | None = {}
        if source.trees:  # attributes at several levels
            st.caption(
                "As tables have an attribute at several levels, the records are those of "
                "nonnegative whole counts, with a column for each level."
            )
        else:
            options = _options(source)

        def work(on_progress: Progress, output: Path) -> None:
            synthesize(source, output, **(options or {}), on_progress=on_progress)

        output = new_folder_input("Folder for the records", field, Path(f"{folder}-synthetic"))
        if options:
            told_beforehand(kept(records_seconds, source, options["rows"]))
        possible = output if options is not None else None
        work_button("Make the records", work, possible, field, "records")


def _options(source: TableRelease | Estimates) -> dict[str, Any] | None:
    """How many records there shall be, and which there cannot be; None, explained, if mistyped."""
    rows = st.number_input(
        "Number of records",
        1,
        MOST_RECORDS,
        None,
        placeholder="as many as the release says: its total",
        key="synthetic rows",
        help="More records do not know more than the release does.",
        persist_state="session",
    )
    ignore_codebook = bool(source.domain.impossible) and not _holds_codebook(source)
    typed = st.text_area(
        "Further impossible combinations (optional)"
        if source.domain.impossible
        else "Impossible combinations (optional)",
        key="synthetic never",
        placeholder=example_of(source.domain, _attributes(source)),
        help="One a line: no record has all the values of a line together. Values are named "
        "as in a condition: a value, a range, several with commas between.",
        persist_state="session",
    )
    lines = [line for line in typed.splitlines() if line.strip()]
    never = attempt(lambda: [combination_from_text(source.domain, line) for line in lines])
    if never is None:
        return None
    return {"rows": rows, "never": never, "ignore_codebook": ignore_codebook}


def _holds_codebook(source: TableRelease | Estimates) -> bool:
    """Whether records are made without what the codebook states to be impossible."""
    held, left_out = of_names(source.domain.impossible, _attributes(source))
    st.markdown(escaped(f"The codebook states {describe_combinations(source.domain.impossible)}"))
    holds = not held or st.checkbox(
        "No record has one of them",
        True,
        key="synthetic codebook",
        help="Without it, noise makes some records of a combination that cannot be.",
        persist_state="session",
    )
    if left_out:
        listed = "; ".join(combination.text for combination in left_out)
        st.caption(escaped(f"Not held, because records have only attributes of tables: {listed}"))
    return holds


def where_records_are_made(tables: ProcessedTables) -> None:
    """That records are made from the release, with a button that opens it there, if it is found."""
    st.subheader("Synthetic records")
    st.markdown("Synthetic records are made from the release, not from processed tables.")
    release = kept(origin_of, tables)
    if release is None:
        st.caption("The release is not where it was: choose its folder above.")
    else:
        label = f"Open {escaped(release.name)} to make synthetic records"
        st.button(label, on_click=_open_to_make_records, args=(release,))


def _open_to_make_records(release: Path) -> None:
    open_folder(release)
    leave_open(_field(release.absolute()))


def _field(folder: Path) -> str:
    """The key of the field for the folder of records that are made of what is in a folder."""
    return f"synthetic into, of {folder}"


def _attributes(source: TableRelease | Estimates) -> list[str]:
    """The attributes that records would have."""
    names = {name for table in source.table_names for name in table}
    return list(source.domain.in_order(names))


def browse_records(records: SyntheticRecords) -> None:
    """The first records, and how their tables compare with the released ones."""
    st.markdown(f"**{escaped(records.use)}**")
    st.markdown(escaped(records.facts))
    if records.never:
        listed = "".join(f"\n- {escaped(condition)}" for condition in records.never)
        st.markdown(f"No record has one of these combinations:\n{listed}")
    kind = "measured" if records.is_adaptive else "released"
    st.subheader(
        "Beside what was measured" if records.is_adaptive else "Beside the released tables"
    )
    remark = ", and the released table still has the exact error"
    if records.is_adaptive:
        remark = ""
        st.markdown(
            "The tables of an adaptive release are biased estimates. The records are compared with "
            "unbiased tables that follow from what was measured, which may not be among the "
            "released ones; their standard errors and intervals hold only about."
        )
    st.caption(
        "Of the records' tables no error is known, so that nothing tells which is nearer to the "
        "true counts: use the released ones. Errors are root mean squares over the cells, in "
        "counts."
        if records.is_whole
        else "The worst for the records first. Which is nearer to the true counts is estimated by "
        f"the ratio of two errors, that of the records to that of the {kind} table: above 1.1 the "
        f"{kind} table, below 0.9 the records, if the model holds; between them there is no clear "
        f"difference{remark}. Errors are root mean "
        "squares over the cells, in counts; that of the records is estimated from the model-based "
        "error of the smooth table and the distance of the records from it."
    )
    columns = TABLE_COLUMNS | {
        "released_error": Column(f"standard error of the {kind} cells"),
    }
    listing(records.comparison, columns, f"Tables of the records and {kind} ones")
    with st.expander("Cells that differ most"):
        columns = CELL_COLUMNS | {"released": Column(kind, "estimate")}
        listing(records.worst_cells, columns, "Cells that differ most")
    st.subheader(f"The first {min(FIRST, records.n_records)} of {records.n_records:,} records")
    first = records.records(FIRST)
    listing(first, {name: Column(name, "name") for name in first}, "The first records")
    with st.container(horizontal=True):
        for name in (f"{RECORDS}.csv", f"{RECORDS}.parquet", f"{TABLES}.csv", "README.md"):
            download(name, (records.checked / name).read_bytes)


def synthesizing_areas(guesses: AreaResults, folder: Path) -> None:
    """Records that are made of best guesses for areas; folder: where these are."""
    if POSTPROCESSING in st.session_state:
        return
    field = _field(folder)
    with section("Make synthetic records", field):
        st.markdown(
            f"{meaning('Synthetic records')} There is one for each person in every lowest area; "
            "counted again, they have every count of the best guesses."
        )

        def work(on_progress: Progress, output: Path) -> None:
            synthesize_areas(guesses, output, on_progress=on_progress)

        output = new_folder_input("Folder for the records", field, Path(f"{folder}-synthetic"))
        work_button("Make the records", work, output, field, "records")


def browse_area_records(records: AreaRecords) -> None:
    """The first records of an area below the top, and its file."""
    file = st.selectbox("Records of", records.files, key="file of area records", width=480)
    own = kept(records.of_file, file)
    st.subheader(f"The first {min(FIRST, len(own)):,} of {plural(len(own), 'record')}")
    first = own.head(FIRST)
    listing(first, {name: Column(name, "name") for name in first}, "The first records")
    st.caption(
        f"{plural(records.n_records, 'record')} in {plural(len(records.files), 'Parquet file')}; "
        "all of them in Python:"
    )
    st.code(
        "from rpexplore.results.synthetic.area_records import AreaRecords\n\n"
        f"records = AreaRecords.load({str(records.folder)!r}).records()",
        language="python",
        wrap_lines=True,
    )
    with st.container(horizontal=True):
        for name in (file, "README.md"):
            download(name.rpartition("/")[2], (records.checked / name).read_bytes)
