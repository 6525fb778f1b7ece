"""Combined tables in areas: the best answers in every area from several releases.

Residuals of different attribute sets have independent noise in every release, so each is combined
by itself: in an area, what releases measured of it is averaged by accuracy and their precisions
add; then areas and the sums of their parts are reconciled as in one release (docs/mathematics.md
§10, §15.2).
"""

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet

from rpexplore.common.numbers import read_only, shown
from rpexplore.common.processes import Progress, in_order, no_progress
from rpexplore.domain.area_tree import AreaRange, AreaTree
from rpexplore.domain.domain import AttributeIndices, Domain, difference_of_cells
from rpexplore.errors import ReleaseError
from rpexplore.planning.areas.area_design import AreaDesign
from rpexplore.planning.areas.area_groups import AreaGroups
from rpexplore.planning.areas.area_plan import AreaPlan
from rpexplore.planning.areas.area_workload import AreaWorkload
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.releases.area_files import (
    area_files,
    residual_file,
    tables_of_empty,
    tables_of_part,
    write_empty,
    write_table,
)
from rpexplore.releases.area_measurement import AreaAnswers
from rpexplore.releases.area_parts import AreaParts
from rpexplore.releases.area_release import TablesInAreas
from rpexplore.releases.manifest import CheckedFolder
from rpexplore.releases.measurement import measured_shape
from rpexplore.results.combined_sources import Combined, MeasuredRelease, joint_domain
from rpexplore.results.combined_tables import common_strategies
from rpexplore.workload.workload import Workload


@dataclass(frozen=True, eq=False, repr=False)
class CombinedAreas(Combined, TablesInAreas):
    """The tables in areas of several releases, each answered by all that they measured.

    Tables are those of any of the releases, by single values, in the areas for which one of them
    was asked for them. What is read of them, if they were not written yet, lies in a temporary
    folder as long as this value.

    Raises `ReleaseError` for areas that cannot be combined.
    """

    releases: tuple[MeasuredRelease, ...]
    given_folder: CheckedFolder | None = None

    def __post_init__(self) -> None:
        _ = self.plan

    @cached_property
    def plan(self) -> AreaDesign:  # pyright: ignore[reportIncompatibleVariableOverride]
        return combined_design(self.releases)

    @property
    def named(self) -> Path:
        return self.folder if self.given_folder is None else self.given_folder.home

    @cached_property
    def answers_in_areas(self) -> "CombinedAnswers":
        return CombinedAnswers(self.parts, self.releases)

    @property
    def folder(self) -> Path:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self._temporary_folder if self.given_folder is None else self.given_folder.path

    @cached_property
    def checked(self) -> CheckedFolder | Path:
        return self._temporary_folder if self.given_folder is None else self.given_folder

    @cached_property
    def _temporary_folder(self) -> Path:
        self.write(Path(self._temporary.name))
        return Path(self._temporary.name)

    @cached_property
    def _temporary(self) -> "tempfile.TemporaryDirectory[str]":
        return tempfile.TemporaryDirectory(prefix="rpexplore-combined-")

    @property
    def n_cells(self) -> float:
        workload = self.plan.workload
        of_kinds = [float(np.sum(asked.cells)) for asked in workload.workloads]
        empty = [
            len(workload.tree.empty_on(level)) * float(workload.tables.exact_cells[table])
            for level, table in tables_of_empty(self.plan)
        ]
        return float(np.array(of_kinds) @ workload.areas_asked) + sum(empty)

    def files(self) -> dict[str, list[str]]:
        """The files of all tables, and the attributes of the table in each."""
        files = area_files(self.parts).items()
        return {path: attributes for path, attributes in files if attributes is not None}

    def write(self, folder: Path, on_progress: Progress = no_progress) -> None:
        """Write all tables, a part after another."""
        for parent in {Path(path).parent for path in self.files()}:
            (folder / parent).mkdir(parents=True, exist_ok=True)
        n_parts = len(self.parts.areas)
        for part in range(n_parts):
            on_progress("Writing the tables in areas", part / n_parts)
            of_part = self.answers_in_areas.of_part(part)
            with closing(
                in_order(
                    lambda at, of_part=of_part, part=part: write_table(of_part, part, *at, folder),
                    list(tables_of_part(self.parts, part)),
                )
            ) as done:
                for _ in done:
                    pass
        for level, table in tables_of_empty(self.plan):
            write_empty(self.plan, level, table, folder)


# ---- What is known of every area from all releases together.


