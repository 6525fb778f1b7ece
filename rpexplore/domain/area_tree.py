"""Area tree: areas in areas, level by level. Public knowledge; holds no records."""

# pyarrow.compute makes its functions when it is imported, so pyright cannot know them.
# pyright: reportAttributeAccessIssue=false

import hashlib
import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rpexplore.common.numbers import read_only
from rpexplore.common.text import joined, plural
from rpexplore.domain.area_levels import (
    Level,
    RowName,
    columns_of_parents,
    levels_of_columns,
    names_of_levels,
    refuse_deep,
    text_column,
)
from rpexplore.errors import DomainError

if TYPE_CHECKING:
    import pyarrow as pa


# What is a country, regions and municipalities here may as well be sections, divisions and classes
# of a classification (NACE, ISCO, ICD-10).


MAX_AREAS = 20_000_000
_SHOWN_RECODES = 5  # in a sentence
TOP = "all"  # what the level above the first column is called


@dataclass(frozen=True, eq=False, repr=False)
class EmptyAreas:
    """Areas that are publicly known to have nobody: a lake, a park. They are not in the tree.

    Their numbers follow those of the tree, level by level. An area whose parts are all empty is
    empty itself.

    levels   int8[n]: the level of each by its number from the top, ascending
    parents  int32[n]: the number of the area that each is a part of, in the tree or empty itself
    codes    texts [n]: what each is called within its parent
    names    texts [n]; None where the tree has none
    """

    levels: np.ndarray
    parents: np.ndarray
    codes: "pa.Array"
    names: "pa.Array | None" = None

    def __len__(self) -> int:
        return len(self.parents)


@dataclass(frozen=True, eq=False, repr=False)
class AreaRecodes:
    """Codes in records that no area has, and the areas that they stand for: former municipalities.

    areas  int32[n]: the numbers of these areas, ascending
    codes  texts [n]: what records call each on its level; ascending for one area, and each once on
           a level
    """

    areas: np.ndarray
    codes: "pa.Array"

    def __len__(self) -> int:
        return len(self.areas)


