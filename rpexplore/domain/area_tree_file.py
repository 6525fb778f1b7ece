"""Area tree file: the areas of a plan as Parquet, and a reference to it before it is read."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

import numpy as np

from rpexplore.common.numbers import read_only
from rpexplore.common.parquet_bytes import parquet_bytes, table_of_parquet
from rpexplore.domain.area_recodes import recodes_of_rows
from rpexplore.domain.area_tree import MAX_AREAS, AreaTree, EmptyAreas
from rpexplore.errors import DomainError

if TYPE_CHECKING:
    import pyarrow as pa


# ---- Area tree file: the areas of a plan as Parquet, one row an area in the order of the tree.
#
# Columns: `parent` (int32: the row of the area that it is a part of, −1 for the top), `code`, and
# `name` where areas have names. The levels and their numbers of areas stand in the plan file. Where
# some areas are known to have nobody, these follow, level by level, and `empty` (a boolean) tells.
# Recodes follow these, by area and code, and `recoded` (a boolean) tells: `parent` is then the row
# of the area that is meant, and `code` what records call it.


# pyarrow.compute makes its functions when it is imported, so pyright cannot know them.
# pyright: reportAttributeAccessIssue=false


def parquet_of_tree(tree: AreaTree) -> bytes:
    """The file of a tree."""
    import pyarrow as pa

    columns = {"parent": pa.array(tree.all_parents, pa.int32())}
    columns["code"] = tree.all_codes.cast(pa.string())
    if tree.all_names is not None:
        columns["name"] = tree.all_names.cast(pa.string())
    if tree.empty is not None:
        columns["empty"] = pa.array(np.arange(tree.n_all) >= tree.n_areas)
    if (recodes := tree.recodes) is not None:
        added = {"parent": pa.array(recodes.areas, pa.int32()), "code": recodes.codes}
        added |= {"name": pa.repeat("", len(recodes)), "empty": pa.repeat(False, len(recodes))}
        columns = {
            name: pa.concat_arrays([column, added[name]]) for name, column in columns.items()
        }
        columns["recoded"] = pa.array(np.arange(tree.n_all + len(recodes)) >= tree.n_all)
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
    kinds = {"parent": pa.int32(), "code": pa.string(), "name": pa.string(), "empty": pa.bool_()}
    kinds["recoded"] = pa.bool_()
    optional = {"name", "empty", "recoded"}
    table = table_of_parquet(content, kinds, DomainError, optional=optional, most_rows=MAX_AREAS)
    if "recoded" in table:
        is_recoded = table.pop("recoded").to_numpy(zero_copy_only=False)
        n_all = int(np.count_nonzero(~is_recoded))
        if np.any(is_recoded[:n_all]) or n_all == len(is_recoded):
            raise DomainError("its rows of recodes must be there, and behind all others.")
        recodes = {name: column.slice(n_all) for name, column in table.items()}
        columns = {name: column.slice(0, n_all) for name, column in table.items()}
        tree = _tree_of_columns(columns, levels, sizes)
        areas = recodes["parent"].to_numpy()
        return replace(tree, recodes=recodes_of_rows(tree, areas, recodes["code"]))
    return _tree_of_columns(table, levels, sizes)


def _tree_of_columns(
    table: "dict[str, pa.Array]", levels: Sequence[str], sizes: Sequence[int]
) -> AreaTree:
    """The tree of the rows of areas alone."""
    n_areas, n_rows = sum(sizes), len(table["parent"])
    is_empty = np.zeros(n_rows, dtype=bool)
    if "empty" in table:
        is_empty = table["empty"].to_numpy(zero_copy_only=False)
    n_others = np.count_nonzero(~is_empty)
    if n_others != n_areas or np.any(is_empty[:n_areas]):
        behind = " before those of empty areas" if "empty" in table else ""
        raise DomainError(f"it must have {n_areas:,} rows{behind}, got {n_others:,}.")
    starts = np.cumsum([0, *sizes])
    parents, codes, names = table["parent"].to_numpy(), table["code"], table.get("name")
    _check_parents(parents[:n_areas], starts)
    for areas in (slice(0, n_areas), slice(n_areas, n_rows)):
        _check_codes(parents[areas], codes[areas])
    tree = AreaTree(
        levels=tuple(levels),
        starts=read_only(starts),
        parents=read_only(parents[:n_areas]),
        codes=codes.slice(0, n_areas),
        names=None if names is None else names.slice(0, n_areas),
    )
    if "empty" not in table:
        return tree
    return replace(tree, empty=_empty_of(tree, parents, codes, names))


def _empty_of(
    tree: AreaTree, parents: np.ndarray, codes: "pa.Array", names: "pa.Array | None"
) -> EmptyAreas:
    """The empty areas behind those of a tree; the columns are of all areas."""
    import pyarrow as pa
    import pyarrow.compute as pc

    n_areas, n_all = tree.n_areas, len(parents)
    if n_areas == n_all:
        raise DomainError("Its column empty says of no area that it is empty.")
    levels = np.append(tree.level_of.astype(np.int64), np.zeros(n_all - n_areas, dtype=np.int64))
    below = parents[n_areas:]
    wrong = (below < 0) | (below >= np.arange(n_areas, n_all))
    in_tree = np.where(below < n_areas, below, 0)
    wrong |= (below < n_areas) & (tree.n_parts[np.maximum(in_tree, 0)] == 0)
    if not np.any(wrong):
        for _ in tree.levels:  # of areas in empty ones those of the level above come first
            levels[n_areas:] = levels[below] + 1
        own = levels[n_areas:]
        wrong = (own >= len(tree.levels)) | (np.diff(own, prepend=own[0]) < 0)
        wrong |= (np.diff(own, prepend=-1) == 0) & (np.diff(below, prepend=-1) < 0)
    # No part of an area has the code of another one.
    keys = pc.binary_join_element_wise(pa.array(parents).cast(pa.string()), codes, ",")
    if np.any(wrong) or len(pc.unique(keys)) < n_all:
        raise DomainError(
            "The empty areas must each be a part of an area that has others, level by level, in "
            "the order of their parents and codes, each with a code of its own."
        )
    return EmptyAreas(
        levels=read_only(levels[n_areas:].astype(np.int8)),
        parents=read_only(below),
        codes=codes.slice(n_areas),
        names=None if names is None else names.slice(n_areas),
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

    if not len(codes):
        return
    ascending = pc.less(codes.slice(0, len(codes) - 1), codes.slice(1))
    wrong = ~ascending.to_numpy(zero_copy_only=False) & (parents[1:] == parents[:-1])
    wrong |= pc.equal(codes.slice(1), "").to_numpy(zero_copy_only=False)
    if np.any(wrong):
        row = 1 + int(np.argmax(wrong))
        raise DomainError(
            f"Row {row + 1:,} of the areas has the code {codes[row].as_py()!r}; the parts of an "
            "area must be in the order of their codes, each with one of its own."
        )


# ---- Reference to an area tree: what is known of it before it is read, and how it is read.
#
# A tree may have millions of areas. Whatever is about one, in a file or in memory, holds a
# reference: the tree itself is read when it is first needed, and is in memory once: once for each
# holder, where several people share a process and each has files of their own.


# The content of the file of the tree with a SHA-256; None if there is no such file.
ReadTreeFile = Callable[[str], bytes | None]

# By whom they are for, "" for everybody, and SHA-256.
_in_memory: "WeakValueDictionary[tuple[str, str], AreaTree]" = WeakValueDictionary()
_lock = threading.Lock()


@dataclass(frozen=True)
class HeldTreeFiles:
    """A `ReadTreeFile` of files that are for one holder alone, as are their trees in memory.

    Who knows the SHA-256 of somebody else's tree is not given it.
    """

    read: ReadTreeFile
    holder: str

    def __call__(self, sha256: str) -> bytes | None:
        return self.read(sha256)


def no_tree_file(sha256: str) -> bytes | None:
    """For a file that stands alone."""
    return None


@dataclass(frozen=True, eq=False)
class AreaTreeReference:
    """A tree by its SHA-256, with the names of its levels and their numbers of areas.

    read  the content of its file
    """

    sha256: str
    levels: tuple[str, ...]
    sizes: tuple[int, ...]
    read: ReadTreeFile = no_tree_file

    @classmethod
    def of(cls, tree: AreaTree) -> "AreaTreeReference":
        """The reference to a tree that is in memory, and then stays there."""
        with _lock:
            tree = _in_memory.setdefault(("", tree.sha256), tree)
        reference = cls(tree.sha256, tree.levels, tuple(np.diff(tree.starts).tolist()))
        reference.give(tree)
        return reference

    def give(self, tree: AreaTree) -> None:
        """Take the tree with this SHA-256, which then need not be read."""
        vars(self)["tree"] = tree  # what `tree` would keep there

    @property
    def n_areas(self) -> int:
        return sum(self.sizes)

    @property
    def is_read(self) -> bool:
        """Whether `tree` takes no time."""
        return "tree" in vars(self) or self._held_as in _in_memory

    @property
    def _held_as(self) -> tuple[str, str]:
        holder = self.read.holder if isinstance(self.read, HeldTreeFiles) else ""
        return holder, self.sha256

    @cached_property
    def tree(self) -> AreaTree:
        """The tree itself.

        Raises:
            DomainError: If its file is missing or is not that of this tree.
        """
        with _lock:  # of two that want it, one reads it
            tree = _in_memory.get(self._held_as)
            if tree is None:
                tree = _in_memory[self._held_as] = self._from_file()
        return tree

    def _from_file(self) -> AreaTree:
        content = self.read(self.sha256)
        if content is None:
            raise DomainError(
                f"The file of these {self.n_areas:,} areas is not on this computer; give it again."
            )
        try:
            tree = tree_of_parquet(content, self.levels, self.sizes)
        except DomainError as error:
            problem = str(error).removesuffix(".")
            raise DomainError(
                f"The file of these areas cannot be used: {problem}; give it again."
            ) from None
        if tree.sha256 != self.sha256:
            raise DomainError(
                "The file of these areas was changed since it was saved; give the areas again."
            )
        return tree
