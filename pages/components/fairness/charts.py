"""What the columns of the Fairness page are called, and its charts with their numbers."""

from typing import Any

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from pages.components.shared.charts import exhibit, numbers
from rpexplore.analysis.forecast import Forecast
from rpexplore.common.formatting import column_format
from rpexplore.planning.mechanism.table_variances import CELLS

WORDS = {
    "plan": "Plan",
    "series": "",
    "attributes": "Attributes",
    "attribute": "Attribute",
    "table": "Table",
    "order": "Attributes",
    "values": "Values",
    "cells": "Cells",
    "tables": "Tables",
    "variance": "Variance",
    "standard_error": "Standard error σ",
    "margin_95": "± 95 % of the time",
    "best_standard_error": "Most accurate cell σ",
    "worst_standard_error": "Least accurate cell σ",
    "cell": "Cell looked at",
    "times_median": "Times the median",
    "best": "Best",
    "smallest": "Best",
    "lower_tenth": "Best tenth up to",
    "lower_quartile": "Best quarter up to",
    "median": "Half up to",
    "upper_quartile": "Three quarters up to",
    "upper_tenth": "Nine tenths up to",
    "worst": "Worst",
    "largest": "Worst",
    "best_table": "Best table",
    "worst_table": "Worst table",
    "share": "Share",
    "share_of_tables": "Share of the tables",
    "coefficient": "Coefficient of variation",
    "publishable": "Publishable cells",
    "whole": "Tables in full",
    "none": "Tables not at all",
    "expected": "Expected count",
    "typical_count": "Expected in a typical cell",
    "relative_error": "Relative error",
    "typical_relative_error": "Relative error there",
    "accurate": "Accurate enough",
}
COUNTS = {"order", "values", "cells", "tables", "publishable", "whole", "none"}
EXPECTED = {"expected", "typical_count"}
SHARES = {"share", "share_of_tables", "coefficient", "relative_error", "typical_relative_error"}
TEXTS = {
    "plan",
    "series",
    "attributes",
    "attribute",
    "table",
    "best_table",
    "worst_table",
    "accurate",
    "cell",
}


def exhibit_with_numbers(
    figure: go.Figure,
    sentence: str,
    frame: pd.DataFrame,
    file: str,
    *,
    seen: Forecast | None = None,
    more: str = "",
    alt: str,
) -> None:
    """A chart with its numbers to look up. seen: says at which cell of each table, if at one"""
    exhibit(figure, f"{sentence} {seen.seen_in_words if seen else ''}".strip(), alt, more)
    with st.expander("The numbers of this chart"):
        frame = with_cell(frame, seen)
        numbers(frame, columns_of(frame), file, alt)


def with_cell(frame: pd.DataFrame, seen: Forecast | None) -> pd.DataFrame:
    """The numbers with the cell that they are about, where cells of a table differ."""
    return frame.assign(cell=CELLS[seen.cell]) if seen and seen.cells_differ else frame


def columns_of(frame: pd.DataFrame) -> dict[str, Any]:
    """How to show the columns of an analysis."""
    number = st.column_config.NumberColumn
    shown: dict[str, Any] = {}
    for name in frame.columns.drop("group", errors="ignore"):
        words = WORDS.get(name, name)
        if name in TEXTS or name not in WORDS:
            shown[name] = words
        elif name in COUNTS | EXPECTED:
            shown[name] = number(words, format="localized")
        elif name in SHARES:
            shown[name] = number(words, format="percent")
        else:
            shown[name] = number(words, format=column_format(frame[name]))
    return shown
