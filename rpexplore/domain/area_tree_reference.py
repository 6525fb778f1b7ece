"""Reference to an area tree: what is known of it before it is read, and how it is read.

A tree may have millions of areas. Whatever is about one, in a file or in memory, holds a reference:
the tree itself is read when it is first needed, and is in memory once: once for each holder, where
several people share a process and each has files of their own.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from weakref import WeakValueDictionary

import numpy as np

from rpexplore.domain.area_tree import AreaTree
from rpexplore.domain.area_tree_file import tree_of_parquet
from rpexplore.errors import DomainError

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
