"""What happens on a shared server, one JSON object a line on standard error, and nothing of whom.

A line has the time, the event, and words and numbers of this program. It never has what people
type, upload or save (names of attributes, tables, projects and files), addresses, keys of projects,
who somebody is, or the text of an exception. What other libraries log becomes such a line as well:
which of them, how grave and where in its code, without its text.
"""

import json
import logging
import re
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rpexplore.common.server_settings import server_settings

_WORDS = re.compile(r"[A-Za-z_][A-Za-z0-9_ ./:-]{0,80}")
_OWN = ("rpexplore", "pages", "app.py")
_ROOT = Path(__file__).resolve().parents[2]


def log_event(event: str, **fields: str | int | float | None) -> None:
    """Write a line, on a shared server; on one's own there is no log.

    Args:
        event: What happened, in words of this program.
        fields: More of it: numbers, and words of this program; None for what is not known.
    """
    _write(event_line(event, **fields))


def event_line(event: str, **fields: str | int | float | None) -> str:
    """The line of an event.

    >>> event_line("page run", page="Home", seconds=0.1234)[-53:]
    '"event": "page run", "page": "Home", "seconds": 0.123}'
    """
    line: dict[str, Any] = {"time": datetime.now(UTC).isoformat(timespec="milliseconds")}
    line["event"] = event
    for name, value in fields.items():
        if isinstance(value, float):
            line[name] = round(value, 3)
        elif isinstance(value, int) or (isinstance(value, str) and _WORDS.fullmatch(value)):
            line[name] = value
    return json.dumps(line)


@contextmanager
def timed_event(event: str, **fields: str | int | float | None) -> Iterator[None]:
    """Log an event at the end of the block, with its seconds and how it ended."""
    begun, outcome = time.monotonic(), "done"
    try:
        yield
    except BaseException as error:
        outcome = type(error).__name__
        raise
    finally:
        log_event(event, **fields, outcome=outcome, seconds=time.monotonic() - begun)


def log_unexpected(error: BaseException | None) -> None:
    """Log an error that nobody has foreseen: its type, and its last place in this program."""
    if error is not None:
        _write(_unexpected(error))


def _write(line: str) -> None:
    if server_settings().planning_only:
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()


def _unexpected(error: BaseException) -> str:
    # The last frame in this program, as file and line.
    places = [
        f"{Path(frame.filename).resolve().relative_to(_ROOT).as_posix()}:{frame.lineno}"
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename).resolve().is_relative_to(_ROOT)
    ]
    own = [place for place in places if place.startswith(_OWN)]
    return event_line("unexpected error", type=type(error).__name__, place=own[-1] if own else None)


def take_over_logs() -> None:
    """Have all that this process logs or complains of written as lines without its text."""
    make_record = logging.getLogRecordFactory()

    def without_text(*args: Any, **more: Any) -> logging.LogRecord:
        record = make_record(*args, **more)
        error = record.exc_info[1] if record.exc_info else None
        if error is not None:
            record.msg = _unexpected(error)
        else:
            record.msg = event_line(
                "library message",
                level=record.levelname,
                logger=record.name,
                place=f"{record.module}:{record.lineno}",
            )
        record.args, record.exc_info, record.exc_text, record.stack_info = (), None, None, None
        return record

    logging.setLogRecordFactory(without_text)
    logging.captureWarnings(True)
    logging.basicConfig(format="%(message)s", force=True)
    sys.excepthook = lambda _type, error, _traceback: log_unexpected(error)
    threading.excepthook = lambda thrown: log_unexpected(thrown.exc_value)
    sys.unraisablehook = lambda unraisable: log_unexpected(unraisable.exc_value)
    for name in logging.root.manager.loggerDict:
        for handler in logging.getLogger(name).handlers:
            handler.setFormatter(logging.Formatter("%(message)s"))
