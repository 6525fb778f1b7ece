"""A page for readers: all tables of a folder of results as crosstabs in one HTML file.

The file asks nobody for anything: styles and script are in it, and its policy forbids the browser
to load or to send. Every text from a codebook is escaped.
"""

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path

import jinja2
from markupsafe import Markup

from rpexplore import __version__
from rpexplore.common.text import capitalised
from rpexplore.domain.readings import FLAGS
from rpexplore.domain.result_schema import RECORDS, Schema, frame_of
from rpexplore.domain.survey import Sampling
from rpexplore.errors import ReleaseError
from rpexplore.releases.items import Item
from rpexplore.results.formats.amount_texts import amounts_in
from rpexplore.results.formats.crosstab import (
    Crosstab,
    crosstab_of_item,
    crosstab_of_rows,
    has_sides,
)
from rpexplore.results.formats.crosstab_html import CSS, html_of, legend
from rpexplore.results.formats.export import Export
from rpexplore.results.formats.imprint import Imprint
from rpexplore.results.formats.item_shares import with_shares
from rpexplore.results.formats.small_counts import marked_crosstab
from rpexplore.results.publication import Publication, sampling_of

MOST_TABLES = 1000
_MOST_FIGURES = 30_000  # of all tables, heads of rows among them: about 1.7 MB


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
    language = export.language
    headed = headed_tables(export, publication.sampling)
    kept = _rows_kept(
        [(len(table.rows), len(table.rows.names) + table.values.shape[1]) for *_, table in headed]
    )
    sections = [
        Section(
            f"t{number}",
            title,
            heading,
            Markup(html_of(table.first(n_rows), publication, language=language)),
            " ".join(
                [
                    *legend(
                        table.first(n_rows), publication, with_quality=False, language=language
                    ),
                    bound,
                ]
            ),
        )
        for number, ((title, heading, table), n_rows, bound) in enumerate(
            zip(headed, kept, export.bounds.values(), strict=True), start=1
        )
    ]
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("rpexplore.results"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    limits = [
        language.text(
            "next_letter" if place else "first_letter",
            letter=letter,
            limit=language.rounded(100 * limit),
        )
        for place, (letter, limit) in enumerate(FLAGS)
    ]
    uncertain = "too_uncertain_empty" if publication.leave_empty else "too_uncertain_grey"
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
        n_tables=language.text("n_tables" if len(sections) > 1 else "one_table", n=len(sections)),
        noise=export.noise_sentences,
        quality=language.text("quality_letters", limits=", ".join(limits)),
        uncertain=language.text(uncertain, limit=language.rounded(100 * publication.cv_limit)),
        tables_found=language.text("tables_found", found="{found}", n=len(sections)),
        text=language.text,
        language=language,
        version=__version__,
    )


def readers_page_bytes(
    folder: Path, publication: Publication | None = None, imprint: Imprint | None = None
) -> bytes:
    """The page of a folder of results, for a download."""
    return readers_page(Export(folder, imprint or Imprint()), publication).encode()


def headed_tables(export: Export, sampling: Sampling | None) -> list[tuple[str, str, Crosstab]]:
    """Each table of an export: its title, the same as words, and the crosstab.

    sampling: whose error counts beside the noise in quality flags, if it does
    """
    tables = []
    for part in export.results.readers:
        for item in part.items:
            names = [_title_of(name, export) for name in item.attributes]
            level = "" if item.level is None else export.level(item.level)
            details = ", ".join(text for text in (level, export.note_of(item)) if text)
            details = f" ({details})" if details else ""
            are_sums = bool(amounts_in(part.domain, item))
            noun = "figures" if item.note or are_sums or part.kind == "counts" else "records"
            heading = _about(export, f"{noun}_in_all")
            if names:
                heading = _about(export, f"{noun}_by", names=export.language.joined(names))
            table = crosstab_of_item(part, item, export.shares, sampling)
            if export.shares and not has_sides(part, item):
                rows = with_shares(part, item, item.read(), export.shares)
                table = crosstab_of_rows(frame_of(rows)).with_sampling(sampling)
            if export.fewer_than:
                table = marked_crosstab(table, part, item, export.fewer_than)
            if table.unit:
                details += f", {export.language.text(f'per_cent_of_{export.shares}')}"
            table = replace(table, head="head_value") if are_sums else table
            if part.kind == "counts":
                table = _with_units(table, item, export)
            title = " × ".join(names) or export.language.text("total")
            tables.append((title + details, heading + details, _labelled(table, export)))
    return tables


def _with_units(table: Crosstab, item: Item, export: Export) -> Crosstab:
    """Own counts, with the unit behind the names of those that count no records."""
    rows = item.read()
    schema = Schema.of(rows)
    if not schema.has("unit"):
        return table
    units = rows[schema.name("unit")].to_pylist()
    labels = tuple(
        (name if unit == RECORDS else f"{name} ({export.unit_of(unit)})",)
        for (name,), unit in zip(table.rows.labels, units, strict=True)
    )
    return replace(table, rows=replace(table.rows, labels=labels), head="head_value")


def _about(export: Export, key: str, **given: str) -> str:
    """A text, which begins with the word that records have where it begins with the usual one."""
    text, usual = export.language.text(key, **given), export.language.text("unit_records")
    if not text.lower().startswith(usual.lower()):
        return text
    return f"{capitalised(export.records)}{text[len(usual) :]}"


def _labelled(table: Crosstab, export: Export) -> Crosstab:
    """The same with attributes as titles call them, and labels in the language of the export."""
    sides = {}
    for place, side in (("rows", table.rows), ("columns", table.columns)):
        labels = side.labels
        if not export.language.is_english:
            labels = tuple(
                tuple(
                    export.label(name, label) for name, label in zip(side.names, row, strict=True)
                )
                for row in side.labels
            )
        names = tuple(_title_of(name, export) for name in side.names)
        sides[place] = replace(side, names=names, labels=labels)
    return replace(table, **sides)


def _title_of(attribute: str, export: Export) -> str:
    return export.head(export.attribute_titles.get(attribute, attribute))


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


def _text_of(name: str) -> str:
    return (resources.files("rpexplore.results") / "templates" / name).read_text("utf-8")
