"""Which tables hold the loss up: the shadow prices of a plan, by table, attribute and order.

A shadow price is the share of the loss that a table stands for. Were the table to weigh 1 % less,
the loss of the best plan would fall by that share of 1 %.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from rpexplore.analysis.forecast import Forecast, group_name, order_groups
from rpexplore.common.formatting import describe_share, plural, rounded
from rpexplore.planning.losses.base import Loss, MaxVariance, SumOfVariances
from rpexplore.workload.table_text import list_titles
from rpexplore.workload.table_titles import titles
from rpexplore.workload.workload import Workload

MOST_OF_IT = 0.8
_TO_TARGET = MaxVariance(relative_to="target").description
FEW = 10  # tables; so many can be dealt with one by one


@dataclass(frozen=True)
class Holders:
    """The fewest tables that hold `MOST_OF_IT` of the loss up, the first the most.

    The first `FEW` of them by title, how many there are, of how many, and their share together.
    """

    tables: tuple[str, ...]
    count: int
    of: int
    share: float
    first_share: float


def binding_tables(forecast: Forecast) -> Holders:
    """The fewest tables that hold most of the loss up."""
    places = np.argsort(-forecast.shadow_prices, kind="stable")
    held = np.cumsum(forecast.shadow_prices[places])
    count = int(np.searchsorted(held, MOST_OF_IT * held[-1] * (1 - 1e-12))) + 1
    return Holders(
        tables=tuple(titles(forecast.workload, places[: min(count, FEW)])),
        count=count,
        of=len(places),
        share=float(held[count - 1]),
        first_share=float(held[0]),
    )


def by_table(forecast: Forecast, most: int | None = 10) -> pd.DataFrame:
    """The tables with the largest shares: table, order, cells, share, standard_error.

    Where cells differ, also best_standard_error and worst_standard_error.
    """
    workload = forecast.workload
    places = np.argsort(-forecast.shadow_prices, kind="stable")[:most]
    return pd.DataFrame(
        {
            "table": titles(workload, places),
            "order": workload.orders[places],
            "cells": workload.cells[places],
            "share": forecast.shadow_prices[places],
            "standard_error": forecast.standard_errors[places],
        }
        | forecast.extremes(places)
    )


def by_attribute(forecast: Forecast) -> pd.DataFrame:
    """One row an attribute, the largest share first: attribute, tables, share, share_of_tables.

    share: of the tables that contain the attribute, together. A table of several attributes
    counts with each of them.
    """
    workload = forecast.workload
    members = workload.members
    rows, columns = np.nonzero(members >= 0)
    attributes = members[rows, columns]
    size = len(workload.domain)
    tables = np.bincount(attributes, minlength=size)
    shares = np.bincount(attributes, forecast.shadow_prices[rows], minlength=size)
    frame = pd.DataFrame(
        {
            "attribute": workload.domain.names,
            "tables": tables,
            "share": shares,
            "share_of_tables": tables / len(workload),
        }
    )
    return frame.sort_values("share", ascending=False, kind="stable", ignore_index=True)


def by_order(forecast: Forecast) -> pd.DataFrame:
    """One row a group of orders: attributes, tables, share, share_of_tables."""
    groups = order_groups(forecast.workload)
    tables = np.bincount(groups)
    shares = np.bincount(groups, forecast.shadow_prices)
    used = np.flatnonzero(tables)
    return pd.DataFrame(
        {
            "attributes": [group_name(group, forecast.workload) for group in used.tolist()],
            "tables": tables[used],
            "share": shares[used],
            "share_of_tables": tables[used] / len(groups),
        }
    )


def what_is_held(loss: Loss, workload: Workload) -> str:
    """What the tables hold up, for a sentence."""
    if isinstance(loss, SumOfVariances):
        return "the weighted sum of variances"
    if not isinstance(loss, MaxVariance):
        return loss.description
    is_plain = loss.relative_to == "weight" and np.all(workload.weights == 1)
    return "the largest variance" if is_plain else loss.description


def describe_first(frame: pd.DataFrame, names: str, what: str) -> str:
    """Who in a frame of this module holds up most, in a sentence."""
    row = max(frame.to_dict("records"), key=lambda row: row["share"])
    words = f"{_subject(str(row[names]), names)} {describe_share(row['share'])} of {what} up"
    if "share_of_tables" not in row:
        return f"{words}."
    return f"{words}, with {describe_share(row['share_of_tables'])} of the tables."


def _subject(name: str, names: str) -> str:
    if names == "table":
        return f"The table {name} alone holds"
    if names == "attribute":
        return f"The tables with {name} together hold"
    return "The total alone holds" if name == "total" else f"The tables of {name} together hold"


def describe(found: Holders, what: str) -> str:
    """Who holds the loss up, and what would help. what: of `what_is_held`"""
    if found.of == 1:
        return f"There is one table, and it alone holds {what} up."
    share = describe_share(found.share)
    if found.count > FEW:
        return (
            f"No handful of tables decides: it takes {found.count:,} of "
            f"{plural(found.of, 'table')} to hold {share} of {what} up. The first, "
            f"{found.tables[0]}, holds {describe_share(found.first_share)}. What helps is a larger "
            "budget, or less accuracy for many tables at once."
        )
    # To first order: a target is compared with σ, whose square is the variance.
    asked_less = "its target 5 % larger" if what == _TO_TARGET else "its weight 10 % less"
    effect = (
        f"were {asked_less}, {what} would fall by about {rounded(10 * found.first_share, 2)} %."
    )
    if found.count == 1:
        return (
            f"One table holds {share} of {what} up: {found.tables[0]}. A little less "
            f"accuracy for it helps most: {effect}"
        )
    return (
        f"These {found.count} of {plural(found.of, 'table')} hold {share} of {what} up: "
        f"{list_titles([(title,) for title in found.tables], FEW)}. A little less accuracy "
        f"for the first helps most: {effect}"
    )
