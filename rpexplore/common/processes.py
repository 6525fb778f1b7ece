"""Work in threads and in another process, what outlives one, and the signal of a terminal."""

import gc
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache
from importlib import import_module
from types import FrameType
from typing import IO, TYPE_CHECKING, Any, TypeVar

from rpexplore.common.server import server_settings
from rpexplore.errors import RpexploreError

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController


# ---- Concurrency: linear algebra in one thread, and other work on all processors.
#
# Libraries of linear algebra share a sum among threads, and how many these are changes its last
# digits, from which the rounding of a strategy makes another plan. On the matrices of a plan
# several threads are also slower, by far where other programs run beside.


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
def one_thread(*, with_scipy: bool = False) -> Iterator[None]:
    """A block, or with `@one_thread()` a function, whose linear algebra uses one thread.

    with_scipy: whether SciPy's is loaded first, as it must be where the block uses it: what is
        loaded within the block is not limited
    """
    if with_scipy:
        import_module("scipy.linalg")
    has_scipy, outer = "scipy.linalg" in sys.modules, _limit.of_block
    if outer == (has_scipy, _Limit.n_changes):  # it holds already; finding out takes 20 µs
        yield
        return
    with _controller(has_scipy).limit(limits=1, user_api="blas"):
        _Limit.n_changes += 1
        _limit.of_block = has_scipy, _Limit.n_changes
        try:
            yield
        finally:
            _limit.of_block = outer
            _Limit.n_changes += 1


class _Limit(threading.local):
    """What this thread's innermost block limited; stale once any thread changes limits again.

    of_block: whether SciPy was loaded, and `n_changes` then; None outside of blocks
    """

    n_changes = 0  # of all threads: limits may be those of the whole process
    of_block: tuple[bool, int] | None = None


_limit = _Limit()


@cache
def _controller(has_scipy: bool) -> "ThreadpoolController":
    """Of all libraries that are loaded: SciPy's own comes with it, later than NumPy's."""
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


# ---- Work in another process: this one's interpreter stays free for its other threads.
#
# For work that holds the interpreter for seconds at a time: a report, a workbook. The process gets
# a function of this package and its arguments as a pickle, and gives its result back in the same
# way; it says nothing else, so that no log can hold what it works on.


T = TypeVar("T")
_REPORTS = 0.2  # seconds between reports of progress, at which the work can be cancelled
_START = "from rpexplore.common.processes import _serve; _serve()"
_NICE = 10  # lower priority on a planning server, where the pages of others come first
_LIFE_SIGN = 1.0  # seconds after which a process without a parent ends
_CLEANING_UP = 5.0  # seconds that a process has to end what it has begun and delete its files


def in_other_process(
    function: Callable[..., T],
    *args: Any,
    doing: str = "Working",
    on_progress: Progress = no_progress,
    ended: RpexploreError | None = None,
) -> T:
    """Run function(*args) in a process of its own; returns or raises what it does.

    Args:
        function: One that can be imported by its name.
        doing: What `on_progress` is told is being done.
        on_progress: Called every moment; if it raises, the process is ended.
        ended: Raised if the process ends without a result.
    """
    with _begun(function, args, writes=False) as process:
        try:
            answer = None
            while answer is None:
                on_progress(doing, 0.1)
                with suppress(subprocess.TimeoutExpired):
                    answer, _ = process.communicate(timeout=_REPORTS)
        except BaseException:
            # Terminate first, so that the process can clean up.
            process.terminate()
            try:
                process.communicate(timeout=_CLEANING_UP)
            except subprocess.TimeoutExpired:
                pass
            finally:
                process.kill()
            raise
    if process.returncode != 0:
        raise ended or RpexploreError(
            f"The work ended before its result was there (exit code {process.returncode}): there "
            "may be too little memory. Try again with fewer or smaller tables."
        )
    succeeded, result = pickle.loads(answer)  # noqa: S301 - written by our own process, above
    if not succeeded:
        raise result
    return result


@contextmanager
def written_by_other_process(
    function: Callable[..., None], *args: Any, ended: RpexploreError
) -> Iterator[IO[bytes]]:
    """A block that reads what function(file, *args) writes, in a process of its own.

    At the end of the block, what the function raises is raised, or `ended` if its process ended
    before it did. Where the block is left before, the process is ended.

    Args:
        function: One that can be imported by its name.
    """
    process = _begun(function, args, writes=True)
    try:
        assert process.stdout is not None
        yield process.stdout
        answer = process.stdout.read()
    finally:
        process.kill()
        process.communicate()
    try:
        succeeded, error = pickle.loads(answer)  # noqa: S301 - written by our own process, above
    except (EOFError, pickle.UnpicklingError):
        raise ended from None
    if not succeeded:
        raise error


