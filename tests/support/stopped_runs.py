"""Releases in processes of their own, that are killed or run out of disk.

Processes are forked from one that has the library loaded already: a run begins at once.
"""

import errno
import importlib
import io
import multiprocessing
import os
import resource
import signal
import sqlite3
import sys
from collections.abc import Mapping
from functools import partial
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any, TypeAlias

from rpexplore.cli.console import heed_signals
from rpexplore.data.source import Source
from rpexplore.errors import RpexploreError
from rpexplore.planning.plan import load_plan
from rpexplore.releases.release import release, resume

_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(
    ["tests.support.stopped_runs", "rpexplore.releases.ledger.ledger_tables"]
)

REFUSED, STOPPED = 3, 4  # exit codes
Run: TypeAlias = Path | str | Source
"""Plan file, data, output and, of a database, the ledger; or "resume" and output."""
_TRACED = ("/rpexplore/releases/", "/rpexplore/data/engines/")


def killed(
    function: str, nth: int, *run: Run, constants: Mapping[str, Any] = MappingProxyType({})
) -> None:
    """Run, and die of a signal the n-th time that a function is called.

    function: "module.name" or "module.Class.name"
    constants: "module.NAME" -> what it is instead
    """
    process = _begun_process(_deadly, function, nth, dict(constants), *run)
    process.join(120)
    assert process.exitcode == -signal.SIGKILL, process.exitcode


def lines_of(*run: Run) -> int:
    """How many lines each whole run executes in `_TRACED`; one is run to its end.

    Of its lines the last 2 % are left out: runs differ by some, as a file that was written a moment
    ago is read again.
    """
    ours, theirs = _processes.Pipe()
    process = _begun_process(_traced, theirs, None, signal.SIGKILL, *run)
    n_lines = ours.recv()
    process.join(120)
    assert process.exitcode == 0, process.exitcode
    return n_lines - n_lines // 50


def killed_at_line(nth: int, *run: Run) -> None:
    """Run, and die of a signal at the n-th line of `_TRACED` that is executed."""
    stopped_at_line(signal.SIGKILL, nth, *run)


def stopped_at_line(number: signal.Signals, nth: int, *run: Run) -> None:
    """Run, and get a signal at that line, which is heeded as the command line heeds it."""
    process = _begun_process(_traced, None, nth, number, *run)
    process.join(120)
    expected = -number if number == signal.SIGKILL else STOPPED
    assert process.exitcode == expected, process.exitcode


def filled_at_call(nth: int | None, *run: Run) -> tuple[str, int]:
    """Run where the disk is full from the n-th call on that makes, writes or names a file.

    Gives what the run is refused with, "" if it is not, and how many such calls there were. A
    commit to a ledger is two: one that fails when all is done, too.
    """
    ours, theirs = _processes.Pipe()
    process = _begun_process(_filled, theirs, nth, *run)
    message, n_calls = ours.recv() if ours.poll(120) else ("", 0)
    process.join(120)
    assert process.exitcode == (REFUSED if message else 0), process.exitcode
    return message, n_calls


def started(*run: Run) -> BaseProcess:
    """A run that has just begun."""
    ours, theirs = _processes.Pipe()
    process = _begun_process(_begun, theirs, *run)
    ours.poll(120)
    return process


def limited(most_bytes: int, *run: Run) -> str:
    """What a run is refused with where no file may grow beyond so many bytes; "" if it is not."""
    ours, theirs = _processes.Pipe()
    process = _begun_process(_limited, theirs, most_bytes, *run)
    message = ours.recv() if ours.poll(120) else ""
    process.join(120)
    assert process.exitcode == (REFUSED if message else 0), process.exitcode
    return message


def _begun_process(target, *arguments) -> BaseProcess:
    process = _processes.Process(target=_as_here, args=(dict(os.environ), target, *arguments))
    # A new process would run the main program again, which is the app where the app is tested.
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        process.start()
    finally:
        sys.modules["__main__"] = main
    return process


