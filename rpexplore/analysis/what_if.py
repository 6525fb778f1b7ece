"""What if some tables were left out, counted differently, or added: how every other table moves.

The budget stays. Standard errors before and after are those of two optima at one budget, so their
ratios hold at every budget.
"""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from rpexplore.analysis.measures import STANDARD_ERROR, Measure, group_name, order_groups
from rpexplore.common.processes import Progress
from rpexplore.common.text import rounded
from rpexplore.planning.losses.losses import Loss
from rpexplore.planning.planner import Optimum, optimum_with_strategies_of
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
from rpexplore.workload.table_text import titles
from rpexplore.workload.workload import Workload

_LEAST_CHANGE = 0.05  # per cent: less than that counts as none


@dataclass(frozen=True, eq=False)
class AccuracyChanges:
    """The accuracy before and after a change, at privacy cost 1 of one record.

    Of root mean squares over cells, where the cells of a table differ.

    workload   the tables there were, with those that were added
    concerned  bool[n_tables]: the tables that the change is about
    before     float64[n_tables]; NaN where it is not available
    after      the same after the change
    measure    of the accuracy
    """

    workload_change: WorkloadChange
    workload: Workload
    concerned: np.ndarray
    before: np.ndarray
    after: np.ndarray
    measure: Measure = STANDARD_ERROR

    @property
    def per_cent(self) -> np.ndarray:
        """The change of each table in per cent, float64[n_tables]; may be NaN."""
        return 100 * (self.after / self.before - 1)

    def in_measure(self, measure: Measure) -> "AccuracyChanges":
        """The same of standard errors (as `accuracy_changes` has them) or variances."""
        before, after = self.before**measure.power, self.after**measure.power
        return replace(self, before=before, after=after, measure=measure)

    def scale(self, budget: Budget) -> float:
        """Values at a budget, from those at privacy cost 1."""
        return float(budget.record_privacy_cost) ** (-self.measure.power / 2)


