"""Ranges: figures of forecasts over populations, their median and the ends of the range.

The truth is one more draw beside n: the ends are those between which such a draw falls with 90 %,
at the places 0.05 (n + 1) and 0.95 (n + 1) of the sorted draws. The quantiles of the draws
themselves would hold it with 86 % if there are 48, and with 76 % if there are 12.
"""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rpexplore.common.text import describe_share, rounded
from rpexplore.workload.rules import MEDIAN, SURELY

if TYPE_CHECKING:
    import pandas as pd

    from rpexplore.analysis.forecast import Forecast

RANGE = (0.05, 0.5, 0.95)
"""Quantiles of populations: the ends of a range, and its middle."""
FEWEST_DRAWS = 19
"""Of populations, so that the ends of a range are among them: 0.05 (19 + 1) = 1."""
_AT = {MEDIAN: RANGE[1], SURELY: RANGE[0]}


class Range(NamedTuple):
    """A figure of a forecast: the median over populations, and where one more lies with 90 %."""

    low: float
    median: float
    high: float

    @classmethod
    def of(cls, values: np.ndarray) -> "Range":
        """Over the populations, float64[n_populations]."""
        return cls(*ranges(values).tolist())

    def texts(self, stated: Callable[[float], str]) -> tuple[str, str, str]:
        """The three figures as texts."""
        return stated(self.low), stated(self.median), stated(self.high)

    def text(self, stated: Callable[[float], str]) -> str:
        """ "66 % (62 % to 69 %)", or one figure where the ends are alike."""
        low, median, high = self.texts(stated)
        if self.median != self.median:
            return "nobody drawn"
        return median if low == high else f"{median} ({low} to {high})"


def at_certainty(values: np.ndarray, certainty: str) -> np.ndarray:
    """What more than half of the populations, the last axis, reach; surely: 95 % of them."""
    place = max(math.floor(_AT[certainty] * (values.shape[-1] + 1)) - 1, 0)
    return np.partition(values, place, axis=-1)[..., place]


def ranges(values: np.ndarray, axis: int = -1) -> np.ndarray:
    """Low ends, medians and high ends along the axis of populations, float64[3, …]."""
    return np.quantile(values, RANGE, axis=axis, method="weibull")


def range_ends(name: str, values: np.ndarray) -> dict[str, float]:
    """The columns of a figure with its range: name_low, name_median, name_high."""
    return {f"{name}_{end}": value for end, value in Range.of(values)._asdict().items()}


def range_texts(frame: "pd.DataFrame", name: str, stated: Callable[[float], str]) -> list[str]:
    """A figure with its range in each row of a frame, as text."""
    ends = (frame[f"{name}_{end}"] for end in ("low", "median", "high"))
    return [Range(*row).text(stated) for row in zip(*ends, strict=True)]


def range_columns(
    frame: "pd.DataFrame", title: str, last: str, whom: str = "people"
) -> "pd.DataFrame":
    """The rows of a forecast's frame for reading: each figure with its range, as text.

    title: the column that says what a row is; last: another column, or a figure with its range;
    whom: the word for those whom tables count
    """
    import pandas as pd  # half of the time that importing this package would take

    columns = {title: frame[title].astype(str).tolist()}
    for name, heading in (("people", f"{whom} in good cells"), ("cells", "good cells")):
        if f"{name}_low" in frame:
            columns[heading] = range_texts(frame, name, describe_share)
    if last in frame:
        columns[last] = frame[last].tolist()
    else:
        columns[last] = range_texts(frame, last, lambda value: rounded(round(value), 6))
    return pd.DataFrame(columns)


def weighted_medians(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The median of the last axis, each value with its weight."""
    order = np.argsort(values, axis=-1)
    ends = np.cumsum(np.take_along_axis(weights, order, axis=-1), axis=-1)
    middle = np.argmax(ends >= ends[..., -1:] / 2, axis=-1)[..., None]
    return np.take_along_axis(np.take_along_axis(values, order, -1), middle, -1)[..., 0]


def under_each_plan(names: Sequence[str], forecasts: Sequence["Forecast"]) -> "pd.DataFrame":
    """The same tables under several plans, for reading: plan, people, cells and tables, as text."""
    import pandas as pd

    return pd.DataFrame(
        {
            "plan": list(names),
            f"{forecasts[0].whom} in good cells": [
                made.people.text(describe_share) for made in forecasts
            ],
            "good cells": [made.cells.text(describe_share) for made in forecasts],
            "tables that meet the rule": [
                made.meeting.text(lambda value: f"{value:,.0f}") for made in forecasts
            ],
        }
    )
