"""The map from contributions to tables, its adjoint and distance, and what was measured."""

import os
import tempfile
import threading
import weakref
from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    MutableMapping,
    Sequence,
)
from functools import cached_property
from itertools import accumulate, groupby
from math import prod
from operator import itemgetter
from typing import NamedTuple, TypeVar

import numpy as np

from rpexplore.common.numbers import read_only
from rpexplore.common.processes import in_order
from rpexplore.domain.domain import AttributeIndices, subsets
from rpexplore.domain.structural_zeros import StructuralZeros
from rpexplore.errors import ReleaseError
from rpexplore.planning.mechanism.reconstruction import marginal
from rpexplore.planning.mechanism.strategy import Strategy

# Of a family of attribute sets, closed downwards, contributions c_A (one axis an attribute, sums
# along each axis 0) give every maximal table, M_T c = Σ_{A⊆T} c_A spread over the axes of T∖A; by
# 1/n_j, or by the reference z_j of an attribute with a strategy. Distances are measured as the
# noise is: ‖c‖² = Σ_A c_Aᵀ K_A⁺ c_A (docs/mathematics.md §11), without strategies the sum of
# squares.


ContributionArrays = Mapping[AttributeIndices, np.ndarray]
"""float64, one axis an attribute; sums along any axis are 0."""

Value = TypeVar("Value")

_CELLS_AT_ONCE = 1 << 17  # of the tables that a thread takes at a time


