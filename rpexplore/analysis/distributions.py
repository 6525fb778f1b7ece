"""Distribution of the accuracy over tables, and accuracy against the size of a table."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
import pandas as pd

from rpexplore.analysis.accuracy import describe_medians
from rpexplore.analysis.measures import STANDARD_ERROR, Accuracy, Measure, group_name, order_groups
from rpexplore.planning.mechanism.variances import is_negligible_difference
from rpexplore.workload.table_text import titles

# ---- Distribution of the accuracy over tables: empirical distribution functions.
#
# However many tables there are, a curve has at most `MOST_STEPS` + 1 points.


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


def errors_by_order(accuracy: Accuracy) -> Groups:
    """The tables of one plan by group of orders, ascending."""
    groups = order_groups(accuracy.workload)[accuracy.having]
    values = accuracy.values[accuracy.having]
    return {
        group: (group_name(group, accuracy.workload), values[groups == group])
        for group in np.unique(groups).tolist()
    }


def errors_by_plan(accuracies: Sequence[Accuracy]) -> Groups:
    """All tables under each plan, by the number of the plan."""
    return {
        number: (accuracy.name, accuracy.values[accuracy.having])
        for number, accuracy in enumerate(accuracies)
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


# ---- Accuracy of a cell against the number of cells of its table (RP+ Figures 1 to 3).
#
# What one call compares is over the same tables, in the same measure.


# Up to so many tables each is a point of its own; more are counted in bins.
MOST_POINTS = 2000
_BINS = 40  # along each axis, for the range of all plans together

# A correlation of the logarithms from here on is a trend.
_TREND = 0.5
# Tables whose errors reach over less than this share of the range of all (logarithms) are flat.
_FLAT = 0.1


def points(accuracies: Sequence[Accuracy], tables: np.ndarray | None = None) -> pd.DataFrame:
    """One row for each plan and table: plan, group, attributes, table, cells, the measure,
    standard_error, variance; where cells differ also smallest_standard_error and
    largest_standard_error. Tables without a value in the measure are left out.

    tables: indices of the tables wanted; without it all of them.
    """
    workload, having = accuracies[0].workload, _having(accuracies)
    tables = having if tables is None else np.intersect1d(tables, having)
    groups = order_groups(workload)[tables]
    shared = {
        "group": groups,
        "attributes": _names(groups, accuracies[0]),
        "table": titles(workload, tables),
        "cells": workload.cells[tables],
    }
    parts = []
    for accuracy in accuracies:
        own = accuracy.columns(tables)
        own |= {"variance": accuracy.standard_errors[tables] ** 2}
        own |= accuracy.variances.extreme_columns(tables)
        parts.append(pd.DataFrame({"plan": accuracy.name, **shared, **own}))
    return pd.concat(parts, ignore_index=True)


def bins(accuracies: Sequence[Accuracy]) -> pd.DataFrame:
    """The tables counted in bins of equal width on log axes, by group of orders.

    One row for each plan, group and bin that holds a table: plan, group, attributes, cells, the
    measure, standard_error, variance (of the bin's tables, geometric means) and tables. Tables
    without a value in the measure are left out.
    """
    workload, having = accuracies[0].workload, _having(accuracies)
    groups = order_groups(workload)[having]
    log_cells = np.log(workload.cells[having])
    logs = [np.log(accuracy.values[having]) for accuracy in accuracies]
    across = _bin_of(log_cells, log_cells.min(), log_cells.max())
    low, high = np.min(logs), np.max(logs)
    parts = []
    for accuracy, log_values in zip(accuracies, logs, strict=True):
        keys = (groups * _BINS + across) * _BINS + _bin_of(log_values, low, high)
        counts = np.bincount(keys)
        held = np.flatnonzero(counts)
        tables = counts[held]

        def mean(logarithms: np.ndarray, keys=keys, held=held, tables=tables) -> np.ndarray:
            """Geometric means of the bins."""
            return np.exp(np.bincount(keys, logarithms)[held] / tables)

        errors = mean(np.log(accuracy.standard_errors[having]))
        columns = {
            "group": held // _BINS**2,
            "attributes": _names(held // _BINS**2, accuracy),
            "cells": mean(log_cells),
            accuracy.measure.column: mean(log_values),
            "standard_error": errors,
            "variance": errors**2,
            "tables": tables,
        }
        parts.append(pd.DataFrame({"plan": accuracy.name, **columns}))
    return pd.concat(parts, ignore_index=True)


def describe(accuracies: Sequence[Accuracy], record_noun: str) -> str:
    """How the accuracy of a cell goes with the number of cells under each plan.

    Judged within the tables of one number of attributes, where these differ in size.
    """
    return " ".join(_trend(accuracy, record_noun) for accuracy in accuracies)


def _trend(accuracy: Accuracy, record_noun: str) -> str:
    having, measure = accuracy.having, accuracy.measure
    values, orders = accuracy.values[having], accuracy.workload.orders[having]
    low, high = float(values.min()), float(values.max())
    subject = f"“{accuracy.name}”: {measure.symbol}"
    if is_negligible_difference(low, high):
        median = measure.stated(float(np.median(values)), record_noun)
        return f"{subject} is {median} for every table, whatever its size."
    log_cells, log_errors = np.log(accuracy.workload.cells[having]), np.log(values)
    # Mean correlation within each order, weighted by its number of tables.
    flat = _FLAT * np.ptp(log_errors)
    total = tables = 0.0
    for order in np.unique(orders):
        cells, errors = log_cells[orders == order], log_errors[orders == order]
        if np.ptp(cells) > 0:
            tables += len(cells)
            total += len(cells) * _correlation(cells, errors) * (np.ptp(errors) > flat)
    trend = float(total / tables) if tables else _correlation(log_cells, log_errors)
    alike = " among tables of as many attributes" if len(set(orders.tolist())) > 1 else ""
    text = f"{subject} ranges from {measure.text(low)} to {measure.stated(high, record_noun)}"
    if abs(trend) < _TREND:
        return f"{text}, with little trend by size{alike}."
    if trend * _correlation(log_cells, log_errors) > 0:
        alike = ""  # the trend is the same among all tables
    return f"{text}; {'small' if trend < 0 else 'large'} tables are less accurate{alike}."


def _correlation(left: np.ndarray, right: np.ndarray) -> float:
    """Correlation, 0 where one of them does not vary."""
    left, right = left - left.mean(), right - right.mean()
    scale = float(np.sqrt(np.dot(left, left) * np.dot(right, right)))
    return float(np.dot(left, right)) / scale if scale > 0 else 0.0


def _having(accuracies: Sequence[Accuracy]) -> np.ndarray:
    """Indices of the tables that have a value under every plan, int64[n]."""
    return np.flatnonzero(np.all([~np.isnan(plan.values) for plan in accuracies], axis=0))


def _bin_of(values: np.ndarray, low: float, high: float) -> np.ndarray:
    """The bin of each value, 0 … `_BINS` − 1."""
    width = max(high - low, 1e-12) / _BINS
    return np.clip((values - low) / width, 0, _BINS - 1).astype(np.int64)


def _names(groups: np.ndarray, accuracy: Accuracy) -> list[str]:
    names = {group: group_name(group, accuracy.workload) for group in set(groups.tolist())}
    return [names[group] for group in groups.tolist()]
