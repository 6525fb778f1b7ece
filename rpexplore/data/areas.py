"""Coding of areas: which area of a tree each record lies in; subtrees counted by themselves."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rpexplore.common.text import joined
from rpexplore.data.arrow_values import as_text, distinct_values, of_known_type
from rpexplore.data.source import Counts, check_column
from rpexplore.domain.area_tree import AreaRange, AreaTree
from rpexplore.errors import DataError

# A record lies in an area without parts; what it holds on the levels below where that ends must be
# missing. Each record is coded by itself, as by `coding`.


# pyarrow.compute makes its functions when it is imported, so pyright cannot know them.
# pyright: reportAttributeAccessIssue=false


_MISSING, _UNKNOWN = -1, -2
_SHOWN = 5  # codes named on the screen


@dataclass(frozen=True, eq=False)
class AreaCut:
    """Areas that records are counted by, as if they were an attribute's values.

    areas: a record is counted in the lowest of these areas that it lies in, by its row there; and
        where it lies in none of them, in one more
    """

    areas: AreaRange

    @property
    def size(self) -> int:
        """How many values the attribute would have."""
        return len(self.areas) + 1

    def of_areas(self) -> np.ndarray:
        """The value of a record in each area, uint32[n_areas]."""
        tree = self.areas.tree
        values = np.full(tree.n_areas, len(self.areas), dtype=np.uint32)
        values[self.areas.areas] = np.arange(len(self.areas))
        lowest = self.areas.slices[-1]
        if lowest.stop > lowest.start:
            level = int(tree.level_of[lowest.start])
            last = len(tree.levels) - 1
            below = AreaRange.within(tree, level, lowest.start, lowest.stop, last)
            for areas in below.slices[1:]:
                values[areas] = values[tree.parents[areas]]
        return values


@dataclass(frozen=True, eq=False)
class AreaCuts:
    """The areas that records are counted by, in one or more ways.

    tree: the areas that the records lie in
    cuts: the ways, each of which is like an attribute
    """

    tree: AreaTree
    cuts: tuple[AreaCut, ...]


class AreaCoder:
    """Turns the codes of records into those of the areas that they are counted by, or refuses them.

    Args:
        cuts: These areas.
        records: What the records are called.
        columns: The columns that the records have.
        first: The index of the first cut as an attribute; the others follow.

    Records have a column for each level below the top; or one for the lowest level alone, where
    no two areas without parts have the same code.

    Raises:
        DataError: For a column that is not there once.
    """

    def __init__(self, cuts: AreaCuts, records: str, columns: Sequence[str], first: int) -> None:
        self._tree = tree = cuts.tree
        self._cuts, self._first = [cut.of_areas() for cut in cuts.cuts], first
        self.sizes = [cut.size for cut in cuts.cuts]
        self.names = list(tree.levels[1:])
        self._by_one_code = bool(self.names) and not set(self.names[:-1]) & set(columns)
        if self._by_one_code and len(self.names) > 1:
            areas = np.flatnonzero(tree.n_parts == 0)
            codes = tree.codes.take(pa.array(areas)).cast(pa.string())
            if tree.recodes is not None:
                undivided = np.flatnonzero(tree.n_parts[tree.recodes.areas] == 0)
                areas = np.append(areas, tree.recodes.areas[undivided])
                recodes = tree.recodes.codes.take(pa.array(undivided))
                codes = pa.concat_arrays([codes, recodes])
            is_unclear = len(pc.unique(codes)) < len(codes)
            if tree.empty is not None:  # one with the code of another would be taken for that
                empty = np.arange(tree.n_areas, tree.n_all)
                empty = empty[~np.isin(empty, tree.empty.parents)]  # areas without parts
                of_empty = tree.all_codes.take(pa.array(empty))
                is_unclear |= pc.any(pc.is_in(of_empty, codes)).as_py()
            self._areas, self._codes = areas, codes
            if is_unclear:
                self._by_one_code = False  # which the check of columns tells
            else:
                self.names = self.names[-1:]
        else:
            self._by_one_code = False
        for name in self.names:
            check_column(records, name, columns, remedy="name the columns as the tree's levels")

    def codes(self, batch: pa.RecordBatch) -> dict[int, np.ndarray]:
        """Each record's code by each cut, unsigned; `DataError` if it lies in no area."""
        areas = self.areas(batch)
        if np.any(areas < 0):
            refusal = int(np.max(areas[areas < 0]))
            rows = np.flatnonzero(areas == refusal)[:_SHOWN].tolist()
            columns = [batch.column(column) for column in self.names]
            shown = "; ".join(joined([repr(c[row].as_py()) for c in columns]) for row in rows)
            raise self.refusal_error(refusal, private=f"By {joined(self.names)}: {shown}.")
        return self.codes_of_areas(areas)

    def codes_of_areas(self, areas: np.ndarray) -> dict[int, np.ndarray]:
        """The codes by each cut of records in these areas, by their numbers, int[n]."""
        return dict(enumerate((cut[areas] for cut in self._cuts), start=self._first))

    @property
    def refusals(self) -> range:
        """The number in `areas` for records that lie in no area without parts."""
        return range(-1, -1 - 2 * len(self.names), -1)

    def refusal_error(self, refusal: int, *, private: str = "") -> DataError:
        """The error for such a record."""
        level, is_unknown = divmod(-1 - refusal, 2)
        what = "is not in the tree" if is_unknown else "is missing within an area that has parts"
        remedy = "add the area to the tree"
        if is_unknown and self._tree.empty is not None:
            what = "is not in the tree, or that of an area stated to be empty"
            remedy += ", or take its mark out,"
        return DataError(
            f"Records lie in an area whose code in the column {self.names[level]!r} {what}; "
            f"correct the records, or {remedy} before planning.",
            private=private,
        )

    def areas(self, batch: pa.RecordBatch) -> np.ndarray:
        """The number of the area without parts that each record lies in, or a refusal: int64[n]."""
        if self._by_one_code:
            ranks = _ranks(batch.column(self.names[0]), self._codes)
            areas = self._areas[np.maximum(ranks, 0)]
            return np.where(ranks < 0, np.where(ranks == _MISSING, -1, -2), areas)
        areas, goes_on = np.zeros(batch.num_rows, dtype=np.int64), np.ones(batch.num_rows, bool)
        refusals = np.zeros(batch.num_rows, dtype=np.int64)
        for level, name in enumerate(self.names, start=1):
            codes, keys = self._levels[level - 1]
            ranks = _ranks(batch.column(name), codes, are_ascending=True)
            divided, start = self._tree.n_parts[areas] > 0, int(self._tree.starts[level])
            is_missing = ranks == _MISSING
            wanted = areas * len(codes) + ranks
            found = self._positions(wanted, keys, self._tree.first_parts[areas] - start)
            is_known = (keys[found] == wanted) & (ranks >= 0) & divided & goes_on
            # A code below an area that has no parts, or none within one that has.
            _refuse(refusals, is_missing & divided & goes_on, 1 - 2 * level)
            _refuse(refusals, ~is_missing & ~is_known, -2 * level)
            goes_on = is_known
            areas = np.where(goes_on, found + start, areas)
            if recodes := self._recodes.get(level):
                # Such a code tells by itself where the area is, whatever is above it.
                recoded = _ranks(batch.column(name), recodes[0])
                is_recoded = recoded >= 0
                refusals[is_recoded] = 0
                goes_on |= is_recoded
                areas = np.where(is_recoded, recodes[1][np.maximum(recoded, 0)], areas)
        return np.where(refusals < 0, refusals, areas)

    @staticmethod
    def _positions(wanted: np.ndarray, keys: np.ndarray, first: np.ndarray) -> np.ndarray:
        """The position of each wanted number among ascending keys, if it is there.

        first: where those of its parent begin, or anything where it is not there
        """
        last = len(keys) - 1
        first = np.clip(first, 0, last)
        # Codes mostly follow one another without gaps: looking there first takes a tenth.
        found = np.clip(first + wanted - keys[first], 0, last)
        elsewhere = np.flatnonzero(keys[found] != wanted)
        found[elsewhere] = np.minimum(np.searchsorted(keys, wanted[elsewhere]), last)
        return found

    @cached_property
    def _recodes(self) -> dict[int, tuple[pa.Array, np.ndarray]]:
        """Of each level with recodes their codes, and the numbers of the areas that are meant."""
        recodes = self._tree.recodes
        if recodes is None:
            return {}
        levels = self._tree.level_of[recodes.areas]
        found = {}
        for level in np.unique(levels).tolist():
            rows = np.flatnonzero(levels == level)
            codes = recodes.codes.take(pa.array(rows))
            found[level] = (codes, recodes.areas[rows].astype(np.int64))
        return found

    @cached_property
    def _levels(self) -> list[tuple[pa.Array, np.ndarray]]:
        """Of each level below the top its codes, and parent and rank of code of each area.

        The latter as one number, ascending.
        """
        levels = []
        for level in range(1, len(self._tree.levels)):
            areas = self._tree.level_slice(level)
            encoded = self._tree.codes.slice(areas.start, areas.stop - areas.start)
            encoded = encoded.dictionary_encode()
            order = pc.sort_indices(encoded.dictionary).to_numpy()
            ranks = np.empty(len(order), dtype=np.int64)
            ranks[order] = np.arange(len(order))
            parents = self._tree.parents[areas].astype(np.int64)
            keys = parents * len(order) + ranks[encoded.indices.to_numpy()]
            levels.append((encoded.dictionary.take(pa.array(order)), keys))
        return levels


