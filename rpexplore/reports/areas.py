"""What a report tells about tables in areas: levels, tables, accuracy by level, fairness."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from rpexplore.analysis.accuracy import csv_of_accuracy
from rpexplore.analysis.area_accuracy import (
    AreaErrors,
    area_headline,
    describe_levels,
    describe_required,
    describe_shares,
    describe_targets,
    errors_by_level,
    level_accuracy,
)
from rpexplore.analysis.area_forecast import (
    AreaForecast,
    area_forecast_by,
    levels_for_reading,
    sizes_for_reading,
    tables_for_reading,
)
from rpexplore.analysis.area_levels import beside_shares_by_level, level_sizes
from rpexplore.analysis.forecast import public_tables_by
from rpexplore.analysis.targets_met import describe_targets_met, target_counts
from rpexplore.common.text import capitalised, describe_count, describe_share, plural, rounded
from rpexplore.errors import PlanError, WorkloadError
from rpexplore.figures.areas import (
    ACCURACY_COLUMNS,
    AREA_COLUMNS,
    GUESS_COLUMNS,
    LEVEL_COLUMNS,
    SIZE_COLUMNS,
    shares_listed,
)
from rpexplore.figures.chart import COLUMNS, Column
from rpexplore.planning.areas.area_plan import AreaPlan
from rpexplore.planning.losses.losses import MaxVariance, WeightedSum
from rpexplore.reports.evidence import aggregations
from rpexplore.reports.kinds import FrontRow, Given, PartReport
from rpexplore.reports.section import Attachment, Numbers, Part, Section
from rpexplore.workload.table_text import title

MOST_TABLES, MOST_AREAS = 40, 10  # rows shown
_ALIKE = 1e-3  # relative difference of ratios below which tables differ alike between areas
_ERROR_COLUMNS = {
    "level": COLUMNS["level"],
    "table": COLUMNS["table"],
    "areas": Column("areas", "count"),
    "cells": COLUMNS["cells"],
    "smallest": Column("least σ"),
    "median": Column("median σ"),
    "largest": Column("largest σ"),
}


def _forecast_of(plan: AreaPlan, given: Given) -> tuple[FrontRow, list[Section]]:
    """The forecast by what is public, on the first page and in a section of its own.

    Where that says nothing, the first page says why.
    """
    try:
        public = given.public
        if public is None and given.expected is not None:
            public = public_tables_by(plan.domain, given.expected)
        if public is None:
            return ("Forecast", "Not known without expected counts."), []
        noun = plan.budget.counted_as(given.record_noun)
        made = area_forecast_by(
            plan, public, given.cv_limit, given.area_totals, given.design, noun=noun
        )
    except WorkloadError as error:
        said = f"Not known, as what is public does not fit the tables in areas: {error}"
        return ("Forecast", said), []
    people = made.people.text(describe_share)
    row = f"Forecast: {people} of {made.whom} in good cells", f"{made.describe()} {made.rests_on}"
    return row, [_forecast(made)]


def areas_report(plan: AreaPlan, given: Given) -> PartReport:
    """What there is to tell of tables in areas."""
    forecast_row, forecast_sections = _forecast_of(plan, given)
    return PartReport(
        front=_front(plan, given.record_noun, forecast_row),
        sections=[
            *aggregations(plan.workload.tables, plan.closure.strategies),
            _areas(plan),
            _tables(plan),
            _accuracy(plan, given.record_noun),
            _fairness(plan),
            *_best_guesses(given),
            *forecast_sections,
            *_targets(plan),
        ],
        of_kind=f" of {plural(plan.workload.tree.n_areas, 'area')}",
    )


def _front(plan: AreaPlan, record_noun: str, forecast: FrontRow) -> list[FrontRow]:
    """What is released and how accurate it is, for who has a minute."""
    tree, top = plan.workload.tree, area_headline(plan)
    tables = plan.workload.tables
    by = [index for index in plan.attribute_indices if index not in tables.amounts]
    names = ", ".join(plan.domain.names[index] for index in by)
    has_counts = not tables.has_amounts.all()
    kinds = " or ".join(
        [
            *([f"count {record_noun}"] if has_counts else []),
            *([f"have {tables.sums_noun} of {record_noun}"] if tables.sums_noun else []),
        ]
    )
    unit = record_noun if has_counts else f"({tables.sums_noun_of(tables.comparable)})"
    figure = "count" if has_counts else "figure"
    rows: list[FrontRow] = [
        (
            "What is released",
            f"{plan.contents} of {plural(tree.n_areas, 'area')} on "
            f"{plural(len(tree.levels), 'level')} ({', '.join(tree.levels)}), which {kinds} "
            f"by {names or 'nothing but the area'}.",
        ),
        forecast,
        (
            "Margin of error",
            f"±{rounded(top.median_margin, 3)} {unit} for {top.median_text} of all areas, "
            f"and ±{rounded(top.largest_margin, 3)} for {top.largest_text}, "
            f"{top.least_accurate_table}: a noisy {figure} is so near to the true one 95 % of the "
            "time.",
        ),
    ]
    counts = target_counts(plan)
    if counts.targets:
        rows.append(("Targets", describe_targets_met(counts.met, counts.targets)))
    return rows


def _areas(plan: AreaPlan) -> Section:
    sizes = level_sizes(plan.workload.tree)
    return Section(
        "Areas",
        (
            describe_levels(sizes),
            "Which areas there are, and which lie in which, is taken to be public knowledge; the "
            "plan's files hold them all.",
            *filter(None, [plan.workload.tree.empty_text, plan.workload.tree.recodes_text]),
        ),
        (Numbers(sizes, LEVEL_COLUMNS, "The levels, from the top"),),
    )


def _tables(plan: AreaPlan) -> Section:
    frame, rows = plan.accuracy(), []
    for level, of_level in frame.groupby("level", sort=False):
        sizes = of_level["cells"].to_numpy()
        cells = int(of_level["areas"].to_numpy() @ sizes)
        names = of_level["item"].tolist()
        shown = ", ".join(names[:MOST_AREAS])
        if len(names) > MOST_AREAS:
            shown += f" and {len(names) - MOST_AREAS:,} more"
        rows.append((level, len(names), int(np.sum(sizes)), cells, shown))
    columns = ["level", "tables of an area", "cells of an area", "cells in all", "which tables"]
    total = sum(row[3] for row in rows)
    return Section(
        "Tables",
        (
            f"{plural(plan.n_items, 'table')} are released, with {describe_count(total)} cells in "
            "all. All tables of an area agree, and the areas within an area add up to it.",
            f"They are made from {plural(len(plan.closure), 'residual')} of every area: the pieces "
            "that tables share, each measured once where that helps.",
        ),
        (Numbers(pd.DataFrame(rows, columns=pd.Index(columns), dtype=object)),),
    )


def _accuracy(plan: AreaPlan, record_noun: str) -> Section:
    top, frame = area_headline(plan), errors_by_level(plan)
    shown = frame.sort_values("largest", ascending=False, kind="stable").head(MOST_TABLES)
    alike = ""
    if isinstance(plan.loss, WeightedSum):
        alike = " All areas of a level together count as much as those of another level."
    tables = plan.workload.tables
    unit = record_noun
    if tables.has_amounts.all():
        unit = f"({tables.sums_noun_of(tables.comparable)})"
    cells = "All cells of a table of an area have the same standard error."
    if top.cells_differ:
        cells = (
            "The cells of a table do not all have the same standard error: each table of an area "
            "has the root mean square over its cells."
        )
    what = "All tables" if len(shown) == len(frame) else f"{len(shown)} of {len(frame):,} tables"
    return Section(
        "Accuracy",
        (
            f"The plan makes {plan.loss.description} as small as the budget allows.{alike} {cells} "
            "It is that of the privacy noise, and does not depend on the counts.",
            f"{capitalised(top.median_text)} of all areas is within "
            f"±{rounded(top.median_margin, 3)} {unit} of the count in the records, 95 % of "
            f"the time (standard error σ = {rounded(top.median_error, 3)}); {top.largest_text}, "
            f"{top.least_accurate_table}, within ±{rounded(top.largest_margin, 3)} (σ = "
            f"{rounded(top.largest_error, 3)}).",
        ),
        (
            Numbers(
                level_accuracy(plan),
                ACCURACY_COLUMNS,
                "By level",
                "Error σ and its margin are root mean squares over the areas and tables of a "
                "level; the largest σ is that of the least accurate table in one area.",
            ),
            Numbers(
                shown,
                _ERROR_COLUMNS,
                f"{what} by level, the least accurate first",
                "Least, median and largest standard error over the areas of the level.",
            ),
            Attachment(
                "area_tables.csv",
                f"All {len(frame):,} tables by level with standard errors, weight and target",
                csv_of_accuracy(plan),
            ),
        ),
    )


def _fairness(plan: AreaPlan) -> Section:
    """The least accurate areas of each level and why, and what shares by level would give."""
    frame = errors_by_level(plan)
    largest, smallest = frame["largest"].to_numpy(), frame["smallest"].to_numpy()
    ratios = np.divide(largest, smallest, out=np.ones(len(frame)), where=smallest > 0)
    tables = {title(table): table for table in plan.workload.tables.tables}
    sentences: list[str] = []
    # Of each level the table whose areas differ most; of several that do, the first.
    found: dict[str, tuple[float, AreaErrors]] = {}
    rows = zip(frame["level"], frame["table"], frame["areas"], ratios.tolist(), strict=True)
    for level, table, areas, ratio in rows:
        if areas > 1 and (level not in found or ratio > found[level][0] * (1 + _ALIKE)):
            found[level] = ratio, AreaErrors.of(plan, tables[table])
    sentences += [errors.describe(level) for level, (_, errors) in found.items()]
    parts = _least_accurate(found) if found else []
    try:
        beside = beside_shares_by_level(plan)
    except WorkloadError as error:
        sentences.append(str(error))
    except PlanError as error:
        sentences.append(f"The best shares of the budget by level are not known. {error}")
    else:
        sentences.append(describe_shares(beside))
        parts.append(Numbers(*shares_listed(beside), "Beside shares of the budget by level"))
    return Section("Fairness", sentences, parts)


def _least_accurate(found: Mapping[str, tuple[float, AreaErrors]]) -> list[Part]:
    """The least accurate areas of the level whose areas differ most, and what goes with it."""
    level = max(found, key=lambda level: found[level][0])
    errors = found[level][1]
    areas = errors.least_accurate(level, MOST_AREAS)
    columns = {name: column for name, column in AREA_COLUMNS.items() if name in areas}
    parts: list[Part] = [
        Numbers(areas, columns, f"The least accurate areas of {level}, {errors.title}")
    ]
    kind = errors.kind_that_tells_more(level)
    sizes = errors.by_size(level, kind)
    if len(sizes) > 1:
        by = "the number of its parts" if kind == "parts" else "the areas in the same one"
        parts.append(Numbers(sizes, SIZE_COLUMNS, f"Areas of {level} by {by}"))
    return parts


def _forecast(made: AreaForecast) -> Section:
    """How good tables will be by level, in small areas and large ones, and the worst of them."""
    return Section(
        "Forecast",
        (
            made.describe(),
            f"{made.rests_on} No record was looked at for it, and the plan does not depend on it. "
            "What is not public, the sizes of areas among it, was drawn again and again: each "
            "figure is a median, with the range that 90 % of the draws are in.",
            *made.counts.public.contradictions,
        ),
        (
            Numbers(levels_for_reading(made), title="By level"),
            Numbers(sizes_for_reading(made), title=f"Areas by the number of {made.whom} in them"),
            Numbers(
                tables_for_reading(made, MOST_TABLES),
                title=f"Tables by level, those with the fewest {made.whom} in good cells first",
            ),
        ),
    )


def _best_guesses(given: Given) -> list[Section]:
    """What best guesses would gain, by level; nothing where it was not looked at."""
    if given.guesses is None:
        return []
    return [
        Section(
            "Best guesses",
            (
                "Best guesses for areas are made after the run, at no cost: whole numbers that add "
                "up, each area drawn towards the area around it as far as its measurements are "
                "noise. How much they gain depends on how much areas differ, which nobody knows "
                "before: the errors are those of an area of median size and noise if areas differ "
                "by chance alone, and if the shares of their cells also vary by half; records in "
                "good cells are those of areas of all sizes. They hold if the model does; records "
                "are taken to be spread evenly over the leaves.",
            ),
            (Numbers(given.guesses, GUESS_COLUMNS, "Expected errors of best guesses by level"),),
        )
    ]


def _targets(plan: AreaPlan) -> list[Section]:
    """How many targets are met, and what more the objective says; nothing without targets."""
    counts = target_counts(plan)
    if not counts.targets:
        return []
    sentences = [
        "A target is that of a table on a level, and met when the least accurate area of the level "
        f"meets it. {describe_targets_met(counts.met, counts.targets)}"
    ]
    if plan.loss.meets_required_targets:
        sentences.append(describe_required(plan))
    elif isinstance(plan.loss, MaxVariance) and plan.loss.compares_with_targets:
        sentences.append(describe_targets(plan))
    return [Section("Targets", sentences)]
