"""Outcome: how many people and cells came out good, from noisy counts alone, beside the forecast.

Which cells are good depends on true counts, which nobody has. A cell is taken as good if its noisy
count is at least t, the smallest good count, which is σ/κ or more. No unbiased estimate of the
number of people in such cells exists, because being above t jumps; docs/mathematics-forecast.md §20
derives how far this one may be off, from noisy counts near t alone, and thus the range.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import pandas as pd
import pyarrow as pa
from scipy.special import ndtr

from rpexplore.analysis.measures import group_name, order_groups
from rpexplore.common.processes import Progress, no_progress
from rpexplore.common.text import capitalised, describe_share, plural
from rpexplore.domain.result_schema import Schema
from rpexplore.domain.survey import least_good_counts
from rpexplore.planning.plan import Plan
from rpexplore.planning.stated_forecast import Figures, GroupForecast, StatedForecast
from rpexplore.workload.workload import Workload

_Z = 1.6448536269514722  # of a range that holds 90 %
_MORE_NOISE = 0.5  # times σ², by which the effect of noise on the estimate is probed
_MOST_READ = 1_000  # tables
RESTS_ON = (
    "The outcome is estimated from the released noisy counts: a cell counts as good if its noisy "
    "count is large enough. Noise moves cells near the limit to either side; the range allows for "
    "that, with about 90 % confidence for each table, and more for many together."
)


class TableOutcome(NamedTuple):
    """Shares of people in good cells and of good cells of a table: low, estimate, high."""

    people: Figures
    cells: Figures


def table_outcome(
    counts: np.ndarray, standard_errors: np.ndarray, least: np.ndarray, n_records: float
) -> TableOutcome:
    """The outcome of a table.

    counts, standard_errors: of its cells, noisy, float64[n]; least: the smallest good counts,
    float64[n]; n_records: how many records there are, estimated
    """
    more = np.sqrt(_MORE_NOISE) * standard_errors
    above, probe = (counts - least) / standard_errors, (counts - least) / more
    is_good, chance = counts >= least, ndtr(above)
    # f(y) = y 1[y ≥ t], its mean under half as much noise again, and the variance of the jump.
    smooth = counts * ndtr(probe) + more * np.exp(-(probe**2) / 2) / np.sqrt(2 * np.pi)
    people = float(np.sum(counts[is_good]))
    jumps = np.sum(least**2 * chance * (1 - chance))
    # All counts add up to the number of records, so the good or the others say as much.
    sums = min(np.sum(standard_errors**2 * chance), np.sum(standard_errors**2 * (1 - chance)))
    off = abs(float(np.sum(smooth)) - people) / _MORE_NOISE + _Z * np.sqrt(jumps + sums)
    n_good, n_cells = float(np.sum(is_good)), len(counts)
    cells_off = abs(float(np.sum(ndtr(probe))) - n_good) / _MORE_NOISE
    cells_off += _Z * np.sqrt(float(np.sum(chance * (1 - chance))))
    return TableOutcome(
        _within(people / n_records, off / n_records), _within(n_good / n_cells, cells_off / n_cells)
    )


def _within(estimate: float, off: float) -> Figures:
    low, middle, high = np.clip([estimate - off, estimate, estimate + off], 0, 1).tolist()
    return low, middle, high


class ReleasedTables(Protocol):
    """The tables of a finished release, as `TableRelease` reads them."""

    def has(self, attributes: Any) -> bool: ...

    def answer(self) -> Any: ...

    def cells(self, position: int) -> pa.Table: ...


@dataclass(frozen=True, eq=False)
class Outcome:
    """What came out of the tables that were forecast, beside the forecast.

    places  int64[n]: of the tables that were looked at
    people  float64[n, 3]: share of people in good cells: low, estimate, high
    cells   float64[n, 3]: share of good cells
    whom    the word for those whom the tables count
    """

    workload: Workload
    forecast: StatedForecast
    places: np.ndarray
    people: np.ndarray
    cells: np.ndarray
    n_records: float
    whom: str = "people"

    def by_order(self) -> pd.DataFrame:
        """One row for each number of attributes, and one for all tables.

        Columns of `forecast_by_order`, and for people, cells and meeting, with the name and an
        underscore in front: outcome_low, outcome, outcome_high. Meeting is scaled up where not all
        tables were looked at.
        """
        groups = order_groups(self.workload)[self.places]
        frame = forecast_by_order(self.forecast, self.workload)
        chosen = [groups == group.attributes for group in self.forecast.groups]
        rows = [
            self._outcome(group, those)
            for group, those in zip(
                (*self.forecast.groups, self.forecast.all),
                (*chosen, np.ones(len(groups), dtype=bool)),
                strict=True,
            )
        ]
        return pd.concat([frame, pd.DataFrame(rows)], axis=1)

    def _outcome(self, forecast: GroupForecast, chosen: np.ndarray) -> dict[str, float]:
        if not np.any(chosen):
            return {}
        n_cells = self.workload.cells[self.places[chosen]]
        meet = np.sum(self.people[chosen] >= self.forecast.share, axis=0)
        outcome = {
            "people": self.people[chosen].mean(axis=0),
            "cells": n_cells @ self.cells[chosen] / np.sum(n_cells),
            "meeting": meet * forecast.tables / np.sum(chosen),
        }
        return {
            f"{what}_outcome{end}": figure
            for what, came_out in outcome.items()
            for end, figure in zip(("_low", "", "_high"), came_out.tolist(), strict=True)
        }

    def tables(self) -> pd.DataFrame:
        """One row a table that has a forecast of its own, that farthest below it first.

        Columns: table, people_forecast_low, people_forecast_median, people_forecast_high,
        people_outcome_low, people_outcome, people_outcome_high; index: its place.
        """
        kept = [
            number
            for number, place in enumerate(self.places.tolist())
            if self.forecast.tables and self.forecast.tables[place] is not None
        ]
        places = self.places[kept]
        forecast = np.array([self.forecast.tables[place] for place in places.tolist()])
        forecast = forecast.reshape(-1, 3).astype(float)
        names = self.workload.tables
        frame = pd.DataFrame(
            {
                "table": [" × ".join(names[place]) or "total" for place in places.tolist()],
                "people_forecast_low": forecast[:, 0],
                "people_forecast_median": forecast[:, 1],
                "people_forecast_high": forecast[:, 2],
                "people_outcome_low": self.people[kept, 0],
                "people_outcome": self.people[kept, 1],
                "people_outcome_high": self.people[kept, 2],
            },
            index=pd.Index(places, name="table_index"),
        )
        below = self.people[kept, 1] - forecast[:, 1]
        return frame.iloc[np.argsort(below, kind="stable")]

    @classmethod
    def of(
        cls, plan: Plan, released: ReleasedTables | None, on_progress: Progress = no_progress
    ) -> "Outcome | None":
        """What came out of released tables; None if their plan keeps no forecast, or has none.

        Of more than 1,000 tables evenly chosen ones of every number of attributes are read.
        """
        forecast, part = plan.forecast, plan.part("tables")
        if forecast is None or part is None or released is None:
            return None
        workload = part.workload
        n_records = max(released.answer().value if released.has(()) else forecast.n_records, 1.0)
        places, found = [], []
        chosen = _chosen(workload)
        for number, place in enumerate(chosen):
            on_progress("Reading the tables", number / len(chosen))
            if forecast.tables and forecast.tables[place] is None:
                continue
            rows = released.cells(place)
            schema = Schema.of(rows)
            names = (schema.name(role) for role in ("value", "error"))
            counts, errors = (rows.column(name).to_numpy() for name in names)
            is_noisy = errors > 0
            if not np.any(is_noisy):
                continue
            counts, errors = counts[is_noisy], errors[is_noisy]
            least = least_counts_of(forecast, errors, workload.tables[place], n_records)
            # Cells of ranges and sums overlap: their people are those of all of them.
            bases = workload.attribute_basis_index[place].tolist()
            is_single = all(workload.attribute_bases[i][1].is_identity for i in bases if i >= 0)
            total = n_records if is_single else max(float(np.sum(counts)), 1.0)
            places.append(place)
            found.append(table_outcome(counts, errors, least, total))
        if not places:
            return None
        people, cells = (np.array(figures) for figures in zip(*found, strict=True))
        return cls(
            workload, forecast, np.array(places), people, cells, n_records, plan.budget.counted
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        """Forecast and outcome of all tables, and what both rest on."""
        row = self.by_order().to_dict("records")[-1]
        low, median, high = (row[f"people_forecast_{end}"] for end in ("low", "median", "high"))
        ends = (row[f"people_outcome{end}"] for end in ("_low", "", "_high"))
        least, found, most = ends
        said = "as forecast"
        if most < low:
            said = "fewer than forecast"
        elif least > high:
            said = "more than forecast"
        limit = f"CV of at most {100 * self.forecast.limit:g} %"
        looked_at = ""
        if len(self.places) < self.forecast.all.tables:
            looked_at = (
                f" {plural(len(self.places), 'table')} of {self.forecast.all.tables:,} read."
            )
        return (
            f"{capitalised(self.whom)} in good cells ({limit}), {said}: "
            f"{_range(found, least, most)}; forecast {_range(median, low, high)}.",
            describe_forecast(self.forecast),
            RESTS_ON + looked_at,
        )

    def to_json(self) -> dict[str, object]:
        """The figures as plain values."""
        return {
            "limit": self.forecast.limit,
            "share": self.forecast.share,
            "n_records": self.n_records,
            "by_order": self.by_order().to_dict("records"),
            "tables_read": len(self.places),
            "sentences": list(self.sentences),
        }


def _chosen(workload: Workload) -> list[int]:
    """Places of the tables that are read: of each number of attributes evenly many."""
    kept = np.flatnonzero(~workload.has_amounts)
    if len(kept) <= _MOST_READ:
        return kept.tolist()
    groups = order_groups(workload)[kept]
    used = np.unique(groups).tolist()
    chosen = []
    for group in used:
        places = kept[groups == group]
        steps = np.linspace(0, len(places) - 1, min(len(places), _MOST_READ // len(used)))
        chosen += places[np.rint(steps).astype(int)].tolist()
    return chosen


def forecast_by_order(forecast: StatedForecast, workload: Workload) -> pd.DataFrame:
    """One row for each number of attributes, and one for all tables.

    Columns: attributes, tables, and for people, cells (shares) and meeting (tables), with the name
    and an underscore in front: forecast_low, forecast_median, forecast_high.
    """
    rows = []
    for group in (*forecast.groups, forecast.all):
        is_all = group is forecast.all
        name = "all tables" if is_all else group_name(group.attributes, workload)
        row: dict[str, object] = {"attributes": name, "tables": group.tables}
        for what in ("people", "cells", "meeting"):
            for end, figure in zip(("low", "median", "high"), getattr(group, what), strict=True):
                row[f"{what}_forecast_{end}"] = figure
        rows.append(row)
    return pd.DataFrame(rows)


def describe_forecast(forecast: StatedForecast) -> str:
    """What a forecast rests on, in a sentence or two."""
    text = f"The forecast rests on {forecast.rests_on}."
    if forecast.survey is not None:
        text += f" Total error: noise and sampling ({forecast.survey.text})."
    return text


def least_counts_of(
    forecast: StatedForecast, standard_errors: np.ndarray, table: tuple[str, ...], n_records: float
) -> np.ndarray:
    """The smallest good counts of a table's cells; standard_errors: of these."""
    if forecast.survey is None:
        return standard_errors / forecast.limit
    factors = forecast.survey.factors([table])
    return least_good_counts(standard_errors, forecast.limit, n_records, factors)


