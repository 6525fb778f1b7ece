"""The cells of areas with whole counts on each level, and the unbiased answers to them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations
from math import prod

import numpy as np

from rpexplore.common.text import describe_count
from rpexplore.domain.domain import AttributeIndices
from rpexplore.errors import ReleaseError
from rpexplore.planning.areas.area_design import AreaDesign
from rpexplore.planning.mechanism.reconstruction import marginal
from rpexplore.releases.area_measurement import AreaAnswers, PartAnswers
from rpexplore.results.unbiased import several_levels

# ---- Of which attributes there are whole counts on each level, and what is known of them there.


MOST_CELLS = 1_000_000


@dataclass(frozen=True, eq=False)
class AreaCells:
    """The tables of which all tables of an area are margins, level by level.

    On each level they have the attributes that are asked for there or further down, so that the
    counts of the parts of an area add up to a margin of the area's.

    sizes       how many values each attribute has, more than one where it is in a table
    attributes  those of the table of each level, ascending; those of a level are among those above
    known       the residuals, by their attributes, to which all areas of a level have answers
    possible    bool[n_cells of the top]: where there may be records
    exact       the residuals that are exact in the top area
    """

    sizes: tuple[int, ...]
    attributes: tuple[AttributeIndices, ...]
    known: tuple[frozenset[AttributeIndices], ...]
    possible: np.ndarray
    exact: frozenset[AttributeIndices] = frozenset()

    def shape(self, level: int) -> tuple[int, ...]:
        """Of the table of an area."""
        return tuple(self.sizes[index] for index in self.attributes[level])

    def values(self, level: int, codes: np.ndarray) -> dict[int, np.ndarray]:
        """The value of each attribute of a level's table in some cells, by attribute: int64[n]."""
        shape = self.shape(level)  # NumPy knows no cell of a table without attributes
        found = np.unravel_index(codes, shape) if shape else ()
        return dict(zip(self.attributes[level], found, strict=True))

    def margins(self, counts: np.ndarray, level: int) -> np.ndarray:
        """Counts on a level summed to the cells of the level below, [n_areas, n_cells]."""
        return self.margin_on(counts, level, self.attributes[level + 1])

    def margin_on(self, counts: np.ndarray, level: int, attributes: AttributeIndices) -> np.ndarray:
        """Counts on a level summed to the cells of some attributes, [n_areas, n_cells]."""
        axes = tuple(
            axis
            for axis, index in enumerate(self.attributes[level], start=1)
            if index not in attributes
        )
        shaped = counts.reshape(len(counts), *self.shape(level))
        kind = np.float64 if counts.dtype.kind == "f" else np.int64
        return shaped.sum(axis=axes, dtype=kind).reshape(len(counts), -1)

    @cached_property
    def stages(self) -> list[tuple[int, ...]]:
        """Of each level how many cells the tables have that are made one after another.

        From the total on, each has the attributes of the one before and one more, that of the
        fewest values, as long as there are answers to all of the table; the last has all
        attributes. What is exact in the top area comes first there, to be kept. They are margins of
        the table as `in_stages` makes it, on its first axes.
        """
        found = []
        for level, order in enumerate(self.orders):
            sizes = [1]
            for count in range(1, len(order)):
                if not self.is_known(level, order[:count]):
                    break
                sizes.append(sizes[-1] * self.sizes[order[count - 1]])
            if order:
                sizes.append(prod(self.shape(level)))
            found.append(tuple(sizes))
        return found

    def in_stages(self, values: np.ndarray, level: int) -> np.ndarray:
        """Tables of a level with the attributes in the order of `stages`, [n_areas, n_cells]."""
        axes = [self.attributes[level].index(each) + 1 for each in self.orders[level]]
        shaped = values.reshape(len(values), *self.shape(level))
        return shaped.transpose(0, *axes).reshape(len(values), -1)

    def from_stages(self, values: np.ndarray, level: int) -> np.ndarray:
        """Tables with attributes in the order of `stages` as all others, [n_areas, n_cells]."""
        order = self.orders[level]
        axes = [order.index(each) + 1 for each in self.attributes[level]]
        shaped = values.reshape(len(values), *(self.sizes[each] for each in order))
        return shaped.transpose(0, *axes).reshape(len(values), -1)

    @cached_property
    def orders(self) -> list[AttributeIndices]:
        """The attributes of each level in the order in which `stages` add them."""
        orders = []
        for level, attributes in enumerate(self.attributes):
            order: AttributeIndices = ()
            while left := [each for each in attributes if each not in order]:
                known = [each for each in left if self.is_known(level, (*order, each))]
                if level == 0:
                    tables = {each: tuple(sorted((*order, each))) for each in known}
                    known = [each for each in known if tables[each] in self.exact] or known
                order = (*order, min(known or left, key=lambda each: self.sizes[each]))
            orders.append(order)
        return orders

    def is_known(self, level: int, attributes: AttributeIndices) -> bool:
        """Whether there are answers to all of a table."""
        return all(each in self.known[level] for each in subsets_of(tuple(sorted(attributes))))

    @cached_property
    def _unknown(self) -> list[list[AttributeIndices]]:
        return [
            [each for each in subsets_of(attributes) if each not in known]
            for attributes, known in zip(self.attributes, self.known, strict=True)
        ]

    def has_unknown(self, level: int) -> bool:
        """Whether the answers on a level leave some of the table's residuals open."""
        return bool(self._unknown[level])

    def unknown_part(self, level: int, tables: np.ndarray) -> np.ndarray:
        """What the residuals without answers contribute to tables, [n_areas, n_cells] each."""
        shaped = tables.reshape(-1, *self.shape(level))
        found = np.zeros_like(shaped)
        for subset in self._unknown[level]:
            part = shaped
            for axis, index in enumerate(self.attributes[level], start=1):
                mean = part.mean(axis=axis, keepdims=True)
                part = part - mean if index in subset else mean
            found += part
        return found.reshape(tables.shape)


