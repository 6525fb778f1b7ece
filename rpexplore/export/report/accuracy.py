"""What a report tells about the tables: how many of which size, and how accurate they are."""

import numpy as np
import pandas as pd

from rpexplore.analysis import accuracy as standard_errors
from rpexplore.analysis import forecast
from rpexplore.analysis.accuracy import csv_of_tables
from rpexplore.common.formatting import capitalised, describe_count, plural, rounded
from rpexplore.export.report.section import Attachment, Numbers, Section, counts
from rpexplore.figures.accuracy import chart_by_order
from rpexplore.figures.chart import Chart
from rpexplore.figures.columns import headings
from rpexplore.planning.mechanism.table_variances import cells_differ
from rpexplore.planning.plan import Plan

WORST = 20
MOST_ATTACHED = 5_000  # tables in the list that a report carries
MOST_WEIGHTS = 12


def tables_asked_for(plan: Plan) -> Section:
    """How many tables of which size, and which of them matter more."""
    workload = plan.workload
    totals = forecast.totals(workload)
    return Section(
        "Tables",
        (
            f"{_are(totals.tables, 'table')} released, with {describe_count(totals.cells)} cells "
            f"in all. The largest is {totals.largest_table}, with "
            f"{describe_count(totals.largest_cells)} cells.",
            f"They are made from {plural(len(plan.closure), 'residual')}: the parts that tables "
            f"share, each measured once. So tables agree with each other: {_adding_up(plan)}",
        ),
        (_sizes(plan), *_weights(plan)),
    )


def _adding_up(plan: Plan) -> str:
    if plan.workload.is_marginals:
        return (
            "the cells of a table add up to those of every smaller table that is contained in it."
        )
    return "an answer that several tables give is the same in all of them."


def _sizes(plan: Plan) -> Numbers:
    workload = plan.workload
    rows = []
    for order in np.unique(workload.orders).tolist():
        cells = workload.exact_cells[workload.orders == order]
        rows.append(
            {
                "order": standard_errors.describe_order(order),
                "tables": len(cells),
                "cells": int(cells.sum()),
                "smallest": int(min(cells)),
                "largest": int(max(cells)),
            }
        )
    columns = {
        "order": "tables by number of attributes",
        "tables": "tables",
        "cells": "cells in all",
        "smallest": "cells of the smallest",
        "largest": "of the largest",
    }
    return Numbers(pd.DataFrame(rows).astype(object), columns)


def _weights(plan: Plan) -> list[Numbers]:
    """Which weight how many tables have, the greatest first, if they differ."""
    weights = plan.workload.weights
    values, first, counts = np.unique(weights, return_index=True, return_counts=True)
    if len(values) == 1 or plan.loss.compares_with_targets:
        return []
    shown = np.argsort(-values)[:MOST_WEIGHTS]
    frame = pd.DataFrame(
        {
            "weight": [f"{value:g}" for value in values[shown].tolist()],
            "tables": counts[shown],
            "example": standard_errors.titles(plan.workload, first[shown]),
        }
    )
    left = len(values) - len(shown)
    note = "Weight multiplies a table's variance in what the plan makes small."
    if left:
        note += f" {_are(left, 'smaller weight')} not shown; tables.csv has all."
    columns = {"weight": "weight", "tables": "tables", "example": "such as"}
    return [Numbers(frame, columns, "Weight", note)]


def accuracy(plan: Plan, record_noun: str) -> Section:
    """What the plan aims for, and how accurate its tables are."""
    top = standard_errors.headline(plan)
    return Section(
        "Accuracy",
        (
            f"The plan makes {plan.loss.description} as small as the budget allows. "
            f"{_of_cells(top)} It is that of the privacy noise, and does not depend on the counts.",
            f"{capitalised(top.median_text)} is within ±{rounded(top.median_margin)} "
            f"{record_noun} of the count in the records, 95 % of the time (standard error σ = "
            f"{rounded(top.median_error, 3)}); {_describe_worst(top)}, within "
            f"±{rounded(top.worst_margin)} (σ = {rounded(top.worst_error, 3)}).",
        ),
        (accuracy_chart(plan, record_noun), _worst(plan), list_of_tables(plan)),
    )


def _of_cells(top: standard_errors.Headline) -> str:
    if top.cells_differ:
        return (
            "The cells of a table do not all have the same standard error: for each table that of "
            "the root mean square of its cells is given, and those of its most and "
            "its least accurate cell."
        )
    return "All cells of a table have the same standard error."


def _describe_worst(top: standard_errors.Headline) -> str:
    if top.cells_differ:
        return f"{top.worst_text}, one of {top.worst_table}"
    return f"a cell of the least accurate table, {top.worst_table}"


def accuracy_chart(plan: Plan, record_noun: str) -> Chart:
    """The standard error by number of attributes."""
    differ = cells_differ(plan.table_variances)
    return chart_by_order(standard_errors.by_order(plan), record_noun, cells_differ=differ)


def _worst(plan: Plan) -> Numbers:
    frame = standard_errors.of_tables(plan).head(WORST)
    names = ["table", "cells", "standard_error", "margin_95"]
    if "worst_standard_error" in frame:
        names += ["best_standard_error", "worst_standard_error"]
    columns = headings(names)
    if np.any(plan.workload.weights != 1):
        columns["weight"] = "weight"
    if not np.all(np.isnan(plan.workload.targets)):
        columns |= {"target": "target σ", "met": "met"}
    shown, total = len(frame), len(plan.workload)
    title = "All tables" if shown == total else f"The {shown} least accurate of {total:,} tables"
    return Numbers(_readable(frame), columns, f"{title}, the least accurate first")


def list_of_tables(plan: Plan) -> Attachment:
    """All tables as CSV, or where to get them if they are too many for a document."""
    count = len(plan.workload)
    if count <= MOST_ATTACHED:
        return Attachment(
            "tables.csv",
            f"{_all(count, 'table')} with cells, standard error, weight, target and shadow price",
            csv_of_tables(plan),
        )
    return Attachment(
        "tables.csv",
        f"The list of all {count:,} tables is too long for this document. It is tables.csv in the "
        "bundle that the app exports, and “rpexplore show plan.json --csv tables.csv” writes it.",
    )


def _are(count: int, noun: str) -> str:
    """ "1 table is", "67 tables are"."""
    return f"{plural(count, noun)} {'is' if count == 1 else 'are'}"


def _all(count: int, noun: str) -> str:
    return f"The one {noun}" if count == 1 else f"All {plural(count, noun)}"


def _readable(frame: pd.DataFrame) -> pd.DataFrame:
    """Rows of `of_tables` with cells, weights and targets as people write them."""
    given = {
        name: ["" if value != value else f"{value:g}" for value in frame[name].tolist()]
        for name in ("weight", "target")
    }
    return frame.assign(cells=counts(frame["cells"]), **given)
