"""The `rpexplore` command: its program and verbs."""

import typer

from rpexplore.cli import options
from rpexplore.cli.areas import areas
from rpexplore.cli.compare import compare
from rpexplore.cli.console import Verbs, heed_signals, say
from rpexplore.cli.plan_files import rewrite, show, verify
from rpexplore.cli.planning import plan, report, schema
from rpexplore.cli.postprocess import answer, combine, postprocess, workbook
from rpexplore.cli.publish import publish
from rpexplore.cli.queries import queries
from rpexplore.cli.registry import registry
from rpexplore.cli.rehearse import rehearse
from rpexplore.cli.release import ledger, release
from rpexplore.cli.synthesize import synthesize

cli = typer.Typer(
    cls=Verbs,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """What the `rpexplore` command runs."""
    heed_signals()
    cli()


@cli.callback(invoke_without_command=True)
def program(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", help="Print the version."),
) -> None:
    """Plan, inspect and run the release of noisy tables under differential privacy.

    The way: schema, plan, show, compare, rehearse, verify, report, release, answer. Only release
    reads records; combine, postprocess, synthesize, publish and workbook work on what was released.
    """
    if version:
        from importlib.metadata import version as installed

        say(f"rpexplore {installed('rpexplore')}")
    elif context.invoked_subcommand is None:
        say(context.get_help())


def app(
    data_folder: options.DataFolders = None,
    port: options.Port = 8501,
    no_browser: options.NoBrowser = False,
) -> None:
    """Open the app in the browser. Only this machine can reach it. Ctrl-C stops it."""
    from rpexplore.cli.webapp import serve

    serve(port, data_folders=data_folder or (), open_browser=not no_browser, say=say)


cli.command()(schema)
cli.command(cls=options.LossHelp)(plan)
for verb in (show, verify, rewrite, compare, rehearse, report, answer, release, ledger):
    cli.command()(verb)
for verb in (combine, postprocess, synthesize, publish, registry, workbook, app):
    cli.command()(verb)
cli.add_typer(queries, name="queries")
cli.add_typer(areas, name="areas")


if __name__ == "__main__":
    main()
