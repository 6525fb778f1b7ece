"""What a report tells about fairness: who gets which accuracy, and what another rule would give."""

import pandas as pd

from rpexplore.analysis import accuracy_by_attribute as attributes
from rpexplore.analysis import distributions, fairness, rankings, shadow_prices
from rpexplore.analysis import variance_by_size as cell_variances
from rpexplore.analysis.forecast import SCHEMES, Forecast, plain, scheme_of
from rpexplore.common.formatting import plural, share_in_words
from rpexplore.export.report.section import Chart, Numbers, Points, Section, counts
from rpexplore.figures import accuracy_by_attribute as attribute_figures
from rpexplore.figures import distributions as curves
from rpexplore.figures import shadow_prices as shares
from rpexplore.figures import variance_by_size as size_figures
from rpexplore.planning.losses.base import Loss
from rpexplore.planning.optimum import Optimum
from rpexplore.planning.plan import Plan
from rpexplore.planning.planner import optimum
from rpexplore.scenarios.scenario import has_even_totals
from rpexplore.workload.workload import Workload

OWN = "This plan"
MOST_LINES = 30  # of attributes, before only the ends are drawn
BEST = 10

_QUANTILES = {
    "tables": "tables",
    "best": "best",
    "lower_tenth": "a tenth at most",
    "lower_quartile": "a quarter at most",
    "median": "half at most",
    "upper_quartile": "three quarters at most",
    "upper_tenth": "nine tenths at most",
    "worst": "worst",
}


def fairness_section(plan: Plan, counted: str) -> Section:
    """Who is worst off in this plan, who decides, and the usual schemes beside it."""
    own, *schemes = forecasts(plan)
    if len(plan.workload) == 1:
        words = fairness.unevenness_in_words(fairness.unevenness(own), counted)
        return Section("Fairness", (words,))
    return Section(
        "Fairness",
        (
            fairness.unevenness_in_words(fairness.unevenness(own), counted),
            _comparison_in_words(plan),
            *([own.seen_in_words] if own.cells_differ else []),
        ),
        (
            _by_size([own, *schemes], counted),
            *_side_by_side([own, *schemes], counted),
            _by_order(own, counted),
            _by_plan([own, *schemes], counted),
            *_by_attribute(own, counted),
            _holders(plan, own),
            _best_off(own),
        ),
    )


def forecasts(plan: Plan) -> list[Forecast]:
    """The plan, and for the same tables and budget each scheme that is another one."""
    own, bare = scheme_of(plan.loss, plan.workload), plain(plan.workload)
    even = has_even_totals(plan)
    others = [
        Forecast.of_optimum(name, _scheme(plan, bare, loss, even), plan.budget)
        for name, loss in SCHEMES.items()
        if name != own
    ]
    return [Forecast.of_plan(OWN, plan), *others]


def _scheme(plan: Plan, bare: Workload, loss: Loss, even: bool) -> Optimum:
    """The optimum for another loss, with attributes measured as is best for that.

    even: totals are spread evenly
    """
    return optimum(bare, loss=loss, closure=plan.closure, even_totals=even)


def _comparison_in_words(plan: Plan) -> str:
    name = scheme_of(plan.loss, plan.workload)
    own = f"This plan is the one named “{name}”. The others" if name else "The other plans"
    return (
        f"{own} compared here are for the same tables and the same budget, with all tables equally "
        "important and another rule for what counts. "
        + (
            "Each is the best plan for its rule."
            if plan.workload.is_pure
            else "Each is planned on its own, and measures attributes as is best for its rule."
        )
    )


def _by_size(compared: list[Forecast], counted: str) -> Chart:
    many = len(compared[0].workload) > cell_variances.MOST_POINTS
    frame = (cell_variances.bins if many else cell_variances.points)(compared)
    sentence = cell_variances.in_words(compared, counted)
    if many:
        words = {
            "plan": "plan",
            "attributes": "attributes",
            "cells": "cells, about",
            "tables": "tables",
            "standard_error": "standard error σ, about",
        }
        numbers = frame.assign(cells=counts(frame["cells"]))
        mark = "Each mark stands for tables of nearly that size and variance."
    else:
        numbers = frame.pivot_table(
            index="table", columns="plan", values="standard_error", sort=False
        ).reset_index()
        numbers.insert(1, "cells", counts(frame["cells"].iloc[: len(numbers)]))
        words = {"table": "table", "cells": "cells"}
        words |= {each.name: f"σ, {each.name}" for each in compared}
        mark = "Each mark is a table."
    return Chart(
        size_figures.by_plan(frame, counted),
        caption=f"{sentence} {mark}",
        alt=f"Variance of a cell against the number of cells of its table, by plan. {sentence}",
        numbers=Numbers(numbers, words, "Standard error of a cell by table and plan"),
        file="cell_variances.csv",
        title="Accuracy by size of the table",
    )


