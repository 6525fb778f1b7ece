"""What a report tells of tables: how many, how accurate, how fair, targets."""

from dataclasses import replace

import numpy as np
import pandas as pd

from rpexplore.analysis import accuracy as standard_errors
from rpexplore.analysis import binding_targets, fairness, measures, targets_met
from rpexplore.analysis.accuracy import csv_of_accuracy, headline, readable
from rpexplore.analysis.measures import SCHEMES, Accuracy, scheme_of, unweighted
from rpexplore.analysis.sufficient_budgets import sufficient_budget
from rpexplore.analysis.targets_met import target_counts
from rpexplore.common.text import plural, rounded
from rpexplore.errors import BudgetError, WorkloadError
from rpexplore.figures.accuracy import (
    accuracy_by_attribute_chart,
    accuracy_by_order_chart,
    distribution_by_order_chart,
    distribution_by_plan_chart,
)
from rpexplore.figures.chart import COLUMNS, Chart, Column
from rpexplore.figures.fairness import fairness_chart
from rpexplore.figures.trade_offs import shadow_prices_chart
from rpexplore.planning.losses.losses import MaxVariance
from rpexplore.planning.mechanism.variances import cells_differ
from rpexplore.planning.minimum_budget import minimum_budget
from rpexplore.planning.part_plan import EXTREMES
from rpexplore.planning.planner import optimum
from rpexplore.planning.table_plan import TablePlan
from rpexplore.reports.adaptive import readings
from rpexplore.reports.evidence import aggregations, baselines_section
from rpexplore.reports.first_pages import what_is_released
from rpexplore.reports.forecast import forecast_of
from rpexplore.reports.kinds import FrontRow, Given, PartReport
from rpexplore.reports.section import Attachment, Numbers, Points, Section, template_blocks
from rpexplore.scenarios.workload_request import WorkloadRequest
from rpexplore.workload.rules import SURELY, Rule
from rpexplore.workload.table_text import titles
from rpexplore.workload.targets import MET_FACTOR


def tables_report(plan: TablePlan, given: Given) -> PartReport:
    """What there is to tell of tables."""
    noun = given.record_noun
    forecast_row, forecast_sections = forecast_of(plan, given)
    sections = [
        *aggregations(plan.workload, plan.closure.strategies),
        tables_section(plan),
        accuracy(plan, noun),
        fairness_section(plan, noun),
    ]
    if plan.loss.is_available and not plan.closure.has_own_costs:
        sections.append(baselines_section(plan))
    sections += forecast_sections
    sections += [targets(plan, given.request), readings(given.request, given.rehearsal, noun)]
    return PartReport(_front(plan, given, forecast_row), sections)


def _front(plan: TablePlan, given: Given, forecast: FrontRow) -> list[FrontRow]:
    top, counts, noun = headline(plan), target_counts(plan), given.record_noun
    rows: list[FrontRow] = [
        what_is_released(plan, noun),
        forecast,
        (
            "Margin of error",
            f"±{rounded(top.median_margin, 3)} {noun} for {top.median_text}, and "
            f"±{rounded(top.largest_margin, 3)} for {top.largest_text}, "
            f"{top.least_accurate_table}: a noisy count is so near to the true one 95 % of the "
            "time.",
        ),
    ]
    return [*rows, ("Targets", counts.text)] if counts.targets else rows


# ---- What a report tells about the tables: their number, sizes, and absolute and relative errors.


MOST_SHOWN = 20
MOST_ATTACHED = 5_000  # tables in the list that a report carries
MOST_WEIGHTS = 12


def tables_section(plan: TablePlan) -> Section:
    """How many tables of which size, and which of them matter more."""
    totals = measures.totals(plan.workload)
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
    sentences = (*sentences, *(_rule_sentence(rule) for rule in plan.rules))
    return Section("Accuracy", sentences, (chart, _least_accurate(plan), _list_of_tables(plan)))