def _begun(function: Callable[..., Any], args: Any, *, writes: bool) -> "subprocess.Popen[bytes]":
    """A process that calls the function, with its output as the first argument if it `writes`."""
    command = [sys.executable, "-c", f"import sys; sys.path[:] = {sys.path!r}; {_START}"]
    pipe, nowhere = subprocess.PIPE, subprocess.DEVNULL
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=nowhere)
    assert process.stdin is not None
    try:
        # Never through a file: the arguments may hold records. The process reads all of them before
        # it writes anything, so that neither waits for the other. If it has ended, its answer,
        # which is missing, says so.
        with suppress(BrokenPipeError), process.stdin as task:
            pickle.dump((function, args, writes), task, pickle.HIGHEST_PROTOCOL)
    except BaseException:
        with process:
            process.kill()
        raise
    process.stdin = None  # `communicate` would flush it, closed or not
    return process


def _serve() -> None:
    """Do in a new process what its standard input says, and write the result to its output."""
    signal.signal(signal.SIGTERM, _clean_up)
    forbid_core_dumps()
    # In one's own app somebody waits: on a busy machine 1.8 s of work took 50 s at that priority.
    if server_settings().planning_only and hasattr(os, "nice"):  # not on Windows
        os.nice(_NICE)
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    # Whatever is printed on the way must not get between the bytes of the result.
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    task = pickle.load(sys.stdin.buffer)  # noqa: S301 - written by the process that began this
    function, args, writes = task
    try:
        answer = (True, function(output, *args) if writes else function(*args))
    except Exception as error:
        answer = (False, error)
    with output:
        pickle.dump(answer, output, pickle.HIGHEST_PROTOCOL)


def _clean_up(number: int, frame: FrameType | None) -> None:
    """End this process by an exception, which ends what was begun and deletes temporary files."""
    signal.signal(number, signal.SIG_IGN)  # another one must not interrupt that
    sys.exit(1)


def _end_with(parent: int) -> None:
    """End this process when its parent has ended."""
    while os.getppid() == parent:
        time.sleep(_LIFE_SIGN)
    # To the main thread, as a signal interrupts no other thread's waiting.
    main = threading.main_thread().ident
    if main is not None and hasattr(signal, "pthread_kill"):  # not on Windows
        signal.pthread_kill(main, signal.SIGTERM)
        time.sleep(_CLEANING_UP)
    os._exit(1)


# ---- What outlives a process.


_PR_SET_DUMPABLE = 4  # linux/prctl.h


def forbid_core_dumps() -> None:
    """Let no dump of this process's memory, which may hold records, be written when it crashes.

    On Linux no other process of this user can attach to it either. Processes that it begins have to
    ask for the latter by themselves. Nothing happens where a system has neither.
    """
    with suppress(ImportError, ValueError, OSError):  # not on Windows
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        import ctypes

        # A dump that goes to a program (core_pattern) heeds no limit.
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


# ---- A limit of the memory of a process (ulimit -v), which linear algebra does not heed.


_LEAST_MEMORY, _FOR_THREADS = 700_000_000, 8_000_000_000  # bytes of addresses


def heed_memory_limit() -> None:
    """End the program with a sentence if it may take less memory than it needs to begin.

    To be called before numpy is imported: OpenBLAS takes addresses for each of its threads at once,
    and loops or hangs without. Below a larger limit it is told to have one thread.
    """
    with suppress(ImportError):  # not on Windows
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        if limit == resource.RLIM_INFINITY:
            return
        if limit < _LEAST_MEMORY:
            sys.stderr.write(
                f"error: This program may take {limit / 1e6:,.0f} MB of memory here (ulimit -v) "
                f"and needs {_LEAST_MEMORY / 1e6:,.0f} MB to begin; raise the limit.\n"
            )
            raise SystemExit(2)
        if limit < _FOR_THREADS:
            os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


# ---- The signal of a terminal that is closed.


def take_hangup(handler: Callable[..., Any]) -> None:
    """Have `handler` called, unless it is ignored (nohup), or the system has no such signal."""
    hangup = getattr(signal, "SIGHUP", None)
    if hangup is not None and signal.getsignal(hangup) == signal.SIG_DFL:
        signal.signal(hangup, handler)