def _refuse(refusals: np.ndarray, refused: np.ndarray, refusal: int) -> None:
    """Note a refusal for records [n] that have none on a higher level."""
    refusals[refused & (refusals == 0)] = refusal


def _text(code: pa.StringScalar) -> str:
    return code.as_py()


def _ranks(column: pa.Array, codes: pa.Array, *, are_ascending: bool = False) -> np.ndarray:
    """The position of each record's code in a list of distinct ones, `_MISSING` or `_UNKNOWN`."""
    distinct, indices = distinct_values(column)
    texts = pc.utf8_normalize(as_text(of_known_type(distinct)), form="NFC")
    first = 0
    if are_ascending:
        # Records mostly follow one another as areas do. A table of all codes, made anew for each
        # batch, would take time as the product of areas and records.
        least, largest = pc.min_max(texts).values()
        if least.is_valid:
            first = bisect_left(codes, least.as_py(), key=_text)
            last = bisect_right(codes, largest.as_py(), first, key=_text)
            codes = codes.slice(first, last - first)
    ranks = pc.fill_null(pc.index_in(texts, value_set=codes, skip_nulls=True), _UNKNOWN - first)
    ranks = ranks.to_numpy(zero_copy_only=False).astype(np.int64) + first
    ranks[pc.fill_null(pc.equal(texts, ""), True).to_numpy(zero_copy_only=False)] = _MISSING
    return np.append(ranks, _MISSING)[indices]


