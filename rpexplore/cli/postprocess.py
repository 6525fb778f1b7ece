"""The verb that makes one set of tables of several releases."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rpexplore.cli import plan_options as options
from rpexplore.cli.console import progress, say, say_json
from rpexplore.errors import RpexploreError

if TYPE_CHECKING:
    from rpexplore.domain.domain import Domain
    from rpexplore.postprocessing.noisy_marginal import NoisyMarginal

# The verb imports what it needs itself, so that none waits for what it does not use.

_NOISY = (
    "A noisy table from elsewhere: a CSV file with a column for each of its attributes and one "
    "called count, the variance of the noise of its cells and, if known, the ρ that it spent: "
    "census.csv:25 or census.csv:25:0.02. Repeat it for more."
)
_LEDGER = "A ledger, to refuse releases that it knows to be of different records."
_NUMBER = r"[0-9][0-9.eE+/-]*"
_FILE_AND_NUMBERS = re.compile(rf"(.+?):({_NUMBER})(?::({_NUMBER}))?")

Releases = Annotated[
    list[Path],
    typer.Argument(metavar="RELEASE...", help="Folders of releases, or of combined tables."),
]
Noisy = Annotated[list[str] | None, typer.Option(metavar="FILE:VARIANCE", help=_NOISY)]
TheLedger = Annotated[Path | None, typer.Option(metavar="FILE", help=_LEDGER)]


def combine(
    releases: Releases,
    out: options.Folder,
    noisy: Noisy = None,
    ledger: TheLedger = None,
    as_json: options.AsJson = False,
) -> None:
    """Combine releases of the same records into one.

    The most accurate unbiased tables: what was measured more than once is averaged by accuracy; the
    tables are those of all releases, by single values. Costs no privacy; what the releases spent
    adds up.
    """
    from rpexplore.cli.plan_facts import amount
    from rpexplore.common.exact_numbers import exact_text
    from rpexplore.common.formatting import plural
    from rpexplore.postprocessing.combination import combined
    from rpexplore.postprocessing.combination_folder import opened, write_combined
    from rpexplore.postprocessing.estimates import Estimates
    from rpexplore.releases.atomic_folder import check_new

    check_new(out)
    with progress("Reading the releases") as tell:
        parts = [opened(folder) for folder in releases]
        first = parts[0]
        domain = first.domain if isinstance(first, Estimates) else first.plan.workload.domain
        marginals = noisy_from_options(domain, noisy or [])
        tell("Combining them", 0.0)
        found = combined(*parts, noisy=marginals, ledger=ledger)
        write_combined(found, out, progress=tell)
    spent = found.spent
    if as_json:
        say_json(
            {
                "folder": str(out),
                "label": found.label,
                "table_count": len(found.tables),
                "rho": exact_text(spent.rho),
                "rho_is_known": spent.is_known,
                "unit": spent.unit,
                "sources": [source.to_json() for source in found.sources],
            }
        )
        return
    say(found.guarantee)
    tables = plural(len(found.tables), "noisy table")
    say(f"\nThe {tables} {'is' if len(found.tables) == 1 else 'are'} in {out}")
    say(f"Spent {'' if spent.is_known else 'at least '}{amount(spent.rho)} for {spent.unit}")


def noisy_from_options(domain: "Domain", options: Sequence[str]) -> "list[NoisyMarginal]":
    """The noisy marginals of options such as census.csv:25 or census.csv:25:0.02."""
    from rpexplore.postprocessing.noisy_marginal import NoisyMarginal

    found = []
    for option in options:
        parts = _FILE_AND_NUMBERS.fullmatch(option)
        if parts is None:
            raise RpexploreError(
                f"--noisy {option!r} must be a CSV file, :, and the variance of its noise, such as "
                "census.csv:25; behind another : may stand the ρ that it spent."
            )
        file, variance, rho = parts.groups()
        found.append(NoisyMarginal.load(domain, file, variance, rho=rho))
    return found