@dataclass(frozen=True, eq=False, repr=False)
class AreaTree:
    """Areas, numbered level by level from the top; the parts of an area follow one another.

    levels    what the levels are called, from the top, which is one area
    starts    int64[n_levels + 1]: the number of each level's first area, and of all areas
    parents   int32[n_areas]: the number of the area that each is a part of; −1 for the top
    codes     texts [n_areas], a pyarrow array: what an area is called within its parent; in
              ascending order there
    names     texts [n_areas], a pyarrow array: what people call each area; None for none
    empty     the areas that are known to have nobody, which are none of these; None for none
    recodes   other codes that records have for areas; None for none

    An area without parts may lie on any level. Use `from_columns` or `from_parents`.

    Example:
        >>> AreaTree.from_columns({"region": ["N", "N", "S"], "town": ["1", "2", "1"]}).n_areas
        6
    """

    levels: tuple[str, ...]
    starts: np.ndarray
    parents: np.ndarray
    codes: "pa.Array"
    names: "pa.Array | None" = None
    empty: EmptyAreas | None = None
    recodes: AreaRecodes | None = None

    @classmethod
    def from_columns(
        cls,
        columns: Mapping[str, Sequence[str | None]],
        names: Mapping[str, Sequence[str | None]] | None = None,
        *,
        empty: Sequence[bool] | np.ndarray | None = None,
        row_name: RowName = "Row {:,} of the areas".format,
    ) -> "AreaTree":
        """The tree of a table with a row for each area without parts, and a column for each level.

        Args:
            columns: Level -> codes, from the coarsest level on. An area may end early: None or ""
                on the levels that it does not have, which are the last ones.
            names: Level -> what its areas are called, for as many levels as have names.
            empty: Which rows are of areas that are publicly known to have nobody: no noise is drawn
                for them, and their counts are 0.
            row_name: What a row, counted from 1, is called in errors.

        The top level is the first column where that holds one code, and one above it otherwise.

        Raises:
            DomainError: For no rows or columns, a code below a missing one, a row that is there
                twice, an area that ends early and has parts, an area with two names, too many
                areas, or empty ones only.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        if not columns:
            raise DomainError("A tree of areas needs a column for at least one level, got none.")
        refuse_deep(len(columns))
        codes = {
            level: text_column(f"codes of the level {level!r}", column)
            for level, column in columns.items()
        }
        named = {
            level: text_column(f"names of the level {level!r}", column)
            for level, column in (names or {}).items()
        }
        counts = {len(column) for column in (*codes.values(), *named.values())}
        if len(counts) != 1 or 0 in counts:
            raise DomainError(
                "The columns of a tree of areas must have one code a row, at least one row in all; "
                f"got columns of {', '.join(map(str, sorted(counts)))} rows."
            )
        levels, numbers = levels_of_columns(codes, named, lambda row: row_name(row + 1))
        sizes = [len(level.parents) for level in levels]
        if sum(sizes) > MAX_AREAS:
            raise DomainError(
                f"A tree can have {MAX_AREAS:,} areas at most, got {sum(sizes):,}; leave out the "
                "lowest level."
            )
        starts = np.cumsum([0, *sizes])
        first_above = np.repeat([0, *starts[:-2]], sizes)
        tree = cls(
            levels=tuple(level.level or _top_name(list(columns)) for level in levels),
            starts=read_only(starts),
            parents=read_only(
                (np.concatenate([level.parents for level in levels]) + first_above).astype(np.int32)
            ),
            codes=pa.concat_arrays([level.codes for level in levels]),
            names=_joined_names(levels) if named else None,
        )
        marked = np.zeros(len(numbers), bool) if empty is None else np.asarray(empty, dtype=bool)
        if len(marked) != len(numbers):
            raise DomainError(
                f"Which areas are empty must be said of each of the {len(numbers):,} rows, got "
                f"{len(marked):,}."
            )
        if not np.any(marked):
            return tree
        depths = np.zeros(len(numbers), dtype=np.int64)
        for column in codes.values():
            depths += pc.not_equal(column, "").to_numpy(zero_copy_only=False)
        areas = starts[depths - (levels[0].level is not None)] + numbers
        return _apart(tree, areas[marked])

    @classmethod
    def from_parents(
        cls,
        parents: Mapping[str, str | None],
        levels: Sequence[str] = (),
        *,
        empty: Collection[str] = (),
    ) -> "AreaTree":
        """The tree of codes that name their parent: {"12": None, "12086": "12", …}.

        Args:
            parents: Code -> the code that it is a part of; None or "" for a coarsest one.
            levels: What the levels are called, from the coarsest codes on; "level 1", … if left
                out.
            empty: Codes of areas that are publicly known to have nobody, nor has any part of them.

        Raises:
            DomainError: For a parent that is not there, codes that are parts of themselves, or an
                empty area that is not there.
        """
        if lost := [code for code in empty if code not in parents]:
            raise DomainError(
                f"The area {lost[0]!r}, which is stated to be empty, is not in the list; add it."
            )
        return cls.from_parent_columns(
            list(parents),
            list(parents.values()),
            levels=levels,
            empty=[code in empty for code in parents],
        )

    @classmethod
    def from_parent_columns(
        cls,
        codes: Sequence[str | None],
        parents: Sequence[str | None],
        names: Sequence[str | None] | None = None,
        *,
        levels: Sequence[str] = (),
        empty: Sequence[bool] | np.ndarray | None = None,
        row_name: RowName = "Row {:,} of the areas".format,
    ) -> "AreaTree":
        """As `from_parents`, of a table with a row for each area.

        names, empty: of each, if wanted
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        if not len(codes):
            raise DomainError("A tree of areas needs the code of one area at least, got none.")
        own_codes = text_column("codes of the areas", codes)
        code_columns, name_columns = columns_of_parents(
            own_codes,
            text_column("parents of the areas", parents),
            None if names is None else text_column("names of the areas", names),
            lambda row: row_name(row + 1),
        )
        depth = len(code_columns)
        levels = names_of_levels(levels, depth, "The areas")
        marked = None
        if empty is not None and np.any(empty):
            # Of areas without parts: those that are marked, or lie in one that is.
            of_empty = own_codes.filter(pa.array(np.asarray(empty, dtype=bool)))
            marked = np.zeros(len(code_columns[0]), dtype=bool)
            for column in code_columns:
                marked |= pc.is_in(column, of_empty).to_numpy(zero_copy_only=False)
        return cls.from_columns(
            dict(zip(levels, code_columns, strict=True)),
            dict(zip(levels, name_columns, strict=bool(name_columns))),
            empty=marked,
        )

    @classmethod
    def from_file(
        cls,
        path: str | Path,
        *,
        levels: Sequence[str] = (),
        separator: str | None = None,
        lengths: Sequence[int] = (),
    ) -> "AreaTree":
        """The tree of a CSV (.csv, .csv.gz) or Parquet file, in one of three forms.

        - One row an area without parts, one column a level, from the coarsest on: `region,town`;
          a column `town_name` beside `town` holds names.
        - One row an area without parts, and its whole code in the first column: with a separator,
          `12|086|000100`, or with the lengths of its parts, `12086000100`. An area's code is what
          such codes begin with. A column `name` beside it holds the areas' names.
        - One row an area, with the columns `code` and `parent`, and `name` if wanted.

        A column `empty` beside these says yes for areas that are publicly known to have nobody
        (`from_columns`), and no or nothing for others.

        Args:
            levels: Of the first form, which columns are levels, from the coarsest on; if left out
                all but those of names. Of the others, what the levels are called.
            separator: What stands between the parts of a whole code.
            lengths: How many signs each part of a whole code has.

        Raises:
            DomainError: For a file that cannot be read or is no tree; it says where.
        """
        from rpexplore.domain.area_file import read_area_file

        return read_area_file(path, levels=levels, separator=separator, lengths=lengths)

    def with_recodes(self, recodes: Mapping[str, Mapping[str, str]]) -> "AreaTree":
        """The tree whose areas records may also call by other codes, such as former ones.

        A record with such a code on a level lies in its area, whatever it has on the levels above:
        a municipality that came to another region is where it is now.

        Args:
            recodes: Level -> code in records, or a range of whole numbers ("7..20") -> the code of
                an area of this level that no other area there has.

        Raises:
            DomainError: For a level or an area that is not there, an area that is stated to be
                empty, and a code that is an area's, stands for two or is recoded again.

        Example:
            >>> tree = AreaTree.from_columns({"town": ["1", "3"]})
            >>> tree.with_recodes({"town": {"2": "3"}}).recodes_text
            '1 other code in records (1 on town) is counted as an area of the list: 2 as 3.'
        """
        from rpexplore.domain.area_recodes import recoded

        return recoded(self, recodes)

    # ---- what there is

    @property
    def n_areas(self) -> int:
        """How many areas there are on all levels."""
        return len(self.parents)

    def __repr__(self) -> str:
        sizes = ", ".join(f"{n:,}" for n in np.diff(self.starts).tolist())
        return f"<AreaTree of {self.n_areas:,} areas: {sizes}>"

    def level_slice(self, level: int) -> slice:
        """The areas of a level, by its number from the top."""
        return slice(int(self.starts[level]), int(self.starts[level + 1]))

    @cached_property
    def level_of(self) -> np.ndarray:
        """The level of each area by its number from the top, int8[n_areas]."""
        return read_only(
            np.repeat(np.arange(len(self.levels), dtype=np.int8), np.diff(self.starts))
        )

    @cached_property
    def n_parts(self) -> np.ndarray:
        """How many parts each area has, int32[n_areas]; 0 for one that is not divided."""
        counts = np.bincount(self.parents[1:], minlength=self.n_areas)
        return read_only(counts.astype(np.int32))

    @cached_property
    def first_parts(self) -> np.ndarray:
        """The number of each area's first part, int64[n_areas]; anything where it has none."""
        return read_only(1 + np.cumsum(self.n_parts, dtype=np.int64) - self.n_parts)

    def path(self, area: int) -> tuple[str, ...]:
        """The codes from below the top down to an area, which may be an empty one."""
        codes = []
        while self.all_parents[area] >= 0:
            codes.append(self.all_codes[area].as_py())
            area = int(self.all_parents[area])
        return tuple(reversed(codes))

    def find(self, path: Sequence[str], *, empty: bool = False) -> int:
        """The number of the area with these codes from below the top; `DomainError` if none.

        empty: whether it may be an empty one, whose number is behind those of the tree
        """
        area = 0
        for depth, code in enumerate(path):
            part = self._empty_parts.get((area, code), -1)
            if part < 0 and area < self.n_areas:
                first, count = int(self.first_parts[area]), int(self.n_parts[area])
                within = self.codes.slice(first, count).index(code).as_py() if count else -1
                part = first + within if within >= 0 else -1
            if part < 0:
                above = " > ".join(path[:depth]) or self.levels[0]
                raise DomainError(f"There is no area {code!r} in {above}; check its code.")
            area = part
        if area >= self.n_areas and not empty:
            raise DomainError(
                f"The area {' > '.join(path)} is stated to be empty: all its counts are 0, without "
                "noise; name another one."
            )
        return area

    # ---- with those that are empty

    @cached_property
    def n_all(self) -> int:
        """How many areas there are with the empty ones."""
        return self.n_areas + (0 if self.empty is None else len(self.empty))

    @cached_property
    def all_parents(self) -> np.ndarray:
        """`parents`, and behind them those of the empty areas."""
        return self.parents if self.empty is None else np.append(self.parents, self.empty.parents)

    @cached_property
    def all_codes(self) -> "pa.Array":
        """`codes`, and behind them those of the empty areas."""
        return self.codes if self.empty is None else _joined(self.codes, self.empty.codes)

    @cached_property
    def all_names(self) -> "pa.Array | None":
        """`names`, and behind them those of the empty areas; None for none."""
        if self.names is None or self.empty is None or self.empty.names is None:
            return self.names
        return _joined(self.names, self.empty.names)

    def empty_on(self, level: int, within: int = 0) -> np.ndarray:
        """The numbers of the empty areas of a level that lie in an area of the tree: int64[n]."""
        if self.empty is None:
            return np.zeros(0, dtype=np.int64)
        areas = self.n_areas + np.flatnonzero(self.empty.levels == level)
        around = areas
        for _ in range(level - int(self.level_of[within])):
            around = self.all_parents[around]
        return areas[around == within]

    @property
    def empty_text(self) -> str:
        """How many areas are known to have nobody, in a sentence; "" for none."""
        if self.empty is None:
            return ""
        counts = np.bincount(self.empty.levels, minlength=len(self.levels)).tolist()
        by_level = [f"{n:,} on {self.levels[level]}" for level, n in enumerate(counts) if n]
        are = "is" if len(self.empty) == 1 else "are"
        return (
            f"{plural(len(self.empty), 'area')} ({joined(by_level)}) {are} stated to be empty, as "
            "public knowledge: all counts there are exactly 0, and no noise is drawn for them."
        )

    @property
    def recodes_text(self) -> str:
        """Which codes in records stand for areas, in a sentence; "" for none."""
        if self.recodes is None:
            return ""
        counts = np.bincount(self.level_of[self.recodes.areas], minlength=len(self.levels))
        by_level = [f"{n:,} on {self.levels[level]}" for level, n in enumerate(counts) if n]
        codes = self.recodes.codes.slice(0, _SHOWN_RECODES).to_pylist()
        own = (self.codes[area].as_py() for area in self.recodes.areas[:_SHOWN_RECODES].tolist())
        shown = [f"{code} as {area}" for code, area in zip(codes, own, strict=True)]
        if len(self.recodes) > _SHOWN_RECODES:
            shown.append("…")
        are = "is counted as an area" if len(self.recodes) == 1 else "are counted as areas"
        return (
            f"{plural(len(self.recodes), 'other code')} in records ({joined(by_level)}) {are} of "
            f"the list: {', '.join(shown)}."
        )

    @cached_property
    def _empty_parts(self) -> dict[tuple[int, str], int]:
        """(the area that it is a part of, code) -> the number of an empty area."""
        if self.empty is None:
            return {}
        keys = zip(self.empty.parents.tolist(), self.empty.codes.to_pylist(), strict=True)
        return {key: self.n_areas + place for place, key in enumerate(keys)}

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of levels, parents, codes, names, the same of empty areas, and of recodes.

        In hexadecimal.
        """
        digest = hashlib.sha256(json.dumps(self.levels).encode())
        digest.update(np.ascontiguousarray(self.parents, dtype="<i4").tobytes())
        for texts in (self.codes, self.names):
            digest.update(b"-" if texts is None else _bytes_of_texts(texts))
        if self.empty is not None:
            digest.update(b"empty" + self.empty.levels.astype("<i1").tobytes())
            digest.update(np.ascontiguousarray(self.empty.parents, dtype="<i4").tobytes())
            for texts in (self.empty.codes, self.empty.names):
                digest.update(b"-" if texts is None else _bytes_of_texts(texts))
        if self.recodes is not None:
            digest.update(b"recodes")
            digest.update(np.ascontiguousarray(self.recodes.areas, dtype="<i4").tobytes())
            digest.update(_bytes_of_texts(self.recodes.codes))
        return digest.hexdigest()


def _bytes_of_texts(texts: "pa.Array") -> bytes:
    """The lengths of texts in UTF-8, and then these."""
    import pyarrow as pa

    texts = texts.cast(pa.string())
    _, offsets, content = texts.buffers()
    ends = np.frombuffer(offsets, dtype="<i4")[texts.offset : texts.offset + len(texts) + 1]
    written = b"" if content is None else memoryview(content)[ends[0] : ends[-1]].tobytes()
    return np.diff(ends).tobytes() + written


def _joined_names(levels: Sequence[Level]) -> "pa.Array":
    import pyarrow as pa

    return pa.concat_arrays(
        [
            pa.repeat("", len(level.codes)) if level.names is None else level.names
            for level in levels
        ]
    )


def _joined(first: "pa.Array", second: "pa.Array") -> "pa.Array":
    import pyarrow as pa

    return pa.concat_arrays([first.cast(pa.string()), second.cast(pa.string())])


def _apart(tree: AreaTree, empty: np.ndarray) -> AreaTree:
    """The tree without some areas that have no parts, by their numbers, which it keeps apart.

    Nor are areas in it of which all parts are empty, nor levels of which all areas are.
    """
    import pyarrow as pa

    is_empty = np.zeros(tree.n_areas, dtype=bool)
    is_empty[empty] = True
    n_left = tree.n_parts.astype(np.int64)  # parts that are not empty
    for level in range(len(tree.levels) - 1, 0, -1):
        areas = np.arange(tree.n_areas)[tree.level_slice(level)]
        np.subtract.at(n_left, tree.parents[areas[is_empty[areas]]], 1)
        above = tree.level_slice(level - 1)
        is_empty[above] |= (tree.n_parts[above] > 0) & (n_left[above] == 0)
    if is_empty[0]:
        raise DomainError(
            "All areas are stated to be empty, so there is nothing to release; leave at least one "
            "in which there may be records."
        )
    kept = np.flatnonzero(~is_empty)
    sizes = np.bincount(tree.level_of[kept])
    numbers = np.zeros(tree.n_areas, dtype=np.int32)
    numbers[kept] = np.arange(len(kept))
    apart = np.zeros(0, dtype=np.int64)
    for level in range(1, len(sizes)):  # in the order of the new numbers of their parents
        start = int(tree.starts[level])
        own = start + np.flatnonzero(is_empty[tree.level_slice(level)])
        own = own[np.argsort(numbers[tree.parents[own]], kind="stable")]
        numbers[own] = len(kept) + len(apart) + np.arange(len(own))
        apart = np.append(apart, own)
    of_kept, of_apart = pa.array(kept), pa.array(apart)
    parents = np.append(np.int32(-1), numbers[tree.parents[kept[1:]]])
    return AreaTree(
        levels=tree.levels[: len(sizes)],
        starts=read_only(np.cumsum([0, *sizes])),
        parents=read_only(parents.astype(np.int32)),
        codes=tree.codes.take(of_kept),
        names=None if tree.names is None else tree.names.take(of_kept),
        empty=EmptyAreas(
            levels=read_only(tree.level_of[apart]),
            parents=read_only(numbers[tree.parents[apart]]),
            codes=tree.codes.take(of_apart),
            names=None if tree.names is None else tree.names.take(of_apart),
        ),
    )


def _top_name(levels: Sequence[str]) -> str:
    """A name for the level above all that no other level has."""
    name = TOP
    while name in levels:
        name += "_"
    return name


# ---- Area range: areas of a tree that follow one another, with what lies in them, level by level.
#
# A tree is worked on a range after another where it is too large for the memory.


@dataclass(frozen=True, eq=False)
class Families:
    """The areas of a level of a range that have parts, and these parts, by their rows.

    owners   int64[n_owners]
    parts    the rows of all their parts
    first    int64[n_owners]: where the parts of each begin in `parts`
    parents  int64[n_parts]: the row of the area that each is a part of
    """

    owners: np.ndarray
    parts: slice
    first: np.ndarray
    parents: np.ndarray


@dataclass(frozen=True, eq=False)
class AreaRange:
    """Some areas that follow one another on a level, and all within them down to another level.

    tree    the areas
    slices  the areas of each level by their numbers, from the highest on; may be none on lower ones

    A number for each area stands in the order of the levels: this is an area's row.
    """

    tree: AreaTree
    slices: tuple[slice, ...]

    @classmethod
    def within(cls, tree: AreaTree, level: int, start: int, stop: int, last: int) -> "AreaRange":
        """From the areas [start, stop) of a level, by their numbers, down to the level `last`."""
        slices = [slice(start, stop)]
        for _ in range(level, last):
            above = slices[-1]
            ends = [_first_part(tree, area) for area in (above.start, above.stop)]
            slices.append(slice(*ends))
        return cls(tree, tuple(slices))

    @cached_property
    def starts(self) -> np.ndarray:
        """The first row of each level, and how many rows there are: int64[n_levels + 1]."""
        return np.cumsum([0, *(areas.stop - areas.start for areas in self.slices)])

    def __len__(self) -> int:
        return int(self.starts[-1])

    @cached_property
    def areas(self) -> np.ndarray:
        """The number of each row's area, int64[n_rows]."""
        return np.concatenate([np.arange(areas.start, areas.stop) for areas in self.slices])

    def rows(self, level: int) -> slice:
        """The rows of a level, counted from the range's highest."""
        return slice(int(self.starts[level]), int(self.starts[level + 1]))

    def down_to(self, n_levels: int) -> "AreaRange":
        """The same with no more than so many levels; its rows are the first of these."""
        return AreaRange(self.tree, self.slices[:n_levels])

    @cached_property
    def families(self) -> list[Families]:
        """From the highest level down."""
        found = []
        for level, (above, below) in enumerate(zip(self.slices[:-1], self.slices[1:], strict=True)):
            divided = np.flatnonzero(self.tree.n_parts[above] > 0)
            if len(divided):
                start = int(self.starts[level])
                first = self.tree.first_parts[above][divided] - below.start
                parents = start + self.tree.parents[below].astype(np.int64) - above.start
                found.append(Families(start + divided, self.rows(level + 1), first, parents))
        return found

    def add_parts(self, values: np.ndarray) -> None:
        """Add to each area's values those of its parts, with all within them: [n_rows, …]."""
        for family in reversed(self.families):
            values[family.owners] += sums_of_parts(family, values)