def _rule_sentence(rule: Rule) -> str:
    judged = "at the lower end of a forecast" if rule.certainty == SURELY else "by a forecast"
    return (
        f"The rule for these tables: {rule.text}. Whether a table meets it depends on its counts, "
        f"and is judged {judged} from what is public of them."
    )


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


def _are(count: int, noun: str) -> str:
    """ "1 table is", "67 tables are"."""
    return f"{plural(count, noun)} {'is' if count == 1 else 'are'}"


def _as_typed(frame: pd.DataFrame) -> pd.DataFrame:
    """Rows of an accuracy frame with weights and targets as people write them."""
    numbers = [name for name in ("weight", "target") if name in frame]
    texts = frame[numbers].map(lambda value: "" if np.isnan(value) else f"{value:g}")
    return frame.assign(**texts)


# ---- What a report tells about fairness: who gets which accuracy, and other objectives beside it.


OWN = "This plan"
FAIRNESS_MOST_SHOWN = 10


def fairness_section(plan: TablePlan, record_noun: str) -> Section:
    """How uneven this plan is, which tables bind it, and the usual schemes beside it."""
    own, *schemes = accuracies(plan)
    if len(plan.workload) == 1:
        return Section("Fairness", (fairness.describe_unevenness(own, record_noun),))
    frame = fairness.by_attribute(own)
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


