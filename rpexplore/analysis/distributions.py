"""Distribution of the accuracy over tables: empirical distribution functions.

However many tables there are, a curve has at most `MOST_STEPS` + 1 points.
"""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
import pandas as pd

from rpexplore.analysis.accuracy import describe_medians
from rpexplore.analysis.forecast import Forecast, group_name, order_groups
from rpexplore.analysis.measures import STANDARD_ERROR, Measure
from rpexplore.planning.mechanism.table_variances import is_negligible_difference

MOST_STEPS = 200
_QUANTILES = {
    "smallest": 0.0,
    "lower_tenth": 0.1,
    "lower_quartile": 0.25,
    "median": 0.5,
    "upper_quartile": 0.75,
    "upper_tenth": 0.9,
    "largest": 1.0,
}


Groups: TypeAlias = Mapping[int, tuple[str, np.ndarray]]  # {group: (name, values)}


def errors_by_order(forecast: Forecast) -> Groups:
    """The tables of one plan by group of orders, ascending."""
    groups = order_groups(forecast.workload)[forecast.having]
    values = forecast.values[forecast.having]
    return {
        group: (group_name(group, forecast.workload), values[groups == group])
        for group in np.unique(groups).tolist()
    }


def errors_by_plan(forecasts: Sequence[Forecast]) -> Groups:
    """All tables under each plan, by the number of the plan."""
    return {
        number: (forecast.name, forecast.values[forecast.having])
        for number, forecast in enumerate(forecasts)
    }


def curves(groups: Groups, measure: Measure = STANDARD_ERROR) -> pd.DataFrame:
    """The distribution function of each group: series (its name), group, share, and the measure."""
    parts = []
    for group, (name, values) in groups.items():
        counts, at = steps(values)
        columns = {"share": counts / len(values), measure.column: at}
        parts.append(pd.DataFrame(columns).assign(series=name, group=group))
    return pd.concat(parts, ignore_index=True)


def quantiles(groups: Groups) -> pd.DataFrame:
    """One row a group: series (its name), tables, smallest, …, largest."""
    rows = []
    for name, values in groups.values():
        quantiles = np.quantile(values, list(_QUANTILES.values())).tolist()
        row = {"series": name, "tables": len(values)}
        rows.append(row | dict(zip(_QUANTILES, quantiles, strict=True)))
    return pd.DataFrame(rows)


def describe_by_order(
    frame: pd.DataFrame, record_noun: str, measure: Measure = STANDARD_ERROR
) -> str:
    """How the groups of `errors_by_order` compare; frame: their `quantiles`."""
    medians = {
        "the total" if row["series"] == "total" else f"tables of {row['series']}": row["median"]
        for row in frame.to_dict("records")
    }
    return describe_medians(medians, record_noun, measure)


def describe_by_plan(
    frame: pd.DataFrame, record_noun: str, measure: Measure = STANDARD_ERROR
) -> str:
    """Which plan is best for half of the tables, and for nine tenths."""
    rows = frame.to_dict("records")
    half = min(rows, key=lambda row: row["median"])
    most = min(rows, key=lambda row: row["upper_tenth"])
    median = f"{measure.symbol} at most {measure.stated(half['median'], record_noun)}"
    if is_negligible_difference(half["median"], max(row["median"] for row in rows)):
        return f"Under every plan half of the tables have {median}."
    text = f"“{half['series']}” has the smallest median: half of the tables have {median}"
    at_most = f"at most {measure.text(most['upper_tenth'])}"
    if half is most:
        return f"{text}, nine in ten {at_most}."
    return f"{text}. For nine in ten “{most['series']}” is best, with {at_most}."


def steps(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(counts, ascending values) of at most `MOST_STEPS` steps: counts[j] values are no larger.

    The first count is 0; those that are left out lie between ones that are exact.
    """
    ordered, count = np.sort(values), len(values)
    number = min(count, MOST_STEPS)
    # The j-th step is at the smallest value that at least j/number of all do not exceed.
    ranks = -(-np.arange(number + 1) * count // number)
    return ranks, ordered[np.maximum(ranks, 1) - 1]
