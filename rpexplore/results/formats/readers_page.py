"""A page for readers: all tables of a folder of results as crosstabs in one HTML file.

The file asks nobody for anything: styles and script are in it, and its policy forbids the browser
to load or to send. Every text from a codebook is escaped.
"""

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import jinja2
from markupsafe import Markup

from rpexplore import __version__
from rpexplore.common.text import joined, plural, rounded
from rpexplore.domain.result_schema import frame_of
from rpexplore.domain.survey import Sampling
from rpexplore.errors import ReleaseError
from rpexplore.releases.items import PartReader
from rpexplore.results.formats.crosstab import (
    Crosstab,
    crosstab_of_item,
    crosstab_of_rows,
    has_sides,
)
from rpexplore.results.formats.crosstab_html import CSS, html_of, legend
from rpexplore.results.formats.export import Export
from rpexplore.results.formats.item_shares import with_shares
from rpexplore.results.publication import Publication, sampling_of

MOST_TABLES = 1000
_MOST_FIGURES = 30_000  # of all tables, heads of rows among them: about 1.7 MB

# What noise is in the figures, for people who have never heard of it.
_NOISY = (
    "Every figure is a count with random noise: before publication, a random number was added to "
    "the true count or taken from it. The noise protects the people in the data. Because of it, "
    "nobody can be sure from these tables whether a given person is in the data, or what that "
    "person answered.",
    "The noise is as often upwards as downwards, and its size is known. The margin of error says "
    "how far a figure may be from the true count: for 95 of 100 figures the true count is no "
    "further away. A small count can disappear in the noise, or even come out below zero.",
)
_PROCESSED = (
    "These figures were computed from noisy counts: before publication, random numbers were added "
    "to the true counts to protect the people in the data. Then the figures were made easier to "
    "read ({label}). They are no longer right on average, least of all small ones. The stated "
    "margins are those of the noisy counts behind them."
)
_BY_MODEL = (
    "These figures are best guesses of a model, computed from noisy counts: random numbers were "
    "added to the true counts to protect the people in the data. Most guesses are nearer to the "
    "truth than the noisy counts. Their margins of error hold only as far as the model does: "
    "where a small group differs from what is usual, a guess may hide it ({label})."
)
_NOISE_ALONE = (
    "The margins of error are those of the noise alone. Errors that were in the data before, such "
    "as those of a sample or of wrong answers, come on top."
)
_SHARES_OF = {"row": "each row", "column": "each column", "total": "all"}


@dataclass(frozen=True)
class Section:
    """One table on the page.

    title    "age × sex", with the attributes as the codebook calls them
    heading  the same as words
    table    its HTML
    notes    the sentences below it
    """

    anchor: str
    title: str
    heading: str
    table: Markup
    notes: str


def readers_page(export: Export, publication: Publication | None = None) -> str:
    """The page, as a text of HTML.

    Large tables are there with their first rows and their totals, so that all tables together
    stay below 2 MB; each says how many rows it has.

    Raises:
        ReleaseError: For more than 1,000 tables.
    """
    n_tables = sum(len(part.items) for part in export.results.readers)
    if n_tables > MOST_TABLES:
        raise ReleaseError(
            f"A page for readers holds at most {MOST_TABLES:,} tables, and these are "
            f"{n_tables:,}; choose another format."
        )
    publication = publication or Publication(sampling=sampling_of(export.results))
    headed = headed_tables(export, publication.sampling)
    bounds = [item.bound for part in export.results.readers for item in part.items]
    kept = _rows_kept([(len(table.rows), _width(table)) for *_, table in headed])
    sections = [
        Section(
            f"t{number}",
            title,
            heading,
            Markup(html_of(table.first(n_rows), publication)),
            " ".join([*legend(table.first(n_rows), publication, with_quality=False), bound]),
        )
        for number, ((title, heading, table), n_rows, bound) in enumerate(
            zip(headed, kept, bounds, strict=True), start=1
        )
    ]
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("rpexplore.results"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    script = _text_of("readers.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return environment.get_template("readers.html.j2").render(
        export=export,
        policy=(
            f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
            "base-uri 'none'; form-action 'none'"
        ),
        css=Markup(_text_of("readers.css") + CSS),
        script=Markup(script),
        sections=sections,
        n_tables=plural(len(sections), "table"),
        noise=noise_sentences(export.results.readers),
        cv_limit=rounded(100 * publication.cv_limit, 3),
        left_empty=publication.leave_empty,
        version=__version__,
    )


def readers_page_bytes(folder: Path, publication: Publication | None = None) -> bytes:
    """The page of a folder of results, for a download."""
    return readers_page(Export(folder), publication).encode()


def headed_tables(export: Export, sampling: Sampling | None) -> list[tuple[str, str, Crosstab]]:
    """Each table of an export: its title, the same as words, and the crosstab.

    sampling: whose error counts beside the noise in quality flags, if it does
    """
    tables = []
    for part in export.results.readers:
        for item in part.items:
            names = [export.attribute_titles.get(name, name) for name in item.attributes]
            details = ", ".join(text for text in (item.level or "", item.note) if text)
            details = f" ({details})" if details else ""
            noun = "Figures" if item.note or part.kind == "counts" else "Records"
            heading = f"{noun} by {joined(names)}" if names else f"{noun} in all"
            table = crosstab_of_item(part, item, export.shares, sampling)
            if export.shares and not has_sides(part, item):
                rows = with_shares(part, item, item.read(), export.shares)
                table = crosstab_of_rows(frame_of(rows)).with_sampling(sampling)
            if table.unit:
                details += f", in per cent of {_SHARES_OF[export.shares]}"
            title = " × ".join(names) or "Total"
            tables.append((title + details, heading + details, table))
    return tables


def _width(table: Crosstab) -> int:
    return len(table.rows.names) + table.values.shape[1]


def _rows_kept(sizes: Sequence[tuple[int, int]]) -> list[int]:
    """How many rows of each table are shown, so that all together are not too many.

    Small tables are there in full; the largest ones share the rest of the room evenly.

    sizes: rows and columns of each
    """
    room, n_left = _MOST_FIGURES, len(sizes)
    kept = [0] * len(sizes)
    for place in sorted(range(len(sizes)), key=lambda place: sizes[place][0] * sizes[place][1]):
        n_rows, n_columns = sizes[place]
        kept[place] = min(n_rows, max(room // n_left // n_columns, 1))
        room, n_left = room - kept[place] * n_columns, n_left - 1
    return kept


def noise_sentences(parts: Sequence[PartReader]) -> list[str]:
    """What noise is in the figures of each part, once for those that are alike."""
    paragraphs: dict[str, None] = {}
    for part in parts:
        own = _NOISY
        if part.is_smooth:
            own = (_BY_MODEL.format(label=part.label),)
        elif part.is_biased:
            own = (_PROCESSED.format(label=part.label),)
        paragraphs |= dict.fromkeys([*own, _NOISE_ALONE])
    return list(paragraphs)


def _text_of(name: str) -> str:
    return (resources.files("rpexplore.results") / "templates" / name).read_text("utf-8")
