"""Tables of the results as files: one as CSV and Parquet, all as an Excel workbook."""

from pathlib import Path

import pandas as pd
import streamlit as st

from pages.components.shared.charts import download_frame
from pages.components.shared.files import download
from rpexplore.common.other_process import in_other_process
from rpexplore.postprocessing.publication import Publication
from rpexplore.postprocessing.results import AnyResults
from rpexplore.postprocessing.workbook import MAX_TABLES, workbook_bytes
from rpexplore.releases.stored_tables import parquet_of

MOST_IN_WORKBOOK = 200_000  # cells: some ten seconds of work


def table_downloads(frame: pd.DataFrame, file: str) -> None:
    """Buttons for one table; file: what to call it as CSV."""
    with st.container(horizontal=True):
        download_frame(frame, file)
        parquet = f"{Path(file).stem}.parquet"
        download(parquet, lambda: parquet_of(frame))


def workbook_download(results: AnyResults, folder: Path, publication: Publication) -> None:
    """A button for all tables; where they are many, how to make the workbook without the app."""
    counts = [item.n_rows for item in results.items]
    if sum(counts) <= MOST_IN_WORKBOOK and len(counts) <= MAX_TABLES:
        label = "Download all tables as an Excel workbook"
        kind = "-publishable" if publication.leave_empty else ""
        download(
            f"tables{kind}.xlsx",
            lambda: in_other_process(workbook_bytes, folder, publication),
            label,
        )
    else:
        st.caption(
            "These tables are too many to be made a workbook here; `rpexplore workbook` writes one "
            "from the folder."
        )
