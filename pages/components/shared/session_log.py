"""By which number the log of a shared server calls a session: it says nothing of the person."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from itertools import count

import streamlit as st

from pages.components.shared.serving import plans_only
from rpexplore.common.event_log import log_event, timed_event

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
