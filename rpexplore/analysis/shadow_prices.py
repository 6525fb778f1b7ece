"""Binding tables: the shadow prices of a plan, by table, attribute and order.

A shadow price is the share of the loss that a table stands for. Were the table to weigh 1 % less,
the loss of the best plan would fall by that share of 1 %.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from rpexplore.analysis.forecast import Forecast, group_name, order_groups
from rpexplore.analysis.sufficient_budgets import TARGET_LOSS
from rpexplore.common.formatting import describe_share, plural, rounded
from rpexplore.planning.losses.base import Loss, MaxVariance, SumOfVariances
from rpexplore.workload.table_text import list_titles, titles
from rpexplore.workload.workload import Workload

_MOST_OF_IT = 0.8
FEW = 10  # tables; that many can be dealt with one by one


def binding_tables(forecast: Forecast) -> np.ndarray:
    """Indices of the fewest tables that have most of the loss, the first the most, int64[n]."""
    tables = np.argsort(-forecast.shadow_prices, kind="stable")
    shares = np.cumsum(forecast.shadow_prices[tables])
    count = int(np.searchsorted(shares, _MOST_OF_IT * shares[-1] * (1 - 1e-12))) + 1
    return tables[:count]


def by_table(forecast: Forecast, most: int | None = 10) -> pd.DataFrame:
    """The tables with the largest shares: table, order, cells, share, the measure, standard_error.

    Where cells differ, also smallest_standard_error and largest_standard_error.
    """
    workload = forecast.workload
    tables = np.argsort(-forecast.shadow_prices, kind="stable")[:most]
    return pd.DataFrame(
        {
            "table": titles(workload, tables),
            "order": workload.orders[tables],
            "cells": workload.cells[tables],
            "share": forecast.shadow_prices[tables],
            **forecast.columns(tables),
        }
        | forecast.variances.extreme_columns(tables)
    )


def by_attribute(forecast: Forecast) -> pd.DataFrame:
    """One row an attribute, the largest share first: attribute, tables, share, share_of_tables.

    share: of the tables that contain the attribute, together. A table of several attributes
    counts with each of them.
    """
    rows, columns = np.nonzero(forecast.workload.members >= 0)
    attributes = forecast.workload.members[rows, columns]
    names = forecast.workload.domain.names
    frame = _summed({"attribute": names}, attributes, rows, forecast)
    return frame.sort_values("share", ascending=False, kind="stable", ignore_index=True)


def by_order(forecast: Forecast) -> pd.DataFrame:
    """One row a group of orders: attributes, tables, share, share_of_tables."""
    groups = order_groups(forecast.workload)
    used, group_of_table = np.unique(groups, return_inverse=True)
    names = [group_name(group, forecast.workload) for group in used.tolist()]
    return _summed({"attributes": names}, group_of_table, np.arange(len(groups)), forecast)


def _summed(
    names: dict[str, Sequence[str]], row_of: np.ndarray, tables: np.ndarray, forecast: Forecast
) -> pd.DataFrame:
    """Tables and their shares summed by row; row_of: of each of these tables, which may repeat."""
    (labels,) = names.values()
    count = np.bincount(row_of, minlength=len(labels))
    share = np.bincount(row_of, forecast.shadow_prices[tables], minlength=len(labels))
    columns = {"tables": count, "share": share, "share_of_tables": count / len(forecast.workload)}
    return pd.DataFrame(names | columns)


FRAMES = {"table": by_table, "attribute": by_attribute, "order": by_order}  # by what a row is
_SUBJECTS = {
    "table": "The table {} has",
    "attribute": "The tables with {} have",
    "order": "The tables of {} have",
}


def describe_loss(loss: Loss, workload: Workload) -> str:
    """The whole that the shares are parts of, for a sentence."""
    if isinstance(loss, SumOfVariances):
        return "the weighted sum of variances"
    if loss == MaxVariance() and np.all(workload.weights == 1):
        return "the largest variance"
    return loss.description


def describe_first(frame: pd.DataFrame, kind: str, loss_text: str) -> str:
    """The row with the largest share of one of the `FRAMES`, in a sentence; kind: which one."""
    row = max(frame.to_dict("records"), key=lambda row: row["share"])
    name = row[frame.columns[0]]
    subject = "The total has" if name == "total" else _SUBJECTS[kind].format(name)
    text = f"{subject} {describe_share(row['share'])} of {loss_text}"
    if kind == "table":
        return f"{text}."
    return f"{text}, with {describe_share(row['share_of_tables'])} of the tables."


def describe(forecast: Forecast, loss: Loss) -> str:
    """Which tables are binding for a loss, and what would help."""
    loss_text = describe_loss(loss, forecast.workload)
    if len(forecast.workload) == 1:
        return f"The only table has all of {loss_text}."
    binding = binding_tables(forecast)
    shares, count = np.cumsum(forecast.shadow_prices[binding]), len(binding)
    first_share, names = float(shares[0]), titles(forecast.workload, binding[:FEW])
    start = (
        f"{count:,} of {plural(len(forecast.workload), 'table')} {'is' if count == 1 else 'are'} "
        f"binding, with {describe_share(float(shares[-1]))} of {loss_text}"
    )
    if count > FEW:
        return (
            f"{start}. The first, {names[0]}, has {describe_share(first_share)}. "
            "What helps is a larger budget, or less accuracy for many tables at once."
        )
    # To first order: a target is compared with σ, whose square is the variance.
    change = "target 5 % larger" if loss == TARGET_LOSS else "weight 10 % less"
    return (
        f"{start}: {list_titles([(name,) for name in names], FEW)}. Less accuracy for "
        f"{'it' if count == 1 else 'the first'} helps most: with its {change}, "
        f"{loss_text} falls by about {rounded(10 * first_share, 2)} %."
    )
