"""How evenly accuracy is spread over the tables of a workload, by plan, in a few measures.

All measures are of the standard error of a cell. None of them depends on the budget, but for the
errors themselves, which a larger budget divides by one number. What the charts of the Fairness page
show is in `variance_by_size`, `distributions`, `accuracy_by_attribute` and `shadow_prices`.
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import pandas as pd

from rpexplore.analysis.accuracy import Z_95
from rpexplore.analysis.forecast import Forecast
from rpexplore.common.formatting import describe_share, rounded
from rpexplore.planning.mechanism.table_variances import is_negligible_difference
from rpexplore.workload.table_text import titles
from rpexplore.workload.workload import Workload

# What to call each measure, and what it means.
MEASURES = {
    "smallest": ("Smallest σ", "Standard error of a cell of the most accurate table."),
    "lower_tenth": ("10th percentile", "One tenth of the tables have at most this σ."),
    "median": ("Median σ", "Half of the tables have at most this σ."),
    "upper_tenth": ("90th percentile", "Nine tenths of the tables have at most this σ."),
    "largest": ("Largest σ", "Standard error of a cell of the least accurate table."),
    "ratio": ("Largest ÷ smallest σ", "1 if all tables are equally accurate."),
    "tenths_ratio": ("90th ÷ 10th percentile", "The same without the tables at either end."),
    "gini": (
        "Gini index of σ",
        "0 if all tables are equally accurate, towards 1 if few tables bear nearly all error.",
    ),
    "within_twice": ("Within twice the smallest", "Share of tables with σ at most twice that."),
}


def measures_of(forecast: Forecast) -> dict[str, float]:
    """The `MEASURES` of a plan."""
    errors = forecast.standard_errors
    low, lower, median, upper, high = np.quantile(errors, [0, 0.1, 0.5, 0.9, 1]).tolist()
    return {
        "smallest": low,
        "lower_tenth": lower,
        "median": median,
        "upper_tenth": upper,
        "largest": high,
        "ratio": high / low,
        "tenths_ratio": upper / lower,
        "gini": gini(errors),
        "within_twice": float(np.mean(errors <= 2 * low)),
    }


def measures(forecasts: Sequence[Forecast]) -> pd.DataFrame:
    """One row a plan: plan, and the `MEASURES`."""
    return pd.DataFrame(
        [{"plan": forecast.name, **measures_of(forecast)} for forecast in forecasts]
    )


def side_by_side(frame: pd.DataFrame) -> pd.DataFrame:
    """`measures` to read: a row a measure with its name and meaning, a column a plan, as texts."""
    rows = []
    for field, (name, meaning) in MEASURES.items():
        values = zip(frame["plan"], frame[field].tolist(), strict=True)
        texts = {plan: _measure_text(field, value) for plan, value in values}
        rows.append({"measure": name, **texts, "meaning": meaning})
    return pd.DataFrame(rows)


def gini(values: np.ndarray) -> float:
    """Gini index of positive values: mean absolute difference of two of them over twice the mean.

    Computed as Σ_i (2i − n − 1) x_(i) / (n Σ x), with x sorted ascending and i from 1.
    """
    count = len(values)
    ranks = 2.0 * np.arange(1, count + 1) - count - 1
    return float(np.dot(ranks, np.sort(values)) / (count * np.sum(values)))


def is_even(forecast: Forecast) -> bool:
    """Whether all tables are equally accurate, as far as anybody would notice."""
    errors = forecast.standard_errors
    return is_negligible_difference(float(errors.min()), float(errors.max()))


def least_and_most_accurate(
    forecast: Forecast, most: int = 10
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The tables with the largest standard errors, largest first, and those with the smallest.

    Columns as those of `ranking`. Where there are few, none is in both.
    """
    errors = forecast.standard_errors
    few = min(most, len(errors) - len(errors) // 2)
    ascending = np.argsort(errors, kind="stable")
    least_accurate, most_accurate = ascending[::-1][:few], ascending[: min(most, len(errors) - few)]
    return (
        _ranked_rows(forecast, least_accurate, titles(forecast.workload, least_accurate)),
        _ranked_rows(forecast, most_accurate, titles(forecast.workload, most_accurate)),
    )


@lru_cache(maxsize=2)  # most of the work for a long list
def all_titles(workload: Workload) -> np.ndarray:
    """What to call each table, object[n_tables]."""
    return np.array(titles(workload, np.arange(len(workload))), dtype=object)


def ranking(forecast: Forecast) -> pd.DataFrame:
    """All tables, the least accurate first: table, order, cells, standard_error, margin_95 and
    times_median, how many times the median standard error that is; where cells differ also
    smallest_standard_error and largest_standard_error, of the table's most and least accurate cell.
    """
    rows = np.argsort(-forecast.standard_errors, kind="stable")
    return _ranked_rows(forecast, rows, all_titles(forecast.workload)[rows])


def _ranked_rows(
    forecast: Forecast, rows: np.ndarray, names: Sequence[str] | np.ndarray
) -> pd.DataFrame:
    workload, errors = forecast.workload, forecast.standard_errors[rows]
    return pd.DataFrame(
        {
            "table": names,
            "order": workload.orders[rows],
            "cells": workload.cells[rows],
            "standard_error": errors,
            "margin_95": errors * Z_95,
            "times_median": errors / np.median(forecast.standard_errors),
        }
        | forecast.variances.extreme_columns(rows)
    )


def describe_unevenness(forecast: Forecast, record_noun: str) -> str:
    """The least accurate table, and by how much, in a sentence or two."""
    errors = forecast.standard_errors
    extremes = np.array([np.argmin(errors), np.argmax(errors)])
    most, least = titles(forecast.workload, extremes)
    if len(errors) == 1:
        return (
            f"There is one table, {least}: the standard error of a cell is "
            f"{rounded(float(errors[0]), 3)} {record_noun}."
        )
    values = measures_of(forecast)
    if is_even(forecast):
        return (
            f"All {len(errors):,} tables are equally accurate: the standard error of a cell is "
            f"{rounded(values['median'], 3)} {record_noun}; small counts still have the larger "
            "relative errors."
        )
    return (
        f"The least accurate table is {least}: its standard error of "
        f"{rounded(values['largest'], 3)} {record_noun} is {rounded(values['ratio'], 2)} times "
        f"that of the most accurate, {most}, at {rounded(values['smallest'], 3)}. "
        f"{describe_share(values['within_twice'])} of the tables are within twice the smallest."
    )


def describe_measures(frame: pd.DataFrame, record_noun: str) -> str:
    """Which plan is the most even, which the least, and which has the smallest median error."""
    even, uneven = (frame.loc[row] for row in (frame["ratio"].idxmin(), frame["ratio"].idxmax()))
    accurate = frame.loc[frame["median"].idxmin()]
    if is_negligible_difference(1, uneven["ratio"]):
        return "All plans make all tables equally accurate."
    return (
        f"The most even plan is “{even['plan']}” (largest {_times(even['ratio'])} the smallest), "
        f"the least even “{uneven['plan']}” ({_times(uneven['ratio'])}). The smallest median "
        f"standard error, {rounded(accurate['median'], 3)} {record_noun}, comes with "
        f"“{accurate['plan']}”."
    )


def _times(ratio: float) -> str:
    return f"{rounded(ratio, 3, zeros=True)} times"


def _measure_text(field: str, value: float) -> str:
    if field == "within_twice":
        return describe_share(value)
    return f"{value:.3f}" if field == "gini" else rounded(value, 3, zeros=True)
