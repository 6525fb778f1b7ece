"""What a scenario publishes, line by line: tables, areas and own counts of one plan."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rpexplore.analysis.area_forecast import AreaForecast
from rpexplore.analysis.drawn_areas import DrawnAreas
from rpexplore.analysis.drawn_counts import DrawnCounts
from rpexplore.analysis.forecast import Forecast, public_tables_among, public_tables_by
from rpexplore.common.text import describe_count, describe_share, plural, rounded
from rpexplore.domain.expected_counts import ExpectedCounts
from rpexplore.domain.named_areas import AreaTotals
from rpexplore.domain.public_tables import PublicTables
from rpexplore.errors import RpexploreError, WorkloadError
from rpexplore.planning.areas.area_plan import AreaPlan
from rpexplore.planning.part_plan import Z_95
from rpexplore.planning.plan import Plan
from rpexplore.planning.table_plan import TablePlan
from rpexplore.scenarios.area_study import AreaStudy, area_targets
from rpexplore.scenarios.scenario import Scenario
from rpexplore.scenarios.workload_changes import rows_of_line
from rpexplore.scenarios.workload_request import TableLine
from rpexplore.workload.query_definitions import StatedQueries
from rpexplore.workload.table_text import list_titles, title
from rpexplore.workload.targets import target_of

_MOST_NAMES = 8  # of attributes in a line


@dataclass(frozen=True, eq=False)
class PublishedLine:
    """A line of the list of everything that is published.

    kind     of its part of the plan: "tables", "areas" or "counts"
    heading  "All tables up to 2-way", "age × sex", "Areas: municipality", "Own counts"
    about    its attributes, at their levels
    size     "46 tables", "12 counts"
    cells    "2,811 cells"; "" where they are not counted
    weight   "1", or "0.5 to 2" where tables differ; "–" for own counts
    wanted   rule and targets; "–" where there are none
    rows     int64[n]: of its tables, in the scenario's workload
    """

    kind: str
    heading: str
    about: str
    size: str
    cells: str
    weight: str
    wanted: str
    rows: np.ndarray

    def accuracy(
        self, plan: Plan, forecast: Forecast | None, in_areas: AreaForecast | None = None
    ) -> tuple[str, str]:
        """A figure and what it is: ("86 % (82 % to 89 %)", "of people in good cells").

        A forecast if there is one, of tables or of those in areas; else margins of error, or
        targets met.
        """
        part: Any = plan.part(self.kind)
        if part is None:
            return "", ""
        if self.kind == "tables":
            if forecast is not None and (people := forecast.people_in(self.rows)) is not None:
                return people.text(describe_share), f"of {forecast.whom} in good cells"
            margin = Z_95 * float(np.median(part.standard_errors[self.rows]))
            own = self.rows.tolist() if np.any(part.workload.has_amounts[self.rows]) else []
            units = {part.workload.unit_of(row, "") for row in own}
            unit = units.pop() if len(units) == 1 else ""
            return f"±{rounded(margin, 3)} {unit}".rstrip(), "median margin, 95 %"
        if self.kind == "areas":
            if in_areas is not None:
                return in_areas.people.text(describe_share), f"of {in_areas.whom} in good cells"
            of_levels = part.accuracy()["margin_95"].to_numpy()
            low, high = (rounded(float(end), 3) for end in (of_levels.min(), of_levels.max()))
            return (f"±{low}" if low == high else f"±{low} to ±{high}"), "margins, 95 %"
        return f"{int(np.sum(part.met)):,} of {len(part.met):,}", "targets met"


def published_lines(scenario: Scenario) -> list[PublishedLine]:
    """The lines of all that is published, in the order of the plan's parts.

    Raises `WorkloadError` where the tables cannot be asked for.
    """
    lines: list[PublishedLine] = []
    if "tables" in scenario.kinds and len(scenario.domain):
        lines += [_of_tables(scenario, line) for line in scenario.request.lines]
    if scenario.areas is not None:
        lines.append(_of_areas(scenario.areas))
    if scenario.query_list is not None:
        lines.append(_of_counts(scenario.query_list))
    return lines


def forecast_of_scenario(planned: TablePlan, drawn: DrawnCounts, scenario: Scenario) -> Forecast:
    """The forecast of a scenario's tables, judged by its limit and design."""
    design = scenario.design and scenario.design.among(planned.workload.tables)
    return Forecast(
        planned, limit=scenario.cv_limit, drawn=drawn, survey=design, noun=scenario.counted
    )


def public_of_areas(scenario: Scenario, study: AreaStudy) -> PublicTables | None:
    """What is public of the attributes of areas; None if nothing is, or none of it would serve.

    It serves forecasts, and tables of sums and weighted counts have none.
    A number of records that was typed for the areas, else the scenario's public tables by some of
    these attributes, or its number of records.
    """
    if all(bool(tables.has_amounts.all()) for tables in study.tables.values()):
        return None
    if study.expected is not None:
        return public_tables_by(study.domain, study.expected)
    try:
        public = scenario.public_tables
        known = None if public is None else public_tables_among(study.domain, public)
    except WorkloadError:  # they have other values, and may be about other records
        return None
    if public is None or known is None or (public.tables and not known.tables):
        return None
    return known


