"""The verbs that hand tables to others: publish, registry."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import click

from rpexplore.cli import options
from rpexplore.cli.commands import Argument, Option
from rpexplore.cli.console import interactive, progress, refuse_existing, say_result, write_new
from rpexplore.common.text import joined
from rpexplore.errors import RpexploreError
from rpexplore.results.formats.writers import DEFAULT, NAMES

# ---- The verb that exports finished tables to the formats of others.


ExportFolder = Annotated[
    Path, Option("--out", metavar="FOLDER", help="A new folder for the export.")
]
Formats = Annotated[
    list[str] | None,
    Option(
        "--format",
        metavar="NAME",
        help=f"{NAMES[0]} (else), {joined(NAMES[1:], ' or ')}. Repeat it for more.",
    ),
]
Title = Annotated[str, Option("--title", metavar="TEXT", help="What to call the publication.")]
Publisher = Annotated[str, Option("--publisher", metavar="TEXT", help="Who publishes it.")]
License = Annotated[str, Option("--license", metavar="URL", help="The web address of its licence.")]
Agency = Annotated[
    str,
    Option("--agency", metavar="ID", help="Who maintains the structures, for sdmx: ESTAT."),
]
Period = Annotated[
    str,
    Option("--period", metavar="PERIOD", help="When the records are of, for sdmx and px: 2026-Q1."),
]
Time = Annotated[
    str,
    Option(
        "--time-period",
        metavar="A",
        help="The attribute whose values are periods, for sdmx, px and jsonstat; --period is then "
        "that of figures of all periods together.",
    ),
]
Shares = Annotated[
    str,
    Option(
        "--shares",
        metavar="[row|column|total]",
        help="Beside each figure its share of the total of its row or column in the crosstab of "
        "the table, or of all, in per cent, with its standard error; crosstabs show these instead.",
    ),
]

FewerThan = Annotated[
    int,
    Option(
        "--fewer-than",
        metavar="N",
        help="Print counts below N as “fewer than N”, such as 6; in files of data their figures "
        "are empty, and flagged. A way of presentation that protects nobody. Not for sums, means "
        "and shares.",
    ),
]

Records = Annotated[
    str,
    Option(
        "--record-noun",
        metavar="WORD",
        help="What one record stands for, in the plural and in the language of the texts: "
        "households, say; as in the plan, if left out.",
    ),
]

PageLanguage = Annotated[
    str,
    Option(
        "--language",
        metavar="[en|de|fr|es]",
        help="The language of all texts but those of the codebook, for html, crosstabs, px, sdmx, "
        "jsonstat, csvw and quality: English (else), German, French or Spanish.",
    ),
]

# The verb imports what it needs itself, so that no other waits for it.


def publish(
    release: options.AnyResults,
    out: ExportFolder,
    format: Formats = None,
    title: Title = "",
    publisher: Publisher = "",
    license: License = "",
    agency: Agency = "",
    period: Period = "",
    time_period: Time = "",
    shares: Shares = "",
    language: PageLanguage = "en",
    fewer_than: FewerThan = 0,
    record_noun: Records = "",
    escape_formulas: options.EscapeFormulas = False,
    as_json: options.AsJson = False,
) -> None:
    """Export tables for catalogues, agencies and other programs.

    Copies, whose columns have names that all formats take (sex_label), with their errors and
    intervals, and the guarantee in the words of the release, which stays as it is. Costs no
    privacy.
    """
    from rpexplore.releases.atomic_folder import check_new
    from rpexplore.results.formats.imprint import Imprint
    from rpexplore.results.formats.publishing import FORMATS, publish

    imprint = Imprint(title, publisher, license, agency, period, time_period, record_noun)
    check_new(out)
    chosen = format or [DEFAULT]
    with progress("Reading the tables") as on_progress:
        published = publish(
            release,
            out,
            formats=chosen,
            imprint=imprint,
            shares=shares,
            language=language,
            fewer_than=fewer_than,
            escape_formulas=escape_formulas,
            on_progress=on_progress,
        )
    facts = {
        "folder": str(out),
        "formats": chosen,
        "files": published.files,
        "warning": published.warning,
    }
    lines = [f"{FORMATS[name].title}: {FORMATS[name].files}." for name in chosen]
    text = "\n".join([*lines, f"The export is in {out}"])
    say_result(as_json, facts, "\n\n".join(filter(None, [text, published.warning])))


# ---- The verb that describes a release for the public registry of deployments.


RELEASE_OF_ANY_KIND = (
    "The folder of a release of any kind: of tables, own counts or tables in areas, or adaptive."
)
# Option and question of each value that only a person knows.
QUESTIONS = {
    "name": ("--name", "What is the data product called?"),
    "curators": ("--curator", "Who publishes it?"),
    "intended_use": ("--intended-use", "What are the figures for?"),
    "region": ("--region", "What region do the data describe, or whose laws apply?"),
    "sector": (
        "--sector",
        "Which sector: Technology, Healthcare, Education, Government, Energy or Finance?",
    ),
    "actors": ("--actors", "Who sees the records or the figures, and why can they be trusted?"),
    "justification": ("--justification", "How were budget and tables chosen, and why so?"),
    "authors": ("--author", "Who fills in this entry?"),
}


def _option(name: str, metavar: str = "TEXT"):
    flag, question = QUESTIONS[name]
    repeated = " Repeat it for more." if name in ("curators", "authors") else ""
    return Option(flag, metavar=metavar, help=question + repeated)


EntryOut = Annotated[
    Path, Option("--out", metavar="FILE", help="Where the entry goes: a .yaml file.")
]
ReleaseOfAnyKind = Annotated[Path, Argument(metavar="RELEASE", help=RELEASE_OF_ANY_KIND)]
Name = Annotated[str, _option("name")]
Curators = Annotated[list[str] | None, _option("curators")]
IntendedUse = Annotated[str, _option("intended_use")]
Region = Annotated[str, _option("region")]
Sector = Annotated[str, _option("sector", "NAME")]
Actors = Annotated[str, _option("actors")]
Justification = Annotated[str, _option("justification")]
Authors = Annotated[list[str] | None, _option("authors")]
Published = Annotated[
    str,
    Option("--published", metavar="YYYY-MM-DD", help="Day of publication (else of the release)."),
]
Exploration = Annotated[
    str,
    Option(
        "--exploration",
        metavar="TEXT",
        help="What was done with the records before, and whether its privacy loss was counted.",
    ),
]
Future = Annotated[
    str,
    Option("--future", metavar="TEXT", help="Plans for later releases of these records."),
]
Sources = Annotated[
    str, Option("--sources", metavar="TEXT", help="Links to the figures, papers on them.")
]

# It imports what it needs itself, so that no other verb waits for it.


def registry(
    release: ReleaseOfAnyKind,
    out: EntryOut,
    name: Name = "",
    curator: Curators = None,
    intended_use: IntendedUse = "",
    region: Region = "",
    sector: Sector = "",
    actors: Actors = "",
    justification: Justification = "",
    author: Authors = None,
    published: Published = "",
    exploration: Exploration = "",
    future: Future = "",
    sources: Sources = "",
    force: options.Force = False,
    as_json: options.AsJson = False,
) -> None:
    """Write an entry for OpenDP's registry of deployments.

    A draft of its third tier, as YAML, from the release, its plan and its report. Eight values only
    a person knows; on a terminal those that are missing are asked for. Costs no privacy.
    """
    from rpexplore.results.formats.registry_entry import RegistryAnswers, registry_text

    answers = RegistryAnswers(
        name,
        tuple(curator or ()),
        intended_use,
        region,
        sector,
        actors,
        justification,
        tuple(author or ()),
        published,
        exploration,
        future,
        sources,
    )
    refuse_existing(out, force)
    if interactive() and not as_json:
        answers = _ask_for(answers)
    if answers.missing:
        flags = ", ".join(QUESTIONS[missing][0] for missing in answers.missing)
        raise RpexploreError(
            f"An entry of the registry needs what only a person knows; give {flags}."
        )
    with progress("Reading the release"):
        text = registry_text(release, answers)
    write_new(out, text, force)
    said = (
        f"The entry is in {out}, as a draft: read it before you hand it in, and complete or "
        "correct what is not right for your release."
    )
    say_result(as_json, {"entry": str(out)}, said)


def _ask_for(answers):
    """The answers with those that somebody at the terminal has added."""
    for missing in answers.missing:
        click.echo(f"{QUESTIONS[missing][1]} ", err=True, nl=False)
        line = sys.stdin.readline().strip()
        is_list = missing in ("curators", "authors")
        answers = replace(answers, **{missing: (line,) if line and is_list else line or ()})
    return answers
