"""A chart as pages and reports show it: the figure, its sentence, its numbers and their columns."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from rpexplore.analysis.measures import STANDARD_ERROR, Measure

if TYPE_CHECKING:
    import plotly.graph_objects as go

Kind: TypeAlias = Literal[
    "text", "name", "count", "share", "change", "estimate", "rounded", "number"
]


@dataclass(frozen=True)
class Column:
    """The heading of a column, in lower case, and how its values are to be read.

    kind    names are headings to be left as they are; shares are between 0 and 1, changes in
            per cent; estimates are counts that need not be whole; what is rounded has its own
            decimals in each row, numbers all have the same
    digits  significant ones of the smallest number
    term    that of the glossary which says what the values are; "" where the heading does
    """

    heading: str
    kind: Kind = "number"
    digits: int = 3
    term: str = ""


_CV = "Coefficient of variation"
COLUMNS = {
    "plan": Column("plan", "text"),
    "scenario": Column("scenario", "text"),
    "series": Column("series", "text"),
    "attributes": Column("attributes", "text"),
    "attribute": Column("attribute", "text"),
    "table": Column("table", "text"),
    "item": Column("table", "text"),
    "rho": Column("budget ρ", term="ρ"),
    "order": Column("attributes", "count"),
    "values": Column("values", "count"),
    "cells": Column("cells", "count"),
    "tables": Column("tables", "count"),
    "variance": Column("variance"),
    "standard_error": Column("standard error σ", term="Standard error"),
    "coefficient_of_variation": Column("coefficient of variation", "share", term=_CV),
    "margin_95": Column("95 % margin of error", term="Margin of error"),
    "smallest_standard_error": Column("most accurate cell σ", term="Least / most accurate"),
    "largest_standard_error": Column("least accurate cell σ", term="Least / most accurate"),
    "cell": Column("cell looked at", "text"),
    "times_median": Column("times the median"),
    "smallest": Column("smallest"),
    "lower_tenth": Column("10th percentile", term="10th / 90th percentile"),
    "lower_quartile": Column("25th percentile"),
    "median": Column("median", term="Median"),
    "upper_quartile": Column("75th percentile"),
    "upper_tenth": Column("90th percentile", term="10th / 90th percentile"),
    "largest": Column("largest"),
    "most_accurate_table": Column("most accurate table", "text"),
    "least_accurate_table": Column("least accurate table", "text"),
    "share": Column("share", "share"),
    "share_of_tables": Column("share of the tables", "share"),
    "coefficient": Column("coefficient of variation", "share", term=_CV),
    "whole": Column("tables in full", "count"),
    "none": Column("tables not at all", "count"),
    "expected": Column("expected count", "count", term="Expected counts"),
    "median_count": Column("median expected count", "count", term="Expected counts"),
    "relative_error": Column("relative error", "share", term=_CV),
    "median_relative_error": Column(
        "median relative error", "share", term="Coefficient of variation"
    ),
    "accurate": Column("accurate enough", "text"),
    "level": Column("level", "text"),
    "measured": Column("measured", "text", term="Residual"),
    "sigma": Column("noise scale σ"),
    "part": Column("part of the variance"),
    "budget_share": Column("share of the budget", "share"),
}
_LARGE = 1000.0  # an estimated count from which on decimals say nothing
_HIDDEN = {"group"}  # orders rows and colours, and says nothing by itself
_OF_A_MEASURE = {
    "smallest", "lower_tenth", "lower_quartile", "median", "upper_quartile", "upper_tenth",
    "largest",
}  # fmt: skip


def columns_of(frame: pd.DataFrame, measure: Measure = STANDARD_ERROR) -> dict[str, Column]:
    """The columns of an analysis that are shown, in their order; measure: that of its quantiles."""
    names = [str(name) for name in frame.columns if name not in _HIDDEN]
    return {
        name: in_measure(COLUMNS[name], measure) if name in _OF_A_MEASURE else COLUMNS[name]
        for name in names
    }


def in_measure(column: Column, measure: Measure) -> Column:
    """A column of standard errors as one of another measure."""
    return replace(column, heading=column.heading.replace("σ", measure.symbol))


def column_format(column: ArrayLike, digits: int = 3) -> str | None:
    """A printf format that shows so many significant digits of a column's smallest number.

    With separators. None where nothing in it is positive.
    """
    numbers = np.asarray(column, dtype=float)
    if not np.any(numbers > 0):  # NaN is not
        return None
    smallest = float(np.min(numbers, where=numbers > 0, initial=np.inf))
    if not 1e-6 <= smallest < 1e15:
        return f"%.{digits - 1}e"
    return f"%,.{max(digits - 1 - math.floor(math.log10(smallest)), 0)}f"


def estimate_format(column: ArrayLike) -> str:
    """A printf format of counts with separators: with a decimal unless all are 1,000 and more."""
    sizes = np.abs(np.asarray(column, dtype=float))
    return "%,.0f" if np.any(sizes >= _LARGE) and not np.any(sizes < _LARGE) else "%,.1f"


_FORMATS = {
    "count": "localized", "share": "%,.3g %%", "change": "%+.3g %%", "rounded": "%,.3g",
}  # fmt: skip


def number_format(values: ArrayLike, column: Column) -> str | None:
    """How a page shows the numbers of a column, those of `in_per_cent`."""
    if column.kind == "estimate":
        return estimate_format(values)
    return _FORMATS.get(column.kind) or column_format(values, column.digits)


def in_per_cent(frame: pd.DataFrame, columns: Mapping[str, Any]) -> pd.DataFrame:
    """The frame with its shares in per cent: 32.5 in place of 0.325."""
    shares = [
        name
        for name, column in columns.items()
        if isinstance(column, Column) and column.kind == "share" and name in frame
    ]
    return frame.assign(**{name: 100 * frame[name] for name in shares}) if shares else frame


@dataclass(frozen=True, eq=False)
class Chart:
    """A figure with its caption, its alternative text and its numbers.

    subject   what is drawn, which is also the title of the numbers
    sentence  what it shows
    frame     the numbers
    columns   those of the frame that are shown, by name
    file      name of the numbers as CSV
    remark    how to read the marks
    title     where several charts stand below each other
    """

    figure: "go.Figure"
    subject: str
    sentence: str
    frame: pd.DataFrame
    columns: dict[str, Column]
    file: str
    remark: str = ""
    title: str = ""

    @property
    def caption(self) -> str:
        """A description of the chart, and how to read it."""
        return f"{self.sentence} {self.remark}".strip()

    @property
    def alternative_text(self) -> str:
        """The text for readers who cannot see the figure."""
        return f"{self.subject}. {self.sentence}"
