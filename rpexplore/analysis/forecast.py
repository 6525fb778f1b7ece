"""Forecast: how many people, cells and tables will be good enough, with its range.

A cell is good if the standard error of its noise is at most a share of its count, the limit of the
coefficient of variation; with the design of a survey, if its total error is. Counts are those of
populations that agree with what is public (`populations`); every figure is their median with the
range from the 5th to the 95th per cent.
"""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from rpexplore.analysis.drawn_counts import TOO_LARGE, DrawnCounts
from rpexplore.analysis.fairness import all_titles
from rpexplore.analysis.measures import Accuracy, group_name, order_groups
from rpexplore.analysis.ranges import (
    RANGE,
    Range,
    at_certainty,
    range_ends,
    ranges,
    weighted_medians,
)
from rpexplore.common.files import file_bytes
from rpexplore.common.processes import Progress, no_progress
from rpexplore.common.text import describe_share, plural
from rpexplore.domain.domain import AttributeSet, Domain
from rpexplore.domain.expected_counts import CV_LIMIT, ExpectedCounts, checked_cv_limit, title_of
from rpexplore.domain.expected_counts_file import public_table_from_csv
from rpexplore.domain.public_tables import PublicTable, PublicTables
from rpexplore.domain.survey import SurveyDesign, added_by_noise, describe_added, least_good_counts
from rpexplore.errors import PlanError, WorkloadError
from rpexplore.planning.plan import Plan
from rpexplore.planning.stated_forecast import MOST_TABLES, GroupForecast, StatedForecast
from rpexplore.planning.table_plan import TablePlan
from rpexplore.workload.rules import CELLS, CERTAINTIES, MEDIAN, Rule, rules_of
from rpexplore.workload.table_text import titles

if TYPE_CHECKING:
    from rpexplore.analysis.shared_suggestions import SharedSuggestions
    from rpexplore.analysis.suggestions import TableSuggestions

GOOD_SHARE = 0.9
"""Of the people of a table who are to be in good cells, so that the table meets the rule."""

_ROUNDING = 1e-9  # of shares


