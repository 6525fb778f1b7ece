"""Tables of too many cells to be in memory as a whole: measured and put together slice by slice.

A slice has some values of the first attribute and all of the others. All that is done to a table
is a Kronecker product of one matrix an attribute (docs/mathematics.md §7.2). So a slice needs of
the others only sums along the first attribute, which are as small as a slice of one value; the
numbers are those of the whole table, bit by bit.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np

from rpexplore.data.source import Counts
from rpexplore.domain.domain import AttributeIndices
from rpexplore.errors import ReleaseError
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.mechanism.reconstruction import contribution, spread_sum
from rpexplore.workload.workload import Workload

MAX_TABLE_CELLS = 50_000_000
"""Cells of a table up to which it is put together as a whole."""
MAX_SLICED_CELLS = 1_000_000_000
"""Cells of a table that is put together slice by slice."""
MAX_CELLS_OF_VALUE = 20_000_000
"""Cells of such a table for one value of its first attribute, with all totals by the others."""

_SLICE = 1 << 22  # cells worked on together
_WHOLE = 1 << 24  # cells of all residuals with the first attribute that are read as a whole

ReadSlice = Callable[[int, range], np.ndarray]
"""What was measured of a residual, for some values of its first attribute, one axis an attribute"""


def are_large(workload: "Workload") -> np.ndarray:
    """Which tables are put together slice by slice: bool[n_tables]."""
    # Own matrices may have fewer answers than the values that they are computed from.
    return np.maximum(workload.cells, workload.counted_cells) > MAX_TABLE_CELLS


def why_not_sliced(workload: "Workload", table: int, measured_otherwise: Iterable[int]) -> str:
    """Why a large table cannot be put together slice by slice, as a clause; "" if it can.

    measured_otherwise: the attributes that some table has not by single values, or that have a
        reference distribution
    """
    domain, indices = workload.domain, workload.attribute_indices(table)
    if max(workload.cells[table], workload.counted_cells[table]) > MAX_SLICED_CELLS:
        return f"a table of a release can have {MAX_SLICED_CELLS:,}"
    above = f"above {MAX_TABLE_CELLS:,} cells a table is put together slice by slice, for which "
    if others := set(indices) & set(measured_otherwise):
        return (
            f"{above}all its attributes must be measured by single values, and "
            f"{domain.names[min(others)]!r} is not"
        )
    if domain.structural_zeros.kinds.keys() & set(indices):
        return f"{above}none of its attributes may be in impossible combinations"
    sizes = [int(domain.sizes[index]) for index in indices if domain.sizes[index] > 1]
    if prod(size + 1 for size in sizes[1:]) > MAX_CELLS_OF_VALUE:
        return (
            f"{above}it must have at most {MAX_CELLS_OF_VALUE:,} cells, totals among them, for each"
            " value of its first attribute (attributes with more values come first in a codebook "
            "that lists them so)"
        )
    return ""


def measured_otherwise(workload: "Workload") -> set[int]:
    """The attributes that some table of a workload does not have by single values."""
    return {index for index, basis in workload.attribute_bases if not basis.is_identity}


def exact_slices(
    counts: Counts,
    attributes: Sequence[int],
    residual_answers: Callable[[np.ndarray], np.ndarray],
) -> Iterator[np.ndarray]:
    """Ξ x of a residual slice by slice along its first attribute: int64, one axis an attribute.

    Ξ = ⊗ (n_i I − 11ᵀ), in integers, of which the order does not matter.

    Args:
        counts: The exact counts. Private.
        residual_answers: Applies Ξ along all axes but the first.
    """
    totals = counts.counts(attributes[1:])
    size = counts.counts(attributes[:1]).size
    for rows in _slices(size, totals.size):
        exact = counts.slice(attributes, rows)
        exact *= size
        exact -= totals
        yield residual_answers(exact)


def _slices(n_values: int, cells_of_value: int) -> Iterator[range]:
    step = max(1, _SLICE // cells_of_value)
    for start in range(0, n_values, step):
        yield range(start, min(start + step, n_values))


@dataclass(frozen=True, eq=False)
class SlicedTable:
    """The unbiased counts of a large table from what was measured, slice by slice.

    attributes  ascending indices
    residuals   of every subset of these with more than one value its residual
    read        what was measured
    """

    closure: Closure
    attributes: AttributeIndices
    residuals: Mapping[AttributeIndices, int]
    read: ReadSlice

    def slices(self) -> Iterator[tuple[range, np.ndarray]]:
        """Some values of the first attribute with several, and their counts: float64.

        The counts have one axis an attribute; those before the first one have one value each.
        """
        size, base = self._sizes[0], self._base * self._shares[self.first]
        of_value = [int(self.closure.sizes[index]) for index in self._others_of_table]
        for rows in _slices(size, prod(of_value)):
            values = spread_sum(self._kept[1:], self._parts(rows), self._shares)
            values += base
            n_before = len(self.attributes) - len(of_value) - 1
            yield rows, values.reshape([*(1,) * n_before, len(rows), *of_value])

    @property
    def first(self) -> int:
        """The attribute whose values slices have some of."""
        return self._kept[0]

    @cached_property
    def _kept(self) -> list[int]:
        return [index for index in self.attributes if self.closure.sizes[index] > 1]

    @cached_property
    def _sizes(self) -> list[int]:
        return [int(self.closure.sizes[index]) for index in self._kept]

    @property
    def _others_of_table(self) -> AttributeIndices:
        return self.attributes[self.attributes.index(self.first) + 1 :]

    @cached_property
    def _shares(self) -> dict[int, np.ndarray]:
        return {index: np.array([1 / int(self.closure.sizes[index])]) for index in self._kept}

    @cached_property
    def _base(self) -> np.ndarray:
        """What all slices have in common: the sum along the first attribute."""
        parts = {
            subset: contribution(self._whole(subset), subset, {})
            for subset in self.residuals
            if self.first not in subset
        }
        return spread_sum(self._kept[1:], parts, self._shares)

    def _parts(self, rows: range) -> dict[AttributeIndices, np.ndarray]:
        """What residuals with the first attribute add to a slice, by their other attributes."""
        parts = {}
        for subset in self._with_first:
            if subset in self._small:
                parts[subset[1:]] = self._small[subset][rows.start : rows.stop]
                continue
            measured = self.read(self.residuals[subset], rows) / self._sizes[0]
            measured -= self._means[subset]
            parts[subset[1:]] = contribution(measured, subset[1:], {})
        return parts

    @property
    def _with_first(self) -> list[AttributeIndices]:
        return [subset for subset in self.residuals if self.first in subset]

    def _n_cells(self, subset: AttributeIndices) -> int:
        return prod(int(self.closure.sizes[index]) for index in subset)

    def _whole(self, subset: AttributeIndices) -> np.ndarray:
        n_values = int(self.closure.sizes[subset[0]]) if subset else 1
        return self.read(self.residuals[subset], range(n_values))

    @cached_property
    def _small(self) -> dict[AttributeIndices, np.ndarray]:
        """The contributions of residuals with the first attribute, as many as fit in memory."""
        small, n_cells = {}, 0
        for subset in sorted(self._with_first, key=self._n_cells):
            n_cells += self._n_cells(subset)
            if len(subset) > 1 and n_cells > _WHOLE:
                break
            small[subset] = contribution(self._whole(subset), subset, {})
        return small

    @cached_property
    def _means(self) -> dict[AttributeIndices, np.ndarray]:
        """Of the other residuals with the first attribute their means along it."""
        means = {}
        for subset in self._with_first:
            if subset in self._small:
                continue
            total = np.zeros([int(self.closure.sizes[index]) for index in subset[1:]])
            for rows in _slices(self._sizes[0], total.size):
                # Row by row, as NumPy adds those of the whole.
                for row in self.read(self.residuals[subset], rows) / self._sizes[0]:
                    total += row
            means[subset] = total / self._sizes[0]
        return means


def refuse_as_whole(name: str, n_cells: float) -> None:
    """Raise `ReleaseError` if a table has too many cells to be read as a whole."""
    if n_cells > MAX_TABLE_CELLS:
        raise ReleaseError(
            f"The table {name} has {n_cells:,.0f} cells, and at most {MAX_TABLE_CELLS:,} can be "
            "read together; ask for smaller tables within it or for answers about some of its "
            "values, or read its Parquet file in parts."
        )
