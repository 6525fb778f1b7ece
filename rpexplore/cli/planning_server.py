"""The planning server as a child process: its options, checked, and what Streamlit is told."""

import json
import os
from collections.abc import Callable, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import Any

from rpexplore.cli.webapp import HOST, run_server
from rpexplore.common.extras import require
from rpexplore.common.login_file import Login
from rpexplore.common.public_address import PublicAddress
from rpexplore.common.server_settings import ACCOUNT_HEADER, ACCOUNT_OF_USER, ServerSettings
from rpexplore.errors import RpexploreError


def serve_planning(
    port: int,
    *,
    host: str | None,
    address: str | None,
    login: Path | None,
    no_login: bool,
    data_folders: Sequence[Path],
    say: Callable[[str], Any],
) -> None:
    """Run the planning server until it is stopped; `say` is told its address once it answers.

    Raises `RpexploreError` for options that contradict each other, an unusable login file, and as
    `run_server` does.
    """
    listening = _listening(host)
    if data_folders:
        raise RpexploreError(
            "A planning server reads no file of its machine; leave out --data-folder, or "
            "--planning-only."
        )
    if (login is None) != no_login:
        raise RpexploreError(
            "A planning server must be told whom it lets in; give either --login FILE or, for "
            "everybody who reaches it, --no-login."
        )
    if address is None and not listening.is_loopback:
        raise RpexploreError(
            f"With --host {listening} other machines reach the server; give the --address at which "
            "people do, such as https://plan.agency.example/plan"
        )
    own = f"http://{_in_address(listening)}:{port}"
    public = PublicAddress.parse(own if address is None else address)
    if login is not None:
        Login.read(login, public)
        require("authlib", "server", "logging people in")
    settings = ServerSettings(
        planning_only=True,
        address=str(public),
        login_file="" if login is None else str(login.absolute()),
    )
    flags = {
        "server.address": str(listening),
        "server.port": port,
        "server.maxUploadSize": settings.limits.upload_mb,
        "server.baseUrlPath": public.base_path.strip("/"),
        # Streamlit asks again what the guard has asked already.
        "server.allowedHosts": public.name,
        # A session stays with its account; the guard writes this header, and nobody else.
        "server.trustedUserHeaders": json.dumps({ACCOUNT_HEADER: ACCOUNT_OF_USER}),
        "secrets.files": f"{os.devnull}.toml",
        # Each line is one JSON object already, without what people typed.
        "logger.messageFormat": "%(message)s",
        "logger.enableRich": "false",
    }

    def announce() -> None:
        behind = "" if address is None else f" (it listens on {own})"
        say(f"The planning server runs at {public}{behind}. Ctrl-C stops it.")

    asked = _in_address(_asked(listening))
    run_server(flags, settings.variable, f"http://{asked}:{port}{public.base_path}", announce, say)


def _listening(host: str | None) -> IPv4Address | IPv6Address:
    """Where to listen. Raises `RpexploreError` for what is no number of a machine."""
    try:
        return ip_address(HOST if host is None else host)
    except ValueError:
        raise RpexploreError(
            f"--host must be an IP address of this machine, but it is {host!r}; give {HOST} behind "
            "a reverse proxy on this machine, or 0.0.0.0 in a container."
        ) from None


def _asked(listening: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """Where this machine itself asks a server that listens there."""
    if not listening.is_unspecified:
        return listening
    return ip_address("::1" if listening.version == 6 else HOST)


def _in_address(number: IPv4Address | IPv6Address) -> str:
    return f"[{number}]" if number.version == 6 else str(number)