def accuracy_changes(
    before: Optimum, after: Optimum, workload_change: WorkloadChange
) -> AccuracyChanges:
    """How the tables move from one optimum to that of the changed workload.

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
    errors = [np.sqrt(_variances(optimum, larger)) for optimum in (before, after)]
    for of_optimum in errors:
        of_optimum[np.isinf(of_optimum)] = np.nan
    return AccuracyChanges(workload_change, workload, concerned, errors[0], errors[1])


def changes_planned(
    before: Optimum,
    changed: Workload,
    loss: Loss,
    workload_change: WorkloadChange,
    on_progress: Progress,
) -> AccuracyChanges:
    """`accuracy_changes` to the changed tables, planned with the strategies of the first plan."""
    on_progress("Planning for the changed tables", 0.1)
    after = optimum_with_strategies_of(before, changed, loss, on_progress=on_progress)
    return accuracy_changes(before, after, workload_change)


def by_order(changes: AccuracyChanges, budget: Budget) -> pd.DataFrame:
    """One row for each number of attributes among the others, then among the tables concerned.

    Columns: name ("2 attributes", "2 attributes, left out"), concerned, tables, lost (how many are
    not available after), before, after (medians at the budget of those that are available, NaN if
    none is), smallest, change (median), largest (changes in per cent of those that are available
    before and after), note (the change for a label).
    """
    groups, rows = order_groups(changes.workload), []
    for concerned in (False, True):
        for group in np.unique(groups[changes.concerned == concerned]).tolist():
            tables = (groups == group) & (changes.concerned == concerned)
            after, per_cent = changes.after[tables], _available(changes.per_cent[tables])
            spread = np.quantile(per_cent, [0, 0.5, 1]) if len(per_cent) else [np.nan] * 3
            name = group_name(group, changes.workload)
            if concerned:
                name += f", {PAST[changes.workload_change.action]}"
            rows.append(
                {
                    "name": name,
                    "concerned": concerned,
                    "tables": len(after),
                    "lost": int(np.count_nonzero(np.isnan(after))),
                    "before": _median(changes.before[tables]) * changes.scale(budget),
                    "after": _median(after) * changes.scale(budget),
                    **dict(zip(("smallest", "change", "largest"), spread, strict=True)),
                }
            )
    return pd.DataFrame(rows).assign(note=[_note(row) for row in rows])


def others_differ(changes: AccuracyChanges) -> bool:
    """Whether some of the other tables move noticeably more than others do."""
    others = _available(changes.per_cent[~changes.concerned])
    return len(others) > 1 and not _are_alike(others)


def extremes(changes: AccuracyChanges, budget: Budget, most: int) -> pd.DataFrame:
    """The other tables that gain most, then those that gain least or lose most.

    Columns: name, concerned, before, after, change, note; all of them where there are few.
    """
    tables = np.flatnonzero(~changes.concerned)
    tables = tables[np.argsort(changes.after[tables] / changes.before[tables], kind="stable")]
    if len(tables) > most:
        tables = np.concatenate([tables[: most - most // 2], tables[len(tables) - most // 2 :]])
    frame = _frame(changes, budget, tables).rename(columns={"table": "name"}).drop(columns="order")
    return frame.assign(note=[_note(row) for row in frame.to_dict("records")])


def of_tables(changes: AccuracyChanges, budget: Budget) -> pd.DataFrame:
    """One row a table, those that move most first.

    Columns: table, order, concerned, before, after (at the budget, NaN where it is not available),
    change (per cent).
    """
    distance = np.nan_to_num(np.abs(np.log(changes.after / changes.before)), nan=-1)
    return _frame(changes, budget, np.argsort(-distance, kind="stable"))


def describe_changes(changes: AccuracyChanges, budget: Budget, record_noun: str) -> str:
    """The effect of the change on all other tables, and on those that it is about."""
    change, count = changes.workload_change, int(np.count_nonzero(changes.concerned))
    tables = describe_tables(changes.workload, change)
    if change.action == ADD and count < len(rows_of(changes.workload, change)):
        tables = f"{count:,} of {tables}"
    subject = {
        LEAVE_OUT: f"Leaving out {tables}",
        BOOST: f"Counting {tables} {rounded(change.factor, 4)} times as much",
        ADD: f"Adding {tables}",
    }[change.action]
    others = _available(changes.per_cent[~changes.concerned])
    if len(others) == 0:
        return f"{subject} changes nothing: there are no other tables."
    if not is_noticeable(others):
        effect = f"moves no other table by as much as {_LEAST_CHANGE} %"
    else:
        whose = "the other table" if len(others) == 1 else f"the other {len(others):,} tables"
        effect = f"makes the {changes.measure.nouns} of {whose} {describe_spread(others)}"
    return f"{subject} {effect}. {_describe_concerned(changes, budget, record_noun)}"


def describe_extremes(
    frame: pd.DataFrame, record_noun: str, measure: Measure = STANDARD_ERROR
) -> str:
    """The first and the last row of `extremes`."""
    first, last = (
        f"{row['name']} (from {measure.text(row['before'])} to "
        f"{measure.stated(row['after'], record_noun)}, {describe_change(row['change'])})"
        for row in (frame.iloc[0], frame.iloc[-1])
    )
    return f"The changes of the other tables range from {first} to {last}."


def is_noticeable(changes: np.ndarray) -> bool:
    """Whether any of the changes, in per cent, is worth telling."""
    return bool(np.any(np.abs(changes) >= _LEAST_CHANGE))


def describe_change(change: float) -> str:
    """ "23 % smaller", "4.1 % larger", "2.5 times as large", "about the same"."""
    if abs(change) < _LEAST_CHANGE:
        return "about the same"
    if change >= 100:
        return f"{rounded(1 + change / 100, 2)} times as large"
    return f"{rounded(abs(change), 2)} % {'larger' if change > 0 else 'smaller'}"


def describe_spread(changes: np.ndarray) -> str:
    """Changes in per cent: "23 % smaller (median; −31 % to −11 %)"."""
    low, median, high = np.quantile(changes, [0, 0.5, 1]).tolist()
    if _are_alike(changes):
        return describe_change(median)
    return f"{describe_change(median)} (median; {_signed(low)} % to {_signed(high)} %)"


def _frame(changes: AccuracyChanges, budget: Budget, tables: np.ndarray) -> pd.DataFrame:
    scale = changes.scale(budget)
    before, after = changes.before[tables] * scale, changes.after[tables] * scale
    return pd.DataFrame(
        {
            "table": titles(changes.workload, tables),
            "order": changes.workload.orders[tables],
            "concerned": changes.concerned[tables],
            "before": before,
            "after": after,
            "change": 100 * (after / before - 1),
        }
    )


def _describe_concerned(changes: AccuracyChanges, budget: Budget, record_noun: str) -> str:
    """A sentence about the tables that the change is about."""
    after = changes.after[changes.concerned]
    per_cent, count = _available(changes.per_cent[changes.concerned]), len(after)
    they = "It" if count == 1 else "They"
    if changes.workload_change.action == ADD:
        measure, median = changes.measure, " (median)" if count > 1 else ""
        value = measure.stated(_median(after) * changes.scale(budget), record_noun)
        return f"{they} will have a {measure.noun} of {value}{median}."
    if changes.workload_change.action == BOOST:
        own = f"Its own {changes.measure.noun} becomes" if count == 1 else "Their own become"
        return f"{own} {describe_spread(per_cent)}."
    if len(per_cent) == 0:
        return f"{they} cannot be computed from the others."
    some = they if len(per_cent) == count else f"{len(per_cent):,} of them"
    return f"{some} can be computed from the others, with errors {describe_spread(per_cent)}."


def _variances(optimum: Optimum, larger: Optimum) -> np.ndarray:
    """Mean cell variances of the tables of the larger workload by either of the two optima.

    In the units of the tables.
    """
    if optimum is larger:
        return optimum.mean_variances * larger.workload.units**2
    variances = np.full(len(larger.workload), np.inf)
    # Only if both measure the used attributes in the same way can σ² be carried over.
    own = optimum.closure.strategies
    if all(
        own.get(attribute) is strategy or attribute not in optimum.workload.used
        for attribute, strategy in larger.closure.strategies.items()
    ):
        sigma_squared = np.full(len(larger.closure), np.inf)
        residuals = row_indices(optimum.closure.members, larger.closure.members)
        sigma_squared[residuals] = optimum.solution.sigma_squared
        variances = larger.closure.variances(sigma_squared)
    tables = row_indices(optimum.workload.members, larger.workload.members)
    variances[tables] = optimum.mean_variances
    return variances * larger.workload.units**2


def _available(values: np.ndarray) -> np.ndarray:
    return values[~np.isnan(values)]


def _median(values: np.ndarray) -> float:
    return float(pd.Series(values).median())


def _are_alike(changes: np.ndarray) -> bool:
    """Whether changes in per cent are the same as far as anybody would notice."""
    spread = float(np.max(changes) - np.min(changes))
    return spread < max(0.05 * abs(float(np.median(changes))), _LEAST_CHANGE)


def _note(row: dict) -> str:
    """The change of the tables of a row for a label: "−9.1 %", "new", "not available"."""
    change = row["change"]
    if np.isnan(change):
        return "new" if np.isnan(row["before"]) else "not available"
    low, high = row.get("smallest", change), row.get("largest", change)
    alike = _are_alike(np.array([low, change, high]))
    return f"{_signed(change)} %" + ("" if alike else f" ({_signed(low)} to {_signed(high)})")


def _signed(change: float) -> str:
    """ "−9.1", "+26", "±0"."""
    if abs(change) < _LEAST_CHANGE:
        return "±0"
    return f"{'+' if change > 0 else '−'}{rounded(abs(change), 2)}"
