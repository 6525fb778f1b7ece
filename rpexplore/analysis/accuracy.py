"""How accurate the tables of a plan are: by order, table by table, and against their targets."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rpexplore.analysis.measures import STANDARD_ERROR, Measure
from rpexplore.common.text import csv_of_frame, plural, rounded
from rpexplore.planning.mechanism.variances import cells_differ, is_negligible_difference
from rpexplore.planning.part_plan import Z_95, PartPlan, for_reading, names_for_reading, worst_first
from rpexplore.planning.plan import Plan
from rpexplore.planning.table_plan import TablePlan
from rpexplore.privacy.budget import Budget
from rpexplore.workload.table_text import texts_of_tables, title_of

if TYPE_CHECKING:
    import pandas as pd

# The command line needs columns alone, so functions that make frames import pandas themselves.

_TEXTS = {"met": {True: "yes", False: "no"}, "required": {True: "required", False: ""}}


@dataclass(frozen=True)
class Headline:
    """The accuracy of a whole plan in a few numbers; margins are half 95 % intervals of a cell.

    median_error   median over the tables of the root mean square error of a table's cells
    largest_error  of the least accurate cell of any table, one of least_accurate_table
    cells_differ   whether some table's cells differ noticeably in accuracy
    is_one         whether there is one table only
    is_of_counts   whether they are single counts instead of tables
    """

    median_error: float
    largest_error: float
    least_accurate_table: str
    cells_differ: bool
    is_one: bool = False
    is_of_counts: bool = False

    @property
    def median_margin(self) -> float:
        return self.median_error * Z_95

    @property
    def largest_margin(self) -> float:
        return self.largest_error * Z_95

    @property
    def median_text(self) -> str:
        """Whose the median is: "a cell of the median table", "the median own count"."""
        if self.is_of_counts:
            return "the own count" if self.is_one else "the median own count"
        table = "the table" if self.is_one else "the median table"
        return f"a cell of {table}{' (root mean square)' if self.cells_differ else ''}"

    @property
    def median_of(self) -> str:
        """The same without an article: "median table"."""
        return self.median_text.removeprefix("a cell of ").removeprefix("the ")

    @property
    def largest_text(self) -> str:
        """Whose the largest error is: "a cell of the least accurate table"."""
        if self.is_of_counts:
            return "the own count" if self.is_one else "the least accurate own count"
        if self.cells_differ:
            return f"the least accurate cell{'' if self.is_one else ' of all tables'}"
        if self.is_one:
            return "a cell of the table"
        return "a cell of the least accurate table"


def headline(plan: TablePlan) -> Headline:
    """The accuracy of a plan in a few numbers."""
    comparable = plan.workload.comparable
    table = int(np.argmax(np.where(comparable, plan.largest_standard_errors, -1.0)))
    return Headline(
        median_error=float(np.median(plan.standard_errors[comparable])),
        largest_error=float(plan.largest_standard_errors[table]),
        least_accurate_table=title_of(plan.workload, table),
        cells_differ=cells_differ(plan.table_variances),
        is_one=np.count_nonzero(comparable) == 1,
    )


def by_order(plan: TablePlan) -> "pd.DataFrame":
    """Standard error of a cell over the tables of each order, one row an order.

    Columns: order, tables, smallest, lower_quartile, median, upper_quartile, largest,
    most_accurate_table, least_accurate_table. Where the cells of a table differ, quartiles and
    median are those of root mean squares over cells, smallest and largest of the most and the
    least accurate cell of any table. Tables with amounts are left out beside others.
    """
    import pandas as pd

    lowest = plan.variances_in_units.standard_errors("smallest")
    highest, comparable = plan.largest_standard_errors, plan.workload.comparable
    rows = []
    for order in np.unique(plan.workload.orders[comparable]).tolist():
        tables = np.flatnonzero((plan.workload.orders == order) & comparable)
        most, least = tables[np.argmin(lowest[tables])], tables[np.argmax(highest[tables])]
        lower, median, upper = np.quantile(plan.standard_errors[tables], [0.25, 0.5, 0.75])
        rows.append(
            {
                "order": order,
                "tables": len(tables),
                "smallest": lowest[most],
                "lower_quartile": lower,
                "median": median,
                "upper_quartile": upper,
                "largest": highest[least],
                "most_accurate_table": title_of(plan.workload, most),
                "least_accurate_table": title_of(plan.workload, least),
            }
        )
    return pd.DataFrame(rows)


def describe_by_order(
    frame: "pd.DataFrame", record_noun: str, *, cells_differ: bool = False
) -> str:
    """What `by_order` shows, in one or two sentences: a chart's caption and alternative text.

    cells_differ: whether some table's cells differ in accuracy, as in `Headline`
    """
    rows = frame.to_dict("records")
    medians = {describe_order(row["order"]): row["median"] for row in rows}
    noun = "root mean square error" if cells_differ else STANDARD_ERROR.noun
    measure = replace(STANDARD_ERROR, noun=noun, nouns=f"{noun}s")
    middle = describe_medians(medians, record_noun, measure)
    extreme = max(rows, key=lambda row: row["largest"])
    if is_negligible_difference(min(row["smallest"] for row in rows), extreme["largest"]):
        return f"{middle} All tables are equally accurate."
    which = "cell is one of" if cells_differ else "table is"
    return (
        f"{middle} The least accurate {which} {extreme['least_accurate_table']}, at "
        f"{rounded(extreme['largest'], 3, zeros=True)}."
    )


def describe_medians(medians: Mapping[str, float], record_noun: str, measure: Measure) -> str:
    """How the medians of groups of tables compare: {which tables: median}."""
    most, least = min(medians, key=medians.__getitem__), max(medians, key=medians.__getitem__)
    high = measure.stated(medians[least], record_noun, zeros=True)
    if is_negligible_difference(medians[most], medians[least]):
        orders = " at every number of attributes" if len(medians) > 1 else ""
        return f"The median {measure.noun} is {high}{orders}."
    low = measure.stated(medians[most], record_noun, zeros=True)
    high = measure.text(medians[least], zeros=True)
    return f"Median {measure.nouns} range from {low} for {most} to {high} for {least}."


def describe_boxes(frame: "pd.DataFrame", *, cells_differ: bool = False) -> str:
    """How to read the boxes of the chart of `by_order`; "" where there are none."""
    spans = zip(frame["smallest"].tolist(), frame["largest"].tolist(), strict=True)
    if all(is_negligible_difference(*span) for span in spans):
        return ""
    if cells_differ:
        return (
            "Boxes hold the middle half of the tables, each by the root mean square of its cells; "
            "whiskers reach the most and the least accurate cell of all."
        )
    return (
        "Boxes hold the middle half of the tables; whiskers reach the most and the least accurate."
    )


def describe_order(order: int) -> str:
    """ "the total", "tables of 1 attribute", "tables of 3 attributes"."""
    return "the total" if order == 0 else f"tables of {plural(order, 'attribute')}"


def accuracy_of(plan: Plan | PartPlan) -> "pd.DataFrame":
    """One row an item of every part, each part's least accurate first: see `item_columns`."""
    import pandas as pd

    return worst_first(pd.concat([part.accuracy() for part in plan.parts]))


