"""What a report tells about the tables: their number, sizes, and absolute and relative errors."""

import numpy as np
import pandas as pd

from rpexplore.analysis import accuracy as standard_errors
from rpexplore.analysis import forecast
from rpexplore.analysis import relative_errors as relative
from rpexplore.analysis.accuracy import csv_of_accuracy, readable
from rpexplore.common.formatting import plural
from rpexplore.domain.expected_counts import ExpectedCounts
from rpexplore.errors import WorkloadError
from rpexplore.export.report.section import Attachment, Numbers, Section, template_blocks
from rpexplore.figures.accuracy import accuracy_by_order_chart
from rpexplore.figures.chart import COLUMNS, Column
from rpexplore.figures.distributions import publishable_cells_chart
from rpexplore.planning.accuracy_frame import EXTREMES
from rpexplore.planning.table_plan import TablePlan
from rpexplore.workload.table_text import titles

MOST_SHOWN = 20
MOST_ATTACHED = 5_000  # tables in the list that a report carries
MOST_WEIGHTS = 12


def tables_section(plan: TablePlan) -> Section:
    """How many tables of which size, and which of them matter more."""
    totals = forecast.totals(plan.workload)
    (sentences,) = template_blocks("tables.txt.j2", plan=plan, totals=totals, are=_are)
    return Section("Tables", sentences, (_sizes(plan), *_weights(plan)))


def _sizes(plan: TablePlan) -> Numbers:
    workload = plan.workload
    rows = []
    for order in np.unique(workload.orders).tolist():
        cells = workload.exact_cells[workload.orders == order]
        sizes = (len(cells), int(cells.sum()), int(min(cells)), int(max(cells)))
        rows.append((standard_errors.describe_order(order), *sizes))
    columns = [
        "tables by number of attributes",
        "tables",
        "cells in all",
        "cells of the smallest table",
        "cells of the largest table",
    ]
    return Numbers(pd.DataFrame(rows, columns=columns, dtype=object))


def _weights(plan: TablePlan) -> list[Numbers]:
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
            "such as": titles(plan.workload, first[shown]),
        }
    )
    left = len(values) - len(shown)
    note = "Weight multiplies a table's variance in what the plan makes small."
    if left:
        note += f" {_are(left, 'smaller weight')} not shown; tables.csv has all."
    return [Numbers(frame, title="Weight", note=note)]


def accuracy(plan: TablePlan, record_noun: str) -> Section:
    """The objective of the plan, and how accurate its tables are."""
    top, frame = standard_errors.headline(plan), standard_errors.by_order(plan)
    (sentences,) = template_blocks("accuracy.txt.j2", plan=plan, top=top, record_noun=record_noun)
    chart = accuracy_by_order_chart(frame, record_noun, cells_differ=top.cells_differ)
    return Section("Accuracy", sentences, (chart, _least_accurate(plan), _list_of_tables(plan)))


def _least_accurate(plan: TablePlan) -> Numbers:
    every = readable(standard_errors.of_tables(plan))
    frame = every.head(MOST_SHOWN)
    names = ["item", "cells", "standard_error", "margin_95", *EXTREMES]
    columns = {name: COLUMNS[name] for name in names if name in frame}
    texts = {"weight": "weight", "target": "target σ", "met": "met"}
    columns |= {name: Column(texts[name], "text") for name in texts if name in frame}
    shown, total = len(frame), len(every)
    title = "All tables" if shown == total else f"The {shown} least accurate of {total:,} tables"
    return Numbers(_as_typed(frame), columns, f"{title}, the least accurate first")


def _list_of_tables(plan: TablePlan) -> Attachment:
    """All tables as CSV, or where to get them if they are too many for a document."""
    count = len(plan.workload)
    if count <= MOST_ATTACHED:
        tables = "The one table" if count == 1 else f"All {count:,} tables"
        return Attachment(
            "tables.csv",
            f"{tables} with cells, standard error, weight, target and shadow price",
            csv_of_accuracy(plan),
        )
    return Attachment(
        "tables.csv",
        f"The list of all {count:,} tables is too long for this document. It is tables.csv in the "
        "bundle that the app exports, and “rpexplore show plan.json --csv tables.csv” writes it.",
    )


def relative_errors_section(plan: TablePlan, expected: ExpectedCounts, cv_limit: float) -> Section:
    """Standard errors against expected counts (RP+ Remark 2): which cells are worth publishing."""
    own = forecast.Forecast.of_plan("This plan", plan)
    title = "Relative errors"
    try:
        cells = relative.ExpectedCells.of(expected, plan.workload)
    except WorkloadError as error:
        return Section(title, (f"The expected counts do not fit the plan: {error}",))
    if not cells.held.any():
        return Section(title, (cells.left_out_text,))
    frame = relative.by_order(own, cells, cv_limit)
    return Section(
        title,
        (
            f"Expected counts: {expected.text}. They were typed in or loaded as public, and no "
            "record was looked at for them; the plan does not depend on them.",
            "The coefficient of variation of a cell is its standard error, of the privacy noise "
            "alone, divided by its expected count. A cell is publishable with one of at most "
            f"{100 * cv_limit:g} %.",
            *([cells.left_out_text] if cells.left_out else []),
        ),
        (publishable_cells_chart(relative.curves(own, cells), frame, cv_limit),),
    )


def _are(count: int, noun: str) -> str:
    """ "1 table is", "67 tables are"."""
    return f"{plural(count, noun)} {'is' if count == 1 else 'are'}"


def _as_typed(frame: pd.DataFrame) -> pd.DataFrame:
    """Rows of an accuracy frame with weights and targets as people write them."""
    numbers = [name for name in ("weight", "target") if name in frame]
    texts = frame[numbers].map(lambda value: "" if np.isnan(value) else f"{value:g}")
    return frame.assign(**texts)