def _side_by_side(compared: list[Forecast], counted: str) -> tuple[Numbers, Points]:
    measured = fairness.measures(compared)
    frame = fairness.side_by_side(measured)
    words = {"measure": "measure", **{each.name: each.name for each in compared}}
    sentence = fairness.measures_in_words(measured, counted)
    meanings = [
        f"{name}: {meaning[0].lower()}{meaning[1:]}" for name, meaning in fairness.MEASURES.values()
    ]
    return (
        Numbers(frame, words, "The plans side by side", sentence),
        Points(meanings, "What the measures say"),
    )


def _by_order(own: Forecast, counted: str) -> Chart:
    frame = distributions.quantiles_by_order(own)
    sentence = distributions.by_order_in_words(frame, counted)
    return Chart(
        curves.shares_of_tables(distributions.curves_by_order(own), counted),
        caption=sentence,
        alt="Share of tables with at most so large a standard error, by number of attributes. "
        f"{sentence}",
        numbers=Numbers(
            frame,
            {"series": "tables of", **_QUANTILES},
            "Standard error of a cell, by number of attributes",
        ),
        file="distribution_by_order.csv",
        title="How many tables are how accurate",
    )


def _by_plan(compared: list[Forecast], counted: str) -> Chart:
    frame = distributions.quantiles_by_plan(compared)
    sentence = distributions.by_plan_in_words(frame, counted)
    return Chart(
        curves.shares_of_tables(distributions.curves_by_plan(compared), counted),
        caption=sentence,
        alt=f"Share of tables with at most so large a standard error, by plan. {sentence}",
        numbers=Numbers(
            frame, {"series": "plan", **_QUANTILES}, "Standard error of a cell, by plan"
        ),
        file="distribution_by_plan.csv",
        title="How many would be under another rule",
    )


def _by_attribute(own: Forecast, counted: str) -> list[Chart]:
    frame = attributes.by_attribute(own)
    if frame.empty:
        return []
    sentence = attributes.in_words(frame, own, counted)
    drawn, left_out = attributes.ends(frame, MOST_LINES)
    more = (
        "Dots are medians, thick lines hold the middle half of the tables, thin lines reach the "
        "best and the worst."
    )
    if left_out:
        more += f" {plural(left_out, 'attribute')} in between left out; the numbers have all."
    words = {
        "attribute": "attribute",
        "values": "values",
        "tables": "tables",
        "smallest": "best",
        "median": "half at most",
        "largest": "worst",
        "worst_table": "worst table",
    }
    middle = fairness.unevenness(own).median
    return [
        Chart(
            attribute_figures.standard_errors_by_attribute(drawn, middle, counted),
            caption=f"{sentence} {more}",
            alt=f"Standard errors of the tables that contain each attribute. {sentence}",
            numbers=Numbers(frame, words, "Standard error of a cell, by attribute of the table"),
            file="standard_errors_by_attribute.csv",
            title="By attribute",
        )
    ]


def _holders(plan: Plan, own: Forecast) -> Chart:
    what = shadow_prices.what_is_held(plan.loss, plan.workload)
    frame = shadow_prices.by_table(own)
    sentence = shadow_prices.in_words(shadow_prices.holders(own), what)
    percent = frame.assign(
        cells=counts(frame["cells"]),
        share=[share_in_words(share, 3) for share in frame["share"].tolist()],
    )
    words = {
        "table": "table",
        "cells": "cells",
        "share": "shadow price",
        "standard_error": "standard error σ",
    }
    words |= _extremes(own)
    return Chart(
        shares.bars(frame, "table", what),
        caption=sentence,
        alt=f"Share of {what} that tables hold up. {sentence}",
        numbers=Numbers(percent, words, "Tables with the largest shadow prices"),
        file="shadow_prices.csv",
        title="Which tables decide",
    )


def _extremes(own: Forecast) -> dict[str, str]:
    """The columns of the most and the least accurate cell, where cells differ."""
    if not own.cells_differ:
        return {}
    return {
        "best_standard_error": "most accurate cell σ",
        "worst_standard_error": "least accurate cell σ",
    }


def _best_off(own: Forecast) -> Numbers:
    _, best = rankings.worst_and_best(own, BEST)
    frame = pd.DataFrame(best).assign(cells=counts(best["cells"]))
    words = {
        "table": "table",
        "cells": "cells",
        "standard_error": "standard error σ",
        "margin_95": "± 95 % of the time",
        "times_median": "times the median σ",
    }
    words |= _extremes(own)
    note = "The least accurate tables are listed under Accuracy."
    return Numbers(frame, words, "The most accurate tables", note)
