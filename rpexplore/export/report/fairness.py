"""What a report tells about fairness: who gets which accuracy, and other objectives beside it."""

from dataclasses import replace

from rpexplore.analysis import accuracy_by_attribute, fairness, shadow_prices
from rpexplore.analysis.forecast import SCHEMES, Forecast, scheme_of, unweighted
from rpexplore.export.report.section import Numbers, Points, Section
from rpexplore.figures.accuracy_by_attribute import accuracy_by_attribute_chart
from rpexplore.figures.chart import COLUMNS, Chart, Column
from rpexplore.figures.distributions import distribution_by_order_chart, distribution_by_plan_chart
from rpexplore.figures.fairness import fairness_chart
from rpexplore.figures.shadow_prices import shadow_prices_chart
from rpexplore.planning.planner import optimum
from rpexplore.planning.table_plan import TablePlan

OWN = "This plan"
MOST_SHOWN = 10


def fairness_section(plan: TablePlan, record_noun: str) -> Section:
    """How uneven this plan is, which tables bind it, and the usual schemes beside it."""
    own, *schemes = forecasts(plan)
    if len(plan.workload) == 1:
        return Section("Fairness", (fairness.describe_unevenness(own, record_noun),))
    frame = accuracy_by_attribute.by_attribute(own)
    return Section(
        "Fairness",
        (
            fairness.describe_unevenness(own, record_noun),
            _describe_comparison(plan),
            *([own.cell_text] if own.cells_differ else []),
        ),
        (
            _by_size([own, *schemes], record_noun),
            *_side_by_side([own, *schemes], record_noun),
            distribution_by_order_chart(own, record_noun),
            distribution_by_plan_chart([own, *schemes], record_noun),
            *([] if frame.empty else [accuracy_by_attribute_chart(frame, own, record_noun)]),
            _binding_tables(plan, own),
            _most_accurate(own),
        ),
    )


def forecasts(plan: TablePlan) -> list[Forecast]:
    """The plan, and for the same tables and budget each scheme that is another one."""
    own, tables = scheme_of(plan.loss, plan.workload), unweighted(plan.workload)
    uniform, closure = plan.has_uniform_reference, plan.closure
    schemes = {
        name: optimum(tables, loss=loss, closure=closure, uniform_reference=uniform)
        for name, loss in SCHEMES.items()
        if name != own
    }
    return [
        Forecast.of_plan(OWN, plan),
        *(Forecast.of_optimum(name, scheme, plan.budget) for name, scheme in schemes.items()),
    ]


def _describe_comparison(plan: TablePlan) -> str:
    name = scheme_of(plan.loss, plan.workload)
    own = f"This plan is the one named “{name}”. The others" if name else "The other plans"
    text = (
        f"{own} compared here are for the same tables and the same budget, with equal weight per "
        "table and another objective. "
    )
    if plan.workload.is_marginals:
        return f"{text}Each is the best plan for its objective."
    return (
        f"{text}Each is planned on its own, and measures attributes as is best for its objective."
    )


def _by_size(compared: list[Forecast], record_noun: str) -> Chart:
    chart = fairness_chart(compared, record_noun)
    if "table" not in chart.frame:
        return chart
    # A row a table, with its standard error under each plan.
    rows = chart.frame.pivot_table(
        index=["table", "cells"], columns="plan", values="standard_error", sort=False
    ).reset_index()
    errors = {forecast.name: Column(f"σ, {forecast.name}") for forecast in compared}
    columns = {"table": COLUMNS["table"], "cells": COLUMNS["cells"]} | errors
    return replace(chart, frame=rows, columns=columns)


def _side_by_side(compared: list[Forecast], record_noun: str) -> tuple[Numbers, Points]:
    measured = fairness.measures(compared)
    frame = fairness.side_by_side(measured)
    meanings = [
        f"{name}: {meaning[0].lower()}{meaning[1:]}" for name, meaning in fairness.MEASURES.values()
    ]
    return (
        Numbers(
            frame.drop(columns="meaning"),
            title="The plans side by side",
            note=fairness.describe_measures(measured, record_noun),
        ),
        Points(meanings, "What the measures say"),
    )


def _binding_tables(plan: TablePlan, own: Forecast) -> Chart:
    what = shadow_prices.describe_loss(plan.loss, plan.workload)
    chart = shadow_prices_chart(own, "table", what)
    return replace(chart, sentence=shadow_prices.describe(own, plan.loss))


def _most_accurate(own: Forecast) -> Numbers:
    _, most_accurate = fairness.least_and_most_accurate(own, MOST_SHOWN)
    names = ["table", "cells", "standard_error", "margin_95", "times_median"]
    if own.cells_differ:
        names += ["smallest_standard_error", "largest_standard_error"]
    columns = {name: COLUMNS[name] for name in names}
    note = "The least accurate tables are listed under Accuracy."
    return Numbers(most_accurate, columns, "The most accurate tables", note)
