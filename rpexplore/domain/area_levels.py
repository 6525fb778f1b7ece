"""Area levels: the areas of a table with one row for each that is not divided, level by level."""

# pyarrow.compute makes its functions when it is imported, so pyright cannot know them.
# pyright: reportAttributeAccessIssue=false

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from rpexplore.common.text import UNSEEN, check_names
from rpexplore.errors import DomainError

if TYPE_CHECKING:
    import pyarrow as pa

MAX_DEPTH = 100  # of levels
_TOO_DEEP = f"Areas can lie on {MAX_DEPTH} levels at most; leave out some of them."
_MOST_OF_CIRCLE = 6  # areas that an error lists

RowName = Callable[[int], str]
"""What a row, counted from 0, is called in errors."""


@dataclass(frozen=True, eq=False)
class Level:
    """The areas of a level.

    level    what it is called; None for a top above all columns
    parents  int[n]: the number of each one's parent in the level above; −1 for the top
    codes    texts [n]
    names    texts [n]; None where the level has no column of names
    """

    level: str | None
    parents: np.ndarray
    codes: "pa.Array"
    names: "pa.Array | None"


def levels_of_columns(
    columns: "Mapping[str, pa.Array]", names: "Mapping[str, pa.Array]", row_name: RowName
) -> tuple[list[Level], np.ndarray]:
    """The levels of columns of codes, from the top, and the number of each row's area on its level.

    A code that is missing is None or "". names: columns of names for some of the levels

    Raises:
        DomainError: For what is no tree.
    """
    import pyarrow as pa

    levels, top = [], np.zeros(1, dtype=np.int64)
    ranks = {level: _ranks(column) for level, column in columns.items()}
    _refuse_gaps(list(ranks.values()), list(columns), row_name)
    first = next(iter(ranks.values()))
    if not np.all(first == first[0]):
        levels.append(Level(None, top - 1, pa.array([""]), None))
    # Four bytes a row each: of ten million rows, several such arrays are held at a time.
    rows, numbers = (make(len(first), dtype=np.int32) for make in (np.arange, np.zeros))
    listed = [*ranks.items(), ("", np.full(len(first), -1))]
    for (level, of_level), (_, below) in pairwise(listed):
        goes_on = of_level[rows] >= 0
        ending, rows = rows[~goes_on], rows[goes_on]
        if len(rows) == 0:
            break
        width = int(of_level.max()) + 1
        keys = numbers[rows].astype(np.int64)
        keys *= width
        keys += of_level[rows]
        keys, first_rows, inverse = _distinct(keys)
        parents = keys // width if levels else top - 1
        if len(ending):
            _refuse_divided(ending, numbers, parents, levels[-1].level, level, row_name)
        numbers[rows], first_rows = inverse, rows[first_rows]
        _refuse_twice(rows[below[rows] < 0], numbers, row_name)
        named = names.get(level)
        if named is not None:
            _refuse_other_names(level, named, rows, first_rows[inverse], row_name)
            named = named.take(pa.array(first_rows))
        levels.append(Level(level, parents, columns[level].take(pa.array(first_rows)), named))
    return levels, numbers


