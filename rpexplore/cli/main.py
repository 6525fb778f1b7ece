"""The `rpexplore` command: its program and verbs."""

from typing import Annotated

from rpexplore.cli import options
from rpexplore.cli.approve import approve
from rpexplore.cli.areas import areas
from rpexplore.cli.commands import Option, command
from rpexplore.cli.compare import compare
from rpexplore.cli.console import Verbs, heed_signals, say, say_help_alone
from rpexplore.cli.plan_files import rewrite, show, verify
from rpexplore.cli.planning import plan, report, schema
from rpexplore.cli.postprocess import answer, combine, postprocess, workbook
from rpexplore.cli.publish import publish
from rpexplore.cli.queries import queries
from rpexplore.cli.registry import registry
from rpexplore.cli.rehearse import rehearse
from rpexplore.cli.release import ledger, release
from rpexplore.cli.synthesize import synthesize
from rpexplore.errors import RpexploreError


def main() -> None:
    """What the `rpexplore` command runs."""
    heed_signals()
    cli()


def program(version: Annotated[bool, Option(help="Print the version.")] = False) -> None:
    """Plan, inspect and run the release of noisy tables under differential privacy.

    The way: schema, plan, show, compare, rehearse, verify, report, release, answer. Only release
    reads records; combine, postprocess, synthesize, publish and workbook work on what was released.
    """
    if version:
        from importlib.metadata import version as installed

        say(f"rpexplore {installed('rpexplore')}")
    else:
        say_help_alone()


def app(
    data_folder: options.DataFolders = None,
    port: options.Port = 8501,
    no_browser: options.NoBrowser = False,
    planning_only: options.PlanningOnly = False,
    address: options.Address = None,
    login: options.LoginFile = None,
    no_login: options.NoLogin = False,
    host: options.Host = None,
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


cli = command(
    program,
    Verbs,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
cli.add_command(command(schema))
cli.add_command(command(plan, options.LossHelp))
for verb in (show, verify, approve, rewrite, compare, rehearse, report, answer, release, ledger):
    cli.add_command(command(verb))
for verb in (combine, postprocess, synthesize, publish, registry, workbook, app):
    cli.add_command(command(verb))
cli.add_command(queries)
cli.add_command(areas)


if __name__ == "__main__":
    main()
