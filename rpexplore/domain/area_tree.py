"""Area tree: areas in areas, level by level. Public knowledge; holds no records.

What is a country, regions and municipalities here may as well be sections, divisions and classes of
a classification (NACE, ISCO, ICD-10).
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rpexplore.common.numerics import read_only
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