_KINDS = {
    "forecast": ("forecast_median", "forecast_low", "forecast_high"),
    "outcome": ("outcome", "outcome_low", "outcome_high"),
}


def outcome_columns(frame: pd.DataFrame, title: str, whom: str) -> pd.DataFrame:
    """The rows of `by_order` or `tables` for reading: forecast and outcome with their ranges.

    whom: the word for those whom the tables count
    """
    columns = {title: frame[title].tolist()}
    if "tables" in frame:
        columns["tables"] = [f"{count:,}" for count in frame["tables"]]
    for what, heading in (("people", f"{whom} in good cells"), ("cells", "good cells")):
        for kind, ends in _KINDS.items():
            names = [f"{what}_{end}" for end in ends]
            if names[0] in frame:
                figures = (frame[name] for name in names)
                columns[f"{heading}: {kind}"] = [_range(*row) for row in zip(*figures, strict=True)]
    for kind, ends in _KINDS.items():
        names = [f"meeting_{end}" for end in ends]
        if names[0] in frame:
            figures = (frame[name] for name in names)
            columns[f"meet the rule: {kind}"] = [
                _range(*row, str_of=_count) for row in zip(*figures, strict=True)
            ]
    return pd.DataFrame(columns)


def _range(
    middle: float, low: float, high: float, str_of: Callable[[float], str] = describe_share
) -> str:
    if np.isnan(middle):
        return ""
    texts = [str_of(figure) for figure in (middle, low, high)]
    return texts[0] if texts[1] == texts[2] else f"{texts[0]} ({texts[1]} to {texts[2]})"


def _count(number: float) -> str:
    return f"{round(number):,}"
