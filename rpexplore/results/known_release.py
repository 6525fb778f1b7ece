"""Publicly known totals of a release whose tables have levels or other sums than single values.

What a known marginal says of each residual takes the place of what was measured of it, as in
`known_totals`; tables, their rows and their errors are those of the plan beyond that.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from rpexplore.domain.domain import AttributeIndices, AttributeSet, Domain
from rpexplore.errors import ReleaseError
from rpexplore.estimation.table_map import ArrayStore, largest
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.mechanism.levels import Block, LevelTree
from rpexplore.planning.mechanism.reconstruction import (
    answers,
    impossible_answers,
    residuals_within,
)
from rpexplore.planning.mechanism.strategy import Strategy
from rpexplore.planning.mechanism.variances import CellVariances
from rpexplore.releases.items import MarginalEstimate
from rpexplore.releases.table_cells import table_of_cells
from rpexplore.releases.table_release import LabelsOfBases, TableRelease

if TYPE_CHECKING:
    from rpexplore.results.unbiased import Estimates


@dataclass(frozen=True, eq=False)
class KnownTable:
    """Publicly known counts of one marginal.

    attributes  indices in the domain of the tables, ascending
    counts      float64, whole numbers, one axis an attribute
    """

    attributes: AttributeIndices
    counts: np.ndarray

    def summed(self, attributes: AttributeIndices) -> np.ndarray:
        """The same by some of the attributes."""
        others = [axis for axis, index in enumerate(self.attributes) if index not in attributes]
        return self.counts.sum(axis=tuple(others))


@dataclass(frozen=True)
class Element:
    """What a residual may have of an attribute of the records: single values, or a block of them.

    number           by which residuals have it
    index_of_values  int64[n values of the attribute of the records]: its value for each of these;
                     −1: none
    """

    number: int
    index_of_values: np.ndarray

    @property
    def size(self) -> int:
        return int(self.index_of_values.max()) + 1

    def of_groups(self, groups: np.ndarray) -> np.ndarray | None:
        """Which of its values each group of a partition lies in, −1 for none; None if it divides
        one.

        groups: int64[n values of the attribute of the records], the group of each
        """
        found = np.full(int(groups.max()) + 1, -1)
        found[groups] = self.index_of_values
        return found if np.array_equal(found[groups], self.index_of_values) else None


def elements_of(domain: Domain, used: Sequence[int]) -> dict[int, list[Element]]:
    """Attribute of the records -> what residuals have of it, where each attribute is one.

    used: the attributes of tables
    """
    elements: dict[int, list[Element]] = {}
    for index in used:
        column = int(domain.columns[index])
        elements.setdefault(column, []).append(Element(index, groups_of_values(domain, index)))
    return elements


def elements_of_closure(domain: Domain, closure: Closure) -> dict[int, list[Element]]:
    """The same of a plan, where attributes at several levels are there by their blocks."""
    in_trees = {index for tree in closure.trees for index in tree.of_tables}
    used = {index for row in range(len(closure)) for index in closure.attributes(row)}
    plain = sorted(index for index in used if index < len(domain) and index not in in_trees)
    return elements_of(domain, plain) | elements_of_trees(closure.trees, closure.blocks)


def elements_of_trees(
    trees: Sequence[LevelTree], blocks: Mapping[int, Block]
) -> dict[int, list[Element]]:
    """The same of attributes at several levels."""
    return {
        tree.column: [Element(number, blocks[number].index_of_values) for number in tree.numbers]
        for tree in trees
    }


def groups_of_values(domain: Domain, index: int) -> np.ndarray:
    """Which value of an attribute each value of its attribute of the records lies in: int64[n]."""
    attribute = domain.attributes[index]
    if not attribute.of:
        return np.arange(attribute.size)
    return np.array(attribute.index_of_values, dtype=np.int64)


def known_contributions(
    domain: Domain,
    elements: Mapping[int, Sequence[Element]],
    strategies: Mapping[int, Strategy],
    table: KnownTable,
) -> dict[AttributeIndices, np.ndarray]:
    """What a known marginal says of each residual that it determines: float64, one axis an element.

    Along an axis, x_b = z_b x_u + (what residual b says), with z_b the shares of its values and x_u
    what they add up to (docs/mathematics.md §5.5, (12a)); without levels u is the total.

    Raises `ReleaseError` where an attribute is measured in a way that the totals tell in part.
    """
    axes: list[list[tuple[int | None, np.ndarray]]] = []
    for index in table.attributes:
        n_groups = int(domain.sizes[index])
        told: list[tuple[int | None, np.ndarray]] = [(None, np.ones((1, n_groups)))]
        if n_groups > 1:
            own = elements.get(int(domain.columns[index]), ())
            groups = groups_of_values(domain, index)
            for element in own:
                place = element.of_groups(groups)
                if place is None:
                    continue
                sums = np.zeros((element.size, n_groups))
                inside = np.flatnonzero(place >= 0)
                sums[place[inside], inside] = 1
                strategy = strategies.get(element.number)
                shares = 1 / element.size if strategy is None else strategy.reference[:, None]
                told.append((element.number, sums - shares * sums.sum(axis=0)))
            # Either all that was measured is told, or all that the totals say was measured.
            n_told = 1 + sum(len(matrix) - 1 for _, matrix in told[1:])
            if len(told) <= len(own) and n_told < n_groups:
                raise _not_measured(domain, index)
        axes.append(told)
    found: dict[AttributeIndices, np.ndarray] = {}
    for chosen in product(*axes):
        values = table.counts
        for axis, (number, matrix) in enumerate(chosen):
            if number is None:
                values = values.sum(axis=axis, keepdims=True)
            else:
                values = np.moveaxis(np.tensordot(matrix, values, (1, axis)), 0, axis)
        numbers = [number for number, _ in chosen if number is not None]
        kept = [len(matrix) for number, matrix in chosen if number is not None]
        order = np.argsort(numbers).astype(int).tolist()
        values = values.reshape(kept).transpose(order)
        found[tuple(sorted(numbers))] = values
    return found


def _not_measured(domain: Domain, index: int) -> ReleaseError:
    attribute = domain.attributes[index]
    column = attribute.of or attribute.name
    return ReleaseError(
        f"The known totals are by {attribute.name!r}, and the tables have {column!r} by other "
        f"groups, whose counts these tell in part only; give totals by single values of {column!r},"
        " or by a level that tables have and none of their other levels crosses."
    )


@dataclass(frozen=True, eq=False)
class KnownRelease(TableRelease):
    """The tables of a release, with publicly known totals in place of their noisy counts.

    contributions  of the residuals that the totals tell; their variance stands for 0
    given          the totals
    """

    contributions: Mapping[AttributeIndices, np.ndarray]
    given: Sequence[KnownTable]

    @cached_property
    def known_tables(self) -> Sequence[tuple[str, ...]]:
        """The attributes of the totals, and of tables that follow from them."""
        names = self.domain.names
        listed = {tuple(names[index] for index in one.attributes) for one in self.given}
        return sorted(largest(listed | set(filter(self.is_known, self.table_names))))

    @property
    def known_totals(self) -> Sequence[KnownTable]:
        return self.given

    def with_known_totals(self, estimates: "Estimates") -> "Estimates":
        known = self.contributions.keys() & estimates.variances.keys()
        contributions = ArrayStore(estimates.contributions)
        contributions.update({subset: self.contributions[subset] for subset in known})
        return replace(estimates, contributions=contributions, known=frozenset(known))

    @property
    def label(self) -> str:
        return f"{super().label}; meets publicly known totals"

    def unbiased_tables(self) -> "KnownRelease":
        return self

    def is_known(self, attributes: AttributeSet) -> bool:
        """Whether the counts by these attributes are publicly known."""
        return _residuals(self, attributes) <= self.contributions.keys()

    def figures_of(self, position: int) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray | None]:
        indices, queries = self.workload.attribute_indices(position), self.queries[position]
        impossible = impossible_answers(self.domain, indices, queries)
        values = answers(self._estimate(indices).values, queries)
        variances = self._cells.variances_of(position, self._scales)
        if self.is_known(self.table_names[position]):
            values, variances = np.rint(values), np.zeros(values.shape)
        return (values, np.sqrt(np.broadcast_to(variances, values.shape))), impossible

    def cells(self, position: int) -> pa.Table:
        if self.workload.has_amounts[position]:
            return super().cells(position)
        (values, errors), impossible = self.figures_of(position)
        bases = self.workload.attribute_basis_index[position, : values.ndim].tolist()
        is_known = self.is_known(self.table_names[position])
        labels = [self._labels_of_bases.of(basis) for basis in bases]
        return table_of_cells(labels, values, errors**2, impossible, is_known=is_known)

    def _estimate(
        self, attributes: AttributeIndices, *, in_slices: bool = False
    ) -> MarginalEstimate:
        measured = super()._estimate(attributes)  # not in slices, which have no known totals
        noise, known = measured.noise, self.contributions
        scales = {one: 0.0 if one in known else own for one, own in noise.sigma_squared.items()}
        return MarginalEstimate(
            replace(noise, sigma_squared=scales),
            {one: known.get(one, own) for one, own in measured.contributions.items()},
        )

    @cached_property
    def _cells(self) -> CellVariances:
        return CellVariances(self.workload, self.plan.closure)

    @cached_property
    def _scales(self) -> np.ndarray:
        """σ² of each residual, 0 of those that are known: float64[n_residuals]."""
        scales = self.plan.stated_scales.copy()
        for subset in self.contributions:
            row = self.plan.closure.find(subset)
            if row is not None:
                scales[row] = 0.0
        return scales

    @cached_property
    def _labels_of_bases(self) -> LabelsOfBases:
        return LabelsOfBases(self.workload)


def _residuals(release: TableRelease, attributes: AttributeSet) -> Set[AttributeIndices]:
    return residuals_within(release.plan.closure, release.domain.positions(attributes)).keys()
