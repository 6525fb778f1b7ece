"""Shared suggestions: one level of an attribute, in all the tables that miss the rule with it.

Where an attribute makes many tables miss, such as single years of age, mending them one by one is
a long list. Here one change is made in all of them: for each attribute the finest level, band or
merging with which most of its tables are good enough, planned anew and forecast as of
`suggestions`.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import nan
from typing import Any

import numpy as np
import pandas as pd

from rpexplore.analysis.coarser_tables import Rung, rungs_of
from rpexplore.analysis.proposals import Proposal, signed
from rpexplore.analysis.ranges import Range
from rpexplore.analysis.suggestions import Bench
from rpexplore.common.processes import Progress, no_progress
from rpexplore.common.text import describe_share, plural
from rpexplore.errors import RpexploreError, WorkloadError
from rpexplore.scenarios.table_changes import TableChange, replaced_tables, rows_after
from rpexplore.workload.table_text import Table

_MOST_TRIED = 12  # tables by which the level of an attribute is chosen
_MOST_LOOKED_AT = 100  # changed tables that are forecast; of more, evenly chosen ones
_ENOUGH = 0.9  # of the tables that the coarsest level mends: the finest level that mends so many
_MOST_SEARCHED = 12  # kinds of levels of attributes
_MOST_ROUNDS, _MORE = 3, 1.05  # of a search; by how much errors grow for the next one
_ROUNDING = 1e-9  # of shares


@dataclass(frozen=True, eq=False, repr=False)
class SharedProposal(Proposal):
    """One change in several tables, planned anew and forecast; as of `Proposal`.

    `table` says how many tables change, `people` is the mean over those that are looked at, and
    `meets` is empty: `meeting` says it.

    changes       of the tables that are looked at
    people_of     share of people in good cells in each of these then
    replacements  of all tables that change, by table
    n_changed     how many tables change
    meeting       how many of these meet the rule then, and `meeting_now` now
    """

    changes: tuple[TableChange, ...]
    people_of: tuple[Range, ...]
    replacements: dict[Table, Table]
    n_changed: int
    meeting_now: Range
    meeting: Range

    @property
    def more_meeting(self) -> float:
        """By how many more tables meet the rule, others among them: the medians."""
        return self.meeting.median - self.meeting_now.median + self.others_meeting

    @property
    def rank(self) -> tuple[float, ...]:
        """Smaller is better: most tables more that meet, then people gained, then cells kept."""
        return (-round(self.more_meeting), -round(100 * self.gained * self.n_changed), -self.cells)

    def text(self, record_noun: str) -> str:
        """The proposal with what it gains and costs, in a sentence or two."""
        now, then = (made.text("{:,.0f}".format) for made in (self.meeting_now, self.meeting))
        first = f"{self.change.text}: {then} of {plural(self.n_changed, 'table')} good enough"
        return f"{first}, now {now}. {self.text_of_others(record_noun)}"

    def frame(self) -> pd.DataFrame:
        """Of each table that is looked at: table, then, people_low, people_median, people_high."""
        rows = [
            (change.table, change.replacement, *people)
            for change, people in zip(self.changes, self.people_of, strict=True)
        ]
        names = ["table", "then", "people_low", "people_median", "people_high"]
        return pd.DataFrame(rows, columns=names)


@dataclass(frozen=True, eq=False, repr=False)
class SharedSuggestions:
    """Changes of several tables at once, the best first.

    proposals  by how many more tables meet the rule
    whom       the word for those whom tables count
    """

    proposals: tuple[SharedProposal, ...]
    whom: str = "people"

    def columns(self) -> pd.DataFrame:
        """The proposals for reading, one row each; figures as texts."""
        made = self.proposals
        number = "{:,.0f}".format
        return pd.DataFrame(
            {
                "": [str(place) for place in range(1, len(made) + 1)],
                "proposal": [one.change.text for one in made],
                "tables": [f"{one.n_changed:,}" for one in made],
                "meet now": [one.meeting_now.text(number) for one in made],
                "meet then": [one.meeting.text(number) for one in made],
                f"their {self.whom}": [
                    "" if one.people is None else one.people.text(describe_share) for one in made
                ],
                "variance of others": [signed(100 * one.others_variance, " %") for one in made],
                "of others meet": [signed(round(one.others_meeting), "") for one in made],
            }
        )

    def to_json(self) -> list[dict[str, Any]]:
        """As plain values, one a proposal."""
        return [
            {
                "action": one.change.action,
                "proposal": one.change.text,
                "tables": one.n_changed,
                "meeting_now": one.meeting_now._asdict(),
                "meeting": one.meeting._asdict(),
                "people": None if one.people is None else one.people._asdict(),
                "gained": one.gained,
                "others_variance": one.others_variance,
                "others_people": one.others_people,
                "others_meeting": one.others_meeting,
            }
            for one in self.proposals
        ]


def shared_suggestions(bench: Bench, on_progress: Progress = no_progress) -> SharedSuggestions:
    """One change for all tables that an attribute makes miss, the best proposals first.

    Raises `WorkloadError` if the populations of the forecast are too large to be kept.
    """
    if not bench.drawn.populations.kept:
        raise WorkloadError(
            "The attributes have too many values together for changes of several tables at once; "
            "name a table."
        )
    found, searches = list[SharedProposal](), list(_searches(bench))
    for number, search in enumerate(searches):
        on_progress("Trying changes of several tables", number / len(searches))
        bench.forget_factors()
        with suppress(RpexploreError):  # such as required targets that cannot be met then
            found += _found(bench, search)
    useful = (one for one in found if one.more_meeting >= 1)
    return SharedSuggestions(tuple(sorted(useful, key=lambda one: one.rank)), bench.whom)


def _evenly(rows: Sequence[int], most: int) -> list[int]:
    places = np.unique(np.linspace(0, len(rows) - 1, min(most, len(rows))).round().astype(int))
    return [rows[place] for place in places.tolist()]


@dataclass(frozen=True)
class _Search:
    """An attribute's level now, coarser ones of a kind, and its tables that miss."""

    now: Rung
    rungs: tuple[Rung, ...]
    rows: tuple[int, ...]