@dataclass(frozen=True, eq=False, repr=False)
class Forecast:
    """How good the tables of a plan will be, before any record is read.

    Args:
        plan: Its tables are looked at; those of areas and own counts are not.
        public: Public tables: CSV files with some attributes as columns and `count`, `PublicTable`s
            or `ExpectedCounts`. Of two that contradict each other the newer is followed, with one
            without a date as the newest.
        expected: How many records there will be; by default as many as the newest public table
            counts.
        limit: The largest coefficient of variation of a good cell: 0.2 is 20 %.
        share: Share of a table's people who are to be in good cells, so that it meets the rule.
        on_progress: Called with what is being done and the share that is done.
        drawn: Counts that were drawn for the same tables already.
        require: Rules by which tables are judged, instead of limit and share; by default those of
            the plan, if it has any.
        survey: The design of the survey that the records are of, if its own sampling error counts
            beside the noise: limit and rule are then of the total error.
        accuracy: Standard errors of another plan for the same tables, in place of the plan's.
        noun: The word for those whom the tables count, in the plural; by default the plan's.

    Raises:
        WorkloadError: If public tables do not fit the codebook or each other's totals, or nothing
            says how many records there will be.
        PlanError: If the plan has no tables.

    Example:
        >>> import rpexplore as rp
        >>> tables = rp.Workload.all_up_to(rp.Domain.from_sizes({"age": 100, "sex": 2}), 2)
        >>> plan = rp.plan(tables, loss=rp.SumOfVariances(), budget=rp.Budget(rho="0.5"))
        >>> forecast = rp.Forecast(plan, expected=10_000)
        >>> forecast.people.low <= forecast.people.median <= forecast.people.high
        True
    """

    plan: Plan | TablePlan
    public: Sequence[str | Path | PublicTable | ExpectedCounts] = ()
    expected: float | None = None
    limit: float = CV_LIMIT
    share: float = GOOD_SHARE
    on_progress: Progress = no_progress
    drawn: DrawnCounts | None = None
    require: Sequence[Rule | str] | None = None
    survey: SurveyDesign | None = None
    accuracy: Accuracy | None = None
    noun: str | None = None

    def __post_init__(self) -> None:
        part = self.tables_of_plan
        checked_share(self.share)
        checked_cv_limit(self.limit)
        _ = self.rules
        if self.survey is not None:
            self.survey.refuse_unknown(part.workload.tables)
        _ = self._drawn  # so that what is wrong is said here

    @cached_property
    def tables_of_plan(self) -> TablePlan:
        """The part of the plan that is looked at; raises `PlanError` if it has none."""
        part = Plan.of(self.plan).part("tables")
        if part is None:
            raise PlanError(
                "A forecast is made of tables, and this plan has none; rp.AreaForecast is for "
                "tables in areas, and “rpexplore forecast” for all parts of a plan."
            )
        return part

    @cached_property
    def public_tables(self) -> PublicTables:
        """What is public, in the order of the codebook."""
        if self.drawn is not None:
            return self.drawn.public
        return public_tables_of(self.tables_of_plan.domain, self.public, self.expected)

    @cached_property
    def rules(self) -> tuple[Rule, ...]:
        """The rules by which tables are judged; (): by `limit` and `share`."""
        part = self.tables_of_plan
        return rules_of(part.workload, part.rules if self.require is None else self.require)

    @property
    def criterion(self) -> str:
        """When a table is good enough, for a sentence."""
        if not self.rules:
            return f"at least {describe_share(self.share)} of their {self.whom} in good cells"
        return "; ".join(rule.text.replace("people", self.whom) for rule in self.rules)

    @property
    def whom(self) -> str:
        """The word for those whom the tables count: "people", "households"."""
        return self.noun or self.plan.budget.counted

    def under(self, accuracy: Accuracy) -> "Forecast":
        """The same counts under another plan for the same tables."""
        return replace(self, accuracy=accuracy, drawn=self._drawn)

    # ---- the figures

    @cached_property
    def people(self) -> Range:
        """Share of people in good cells, the mean over tables."""
        return Range.of(self._people[self._held].mean(axis=0))

    def people_in(self, rows: np.ndarray) -> Range | None:
        """`people` over some of the tables, by their rows; None if none of them is forecast."""
        held = rows[self._held[rows]]
        return Range.of(self._people[held].mean(axis=0)) if len(held) else None

    @cached_property
    def cells(self) -> Range:
        """Share of the cells of all tables that are good."""
        return Range.of(self._share_of_cells(self._held))

    @cached_property
    def meeting(self) -> Range:
        """How many tables meet the rules; without any, have `share` of people in good cells."""
        return Range.of(self._meet[self.judged].sum(axis=0).astype(float))

    def describe_order(self, order: int) -> str:
        """How many tables of a number of attributes meet the rules: "72 (39 to 102) of 120".

        "" where none of them is judged.
        """
        chosen = self.judged & (self._accuracy.workload.orders == order)
        if not np.any(chosen):
            return ""
        meeting = Range.of(self._meet[chosen].sum(axis=0).astype(float))
        return f"{meeting.text(lambda value: f'{round(value):,}')} of {int(chosen.sum()):,}"

    @cached_property
    def judged(self) -> np.ndarray:
        """Which tables are judged: those that the rules are about, bool[n_tables]."""
        if not self.rules:
            return self._held
        judged = np.zeros(len(self._held), dtype=bool)
        for rule in self.rules:
            judged[rule.places(self._accuracy.workload)] = True
        return judged & self._held

    def n_meeting(self, certainty: str = MEDIAN) -> int:
        """How many tables meet the rules, each by itself, in most or (surely) 95 % of the draws."""
        return int(np.sum(at_certainty(self._meet[self.judged], certainty)))

    @cached_property
    def noise_adds(self) -> Range | None:
        """By how much noise raises the sampling error of the median person's cell: 0.03 is 3 %.

        The median over tables whose cells are equally accurate; None without a design, or where
        nothing has a sampling error.
        """
        if self.survey is None:
            return None
        added = []
        for counts, places in self._drawn.groups:
            if not self._drawn.is_even[places[0]]:
                continue
            errors = self._accuracy.standard_errors[places][:, None, None]
            factors = self._factors[places][:, None, None]
            cells = counts.counts.astype(float)
            of_cells = added_by_noise(errors, cells, self.public_tables.n_records, factors)
            people = cells if counts.of_cells else np.ones_like(cells)
            added.append(weighted_medians(of_cells, people))
        if not added:
            return None
        by_table = np.concatenate(added)
        sampled = by_table[np.all(np.isfinite(by_table), axis=1)]
        return Range.of(np.median(sampled, axis=0)) if len(sampled) else None

    def by_order(self) -> pd.DataFrame:
        """One row for each number of attributes.

        Columns: attributes ("2 attributes"), tables, people_low, people_median, people_high,
        cells_low, cells_median, cells_high, meeting_low, meeting_median, meeting_high (tables).
        """
        workload = self._accuracy.workload
        groups, rows = order_groups(workload), []
        for group in np.unique(groups[self._held]).tolist():
            chosen = self._held & (groups == group)
            rows.append(
                {"attributes": group_name(group, workload), "tables": int(np.sum(chosen))}
                | range_ends("people", self._people[chosen].mean(axis=0))
                | range_ends("cells", self._share_of_cells(chosen))
                | range_ends("meeting", self._meet[chosen & self.judged].sum(axis=0).astype(float))
            )
        return pd.DataFrame(rows)

    def worst(self, places: np.ndarray, most: int) -> np.ndarray:
        """So many of these tables, those with fewest people in good cells first, int64[n].

        By the mean over populations: of very many tables that is faster than by the median.
        """
        places = places[self._held[places]]
        people = self._people[places].mean(axis=1)
        if len(places) > most:
            first = np.argpartition(people, most - 1)[:most]
            places, people = places[first], people[first]
        return places[np.argsort(people, kind="stable")]

    def tables(self, places: np.ndarray | None = None) -> pd.DataFrame:
        """One row a table, that with fewest people in good cells first; index: its place.

        places: of the tables, int64[n]; by default all. Those that cannot be forecast are left out

        Columns: table, order, cells, standard_error, people_low, people_median, people_high,
        cells_low, cells_median, cells_high, meets ("yes"; "open": the median meets the rule, and
        the lower end does not; "no"; "no rule": none is about it).
        """
        workload = self._accuracy.workload
        held, people, meets = self.people_by_table(
            np.flatnonzero(self._held) if places is None else places
        )
        cells = ranges(self._cells[held])
        frame = pd.DataFrame(
            {
                "table": all_titles(workload)[held] if places is None else titles(workload, held),
                "order": workload.orders[held],
                "cells": workload.cells[held],
                "standard_error": self._accuracy.standard_errors[held],
                **dict(zip(("people_low", "people_median", "people_high"), people, strict=True)),
                **dict(zip(("cells_low", "cells_median", "cells_high"), cells, strict=True)),
                "meets": meets,
            },
            index=pd.Index(held, name="table_index"),
        )
        return frame.sort_values(["people_median", "people_low"], kind="stable")

    def people_by_table(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """People in good cells of these tables, and whether they meet the rules, as of `tables`.

        Returns: The tables that can be forecast, int64[n]; the ranges, float64[3, n]; texts.
        """
        held = places[self._held[places]]
        people = ranges(self._people[held])
        median, surely = (at_certainty(self._meet[held], certainty) for certainty in CERTAINTIES)
        meets = np.where(surely, "yes", np.where(median, "open", "no"))
        return held, people, np.where(self.judged[held], meets, "no rule")

    def by_group(self, attribute: str) -> pd.DataFrame:
        """For each value of an attribute how good the cells of its people are: who loses most.

        Over all tables with the attribute whose cells are equally accurate. Columns: value (its
        label), count_low, count_median, count_high (people of the value), people_low,
        people_median, people_high (share of them in good cells, mean over these tables).

        Raises `WorkloadError` if no such table has the attribute.
        """
        domain, workload = self.tables_of_plan.domain, self._accuracy.workload
        index = domain.position(attribute)
        places = [
            place
            for place in np.flatnonzero(self._held & self._drawn.is_even).tolist()
            if index in workload.attribute_indices(place)
        ]
        if not places:
            raise WorkloadError(
                f"No table that is forecast has {attribute!r} and cells that are equally accurate; "
                "name an attribute, or a level such as age@five-year, of other tables."
            )
        known = self.public_tables.domain.with_levels
        own, size = known.position(attribute), int(domain.sizes[index])
        populations, counted, good = self._drawn.populations, [], []
        least = self._least_counts(
            self._accuracy.standard_errors, np.arange(len(workload)), self.limit
        )
        for population, n_records in zip(populations.drawn(), populations.n_records, strict=True):
            values = population.values_of_people(own)
            n_people = np.bincount(values, minlength=size)
            counted.append(n_records * population.shares((own,)))
            of_values = np.zeros(size)
            for place in places:
                table = self._drawn.tables[place]
                counts = n_records * population.people_by_class(table).sum(axis=0)
                enough = counts >= least[place]
                of_values += np.bincount(values, enough, size) / np.maximum(n_people, 1)
            good.append(np.where(n_people > 0, of_values / len(places), np.nan))
        counts = ranges(np.array(counted), axis=0)
        with warnings.catch_warnings():  # nobody may have been drawn of a value
            warnings.simplefilter("ignore", RuntimeWarning)
            people = np.nanquantile(np.array(good), RANGE, axis=0, method="weibull")
        return pd.DataFrame(
            {
                "value": domain.attributes[index].labels(),
                **dict(zip(("count_low", "count_median", "count_high"), counts, strict=True)),
                **dict(zip(("people_low", "people_median", "people_high"), people, strict=True)),
            }
        )

    def suggest(
        self,
        tables: Sequence[AttributeSet] = (),
        *,
        most: int = 5,
        on_progress: Progress = no_progress,
    ) -> "list[TableSuggestions]":
        """What would make tables that miss the rule good enough, the best proposals first.

        Args:
            tables: The tables to look at, each by its attributes; those with fewest people in good
                cells if none is named.
            most: How many of these at most.
            on_progress: Called with what is being done and the share that is done.

        Returns:
            Of each table its `proposals`, planned anew and forecast: `frame()` has the people that
            each gains and what it costs the other tables, `proposals[0].apply(plan)` is the plan.

        Raises:
            WorkloadError: If a named table is not there, or cannot be forecast.
            PlanError: If the objective of the plan is known to a script alone.

        Example:
            >>> import rpexplore as rp
            >>> tables = rp.Workload.of(rp.Domain.from_sizes({"age": 100}), ["age"])
            >>> plan = rp.plan(tables, loss=rp.SumOfVariances(), budget=rp.Budget(rho="0.001"))
            >>> (ages,) = rp.Forecast(plan, expected=10_000).suggest()
            >>> ages.proposals[0].people.median >= 0.9
            True
        """
        from rpexplore.analysis.suggestions import suggestions  # which needs forecasts itself

        part, drawn = self.tables_of_plan, self._drawn
        return suggestions(
            part,
            drawn,
            self.limit,
            self.share,
            tables,
            most,
            self.survey,
            self.noun,
            on_progress,
        )

    def suggest_together(self, *, on_progress: Progress = no_progress) -> "SharedSuggestions":
        """What would make many tables that miss good enough at once: one level in all of them.

        Args:
            on_progress: As of `suggest`.

        Returns:
            Its `proposals`, planned anew at the same budget and forecast, the best first:
            `proposals[0].apply(plan)` is the plan, `proposals[0].frame()` has the tables.
            Raises as `suggest`, and for attributes of too many values together.
        """
        from rpexplore.analysis.shared_suggestions import shared_suggestions
        from rpexplore.analysis.suggestions import Bench

        part, drawn = self.tables_of_plan, self._drawn
        bench = Bench(part, drawn, self.limit, self.share, self.survey, self.whom)
        return shared_suggestions(bench, on_progress)

    def to_json(self) -> dict[str, Any]:
        """The figures as plain values: people, cells, by_order, tables, and what they rest on."""
        by_order = {
            str(group): {
                "people": Range.of(self._people[chosen].mean(axis=0))._asdict(),
                "cells": Range.of(self._share_of_cells(chosen))._asdict(),
                "tables": int(np.sum(chosen)),
            }
            for group in np.unique(order_groups(self._accuracy.workload)[self._held]).tolist()
            for chosen in [self._held & (order_groups(self._accuracy.workload) == group)]
        }
        return {
            "limit": self.limit,
            "share": self.share,
            "people": self.people._asdict(),
            "cells": self.cells._asdict(),
            "by_order": by_order,
            "rules": [rule.text for rule in self.rules],
            "tables": {"meeting": self.meeting._asdict(), "of": int(np.sum(self.judged))},
            "rests_on": self.public_tables.text,
            "contradictions": list(self.public_tables.contradictions),
            "left_out": int(np.sum(~self._held)),
            **self._facts_of_survey,
        }

    @property
    def _facts_of_survey(self) -> dict[str, Any]:
        if self.survey is None:
            return {}
        added = self.noise_adds
        return {
            "survey": self.survey.to_json(),
            "noise_adds": None if added is None else added._asdict(),
        }

    # ---- kept in the plan

    @cached_property
    def stated(self) -> StatedForecast:
        """The figures as a plan file keeps them: shares to 6 decimals."""
        workload = self._accuracy.workload
        orders = order_groups(workload)
        tables: tuple[tuple[float, float, float] | None, ...] = ()
        if len(workload) <= MOST_TABLES:
            tables = tuple(
                _stated(self._people[place]) if held else None
                for place, held in enumerate(self._held.tolist())
            )
        return StatedForecast(
            self.public_tables.text,
            self.public_tables.n_records,
            self.limit,
            self.share,
            self.survey,
            self._stated_of(-1, self._held),
            tuple(
                self._stated_of(group, self._held & (orders == group))
                for group in np.unique(orders[self._held]).tolist()
            ),
            tables,
        )

    def in_plan(self) -> Plan:
        """The plan with this forecast in its file, so that a release shows it beside its outcome.

        The file, and so its SHA-256, is another one; what it promises is the same.
        """
        return replace(Plan.of(self.plan), forecast=self.stated)

    def _stated_of(self, attributes: int, chosen: np.ndarray) -> GroupForecast:
        return GroupForecast(
            attributes,
            int(np.sum(chosen)),
            _stated(self._people[chosen].mean(axis=0)),
            _stated(self._share_of_cells(chosen)),
            _stated(self._meet[chosen].sum(axis=0).astype(float)),
        )

    @property
    def survey_text(self) -> str:
        """The sampling error that counts beside the noise, in sentences; "" without a design."""
        if self.survey is None:
            return ""
        added = "" if self.noise_adds is None else f" {describe_added(*self.noise_adds)}."
        return f"Total error: noise and sampling ({self.survey.text}).{added}"

    def __str__(self) -> str:
        """The forecast in a few lines, for a terminal."""
        of = int(np.sum(self._held))
        first = f"{self.whom.capitalize()} in good cells"
        width = len(first)
        lines = [
            f"Forecast for {plural(of, 'table')} from {self.public_tables.text}",
            f"  {first}  {self.people.text(describe_share)}  (CV of at most "
            f"{100 * self.limit:g} %; mean over tables)",
            f"  {'Good cells':{width}}  {self.cells.text(describe_share)}",
            f"  {'Tables that meet':{width}}  {self.meeting.text(lambda value: f'{value:.0f}')} of "
            f"{int(np.sum(self.judged)):,}  ({self.criterion})",
        ]
        lines += [f"  {self.survey_text}"] if self.survey is not None else []
        lines += [f"  {sentence}" for sentence in self.public_tables.contradictions]
        lines += [f"  {self.left_out_text}"] if of < len(self._held) else []
        return "\n".join(lines)

    @property
    def n_tables(self) -> int:
        """How many tables are forecast."""
        return int(np.sum(self._held))

    @property
    def left_out_text(self) -> str:
        """Which tables are not forecast; "" if all are."""
        left = ~self._held
        n_sums = int(np.sum(left & self._accuracy.workload.has_amounts))
        n_others = int(np.sum(left)) - n_sums
        said = [f"{plural(n_sums, 'table')} of sums or weighted counts"] if n_sums else []
        said += [f"{plural(n_others, 'table')}, which are {TOO_LARGE}"] if n_others else []
        return f"Left out: {' and '.join(said)}." if said else ""

    @property
    def rests_on(self) -> str:
        """What is public, in a sentence."""
        return f"It rests on {self.public_tables.text}."

    def describe(self) -> str:
        """The headline in a sentence."""
        n_meeting = self.meeting.text(lambda value: f"{value:,.0f}")
        return (
            f"{self.people.text(describe_share)} of {self.whom} are in good cells, with a "
            f"coefficient of variation of at most {100 * self.limit:g} %; {n_meeting} of "
            f"{plural(int(np.sum(self.judged)), 'table')} {self._meet_text}."
        )

    @property
    def _meet_text(self) -> str:
        return "meet their rule" if self.rules else f"have {self.criterion}"

    def __repr__(self) -> str:
        return f"<Forecast: people in good cells {self.people.text(describe_share)}>"

    # ---- inside

    @cached_property
    def _accuracy(self) -> Accuracy:
        return self.accuracy or Accuracy.of_plan("", self.tables_of_plan)

    @cached_property
    def _drawn(self) -> DrawnCounts:
        if self.drawn is not None:
            return self.drawn
        return DrawnCounts.of(self._accuracy.workload, self.public_tables, self.on_progress)

    @property
    def _held(self) -> np.ndarray:
        return self._drawn.held

    @cached_property
    def _shares(self) -> tuple[np.ndarray, np.ndarray]:
        return self._shares_at(self.limit)

    def _shares_at(self, limit: float) -> tuple[np.ndarray, np.ndarray]:
        """Shares of people and of cells that are good, float64[n_tables, n_populations] each."""
        accuracy = self._accuracy

        def least(errors: np.ndarray, places: np.ndarray) -> np.ndarray:
            return self._least_counts(errors, places, limit)

        of_cells = accuracy.cell_standard_errors
        rule = limit, self.survey
        return self._drawn.shares(accuracy.standard_errors, of_cells, least, rule)

    @cached_property
    def _factors(self) -> np.ndarray:
        """d (1 − f) of each table, 0 without a design: float64[n_tables]."""
        workload = self._accuracy.workload
        if self.survey is None:
            return np.zeros(len(workload))
        return self.survey.factors(workload.tables)

    def _least_counts(
        self, standard_errors: np.ndarray, places: np.ndarray, limit: float
    ) -> np.ndarray:
        """The smallest good count of each table, or of each of its cells; shaped as the errors."""
        if self.survey is None:
            return standard_errors / limit
        factors = self._factors[places].reshape(-1, *[1] * (standard_errors.ndim - 1))
        n_records = self.public_tables.n_records
        return least_good_counts(standard_errors, limit, n_records, factors)

    @property
    def _people(self) -> np.ndarray:
        return self._shares[0]

    @property
    def _cells(self) -> np.ndarray:
        return self._shares[1]

    @cached_property
    def _meet(self) -> np.ndarray:
        """Whether tables meet all rules about them, bool[n_tables, n_populations]."""
        if not self.rules:
            return self._people >= self.share - _ROUNDING
        meet = np.ones_like(self._people, dtype=bool)
        by_cv = {self.limit: self._shares}
        for rule in self.rules:
            cv, places = float(rule.cv), rule.places(self._accuracy.workload)
            if cv not in by_cv:
                by_cv[cv] = self._shares_at(cv)
            shares = by_cv[cv][rule.of == CELLS][places]
            meet[places] &= shares >= float(rule.share) - _ROUNDING
        return meet

    def _share_of_cells(self, chosen: np.ndarray) -> np.ndarray:
        """Of all cells of these tables, those that are good: float64[n_populations]."""
        n_cells = self._accuracy.workload.cells[chosen]
        return np.einsum("a,ab->b", n_cells, self._cells[chosen]) / np.sum(n_cells)


def checked_share(share: float) -> float:
    """The share of people who are to be in good cells; raises `WorkloadError` for none."""
    if not 0 < share <= 1:
        raise WorkloadError(
            f"The share of people who are to be in good cells must be above 0 and at most 1, "
            f"got {share!r}; 0.9 is 90 %."
        )
    return share


def public_tables_of(
    domain: Domain,
    given: Sequence[str | Path | PublicTable | ExpectedCounts],
    expected: float | None,
) -> PublicTables:
    """Public tables, or files of them, over a codebook; `given`, `expected` as of `Forecast`."""
    domain = domain.of_records
    tables = []
    for one in given:
        if isinstance(one, PublicTable):
            tables.append(one)
        elif isinstance(one, ExpectedCounts):
            tables.append(PublicTable(one))
        else:
            content = file_bytes(one, f"The public table {str(one)!r}", WorkloadError)
            tables.append(public_table_from_csv(domain.with_levels, content, Path(one).name))
    return PublicTables(domain, tuple(tables), expected)


def forecast_by(
    plan: Plan | TablePlan,
    expected: ExpectedCounts,
    limit: float = CV_LIMIT,
    survey: SurveyDesign | None = None,
    noun: str | None = None,
) -> Forecast:
    """The forecast where a number of records, or one public table, is all that is known."""
    if not expected.attributes:
        return Forecast(plan, expected=expected.total, limit=limit, survey=survey, noun=noun)
    return Forecast(plan, [expected], limit=limit, survey=survey, noun=noun)


def public_tables_by(domain: Domain, expected: ExpectedCounts) -> PublicTables:
    """What is public where a number of records, or one public table, is all that is known.

    Of a table the attributes that the domain has.
    """
    expected = expected.among(domain.names)
    if not expected.attributes:
        return PublicTables(domain, (), expected.total)
    return PublicTables(domain, (PublicTable(expected),))


def public_tables_among(domain: Domain, public: PublicTables) -> PublicTables:
    """What public tables of another codebook say of a domain's attributes.

    Of a table those that the domain has; a noisy one only where it has them all.
    """
    names, tables = domain.of_records.with_levels.names, []
    for table in public.tables:
        own = table.counts.among(names)
        if own.attributes and (table.errors is None or own.attributes == table.counts.attributes):
            tables.append(replace(table, counts=own))
    return PublicTables(domain.of_records, tuple(tables), public.n_records)


def public_frame(public: PublicTables) -> pd.DataFrame:
    """One row a public table, oldest first: name, date, source, by, cells, records.

    by: its attributes; records: how many it counts, NaN for shares
    """
    rows = []
    for table in public.tables:
        by, counts = title_of(table.counts.attributes), table.counts
        name = replace(table, date="").title
        records = math.nan if table.is_shares else counts.total
        rows.append((name, table.date, table.source, by, len(counts.counts), records))
    return pd.DataFrame(rows, columns=["name", "date", "source", "by", "cells", "records"])


def _stated(values: np.ndarray) -> tuple[float, float, float]:
    low, median, high = (round(value, 6) + 0.0 for value in Range.of(values))
    return low, median, high
