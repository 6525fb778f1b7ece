"""Binding tables: the shadow prices of a plan, by table, attribute and order.

A shadow price is the share of the loss that a table stands for. Were the table to weigh 1 % less,
the loss of the best plan would fall by that share of 1 %.
"""

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
    """The tables with the largest shares: table, order, cells, share, standard_error.

    Where cells differ, also best_standard_error and worst_standard_error.
    """
    workload = forecast.workload
    tables = np.argsort(-forecast.shadow_prices, kind="stable")[:most]
    return pd.DataFrame(
        {
            "table": titles(workload, tables),
            "order": workload.orders[tables],
            "cells": workload.cells[tables],
            "share": forecast.shadow_prices[tables],
            "standard_error": forecast.standard_errors[tables],
        }
        | forecast.extremes(tables)
    )


def by_attribute(forecast: Forecast) -> pd.DataFrame:
    """One row an attribute, the largest share first: attribute, tables, share, share_of_tables.

    share: of the tables that contain the attribute, together. A table of several attributes
    counts with each of them.
    """
    workload = forecast.workload
    rows, columns = np.nonzero(workload.members >= 0)
    attributes = workload.members[rows, columns]
    size = len(workload.domain)
    tables = np.bincount(attributes, minlength=size)
    frame = pd.DataFrame(
        {
            "attribute": workload.domain.names,
            "tables": tables,
            "share": np.bincount(attributes, forecast.shadow_prices[rows], minlength=size),
            "share_of_tables": tables / len(workload),
        }
    )
    return frame.sort_values("share", ascending=False, kind="stable", ignore_index=True)


def by_order(forecast: Forecast) -> pd.DataFrame:
    """One row a group of orders: attributes, tables, share, share_of_tables."""
    groups = order_groups(forecast.workload)
    tables = np.bincount(groups)
    used = np.flatnonzero(tables)
    return pd.DataFrame(
        {
            "attributes": [group_name(group, forecast.workload) for group in used.tolist()],
            "tables": tables[used],
            "share": np.bincount(groups, forecast.shadow_prices)[used],
            "share_of_tables": tables[used] / len(groups),
        }
    )


def describe_loss(loss: Loss, workload: Workload) -> str:
    """What the shares are shares of, for a sentence."""
    if isinstance(loss, SumOfVariances):
        return "the weighted sum of variances"
    if loss == MaxVariance() and np.all(workload.weights == 1):
        return "the largest variance"
    return loss.description


def describe_first(frame: pd.DataFrame, names: str, loss_text: str) -> str:
    """The row with the largest share of a frame of this module, in a sentence."""
    row = max(frame.to_dict("records"), key=lambda row: row["share"])
    name = row[names]
    if names == "table":
        return f"The table {name} has {describe_share(row['share'])} of {loss_text}."
    if name == "total":
        subject = "The total has"
    else:
        subject = f"The tables {'with' if names == 'attribute' else 'of'} {name} have"
    return (
        f"{subject} {describe_share(row['share'])} of {loss_text}, with "
        f"{describe_share(row['share_of_tables'])} of the tables."
    )


def describe(forecast: Forecast, loss_text: str) -> str:
    """Which tables are binding, and what would help. loss_text: of `describe_loss`"""
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
    is_target = loss_text == TARGET_LOSS.description
    change = "target 5 % larger" if is_target else "weight 10 % less"
    return (
        f"{start}: {list_titles([(name,) for name in names], FEW)}. Less accuracy for "
        f"{'it' if count == 1 else 'the first'} helps most: with its {change}, "
        f"{loss_text} falls by about {rounded(10 * first_share, 2)} %."
    )
