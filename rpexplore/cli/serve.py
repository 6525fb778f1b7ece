"""The verb that serves the app, and the app as a child process, one's own or a shared one."""

import html
import json
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import Annotated, Any

from rpexplore.cli.commands import Option
from rpexplore.cli.console import say
from rpexplore.common.files import home_folder, problem_with_owner
from rpexplore.common.installation import (
    REFUSED,
    TOKEN_PARAMETER,
    TOKEN_VARIABLE,
    app_script,
    data_folders_variable,
    require,
)
from rpexplore.common.server import ACCOUNT_HEADER, ACCOUNT_OF_USER, PublicAddress, ServerSettings
from rpexplore.common.server_files import Login
from rpexplore.errors import RpexploreError

# What it alone needs is imported where it is needed, so that no other verb waits for it.

DataFolders = Annotated[
    list[Path] | None,
    Option(
        metavar="FOLDER",
        help="A folder whose files the app offers to choose from (else the sample data); other "
        "files can still be named by their paths. Repeat it for more.",
    ),
]
Port = Annotated[int, Option(metavar="N", min=1, max=65535, help="Where the app listens.")]
NoBrowser = Annotated[bool, Option("--no-browser", help="Only print the address.")]
PlanningOnly = Annotated[
    bool,
    Option(
        "--planning-only",
        help="Serve a team, far from any records: plans and projects only, no release, no ledger, "
        "no file of this machine. Needs --login or --no-login.",
    ),
]
Address = Annotated[
    str | None,
    Option(
        metavar="URL",
        help="With --planning-only: where people reach it, such as "
        "https://plan.agency.example/plan (else where it listens). Requests for another host or "
        "path, or from another origin, are refused.",
    ),
]
LoginFile = Annotated[
    Path | None,
    Option(
        "--login",
        metavar="FILE",
        help="With --planning-only: log people in by OpenID Connect, with what the section [auth] "
        "of this TOML file says (cookie_secret, client_id, client_secret, server_metadata_url).",
    ),
]
NoLogin = Annotated[
    bool,
    Option(
        "--no-login",
        help="With --planning-only: let in everybody who reaches the address; browsers are told "
        "apart by a cookie.",
    ),
]
Host = Annotated[
    str | None,
    Option(
        metavar="NUMBER",
        help="With --planning-only: the IP address where it listens for the reverse proxy, such "
        "as 0.0.0.0 in a container.",
    ),
]


def app(
    data_folder: DataFolders = None,
    port: Port = 8501,
    no_browser: NoBrowser = False,
    planning_only: PlanningOnly = False,
    address: Address = None,
    login: LoginFile = None,
    no_login: NoLogin = False,
    host: Host = None,
) -> None:
    """Open the app in the browser. Only this machine can reach it. Ctrl-C stops it.

    With --planning-only it serves a team instead, behind a reverse proxy: see docs/server.md.
    """
    if planning_only:
        serve_planning(
            port,
            host=host,
            address=address,
            login=login,
            no_login=no_login,
            data_folders=data_folder or (),
            say=say,
        )
        return
    shared = {"--address": address, "--login": login, "--no-login": no_login, "--host": host}
    for option, value in shared.items():
        if value:
            raise RpexploreError(
                f"{option} is for a shared server, and one's own app is for this machine alone; "
                "add --planning-only or leave it out."
            )

    serve(port, data_folders=data_folder or (), open_browser=not no_browser, say=say)


# ---- The app as a child process: one's own, which only this machine can reach, or a shared one.


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
                f"The app runs at {private_address} (it opens on this machine only, and only by "
                "this address). Ctrl-C stops it."
            )
            if open_browser and _has_display():
                import webbrowser

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

    Raises `RpexploreError` if the app is not installed, the folder for what it saves is not the
    user's own, the port is taken, or the app ends.
    """
    require("streamlit", "app", "the app")
    home_folder()  # refuses one that is somebody else's, before a page needs it
    _refuse_settings_of_others()
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


def _refuse_settings_of_others() -> None:
    """Raise `RpexploreError` if Streamlit would take settings that somebody else may have made.

    It reads them in the current folder: they choose fonts and styles, which pages load from
    anywhere, and what is logged.
    """
    settings = Path.cwd() / ".streamlit" / "config.toml"
    if not settings.exists() or settings.parent.parent == app_script().parent:
        return
    for path in (settings.parent, settings):
        if problem := problem_with_owner(path):
            raise RpexploreError(
                f"The app would take settings from {str(settings)!r}, and {str(path)!r} cannot be "
                f"trusted: {problem}. Start the app in another folder, or remove that file."
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
    import urllib.request

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
                "A release that is charged already is finished first; without one, the app ends "
                "within half a minute. Ctrl-C again ends it at once; a release can then be resumed."
            )
            child.wait()
    except KeyboardInterrupt:
        child.kill()
        child.wait()


# ---- The planning server as a child process: its options, checked, and what Streamlit is told.


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
