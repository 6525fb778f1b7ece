"""Arrays by attribute set: in memory while they are few, the others in a temporary file."""

import os
import tempfile
import threading
import weakref
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from typing import NamedTuple

import numpy as np

from rpexplore.common.numerics import read_only
from rpexplore.domain.domain import AttributeIndices
from rpexplore.errors import ReleaseError

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
