"""How this server serves: for one's own records beside it, or for planning alone."""

from typing import NamedTuple

from rpexplore.common.limits import OWN_APP, Limits
from rpexplore.common.server_settings import server_settings

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
