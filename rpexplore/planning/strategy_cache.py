"""Strategies of earlier searches, by what they are for: in the process and on disk.

They follow from sizes, bases and workloads alone, never from records. A cache only saves time:
whatever is wrong with its folder, the strategy is then searched for again.
"""

import contextlib
import hashlib
import io
import os
import threading
from collections import OrderedDict
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import numpy as np

from rpexplore.common.concurrency import Share, no_share
from rpexplore.common.files import home_folder, write_whole
from rpexplore.planning.solvers.strategy_matrix import StrategySolution, best_matrix

MOST_BYTES = 200_000_000  # on disk; and as many in the process
_KEY = "key"  # the name in a file under which the key itself is kept


class StrategyCache:
    """Arrays by key. Any number of threads and processes may use the same folder at once.

    folder: where they are kept for the next process; None: in this process only. most_bytes: of
    files in the folder and, separately, of arrays; those unused for longest give way.
    """

    def __init__(self, folder: Path | None, most_bytes: int = MOST_BYTES) -> None:
        self.folder, self.most_bytes = folder, most_bytes
        self._arrays: OrderedDict[str, dict[str, np.ndarray]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: str) -> dict[str, np.ndarray] | None:
        """The arrays put under a key, read-only; None if there are none (any more)."""
        with self._lock:
            arrays = self._arrays.get(key) or self._read(key)
            if arrays is None:
                return None
            self._keep(key, arrays)
            return dict(arrays)

    def put(self, key: str, arrays: Mapping[str, np.ndarray]) -> None:
        """Keep arrays (numbers only) under a key, in the place of those there were."""
        if _KEY in arrays:
            raise ValueError(f'no array may be called "{_KEY}"')
        copies = {name: np.array(array) for name, array in arrays.items()}
        with self._lock:
            self._keep(key, copies)
            if self.folder is not None:
                with contextlib.suppress(OSError):
                    self._write(self.folder, key, copies)

    def _keep(self, key: str, arrays: dict[str, np.ndarray]) -> None:
        for array in arrays.values():
            array.setflags(write=False)
        self._arrays[key] = arrays
        self._arrays.move_to_end(key)
        while sum(map(_n_bytes, self._arrays.values())) > self.most_bytes:
            self._arrays.popitem(last=False)

    def _read(self, key: str) -> dict[str, np.ndarray] | None:
        if self.folder is None:
            return None
        path = self.folder / _file_name(key)
        try:
            with np.load(path, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            if arrays.pop(_KEY).tobytes() != key.encode():
                return None
        except Exception:  # what a damaged archive raises is anybody's guess
            return None
        with contextlib.suppress(OSError):
            os.utime(path)  # so that it is not the next to be removed
        return arrays

    def _write(self, folder: Path, key: str, arrays: dict[str, np.ndarray]) -> None:
        content = io.BytesIO()
        named = {_KEY: np.frombuffer(key.encode(), np.uint8), **arrays}
        np.savez(content, allow_pickle=False, **named)
        if content.tell() > self.most_bytes:
            return
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(folder / _file_name(key), content.getvalue(), mode=0o600)
        self._trim(folder)

    def _trim(self, folder: Path) -> None:
        """Remove the files unused for longest, parts of interrupted ones among them."""
        files = []
        for path in folder.iterdir():
            with contextlib.suppress(FileNotFoundError):  # another process trims as well
                status = path.stat()
                files.append((status.st_mtime_ns, status.st_size, path))
        total = sum(size for _, size, _ in files)
        for _, size, path in sorted(files):
            if total <= self.most_bytes:
                break
            path.unlink(missing_ok=True)
            total -= size


def _file_name(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest() + ".npz"


def _n_bytes(arrays: Mapping[str, np.ndarray]) -> int:
    return sum(array.nbytes for array in arrays.values())


@cache
def user_cache() -> StrategyCache:
    """The cache in the user's folder; in this process only if RPEXPLORE_NO_CACHE is 1."""
    off = os.environ.get("RPEXPLORE_NO_CACHE") == "1"
    return StrategyCache(None if off else home_folder() / "strategies")


def best_uniform_matrix(gram: np.ndarray, on_share: Share = no_share) -> StrategySolution:
    """The best matrix for a uniform reference, started from the dual weights of an earlier search.

    They are no more than a start: what follows from them is certified anew. on_share: as of
    `best_matrix`.
    """
    key = f"even {hashlib.sha256((gram / np.trace(gram)).tobytes()).hexdigest()}"
    weights = (user_cache().get(key) or {}).get("value_weights", np.empty(0))
    usable = weights.shape == (len(gram),) and np.all(weights > 0) and np.isclose(weights.sum(), 1)
    solution = best_matrix(gram, value_weights=weights if usable else None, on_share=on_share)
    if not usable:
        user_cache().put(key, {"value_weights": solution.value_weights})
    return solution