# ---- Area shares: subtrees of a tree of areas, each counted and worked on by itself.


Work: TypeAlias = Callable[[int, Counts], Iterator[np.ndarray]]
"""What is made of a share, by its number, and its exact counts: int64[·] each."""


@dataclass(frozen=True, eq=False)
class AreaShare:
    """Areas of one level that follow one another with all that lies in them, and their counts.

    tables  sets of attribute indices, which have the cuts behind the domain's
    """

    areas: AreaRange
    cuts: AreaCuts
    tables: Sequence[Sequence[int]]


@dataclass(frozen=True, eq=False)
class AreaShares:
    """Shares of one level of a tree; no area is in two, and some may be in none."""

    tree: AreaTree
    shares: tuple[AreaShare, ...]

    def __len__(self) -> int:
        return len(self.shares)

    @cached_property
    def of_areas(self) -> np.ndarray:
        """Which share each area of the tree is in, int[n_areas]; −1 for none."""
        tree = self.tree
        found = np.full(tree.n_areas, -1, dtype=np.min_scalar_type(-len(self) - 1))
        for number, share in enumerate(self.shares):
            found[share.areas.slices[0]] = number
        top = int(tree.level_of[self.shares[0].areas.slices[0].start])
        for level in range(top + 1, len(tree.levels)):
            areas = tree.level_slice(level)
            found[areas] = found[tree.parents[areas]]
        return found
