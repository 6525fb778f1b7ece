"""How the cells of all maximal tables depend on each other: M D K Mᵀ as products with ones."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate

import numpy as np
from scipy import sparse

from rpexplore.domain.domain import AttributeIndices, subsets
from rpexplore.estimation.table_map import ContributionArrays, TableMap

# Without strategies, a table's own contribution is the table less its means over any of its axes,
# with signs: Σ_{C⊆T} (−1)^|T∖C| (mean over T∖C, spread). So tables exchange nothing but totals over
# their axes, which are products with sparse matrices of ones: for many small tables several times
# as fast as some calls for each of them. For large tables they are sums along the axes of arrays,
# which take a third of the time and no memory for where the ones are.

_LARGE = 1 << 13  # cells of a table, on average: there both ways take as long


_Part = tuple[AttributeIndices, AttributeIndices]
"""A table and some of its attributes: its totals over all others."""


class CellCoupling:
    """M D K Mᵀ of a map without strategies, where D is a number for each set of the family.

    The family must have attributes: the total alone has nothing to exchange.
    """

    def __init__(self, tables: TableMap, factors: Mapping[AttributeIndices, float]) -> None:
        """factors: D, of every set of the family"""
        self._map = tables
        self._whole = whole = [(table, table) for table in tables.tables]
        self._not_maximal = shared = [(subset, subset) for subset in _not_maximal(tables)]
        # Totals of tables over one axis; over one and more; and of all that is not maximal.
        faces = [(table, face) for table in tables.tables for face in _faces(table)]
        parts = [(table, part) for table in tables.tables for part in subsets(table)]
        parts = [(table, part) for table, part in parts if part != table]
        within = [(subset, part) for subset, _ in shared for part in subsets(subset)]
        self._of_faces = None
        if sum(map(tables.cells, tables.tables)) < _LARGE * len(whole):
            self._of_faces = self._ones(faces, [(table, table) for table, _ in faces], whole)
        self._of_parts = self._ones(parts, [_face_with(*part) for part in parts], faces)
        self._of_within = self._ones(within, [(subset, subset) for subset, _ in within], shared)
        # Where each cell of the parts is among those of what tables share.
        starts = self._starts(shared)
        self._shared_cells = np.concatenate(
            [np.arange(tables.cells(part)) + starts[part, part] for _, part in parts]
        )
        self._parts, self._means = parts, self._signed_means(parts)
        self._mean = np.abs(self._means)
        self._means_within = self._signed_means(within)
        self.weigh(factors)

    def weigh(self, factors: Mapping[AttributeIndices, float]) -> None:
        """Take other factors D."""
        self._own, self._shared, own_of_parts = (
            self._for_cells(parts, [factors[source] for source, _ in parts])
            for parts in (self._whole, self._not_maximal, self._parts)
        )
        self._own_means = self._means * own_of_parts

    @staticmethod
    def entries(tables: TableMap) -> int:
        """How many ones there are in the matrices, which take most of the memory."""
        own = sum(
            len(table) * tables.cells(table) + sum(map(tables.cells, subsets(table)))
            for table in tables.tables
        )
        return own + sum(2 ** len(part) * tables.cells(part) for part in _not_maximal(tables))

    def of(self, values: np.ndarray) -> np.ndarray:
        """M D K Mᵀ values; both float64[cells], of all maximal tables in the order of the map."""
        parts = self._of_parts.T @ self._faces(values)
        shared = np.bincount(self._shared_cells, parts * self._mean, len(self._shared))
        centred = self._of_within @ (self._means_within * (self._of_within.T @ shared))
        parts *= self._own_means
        parts += (self._shared * centred)[self._shared_cells] * self._mean
        result = self._own * values
        self._add_spread(self._of_parts @ parts, result)
        return result

    def pulled_back(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """K Mᵀ values: the contributions of the maximal tables, and those of all other sets."""
        parts = self._of_parts.T @ self._faces(values)
        shared = np.bincount(self._shared_cells, parts * self._mean, len(self._shared))
        own = values.copy()
        self._add_spread(self._of_parts @ (parts * self._means), own)
        return own, self._of_within @ (self._means_within * (self._of_within.T @ shared))

    def tables(self, own: np.ndarray, shared: np.ndarray) -> np.ndarray:
        """M c, of contributions in two arrays as `pulled_back` returns them."""
        cells = own.copy()
        self._add_spread(self._of_parts @ (shared[self._shared_cells] * self._mean), cells)
        return cells

    def for_contributions(
        self, values: Mapping[AttributeIndices, float]
    ) -> tuple[np.ndarray, np.ndarray]:
        """A number for each set, once for each cell of its contribution, in two arrays as above."""
        own, shared = (
            self._for_cells(parts, [values[source] for source, _ in parts])
            for parts in (self._whole, self._not_maximal)
        )
        return own, shared

    def contributions(self, arrays: ContributionArrays) -> tuple[np.ndarray, np.ndarray]:
        """Contributions of the family, in two arrays as above."""
        own, shared = (
            np.concatenate([arrays[source].ravel() for source, _ in parts])
            for parts in (self._whole, self._not_maximal)
        )
        return own, shared

    def _faces(self, values: np.ndarray) -> np.ndarray:
        """The totals of each maximal table over each of its axes."""
        if self._of_faces is not None:
            return self._of_faces.T @ values
        faces = [
            cells.sum(axis=axis).ravel()
            for cells in self._by_table(values)
            for axis in range(cells.ndim)
        ]
        return np.concatenate(faces)

    def _add_spread(self, faces: np.ndarray, values: np.ndarray) -> None:
        """Add to each cell the numbers of the totals it is counted in, in place."""
        if self._of_faces is not None:
            values += self._of_faces @ faces
            return
        start = 0
        for cells in self._by_table(values):
            for axis, size in enumerate(cells.shape):
                stop = start + cells.size // size
                kept = (*cells.shape[:axis], 1, *cells.shape[axis + 1 :])
                cells += faces[start:stop].reshape(kept)
                start = stop

    def _by_table(self, values: np.ndarray) -> Iterator[np.ndarray]:
        """The cells of each maximal table, one axis an attribute: views of the values."""
        start = 0
        for table in self._map.tables:
            stop = start + self._map.cells(table)
            yield values[start:stop].reshape(self._map.sizes[list(table)])
            start = stop

    def _signed_means(self, parts: Sequence[_Part]) -> np.ndarray:
        """What makes of totals the means that a table's own contribution consists of."""
        signed = [
            (-1) ** (len(table) - len(part)) * self._map.cells(part) / self._map.cells(table)
            for table, part in parts
        ]
        return self._for_cells(parts, signed)

    def _for_cells(self, parts: Sequence[_Part], values: Sequence[float]) -> np.ndarray:
        """A number for each part, once for each of its cells."""
        return np.repeat(values, [self._map.cells(part) for _, part in parts])

    def _starts(self, parts: Sequence[_Part]) -> dict[_Part, int]:
        """Where the cells of each begin, one after the other."""
        ends = accumulate((self._map.cells(part) for _, part in parts), initial=0)
        return dict(zip(parts, ends, strict=False))

    def _ones(
        self, parts: Sequence[_Part], sources: Sequence[_Part], all_sources: Sequence[_Part]
    ) -> sparse.csr_array:
        """[cells of all sources, cells of the parts]: 1 where the first is counted in the second.

        sources: of which each part is the totals
        """
        sizes = [self._map.cells(source) for _, source in sources]
        rows, columns = (np.empty(sum(sizes), dtype=np.int32) for _ in range(2))
        source_starts, end, part_end = self._starts(all_sources), 0, 0
        for part, source, size in zip(parts, sources, sizes, strict=True):
            start, end = end, end + size
            rows[start:end] = np.arange(size) + source_starts[source]
            columns[start:end] = self._counted_in(source[1], part[1]) + part_end
            part_end += self._map.cells(part[1])
        n_rows = sum(self._map.cells(source) for _, source in all_sources)
        return sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=(n_rows, part_end))

    def _counted_in(self, table: AttributeIndices, part: AttributeIndices) -> np.ndarray:
        """The cell of its totals that each cell of a table is counted in: int64[cells]."""
        cells = np.zeros((1,) * len(table), dtype=np.int64)
        for axis, index in enumerate(table):
            if index in part:
                size = int(self._map.sizes[index])
                along = np.arange(size).reshape([-1, *(1,) * (len(table) - 1 - axis)])
                cells = cells * size + along
        return np.broadcast_to(cells, self._map.sizes[list(table)]).ravel()


def _not_maximal(tables: TableMap) -> list[AttributeIndices]:
    maximal = set(tables.tables)
    return [subset for subset in tables.family if subset not in maximal]


def _faces(table: AttributeIndices) -> list[AttributeIndices]:
    """All of its attributes but one."""
    return [table[:axis] + table[axis + 1 :] for axis in range(len(table))]


def _face_with(table: AttributeIndices, part: AttributeIndices) -> _Part:
    """The totals over one axis of a table from which those of the part follow."""
    return table, next(face for face in _faces(table) if set(part) <= set(face))