def text_column(title: str, values: Sequence[str | None]) -> "pa.Array":
    """A column as texts in one Unicode form, "" where nothing is; `DomainError` if it holds none.

    title: what the column is, for errors: "codes of the level 'town'"
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        given = values if isinstance(values, pa.Array | pa.ChunkedArray) else pa.array(values)
        if pa.types.is_floating(given.type):
            raise pa.ArrowTypeError
        column = given.cast(pa.string())
    # Not implemented: what Arrow raises for types without a text, such as lists.
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        raise DomainError(f"The {title} must be texts.") from None
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    column = pc.fill_null(column, "")
    if pc.all(pc.and_(pc.string_is_ascii(column), pc.ascii_is_printable(column))).as_py():
        return column
    column = pc.utf8_normalize(column, "NFC")
    # Only texts that hold such a sign, and those that look like these, can be refused.
    has_unseen = pc.match_substring_regex(column, f"[{UNSEEN}]")
    if pc.any(has_unseen).as_py():
        seen = pc.replace_substring_regex(column, f"[{UNSEEN}]", "")
        alike = pc.is_in(seen, pc.unique(seen.filter(has_unseen)))
        texts = pc.unique(column.filter(alike)).to_pylist()
        check_names(filter(None, texts), f"text of the {title}:", "", DomainError, are_shown=True)
    return column


def columns_of_parents(
    codes: "pa.Array", parents: "pa.Array", names: "pa.Array | None", row_name: RowName
) -> "tuple[list[pa.Array], list[pa.Array]]":
    """Columns of codes, and of names where there are any, for areas that name their parent.

    Raises:
        DomainError: For a code that is there twice or is missing, a parent that is not there, or
            codes that are parts of themselves.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    _refuse_repeated(codes, row_name)
    above = pc.index_in(parents, value_set=codes)
    has_parent = pc.not_equal(parents, "").to_numpy(zero_copy_only=False)
    lost = has_parent & pc.is_null(above).to_numpy(zero_copy_only=False)
    if np.any(lost):
        row = int(np.argmax(lost))
        raise DomainError(
            f"The parent {parents[row].as_py()!r} of the area {codes[row].as_py()!r} is not in the "
            "list; add it."
        )
    parent = np.where(has_parent, pc.fill_null(above, 0).to_numpy(zero_copy_only=False), -1)
    upwards = _paths_upwards(parent, codes)
    depths = np.sum(upwards >= 0, axis=1)
    places = depths[:, None] - 1 - np.arange(upwards.shape[1])
    downwards = np.take_along_axis(upwards, np.maximum(places, 0), axis=1)
    picked = [pa.array(areas, mask=areas < 0) for areas in np.where(places >= 0, downwards, -1).T]
    return (
        [pc.fill_null(codes.take(areas), "") for areas in picked],
        [] if names is None else [pc.fill_null(names.take(areas), "") for areas in picked],
    )


def names_of_levels(names: Sequence[str], depth: int, source: str) -> list[str]:
    """Names of so many levels, from the coarsest codes on: "level 1", … if not given.

    source: what has the levels, for the `DomainError` where there are more or fewer names
    """
    if names and len(names) != depth:
        raise DomainError(
            f"{source} have {depth} levels, but {len(names)} names of levels are given: "
            f"{', '.join(names)}. Name them from the coarsest codes on; the whole above these "
            "counts only where it has a code."
        )
    return list(names) or [f"level {number + 1}" for number in range(depth)]


def _paths_upwards(parent: np.ndarray, codes: "pa.Array") -> np.ndarray:
    """For each area that is not divided the rows of it and of what it lies in, int[n, depth].

    −1 above the coarsest
    """
    divided = np.zeros(len(parent), dtype=bool)
    divided[parent[parent >= 0]] = True
    at, upwards = np.flatnonzero(~divided), []
    reached = np.zeros(len(parent), dtype=bool)
    while np.any(at >= 0) and len(upwards) < MAX_DEPTH:
        upwards.append(at)
        reached[at[at >= 0]] = True
        at = np.where(at >= 0, parent[at], -1)
    if np.all(reached) and not np.any(at >= 0):
        return np.stack(upwards, axis=1)
    above = parent
    for _ in range(len(parent).bit_length()):  # twice as far up each time
        parent = np.where(parent >= 0, parent[parent], -1)
    if np.any(parent >= 0):
        area = int(np.min(parent[parent >= 0]))
        circle = [area, int(above[area])]
        while circle[-1] != area and len(circle) < _MOST_OF_CIRCLE:
            circle.append(int(above[circle[-1]]))
        downwards = [codes[row].as_py() for row in reversed(circle)]
        first = downwards[-1]
        beginning = "" if downwards[0] == first else f"{first} > … > "
        raise DomainError(
            f"{first} lies within itself: {beginning}{' > '.join(downwards)}; mend its parent."
        )
    raise DomainError(_TOO_DEEP)


def refuse_deep(n_levels: int) -> None:
    """Raise `DomainError` for more levels than areas can lie on."""
    if n_levels > MAX_DEPTH:
        raise DomainError(_TOO_DEEP)