def combined_design(releases: Sequence[MeasuredRelease]) -> AreaDesign:
    """Tables of all releases, and the sum of their precisions for each residual in each area.

    Raises `ReleaseError` for releases of other areas or cells, or that measured an attribute by
    other strategies or at other levels.
    """
    plans = [release.plan.part("areas") for release in releases]
    names = [release.source.name for release in releases]
    domain = _domain_of(plans, names)
    workload, groups = _workload_of(plans, domain)
    closure = Closure.of(workload.tables)
    own_numbers = [_own_numbers(closure, domain, *one) for one in zip(plans, names, strict=True)]
    strategies = common_strategies(
        {number: domain.names[_attribute_of(closure, domain, number)] for number in own_numbers[0]},
        (
            (number, plan.closure.strategies.get(own), name)
            for plan, name, numbers in zip(plans, names, own_numbers, strict=True)
            for number, own in numbers.items()
            if own is not None
        ),
    )
    if strategies:
        closure = closure.with_strategies(workload.tables, strategies)
    first = np.flatnonzero(np.diff(groups.of_area, prepend=-1))
    of_groups = [plan.groups.of_area[first] for plan in plans]
    # Residuals whose precisions are proportional everywhere are one profile: those that each
    # release measured by one profile of its own, with factors that have the same ratio.
    profiles: dict[tuple[Any, ...], int] = {}
    of_residual, factors, multiples, exact_levels = [], [], [], []
    for residual in range(len(closure)):
        attributes = closure.attributes(residual)
        having = [
            (index, plan, own[0])
            for index, plan in enumerate(plans)
            if (own := _own_residual(attributes, own_numbers[index], plan)) is not None
        ]
        factor = int(having[0][1].factors[having[0][2]])
        weights = {
            index: plan.unit * Fraction(int(plan.factors[own]), factor)
            for index, plan, own in having
        }
        key = tuple(
            (index, int(plan.of_residual[own]), weights[index]) for index, plan, own in having
        )
        if key not in profiles:
            profiles[key] = len(profiles)
            total = np.sum(
                [
                    float(weights[index]) * plan.multiples[plan.of_residual[own], of_groups[index]]
                    for index, plan, own in having
                ],
                axis=0,
            )
            # What one of them counted exactly needs no average.
            levels = max(int(plan.exact_levels[plan.of_residual[own]]) for _, plan, own in having)
            total[groups.above(levels)] = 0
            multiples.append(total)
            exact_levels.append(levels)
        of_residual.append(profiles[key])
        factors.append(factor)
    return AreaDesign(
        workload=workload,
        groups=groups,
        closure=closure,
        of_residual=read_only(np.array(of_residual)),
        factors=read_only(np.array(factors)),
        multiples=read_only(np.array(multiples)),
        exact_levels=read_only(np.array(exact_levels)),
        unit=Fraction(1),
    )


def _domain_of(plans: Sequence[AreaPlan], names: Sequence[str]) -> Domain:
    first = plans[0]
    for plan, name in zip(plans[1:], names[1:], strict=True):
        if _unnamed(first.workload.tree).sha256 != _unnamed(plan.workload.tree).sha256:
            raise ReleaseError(
                f"{names[0]!r} and {name!r} have tables in different areas, and what is known of "
                "other areas cannot be averaged; combine only releases that were planned with the "
                "same list of areas, and the same ones empty."
            )
        if code := _read_otherwise(first.workload.tree, plan.workload.tree):
            raise ReleaseError(
                f"What records call {shown(code)!r} was counted as one area in {names[0]!r} and as "
                f"another one in {name!r}; combine only releases that recode areas alike."
            )
        if difference := difference_of_cells(first.domain, plan.domain):
            raise ReleaseError(
                f"The tables in areas of {names[0]!r} and {name!r} {difference}; combine only what "
                "was planned with the same codebook."
            )
    return joint_domain([plan.domain for plan in plans])