def expected_of_plan(
    planned: Plan, scenario: Scenario, totals: AreaTotals | None
) -> ExpectedCounts | None:
    """The expected counts that a report on a scenario's plan rests on.

    Those of its areas where the scenario has none, or none that fit them, or plans no tables; else
    the number of records by publicly known totals of areas.
    """
    expected, areas, study = scenario.expected, planned.part("areas"), scenario.areas
    if areas is not None and (expected is None or planned.part("tables") is None):
        try:
            expected = None if expected is None else expected.fitted(areas.domain)
        except RpexploreError:
            expected = None
        expected = expected or (None if study is None else study.expected)
    if expected is None and totals is not None:
        return ExpectedCounts.of_total(totals.number)
    return expected


def area_forecast_of_scenario(
    planned: AreaPlan, drawn: DrawnAreas, scenario: Scenario
) -> AreaForecast:
    """The forecast of a scenario's tables in areas, judged by its limit and design."""
    design = scenario.design and scenario.design.among(planned.workload.tables.tables)
    return AreaForecast(
        planned, limit=scenario.cv_limit, drawn=drawn, survey=design, noun=scenario.counted
    )


def _of_tables(scenario: Scenario, line: TableLine) -> PublishedLine:
    workload, rows = scenario.workload, rows_of_line(scenario, line)
    domain = scenario.domain
    # Amounts are in tables that name them alone.
    unnamed = {domain.names[index] for index in domain.amounts} - set(line.containing)
    names = line.only or tuple(name for name in domain.names if name not in unnamed)
    heading = line.heading
    about = ", ".join(names[:_MOST_NAMES])
    if len(names) > _MOST_NAMES:
        about += f" and {len(names) - _MOST_NAMES} more"
    if line.containing:
        about += f"; each with {' and '.join(line.containing)}"
    if line.most_cells is not None and line.kind in ("up_to", "of_order"):
        about += f"; at most {plural(line.most_cells, 'cell')}"
    if line.kind == "listed":
        about = list_titles(line.listed, 3) if len(line.listed) > 1 else ""
        if len(line.listed) == 1:
            heading, about = _one_table(scenario, line.listed[0])
    targets, which = scenario.request.targets(workload)
    return PublishedLine(
        kind="tables",
        heading=heading,
        about=about,
        size=plural(len(rows), "table"),
        cells=f"{describe_count(int(sum(workload.exact_cells[rows])))} cells",
        weight=_range(workload.weights[rows]),
        wanted=_wanted(
            [str(targets[index]) for index in which[rows].tolist() if index >= 0],
            len(rows),
            [
                rule.text
                for rule in scenario.rules_in_use
                if np.isin(rule.places(workload), rows).any()
            ],
        ),
        rows=rows,
    )


def _one_table(scenario: Scenario, table: tuple[str, ...]) -> tuple[str, str]:
    """Heading and attributes of a single table; one with amounts has their sums."""
    amounts = [scenario.domain.names[index] for index in scenario.domain.amounts]
    summed = [name for name in table if name in amounts]
    if not summed:
        return title(table), ""
    others = tuple(name for name in table if name not in summed)
    return f"Sum and mean of {summed[0]}", f"by {title(others)}" if others else "of all records"


def _of_areas(study: AreaStudy) -> PublishedLine:
    asked = {level: study.tables[level] for level in study.levels if level in study.tables}
    tables = {table for of_level in asked.values() for table in of_level.tables}
    names = [name for name in study.domain.names if any(name in table for table in tables)]
    targets = [target for of_level in asked.values() for target in area_targets(of_level)]
    texts = [str(target_of(target)) for target in targets if target is not None]
    return PublishedLine(
        kind="areas",
        heading=f"Areas: {', '.join(asked)}",
        about=", ".join(names) or "totals",
        size=plural(study.n_tables, "table"),
        cells=f"in {plural(study.areas.n_areas, 'area')}",
        weight=_range(np.concatenate([of_level.weights for of_level in asked.values()])),
        wanted=_wanted(texts, len(targets), []),
        rows=np.zeros(0, dtype=np.int64),
    )


def _of_counts(stated: StatedQueries) -> PublishedLine:
    names = stated.queries.names
    about = " · ".join(names[:3]) + (f" · and {len(names) - 3:,} more" if len(names) > 3 else "")
    return PublishedLine(
        kind="counts",
        heading="Own counts",
        about=about,
        size=plural(len(stated), "count"),
        cells=stated.queries.cells_text,
        weight="–",
        wanted=_wanted([target.text for target in stated.targets], len(stated), []),
        rows=np.zeros(0, dtype=np.int64),
    )


def _range(values: np.ndarray) -> str:
    low, high = (rounded(float(value), 3) for value in (np.min(values), np.max(values)))
    return low if low == high else f"{low} to {high}"


def _wanted(targets: Sequence[str], of: int, rules: Sequence[str]) -> str:
    """The one target of all `of` tables, or how many have one; and the rules."""
    texts = [f"targets for {len(targets):,} of {of:,}"] if targets else []
    if len(targets) == of and len(set(targets)) == 1:
        texts = [targets[0]]
    return "; ".join([*texts, *rules]) or "–"
