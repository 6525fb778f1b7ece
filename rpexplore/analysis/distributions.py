"""Distribution of the standard errors over tables: empirical distribution functions.

However many tables there are, a curve has at most `MOST_STEPS` + 1 points.
"""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
import pandas as pd

from rpexplore.analysis.accuracy import describe_medians
from rpexplore.analysis.forecast import Forecast, group_name, order_groups
from rpexplore.common.formatting import rounded
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


Groups: TypeAlias = Mapping[int, tuple[str, np.ndarray]]  # {group: (name, standard errors)}


def errors_by_order(forecast: Forecast) -> Groups:
    """The tables of one plan by group of orders, ascending."""
    groups = order_groups(forecast.workload)
    return {
        group: (group_name(group, forecast.workload), forecast.standard_errors[groups == group])
        for group in np.unique(groups).tolist()
    }


def errors_by_plan(forecasts: Sequence[Forecast]) -> Groups:
    """All tables under each plan, by the number of the plan."""
    return {
        number: (forecast.name, forecast.standard_errors)
        for number, forecast in enumerate(forecasts)
    }


def curves(groups: Groups) -> pd.DataFrame:
    """The distribution function of each group: series (its name), group, share, standard_error."""
    parts = []
    for group, (name, errors) in groups.items():
        counts, at = steps(errors)
        columns = {"share": counts / len(errors), "standard_error": at}
        parts.append(pd.DataFrame(columns).assign(series=name, group=group))
    return pd.concat(parts, ignore_index=True)


def quantiles(groups: Groups) -> pd.DataFrame:
    """One row a group: series (its name), tables, smallest, …, largest."""
    rows = []
    for name, errors in groups.values():
        values = np.quantile(errors, list(_QUANTILES.values())).tolist()
        row = {"series": name, "tables": len(errors)}
        rows.append(row | dict(zip(_QUANTILES, values, strict=True)))
    return pd.DataFrame(rows)


def describe_by_order(frame: pd.DataFrame, record_noun: str) -> str:
    """How the groups of `errors_by_order` compare; frame: their `quantiles`."""
    medians = {
        "the total" if row["series"] == "total" else f"tables of {row['series']}": row["median"]
        for row in frame.to_dict("records")
    }
    return describe_medians(medians, "standard error", record_noun)


def describe_by_plan(frame: pd.DataFrame, record_noun: str) -> str:
    """Which plan is best for half of the tables, and for nine tenths."""
    rows = frame.to_dict("records")
    half = min(rows, key=lambda row: row["median"])
    most = min(rows, key=lambda row: row["upper_tenth"])
    median = f"{rounded(half['median'], 3)} {record_noun}"
    if is_negligible_difference(half["median"], max(row["median"] for row in rows)):
        return f"Under every plan half of the tables have σ at most {median}."
    text = f"“{half['series']}” has the smallest median: half of the tables have σ at most {median}"
    at_most = f"at most {rounded(most['upper_tenth'], 3)}"
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
