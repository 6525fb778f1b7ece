"""The app as a child process, which only this machine can reach."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
import webbrowser
from collections.abc import Callable
from typing import Any

from rpexplore.common.webapp_files import app_script
from rpexplore.errors import RpexploreError

HOST = "127.0.0.1"

# The settings beside app.py (.streamlit/config.toml) go before those in the user's home and in the
# current folder, but a variable in the environment or a setting they do not name would win. So
# the variables are taken away, and what keeps the app private is given as flags, which win always.
_FLAGS = {
    "global.developmentMode": "false",
    "server.address": HOST,
    "server.headless": "true",  # no question for an e-mail address at the first start
    "server.enableCORS": "true",
    "server.enableXsrfProtection": "true",
    "server.baseUrlPath": "",
    "server.sslCertFile": "",
    "server.sslKeyFile": "",
    "browser.gatherUsageStats": "false",
    "client.showErrorDetails": "none",
    "logger.hideWelcomeMessage": "true",
}
_SECONDS_TO_STOP = 10


def serve(port: int, *, open_browser: bool, on_ready: Callable[[str], Any]) -> None:
    """Run the app until it is interrupted; `on_ready` is given its address once it answers.

    Raises `RpexploreError` if the app is not installed, the port is taken, or the app ends.
    """
    script = app_script()
    _refuse_taken(port)
    command = [sys.executable, "-P", "-m", "streamlit", "run", str(script)]
    command += [f"--{name}={value}" for name, value in {**_FLAGS, "server.port": port}.items()]
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("STREAMLIT_")
    }
    # Whoever ends this program must not leave the app behind.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    child = subprocess.Popen(command, env=environment, stdout=sys.stderr)
    try:
        address = f"http://{HOST}:{port}"
        while child.poll() is None and not _answers(address):
            time.sleep(0.1)
        if child.poll() is None:
            on_ready(f"The app runs at {address} (for this machine only). Ctrl-C stops it.")
            if open_browser and _has_display():
                webbrowser.open(address)
        child.wait()
    except KeyboardInterrupt:
        return
    finally:
        _stop(child)
    raise RpexploreError(
        f"The app ended by itself (exit code {child.returncode}); what it wrote above says why."
    )


def _refuse_taken(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
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


def _stop(child: subprocess.Popen[bytes]) -> None:
    """End the app, gently if it lets itself be."""
    try:
        child.terminate()
        child.wait(_SECONDS_TO_STOP)
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        child.kill()
        child.wait()