def _own_numbers(
    closure: Closure, domain: Domain, plan: AreaDesign, name: str
) -> dict[int, int | None]:
    """What a release calls the attributes and blocks of a closure by; None for what it has not.

    Raises `ReleaseError` where its tables have an attribute at other levels than the closure.
    """
    used = {plan.domain.names[index]: index for index in plan.workload.tables.used}
    for own in used.values():
        attribute = plan.domain.attributes[own]
        if attribute.index_of_values != domain[attribute.name].index_of_values:
            raise ReleaseError(
                f"{attribute.name!r} has other groups for {name!r} than for a release before it, "
                "so that they do not count the same; combine only what was planned with the same "
                "levels."
            )
    own_trees = {plan.domain.names[tree.column]: tree for tree in plan.closure.trees}
    found: dict[int, int | None] = {
        index: used.get(domain.names[index])
        for index in np.unique(closure.members).tolist()
        if 0 <= index < len(domain)
    }
    for tree in closure.trees:
        column = domain.names[tree.column]
        of_column = [own for own in used.values() if plan.domain.columns[own] == tree.column]
        if not of_column:
            found |= dict.fromkeys(tree.numbers)
            continue
        own_tree = own_trees.get(column)
        numbers = () if own_tree is None else own_tree.numbers
        if len(numbers) != len(tree.numbers) or any(
            not np.array_equal(
                closure.blocks[number].index_of_values, plan.closure.blocks[own].index_of_values
            )
            for number, own in zip(tree.numbers, numbers, strict=True)
        ):
            at = ", ".join(domain.names[index] for index in sorted(tree.of_tables))
            raise ReleaseError(
                f"The tables of {name!r} have {column!r} at other levels than all releases "
                f"together ({at}), so that it was measured by other groups, and such measurements "
                "cannot be averaged; combine only releases with the same levels of it."
            )
        found |= dict(zip(tree.numbers, numbers, strict=True))
    return found


def _attribute_of(closure: Closure, domain: Domain, number: int) -> int:
    """The attribute that a number of a closure stands for; of a block, that whose values it has."""
    return number if number < len(domain) else closure.blocks[number].column


def _own_residual(
    attributes: AttributeIndices, numbers: Mapping[int, int | None], plan: AreaDesign
) -> tuple[int, list[int]] | None:
    """The residual of a release's plan on these attributes and blocks; None without one.

    And which of its axes each of them is.
    """
    own = [number for index in attributes if (number := numbers[index]) is not None]
    residual = plan.closure.find(sorted(own)) if len(own) == len(attributes) else None
    return None if residual is None else (residual, np.argsort(np.argsort(own)).tolist())


def _unnamed(tree: AreaTree) -> AreaTree:
    """The same areas, empty ones among them, whatever people and records call them."""
    empty = None if tree.empty is None else replace(tree.empty, names=None)
    return replace(tree, names=None, empty=empty, recodes=None)


def _read_otherwise(left: AreaTree, right: AreaTree) -> str | None:
    """A code that two trees of the same areas recode to different ones; None if there is none."""
    recodes = [
        {}
        if one.recodes is None
        else {
            (int(one.level_of[area]), code): area
            for area, code in zip(
                one.recodes.areas.tolist(), one.recodes.codes.to_pylist(), strict=True
            )
        }
        for one in (left, right)
    ]
    both = recodes[0].keys() & recodes[1].keys()
    return next((key[1] for key in sorted(both) if recodes[0][key] != recodes[1][key]), None)


