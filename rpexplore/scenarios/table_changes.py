"""A change of one table: coarser, without an attribute, left out, of more weight, at more budget.

Coarser tables have levels of the codebook, or levels that it could have: bands of numbers or dates,
and the most common values beside all others together.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from rpexplore.domain.attribute import Attribute
from rpexplore.domain.categories import Categories
from rpexplore.domain.domain import Domain
from rpexplore.domain.levels import Level, check_number, groups_of
from rpexplore.domain.ordered_values import Bins, Dates, Integers
from rpexplore.errors import DomainError
from rpexplore.privacy.budget import Budget
from rpexplore.scenarios.scenario import Scenario
from rpexplore.scenarios.table_settings import TableSetting
from rpexplore.scenarios.workload_changes import refuse_long, row_indices, without_rows
from rpexplore.scenarios.workload_request import TableLine
from rpexplore.workload.table_text import Table
from rpexplore.workload.workload import Workload

LEVEL, BANDS, MERGED, SEVERAL = "level", "bands", "merged", "several"
WITHOUT, LEFT_OUT, WEIGHT, BUDGET = "without", "left out", "weight", "budget"

_MOST_BANDED = 10_000  # values of an attribute that is put into bands
_BANDS = (1, 1.5, 2, 2.5, 3, 4, 5)  # times powers of ten, and the step of the values
_DATE_STEPS = ("week", "month", "quarter", "year", "5 years", "10 years")
_RARE = (0.01, 0.02, 0.05, 0.1, 0.2)  # of all records, in the values that are merged


@dataclass(frozen=True)
class TableChange:
    """A change of one table of a workload.

    action       LEVEL, BANDS, MERGED or SEVERAL: the table is coarser; WITHOUT an attribute, LEFT
                 OUT, of more WEIGHT, at more BUDGET
    text         what is done, for people: "age in “five-year” instead of single values"
    table        the attribute names of the table
    replacement  those of the table in its place, if there is one
    levels       (attribute, level) that the codebook has not got yet
    weight       of the table, if that is what changes
    budget       of all tables, if that is what changes
    """

    action: str
    text: str
    table: Table
    replacement: Table | None = None
    levels: tuple[tuple[str, Level], ...] = ()
    weight: float | None = None
    budget: Budget | None = None


# ---- Levels that a table could have in place of an attribute.


def coarser_levels(
    attribute: Attribute, current: np.ndarray, shares: np.ndarray | None
) -> list[tuple[str, Level]]:
    """(LEVEL, BANDS or MERGED; the level), those with most groups first, each grouping once.

    Args:
        attribute: As a column of the records, with the levels that it has.
        current: int64[n_values]: which cell each value is in now.
        shares: float64[n_values]: of the records that have each value, where that is public.
    """
    is_single = len(np.unique(current)) == attribute.size
    found: dict[tuple[int, ...], tuple[str, Level]] = {}
    made = [
        *((LEVEL, level) for level in attribute.all_levels),
        *((BANDS, level) for level in _bands(attribute)),
        *((MERGED, level) for level in _merged(attribute, shares) if is_single),
    ]
    taken = {level.name for level in attribute.all_levels}
    for kind, level in made:
        places = {group: place for place, group in enumerate(level.labels)}
        groups = np.array([places[group] for group in level.groups])
        n_pairs = len(np.unique(np.stack([current, groups]), axis=1).T)
        is_coarser = 1 < len(places) < n_pairs == len(np.unique(current))
        if is_coarser and (kind == LEVEL or level.name not in taken):
            found.setdefault(tuple(groups.tolist()), (kind, level))
    return sorted(found.values(), key=lambda one: -len(one[1].labels))


def _bands(attribute: Attribute) -> Iterator[Level]:
    values = attribute.values
    if attribute.size > _MOST_BANDED:
        return
    stated: dict[str, str | int] = {}
    if isinstance(values, Dates):
        stated = {f"by {step}": step for step in _DATE_STEPS}
    elif isinstance(values, Integers | Bins):
        step, span = 1.0, 0.0
        if isinstance(values, Integers):
            step, span = values.step, values.maximum - values.minimum
        else:
            step, span = min(np.diff(values.edges)), values.edges[-1] - values.edges[0]
        units = {10.0**power for power in range(16)}
        units |= {unit * step for unit in units}
        widths = {band * unit for band in _BANDS for unit in units}
        usable = (width for width in widths if step < width <= span and width.is_integer())
        stated = {f"bands of {int(width)}": int(width) for width in sorted(usable)}
    for name, width in stated.items():
        with suppress(DomainError):  # it would split values, or a name is taken
            yield Level(name, groups_of(name, width, values))


def _merged(attribute: Attribute, shares: np.ndarray | None) -> Iterator[Level]:
    if shares is None or not isinstance(attribute.values, Categories):
        return
    labels = attribute.labels()
    other = "other values" if "other values" not in labels else "all other values"
    rarest = np.argsort(shares, kind="stable")
    together = np.cumsum(shares[rarest])
    for count in dict.fromkeys(np.searchsorted(together, _RARE, "right").tolist()):
        if 2 <= count < attribute.size:
            rare = set(rarest[:count].tolist())
            groups = [other if place in rare else label for place, label in enumerate(labels)]
            with suppress(DomainError):
                yield Level(f"{attribute.size - count} most common", tuple(groups))


def with_new_levels(domain: Domain, levels: Sequence[tuple[str, Level]]) -> Domain:
    """The domain of the records whose attributes have these levels as well.

    Raises `DomainError` where an attribute would have too many.
    """
    records = domain.of_records
    if not levels:
        return records
    attributes = []
    for attribute in records:
        own = [level for name, level in levels if name == attribute.name]
        if own:
            check_number(len(attribute.all_levels) + len(own), attribute.size)
            attribute = replace(attribute, levels=(*attribute.levels, *own))
        attributes.append(attribute)
    return records.with_attributes(attributes)


# ---- The tables, and the scenario, after a change.


def changed_tables(workload: Workload, change: TableChange) -> Workload:
    """The tables after a change; a table in place of another one has its weight and target."""
    row = workload.position(change.table)
    if change.weight is not None:
        return workload.with_weights({change.table: change.weight})
    if change.action not in (LEVEL, BANDS, MERGED, SEVERAL, WITHOUT, LEFT_OUT):
        return workload
    if change.replacement is None:
        return without_rows(workload, np.array([row]))
    return replaced_tables(workload, {row: change.replacement}, change.levels)


def replaced_tables(
    workload: Workload, replacements: Mapping[int, Table], levels: Sequence[tuple[str, Level]]
) -> Workload:
    """The tables with others in place of some, which have their weights and targets.

    replacements: by row, all different, and none of them a table that is there; levels: (attribute,
    level) that the codebook has not got yet
    """
    known, rows = workload.domain, list(replacements)
    if levels or any(name not in known for table in replacements.values() for name in table):
        known = with_new_levels(known, levels).with_levels
    replaced = Workload.of(
        known,
        list(replacements.values()),
        weights=workload.weights[rows].tolist(),
        targets=[None if np.isnan(one) else one for one in workload.targets[rows].tolist()],
        required=workload.required[rows].tolist(),
    )
    if len(rows) == len(workload):
        return replaced
    return over(without_rows(workload, np.array(rows)), known) | replaced


def rows_after(before: Workload, after: Workload) -> np.ndarray:
    """The row of each table of `before` in the changed tables, int64[n]; −1: it is not there."""
    return row_indices(_moved(before, after.domain), after.members)


def over(workload: Workload, known: Domain) -> Workload:
    """The same tables over the same attributes with more levels."""
    if known.names == workload.domain.names:
        return workload
    bases = dict(zip(workload.domain.names, workload.bases, strict=True))
    return replace(
        workload,
        domain=known,
        members=_moved(workload, known),
        bases=tuple(bases.get(name, ()) for name in known.names),
    )


def _moved(workload: Workload, known: Domain) -> np.ndarray:
    """Members as indices of a domain with more levels, which come in the same order."""
    index = np.array([*(known.position(name) for name in workload.domain.names), -1], np.int32)
    return index[workload.members]


def changed_by(scenario: Scenario, change: TableChange) -> Scenario:
    """The scenario after a change of one of its tables; `change.budget` is that of all parts.

    Raises `WorkloadError` where only a list can ask for the tables, and it would be too long.
    """
    if change.budget is not None:
        return scenario.replaced(budget=change.budget)
    workload = scenario.workload
    row = workload.position(change.table)
    targets, which = scenario.request.targets(workload)
    target = targets[which[row]] if which[row] >= 0 else None
    if change.weight is not None:
        return scenario.with_settings([TableSetting(change.table, change.weight, target)])
    tables = changed_tables(workload, change).tables
    refuse_long(len(tables))
    if change.levels:
        domain = with_new_levels(scenario.domain, change.levels)
        scenario = scenario.replaced(domain=domain)
    changed = scenario.with_lines([TableLine("listed", listed=tuple(tables))])
    if change.replacement is None or scenario.request.smooth_weights is not None:
        return changed
    weight = float(workload.weights[row])
    return changed.with_settings([TableSetting(change.replacement, weight, target)])


def changed_together(
    scenario: Scenario, replacements: Mapping[Table, Table], levels: Sequence[tuple[str, Level]]
) -> Scenario:
    """The scenario with other tables in place of some, which have their weights and targets.

    replacements: by table; levels: (attribute, level) that the codebook has not got yet
    Raises `WorkloadError` where only a list can ask for the tables, and it would be too long.
    """
    workload = scenario.workload
    targets, which = scenario.request.targets(workload)
    rows = {workload.position(old): new for old, new in replacements.items()}
    tables = replaced_tables(workload, rows, levels).tables
    refuse_long(len(tables))
    if levels:
        domain = with_new_levels(scenario.domain, levels)
        scenario = scenario.replaced(domain=domain)
    changed = scenario.with_lines([TableLine("listed", listed=tuple(tables))])
    if scenario.request.smooth_weights is not None:
        return changed
    return changed.with_settings(
        TableSetting(
            new, float(workload.weights[row]), targets[which[row]] if which[row] >= 0 else None
        )
        for row, new in rows.items()
    )