def of_tables(plan: TablePlan, containing: Sequence[str] = ()) -> "pd.DataFrame":
    """The rows of the tables that have all of these attributes, the least accurate first."""
    return plan.accuracy().iloc[least_accurate_first(plan, containing)]


def readable_columns(columns: "Mapping[str, Any] | pd.DataFrame") -> dict[str, Any]:
    """Columns of `item_columns` as people read them, without those that say nothing."""
    shown = {name: columns[name] for name in names_for_reading(columns)}
    for name in shown.keys() & _TEXTS.keys():
        shown[name] = [_TEXTS[name].get(value, "") for value in shown[name]]
    same = {"weight": 1, "required": ""}  # for all items: says nothing
    says_nothing = [name for name in same if name in shown and set(shown[name]) == {same[name]}]
    return {name: shown[name] for name in shown if name not in says_nothing}


def readable(frame: "pd.DataFrame") -> "pd.DataFrame":
    """The `readable_columns` of an accuracy frame."""
    shown = readable_columns(frame)
    texts = {name: shown[name] for name in shown.keys() & _TEXTS.keys()}
    return frame[[*shown]].assign(**texts)


def standard_error_alone(budget: Budget) -> float:
    """The standard error of a table of single values that has the whole budget for itself."""
    return 1 / float(budget.record_privacy_cost) ** 0.5  # noise in every cell


def least_accurate_first(plan: TablePlan, containing: Sequence[str] = ()) -> np.ndarray:
    """Indices of the tables with these attributes, by their least accurate cell, int64[n]."""
    tables = plan.workload.containing(containing)
    return tables[np.argsort(-plan.largest_standard_errors[tables], kind="stable")]


def csv_of_accuracy(plan: Plan | PartPlan, *, escape_formulas: bool = False) -> str:
    """`accuracy_of` a plan as CSV, without empty columns.

    Of a plan of tables `workload_from_csv` reads it again. Whether targets are required is there
    where some are; the most and least accurate cell where those of some item differ.
    """
    import pandas as pd

    frames = [part.accuracy() for part in plan.parts]
    for part, frame in zip(plan.parts, frames, strict=True):
        if frame["attributes"].notna().to_numpy().all():
            frame["attributes"] = list(texts_of_tables(part.domain, frame["attributes"]))
    frame = for_reading(worst_first(pd.concat(frames)))
    if "required" not in frame or not frame["required"].eq(True).to_numpy().any():
        frame = frame.drop(columns="required", errors="ignore")
    for name in {"required", "met"} & {*frame}:
        frame[name] = [{True: "yes", False: "no"}.get(value, "") for value in frame[name]]
    if len(frames) == 1:
        del frame["part"]
    return csv_of_frame(frame, escape_formulas=escape_formulas)