def accuracies(plan: TablePlan) -> list[Accuracy]:
    """The plan, and for the same tables and budget each scheme that is another one."""
    own, tables = scheme_of(plan.loss, plan.workload), unweighted(plan.workload)
    uniform, closure = plan.has_uniform_reference, plan.closure
    schemes = {
        name: optimum(tables, loss=loss, closure=closure, uniform_reference=uniform)
        for name, loss in SCHEMES.items()
        if name != own
    }
    return [
        Accuracy.of_plan(OWN, plan),
        *(Accuracy.of_optimum(name, scheme, plan.budget) for name, scheme in schemes.items()),
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


def _by_size(compared: list[Accuracy], record_noun: str) -> Chart:
    chart = fairness_chart(compared, record_noun)
    if "table" not in chart.frame:
        return chart
    # A row a table, with its standard error under each plan.
    rows = chart.frame.pivot_table(
        index=["table", "cells"], columns="plan", values="standard_error", sort=False
    ).reset_index()
    errors = {plan.name: Column(f"σ, {plan.name}") for plan in compared}
    columns = {"table": COLUMNS["table"], "cells": COLUMNS["cells"]} | errors
    return replace(chart, frame=rows, columns=columns)


def _side_by_side(compared: list[Accuracy], record_noun: str) -> tuple[Numbers, Points]:
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


def _binding_tables(plan: TablePlan, own: Accuracy) -> Chart:
    what = binding_targets.describe_loss(plan.loss, plan.workload)
    chart = shadow_prices_chart(own, "table", what)
    return replace(chart, sentence=binding_targets.describe_shadow_prices(own, plan.loss))


def _most_accurate(own: Accuracy) -> Numbers:
    _, most_accurate = fairness.least_and_most_accurate(own, FAIRNESS_MOST_SHOWN)
    names = ["table", "cells", "standard_error", "margin_95", "times_median"]
    if own.cells_differ:
        names += ["smallest_standard_error", "largest_standard_error"]
    columns = {name: COLUMNS[name] for name in names}
    note = "The least accurate tables are listed under Accuracy."
    return Numbers(most_accurate, columns, "The most accurate tables", note)


# ---- What a report tells about targets: which are met, and what it would take to meet all.


TARGETS_MOST_SHOWN, MOST_HOLDERS = 20, 10


def targets(plan: TablePlan, request: WorkloadRequest | None = None) -> Section:
    """Which targets are met, and the budget that would meet all of them.

    request: of the scenario, which has the targets as they were typed; without it they are
    standard errors
    """
    ratios = plan.largest_standard_errors / plan.workload.targets
    if np.all(np.isnan(ratios)):
        return Section("Targets", ("No table was given a target for its accuracy.",))
    counts, differ = targets_met.target_counts(plan), cells_differ(plan.table_variances)
    sentences = [counts.text]
    if counts.required:
        sentences.append(
            "Required targets are met first; the others in proportion, as well as can be."
        )
    if differ:
        sentences.append("A target is met when the least accurate cell of its table meets it.")
    if plan.loss.is_homogeneous:  # only then the plan for another budget is this one, scaled
        ratio = min(float(np.nanmax(ratios)), 1e100)  # its square is a float, and no budget
        sentences += _sufficient_budget(plan, ratio**2, counts.targets)
    explanation, binding_tables = _smallest_budget(plan, request)
    sentences.append(explanation)
    frame = targets_met.of_targets(plan, request, most=TARGETS_MOST_SHOWN)
    columns = {
        "table": Column("table", "text"),
        "wanted": Column("target", "text"),
        "required": Column("required", "text"),
        "now": Column("least accurate cell" if differ else "in the plan", "text"),
        "outcome": Column("met or short by", "text"),
        "ratio": Column("times the target"),
    }
    if not counts.required:
        del columns["required"]
    note = "A number by itself is a standard error σ."
    if len(frame) < counts.targets:
        note += f" And {counts.targets - len(frame):,} more; tables.csv has all."
    title = "Targets, the furthest off first"
    return Section("Targets", sentences, (Numbers(frame, columns, title, note), *binding_tables))


def _smallest_budget(plan: TablePlan, request: WorkloadRequest | None) -> tuple[str, list[Numbers]]:
    """The smallest budget for the targets, and the binding targets.

    Of required targets, where the plan meets these first, else of all.
    """
    required_only = plan.loss.meets_required_targets
    try:
        minimum = minimum_budget(plan.workload, required_only=required_only, closure=plan.closure)
        budget_explanation = binding_targets.budget_explanation(
            minimum, plan.budget, required_only=required_only, by_rho=plan.noise is None
        )
    except (BudgetError, WorkloadError) as error:  # no budget is so large, or so small
        return str(error), []
    frame = binding_targets.binding_targets_frame(minimum, plan.budget, request, MOST_HOLDERS)
    columns = {
        "table": Column("table", "text"),
        "wanted": Column("target", "text"),
        "required": Column("required", "text"),
        "share": Column("share of the smallest budget", "share", digits=2),
        "saved": Column("saving if 10 % wider", "share", digits=2),
        "rho": Column("ρ then"),
    }
    note = "What would be saved follows from the shares, so it is approximate."
    more = len(minimum.binding_tables) - len(frame)
    if more:
        note += f" And {more:,} more."
    title = "Binding targets of the smallest budget"
    return binding_targets.describe_binding(budget_explanation), [
        Numbers(frame, columns, title, note)
    ]


def _sufficient_budget(plan: TablePlan, factor: float, targets: int) -> list[str]:
    """The budget that would just meet all targets; factor: how many times the plan's own it is."""
    them = "the target" if targets == 1 else "all targets"
    if 1 / MET_FACTOR**2 <= factor <= MET_FACTOR**2:
        return []
    try:
        enough = sufficient_budget(float(plan.rho) * factor, plan.budget, noise=plan.noise)
    except BudgetError:
        return [f"No budget that can be planned with would meet {them}."]
    if factor < 1:
        return [f"With the same objective, {enough.text} would be enough for {them}."]
    sentences = [
        f"To meet {them} with the same objective takes {enough.text}: {enough.compared}, because "
        "standard errors fall with the square root of ρ."
    ]
    if not (isinstance(plan.loss, MaxVariance) and plan.loss.relative_to == "target"):
        which = "target itself" if targets == 1 else "targets themselves"
        sentences.append(f"A plan whose objective is the {which} may need less.")
    return sentences
