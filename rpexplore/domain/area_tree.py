"""Area tree: areas in areas, level by level. Public knowledge; holds no records."""

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rpexplore.common.numbers import read_only
from rpexplore.domain.area_levels import (
    Level,
    RowName,
    columns_of_parents,
    levels_of_columns,
    names_of_levels,
    text_column,
)
from rpexplore.errors import DomainError

if TYPE_CHECKING:
    import pyarrow as pa


# What is a country, regions and municipalities here may as well be sections, divisions and classes
# of a classification (NACE, ISCO, ICD-10).


MAX_AREAS = 20_000_000
TOP = "all"  # what the level above the first column is called


@dataclass(frozen=True, eq=False, repr=False)
class AreaTree:
    """Areas, numbered level by level from the top; the parts of an area follow one another.

    levels    what the levels are called, from the top, which is one area
    starts    int64[n_levels + 1]: the number of each level's first area, and of all areas
    parents   int32[n_areas]: the number of the area that each is a part of; −1 for the top
    codes     texts [n_areas], a pyarrow array: what an area is called within its parent; in
              ascending order there
    names     texts [n_areas], a pyarrow array: what people call each area; None for none

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

    @classmethod
    def from_columns(
        cls,
        columns: Mapping[str, Sequence[str | None]],
        names: Mapping[str, Sequence[str | None]] | None = None,
        *,
        row_name: RowName = "Row {:,} of the areas".format,
    ) -> "AreaTree":
        """The tree of a table with a row for each area without parts, and a column for each level.

        Args:
            columns: Level -> codes, from the coarsest level on. An area may end early: None or ""
                on the levels that it does not have, which are the last ones.
            names: Level -> what its areas are called, for as many levels as have names.
            row_name: What a row, counted from 1, is called in errors.

        The top level is the first column where that holds one code, and one above it otherwise.

        Raises:
            DomainError: For no rows or columns, a code below a missing one, a row that is there
                twice, an area that ends early and has parts, an area with two names, or too many
                areas.
        """
        import pyarrow as pa

        if not columns:
            raise DomainError("A tree of areas needs a column for at least one level, got none.")
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
        levels = levels_of_columns(codes, named, lambda row: row_name(row + 1))
        sizes = [len(level.parents) for level in levels]
        if sum(sizes) > MAX_AREAS:
            raise DomainError(
                f"A tree can have {MAX_AREAS:,} areas at most, got {sum(sizes):,}; leave out the "
                "lowest level."
            )
        starts = np.cumsum([0, *sizes])
        first_above = np.repeat([0, *starts[:-2]], sizes)
        return cls(
            levels=tuple(level.level or _top_name(list(columns)) for level in levels),
            starts=read_only(starts),
            parents=read_only(
                (np.concatenate([level.parents for level in levels]) + first_above).astype(np.int32)
            ),
            codes=pa.concat_arrays([level.codes for level in levels]),
            names=_joined_names(levels) if named else None,
        )

    @classmethod
    def from_parents(
        cls,
        parents: Mapping[str, str | None],
        levels: Sequence[str] = (),
    ) -> "AreaTree":
        """The tree of codes that name their parent: {"12": None, "12086": "12", …}.

        Args:
            parents: Code -> the code that it is a part of; None or "" for a coarsest one.
            levels: What the levels are called, from the coarsest codes on; "level 1", … if left
                out.

        Raises:
            DomainError: For a parent that is not there, or codes that are parts of themselves.
        """
        return cls.from_parent_columns(list(parents), list(parents.values()), levels=levels)

    @classmethod
    def from_parent_columns(
        cls,
        codes: Sequence[str | None],
        parents: Sequence[str | None],
        names: Sequence[str | None] | None = None,
        *,
        levels: Sequence[str] = (),
        row_name: RowName = "Row {:,} of the areas".format,
    ) -> "AreaTree":
        """As `from_parents`, of a table with a row for each area; names: of each, if wanted."""
        if not len(codes):
            raise DomainError("A tree of areas needs the code of one area at least, got none.")
        code_columns, name_columns = columns_of_parents(
            text_column("codes of the areas", codes),
            text_column("parents of the areas", parents),
            None if names is None else text_column("names of the areas", names),
            lambda row: row_name(row + 1),
        )
        depth = len(code_columns)
        levels = names_of_levels(levels, depth, "The areas")
        return cls.from_columns(
            dict(zip(levels, code_columns, strict=True)),
            dict(zip(levels, name_columns, strict=bool(name_columns))),
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
        """The codes from below the top down to an area."""
        codes = []
        while self.parents[area] >= 0:
            codes.append(self.codes[area].as_py())
            area = int(self.parents[area])
        return tuple(reversed(codes))

    def find(self, path: Sequence[str]) -> int:
        """The number of the area with these codes from below the top; `DomainError` if none."""
        area = 0
        for depth, code in enumerate(path):
            first, count = int(self.first_parts[area]), int(self.n_parts[area])
            within = self.codes.slice(first, count).index(code).as_py() if count else -1
            if within < 0:
                above = " > ".join(path[:depth]) or self.levels[0]
                raise DomainError(f"There is no area {code!r} in {above}; check its code.")
            area = first + within
        return area

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of the levels, the parents, the codes and the names, in hexadecimal."""
        digest = hashlib.sha256(json.dumps(self.levels).encode())
        digest.update(np.ascontiguousarray(self.parents, dtype="<i4").tobytes())
        for texts in (self.codes, self.names):
            digest.update(b"-" if texts is None else _bytes_of_texts(texts))
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
    code = tree.codes[area].as_py()
    if area == 0 and not code:
        return tree.levels[0]
    name = "" if tree.names is None else tree.names[area].as_py()
    return f"{name} ({code})" if name else code


def distinct_codes(tree: AreaTree, areas: list[int]) -> list[str]:
    """The own codes of some areas, or those from the top where two have the same."""
    codes = [tree.codes[area].as_py() or tree.levels[0] for area in areas]
    if len(set(codes)) == len(codes):
        return codes
    return [" > ".join(tree.path(area)) for area in areas]


def distinct_titles(tree: AreaTree, areas: list[int]) -> list[str]:
    """The titles of some areas, or their codes where two have the same: "X (1)" may be a code."""
    titles = [area_title(tree, area) for area in areas]
    return titles if len(set(titles)) == len(titles) else distinct_codes(tree, areas)


def distinct_names(tree: AreaTree, areas: list[int]) -> list[str] | None:
    """The names of some areas, with codes where two are called alike; None where none has one."""
    names = [] if tree.names is None else [tree.names[area].as_py() or "" for area in areas]
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
