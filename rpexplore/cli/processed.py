"""The verb that makes nonnegative or whole tables of a release."""

from pathlib import Path
from typing import Annotated

import typer

from rpexplore.cli import plan_options as options
from rpexplore.cli.console import progress, say, say_json
from rpexplore.errors import RpexploreError

# The verb imports what it needs itself, so that none waits for what it does not use.

_GAP = (
    "With --nonnegative: how much of the squared distance to the noisy tables may be avoidable, "
    "as a share (else 0.001)."
)

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
    from rpexplore.common.formatting import capitalised, plural, share_in_words
    from rpexplore.postprocessing.combination_folder import opened
    from rpexplore.postprocessing.nonnegative import GAP
    from rpexplore.postprocessing.processed_folder import processed
    from rpexplore.releases.atomic_folder import check_new

    if gap is not None and not nonnegative:
        raise RpexploreError("--gap goes with --nonnegative; leave it out, or ask for both.")
    check_new(out)
    with progress("Reading the release") as tell:
        manifest = processed(
            opened(release),
            out,
            nonnegative=nonnegative,
            rounded=round_,
            gap=GAP if gap is None else gap,
            progress=tell,
        )
    count = sum(each["path"].endswith(".csv") for each in manifest["files"])
    if as_json:
        facts = {key: manifest[key] for key in ("label", "nonnegative", "rounded", "gap", "rounds")}
        say_json({"folder": str(out), **facts, "table_count": count})
        return
    say(f"{capitalised(manifest['label'])}.")
    if nonnegative:
        avoidable = share_in_words(manifest["gap"])
        say(f"Of their squared distance to the noisy tables at most {avoidable} is avoidable.")
    say(f"\nThe {plural(count, 'table')} {'is' if count == 1 else 'are'} in {out}")
