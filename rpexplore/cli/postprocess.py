"""The verbs that work on releases and cost no privacy: answer, combine, postprocess."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rpexplore.cli import plan_inputs
from rpexplore.cli import plan_options as options
from rpexplore.cli.console import progress, say, say_json
from rpexplore.common.formatting import rounded
from rpexplore.errors import RpexploreError

if TYPE_CHECKING:
    from rpexplore.domain.domain import Domain
    from rpexplore.postprocessing.noisy_marginal import NoisyMarginal

# Each verb imports what it needs itself, so that none waits for what it does not use.

_NOISY = (
    "A noisy table from elsewhere: a CSV file with a column for each of its attributes and one "
    "called count, the variance of the noise of its cells and, if known, the ρ that it spent: "
    "census.csv:25 or census.csv:25:0.02. Repeat it for more."
)
_GAP = (
    "With --nonnegative: how much of the squared distance to the noisy tables may be avoidable, "
    "as a share (else 0.001)."
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
Source = Annotated[
    Path, typer.Argument(metavar="RELEASE", help="The folder of a release, or of combined tables.")
]
Nonnegative = Annotated[
    bool,
    typer.Option("--nonnegative", help="No cell below 0; all tables still agree on all totals."),
]
Round = Annotated[
    bool, typer.Option("--round", help="Whole numbers; each count moves by less than 1.")
]
Gap = Annotated[float | None, typer.Option(metavar="G", help=_GAP)]


def answer(
    release_folder: options.ReleaseFolder,
    chosen: options.Chosen = None,
    as_json: options.AsJson = False,
) -> None:
    """Answer a question from a release, with its margin.

    Say which values count: age=18..24 sex=Female asks how many are both. Attributes that are not
    named are summed over; some table of the release must have those that are. The standard error is
    exact, with all covariances of what is added up. Costs no privacy.
    """
    from rpexplore.cli.plan_facts import answer_facts
    from rpexplore.postprocessing.combination_folder import load_unbiased

    with progress("Reading the release"):
        release = load_unbiased(release_folder)
        query = plan_inputs.chosen_from_options(release.domain, chosen or [])
        noisy = release.answer(where=query)
    facts = answer_facts(noisy)
    if as_json:
        say_json({"question": chosen or [], **facts})
        return
    say(f"Value            {noisy.value:,.2f}")
    say(f"Standard error   {rounded(noisy.standard_error, 4, zeros=True)}")
    say(f"95 % interval    {facts['lower_95']:,.2f} to {facts['upper_95']:,.2f}")


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
    from rpexplore.postprocessing.combination import combine
    from rpexplore.postprocessing.combination_folder import load_unbiased, write_combined
    from rpexplore.postprocessing.estimates import Estimates
    from rpexplore.releases.atomic_folder import check_new

    check_new(out)
    with progress("Reading the releases") as tell:
        parts = [load_unbiased(folder) for folder in releases]
        first = parts[0]
        domain = first.domain if isinstance(first, Estimates) else first.plan.workload.domain
        marginals = noisy_from_options(domain, noisy or [])
        tell("Combining them", 0.0)
        found = combine(*parts, noisy=marginals, ledger=ledger)
        write_combined(found, out, on_progress=tell)
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


def postprocess(
    release: Source,
    out: options.Folder,
    nonnegative: Nonnegative = False,
    round_: Round = False,
    gap: Gap = None,
    as_json: options.AsJson = False,
) -> None:
    """Make nonnegative or whole tables of a release.

    The result is biased, and labelled so in every file; the unbiased answers stand beside, with
    their intervals. Costs no privacy.
    """
    from rpexplore.common.formatting import capitalised, describe_share, plural
    from rpexplore.postprocessing.combination_folder import load_unbiased
    from rpexplore.postprocessing.nonnegative import GAP
    from rpexplore.postprocessing.processed_folder import postprocess
    from rpexplore.releases.atomic_folder import check_new

    if gap is not None and not nonnegative:
        raise RpexploreError("--gap goes with --nonnegative; leave it out, or ask for both.")
    check_new(out)
    with progress("Reading the release") as tell:
        tables = postprocess(
            load_unbiased(release),
            out,
            nonnegative=nonnegative,
            rounded=round_,
            gap=GAP if gap is None else gap,
            on_progress=tell,
        )
    manifest, count = tables.manifest, len(tables.table_names)
    if as_json:
        facts = {key: manifest[key] for key in ("label", "nonnegative", "rounded", "gap", "rounds")}
        say_json({"folder": str(out), **facts, "table_count": count})
        return
    say(f"{capitalised(manifest['label'])}.")
    if nonnegative:
        avoidable = describe_share(manifest["gap"])
        say(f"Of their squared distance to the noisy tables at most {avoidable} is avoidable.")
    say(f"\nThe {plural(count, 'table')} {'is' if count == 1 else 'are'} in {out}")
