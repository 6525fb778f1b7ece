"""Concurrency: linear algebra in one thread, and other work on all processors.

Libraries of linear algebra share a sum among threads, and how many these are changes its last
digits, from which the rounding of a strategy makes another plan. On the matrices of a plan several
threads are also slower, by far where other programs run beside.
"""

import gc
import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

Item = TypeVar("Item")
Result = TypeVar("Result")

Progress = Callable[[str, float], None]
"""Told what is being done and which share of everything is done, 0 to 1; may raise to stop it."""

Share = Callable[[float], object]
"""A `Progress` that is told only the share."""

_MOST_WORKERS = 4  # each holds what it works on in memory


def no_progress(doing: str, share: float) -> None:
    """A `Progress` that nobody follows."""


def no_share(share: float) -> None:
    """A `Share` that nobody follows."""


def part_of_progress(on_progress: Progress, start: float, end: float) -> Progress:
    """A `Progress` of a part of the work, from one share of everything to another."""
    return lambda doing, share: on_progress(doing, start + (end - start) * share)


@contextmanager
def one_thread() -> Iterator[None]:
    """A block, or with `@one_thread()` a function, whose linear algebra uses one thread."""
    with _controller().limit(limits=1, user_api="blas"):
        yield


@cache
def _controller() -> "ThreadpoolController":
    # Not above: who counts on a cluster has no linear algebra.
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@contextmanager
def collection_paused() -> Iterator[None]:
    """A block that makes millions of objects and drops none: looking for garbage takes a third."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def workers() -> int:
    """How many threads `in_order` works with: the processors there are for this process, or 4."""
    has_affinity = hasattr(os, "sched_getaffinity")  # Linux only
    n_processors = len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1
    return min(n_processors, _MOST_WORKERS)


def in_order(
    function: Callable[[Item], Result], items: Iterable[Item]
) -> Generator[Result, None, None]:
    """function(item) of each item, in the order of the items, worked out in threads.

    At most two items for each thread are taken ahead of the results. For work outside the
    interpreter: numpy, pyarrow, the operating system. When the caller stops taking results, or an
    item raises in its place, what was begun has ended before this ends.
    """
    ahead = 2 * workers()
    waiting: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(workers()) as pool:
        try:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) == ahead:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)
