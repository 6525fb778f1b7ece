"""What if some tables were left out, counted differently, or added: how every other table moves.

The budget stays. Standard errors before and after are those of two optima at one budget, so their
ratios hold at every budget.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from rpexplore.analysis.forecast import group_name, order_groups
from rpexplore.common.formatting import rounded
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.optimum import Optimum
from rpexplore.privacy.budget import Budget
from rpexplore.scenarios.workload_changes import (
    ADD,
    BOOST,
    LEAVE_OUT,
    PAST,
    WorkloadChange,
    describe_tables,
    row_indices,
    rows_of,
)
from rpexplore.workload.table_titles import titles
from rpexplore.workload.workload import Workload

_LEAST_CHANGE = 0.05  # per cent: less than that is told as none


@dataclass(frozen=True, eq=False)
class AccuracyChanges:
    """Standard errors before and after a change, at privacy cost 1 of one record.

    Those of a typical cell, where the cells of a table differ.

    workload   the tables there were, with those that were added
    concerned  bool[n_tables]: the tables that the change is about
    before     float64[n_tables]; infinite where it was not to be had
    after      float64[n_tables]; infinite where it is not to be had any more
    """

    workload_change: WorkloadChange
    workload: Workload
    concerned: np.ndarray
    before: np.ndarray
    after: np.ndarray


def accuracy_changes(
    before: Optimum, after: Optimum, workload_change: WorkloadChange
) -> AccuracyChanges:
    """How the tables move from one optimum to that of the workload changed as wished.

    A table that was left out, or is yet to be added, has a standard error as well if it can be
    computed from what is measured (docs/mathematics.md §3.2): a table within a larger one.
    """
    larger = after if workload_change.action == ADD else before
    workload = larger.workload
    if workload_change.action == ADD:
        concerned = row_indices(workload.members, before.workload.members) < 0
    else:
        concerned = np.zeros(len(workload), dtype=bool)
        concerned[rows_of(workload, workload_change)] = True
    errors = (np.sqrt(_variances(each, larger)) for each in (before, after))
    return AccuracyChanges(workload_change, workload, concerned, *errors)


def by_order(found: AccuracyChanges, budget: Budget) -> pd.DataFrame:
    """One row for each number of attributes among the others, then among the tables concerned.

    Columns: name ("2 attributes", "2 attributes, left out"), concerned, tables, lost (how many are
    not to be had after), before, after (medians at the budget of those that are to be had, NaN if
    none is), smallest, change (median), largest (changes in per cent of those that are to be had
    before and after), note (the change for a label).
    """
    groups, rows = order_groups(found.workload), []
    for concerned in (False, True):
        for group in np.unique(groups[found.concerned == concerned]).tolist():
            places = np.flatnonzero((groups == group) & (found.concerned == concerned))
            before, after = found.before[places], found.after[places]
            changes = _changes(before, after)
            spread = np.quantile(changes, [0, 0.5, 1]) if len(changes) else [np.nan] * 3
            name = group_name(group, found.workload)
            rows.append(
                {
                    "name": f"{name}, {PAST[found.workload_change.action]}" if concerned else name,
                    "concerned": concerned,
                    "tables": len(places),
                    "lost": int(np.count_nonzero(np.isinf(after))),
                    "before": _median(before) * _scale(budget),
                    "after": _median(after) * _scale(budget),
                    **dict(zip(("smallest", "change", "largest"), spread, strict=True)),
                }
            )
    frame = pd.DataFrame(rows)
    return frame.assign(note=[_note(row) for row in rows])


def others_differ(found: AccuracyChanges) -> bool:
    """Whether some of the other tables move noticeably more than others do."""
    changes = _changes(found.before[~found.concerned], found.after[~found.concerned])
    return len(changes) > 1 and not _are_alike(changes)


def extremes(found: AccuracyChanges, budget: Budget, most: int) -> pd.DataFrame:
    """The other tables that gain most, then those that gain least or lose most.

    Columns: name, concerned, before, after, change, note; all of them where there are few.
    """
    rows = np.flatnonzero(~found.concerned)
    rows = rows[np.argsort(found.after[rows] / found.before[rows], kind="stable")]
    if len(rows) > most:
        rows = np.concatenate([rows[: most - most // 2], rows[len(rows) - most // 2 :]])
    frame = _tables(found, budget, rows).rename(columns={"table": "name"}).drop(columns="order")
    return frame.assign(note=[_note(row) for row in frame.to_dict("records")])


def of_tables(found: AccuracyChanges, budget: Budget) -> pd.DataFrame:
    """One row a table, those that move most first.

    Columns: table, order, concerned, before, after (at the budget, NaN where it is not to be
    had), change (per cent).
    """
    with np.errstate(divide="ignore"):
        distance = np.abs(np.log(found.after / found.before))
    distance[~np.isfinite(distance)] = -1
    return _tables(found, budget, np.argsort(-distance, kind="stable"))


def _tables(found: AccuracyChanges, budget: Budget, rows: np.ndarray) -> pd.DataFrame:
    before, after = (
        np.where(np.isinf(errors[rows]), np.nan, errors[rows] * _scale(budget))
        for errors in (found.before, found.after)
    )
    return pd.DataFrame(
        {
            "table": titles(found.workload, rows),
            "order": found.workload.orders[rows],
            "concerned": found.concerned[rows],
            "before": before,
            "after": after,
            "change": 100 * (after / before - 1),
        }
    )


def describe_changes(found: AccuracyChanges, budget: Budget, record_noun: str) -> str:
    """What the change does to all other tables, and to those that it is about."""
    workload_change, concerned = found.workload_change, found.concerned
    which = describe_tables(found.workload, workload_change)
    if workload_change.action == ADD and np.count_nonzero(concerned) < len(
        rows_of(found.workload, workload_change)
    ):
        which = f"{np.count_nonzero(concerned):,} of {which}"
    subject = {
        LEAVE_OUT: f"Leaving out {which}",
        BOOST: f"Counting {which} {rounded(workload_change.factor, 4)} times as much",
        ADD: f"Adding {which}",
    }[workload_change.action]
    others = _changes(found.before[~concerned], found.after[~concerned])
    if len(others) == 0:
        return f"{subject} changes nothing: there are no other tables."
    if np.max(np.abs(others)) < _LEAST_CHANGE:
        effect = f"moves no other table by as much as {_LEAST_CHANGE} %"
    else:
        whose = "the other table" if len(others) == 1 else f"the other {len(others):,} tables"
        does = "keeps" if abs(np.median(others)) < _LEAST_CHANGE else "makes"
        effect = f"{does} the standard errors of {whose} {_spread(others)}"
    return f"{subject} {effect}. {_of_concerned(found, budget, record_noun)}".strip()


def describe_extremes(frame: pd.DataFrame, record_noun: str) -> str:
    """The first and the last row of `extremes`."""
    rows = frame.to_dict("records")
    first, last = (
        f"{row['name']} (from {rounded(row['before'], 3)} to {rounded(row['after'], 3)} "
        f"{record_noun}, {describe_change(row['change'])})"
        for row in (rows[0], rows[-1])
    )
    if rows[0]["change"] >= 0:
        return f"{last} loses most, {first} least."
    return (
        f"{first} gains most, {last} {'gains least' if rows[-1]['change'] < 0 else 'loses most'}."
    )


def _of_concerned(found: AccuracyChanges, budget: Budget, record_noun: str) -> str:
    """A sentence about the tables that the change is about."""
    before, after = found.before[found.concerned], found.after[found.concerned]
    changes, count = _changes(before, after), len(before)
    they = "It" if count == 1 else "They"
    if found.workload_change.action == ADD:
        error = rounded(_median(after) * _scale(budget), 3)
        of_several = " (median)" if count > 1 else ""
        return f"{they} will have a standard error of {error} {record_noun}{of_several}."
    if found.workload_change.action == BOOST:
        own = "Its own standard error becomes" if count == 1 else "Their own become"
        return f"{own} {_spread(changes)}."
    if len(changes) == 0:
        return f"{they} cannot be computed from the others."
    some = they if len(changes) == count else f"{len(changes):,} of them"
    return f"{some} can still be computed from the others, with errors {_spread(changes)}."


def _variances(optimum: Optimum, larger: Optimum) -> np.ndarray:
    """Mean cell variances of the tables of the larger workload by either of the two optima."""
    if optimum is larger:
        return optimum.variances
    variances = np.full(len(larger.workload), np.inf)
    if _measures_alike(optimum, larger.closure):
        sigma_squared = np.full(len(larger.closure), np.inf)
        places = row_indices(optimum.closure.members, larger.closure.members)
        sigma_squared[places] = optimum.solution.sigma_squared
        variances = larger.closure.variances(sigma_squared)
    variances[row_indices(optimum.workload.members, larger.workload.members)] = optimum.variances
    return variances


def _measures_alike(optimum: Optimum, closure: Closure) -> bool:
    """Whether the attributes that an optimum measures are measured as in the closure."""
    own = optimum.closure.strategies
    return all(
        own.get(place) is strategy or place not in optimum.workload.used
        for place, strategy in closure.strategies.items()
    )


def _changes(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """Changes in per cent of the tables that are to be had before and after."""
    both = np.isfinite(before) & np.isfinite(after)
    return 100 * (after[both] / before[both] - 1)


def _median(errors: np.ndarray) -> float:
    finite = errors[np.isfinite(errors)]
    return float(np.median(finite)) if len(finite) else float("nan")


def _scale(budget: Budget) -> float:
    return 1 / float(np.sqrt(float(budget.record_privacy_cost)))


def _are_alike(changes: np.ndarray) -> bool:
    """Whether changes in per cent are the same as far as anybody would notice."""
    spread = float(np.max(changes) - np.min(changes))
    return spread < max(0.05 * abs(float(np.median(changes))), _LEAST_CHANGE)


def _note(row: dict) -> str:
    """What became of the tables of a row, for a label: "−9.1 %", "new", "not available"."""
    change = row["change"]
    if not np.isnan(change):
        low, high = row.get("smallest", change), row.get("largest", change)
        alike = _are_alike(np.array([low, change, high]))
        span = "" if alike else f" ({_signed(low)} to {_signed(high)})"
        return f"{_signed(change)} %{span}"
    return "new" if np.isnan(row["before"]) else "not available"


def _signed(change: float) -> str:
    """ "−9.1", "+26", "±0"."""
    if abs(change) < _LEAST_CHANGE:
        return "±0"
    return f"{'+' if change > 0 else '−'}{rounded(abs(change), 2)}"


def _spread(changes: np.ndarray) -> str:
    """ "23 % smaller (median; 11 % to 31 %)", "about the same (up to 3 % larger)"."""
    low, middle, high = (float(each) for each in np.quantile(changes, [0, 0.5, 1]))
    typical = "about the same" if abs(middle) < _LEAST_CHANGE else describe_change(middle)
    if _are_alike(changes):
        return typical
    if abs(low) < _LEAST_CHANGE or abs(high) < _LEAST_CHANGE:
        farthest = low if abs(low) > abs(high) else high
        return f"{typical} (median; up to {describe_change(farthest)})"
    if low * high > 0 and high < 100:
        ends = sorted((abs(low), abs(high)))
        return f"{typical} (median; {rounded(ends[0], 2)} % to {rounded(ends[1], 2)} %)"
    ends = f"from {describe_change(low)} to {describe_change(high)}"
    return f"{typical} (median; {ends})"


def describe_change(change: float) -> str:
    """ "23 % smaller", "4.1 % larger", "2.5 times as large"."""
    if change >= 100:
        return f"{rounded(1 + change / 100, 2)} times as large"
    return f"{rounded(abs(change), 2)} % {'larger' if change > 0 else 'smaller'}"
