"""How evenly accuracy is spread over the tables of a workload, by plan, in a few measures.

All measures are of the standard error of a cell. None of them depends on the budget, but for the
errors themselves, which a larger budget divides by one number.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from rpexplore.analysis.accuracy import MARGIN, titles
from rpexplore.analysis.forecast import Forecast
from rpexplore.common.formatting import describe_share, rounded
from rpexplore.planning.mechanism.table_variances import is_negligible_difference
from rpexplore.workload.workload import Workload

# What to call each measure, and what it means.
MEASURES = {
    "best": ("Best σ", "Standard error of a cell of the most accurate table."),
    "lower_tenth": ("Best tenth", "The most accurate tenth of the tables have at most this σ."),
    "median": ("Typical σ", "Half of the tables have at most this (median)."),
    "upper_tenth": ("Worst tenth", "The least accurate tenth of the tables have at least this σ."),
    "worst": ("Worst σ", "Standard error of a cell of the least accurate table."),
    "ratio": ("Worst ÷ best", "1 if all tables are equally accurate."),
    "tenths_ratio": ("Worst tenth ÷ best tenth", "The same, but single tables do not decide it."),
    "gini": (
        "Gini index of σ",
        "0 if all tables are equally accurate, towards 1 if few tables bear nearly all error.",
    ),
    "within_twice": ("Within twice the best", "Share of tables with σ at most twice the best."),
}


@dataclass(frozen=True)
class Unevenness:
    """How unequally a plan treats its tables; errors are standard errors of a cell."""

    tables: int
    best: float
    best_table: str
    median: float
    worst: float
    worst_table: str
    ratio: float
    gini: float
    within_twice: float

    @property
    def is_even(self) -> bool:
        """Whether all tables are equally accurate, as far as anybody would notice."""
        return is_negligible_difference(self.best, self.worst)


def unevenness(forecast: Forecast) -> Unevenness:
    """How unequally a plan treats its tables."""
    errors = forecast.standard_errors
    best, worst = int(np.argmin(errors)), int(np.argmax(errors))
    best_table, worst_table = titles(forecast.workload, np.array([best, worst]))
    return Unevenness(
        tables=len(errors),
        best=float(errors[best]),
        best_table=best_table,
        median=float(np.median(errors)),
        worst=float(errors[worst]),
        worst_table=worst_table,
        ratio=float(errors[worst] / errors[best]),
        gini=gini(errors),
        within_twice=within_twice(errors),
    )


def measures(forecasts: Sequence[Forecast]) -> pd.DataFrame:
    """One row a plan: plan, and the `MEASURES`."""
    rows = []
    for forecast in forecasts:
        errors = forecast.standard_errors
        best, lower, median, upper, worst = np.quantile(errors, [0, 0.1, 0.5, 0.9, 1])
        rows.append(
            {
                "plan": forecast.name,
                "best": best,
                "lower_tenth": lower,
                "median": median,
                "upper_tenth": upper,
                "worst": worst,
                "ratio": worst / best,
                "tenths_ratio": upper / lower,
                "gini": gini(errors),
                "within_twice": within_twice(errors),
            }
        )
    return pd.DataFrame(rows)


def side_by_side(frame: pd.DataFrame) -> pd.DataFrame:
    """`measures` to read: a row a measure with its name and meaning, a column a plan, as texts."""
    rows = frame.to_dict("records")
    listed = []
    for field, (name, meaning) in MEASURES.items():
        texts = {row["plan"]: _measure_text(field, row[field]) for row in rows}
        listed.append({"measure": name, **texts, "meaning": meaning})
    return pd.DataFrame(listed)


def gini(values: np.ndarray) -> float:
    """Gini index of positive values: mean absolute difference of two of them over twice the mean.

    Computed as Σ_i (2i − n − 1) x_(i) / (n Σ x), with x sorted ascending and i from 1.
    """
    count = len(values)
    ranks = 2.0 * np.arange(1, count + 1) - count - 1
    return float(np.dot(ranks, np.sort(values)) / (count * np.sum(values)))


def within_twice(errors: np.ndarray) -> float:
    """Share of tables whose standard error is at most twice the smallest."""
    return float(np.mean(errors <= 2 * np.min(errors)))


def worst_and_best(forecast: Forecast, most: int = 10) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The tables with the largest standard errors, largest first, and those with the smallest.

    Columns as those of `ranking`. Where there are few, none is in both.
    """
    errors = forecast.standard_errors
    few = min(most, len(errors) - len(errors) // 2)
    ascending = np.argsort(errors, kind="stable")
    worst, best = ascending[::-1][:few], ascending[: min(most, len(errors) - few)]
    return (
        _ranked_rows(forecast, worst, titles(forecast.workload, worst)),
        _ranked_rows(forecast, best, titles(forecast.workload, best)),
    )


def all_titles(workload: Workload) -> np.ndarray:
    """What to call each table, object[n_tables]: most of the work for a long list, to be kept."""
    return np.array(titles(workload, np.arange(len(workload))), dtype=object)


def ranking(forecast: Forecast, names: np.ndarray) -> pd.DataFrame:
    """All tables, the least accurate first: table, order, cells, standard_error, margin_95 and
    times_median, how many times the median standard error that is; where cells differ also
    best_standard_error and worst_standard_error, of the table's most and least accurate cell.

    names: `all_titles` of the workload
    """
    rows = np.argsort(-forecast.standard_errors, kind="stable")
    return _ranked_rows(forecast, rows, names[rows])


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
            "margin_95": errors * MARGIN,
            "times_median": errors / np.median(forecast.standard_errors),
        }
        | forecast.extremes(rows)
    )


def describe_unevenness(found: Unevenness, record_noun: str) -> str:
    """Who is worst off, and by how much, in a sentence or two."""
    if found.tables == 1:
        return (
            f"There is one table, {found.worst_table}: the standard error of a cell is "
            f"{rounded(found.worst, 3)} {record_noun}."
        )
    if found.is_even:
        return (
            f"All {found.tables:,} tables are equally accurate: the standard error of a cell is "
            f"{rounded(found.median, 3)} {record_noun}; small counts still have the larger "
            "relative errors."
        )
    return (
        f"The worst-off table is {found.worst_table}: its standard error of "
        f"{rounded(found.worst, 3)} {record_noun} is {rounded(found.ratio, 2)} times that of the "
        f"best-off, {found.best_table}, at {rounded(found.best, 3)}. "
        f"{describe_share(found.within_twice)} of the tables are within twice the best."
    )


def describe_measures(frame: pd.DataFrame, record_noun: str) -> str:
    """Which plan is the most even, which the least, and which has the smallest typical error."""
    rows = frame.to_dict("records")
    even = min(rows, key=lambda row: row["ratio"])
    uneven = max(rows, key=lambda row: row["ratio"])
    typical = min(rows, key=lambda row: row["median"])
    if is_negligible_difference(1, uneven["ratio"]):
        return "All plans make all tables equally accurate."
    return (
        f"The most even plan is “{even['plan']}” (worst {_times(even['ratio'])} the best), the "
        f"most uneven “{uneven['plan']}” ({_times(uneven['ratio'])}). The smallest typical "
        f"standard error, {rounded(typical['median'], 3)} {record_noun}, comes with "
        f"“{typical['plan']}”."
    )


def _times(ratio: float) -> str:
    return f"{rounded(ratio, 3, zeros=True)} times"


def _measure_text(field: str, value: float) -> str:
    if field == "within_twice":
        return describe_share(value)
    return f"{value:.3f}" if field == "gini" else rounded(value, 3, zeros=True)
