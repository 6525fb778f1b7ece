"""How this server serves: for records beside it or for planning alone, by turns, and its log."""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from contextvars import ContextVar
from itertools import count
from typing import NamedTuple

import streamlit as st  # keeps what belongs to a session, and says when that has ended

from rpexplore.common.server import OWN_APP, Limits, server_settings
from rpexplore.common.server_files import log_event, timed_event

HAND_OVER = "Hand over"


def plans_only() -> bool:
    """Whether this server is shared and has no records: its pages read no path and run nothing."""
    return server_settings().planning_only


def limits() -> Limits:
    """How much a session, an account and all together may take of this server."""
    return server_settings().limits if plans_only() else OWN_APP


def where_kept() -> str:
    """Where the things of a session are kept, behind "saved" or "kept"."""
    return "on the server" if plans_only() else "on this computer"


class Step(NamedTuple):
    """A page of the way: the name of its file, and its title."""

    page: str
    title: str


def last_step() -> Step:
    """Where a plan leaves the app."""
    return Step("handover", HAND_OVER) if plans_only() else Step("release", "Release")


# ---- Who may come in to a shared server, and whose turn it is to work there.


_SECONDS_BETWEEN_LOOKS = 0.2
_OWN_TURN = "turn of the session"
_processors = threading.BoundedSemaphore(os.cpu_count() or 1)
_places: set[int] = set()
_place_numbers = count(1)
_lock = threading.Lock()


class _Full(Exception):
    """All places are taken."""


def has_place() -> bool:
    """Whether this session is one of those that the server has room for."""
    if not plans_only():
        return True
    try:
        _place()  # asked in each run: it is given up when the connection breaks off
    except _Full:
        log_event("refused by a limit", limit="sessions")
        return False
    return True


def _leave(number: int) -> None:
    with _lock:
        _places.discard(number)


def _take_place() -> int:
    with _lock:
        if len(_places) >= limits().sessions:
            raise _Full
        number = next(_place_numbers)
        _places.add(number)
    return number


# Streamlit says so when the session has ended.
_place = st.cache_resource(scope="session", show_spinner=False, on_release=_leave)(_take_place)


def own_turn() -> threading.Semaphore | None:
    """What makes a session's pieces of work wait for each other; None on one's own app."""
    return st.session_state.setdefault(_OWN_TURN, threading.Semaphore()) if plans_only() else None


@contextmanager
def turn(own: threading.Semaphore | None, waiting: Callable[[str], None]) -> Iterator[None]:
    """Wait until nothing else of the session is worked on, and a processor is free for it.

    waiting: told again and again what for; it may raise to give up
    """
    with ExitStack() as held:
        if own is not None:
            for lock, doing in (
                (own, "Waiting for what this session works out already"),
                (_processors, "Waiting for others on this server"),
            ):
                while not lock.acquire(timeout=_SECONDS_BETWEEN_LOOKS):
                    waiting(doing)
                held.callback(lock.release)
        yield


_reading = threading.Lock()


@contextmanager
def reading() -> Iterator[None]:
    """A block that reads an upload: on a shared server one at a time, whoever it is of.

    Limits bound how long one takes and how much memory. It does not take turns with other work,
    for which a page would wait for minutes.
    """
    with _reading if plans_only() else nullcontext():
        yield


# ---- By which number the log of a shared server calls a session: it says nothing of the person.


_numbers = count(1)
_of_work: ContextVar[int | None] = ContextVar("session of work", default=None)


def session_number() -> int | None:
    """The number of the session, or of that which this thread works for; None on one's own app."""
    if not plans_only():
        return None
    return _of_work.get() or _begun()


@contextmanager
def work_for(session: int | None) -> Iterator[None]:
    """In a thread without a session: the block works for the one of this number."""
    before = _of_work.set(session)
    try:
        yield
    finally:
        _of_work.reset(before)


def plan_solved(kind: str, tables: int) -> AbstractContextManager[None]:
    """Log how long the block solves a plan: for an objective, of so many tables or queries."""
    return timed_event("plan solved", session=session_number(), kind=kind, tables=tables)


def _end(number: int) -> None:
    log_event("session ended", session=number)


@st.cache_resource(scope="session", show_spinner=False, on_release=_end)
def _begun() -> int:
    number = next(_numbers)
    log_event("session begun", session=number)
    return number
