"""Area tree: areas in areas, level by level. Public knowledge; holds no records.

What is a country, regions and municipalities here may as well be sections, divisions and classes of
a classification (NACE, ISCO, ICD-10).
"""

# pyarrow.compute makes its functions when it is imported, so pyright cannot know them.
# pyright: reportAttributeAccessIssue=false

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from rpexplore.common.numerics import read_only
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
    def from_columns(cls, columns: Mapping[str, Sequence[str | None]]) -> "AreaTree":
        """The tree of a table with a row for each area without parts, and a column for each level.

        Args:
            columns: Level -> codes, from the coarsest level on. An area may end early: None or ""
                on the levels that it does not have, which are the last ones.

        The top level is the first column where that holds one code, and one above it otherwise.

        Raises:
            DomainError: For no rows or columns, a code below a missing one, a row that is there
                twice, an area that ends early and has parts, or too many areas.
        """
        import pyarrow as pa

        if not columns:
            raise DomainError("A tree of areas needs a column for at least one level, got none.")
        codes, ranks = {}, {}
        for level, values in columns.items():
            codes[level], ranks[level] = _ranked(level, values)
        counts = {len(column) for column in ranks.values()}
        if len(counts) != 1 or 0 in counts:
            raise DomainError(
                "The columns of a tree of areas must have one code a row, at least one row in all; "
                f"got columns of {', '.join(map(str, sorted(counts)))} rows."
            )
        levels = _levels(np.column_stack(list(ranks.values())), list(columns))
        sizes = [len(level.parents) for level in levels]
        if sum(sizes) > MAX_AREAS:
            raise DomainError(
                f"A tree can have {MAX_AREAS:,} areas at most, got {sum(sizes):,}; leave out the "
                "lowest level."
            )
        starts = np.cumsum([0, *sizes])
        first_above = np.repeat([0, *starts[:-2]], sizes)
        texts = [
            pa.array([""]) if level.name is None else codes[level.name].take(pa.array(level.ranks))
            for level in levels
        ]
        return cls(
            levels=tuple(level.name or _top_name(list(columns)) for level in levels),
            starts=read_only(starts),
            parents=read_only(
                (np.concatenate([level.parents for level in levels]) + first_above).astype(np.int32)
            ),
            codes=pa.concat_arrays(texts),
        )

    @classmethod
    def from_parents(
        cls, parents: Mapping[str, str | None], levels: Sequence[str] = ()
    ) -> "AreaTree":
        """The tree of codes that name their parent: {"12": None, "12086": "12", …}.

        Args:
            parents: Code -> the code that it is a part of; None or "" for a coarsest one.
            levels: What the levels are called, from the coarsest codes on; "level 1", … if left
                out.

        Raises:
            DomainError: For a parent that is not there, or codes that are parts of themselves.
        """
        paths: dict[str, tuple[str, ...]] = {}
        for code in parents:
            path, at = [], code
            while at and at not in paths:
                if at in path:
                    raise DomainError(f"The area {at!r} is a part of itself; mend its parent.")
                if at not in parents:
                    raise DomainError(
                        f"The parent {at!r} of the area {path[-1]!r} is not in the list; add it."
                    )
                path.append(at)
                at = parents[at] or ""
            above = paths.get(at, ()) if at else ()
            for lower in reversed(path):
                above = paths[lower] = (*above, lower)
        inner = {path[-2] for path in paths.values() if len(path) > 1}
        rows = [path for code, path in paths.items() if code not in inner]
        depth = max(map(len, rows), default=0)
        names = list(levels) or [f"level {number + 1}" for number in range(depth)]
        if len(names) != depth:
            raise DomainError(
                f"The areas have {depth} levels, but {len(names)} names of levels are given."
            )
        return cls.from_columns(
            {
                name: [path[level] if level < len(path) else None for path in rows]
                for level, name in enumerate(names)
            }
        )

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
        """SHA-256 of the levels, the parents and the codes, in hexadecimal."""
        digest = hashlib.sha256(json.dumps(self.levels).encode())
        digest.update(np.ascontiguousarray(self.parents, dtype="<i4").tobytes())
        for start in range(0, self.n_areas, 1 << 20):
            texts = self.codes.slice(start, 1 << 20).to_pylist()
            digest.update(("\n".join(texts) + "\n").encode())
        return digest.hexdigest()


