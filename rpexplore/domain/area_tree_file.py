"""Area tree file: the areas of a plan as Parquet, one row an area in the order of the tree.

Columns: `parent` (int32: the row of the area that it is a part of, −1 for the top), `code`, and
`name` where areas have names. The levels and their numbers of areas stand in the plan file.
"""

# pyarrow.compute makes its functions when it is imported, so pyright cannot know them.
# pyright: reportAttributeAccessIssue=false

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from rpexplore.common.numerics import read_only
from rpexplore.common.parquet_bytes import parquet_bytes, table_of_parquet
from rpexplore.domain.area_tree import MAX_AREAS, AreaTree
from rpexplore.errors import DomainError

if TYPE_CHECKING:
    import pyarrow as pa


def parquet_of_tree(tree: AreaTree) -> bytes:
    """The file of a tree."""
    import pyarrow as pa

    columns = {"parent": pa.array(tree.parents, pa.int32()), "code": tree.codes.cast(pa.string())}
    if tree.names is not None:
        columns["name"] = tree.names.cast(pa.string())
    return parquet_bytes(columns)


def tree_of_parquet(content: bytes, levels: Sequence[str], sizes: Sequence[int]) -> AreaTree:
    """The tree of a file.

    levels, sizes: what the levels are called, and how many areas each has, from the top

    Raises:
        DomainError: For content that is no Parquet file of a tree with these levels.
    """
    import pyarrow as pa

    if not levels or len(set(levels)) < len(levels) or not all(levels):
        raise DomainError("Each level of a tree of areas must have a name of its own.")
    if sizes[0] != 1 or min(sizes) < 1 or sum(sizes) > MAX_AREAS:
        raise DomainError(
            f"A tree of areas must have one area at the top, some on each level, and {MAX_AREAS:,} "
            f"at most in all; got levels of {', '.join(f'{size:,}' for size in sizes):.100}."
        )
    kinds = {"parent": pa.int32(), "code": pa.string(), "name": pa.string()}
    table = table_of_parquet(content, kinds, sum(sizes), DomainError, optional={"name"})
    starts = np.cumsum([0, *sizes])
    parents, codes = table["parent"].to_numpy(), table["code"]
    _check_parents(parents, starts)
    _check_codes(parents, codes)
    return AreaTree(
        levels=tuple(levels),
        starts=read_only(starts),
        parents=read_only(parents),
        codes=codes,
        names=table.get("name"),
    )


def _check_parents(parents: np.ndarray, starts: np.ndarray) -> None:
    """Raise unless every area lies in one of the level above, in the order of these."""
    sizes = np.diff(starts[1:])
    first, stop = np.repeat(starts[:-2], sizes), np.repeat(starts[1:-1], sizes)
    below = parents[1:]
    wrong = (below < first) | (below >= stop)
    wrong[1:] |= below[1:] < below[:-1]
    if parents[0] != -1 or np.any(wrong):
        row = 0 if parents[0] != -1 else 1 + int(np.argmax(wrong))
        raise DomainError(
            f"Row {row + 1:,} of the areas has the parent {parents[row]}; it must be a row of the "
            "level above, −1 at the top, and not before that of the row above it."
        )


def _check_codes(parents: np.ndarray, codes: "pa.Array") -> None:
    """Raise unless the parts of an area have ascending codes."""
    import pyarrow.compute as pc

    ascending = pc.less(codes.slice(0, len(codes) - 1), codes.slice(1))
    wrong = ~ascending.to_numpy(zero_copy_only=False) & (parents[1:] == parents[:-1])
    wrong |= pc.equal(codes.slice(1), "").to_numpy(zero_copy_only=False)
    if np.any(wrong):
        row = 1 + int(np.argmax(wrong))
        raise DomainError(
            f"Row {row + 1:,} of the areas has the code {codes[row].as_py()!r}; the parts of an "
            "area must be in the order of their codes, each with one of its own."
        )
