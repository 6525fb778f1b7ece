"""Changes of the workload, tried before they are made; tables for a plan that is to be smoothed."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rpexplore.common.text import plural
from rpexplore.domain.domain import Domain
from rpexplore.domain.expected_counts import ExpectedCounts
from rpexplore.errors import WorkloadError
from rpexplore.planning.losses.losses import SumOfVariances
from rpexplore.planning.table_plan import TablePlan
from rpexplore.privacy.budget import Budget
from rpexplore.scenarios.bases import BasisChoice
from rpexplore.scenarios.scenario import Scenario
from rpexplore.scenarios.table_settings import GroupSetting, TableSetting
from rpexplore.scenarios.workload_request import TableLine, WorkloadRequest
from rpexplore.workload.attribute_sets import attribute_sets
from rpexplore.workload.bases import Hierarchy
from rpexplore.workload.preset_roles import RoleMatch
from rpexplore.workload.presets import GEOGRAPHY, Preset
from rpexplore.workload.smooth_weights import SmoothWeights, missing_small_tables
from rpexplore.workload.table_text import Table, titles
from rpexplore.workload.targets import Target
from rpexplore.workload.workload import Workload

# ---- A change of the workload by a group of its tables, tried before it is made.


LEAVE_OUT, BOOST, ADD = "leave_out", "boost", "add"
PAST = {LEAVE_OUT: "left out", BOOST: "counted differently", ADD: "added"}
MOST_LISTED = 2000  # tables that a list names, or that get a weight one by one


@dataclass(frozen=True)
class WorkloadChange:
    """A change of the workload.

    action      LEAVE_OUT, BOOST (the tables count `factor` times as much) or ADD
    containing  of the tables with all of these attributes; (): of any
    order       and with exactly so many attributes; None: any number (ADD needs one)
    """

    action: str
    containing: Table = ()
    order: int | None = None
    factor: float = 2.0


def rows_of(workload: Workload, change: WorkloadChange) -> np.ndarray:
    """Rows of the tables that a change is about, ascending, int64[n]."""
    rows = workload.containing(change.containing)
    if change.order is None:
        return rows
    return rows[workload.orders[rows] == change.order]


def changed_workload(scenario: Scenario, change: WorkloadChange) -> Workload:
    """The changed tables, with their weights and targets.

    Raises `WorkloadError` where there is nothing to change, or nothing would be left.
    """
    workload = scenario.workload
    if change.action == ADD:
        return workload | _added(scenario, change)
    rows = rows_of(workload, change)
    if len(rows) == 0:
        raise WorkloadError("There is no such table; choose other attributes.")
    if change.action == BOOST:
        if scenario.loss.compares_with_targets:
            raise WorkloadError(
                "The plan compares each table with its target, and weight has no effect; "
                "choose smaller targets on the Tables page instead."
            )
        weights = workload.weights.copy()
        weights[rows] *= change.factor
        return replace(workload, weights=weights)
    if len(rows) == len(workload):
        raise WorkloadError("That would leave no table; leave out fewer.")
    return without_rows(workload, rows)


def without_rows(workload: Workload, rows: np.ndarray) -> Workload:
    """The workload without the tables in these rows, which are not all."""
    left = np.delete(np.arange(len(workload)), rows)
    width = int(np.max(workload.orders[left]))  # the largest tables may be gone
    return replace(
        workload,
        members=workload.members[left, :width],
        weights=workload.weights[left],
        targets=workload.targets[left],
        basis_index=workload.basis_index[left, :width],
        required=workload.required[left],
    )


def changed_scenario(scenario: Scenario, change: WorkloadChange, workload: Workload) -> Scenario:
    """The scenario that asks for the changed workload, as simply as it can be asked for.

    Raises `WorkloadError` where only a list can, and it would be too long to work with.
    """
    if change.action == BOOST:
        return _boosted(scenario, change, workload)
    for request in _short_requests(scenario.request, change, scenario.domain.names):
        try:
            requested = request.workload(scenario.domain)
        except WorkloadError:
            continue
        if requested.has_tables_of(workload):
            return scenario.replaced(request=request)
    refuse_long(len(workload))
    return scenario.with_lines([TableLine("listed", listed=tuple(workload.tables))])


def describe_tables(workload: Workload, change: WorkloadChange) -> str:
    """The tables that a change is about: "the 45 tables with region", "the table age × sex"."""
    rows = rows_of(workload, change)
    if len(rows) == 1:
        (name,) = titles(workload, rows)
        return f"the table {name}" if workload.orders[rows[0]] else "the total"
    text = f"the {len(rows):,} tables"
    if change.order is not None:
        text += f" of {plural(change.order, 'attribute')}"
    if change.containing:
        text += f" with {' and '.join(change.containing)}"
    return text


def row_indices(rows: np.ndarray, among: np.ndarray) -> np.ndarray:
    """The index of each row among others, int64[len(rows)]; −1 where there is none.

    rows, among: distinct rows of ascending attribute indices, padded at the end with −1.
    """
    width = max(rows.shape[1], among.shape[1], 1)
    both = np.full((len(among) + len(rows), width), -1, dtype=np.int32)
    both[: len(among), : among.shape[1]] = among
    both[len(among) :, : rows.shape[1]] = rows
    order = np.lexsort(both.T[::-1])  # stable: of two equal rows, that of `among` comes first
    first, second = order[:-1], order[1:]
    same = np.all(both[first] == both[second], axis=1)
    indices = np.full(len(rows), -1, dtype=np.int64)
    indices[second[same] - len(among)] = first[same]
    return indices


def refuse_long(count: int) -> None:
    """Raise `WorkloadError` for more tables than can be named one by one."""
    if count > MOST_LISTED:
        raise WorkloadError(
            f"That would name {count:,} tables one by one, and at most {MOST_LISTED:,} can be; "
            "change them as a group on the Tables page."
        )


def rows_of_line(scenario: Scenario, line: TableLine) -> np.ndarray:
    """The rows of a line's tables in the scenario's workload, int64[n], ascending."""
    workload = scenario.workload
    if not scenario.request.more:
        return np.arange(len(workload))
    # Levels stand behind the attributes, so that indices are the same with and without them.
    members = scenario.request.weighted(line.tables(scenario.domain)).members
    return np.sort(row_indices(members, workload.members))


def with_line_settings(
    scenario: Scenario, number: int, *, of_weight: bool, given: float | Target | None
) -> Scenario:
    """A copy in which all tables of a line have this weight, or this target.

    number: of the line. of_weight: whether a weight is given, and not a target; None: 1, or none

    The only line is set as a group, others table by table. Raises `WorkloadError` for too many.
    """
    request, line = scenario.request, scenario.request.lines[number]
    changes: dict[str, Any] = {"weight" if of_weight else "target": given}
    if request.more or line.kind == "listed":
        rows = rows_of_line(scenario, line)
        refuse_long(len(rows))
        present = {setting.attributes: setting for setting in request.settings}
        tables = [scenario.workload.tables[row] for row in rows.tolist()]
        return scenario.with_settings(
            replace(present.get(table, TableSetting(table)), **changes) for table in tables
        )
    cleared: dict[str, Any] = {"weight": None, "factor": None} if of_weight else {"target": None}
    groups = (
        replace(group, **cleared) if group.containing == line.containing else group
        for group in request.groups
    )
    cleared.pop("factor", None)
    settings = (replace(setting, **cleared) for setting in request.settings)
    left = scenario.with_request(
        groups=tuple(group for group in groups if not group.is_plain),
        settings=tuple(setting for setting in settings if not setting.is_plain),
    )
    group = GroupSetting(line.containing, **changes)
    return left if group.is_plain else left.with_group(group)


def with_preset_tables(
    scenario: Scenario, preset: Preset, matches: Mapping[str, RoleMatch]
) -> Scenario:
    """A copy with the tables of a preset as well, in a line of their own.

    Areas that lie in groups are counted at every level. Raises `WorkloadError` for matches that
    cannot be, if the tables are there already, or for too many.
    """
    tables = preset.fitted_marginals(scenario.domain, matches)
    # What a table is called without its weights.
    known = {
        frozenset(table) - {scenario.request.weighted_by} for table in scenario.workload.tables
    }
    new = [table for table in tables if frozenset(table) not in known]
    if not new:
        raise WorkloadError("The tables of the preset are there already; nothing is to be added.")
    refuse_long(len(known) + len(new))
    choices, area = scenario.request.basis_choices, matches.get(GEOGRAPHY.key)
    if (
        area is not None
        and scenario.domain[area.attribute].groups
        and all(choice.attribute != area.attribute for choice in choices)
    ):
        choices = (*choices, BasisChoice(area.attribute, Hierarchy(), tuple(new)))
    line = TableLine("listed", listed=tuple(new))
    return scenario.with_request(more=(*scenario.request.more, line), basis_choices=choices)


def _added(scenario: Scenario, change: WorkloadChange) -> Workload:
    """The tables of that kind that are not there yet."""
    if change.order is None:
        raise WorkloadError("Say how many attributes the added tables have.")
    orders = range(change.order, change.order + 1)
    members = attribute_sets(scenario.domain, orders, containing=change.containing)
    if scenario.request.weighted_by and len(members):
        members = scenario.request.weighted(_bare(scenario.domain, members)).members
    members = members[row_indices(members, scenario.workload.members) < 0]
    if len(members) == 0:
        raise WorkloadError("The workload has all of these tables already.")
    bare = _bare(scenario.domain, members)
    return scenario.request.settled(scenario.request.with_bases(bare))


def _bare(domain: Domain, members: np.ndarray) -> Workload:
    return Workload(domain, members, np.ones(len(members)), np.full(len(members), np.nan))


def _boosted(scenario: Scenario, change: WorkloadChange, workload: Workload) -> Scenario:
    if change.order is None:
        group = GroupSetting(change.containing, factor=change.factor)
        return scenario.with_group(group)
    rows = rows_of(workload, change)
    refuse_long(len(rows))
    return scenario.with_settings(
        TableSetting(workload.tables[row], weight=float(workload.weights[row]))
        for row in rows.tolist()
    )


def _short_requests(
    request: WorkloadRequest, change: WorkloadChange, names: Sequence[str]
) -> Iterator[WorkloadRequest]:
    """Requests that may give the changed workload without naming each table."""
    if request.kind in ("up_to", "of_order"):
        step = 1 if change.action == ADD else -1
        yield replace(request, order=max(request.order + step, 0))
        yield replace(request, kind="up_to", order=change.order or 0)
    if change.action == LEAVE_OUT and len(change.containing) == 1:
        only = [name for name in request.only or names if name not in change.containing]
        yield replace(request, only=tuple(only))


# ---- A scenario whose plan is to be smoothed: its weights, and the small tables that it needs.


def for_smooth_tables(scenario: Scenario, weights: SmoothWeights | None = None) -> Scenario:
    """A copy with the weights for smooth tables, in place of those of groups and single tables.

    weights: those of a first release; None: those of the expected counts

    Tables of 1 and 2 attributes within the others are added, and the objective is the average
    error with equal weight per table, which the weights are made for. Targets stay.

    Raises `WorkloadError` without expected counts, if so many tables cannot be named, or for tables
    that have no such weights.
    """
    weights = weights or smooth_weights(scenario)
    request = _with_small_tables(scenario.request, scenario.workload)
    groups = (replace(group, weight=None, factor=None) for group in request.groups)
    settings = (replace(setting, weight=None) for setting in request.settings)
    request = replace(
        request,
        smooth_weights=weights,
        groups=tuple(group for group in groups if not group.is_plain),
        settings=tuple(setting for setting in settings if not setting.is_plain),
    )
    changed = scenario.replaced(request=request, loss=SumOfVariances())
    _ = changed.workload  # which has the weights, or refuses them
    return changed


def smooth_weights(scenario: Scenario, budget: Budget | None = None) -> SmoothWeights:
    """The weights for smooth tables at a scenario's budget and expected number of records.

    budget: of its tables, if they have a share of it only
    """
    if scenario.expected is None:
        raise WorkloadError(
            "Weights for smooth tables depend on how many records there will be, about; type an "
            "expected number."
        )
    return smooth_weights_for(budget or scenario.budget, scenario.expected)


def weights_are_outdated(scenario: Scenario) -> bool:
    """Whether the budget or the expected number of records has changed since the weights were set.

    Those of a first release have their number of records from there. Best shares of several
    sections follow from the weights themselves, so that the budget says nothing then.
    """
    weights = scenario.request.smooth_weights
    if weights is None or "tables" not in scenario.kinds:
        return False
    if len(scenario.kinds) > 1 and scenario.stated_shares is None:
        expected = scenario.expected
        return weights.pairs is None and expected is not None and weights.records != expected.total
    budget = scenario.budget_to_solve("tables")
    if weights.pairs is not None:
        return weights.rho != float(budget.record_privacy_cost) / 2
    return scenario.expected is not None and smooth_weights(scenario, budget) != replace(
        weights, by_cell=0.0
    )


def smooth_weights_for(budget: Budget, expected: ExpectedCounts) -> SmoothWeights:
    """The weights for smooth tables at a budget and an expected number of records."""
    return at_budget(SmoothWeights(1.0, expected.total), budget)


def at_budget(weights: SmoothWeights, budget: Budget) -> SmoothWeights:
    """The same weights at a budget, such as the share that tables have beside other parts."""
    # Noise is that of the budget for a record, whoever it belongs to.
    return replace(weights, rho=float(budget.record_privacy_cost) / 2)


def budget_of_tables(
    whole: Budget, plan_by_whole: Callable[[], TablePlan | None], *, are_alone: bool
) -> Budget | None:
    """The budget at which weights for smooth tables are set.

    Beside other parts tables have a share of it, and of a stated ε what their noise costs: as in
    the plan by weights for the whole budget.

    Args:
        plan_by_whole: The tables of that plan; None where there is none yet.
        are_alone: Whether nothing is released beside the tables.
    """
    if are_alone and whole.stated_epsilon is None:
        return whole
    planned = plan_by_whole()
    return None if planned is None else planned.budget


def describe_added(before: Workload, after: Workload) -> str:
    """Which tables smooth tables need beside those there were, in a sentence; "" if none."""
    added = len(after) - len(before)
    if added == 0:
        return ""
    are, they = ("is", "It is") if added == 1 else ("are", "They are")
    return (
        f"{plural(added, 'smaller table')} {are} added. {they} measured in any case, within the "
        "larger tables."
    )


def _with_small_tables(request: WorkloadRequest, workload: Workload) -> WorkloadRequest:
    """The request with all tables of 1 and 2 attributes within its tables."""
    missing = missing_small_tables(workload)
    if not missing:
        return request
    if request.kind == "of_order" and not (request.containing or request.more):
        return replace(request, kind="up_to")
    refuse_long(len(workload) + len(missing))
    return request.with_lines(
        [TableLine("listed", listed=(*workload.tables, *map(tuple, missing)))]
    )
