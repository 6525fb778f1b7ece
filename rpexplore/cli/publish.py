"""The verb that exports finished tables to the formats of others."""

from pathlib import Path
from typing import Annotated

from rpexplore.cli import options
from rpexplore.cli.commands import Option
from rpexplore.cli.console import progress, say_result
from rpexplore.common.formatting import joined
from rpexplore.postprocessing.formats.writers import NAMES

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
    Option("--period", metavar="PERIOD", help="When the records are of, for sdmx: 2026, 2026-Q1."),
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
    escape_formulas: options.EscapeFormulas = False,
    as_json: options.AsJson = False,
) -> None:
    """Export tables for catalogues, agencies and other programs.

    Copies, whose columns have names that all formats take (sex_label), with their errors and
    intervals, and the guarantee in the words of the release, which stays as it is. Costs no
    privacy.
    """
    from rpexplore.postprocessing.formats.export import Imprint
    from rpexplore.postprocessing.formats.publishing import DEFAULT, FORMATS, publish
    from rpexplore.releases.atomic_folder import check_new

    imprint = Imprint(title, publisher, license, agency, period)
    check_new(out)
    chosen = format or [DEFAULT]
    with progress("Reading the tables") as on_progress:
        published = publish(
            release,
            out,
            formats=chosen,
            imprint=imprint,
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
