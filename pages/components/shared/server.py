"""The server's own life: whom it serves, whose child it is, and how it ends."""

import asyncio
import os
import secrets
import signal
import socket
import sys
import threading
from asyncio import base_events
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module
from typing import Any

from starlette.middleware import Middleware

from pages.components.shared.guard import Guard
from rpexplore.common.hangup import take_hangup
from rpexplore.common.webapp_files import TOKEN_PARAMETER, TOKEN_VARIABLE


def guard() -> Middleware:
    """The guard with the token of whoever started the server, or with a new one that it prints."""
    # Taken out of the environment, so that no program started from here inherits it.
    token = os.environ.pop(TOKEN_VARIABLE, "")
    if token:
        threading.Thread(target=_end_with_parent, name="parent", daemon=True).start()
    else:
        token = secrets.token_urlsafe(32)
        ending = f"/?{TOKEN_PARAMETER}={token}"
        # Whoever ran `streamlit run` has only the terminal to learn it from; a log would keep it.
        sys.stdout.write(f"\n  The app opens only with an address that ends in {ending}\n")
        sys.stdout.flush()
    return Middleware(Guard, token=token)


def send_at_once() -> None:
    """Keep the system from holding back what the server sends.

    asyncio turns that off (Nagle's algorithm) only where a socket names TCP as its protocol, which
    Streamlit's does not. What is written in two pieces, as each file and each part of a page, would
    wait up to 40 ms for the browser to acknowledge the first.
    """

    def turn_off(connection: socket.socket) -> None:
        if connection.family in (socket.AF_INET, socket.AF_INET6):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    module: Any = base_events
    module._set_nodelay = turn_off  # there is no public way


@asynccontextmanager
async def lifespan(_app: Any) -> AsyncIterator[None]:
    """What happens around the server's life: it ends after the runs that have been booked."""
    take_hangup(lambda *_: _stop())
    threading.Thread(target=_import_first_pages, name="imports", daemon=True).start()
    yield
    from pages.components.shared.background import finish_kept_tasks

    await asyncio.to_thread(finish_kept_tasks)


def _import_first_pages() -> None:
    """Import what the first pages need while the browser still loads the front end."""
    for module in ("shared.frame", "home.gallery", "plan.usefulness", "plan.results"):
        import_module(f"pages.components.{module}")


def _end_with_parent() -> None:
    """Stop the server when `rpexplore app` is gone: it holds the other end of the input."""
    while os.read(0, 1):  # not by `sys.stdin`, whose lock a thread would hold in the end
        pass
    _stop()


def _stop() -> None:
    os.kill(os.getpid(), signal.SIGTERM)
