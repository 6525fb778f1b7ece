"""Area forecast: how many people and cells of tables in areas will be good enough, level by level.

As of tables (`analysis.forecast`): a cell is good if the standard error of its noise is at most a
share of its count. Counts are those of populations spread over the areas (`drawn_areas`); every
figure is their median with the range from the 5th to the 95th per cent.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from rpexplore.analysis.drawn_areas import CountsInAreas, DrawnAreas
from rpexplore.analysis.forecast import (
    GOOD_SHARE,
    checked_share,
    public_tables_among,
    public_tables_of,
)
from rpexplore.analysis.ranges import Range, range_ends, range_texts
from rpexplore.common.processes import Progress, no_progress
from rpexplore.common.text import describe_share, plural, rounded
from rpexplore.domain.domain import AttributeSet
from rpexplore.domain.expected_counts import CV_LIMIT, ExpectedCounts, checked_cv_limit
from rpexplore.domain.public_tables import PublicTable, PublicTables
from rpexplore.domain.survey import SurveyDesign, least_good_counts
from rpexplore.errors import PlanError
from rpexplore.planning.areas.area_plan import AreaPlan
from rpexplore.planning.areas.tree_passes import stated_errors
from rpexplore.planning.plan import Plan
from rpexplore.workload.table_text import Table, titles

if TYPE_CHECKING:
    from rpexplore.analysis.proposals import TableSuggestions

_ROUNDING = 1e-6  # of shares of counts in float32
_SIZES = (0, 100, 1_000, 10_000, 100_000, np.inf)  # people of an area


@dataclass(frozen=True, eq=False, repr=False)
class AreaForecast:
    """How good the tables in areas of a plan will be, before any record is read.

    Args:
        plan: Its tables in areas are looked at.
        public: Public tables of the other attributes, of all areas together; as of `Forecast`.
        expected: How many records there will be in all; as of `Forecast`, and where totals of areas
            are given their sum if nothing else says so.
        limit: The largest coefficient of variation of a good cell: 0.2 is 20 %.
        share: Share of a table's people in an area who are to be in good cells, so that the table
            meets the rule there.
        totals: Publicly known totals of areas, by their numbers; of areas that do not overlap, and
            together are the whole.
        survey: The design of the survey that the records are of, if its own sampling error counts
            beside the noise.
        on_progress: Called with what is being done and the share that is done.
        drawn: Counts that were drawn for the same tables and areas already.
        noun: The word for those whom the tables count, in the plural; by default the plan's.

    Raises:
        WorkloadError: If what is public does not fit codebook or areas, or nothing says how many
            records there will be.
        PlanError: If the plan has no tables in areas.

    Example:
        >>> import rpexplore as rp
        >>> tree = rp.AreaTree.from_columns({"region": ["N", "N", "S"], "town": ["1", "2", "1"]})
        >>> sexes = rp.Workload.all_up_to(rp.Domain.from_sizes({"sex": 2}), 1)
        >>> asked = rp.AreaWorkload.of_levels(tree, dict.fromkeys(tree.levels, sexes))
        >>> plan = rp.plan(asked, loss=rp.SumOfVariances(), budget=rp.Budget(rho="0.5"))
        >>> forecast = rp.AreaForecast(plan, expected=500)
        >>> forecast.by_level()["level"].tolist()
        ['all', 'region', 'town']
    """

    plan: Plan | AreaPlan
    public: Sequence[str | Path | PublicTable | ExpectedCounts] = ()
    expected: float | None = None
    limit: float = CV_LIMIT
    share: float = GOOD_SHARE
    totals: Mapping[int, float] | None = None
    survey: SurveyDesign | None = None
    on_progress: Progress = no_progress
    drawn: DrawnAreas | None = None
    noun: str | None = None

    def __post_init__(self) -> None:
        part = self.areas_of_plan
        checked_share(self.share)
        checked_cv_limit(self.limit)
        if self.survey is not None:
            self.survey.refuse_unknown(part.workload.tables.tables)
        _ = self.counts  # so that what is wrong is said here

    @cached_property
    def areas_of_plan(self) -> AreaPlan:
        """The part of the plan that is looked at; raises `PlanError` if it has none."""
        part = Plan.of(self.plan).part("areas")
        if part is None:
            raise PlanError(
                "A forecast of areas is made of tables in areas, and this plan has none; "
                "rp.Forecast is for tables."
            )
        return part

    @property
    def whom(self) -> str:
        """The word for those whom the tables count: "people", "households"."""
        return self.noun or self.plan.budget.counted

    @cached_property
    def counts(self) -> DrawnAreas:
        """What tables count in populations, whatever the noise."""
        if self.drawn is not None:
            return self.drawn
        part, expected = self.areas_of_plan, self.expected
        if expected is None and not self.public and self.totals is not None:
            expected = float(sum(self.totals.values()))
        public = public_tables_of(part.domain, self.public, expected)
        return DrawnAreas.of(part.workload, public, self.totals, self.on_progress)

    # ---- the figures

    @cached_property
    def people(self) -> Range:
        """Share of people in good cells, the mean over the tables of each level."""
        return Range.of(_mean_over_tables(self.judged_tables))

    @cached_property
    def cells(self) -> Range:
        """Share of the cells of all tables in all areas that are good."""
        return Range.of(_share_of_cells(self.judged_tables))

    @cached_property
    def meeting(self) -> Range:
        """How many of the tables in all areas have `share` of the area's people in good cells."""
        return Range.of(np.sum([self._meeting(level) for level in self._levels], axis=0))

    def by_level(self) -> pd.DataFrame:
        """One row a level, from the top.

        Columns: level, areas (asked for tables), tables (in all these), people_low, people_median,
        people_high (mean over the level's tables), cells_…, meeting_… (tables in all areas), size_…
        (people of its median area).
        """
        rows = []
        for level in self._levels:
            tables = self._of_level(level)
            kinds = self.areas_of_plan.workload.kinds[self._tree.level_slice(level)]
            rows.append(
                {
                    "level": self._tree.levels[level],
                    "areas": int(np.sum(kinds >= 0)),
                    "tables": self._n_tables(level),
                    **range_ends("people", _mean_over_tables(tables)),
                    **range_ends("cells", _share_of_cells(tables)),
                    **range_ends("meeting", self._meeting(level)),
                    **range_ends("size", self._median_sizes(level)),
                }
            )
        return pd.DataFrame(rows)

    def tables(self) -> pd.DataFrame:
        """One row a level and table, that with fewest people in good cells first.

        Columns: level, table, areas, cells (of one area), people_low, people_median, people_high,
        cells_…, meeting_… (share of the areas).
        """
        workload = self.areas_of_plan.workload.tables
        names = titles(workload, np.arange(len(workload)))
        rows = [
            {
                "level": self._tree.levels[one.level],
                "table": names[one.table],
                "areas": round(one.n_areas),
                "cells": one.n_cells,
                **range_ends("people", _where_anybody_lives(one.people)),
                **range_ends("cells", one.good / (one.n_areas * one.n_cells)),
                **range_ends("meeting", one.meeting / one.n_areas),
            }
            for one in self.judged_tables
        ]
        frame = pd.DataFrame(rows)
        return frame.sort_values(["people_median", "people_low"], kind="stable", ignore_index=True)

    @cached_property
    def missing(self) -> list[tuple[str, Table]]:
        """Level and attributes of the tables that miss the rule in the median, the worst first."""
        tables = self.areas_of_plan.workload.tables.tables
        medians = sorted(
            (float(np.median(_where_anybody_lives(one.people))), one.level, one.table)
            for one in self.judged_tables
        )
        return [
            (self._tree.levels[level], tables[table])
            for median, level, table in medians
            if median < self.share
        ]

    def by_size(self) -> pd.DataFrame:
        """How good the cells of small areas are, and of large ones: who loses most.

        One row a level and class of size that half of the populations have. Columns: level, size
        ("100 to 999 people"), areas_low, areas_median, areas_high (so many are drawn),
        people_low, people_median, people_high (share of them in good cells, mean over tables).
        """
        rows = []
        for level in self._levels:
            tables = self._of_level(level)
            for low, high in pairwise(_SIZES):
                areas, people = self._in_class(tables, low, high)
                known = people[~np.isnan(people)]
                if 2 * len(known) < len(people):
                    continue
                size = (
                    f"{low:,} to {high - 1:,} {self.whom}" if high < np.inf else f"{low:,} or more"
                )
                rows.append(
                    {
                        "level": self._tree.levels[level],
                        "size": size if low else f"under {high:,} {self.whom}",
                        **range_ends("areas", areas),
                        **range_ends("people", known),
                    }
                )
        return pd.DataFrame(rows)

    def suggest(
        self,
        tables: Sequence[tuple[str, AttributeSet]] = (),
        *,
        most: int = 5,
        on_progress: Progress = no_progress,
    ) -> "list[TableSuggestions]":
        """What would make tables in areas that miss the rule good enough, best proposals first.

        Args:
            tables: The tables to look at, each a level of areas and its attributes; those with
                fewest people in good cells if none is named.
            most: How many of these at most.
            on_progress: Called with what is being done and the share that is done.

        Returns:
            Of each table on a level its `proposals`, planned anew and forecast, as of
            `Forecast.suggest`: coarser areas or values, an attribute left out, weight, budget.

        Raises:
            WorkloadError: If a named table is not there, or cannot be forecast.

        Example:
            >>> import rpexplore as rp
            >>> tree = rp.AreaTree.from_columns({"region": ["N", "S"], "town": ["1", "2"]})
            >>> ages = rp.Workload.of(rp.Domain.from_sizes({"age": 100}), ["age"])
            >>> asked = rp.AreaWorkload.of_levels(tree, {"town": ages})
            >>> plan = rp.plan(asked, loss=rp.SumOfVariances(), budget=rp.Budget(rho="0.01"))
            >>> (found,) = rp.AreaForecast(plan, expected=10_000).suggest()
            >>> found.title
            'town: age'
        """
        from rpexplore.analysis.area_suggestions import area_suggestions  # which needs this module

        return area_suggestions(self, tables, most, on_progress)

    def to_json(self) -> dict[str, Any]:
        """The figures as plain values: people, cells, tables, by_level, and what they rest on."""
        by_level = {
            row["level"]: {
                name: {end: row[f"{name}_{end}"] for end in ("low", "median", "high")}
                for name in ("people", "cells", "meeting", "size")
            }
            | {"areas": row["areas"], "tables": row["tables"]}
            for row in self.by_level().to_dict("records")
        }
        return {
            "limit": self.limit,
            "share": self.share,
            "people": self.people._asdict(),
            "cells": self.cells._asdict(),
            "by_level": by_level,
            "tables": {"meeting": self.meeting._asdict(), "of": self.n_tables},
            "rests_on": self.counts.text,
            "sample": self.counts.sample_text,
            "contradictions": list(self.counts.public.contradictions),
            **({} if self.survey is None else {"survey": self.survey.to_json()}),
        }

    @property
    def n_tables(self) -> int:
        """How many tables there are in all areas, without those that are left out."""
        return sum(self._n_tables(level) for level in self._levels)

    @property
    def rests_on(self) -> str:
        """What is public, and what is looked at, in sentences."""
        said = [f"It rests on {self.counts.text}.", self.counts.sample_text]
        if self.survey is not None:
            said.append(f"Total error: noise and sampling ({self.survey.text}).")
        return " ".join(filter(None, said))

    def describe(self) -> str:
        """The headline in a sentence."""
        meeting = self.meeting.text(lambda value: rounded(value, 3))
        return (
            f"{self.people.text(describe_share)} of {self.whom} are in good cells, with a "
            f"coefficient of variation of at most {100 * self.limit:g} % (mean over the tables of "
            f"each level); {meeting} of {plural(self.n_tables, 'table')} of areas have at least "
            f"{describe_share(self.share)} of their {self.whom} in good cells."
        )

    def __str__(self) -> str:
        """The forecast in a few lines, for a terminal."""
        first = f"{self.whom.capitalize()} in good cells"
        width = len(first)
        meeting = self.meeting.text(lambda value: rounded(value, 3))
        lines = [
            f"Forecast for {plural(self.n_tables, 'table')} of areas from {self.counts.text}",
            f"  {first}  {self.people.text(describe_share)}  (CV of at most "
            f"{100 * self.limit:g} %; mean over the tables of each level)",
            f"  {'Good cells':{width}}  {self.cells.text(describe_share)}",
            f"  {'Tables that meet':{width}}  {meeting} of {self.n_tables:,}  (at least "
            f"{describe_share(self.share)} of an area's {self.whom} in good cells)",
        ]
        lines += [] if self.survey is None else [f"  {self.survey.text}"]
        lines += [f"  {said}" for said in self.counts.public.contradictions]
        lines += [f"  {self.counts.sample_text}"] if self.counts.sample_text else []
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<AreaForecast: people in good cells {self.people.text(describe_share)}>"

    # ---- inside

    @property
    def _tree(self) -> Any:
        return self.areas_of_plan.workload.tree

    @cached_property
    def judged_tables(self) -> "list[JudgedTable]":
        return [self._judged(one) for one in self.counts.counts]

    @cached_property
    def _levels(self) -> list[int]:
        return sorted({one.level for one in self.judged_tables})

    def _of_level(self, level: int) -> "list[JudgedTable]":
        return [one for one in self.judged_tables if one.level == level]

    def _n_tables(self, level: int) -> int:
        """Of all areas of a level, as they are asked for; where some are left out their share."""
        workload, drawn = self.areas_of_plan.workload, self.counts
        kinds = workload.kinds[self._tree.level_slice(level)]
        n_tables = np.array([0, *(len(rows) for rows in workload.rows)])
        asked = drawn.n_asked[level]
        return round(int(np.sum(n_tables[kinds + 1])) * int(drawn.n_tables[level]) / int(asked))

    def _meeting(self, level: int) -> np.ndarray:
        """How many tables of areas of a level meet the rule, float64[n_populations]."""
        tables = self._of_level(level)
        n_areas = sum(one.n_areas for one in tables)
        meeting = np.sum([one.meeting for one in tables], axis=0)
        return meeting * self._n_tables(level) / n_areas

    def _median_sizes(self, level: int) -> np.ndarray:
        """How many people the median area has, float64[n_populations]."""
        rows = self._of_level(level)[0].rows
        sizes, weights = self.counts.sizes[:, rows], self.counts.stands_for[rows]
        order = np.argsort(sizes, axis=1)
        ends = np.cumsum(weights[order], axis=1)
        middle = np.argmax(ends >= ends[:, -1:] / 2, axis=1)
        return np.take_along_axis(sizes, np.take_along_axis(order, middle[:, None], 1), 1)[:, 0]

    def _in_class(
        self, tables: "list[JudgedTable]", low: float, high: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Areas of a size in each population, and the share of their people in good cells."""
        n_areas, shares = np.zeros(self.counts.sizes.shape[0]), []
        for number, one in enumerate(tables):
            sizes = np.rint(self.counts.sizes[:, one.rows])
            weights = np.where((sizes >= low) & (sizes < high), self.counts.stands_for[one.rows], 0)
            if number == 0:
                n_areas = weights.sum(axis=1)
            people = (weights * sizes).sum(axis=1)
            good = (weights * sizes * np.nan_to_num(one.by_area)).sum(axis=1)
            shares.append(np.divide(good, people, out=np.full(len(good), np.nan), where=people > 0))
        return n_areas, np.mean(shares, axis=0)

    def _judged(self, one: CountsInAreas) -> "JudgedTable":
        effect = None
        if self.survey is not None:
            names = self.areas_of_plan.workload.tables.tables[one.table]
            effect = float(self.survey.factors([names])[0])
        return judged(
            self.areas_of_plan, self.counts, one, one.table, self.limit, self.share, effect=effect
        )


@dataclass(frozen=True, eq=False)
class JudgedTable:
    """A table on a level, in every population.

    n_cells  of one area
    n_areas  that those looked at stand for
    errors   standard errors of its cells in each that is looked at, float64[n]
    by_area  share of people in good cells in each that is looked at, float64[n_populations, n]; NaN
             where nobody lives
    people   the same in all areas, float64[n_populations]
    good, meeting
             cells, and areas, of all: float64[n_populations]
    """

    level: int
    table: int
    rows: np.ndarray
    n_cells: int
    n_areas: float
    errors: np.ndarray
    by_area: np.ndarray
    people: np.ndarray
    good: np.ndarray
    meeting: np.ndarray


def judged(
    plan: AreaPlan,
    drawn: DrawnAreas,
    one: CountsInAreas,
    table: int,
    limit: float,
    share: float,
    *,
    effect: float | None = None,
    times: float = 1.0,
) -> JudgedTable:
    """How good a table of a plan is on a level, by counts that were drawn of it.

    table: its row in the plan
    limit, share: as of `AreaForecast`
    effect: d (1 − f) of the table, if the survey's own error counts beside the noise
    times: by which its errors are multiplied
    """
    groups = plan.groups.of_area[drawn.areas[one.rows]]
    variances = plan.residual_variances[:, groups]
    errors = times * stated_errors(plan.closure.variance_matrix[[table]] @ variances).reshape(-1)
    least = errors / limit
    if effect is not None:
        least = least_good_counts(errors, limit, drawn.public.n_records, np.array([effect]))
    counts, n_cells = one.counts, int(drawn.workload.tables.exact_cells[one.table])
    good = counts >= least.astype(np.float32)[:, None]
    sizes = drawn.sizes[:, one.rows]
    if one.people is None:
        there = counts.sum(axis=2, dtype=float)
        held = np.einsum("abc,abc->ab", counts, good, dtype=float)
        cells = np.count_nonzero(good, axis=2).astype(float)
        sizes = there
    else:
        there = one.people.sum(axis=2, dtype=float)
        held = np.einsum("abc,abc->ab", one.people, good, dtype=float)
        # Of a cell of x people one in x stands for it.
        of_cells = np.einsum("abc,abc->ab", one.people / counts, good, dtype=float)
        cells = np.minimum(sizes * of_cells / np.maximum(there, 1e-30), n_cells)
    by_area = np.divide(held, there, out=np.full(held.shape, np.nan), where=there > 0)
    weights = drawn.stands_for[one.rows]
    everybody = (sizes * weights).sum(axis=1)
    people = (np.nan_to_num(by_area) * sizes * weights).sum(axis=1)
    return JudgedTable(
        level=one.level,
        table=one.table,
        rows=one.rows,
        n_cells=n_cells,
        n_areas=float(np.sum(weights)),
        errors=errors,
        by_area=by_area,
        people=np.divide(people, everybody, out=np.full(len(people), np.nan), where=everybody > 0),
        good=cells @ weights,
        meeting=(by_area >= share - _ROUNDING) @ weights,
    )


def area_forecast_by(
    plan: AreaPlan,
    public: PublicTables,
    limit: float = CV_LIMIT,
    totals: Mapping[int, float] | None = None,
    survey: SurveyDesign | None = None,
    share: float = GOOD_SHARE,
    noun: str | None = None,
) -> AreaForecast:
    """The forecast by public tables of a codebook that may have other attributes as well.

    survey: effects of tables that the plan does not have are left out
    """
    own = public_tables_among(plan.domain, public)
    design = survey and survey.among(plan.workload.tables.tables)
    drawn = DrawnAreas.of(plan.workload, own, totals)
    return AreaForecast(plan, limit=limit, share=share, survey=design, drawn=drawn, noun=noun)


def levels_for_reading(made: AreaForecast) -> pd.DataFrame:
    """`by_level`, each figure with its range, as text."""
    frame, whom = made.by_level(), made.whom
    return pd.DataFrame(
        {
            "level": frame["level"],
            "areas": [f"{n:,}" for n in frame["areas"]],
            f"{whom} of the median area": range_texts(frame, "size", _count),
            f"{whom} in good cells": range_texts(frame, "people", describe_share),
            "good cells": range_texts(frame, "cells", describe_share),
            "tables that meet": range_texts(frame, "meeting", _count),
            "of tables": [f"{n:,}" for n in frame["tables"]],
        }
    )


def tables_for_reading(made: AreaForecast, most: int) -> pd.DataFrame:
    """The first rows of `tables`, each figure with its range, as text."""
    frame = made.tables().head(most)
    return pd.DataFrame(
        {
            "level": frame["level"],
            "table": frame["table"],
            f"{made.whom} in good cells": range_texts(frame, "people", describe_share),
            "good cells": range_texts(frame, "cells", describe_share),
            "areas where it meets": range_texts(frame, "meeting", describe_share),
        }
    )


def sizes_for_reading(made: AreaForecast) -> pd.DataFrame:
    """`by_size`, each figure with its range, as text."""
    frame = made.by_size()
    return pd.DataFrame(
        {
            "level": frame["level"],
            "areas of": frame["size"],
            "areas": range_texts(frame, "areas", _count),
            f"{made.whom} in good cells": range_texts(frame, "people", describe_share),
        }
    )


def _count(value: float) -> str:
    return rounded(round(value), 3)


def _mean_over_tables(tables: Sequence[JudgedTable]) -> np.ndarray:
    """Share of people in good cells in the populations in which anybody lives there."""
    people = np.array([one.people for one in tables])
    somewhere = ~np.all(np.isnan(people), axis=0)
    return _where_anybody_lives(np.nanmean(people[:, somewhere], axis=0))


def _where_anybody_lives(people: np.ndarray) -> np.ndarray:
    known = people[~np.isnan(people)]
    return known if len(known) else np.zeros(1)


def _share_of_cells(tables: Sequence[JudgedTable]) -> np.ndarray:
    n_cells = sum(one.n_areas * one.n_cells for one in tables)
    return np.sum([one.good for one in tables], axis=0) / n_cells