def _workload_of(plans: Sequence[AreaPlan], domain: Domain) -> tuple[AreaWorkload, AreaGroups]:
    """In each area the tables that any release was asked for; areas that all of them take alike."""
    kinds = np.zeros(plans[0].workload.tree.n_areas, dtype=np.int64)
    asked: list[tuple[int, ...]] = [()]
    for plan in plans:
        n_kinds = len(plan.workload.workloads) + 1
        pairs, kinds = np.unique(kinds * n_kinds + plan.workload.kinds + 1, return_inverse=True)
        asked = [(*asked[pair // n_kinds], pair % n_kinds - 1) for pair in pairs.tolist()]
    workloads, numbers = [], []
    for of_plans in asked:
        tables = {
            domain.positions(plan.workload.workloads[kind].tables[row])
            for plan, kind in zip(plans, of_plans, strict=True)
            if kind >= 0
            for row in range(len(plan.workload.workloads[kind]))
        }
        numbers.append(len(workloads) if tables else -1)
        if tables:
            in_order_of_size = sorted(tables, key=lambda table: (len(table), table))
            names = [[domain.names[index] for index in table] for table in in_order_of_size]
            workloads.append(Workload.of(domain, names))
    kinds = np.array(numbers)[kinds]
    workload = AreaWorkload(plans[0].workload.tree, tuple(workloads), kinds)
    return workload, AreaGroups.of(workload.tree, kinds)


# ---- What all releases measured, area by area.


@dataclass(frozen=True, eq=False)
class CombinedAnswers(AreaAnswers):
    """The answers from all that some releases measured."""

    releases: tuple[MeasuredRelease, ...]
    _kept: dict[tuple[int, int], np.ndarray] = field(default_factory=dict, repr=False)

    def numbers(self, part: int, profile: int) -> np.ndarray:
        """The averages by accuracy, in the order of the measured areas: float64[·]."""
        parts, design = self.parts, self.parts.plan
        within = parts.of_profile(part, profile)
        if within is None:
            return np.empty(0)
        areas = within.areas[parts.measured_rows(profile, within)]
        averages = np.zeros((len(areas), int(parts.widths[profile])))
        totals = design.multiples[profile, design.groups.of_area[areas]]
        exact = totals == 0  # what some of the releases counted without noise
        residuals = [each for columns in parts.columns[profile] for each in columns.residuals]
        for index, own in enumerate(self._parts):
            for own_part, bounds in enumerate(own.areas):
                if not _overlap(areas, bounds):
                    continue
                for residual in residuals:
                    attributes = design.closure.attributes(residual)
                    own_residual = _own_residual(attributes, self._own_numbers[index], own.plan)
                    if own_residual is None:
                        continue
                    of_own, order = own_residual
                    rows, precisions, measured = self._measured_by(index, own_part, of_own, areas)
                    measured = _in_order(measured, own.plan.closure, of_own, order)
                    columns = parts.of_residuals[residual][1]
                    counted = exact[rows] & (precisions == 0)
                    averages[rows[counted], columns] = measured[counted]
                    rows, noisy = rows[~exact[rows]], ~exact[rows]
                    weights = precisions[noisy] / (totals[rows] * design.scales[residual])
                    averages[rows, columns] += weights[:, None] * measured[noisy]
        return averages.reshape(-1)

    def _measured_by(
        self, index: int, part: int, residual: int, areas: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What a release measured in a part of its own, of a residual of its own.

        Returns:
            The rows of the areas, which are numbers in ascending order, where it did; their
            precisions; and what was measured there, int64[n_rows, n_cells].
        """
        own = self._parts[index]
        profile, columns = own.of_residuals[residual]
        within = own.of_profile(part, profile)
        if within is None:
            nothing = np.empty(0, dtype=np.int64)
            return nothing, np.empty(0), np.empty((0, columns.stop - columns.start))
        numbers = within.areas[own.measured_rows(profile, within)]
        _, rows, theirs = np.intersect1d(areas, numbers, assume_unique=True, return_indices=True)
        start, stop = (at - own.bounds(part, 0)[0] for at in own.bounds(part, profile))
        measured = self._file(index, part)[start:stop].reshape(len(numbers), -1)
        multiples = own.plan.multiples[profile, own.plan.groups.of_area[areas[rows]]]
        return rows, multiples * own.plan.scales[residual], measured[theirs, columns]

    def _file(self, index: int, part: int) -> np.ndarray:
        """All that a release measured in a part: of each release the last is kept."""
        if (index, part) not in self._kept:
            for key in [key for key in self._kept if key[0] == index]:
                del self._kept[key]
            folder = self.releases[index].folder("areas")
            rows = pyarrow.parquet.read_table(folder / residual_file(part), columns=["measured"])
            self._kept[index, part] = rows["measured"].to_numpy()
        return self._kept[index, part]

    @cached_property
    def _own_numbers(self) -> list[dict[int, int | None]]:
        """What each release calls the attributes and blocks of the closure by."""
        closure, domain = self.parts.plan.closure, self.parts.plan.domain
        return [
            _own_numbers(closure, domain, own.plan, release.source.name)
            for own, release in zip(self._parts, self.releases, strict=True)
        ]

    @cached_property
    def _parts(self) -> list[AreaParts]:
        return [AreaParts(release.plan.part("areas")) for release in self.releases]


def _in_order(
    measured: np.ndarray, closure: Closure, residual: int, order: Sequence[int]
) -> np.ndarray:
    """What was measured of a residual, [n_rows, n_cells], with its axes in another order."""
    if list(order) == sorted(order):
        return measured
    shaped = measured.reshape(len(measured), *measured_shape(closure, residual))
    return shaped.transpose(0, *(1 + axis for axis in order)).reshape(measured.shape)


def _overlap(areas: np.ndarray, within: AreaRange) -> bool:
    """Whether some of the areas, numbers in ascending order, are in a range."""
    return any(
        np.searchsorted(areas, level.start) < np.searchsorted(areas, level.stop)
        for level in within.slices
    )
