"""The app as a child process: one's own, which only this machine can reach, or a shared one."""

import html
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
import webbrowser
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from rpexplore.common.extras import require
from rpexplore.common.server_settings import ServerSettings
from rpexplore.common.webapp_files import (
    REFUSED,
    TOKEN_PARAMETER,
    TOKEN_VARIABLE,
    app_script,
    data_folders_variable,
)
from rpexplore.errors import RpexploreError

HOST = "127.0.0.1"

# The settings beside app.py (.streamlit/config.toml) go before those in the user's home and in the
# current folder, but a variable in the environment or a setting they do not name would win. So
# the variables are taken away, and what keeps the app private is given as flags, which win always.
_FLAGS = {
    "global.developmentMode": "false",
    "server.headless": "true",  # no question for an e-mail address at the first start
    "server.enableCORS": "true",
    "server.enableXsrfProtection": "true",
    "server.sslCertFile": "",
    "server.sslKeyFile": "",
    "browser.gatherUsageStats": "false",
    "client.showErrorDetails": "none",
    "logger.hideWelcomeMessage": "true",
}
_SECONDS_TO_STOP = 10


def serve(
    port: int, *, data_folders: Sequence[Path], open_browser: bool, say: Callable[[str], Any]
) -> None:
    """Run the app until it is interrupted; `say` is told its address once it answers.

    data_folders: those whose files it offers to choose from; none for the sample data

    The address has a token without which the app opens nowhere. A release that has been booked is
    finished first; a second interruption ends the app at once, and leaves it to be resumed.
    Raises `RpexploreError` if the app is not installed, the port is taken, a folder is missing, or
    the app ends.
    """
    folders_variable = data_folders_variable(data_folders)
    token = secrets.token_urlsafe(32)
    address = f"http://{HOST}:{port}"
    private_address = f"{address}/?{TOKEN_PARAMETER}={token}"
    with ExitStack() as until_the_end:

        def announce() -> None:
            say(
                f"The app runs at {private_address} (for this machine, and for who has this "
                "address, only). Ctrl-C stops it."
            )
            if open_browser and _has_display():
                webbrowser.open(until_the_end.enter_context(_link(private_address)))

        flags = {"server.address": HOST, "server.port": port, "server.baseUrlPath": ""}
        # Whatever the environment says, this is one's own.
        variables = {TOKEN_VARIABLE: token, **folders_variable, **ServerSettings().variable}
        run_server(flags, variables, address, announce, say)


def run_server(
    flags: Mapping[str, str | int],
    variables: Mapping[str, str],
    address: str,
    announce: Callable[[], Any],
    say: Callable[[str], Any],
) -> None:
    """Run the app as a child process until it is interrupted.

    Args:
        flags: Settings of Streamlit beside those that every server has: `server.address` and
            `server.port` are where it listens.
        variables: What its environment has beside that of this process.
        address: Where it answers.
        announce: Called once it does.
        say: Told what somebody who waits for its end should know.

    Raises `RpexploreError` if the app is not installed, the port is taken, or the app ends.
    """
    require("streamlit", "app", "the app")
    command = [sys.executable, "-P", "-m", "streamlit", "run", str(app_script())]
    _refuse_taken(str(flags["server.address"]), int(flags["server.port"]))
    command += [f"--{name}={value}" for name, value in {**_FLAGS, **flags}.items()]
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("STREAMLIT_")
    } | {**variables}
    # Its input is never written to: it ends when this program does, however that ends. In a session
    # of its own a terminal's Ctrl-C does not reach it, and this program stops it, once.
    child = subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=sys.stderr,
        start_new_session=True,
    )
    try:
        while child.poll() is None and not _answers(address):
            time.sleep(0.1)
        if child.poll() is None:
            announce()
        child.wait()
    except KeyboardInterrupt:
        return
    finally:
        _stop(child, say)
    if child.returncode == REFUSED:
        raise SystemExit(REFUSED)
    raise RpexploreError(
        f"The app ended by itself (exit code {child.returncode}); what it wrote above says why."
    )


@contextmanager
def _link(address: str) -> Iterator[str]:
    """The address of a file, readable by its owner only, that goes on to `address`.

    A browser's arguments can be read by every user of a machine.
    """
    descriptor, name = tempfile.mkstemp(suffix=".html", prefix="rpexplore-")
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(f'<meta http-equiv="refresh" content="0; url={html.escape(address)}">')
        yield Path(name).as_uri()
    finally:
        Path(name).unlink(missing_ok=True)


def _refuse_taken(host: str, port: int) -> None:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise RpexploreError(
                f"Port {port} cannot be used ({error.strerror}); choose another one with --port."
            ) from None


def _answers(address: str) -> bool:
    """Whether the app is ready. Asked directly: no proxy is to know."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"{address}/_stcore/health", timeout=2) as answer:
            return answer.status == 200
    except OSError:
        return False


def _has_display() -> bool:
    """Whether a browser window can show up; without one, a text browser would take the terminal."""
    if sys.platform in ("win32", "darwin"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _stop(child: subprocess.Popen[bytes], say: Callable[[str], Any]) -> None:
    """End the app after the releases that are booked, or at once at a second interruption."""
    try:
        child.terminate()
        try:
            child.wait(_SECONDS_TO_STOP)
        except subprocess.TimeoutExpired:
            say(
                "The app finishes a release that is charged already. Ctrl-C again ends it at once; "
                "the release can then be resumed."
            )
            child.wait()
    except KeyboardInterrupt:
        child.kill()
        child.wait()