def _searches(bench: Bench) -> list[_Search]:
    """Attributes of most tables that miss come first."""
    workload, drawn = bench.workload, bench.drawn
    missing = np.median(bench.people, axis=1) < bench.share - _ROUNDING
    by_attribute: dict[int, list[int]] = {}
    for row in np.flatnonzero(drawn.held & missing).tolist():
        indices = workload.attribute_indices(row)
        if all(workload.basis_of(row, index).is_identity for index in indices):
            for index in indices:
                by_attribute.setdefault(index, []).append(row)
    searches = []
    for index, rows in sorted(by_attribute.items(), key=lambda one: (-len(one[1]), one[0])):
        now, *rungs = rungs_of(workload.domain, index, drawn.public)
        for kind in dict.fromkeys(rung.kind for rung in rungs):
            own = tuple(rung for rung in rungs if rung.kind == kind)
            searches.append(_Search(now, own, tuple(rows)))
    return searches[:_MOST_SEARCHED]


def _found(bench: Bench, search: _Search) -> list[SharedProposal]:
    """The best that a search finds: it goes on with what errors are once it is planned."""
    inflation, tried = 1.0, dict[str, SharedProposal]()
    for _ in range(_MOST_ROUNDS):
        rung = _enough(bench, search, inflation)
        if rung is None or rung.name in tried:
            break
        made, needed = _planned(bench, rung, search.now, search.rows)
        tried[rung.name] = made
        if made.meeting.low >= made.n_changed:
            break
        inflation = max(needed, _MORE * inflation)
    return sorted(tried.values(), key=lambda one: one.rank)[:1]


def _enough(bench: Bench, search: _Search, inflation: float) -> Rung | None:
    """The finest level that mends most tables that can be mended, with so many times the error."""
    tried = _evenly(search.rows, _MOST_TRIED)
    mended = [
        sum(_is_mended(bench, row, search.now, rung, inflation) for row in tried)
        for rung in search.rungs
    ]
    if not any(mended):
        return None
    # Those with most groups come first.
    return next(
        rung for n, rung in zip(mended, search.rungs, strict=True) if n >= _ENOUGH * max(mended)
    )


def _change(bench: Bench, row: int, now: Rung, rung: Rung) -> TableChange | None:
    """The change of a table to a level of one attribute; None if that table is there already."""
    table = bench.workload.tables[row]
    before = [now if name == now.name else Rung("", name, 0, name, "") for name in table]
    after = [rung if name == now.name else one for name, one in zip(table, before, strict=True)]
    return bench.coarser_by(table, before, after)


def _is_mended(bench: Bench, row: int, now: Rung, rung: Rung, inflation: float) -> bool:
    change = _change(bench, row, now, rung)
    return change is not None and bench.is_enough(bench.expected(change, inflation))


def _planned(
    bench: Bench, rung: Rung, now: Rung, rows: Sequence[int]
) -> tuple[SharedProposal, float]:
    """The change of all these tables, planned anew and forecast; how much errors grow by it."""
    before, changes, row_of = bench.workload, dict[int, TableChange](), dict[Table, int]()
    for row in rows:
        change = _change(bench, row, now, rung)
        if change is None or change.replacement in row_of:
            continue
        assert change.replacement is not None
        changes[row], row_of[change.replacement] = change, row
    replacements = {row: table for table, row in row_of.items()}
    workload = replaced_tables(before, replacements, rung.new)
    planned = bench.planned_errors(workload, bench.plan.budget)
    looked_at = _evenly(list(changes), _MOST_LOOKED_AT)
    people = np.array(
        [
            bench.people_in_good_cells(
                row,
                bench.counts_of(changes[row]),
                planned,
                workload.position(replacements[row]),
            )
            for row in looked_at
        ]
    )
    times = len(changes) / len(looked_at)

    def meeting(of: np.ndarray) -> Range:
        return Range.of(times * (of >= bench.share - _ROUNDING).sum(axis=0))

    others = bench.others_after(planned, rows_after(before, workload), list(changes))
    mean, mean_now = people.mean(axis=0), bench.people[looked_at].mean(axis=0)
    text = f"{rung.title} in {rung.words} instead of {now.words}, where tables miss"
    first = next(iter(changes.values()))
    after = [workload.position(table) for table in replacements.values()]
    grown = [
        planned.of_tables[workload.position(replacements[row])] / bench.errors.of_tables[row]
        for row in looked_at
    ]
    made = SharedProposal(
        change=TableChange(rung.kind, text, first.table, first.replacement, rung.new),
        workload=workload,
        budget=bench.plan.budget,
        table=f"{plural(len(changes), 'table')} with {rung.title}",
        cells=float(workload.cells[after].sum()),
        standard_error=nan,
        people=Range.of(mean),
        gained=float(np.median(mean) - np.median(mean_now)),
        meets="",
        **others,
        changes=tuple(changes[row] for row in looked_at),
        people_of=tuple(Range.of(own) for own in people),
        replacements={before.tables[row]: table for row, table in replacements.items()},
        n_changed=len(changes),
        meeting_now=meeting(bench.people[looked_at]),
        meeting=meeting(people),
    )
    return made, float(np.median(grown))