class TableMap:
    """M of a downward closed family of attribute sets, none of which has a single-valued attribute.

    sizes: int64[d], number of values of all attributes; strategies: by attribute index
    """

    def __init__(
        self,
        family: Iterable[AttributeIndices],
        sizes: np.ndarray,
        strategies: Mapping[int, Strategy],
    ) -> None:
        self.family = sorted(family, key=lambda subset: (len(subset), subset))
        self.sizes, self.strategies = sizes, strategies
        # Those that no other contains: each of the family holds its subsets of one attribute less.
        within = {
            subset[:i] + subset[i + 1 :] for subset in self.family for i in range(len(subset))
        }
        self.tables = [subset for subset in self.family if subset not in within]
        used = {index for table in self.tables for index in table}
        self._shares = {
            index: strategies[index].reference
            if index in strategies
            else np.full(int(sizes[index]), 1 / int(sizes[index]))
            for index in used
        }
        self._bounds = {index: _bounds(int(sizes[index]), strategies.get(index)) for index in used}

    def cells(self, subset: AttributeIndices) -> int:
        return prod(int(self.sizes[index]) for index in subset)

    def table(self, table: AttributeIndices, contributions: ContributionArrays) -> np.ndarray:
        """M_T c, the marginal on a set of the family: one axis an attribute."""
        within = {subset: contributions[subset] for subset in subsets(table)}
        return marginal(table, self.sizes, within, self.strategies)

    def pulled_back(
        self, table: AttributeIndices, values: np.ndarray
    ) -> dict[AttributeIndices, np.ndarray]:
        """M_Tᵀ λ of one table: weighted sums (means without a strategy) over any of its axes.

        To be added up over tables, then given to `shaped`: K M_Tᵀ is the adjoint of M_T.
        """
        parts = {table: values}
        # The longest axes first: what is left is small.
        for index in sorted(table, key=lambda index: -self.sizes[index]):
            strategy = self.strategies.get(index)
            for subset, part in list(parts.items()):
                axis = subset.index(index)
                left = subset[:axis] + subset[axis + 1 :]
                if strategy is None:
                    parts[left] = part.mean(axis=axis)
                else:
                    parts[left] = np.tensordot(strategy.reference, part, axes=(0, axis))
        return parts

    def shaped(self, subset: AttributeIndices, values: np.ndarray) -> np.ndarray:
        """K_A applied to what `pulled_back` gave: a contribution."""
        for axis, index in enumerate(subset):
            strategy = self.strategies.get(index)
            if strategy is None:
                values = values - values.mean(axis=axis, keepdims=True)
            else:
                covariance = strategy.within(subset).decoded_covariance
                product = np.tensordot(covariance, values, axes=(1, axis))
                values = np.moveaxis(product, 0, axis)
        return values

    def product(self, left: ContributionArrays, right: ContributionArrays) -> float:
        """Σ_A l_Aᵀ K_A⁺ r_A."""
        return float(
            sum(
                np.vdot(self._measured(subset, left[subset]), self._measured(subset, right[subset]))
                for subset in self.family
            )
        )

    def squared_length(self, subset: AttributeIndices, contribution: np.ndarray) -> float:
        """c_Aᵀ K_A⁺ c_A of one contribution."""
        return float(np.sum(self._measured(subset, contribution) ** 2))

    def bound(self, table: AttributeIndices, subset: AttributeIndices) -> float:
        """H with ‖M_T c‖² ≤ Σ_{A⊆T} H(T, A) ‖c_A‖²; equal without strategies."""
        measured = [self.strategies[index] for index in table if index in self.strategies]
        if not any(strategy.of_residuals for strategy in measured):
            return prod(self._bounds[index][index in subset] for index in table)
        # With matrices by residual: a sum of 2^m parts has at most 2^m times their squares, m the
        # attributes with strategies. Parts that differ in others are at right angles.
        bound = 2.0 ** len(measured)
        for index in table:
            if index not in self.strategies:
                bound *= self._bounds[index][index in subset]
            elif index in subset:
                decoding = self.strategies[index].within(subset).decoding
                bound *= float(np.linalg.norm(decoding, 2)) ** 2
            else:
                bound *= float(np.sum(self.shares(index) ** 2))
        return bound

    def spread_evenly(
        self, masses: Mapping[AttributeIndices, np.ndarray]
    ) -> dict[AttributeIndices, np.ndarray]:
        """The contributions of Σ_T m_T ⊗ (even over all other attributes).

        masses: of tables, one axis an attribute. A full table of nonnegative numbers has these
        tables for marginals if all m_T are nonnegative.
        """
        even = TableMap(self.family, self.sizes, {})
        sums = {subset: np.zeros(self.sizes[list(subset)]) for subset in self.family}
        for table, mass in masses.items():
            for subset, mean in even.pulled_back(table, mass).items():
                sums[subset] += mean * (self.cells(table) / self.cells(subset))
        parts = {subset: even.shaped(subset, values) for subset, values in sums.items()}
        if not self.strategies:
            return parts
        return {
            subset: self.decomposed(subset, even.table(subset, parts)) for subset in self.family
        }

    def _measured(self, subset: AttributeIndices, contribution: np.ndarray) -> np.ndarray:
        """R_i applied to each axis with a strategy, so that distances are sums of squares."""
        for axis, index in enumerate(subset):
            if index in self.strategies:
                matrix = self.strategies[index].within(subset).matrix
                contribution = np.moveaxis(np.tensordot(matrix, contribution, (1, axis)), 0, axis)
        return contribution

    def decomposed(self, subset: AttributeIndices, table: np.ndarray) -> np.ndarray:
        """The contribution of A in a marginal on A: along each axis, less the total spread."""
        return beyond_shares(table, [self.shares(index) for index in subset])

    def shares(self, attribute: int) -> np.ndarray:
        """How a total is spread over the values of an attribute: by 1/n, or the reference."""
        return self._shares[attribute]

    def of_tables(
        self, function: Callable[[AttributeIndices], Value]
    ) -> Iterator[tuple[AttributeIndices, Value]]:
        """(table, function(table)) of every maximal table, in order, worked out in threads."""

        def of_batch(batch: list[AttributeIndices]) -> list[tuple[AttributeIndices, Value]]:
            return [(table, function(table)) for table in batch]

        if len(self._batches) == 1:
            yield from of_batch(self._batches[0])
            return
        for values in in_order(of_batch, self._batches):
            yield from values

    @cached_property
    def _batches(self) -> list[list[AttributeIndices]]:
        """The maximal tables in groups worth a thread's while."""
        ends = accumulate(self.cells(table) for table in self.tables)
        numbered = zip((end // _CELLS_AT_ONCE for end in ends), self.tables, strict=True)
        return [[table for _, table in group] for _, group in groupby(numbered, key=itemgetter(0))]


def beyond_shares(table: np.ndarray, shares: Sequence[np.ndarray]) -> np.ndarray:
    """A table less, along each axis, its total spread by shares: float64[n] an axis."""
    for axis, share in enumerate(shares):
        along = share.reshape([-1, *(1,) * (len(shares) - 1 - axis)])
        table = table - along * table.sum(axis=axis, keepdims=True)
    return table


def largest(sets: Iterable[tuple[Value, ...]]) -> list[tuple[Value, ...]]:
    """The sets that are in no other of them, each once, in their order."""
    members = {one: frozenset(one) for one in sets}
    return [one for one, own in members.items() if not any(own < two for two in members.values())]


def _bounds(size: int, strategy: Strategy | None) -> tuple[float, float]:
    """(a, b) with ‖s z + c‖² ≤ a s² + b cᵀK⁺c for any number s and any c of sum 0.

    Even spread is at right angles to c, so that a = 1/n and b = 1. Else c = D ω and
    2 s zᵀD ω ≤ κ (‖z‖² s² + ‖D‖² ‖ω‖²) with κ = ‖Dᵀz‖ / (‖z‖ ‖D‖).
    """
    if strategy is None:
        return 1 / size, 1.0
    z, decoding = strategy.reference, strategy.decoding
    lengths = float(np.linalg.norm(z)), float(np.linalg.norm(decoding, 2))
    share = float(np.linalg.norm(decoding.T @ z)) / (lengths[0] * lengths[1])
    return lengths[0] ** 2 * (1 + share), lengths[1] ** 2 * (1 + share)


def without_rounding(
    tables: TableMap,
    contributions: MutableMapping[AttributeIndices, np.ndarray],
    total: np.ndarray,
) -> ContributionArrays:
    """With as much added to every cell as makes all of them nonnegative in floating point.

    contributions: whose maximal tables are nonnegative but for rounding; changed, as they may take
    all the memory there is. total: that they keep
    """
    margin = 1.0
    while True:
        lowest = tables.of_tables(lambda table: float(tables.table(table, contributions).min()))
        lacking = max(-least * tables.cells(table) for table, least in lowest)
        if not lacking > 0:
            return contributions
        margin *= 2
        added = np.array(margin * lacking)
        # Spread evenly it has no other contributions, unless strategies spread a total otherwise.
        spread: dict[AttributeIndices, np.ndarray] = {(): added}
        if tables.strategies:
            spread = tables.spread_evenly(spread)
        scale = float(total / (contributions[()] + spread[()]))
        for subset in tables.family:
            contributions[subset] = scale * (contributions[subset] + spread.get(subset, 0.0))
        contributions[()] = total


# ---- Arrays by attribute set: in memory while they are few, the others in a temporary file.


_MOST_IN_MEMORY = 1 << 27  # bytes
_LARGE_FILES = "/var/tmp"  # always on a disk, while /tmp may be memory


class _Place(NamedTuple):
    """Position, type and shape of an array in the file."""

    offset: int
    shape: tuple[int, ...]
    dtype: np.dtype


class ArrayStore(MutableMapping[AttributeIndices, np.ndarray]):
    """Arrays by attribute set: the first in memory, those beyond 128 MB in a temporary file.

    All are read-only: one that changes is set anew. What is set is kept, not copied, while there is
    room in memory. Several threads may use a store at a time. The file, for noisy figures only, is
    in TMPDIR if that is set and goes with the store. Raises `ReleaseError` if it finds no room.
    """

    def __init__(
        self,
        arrays: Mapping[AttributeIndices, np.ndarray]
        | Iterable[tuple[AttributeIndices, np.ndarray]] = (),
    ) -> None:
        self._entries: dict[AttributeIndices, np.ndarray | _Place] = {}
        self._shapes: dict[tuple[int, ...], tuple[int, ...]] = {}
        self._in_memory = self._end = 0  # bytes
        self._file = None
        self._lock = threading.Lock()
        self.update(arrays)

    def __getitem__(self, key: AttributeIndices) -> np.ndarray:
        entry = self._entries[key]
        if isinstance(entry, np.ndarray):
            return entry
        array = np.empty(entry.shape, entry.dtype)
        self._transfer(array, entry.offset, "readinto")
        return read_only(array)

    def __setitem__(self, key: AttributeIndices, array: np.ndarray) -> None:
        array = np.asarray(array)
        with self._lock:
            entry = self._entries.get(key)
            if isinstance(entry, np.ndarray):
                self._in_memory -= entry.nbytes
                entry = None
            if entry is None and self._in_memory + array.nbytes <= _MOST_IN_MEMORY:
                self._in_memory += array.nbytes
                self._entries[key] = read_only(array.view())
                return
            if entry is None or entry[1:] != (array.shape, array.dtype):
                # One shape for all that are alike: there may be a million.
                shape = self._shapes.setdefault(array.shape, array.shape)
                entry = _Place(self._end, shape, array.dtype)
                self._end += array.nbytes
        self._transfer(np.ascontiguousarray(array), entry.offset, "write")
        self._entries[key] = entry

    def __delitem__(self, key: AttributeIndices) -> None:
        """Without giving back room in the file."""
        with self._lock:
            entry = self._entries.pop(key)
            self._in_memory -= entry.nbytes if isinstance(entry, np.ndarray) else 0

    def __contains__(self, key: object) -> bool:
        return key in self._entries  # without reading it

    def __iter__(self) -> Iterator[AttributeIndices]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def shape(self, key: AttributeIndices) -> tuple[int, ...]:
        """That of an array, without reading it."""
        return self._entries[key].shape

    def _transfer(self, array: np.ndarray, offset: int, method: str) -> None:
        rest = array.data.cast("B")
        try:
            with self._lock:
                if self._file is None:
                    self._file = tempfile.TemporaryFile(  # noqa: SIM115 - open while the store lives
                        buffering=0, dir=_folder()
                    )
                    weakref.finalize(self, self._file.close)
                self._file.seek(offset)
                while rest:  # as systems take 2 GB at a time
                    rest = rest[getattr(self._file, method)(rest) :]
        except OSError as error:
            raise ReleaseError(
                f"The temporary files of so many tables could not be kept in "
                f"{_folder() or tempfile.gettempdir()!r} ({error.strerror or error}); set the "
                "environment variable TMPDIR to a folder on a disk that has room."
            ) from None


def _folder() -> str | None:
    """The folder of the file; None for where Python puts temporary files."""
    if "TMPDIR" in os.environ or not os.access(_LARGE_FILES, os.W_OK | os.X_OK):
        return None
    return _LARGE_FILES


# ---- What was measured, as the smooth fit uses it: contributions and the variance of their cells.


class MeasuredResiduals:
    """The contribution of every residual with its noise, and the number of records.

    contributions  float64, one axis an attribute; of a downward closed family
    variances      σ² of each
    sizes          int64[d], number of values of all attributes
    total          the measured number of records, or 1 if that is less
    zeros          where no record is possible; None: no such cell is known
    exact          those that are true counts, without noise: their variance stands for 0
    """

    def __init__(
        self,
        contributions: ContributionArrays,
        variances: Mapping[AttributeIndices, float],
        sizes: np.ndarray,
        strategies: Mapping[int, Strategy],
        zeros: StructuralZeros | None = None,
        exact: Collection[AttributeIndices] = (),
    ) -> None:
        self.contributions, self.variances, self.zeros = contributions, variances, zeros
        self.exact = frozenset(exact)
        self.map = TableMap(contributions, sizes, strategies)
        self.sizes, self.strategies = sizes, strategies
        # Below 1 there would be no shares to speak of.
        self.total = max(float(contributions[()]), 1.0)

    def of_order(self, order: int) -> list[AttributeIndices]:
        """The sets of this many attributes, in lexicographical order."""
        return self._by_order.get(order, [])

    @cached_property
    def largest_order(self) -> int:
        return max(self._by_order)

    @cached_property
    def _by_order(self) -> dict[int, list[AttributeIndices]]:
        by_order: dict[int, list[AttributeIndices]] = {}
        for subset in self.map.family:
            by_order.setdefault(len(subset), []).append(subset)
        return by_order

    def shape(self, subset: AttributeIndices) -> tuple[int, ...]:
        return tuple(int(self.sizes[index]) for index in subset)

    def where_possible(self, subset: AttributeIndices, table: np.ndarray) -> np.ndarray:
        """The table, with 0 in cells that can have no record."""
        possible = None if self.zeros is None else self.zeros.possible(subset)
        return table if possible is None else np.where(possible, table, 0).astype(table.dtype)

    def beyond(self, subset: AttributeIndices, table: np.ndarray) -> np.ndarray:
        """The measured contribution less that of a table: 0 and noise if the table is right."""
        return self.contributions[subset] - self.map.decomposed(subset, table)

    def cell_variance(self, subset: AttributeIndices) -> float | np.ndarray:
        """The variance of the contribution's cells: one number if it is the same for all."""
        if not any(index in self.strategies for index in subset):
            return self.variances[subset] * self.degrees_of_freedom_per_cell(subset)
        variance = np.full((1,) * len(subset), self.variances[subset])
        for axis, index in enumerate(subset):
            strategy = self.strategies.get(index)
            size = int(self.sizes[index])
            of_axis = (
                np.full(size, 1 - 1 / size)
                if strategy is None
                else np.diag(strategy.within(subset).decoded_covariance)
            )
            variance = variance * np.expand_dims(
                of_axis, [other for other in range(len(subset)) if other != axis]
            )
        return variance

    def even_variance(self, subset: AttributeIndices) -> float:
        """σ² that noise alike in all cells would have for the same sum of cell variances."""
        variance = self.variances[subset]
        for index in subset:
            strategy = self.strategies.get(index)
            if strategy is not None:
                covariance = strategy.within(subset).decoded_covariance
                variance *= np.trace(covariance) / (strategy.size - 1)
        return float(variance)

    def degrees_of_freedom_per_cell(self, subset: AttributeIndices) -> float:
        """∏ (n_i − 1)/n_i: contributions sum to 0 along every axis."""
        return prod(1 - 1 / int(self.sizes[index]) for index in subset)
