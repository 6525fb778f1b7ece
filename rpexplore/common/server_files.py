"""Files of a shared server: how people log in, and the log of what happens."""

import json
import logging
import re
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from rpexplore.common.files import secret_toml
from rpexplore.common.server import PublicAddress, is_this_machine, server_settings
from rpexplore.errors import RpexploreError

# ---- Login file: how a shared server logs people in, by OpenID Connect.


DEFAULT_PROVIDER = "default"  # of one that has no section of its own
_SIGNS_OF_COOKIE_SECRET = 32
_OF_PROVIDER = ("client_id", "client_secret", "server_metadata_url")
_OPTIONS = ("client_kwargs",)
_OF_ALL = ("cookie_secret", "redirect_uri")


@dataclass(frozen=True)
class Login:
    """The providers that people can log in with.

    providers      by their names in the file, each with its client_id, client_secret,
                   server_metadata_url and client_kwargs; `DEFAULT_PROVIDER` is the name of one
                   without a name
    cookie_secret  what cookies are signed with
    redirect_uri   where providers send people back to
    """

    providers: Mapping[str, Mapping[str, Any]] = field(repr=False)
    cookie_secret: str = field(repr=False)
    redirect_uri: str

    @classmethod
    def read(cls, path: Path, address: PublicAddress) -> "Login":
        """The login of the server at an address, from a file for its owner alone.

        Raises `RpexploreError`, which quotes none of its values, for one that would not work.
        """
        try:
            content = secret_toml(path, "The login file", RpexploreError)
        except FileNotFoundError:
            raise RpexploreError(
                f"There is no login file {str(path)!r}; name another --login."
            ) from None
        where = f"The login file {str(path)!r}"
        auth = content.get("auth") if content else None
        if not isinstance(auth, dict) or set(content or ()) != {"auth"}:
            raise RpexploreError(
                f"{where} must be TOML with one table, [auth]; write cookie_secret, "
                f"{', '.join(_OF_PROVIDER)} under it."
            )
        secret = auth.get("cookie_secret")
        if not isinstance(secret, str) or len(secret) < _SIGNS_OF_COOKIE_SECRET:
            raise RpexploreError(
                f"{where} needs a cookie_secret of {_SIGNS_OF_COOKIE_SECRET} signs or more that "
                "nobody can guess; take what this prints: openssl rand -hex 32"
            )
        redirect = f"{address}oauth2callback"
        if auth.get("redirect_uri", redirect) != redirect:
            raise RpexploreError(
                f"{where} has another redirect_uri than the one that follows from --address, "
                f"{redirect}; leave it out, or correct one of the two."
            )
        sections = {name: value for name, value in auth.items() if isinstance(value, dict)}
        sections.pop("client_kwargs", None)
        own = {key: auth[key] for key in (*_OF_PROVIDER, *_OPTIONS) if key in auth}
        providers = sections | ({DEFAULT_PROVIDER: own} if own else {})
        unknown = set(auth) - {*_OF_ALL, *own, *sections}
        if unknown or not providers:
            named = f", and not {', '.join(sorted(unknown))}" if unknown else ""
            raise RpexploreError(
                f"{where} must name a provider: under [auth], or under [auth.NAME] for each of "
                f"several, it needs {', '.join(_OF_PROVIDER)}{named}."
            )
        for name, section in providers.items():
            _check_provider(f"{where}, provider {name!r},", name, section)
        return cls(providers, secret, redirect)


def _check_provider(where: str, name: str, section: Mapping[str, Any]) -> None:
    """Raise `RpexploreError` for what does not describe a provider."""
    if not name.isascii() or not name.isalnum():
        raise RpexploreError(f"{where} must have a name of letters and digits; rename it.")
    missing = [
        key for key in _OF_PROVIDER if not isinstance(section.get(key), str) or not section[key]
    ]
    if missing or set(section) - {*_OF_PROVIDER, *_OPTIONS}:
        raise RpexploreError(
            f"{where} must have {', '.join(_OF_PROVIDER)}, as texts, and may have client_kwargs; "
            + (f"add {', '.join(missing)}." if missing else "leave out what else is there.")
        )
    if not isinstance(section.get("client_kwargs", {}), dict):
        raise RpexploreError(f"{where} must have client_kwargs that are a table; write it as one.")
    metadata = urlsplit(section["server_metadata_url"])
    if metadata.scheme != "https" and not is_this_machine(metadata.hostname or ""):
        raise RpexploreError(
            f"{where} must have a server_metadata_url that begins with https://; take the one that "
            "its provider documents."
        )


# ---- What happens on a shared server, one JSON object a line on standard error, and nothing of
# whom.
#
# A line has the time, the event, and words and numbers of this program. It never has what people
# type, upload or save (names of attributes, tables, projects and files), addresses, keys of
# projects, who somebody is, or the text of an exception. What other libraries log becomes such a
# line as well: which of them, how grave and where in its code, without its text.


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

    >>> event_line("page run", page="Home", seconds=0.1234)[-54:]
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
