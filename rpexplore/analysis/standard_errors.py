"""How accurate the tables of a plan are: by order, table by table, and against their targets."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from rpexplore.accuracy import normal_quantile
from rpexplore.analysis.alike import are_same
from rpexplore.plan import Plan
from rpexplore.table_lists import texts_of_tables, title
from rpexplore.words import plural, rounded
from rpexplore.workload import Workload

CONFIDENCE = 0.95
MARGIN = normal_quantile(CONFIDENCE)  # standard errors to either side, 1.96

# A target is met up to rounding of the noise scales, which is far below what anybody would notice.
MET = 1 + 1e-9


@dataclass(frozen=True)
class Headline:
    """The accuracy of a whole plan in a few numbers; margins are half 95 % intervals of a cell."""

    tables: int
    median_error: float
    median_margin: float
    worst_error: float
    worst_margin: float
    worst_table: str
    targets: int
    targets_met: int


def headline(plan: Plan) -> Headline:
    """The accuracy of a plan in a few numbers."""
    errors, worst = plan.standard_errors, int(np.argmax(plan.standard_errors))
    targets = plan.workload.targets
    return Headline(
        tables=len(errors),
        median_error=float(np.median(errors)),
        median_margin=float(np.median(errors)) * MARGIN,
        worst_error=float(errors[worst]),
        worst_margin=float(errors[worst]) * MARGIN,
        worst_table=_title(plan, worst),
        targets=int(np.count_nonzero(~np.isnan(targets))),
        targets_met=int(np.count_nonzero(errors <= targets * MET)),
    )


def by_order(plan: Plan) -> pd.DataFrame:
    """Standard error of a cell over the tables of each order, one row an order.

    Columns: order, tables, smallest, lower_quartile, median, upper_quartile, largest, best_table,
    worst_table. However many tables there are, this is all a chart needs.
    """
    rows = []
    for order in np.unique(plan.workload.orders).tolist():
        places = np.flatnonzero(plan.workload.orders == order)
        errors = plan.standard_errors[places]
        smallest, lower, median, upper, largest = np.quantile(errors, [0, 0.25, 0.5, 0.75, 1])
        rows.append(
            {
                "order": order,
                "tables": len(places),
                "smallest": smallest,
                "lower_quartile": lower,
                "median": median,
                "upper_quartile": upper,
                "largest": largest,
                "best_table": _title(plan, places[np.argmin(errors)]),
                "worst_table": _title(plan, places[np.argmax(errors)]),
            }
        )
    return pd.DataFrame(rows)


def by_order_in_words(frame: pd.DataFrame, counted: str) -> str:
    """What `by_order` shows, in one or two sentences: a chart's caption and alternative text."""
    rows = frame.to_dict("records")
    best = min(rows, key=lambda row: row["median"])
    worst = max(rows, key=lambda row: row["median"])
    if are_same(best["median"], worst["median"]):
        several = ", however many attributes it has" if len(rows) > 1 else ""
        typical = f"{_as_in_chart(worst['median'])} {counted}"
        middle = f"A typical table has a standard error of {typical}{several}."
    else:
        middle = (
            f"Typical (median) standard errors run from {_as_in_chart(best['median'])} {counted} "
            f"for {order_in_words(best['order'])} to {_as_in_chart(worst['median'])} for "
            f"{order_in_words(worst['order'])}."
        )
    extreme = max(rows, key=lambda row: row["largest"])
    if are_same(min(row["smallest"] for row in rows), extreme["largest"]):
        return f"{middle} All tables are equally accurate."
    return (
        f"{middle} The least accurate table is {extreme['worst_table']}, at "
        f"{_as_in_chart(extreme['largest'])}."
    )


def differ_within_orders(frame: pd.DataFrame) -> bool:
    """Whether tables of the same order differ noticeably in what `by_order` shows."""
    spans = zip(frame["smallest"].tolist(), frame["largest"].tolist(), strict=True)
    return not all(are_same(*span) for span in spans)


def targets_met_in_words(met: int, targets: int) -> str:
    """ "The one target is met.", "Both targets are met.", "1 of 3 targets is met."."""
    if targets == 1:
        return f"The one target is {'' if met else 'not '}met."
    if met == targets:
        return f"{'Both' if targets == 2 else f'All {targets:,}'} targets are met."
    return f"{met:,} of {targets:,} targets {'is' if met == 1 else 'are'} met."


def order_in_words(order: int) -> str:
    """ "the total", "tables of 1 attribute", "tables of 3 attributes"."""
    return "the total" if order == 0 else f"tables of {plural(order, 'attribute')}"


def of_tables(plan: Plan, containing: Sequence[str] = ()) -> pd.DataFrame:
    """One row for each table that has all of these attributes, the least accurate first.

    Columns: table ("age × sex"), order, cells, standard_error, margin_95, weight, target, and met
    ("yes", "no", or "" where there is no target).
    """
    workload = plan.workload
    places = workload.containing(containing)
    places = places[np.argsort(-plan.standard_errors[places], kind="stable")]
    errors, targets = plan.standard_errors[places], workload.targets[places]
    met = np.where(errors <= targets * MET, "yes", "no")
    return pd.DataFrame(
        {
            "table": titles(workload, places),
            "order": workload.orders[places],
            "cells": workload.cells[places],
            "standard_error": errors,
            "margin_95": errors * MARGIN,
            "weight": workload.weights[places],
            "target": targets,
            "met": np.where(np.isnan(targets), "", met),
        }
    )


def csv_of_tables(plan: Plan) -> str:
    """All tables of a plan as CSV; `table_lists.workload_from_csv` reads it as a workload."""
    frame = plan.tables
    workload = plan.workload
    frame["attributes"] = list(texts_of_tables(workload.domain, workload.tables))
    return frame.to_csv(index=False, lineterminator="\n")


def titles(workload: Workload, places: np.ndarray) -> list[str]:
    """What to call the tables at these places."""
    names = workload.domain.names
    rows = workload.members[places].tolist()
    return [title(tuple(names[i] for i in row if i >= 0)) for row in rows]


def _as_in_chart(error: float) -> str:
    return rounded(error, 3, zeros=True)


def _title(plan: Plan, place: int) -> str:
    return titles(plan.workload, np.array([place]))[0]
