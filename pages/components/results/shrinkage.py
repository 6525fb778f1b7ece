"""How far smooth tables were shrunk: by group, by size of the counts, and table by table."""

import pandas as pd
import streamlit as st

from pages.components.shared.charts import chart_with_numbers, numbers
from pages.components.shared.session import escaped, kept
from rpexplore.analysis.results import shrinkage as analysis
from rpexplore.figures.chart import COLUMNS, Column
from rpexplore.figures.shrinkage import shrinkage_chart
from rpexplore.postprocessing.group_distances import BY_SIZE
from rpexplore.postprocessing.processed_tables import ProcessedTables
from rpexplore.postprocessing.results import attributes_in_tables

VALUES, SIZES, TABLES = "Values of an attribute", "Size of the smooth count", "Tables"


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
        [VALUES, SIZES, TABLES] if attributes else [SIZES],
        key="smoothed by",
        horizontal=True,
        persist_state="session",
    )
    if by == TABLES:
        _by_table(tables)
        return
    groups = kept(_groups, tables)
    if by == SIZES:
        attribute, kind, file = BY_SIZE, "smooth counts", "smoothed_by_size.csv"
    else:
        far = analysis.farthest_group(groups.loc[groups["attribute"] != BY_SIZE, :])
        # Of these tables: others have another attribute to begin with.
        attribute = kind = st.selectbox(
            "Attribute",
            attributes,
            attributes.index(far["attribute"]),
            key=f"smoothed by attribute of {tables.folder}",
        )
        file = "smoothed_by_value.csv"
    of_attribute = groups.loc[groups["attribute"] == attribute, :]
    chart_with_numbers(shrinkage_chart(of_attribute, kind, file))


def _groups(tables: ProcessedTables) -> pd.DataFrame:
    return tables.shrinkage_by_group


def _by_table(tables: ProcessedTables) -> None:
    """What was kept of each measurement, and where smoothing gains next to nothing."""
    frame = tables.shrinkage
    st.markdown(escaped(analysis.describe_kept(frame)))
    st.markdown(escaped(analysis.describe_gains(frame)))
    columns = {
        "table": COLUMNS["table"],
        "smoothing_gains": Column("smoothing gains", "text"),
        "share_kept": Column("share kept", "share", term="Share kept"),
        "standard_error": COLUMNS["standard_error"],
        "model_error": Column("model-based error", term="Model-based error"),
        "order": COLUMNS["order"],
        "cells": COLUMNS["cells"],
    }
    frame = frame.assign(table=[" × ".join(names) for names in frame["attributes"]])
    frame = frame.drop(columns="attributes")
    frame = frame.sort_values("share_kept", kind="stable", ignore_index=True)
    numbers(frame, columns, "smoothed_tables.csv", "What smoothing kept and gains, by table")
