"""The `rpexplore` command: its program and verbs."""

from typing import Annotated

from rpexplore.cli.after import combine, postprocess, workbook
from rpexplore.cli.answers import answer
from rpexplore.cli.commands import Option, command
from rpexplore.cli.console import Verbs, heed_signals, open_closed_streams, say, say_help_alone
from rpexplore.cli.counts import counts
from rpexplore.cli.forecast import forecast, suggest
from rpexplore.cli.look import compare, rewrite, show, verify
from rpexplore.cli.plan import plan
from rpexplore.cli.publish import publish, registry
from rpexplore.cli.release import ledger, release
from rpexplore.cli.report import approve, report, schema
from rpexplore.cli.request_file import PlanCommand
from rpexplore.cli.serve import app
from rpexplore.cli.synthesize import simulate, synthesize
from rpexplore.common.processes import forbid_core_dumps


def main() -> None:
    """What the `rpexplore` command runs."""
    open_closed_streams()
    heed_signals()
    forbid_core_dumps()
    cli()


def program(version: Annotated[bool, Option(help="Print the version.")] = False) -> None:
    """Plan, inspect and run the release of noisy tables under differential privacy.

    The way: schema, plan, show, forecast, suggest, compare, simulate, verify, report, release,
    answer. Only release reads records; combine, postprocess, synthesize, publish and workbook work
    on what was released.
    """
    if version:
        from importlib.metadata import version as installed

        say(f"rpexplore {installed('rpexplore')}")
    else:
        say_help_alone()


cli = command(
    program,
    Verbs,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
cli.add_command(command(schema))
cli.add_command(command(plan, PlanCommand))
for verb in (
    show,
    verify,
    forecast,
    suggest,
    approve,
    rewrite,
    compare,
    simulate,
    report,
    answer,
    release,
    ledger,
):
    cli.add_command(command(verb))
for verb in (combine, postprocess, synthesize, publish, registry, workbook, app):
    cli.add_command(command(verb))
cli.add_command(counts)


if __name__ == "__main__":
    main()
