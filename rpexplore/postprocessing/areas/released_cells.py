"""The unbiased answers to the cells of a finished release of tables in areas."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow.parquet

from rpexplore.domain.area_range import AreaRange
from rpexplore.domain.domain import AttributeIndices
from rpexplore.domain.value_selection import product_query
from rpexplore.errors import ReleaseError
from rpexplore.planning.areas.area_plan import AreaPlan
from rpexplore.planning.mechanism.reconstruction import marginal
from rpexplore.postprocessing.areas.area_cells import AreaCells, check_cells, subsets_of
from rpexplore.releases.areas.area_answers import AreaAnswers, PartAnswers
from rpexplore.releases.areas.area_files import residual_file


def cells_of(plan: AreaPlan) -> AreaCells:
    """Of which attributes there are whole counts, down to the lowest level with a table.

    Raises:
        ReleaseError: If an area down to there has no answer to its total, or there are too many
            cells, or if tables are in other bases than single values.
    """
    workload, tree, sizes = plan.workload, plan.workload.tree, plan.domain.sizes.tolist()
    if not workload.tables.is_marginals:
        raise ReleaseError(
            "Whole counts are made of tables of single values, and some tables of this release "
            "are in other bases; plan and release tables of single values for them."
        )
    asked = [
        {int(kind) for kind in np.unique(workload.kinds[tree.level_slice(level)]) if kind >= 0}
        for level in range(len(tree.levels))
    ]
    last = max(level for level, kinds in enumerate(asked) if kinds)
    attributes: list[AttributeIndices] = []
    below: set[int] = set()
    for kinds in reversed(asked[: last + 1]):
        for kind in kinds:
            below |= {index for index in workload.workloads[kind].used if sizes[index] > 1}
        attributes.insert(0, tuple(sorted(below)))
    known = []
    for level in range(last + 1):
        groups = slice(*plan.groups.starts[level : level + 2].tolist())
        are_known = np.all(plan.residual_variances[:, groups] > 0, axis=1)
        known.append(
            frozenset(plan.closure.attributes(row) for row in np.flatnonzero(are_known).tolist())
        )
        if () not in known[-1]:
            raise ReleaseError(
                "Whole counts need an answer to the total of every area down to the level "
                f"{tree.levels[last]}, but on the level {tree.levels[level]} some have none; plan "
                "totals on all levels down to it."
            )
    check_cells(tuple(sizes[index] for index in attributes[0]))
    possible = _possible(plan, attributes[0])
    return AreaCells(tuple(sizes), tuple(attributes), tuple(known), possible)


def why_no_whole_counts(plan: AreaPlan) -> str:
    """Why no whole counts can be made of the plan's release, in a sentence; "" where they can."""
    try:
        cells_of(plan)
    except ReleaseError as error:
        return str(error)
    return ""


def _possible(plan: AreaPlan, attributes: AttributeIndices) -> np.ndarray:
    """Where there may be records by the codebook: bool[n_cells]."""
    shape = tuple(plan.domain.sizes[list(attributes)].tolist())
    possible = np.ones(shape, dtype=bool)
    for combination in plan.domain.impossible:
        members = {
            plan.domain.position(name): np.array(selected, dtype=bool)
            for name, selected in product_query(plan.domain, dict(combination.selections)).items()
        }
        if all(index in attributes or np.all(own) for index, own in members.items()):
            inside = np.ones(shape, dtype=bool)
            for axis, index in enumerate(attributes):
                if index in members:
                    inside &= members[index].reshape([-1, *(1,) * (len(shape) - axis - 1)])
            possible &= ~inside
    return possible.ravel()


@dataclass(frozen=True, eq=False)
class ReleasedAnswers(AreaAnswers):
    """The answers of a finished release; folder: of its areas."""

    folder: Path
    _kept: dict[int, np.ndarray] = field(default_factory=dict, repr=False)

    def numbers(self, part: int, profile: int) -> np.ndarray:
        """From the file of the part's residuals, of which the last is kept."""
        if part not in self._kept:
            self._kept.clear()
            rows = pyarrow.parquet.read_table(
                self.folder / residual_file(part), columns=["measured"]
            )
            self._kept[part] = rows["measured"].to_numpy()
        first = self.parts.bounds(part, 0)[0]
        start, stop = (place - first for place in self.parts.bounds(part, profile))
        return self._kept[part][start:stop]

    @cached_property
    def of_top(self) -> PartAnswers:
        """Those from the top down to the highest areas of the subtrees."""
        if not self.parts.level:
            return self.of_part(0)
        answers = [own.copy() for own in self._above]
        for profile, own in enumerate(answers):
            self._contribute(profile, own)
        tree = self.parts.plan.workload.tree
        areas = AreaRange.within(tree, 0, 0, 1, self.parts.level)
        return PartAnswers(self.parts, areas, answers)


@dataclass(frozen=True, eq=False)
class PartCells:
    """The answers to cells of a part, by level and areas; what is unknown is 0."""

    cells: AreaCells
    of_part: PartAnswers
    first_level: int

    def __call__(self, level: int, areas: slice) -> np.ndarray:
        own = level - self.first_level
        rows = self.of_part.areas.rows(own)
        start = rows.start + areas.start - self.of_part.areas.slices[own].start
        some = slice(start, start + areas.stop - areas.start)
        attributes, parts = self.cells.attributes[level], self.of_part.parts
        closure = parts.plan.closure
        contributions: Mapping[AttributeIndices, np.ndarray] = {
            subset: self._contribution(level, subset, some) for subset in subsets_of(attributes)
        }
        found = marginal(attributes, closure.sizes, contributions, closure.strategies)
        return found.reshape(areas.stop - areas.start, -1)

    def _contribution(self, level: int, subset: AttributeIndices, rows: slice) -> np.ndarray:
        shape = (rows.stop - rows.start, *(self.cells.sizes[index] for index in subset))
        parts = self.of_part.parts
        residual = parts.plan.closure.find(subset)
        if residual is None or subset not in self.cells.known[level]:
            return np.zeros(shape)
        profile, columns = parts.of_residuals[residual]
        return self.of_part.answers[profile][rows, columns].reshape(shape)