def check_cells(shape: Sequence[int]) -> None:
    """Raise `ReleaseError` for a table of more cells than can be counted in an area."""
    if (n_cells := prod(shape)) > MOST_CELLS:
        cells = f"{n_cells:,}" if n_cells < 10**15 else describe_count(n_cells)
        raise ReleaseError(
            f"Whole counts need a table of all attributes together, which has {cells} cells in an "
            f"area; {MOST_CELLS:,} can be counted at most. Plan tables of fewer attributes."
        )


def subsets_of(attributes: AttributeIndices) -> Iterator[AttributeIndices]:
    """All subsets, the empty one first."""
    sizes = range(len(attributes) + 1)
    return chain.from_iterable(combinations(attributes, size) for size in sizes)


# ---- The unbiased answers to the cells of a finished release of tables in areas.


def cells_of(plan: AreaDesign) -> AreaCells:
    """Of which attributes there are whole counts, down to the lowest level with a table.

    Sums of amounts and weighted counts are left aside.

    Raises:
        ReleaseError: If an area down to there has no answer to its total, or there are too many
            cells, or if tables are in other bases than single values or have an attribute at
            several levels, or none counts records.
    """
    workload, tree, sizes = plan.workload, plan.workload.tree, plan.domain.sizes.tolist()
    if plan.closure.trees:
        raise several_levels(plan.domain.names[plan.closure.trees[0].column])
    is_count = ~workload.tables.has_amounts
    if not is_count.any():
        raise ReleaseError(
            f"Whole counts are made of tables that count records, and all tables of this release "
            f"have {workload.tables.sums_noun}; plan and release tables of counts for them."
        )
    bases = np.unique(workload.tables.attribute_basis_index[is_count])
    attribute_bases = workload.tables.attribute_bases
    if not all(attribute_bases[basis][1].is_identity for basis in bases[bases >= 0].tolist()):
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
            of_kind = workload.rows[kind]
            members = workload.tables.members[of_kind[is_count[of_kind]]]
            below |= {index for index in members[members >= 0].tolist() if sizes[index] > 1}
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
    in_top = np.flatnonzero(plan.exact_levels[plan.of_residual] > 0).tolist()
    exact = frozenset(plan.closure.attributes(row) for row in in_top)
    return AreaCells(tuple(sizes), tuple(attributes), tuple(known), possible, exact)


def exact_numbers(plan: AreaDesign, answers: AreaAnswers) -> dict[int, int]:
    """The numbers of records of areas, by their numbers, that a release has without noise."""
    total = plan.closure.find(())
    assert total is not None
    n_levels = int(plan.exact_levels[plan.of_residual[total]])
    if not n_levels:
        return {}
    parts, found = answers.parts, dict[int, int]()
    known = (
        [(answers.of_top, 0)]
        if n_levels <= parts.level + 1
        else ((answers.of_part(part), part) for part in range(len(parts.areas)))
    )
    for estimates, part in known:
        own = estimates.areas.down_to(n_levels - (parts.level if part else 0))
        values = np.rint(estimates.contribution(total, slice(0, len(own))).reshape(-1))
        found |= dict(zip(own.areas.tolist(), values.astype(np.int64).tolist(), strict=True))
    return found


def why_no_whole_counts(plan: AreaDesign) -> str:
    """Why no whole counts can be made of the plan's release, in a sentence; "" where they can."""
    try:
        cells_of(plan)
    except ReleaseError as error:
        return str(error)
    return ""


def _possible(plan: AreaDesign, attributes: AttributeIndices) -> np.ndarray:
    """Where there may be records by the codebook: bool[n_cells]."""
    possible = plan.domain.structural_zeros.possible(attributes)
    n_cells = prod(plan.domain.sizes[list(attributes)].tolist())
    return np.ones(n_cells, dtype=bool) if possible is None else possible.ravel()


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