def _refuse_repeated(codes: "pa.Array", row_name: RowName) -> None:
    """Raise if two areas have one code, or one has none."""
    import pyarrow.compute as pc

    if pc.any(pc.equal(codes, "")).as_py():
        row = codes.index("").as_py()
        raise DomainError(f"{row_name(row)} has no code; give it one.")
    indices = codes.dictionary_encode().indices.to_numpy()
    if len(indices) and int(indices.max()) + 1 < len(indices):
        _, first = np.unique(indices, return_index=True)
        again = np.setdiff1d(np.arange(len(indices)), first)[0]
        raise DomainError(
            f"{row_name(int(again))} has the code {codes[int(again)].as_py()!r}, as another one "
            "has; codes of areas with parents must be unique."
        )


def _ranks(column: "pa.Array") -> np.ndarray:
    """The place of each code among the distinct ones in ascending order, int32[n]; −1 for ""."""
    import pyarrow.compute as pc

    if len(column) == 0:
        return np.zeros(0, dtype=np.int32)
    before, behind = column.slice(0, len(column) - 1), column.slice(1)
    if pc.all(pc.less_equal(before, behind)).as_py() is not False and column[0].as_py():
        # In order, as files of areas mostly are: no need to sort.
        is_new = pc.not_equal(before, behind).to_numpy(zero_copy_only=False)
        ranks = np.zeros(len(column), dtype=np.int32)
        np.cumsum(is_new, out=ranks[1:])
        return ranks
    encoded = column.dictionary_encode()
    order = pc.sort_indices(encoded.dictionary).to_numpy()
    ranks = np.empty(len(order), dtype=np.int32)
    ranks[order] = np.arange(len(order))
    ranks[pc.equal(encoded.dictionary, "").to_numpy(zero_copy_only=False)] = -1
    return ranks[encoded.indices.to_numpy()]


def _distinct(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The distinct keys in ascending order, where each is first, and which each one is."""
    if np.all(keys[1:] >= keys[:-1]):
        is_new = np.concatenate([[True], keys[1:] != keys[:-1]])
        first = np.flatnonzero(is_new)
        return keys[first], first, np.cumsum(is_new, dtype=np.int32) - 1
    return np.unique(keys, return_index=True, return_inverse=True)


def _refuse_gaps(ranks: list[np.ndarray], levels: list[str], row_name: RowName) -> None:
    """Raise if a row has a code below a missing one, or none at all."""
    below = np.zeros(len(ranks[0]), dtype=bool)
    for number in reversed(range(len(ranks))):
        present = ranks[number] >= 0
        gaps = ~present & (below | (number == 0))
        if np.any(gaps):
            raise DomainError(
                f"{row_name(int(np.argmax(gaps)))} has no code on the level {levels[number]}; an "
                "area may only end early."
            )
        below |= present


def _refuse_divided(
    ending: np.ndarray,
    numbers: np.ndarray,
    divided: np.ndarray,
    above: str | None,
    level: str,
    row_name: RowName,
) -> None:
    """Raise if a row ends in an area that others go on in."""
    both = np.isin(numbers[ending], divided)
    if np.any(both):
        raise DomainError(
            f"{row_name(int(ending[np.argmax(both)]))} ends on the level {above}, where others "
            f"have parts; give it a code on the level {level}."
        )


def _refuse_twice(rows: np.ndarray, numbers: np.ndarray, row_name: RowName) -> None:
    """Raise if two of the rows, which end on one level, are the same area."""
    areas = numbers[rows]
    counts = np.bincount(areas)
    if len(rows) and np.max(counts) > 1:
        first, second = rows[areas == np.argmax(counts > 1)][:2].tolist()
        raise DomainError(
            f"{row_name(second)} is the same area as {_inside(row_name(first))}; leave one of "
            "them out."
        )


def _refuse_other_names(
    level: str, names: "pa.Array", rows: np.ndarray, first_rows: np.ndarray, row_name: RowName
) -> None:
    """Raise if an area has one name in one row and another in another."""
    indices = names.dictionary_encode().indices.to_numpy()
    other = indices[rows] != indices[first_rows]
    if np.any(other):
        row, first = int(rows[np.argmax(other)]), int(first_rows[np.argmax(other)])
        raise DomainError(
            f"{row_name(row)} calls the area of the level {level} {names[row].as_py()!r}, and "
            f"{_inside(row_name(first))} {names[first].as_py()!r}; give it one name."
        )


def _inside(name: str) -> str:
    """The name of a row within a sentence."""
    return name[:1].lower() + name[1:]
