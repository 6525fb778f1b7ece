"""The server's own life: whom it serves, whose child it is, when it is ready, and how it ends."""

import asyncio
import gc
import os
import secrets
import signal
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from starlette.middleware import Middleware

from rpexplore.common.files import home_folder
from rpexplore.common.installation import REFUSED, TOKEN_PARAMETER, TOKEN_VARIABLE
from rpexplore.common.processes import forbid_core_dumps, take_hangup
from rpexplore.common.server import server_settings
from rpexplore.common.server_files import Login, log_event, take_over_logs
from rpexplore.errors import RpexploreError
from rpexplore.serving.accounts import LoginRoutes
from rpexplore.serving.compression import CompressedScripts
from rpexplore.serving.guard import Guard, PublicGuard
from rpexplore.serving.sessions import plans_only
from rpexplore.serving.streamlit_parts import prepare_streamlit
from rpexplore.serving.tasks import finish_kept_tasks

_imported, _stopping = threading.Event(), threading.Event()  # the pages; the server
_SECONDS_TO_LEAVE = 1  # from a signal on
_SECONDS_TO_END = 20.0  # from a signal on, beside releases that are booked; it takes two
_SECONDS_BETWEEN_COLLECTIONS = 30.0


def middleware() -> list[Middleware]:
    """The guard of a shared server, or that of one's own app, and what compresses behind it.

    Ends the process with a sentence if a shared server could not rely on the one that is installed.
    """
    settings = server_settings()
    try:
        prepare_streamlit(settings.planning_only)
    except RpexploreError as error:
        sys.stderr.write(f"Error: {error}\n")
        sys.exit(REFUSED)
    compressed = Middleware(CompressedScripts)
    if not settings.planning_only:
        return [_own_guard(), compressed]
    take_over_logs()
    _end_with_starter()
    address, login = settings.public_address, None
    if settings.login_file:
        login = LoginRoutes(Login.read(Path(settings.login_file), address), address)
    guard = Middleware(PublicGuard, address=address, login=login, is_ready=is_ready)
    return [guard, compressed]


def _own_guard() -> Middleware:
    """The guard with the token of whoever started the server, or with a new one that it prints."""
    # Taken out of the environment, so that no program started from here inherits it.
    token = os.environ.pop(TOKEN_VARIABLE, "")
    if token:
        _end_with_starter()
    else:
        token = secrets.token_urlsafe(32)
        ending = f"/?{TOKEN_PARAMETER}={token}"
        # Whoever ran `streamlit run` has only the terminal to learn it from; a log would keep it.
        sys.stdout.write(f"\n  The app opens only with an address that ends in {ending}\n")
        sys.stdout.flush()
    return Middleware(Guard, token=token)


def is_ready() -> bool:
    """Whether somebody who comes now can work: draw pages, save projects, and stay."""
    if not _imported.is_set() or _stopping.is_set():
        return False
    try:
        home_folder().mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=home_folder()) as file:
            file.write(b"saved")
    except OSError:
        return False
    return True


@asynccontextmanager
async def lifespan(_app: Any, first_modules: Sequence[str] = ()) -> AsyncIterator[None]:
    """What happens around the server's life: it ends after the runs that have been booked.

    first_modules: what the first pages need, imported while the browser still loads the front end
    """
    take_hangup(lambda *_: _stop())
    forbid_core_dumps()
    _hear_of_stop()
    threading.Thread(target=_end_in_time, name="end", daemon=True).start()
    log_event("server started")
    threading.Thread(
        target=_import_first, args=(first_modules,), name="imports", daemon=True
    ).start()
    collecting = asyncio.create_task(_collect_garbage())
    yield
    collecting.cancel()

    await asyncio.to_thread(finish_kept_tasks)


def _import_first(modules: Sequence[str]) -> None:
    for module in modules:
        import_module(module)
    gc.collect()
    gc.freeze()  # what is imported stays: no collection need go through it
    _imported.set()
    if is_ready():
        log_event("server ready")


async def _collect_garbage() -> None:
    """Free what sessions have left in circles, in place of Streamlit after every run of a page."""
    while True:
        await asyncio.sleep(_SECONDS_BETWEEN_COLLECTIONS)
        await asyncio.to_thread(gc.collect)


def _hear_of_stop() -> None:
    """Note the first signal; a shared server then says for some time that it is not ready.

    Before it takes no more connections: whatever spreads people over several servers then sends
    them elsewhere.
    """
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        end = signal.getsignal(number)
        if not callable(end):
            continue

        def stop(number: int, _frame: Any, end: Callable[..., Any] = end) -> None:
            first = not _stopping.is_set()
            _stopping.set()
            if first and plans_only():
                log_event("server stopping")
                loop.call_later(_SECONDS_TO_LEAVE, end, number, None)
            else:  # a second signal does not wait
                end(number, None)

        signal.signal(number, stop)


def _end_in_time() -> None:
    """End a stopped server that something else than a booked release keeps.

    As a browser does that is connected and does not read: its connection is closed, without limit,
    only when it has taken what is sent. Nothing is lost: files are saved whole, and what is not
    booked is free.
    """
    _stopping.wait()
    for _ in range(2):  # for a release that was just begun, too
        time.sleep(_SECONDS_TO_END / 2)
        finish_kept_tasks()
    log_event("server cut off")
    os._exit(1)


def _end_with_starter() -> None:
    threading.Thread(target=_end_with_parent, name="parent", daemon=True).start()


def _end_with_parent() -> None:
    """Stop the server when `rpexplore app` is gone: it holds the other end of the input."""
    while os.read(0, 1):  # not by `sys.stdin`, whose lock a thread would hold in the end
        pass
    _stop()


def _stop() -> None:
    os.kill(os.getpid(), signal.SIGTERM)
