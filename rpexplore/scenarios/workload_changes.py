"""A change of the workload by a group of its tables, tried before it is made."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rpexplore.common.formatting import plural
from rpexplore.errors import WorkloadError
from rpexplore.scenarios.scenario import Scenario
from rpexplore.scenarios.table_settings import GroupSetting, TableSetting
from rpexplore.scenarios.workload_request import WorkloadRequest
from rpexplore.workload.attribute_sets import attribute_sets
from rpexplore.workload.table_text import Table
from rpexplore.workload.table_titles import titles
from rpexplore.workload.workload import Workload

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


def rows_of(workload: Workload, workload_change: WorkloadChange) -> np.ndarray:
    """Rows of the tables that a change is about, ascending, int64[n]."""
    rows = workload.containing(workload_change.containing)
    return (
        rows
        if workload_change.order is None
        else rows[workload.orders[rows] == workload_change.order]
    )


def changed_workload(scenario: Scenario, workload_change: WorkloadChange) -> Workload:
    """The tables as wished, with their weights and targets.

    Raises `WorkloadError` where there is nothing to change, or nothing would be left.
    """
    workload = scenario.workload
    if workload_change.action == ADD:
        return workload | _added(scenario, workload_change)
    rows = rows_of(workload, workload_change)
    if len(rows) == 0:
        raise WorkloadError("The workload has no such table; choose others.")
    if workload_change.action == BOOST:
        if scenario.loss.compares_with_targets:
            raise WorkloadError(
                "The plan compares each table with its target, and weight has no effect; "
                "choose smaller targets on the Tables page instead."
            )
        weights = workload.weights.copy()
        weights[rows] *= workload_change.factor
        return replace(workload, weights=weights)
    if len(rows) == len(workload):
        raise WorkloadError("That would leave no table; leave out fewer.")
    members = np.delete(workload.members, rows, axis=0)
    width = int(np.max(np.count_nonzero(members >= 0, axis=1)))  # the largest tables may be gone
    return Workload(
        workload.domain,
        members[:, :width],
        np.delete(workload.weights, rows),
        np.delete(workload.targets, rows),
        workload.bases,
        np.delete(workload.basis_index, rows, axis=0)[:, :width],
        np.delete(workload.required, rows),
    )


def changed_scenario(
    scenario: Scenario, workload_change: WorkloadChange, workload: Workload
) -> Scenario:
    """The scenario that asks for the changed workload, as simply as it can be asked for.

    Raises `WorkloadError` where only a list can, and it would be too long to work with.
    """
    if workload_change.action == BOOST:
        return _boosted(scenario, workload_change, workload)
    for request in _short_requests(scenario.request, workload_change, scenario.domain.names):
        try:
            asked_for = request.workload(scenario.domain)
        except WorkloadError:
            continue
        if asked_for.has_tables_of(workload):
            return scenario.replaced(request=request)
    refuse_long(len(workload))
    listed = tuple(_names(workload, row) for row in range(len(workload)))
    return scenario.with_request(kind="listed", listed=listed)


def describe_tables(workload: Workload, workload_change: WorkloadChange) -> str:
    """The tables that a change is about: "the 45 tables with region", "the table age × sex"."""
    rows = rows_of(workload, workload_change)
    if len(rows) == 1:
        (name,) = titles(workload, rows)
        return f"the table {name}" if workload.orders[rows[0]] else "the total"
    which = (
        f" with {' and '.join(workload_change.containing)}" if workload_change.containing else ""
    )
    size = (
        "" if workload_change.order is None else f" of {plural(workload_change.order, 'attribute')}"
    )
    return f"the {len(rows):,} tables{size}{which}"


def places_of(rows: np.ndarray, among: np.ndarray) -> np.ndarray:
    """Where each row stands among others, int64[len(rows)]; −1 where it does not.

    rows, among: distinct rows of ascending attribute places, padded at the end with −1.
    """
    width = max(rows.shape[1], among.shape[1], 1)
    both = np.full((len(among) + len(rows), width), -1, dtype=np.int32)
    both[: len(among), : among.shape[1]] = among
    both[len(among) :, : rows.shape[1]] = rows
    order = np.lexsort(both.T[::-1])  # stable: of two equal rows, that of `among` comes first
    first, second = order[:-1], order[1:]
    same = np.all(both[first] == both[second], axis=1)
    found = np.full(len(rows), -1, dtype=np.int64)
    found[second[same] - len(among)] = first[same]
    return found


def refuse_long(count: int) -> None:
    """Raise `WorkloadError` for more tables than can be named one by one."""
    if count > MOST_LISTED:
        raise WorkloadError(
            f"That would name {count:,} tables one by one, and at most {MOST_LISTED:,} can be; "
            "change them as a group on the Tables page."
        )


def _added(scenario: Scenario, workload_change: WorkloadChange) -> Workload:
    """The tables of that kind that are not there yet."""
    if workload_change.order is None:
        raise WorkloadError("Say how many attributes the added tables have.")
    domain, there = scenario.domain, scenario.workload.members
    orders = range(workload_change.order, workload_change.order + 1)
    members = attribute_sets(domain, orders, containing=workload_change.containing)
    members = members[places_of(members, there) < 0]
    if len(members) == 0:
        raise WorkloadError("The workload has all of these tables already.")
    bare = Workload(domain, members, np.ones(len(members)), np.full(len(members), np.nan))
    return scenario.request.settled(scenario.request.with_bases(bare))


def _boosted(scenario: Scenario, workload_change: WorkloadChange, workload: Workload) -> Scenario:
    if workload_change.order is None:
        return scenario.with_group(
            GroupSetting(workload_change.containing, factor=workload_change.factor)
        )
    rows = rows_of(workload, workload_change)
    refuse_long(len(rows))
    return scenario.with_settings(
        TableSetting(_names(workload, row), weight=float(workload.weights[row]))
        for row in rows.tolist()
    )


def _short_requests(
    request: WorkloadRequest, workload_change: WorkloadChange, names: Sequence[str]
) -> Iterator[WorkloadRequest]:
    """What may ask for the changed workload without naming each table."""
    if request.kind in ("up_to", "of_order"):
        step = 1 if workload_change.action == ADD else -1
        yield replace(request, order=max(request.order + step, 0))
        yield replace(request, kind="up_to", order=workload_change.order or 0)
    if workload_change.action == LEAVE_OUT and len(workload_change.containing) == 1:
        only = tuple(
            name for name in request.only or names if name not in workload_change.containing
        )
        yield replace(request, only=only)


def _names(workload: Workload, row: int) -> Table:
    return tuple(workload.domain.names[place] for place in workload.attribute_indices(row))
