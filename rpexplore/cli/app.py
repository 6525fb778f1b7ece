"""The verb that serves the app: app."""

from pathlib import Path
from typing import Annotated

from rpexplore.cli.commands import Option
from rpexplore.cli.console import say
from rpexplore.errors import RpexploreError

# It imports what it needs itself, so that no other verb waits for it.

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
        from rpexplore.cli.planning_server import serve_planning

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
    from rpexplore.cli.webapp import serve

    shared = {"--address": address, "--login": login, "--no-login": no_login, "--host": host}
    for option, value in shared.items():
        if value:
            raise RpexploreError(
                f"{option} is for a shared server, and one's own app is for this machine alone; "
                "add --planning-only or leave it out."
            )

    serve(port, data_folders=data_folder or (), open_browser=not no_browser, say=say)
