"""Who may come in to a shared server, and whose turn it is to work there."""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import count

import streamlit as st

from pages.components.shared.serving import limits, plans_only
from rpexplore.common.event_log import log_event

_SECONDS_BETWEEN_LOOKS = 0.2
_OWN_TURN = "turn of the session"
_processors = threading.BoundedSemaphore(os.cpu_count() or 1)
_numbers = count(1)
_places: set[int] = set()
_lock = threading.Lock()


class _Full(Exception):
    """All places are taken."""


def has_place() -> bool:
    """Whether this session is one of those that the server has room for; else the page says so."""
    if not plans_only():
        return True
    try:
        _place()  # asked in each run: it is given up when the connection breaks off
    except _Full:
        log_event("refused by a limit", limit="sessions")
        st.title("All places are taken")
        st.info(
            f"{limits().sessions:,} people use this planning server now, as many "
            "as it has room for. Try again in some minutes; saved projects are as they were left."
        )
        return False
    return True


def _leave(number: int) -> None:
    with _lock:
        _places.discard(number)


def _take_place() -> int:
    with _lock:
        if len(_places) >= limits().sessions:
            raise _Full
        number = next(_numbers)
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
