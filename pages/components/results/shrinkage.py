"""How far smooth tables were shrunk: by group, by level of counts, and table by table."""

from collections.abc import Iterator

import pandas as pd
import streamlit as st

from pages.components.shared.background import worked_out
from pages.components.shared.charts import chart_with_numbers, numbers
from pages.components.shared.session import escaped
from rpexplore.analysis.results import shrinkage as analysis
from rpexplore.analysis.results.released_cells import ReleasedCells
from rpexplore.common.concurrency import Progress
from rpexplore.figures.chart import COLUMNS, Chart, Column
from rpexplore.figures.shrinkage import shrinkage_chart
from rpexplore.postprocessing.processed_tables import ProcessedTables
from rpexplore.postprocessing.results import attributes_in_tables

VALUES, LEVELS, TABLES = "Values of an attribute", "Level of counts", "Tables"


def shrinkage(tables: ProcessedTables) -> None:
    """How far groups are from their unbiased counts, and what was kept of each measurement."""
    st.subheader("How far counts were smoothed")
    st.markdown(
        "Smoothing takes differences from small groups first. Here is how far smooth counts are "
        "from the unbiased ones, in standard errors (root mean square). At 1 no more than noise "
        "was taken away. Clearly above 1, real differences went with it; above 1.41 the unbiased "
        "counts of a group are more accurate than its smooth ones."
    )
    attributes = attributes_in_tables(tables)
    by = st.radio(
        "By",
        [VALUES, LEVELS, TABLES] if attributes else [LEVELS],
        key="smoothed by",
        horizontal=True,
        persist_state="session",
    )
    if by == TABLES:
        _kept(tables)
        return
    chart = None
    if by == LEVELS:
        chart = worked_out(_by_level, tables)
    else:
        frames = worked_out(_by_value, tables)
        if frames is not None:
            first = attributes.index(analysis.farthest_attribute(frames))
            # Of these tables: others have another attribute to begin with.
            key = f"smoothed by attribute of {tables.folder}"
            attribute = st.selectbox("Attribute", attributes, first, key=key)
            chart = shrinkage_chart(frames[attribute], attribute, "smoothed_by_value.csv")
    if chart is not None:
        chart_with_numbers(chart)


def _by_value(tables: ProcessedTables, on_progress: Progress) -> dict[str, pd.DataFrame]:
    return analysis.by_value(_cells(tables, on_progress))


def _by_level(tables: ProcessedTables, on_progress: Progress) -> Chart:
    frame = analysis.by_level(_cells(tables, on_progress))
    return shrinkage_chart(frame, "smooth counts", "smoothed_by_level.csv")


def _cells(tables: ProcessedTables, on_progress: Progress) -> Iterator[ReleasedCells]:
    names = tables.table_names
    for position, attributes in enumerate(names):
        on_progress("Comparing smooth and unbiased counts", position / len(names))
        yield ReleasedCells.of(tables.table(attributes), attributes)


def _kept(tables: ProcessedTables) -> None:
    frame = tables.shrinkage
    st.markdown(escaped(analysis.describe_kept(frame)))
    frame = frame.assign(table=[" × ".join(names) for names in frame["attributes"]])
    columns = {
        "table": COLUMNS["table"],
        "order": COLUMNS["order"],
        "cells": COLUMNS["cells"],
        "share_kept": Column("share kept", "share", term="Share kept"),
    }
    frame = frame.drop(columns="attributes")
    frame = frame.sort_values("share_kept", kind="stable", ignore_index=True)
    numbers(frame, columns, "smoothed_tables.csv", "Share kept of what was measured, by table")