@dataclass(frozen=True, eq=False)
class _Level:
    """The areas of a level: the numbers of their parents in the level above, ranks of their codes.

    name: what the level is called; None for a top above all columns
    """

    name: str | None
    parents: np.ndarray
    ranks: np.ndarray


def _levels(ranks: np.ndarray, names: list[str]) -> list[_Level]:
    """The levels of rows of ranks of codes, int64[n_rows, n_columns], −1 for none."""
    _refuse_gaps(ranks, names)
    has_top = bool(np.all(ranks[:, 0] == ranks[0, 0]))
    top = np.zeros(1, dtype=np.int64)
    levels = [] if has_top else [_Level(None, top - 1, top)]
    rows, numbers = np.arange(len(ranks)), np.zeros(len(ranks), dtype=np.int64)
    for column, name in enumerate(names):
        goes_on = ranks[rows, column] >= 0
        ending, rows = rows[~goes_on], rows[goes_on]
        if len(rows) == 0:
            break
        width = int(ranks[:, column].max()) + 1
        keys, inverse = np.unique(numbers[rows] * width + ranks[rows, column], return_inverse=True)
        parents = keys // width
        if column:
            _refuse_divided(ending, numbers, parents, names[column - 1], name)
        numbers[rows] = inverse
        ends = ranks[rows, column + 1] < 0 if column + 1 < len(names) else np.full(len(rows), True)
        _refuse_twice(rows[ends], inverse[ends])
        levels.append(_Level(name, parents if levels else top - 1, keys % width))
    return levels


def _refuse_gaps(ranks: np.ndarray, names: list[str]) -> None:
    """Raise if a row has a code below a missing one."""
    present = np.column_stack([ranks >= 0, np.zeros(len(ranks), dtype=bool)])
    present[:, -1] = ~present[:, 0]  # the first column may not be missing at all
    gaps = ~present[:, :-1] & np.maximum.accumulate(present[:, ::-1], axis=1)[:, -2::-1]
    if np.any(gaps):
        row, column = np.argwhere(gaps)[0].tolist()
        raise DomainError(
            f"Row {row + 1:,} of the areas has no code on the level {names[column]}; an area may "
            "only end early."
        )


def _refuse_divided(
    ending: np.ndarray, numbers: np.ndarray, divided: np.ndarray, above: str, level: str
) -> None:
    """Raise if a row ends in an area that others go on in."""
    both = np.isin(numbers[ending], divided)
    if np.any(both):
        raise DomainError(
            f"Row {int(ending[np.argmax(both)]) + 1:,} of the areas ends on the level {above}, "
            f"where others have parts; give it a code on the level {level}."
        )


def _refuse_twice(rows: np.ndarray, areas: np.ndarray) -> None:
    """Raise if two rows end in the same area."""
    if len(rows) and np.max(counts := np.bincount(areas)) > 1:
        first, second = rows[areas == np.argmax(counts)][:2] + 1
        raise DomainError(
            f"Rows {first:,} and {second:,} of the areas are the same; leave one of them out."
        )


def _ranked(level: str, values: Sequence[str | None]) -> "tuple[pa.Array, np.ndarray]":
    """The distinct codes of a column in ascending order, and which each row has; −1 for none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        given = values if isinstance(values, pa.Array | pa.ChunkedArray) else pa.array(values)
        column = given.cast(pa.string())
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        raise DomainError(f"The codes of the level {level!r} must be texts.") from None
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    column = pc.utf8_normalize(column, "NFC")
    encoded = pc.if_else(pc.equal(column, ""), None, column).dictionary_encode()
    order = pc.sort_indices(encoded.dictionary)
    ranks = np.empty(len(order) + 1, dtype=np.int64)
    ranks[order.to_numpy()] = np.arange(len(order))
    ranks[-1] = -1
    indices = pc.fill_null(encoded.indices, len(order)).to_numpy(zero_copy_only=False)
    return encoded.dictionary.take(order), ranks[indices]


def _top_name(levels: Sequence[str]) -> str:
    """What the level above all is called: a name that no other has."""
    name = TOP
    while name in levels:
        name += "_"
    return name