def sums_of_parts(family: Families, values: np.ndarray) -> np.ndarray:
    """The sum of the parts of each owner, [n_owners, …], of values [n_rows, …]."""
    return np.add.reduceat(values[family.parts], family.first, axis=0)


def _first_part(tree: AreaTree, area: int) -> int:
    """Where the parts of an area begin, or would; of the number after the last: the end."""
    return int(tree.first_parts[area]) if area < tree.n_areas else tree.n_areas


# ---- What areas are called, and the way to them from the top.


def area_title(tree: AreaTree, area: int) -> str:
    """The title of an area: its name and code, or its code; the top's level."""
    code, names = tree.all_codes[area].as_py(), tree.all_names
    if area == 0 and not code:
        return tree.levels[0]
    name = "" if names is None else names[area].as_py()
    return f"{name} ({code})" if name else code


def distinct_codes(tree: AreaTree, areas: list[int]) -> list[str]:
    """The own codes of some areas, or those from the top where two have the same."""
    codes = [tree.all_codes[area].as_py() or tree.levels[0] for area in areas]
    if len(set(codes)) == len(codes):
        return codes
    return [" > ".join(tree.path(area)) for area in areas]


def distinct_titles(tree: AreaTree, areas: list[int]) -> list[str]:
    """The titles of some areas, or their codes where two have the same: "X (1)" may be a code."""
    titles = [area_title(tree, area) for area in areas]
    return titles if len(set(titles)) == len(titles) else distinct_codes(tree, areas)


def distinct_names(tree: AreaTree, areas: list[int]) -> list[str] | None:
    """The names of some areas, with codes where two are called alike; None where none has one."""
    all_names = tree.all_names
    names = [] if all_names is None else [all_names[area].as_py() or "" for area in areas]
    if not any(names):
        return None
    codes = distinct_codes(tree, areas)
    counts = Counter(names)
    return [
        name if name and counts[name] == 1 else f"{name} ({code})" if name else code
        for name, code in zip(names, codes, strict=True)
    ]


def areas_above(tree: AreaTree, area: int) -> list[int]:
    """The areas that an area lies in, from the top, and itself."""
    above = [area]
    while tree.parents[above[-1]] >= 0:
        above.append(int(tree.parents[above[-1]]))
    return above[::-1]