def _as_here(environment: dict[str, str], target, *arguments) -> None:
    """The process that others are forked from may have begun with another environment."""
    os.environ.update(environment)
    target(*arguments)


def _deadly(function: str, nth: int, constants: Mapping[str, Any], *run: Run) -> None:
    for constant, value in constants.items():
        module, _, name = constant.rpartition(".")
        setattr(importlib.import_module(module), name, value)
    module, _, name = function.rpartition(".")
    try:
        owner = importlib.import_module(module)
    except ModuleNotFoundError:
        module, _, of = module.rpartition(".")
        owner = getattr(importlib.import_module(module), of)
    before, calls = getattr(owner, name), []

    def deadly(*args, **options):
        calls.append(1)
        if len(calls) == nth:
            os.kill(os.getpid(), signal.SIGKILL)
        return before(*args, **options)

    setattr(owner, name, deadly)
    _go(*run)


def _traced(pipe, nth: int | None, number: signal.Signals, *run: Run) -> None:
    # As many lines in every run: none looks into the ledgers that others have used.
    os.environ["RPEXPLORE_HOME"] += f"/{os.getpid()}"
    n_lines = 0

    def on_event(frame, event, _):
        nonlocal n_lines
        if event == "call":
            file = frame.f_code.co_filename
            return on_event if any(folder in file for folder in _TRACED) else None
        if event == "line":
            n_lines += 1
            if n_lines == nth:
                os.kill(os.getpid(), number)
        return on_event

    try:
        heed_signals()
        sys.settrace(on_event)
        _go(*run)
        sys.settrace(None)
    except KeyboardInterrupt:
        os._exit(STOPPED)
    if pipe is not None:
        pipe.send(n_lines)


def _filled(pipe, nth: int | None, *run: Run) -> None:
    n_calls = 0

    def is_full() -> bool:
        nonlocal n_calls
        n_calls += 1
        return nth is not None and n_calls >= nth

    def failing(function):
        def call(*arguments, **options):
            if is_full():
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return function(*arguments, **options)

        return call

    def opening(path, mode="r", *arguments, **options):
        of = failing(open_) if set(mode) & set("wxa+") else open_
        return of(path, mode, *arguments, **options)

    class Connection(sqlite3.Connection):
        def execute(self, statement, *arguments):
            if statement == "BEGIN" or statement.startswith(("SELECT", "PRAGMA")):  # to read
                return super().execute(statement, *arguments)
            if is_full():
                raise sqlite3.OperationalError("database or disk is full")
            result = super().execute(statement, *arguments)
            if statement == "COMMIT" and is_full():
                raise sqlite3.OperationalError("disk I/O error")
            return result

    open_, connect = io.open, sqlite3.connect
    io.open = opening
    sqlite3.connect = partial(connect, factory=Connection)
    for name in ("fsync", "posix_fallocate", "mkdir", "rename", "replace", "link"):
        setattr(os, name, failing(getattr(os, name)))
    try:
        _go(*run)
    except RpexploreError as error:
        pipe.send((str(error), n_calls))
        os._exit(REFUSED)
    pipe.send(("", n_calls))


def _begun(pipe, *run: Run) -> None:
    pipe.send("begun")
    try:
        _go(*run)
    except RpexploreError:
        os._exit(REFUSED)


def _limited(pipe, most_bytes: int, *run: Run) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))
    try:
        _go(*run)
    except RpexploreError as error:
        pipe.send(str(error))
        os._exit(REFUSED)
    pipe.send("")


def _go(plan: Any, *where: Any) -> None:
    if plan == "resume":
        resume(*where)
    else:
        data, output, *ledger = where
        approvals = sorted(Path(plan).parent.glob("*-approval-*.json"))  # beside the plan
        book = ledger[0] if ledger else None
        release(load_plan(plan), data, output, ledger=book, approvals=approvals)
