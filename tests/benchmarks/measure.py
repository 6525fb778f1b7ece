"""What all benchmarks measure with: rows, the best of three times, the peak of the process."""

import os
import pickle
import re
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

REPEATS = 3

Row = tuple[str, float, str, float]  # what, measured, "<=" or ">=", limit; the unit is in `what`


def best_of_three(
    call: Callable[[Any], Any],
    fresh: Callable[[], Any] = lambda: None,
    clock: Callable[[], float] = time.perf_counter,
) -> tuple[float, Any]:
    """(seconds of the fastest call, what the last one returned).

    `fresh` makes the input of each call, outside the time: nothing remembers an earlier call.
    `clock`: `time.process_time` for processor time.
    """
    seconds, result = [], None
    for _ in range(REPEATS):
        given = fresh()
        start = clock()
        result = call(given)
        seconds.append(clock() - start)
    return min(seconds), result


def once(
    call: Callable[[], Any], clock: Callable[[], float] = time.perf_counter
) -> tuple[float, Any]:
    """(seconds, what it returned) of a call that takes too long for three."""
    start = clock()
    result = call()
    return clock() - start, result


def process_seconds(
    call: Callable[[], Any], clock: Callable[[], float] = time.process_time
) -> float:
    """Processor time of the fastest of three calls, of all threads and the system's.

    clock: time.thread_time for that of this thread alone
    """
    seconds = []
    for _ in range(REPEATS):
        start = clock()
        call()
        seconds.append(clock() - start)
    return min(seconds)


def in_own_process(call: Callable[..., Any], *given: Any) -> Any:
    """What a function of a module returns in a new process, whose peak is its own.

    Which imports this module alone: one of `multiprocessing` would import all benchmarks.
    """
    lines = (
        "import pickle, sys; call, given = pickle.load(sys.stdin.buffer); "
        "pickle.dump(call(*given), sys.stdout.buffer)"
    )
    command, content = [sys.executable, "-c", lines], pickle.dumps((call, given))
    done = subprocess.run(command, input=content, stdout=subprocess.PIPE, check=True)
    return pickle.loads(done.stdout)  # noqa: S301 - of a function that was given here


def processes_seconds() -> float:
    """Processor time of this process and of all that it started, those that still run as well."""
    times, parents = {}, {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has just ended
            fields = path.read_text("utf-8", "replace").rpartition(")")[2].split()
            number = int(path.parent.name)
            parents[number], times[number] = int(fields[1]), sum(map(int, fields[11:15]))
    own, ticks = [os.getpid()], 0
    while own:
        number = own.pop()
        ticks += times[number]
        own += [child for child, parent in parents.items() if parent == number]
    return ticks / os.sysconf("SC_CLK_TCK")


def environment() -> dict[str, str]:
    """Of programs whose start is measured: they keep what is compiled, as installed ones do."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def ended_seconds() -> float:
    """Processor time of all processes that this one has started and waited for."""
    times = resource.getrusage(resource.RUSAGE_CHILDREN)
    return times.ru_utime + times.ru_stime


def peak_gigabytes() -> float:
    """Of this process since it started."""
    status = Path("/proc/self/status")
    # On Linux, ru_maxrss is at least what the process had that started this one.
    if status.is_file():
        return int(re.findall(r"VmHWM:\s*(\d+) kB", status.read_text())[0]) * 1024 / 1e9
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # kB, but bytes on macOS
    return peak * (1 if sys.platform == "darwin" else 1024) / 1e9


def descendants_gigabytes() -> float:
    """The peaks of the processes that this one has started, and they in turn, together."""
    peaks, parents = {}, {}
    for path in Path("/proc").glob("[0-9]*/status"):
        with suppress(OSError):  # it has just ended
            status = path.read_text("utf-8", "replace")
            number = int(path.parent.name)
            parents[number] = int(re.findall(r"PPid:\s*(\d+)", status)[0])
            peaks[number] = sum(map(int, re.findall(r"VmHWM:\s*(\d+) kB", status)))
    found, total = [os.getpid()], 0
    while found:
        number = found.pop()
        children = [child for child, parent in parents.items() if parent == number]
        total += sum(peaks[child] for child in children)
        found += children
    return total * 1024 / 1e9
