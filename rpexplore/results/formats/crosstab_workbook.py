"""Crosstabs as an Excel workbook: contents, notes, and a sheet a table, as the page shows them.

Figures are numbers: flags and brackets are their number formats, so that a spreadsheet can go on
with them. Everything else is text: nothing in a codebook can become a formula.
"""

import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rpexplore.common.files import write_whole
from rpexplore.domain.readings import FLAGS
from rpexplore.planning.part_plan import Z_95
from rpexplore.results.formats.crosstab import Crosstab
from rpexplore.results.formats.crosstab_html import decimals_of, has_margins_beside, legend
from rpexplore.results.formats.export import Export
from rpexplore.results.formats.languages import Language, Sentence
from rpexplore.results.formats.readers_page import headed_tables
from rpexplore.results.publication import Publication, sampling_of
from rpexplore.results.workbook import SHEET_ROWS, check_size, sheet_name
from rpexplore.results.workbook_file import too_long

if TYPE_CHECKING:
    from xlsxwriter.format import Format
    from xlsxwriter.workbook import Workbook
    from xlsxwriter.worksheet import Worksheet

_GREY, _RULE = "#5b6775", "#7f8b99"
_MOST_ROWS = SHEET_ROWS // 2 - 100  # figures, and their margins below them
_WIDTH, _LABEL_WIDTH = 14, 26  # of columns, in characters


@dataclass(frozen=True)
class Headed:
    """A crosstab and what it is called, in a list and in a heading."""

    title: str
    heading: str
    table: Crosstab


def write_crosstabs(export: Export, output: Path) -> None:
    """Write all tables of an export as crosstabs to a file, replacing what was there.

    Raises:
        ReleaseError: For more tables or cells than a workbook is good for.
        OSError: If the file cannot be written.
    """
    items = export.results.items
    check_size(len(items), sum(item.n_rows for item in items))
    publication = Publication(sampling=sampling_of(export.results))
    tables = [Headed(*one) for one in headed_tables(export, publication.sampling)]
    content = _content(tables, _notes(export, publication), publication, export)
    write_whole(output, content)


def shown_workbook(folder: Path, table: Crosstab, heading: str, publication: Publication) -> bytes:
    """A workbook of one crosstab of a folder of results, and its notes, for a download."""
    export, headed = Export(folder), Headed(heading, heading, table)
    notes = _notes(export, publication)
    return _content([headed], notes, publication, export, is_listed=False)


def _notes(export: Export, publication: Publication) -> list[tuple[str, str]]:
    """Terms and what there is to say of them."""
    language, left_empty = export.language, publication.leave_empty
    limits = ", ".join(
        language.text("first_letter", letter=letter, limit=language.rounded(100 * limit))
        for letter, limit in FLAGS
    )
    quality = language.text("quality_note", limits=limits)
    if publication.sampling is not None:
        sampling = Sentence("sampling", {"design": publication.sampling.design})
        quality = f"{quality} {language.say(sampling)}"
    uncertain = language.text(
        "not_publishable_empty" if left_empty else "not_publishable_grey",
        limit=language.rounded(100 * publication.cv_limit),
    )
    manifest = language.text("manifest", sha256=export.privacy["manifest_sha256"])
    notes = {
        "figures": " ".join(export.noise_sentences),
        "quality_term": quality,
        "not_publishable": uncertain,
        "adding_up_term": export.adding_up,
        "guarantee_term": export.guarantee,
        "source": manifest,
    }
    return [(language.text(term), sentence) for term, sentence in notes.items()]


def _content(
    tables: Sequence[Headed],
    notes: Iterable[tuple[str, str]],
    publication: Publication,
    export: Export,
    *,
    is_listed: bool = True,
) -> bytes:
    """The workbook: XlsxWriter never sees a disk, on which it would take a full one for a bug.

    is_listed: whether there are contents, which a single table needs not
    """
    from xlsxwriter import Workbook  # which no other verb waits for

    content = io.BytesIO()
    workbook = Workbook(content, {"in_memory": True, "strings_to_formulas": False})
    bold, wrapped = workbook.add_format({"bold": True, "valign": "top"}), {"text_wrap": True}
    text_look = workbook.add_format(wrapped)
    names = [sheet_name(f"{number} {one.title}") for number, one in enumerate(tables, start=1)]
    text, title = export.language.text, export.title
    if is_listed:
        contents = workbook.add_worksheet(text("contents"))
        contents.set_column(0, 0, 60)
        write_text(contents, 0, 0, title, bold)
        contents.write_url(1, 0, f"internal:'{text('notes')}'!A1", string=text("how_to_read_short"))
        for row, (name, one) in enumerate(zip(names, tables, strict=True), start=3):
            contents.write_url(row, 0, f"internal:'{name}'!A1", string=one.heading[:255])
    looks = _Looks(workbook)
    for name, one in zip(names, tables, strict=True):
        _write_table(workbook.add_worksheet(name), looks, one, publication, export.language)
    sheet = workbook.add_worksheet(text("notes"))
    sheet.set_column(0, 0, 18)
    sheet.set_column(1, 1, 100)
    for row, (term, sentence) in enumerate(notes):
        write_text(sheet, row, 0, term, bold)
        write_text(sheet, row, 1, sentence, text_look)
    workbook.close()
    return content.getvalue()


class _Looks:
    """The formats of a workbook, each made once."""

    def __init__(self, workbook: "Workbook") -> None:
        self._add: Callable[[dict[str, Any]], Format] = workbook.add_format
        self._made: dict[tuple[tuple[str, Any], ...], Format] = {}

    def of(self, **facts: Any) -> "Format":
        key = tuple(sorted(facts.items()))
        if key not in self._made:
            self._made[key] = self._add(facts)
        return self._made[key]

    def figure(
        self, flag: str, decimals: int, *, is_publishable: bool, is_total: bool, is_last: bool
    ) -> "Format":
        """A number with its flag behind it, and grey in brackets if it is not publishable."""
        pattern = "#,##0" + ("." + "0" * decimals if decimals else "")
        behind = f'" {flag}"' if flag else ""
        positive, negative = f"{pattern}{behind}", f"−{pattern}{behind}"
        facts: dict[str, Any] = {"bold": is_total, "align": "right"}
        if not is_publishable:
            positive, negative = f"({pattern}){behind}", f"(−{pattern}){behind}"
            facts["font_color"] = _GREY
        if is_last:
            facts |= {"top": 1, "top_color": _RULE}
        return self.of(num_format=f"{positive};{negative}", **facts)


def _write_table(
    sheet: "Worksheet",
    looks: _Looks,
    headed: Headed,
    publication: Publication,
    language: Language,
) -> None:
    """The heading, the crosstab, the sentences below it, and its margins where they differ."""
    table = headed.table.first(_MOST_ROWS)
    write_text(sheet, 0, 0, headed.heading, looks.of(bold=True))
    has_codes = [
        any(codes[place] for codes in table.rows.codes) for place in range(len(table.rows.names))
    ]
    n_heads = max(len(has_codes) + sum(has_codes), 1)
    sheet.set_column(0, n_heads - 1, _LABEL_WIDTH)
    sheet.set_column(n_heads, n_heads + table.values.shape[1], _WIDTH)
    row = _write_heads(sheet, looks, table, has_codes, language, 2)
    sheet.freeze_panes(row, n_heads)
    flags, doubtful = table.flags, table.doubtful(publication)
    decimals = 1 if table.unit else decimals_of(table)
    n_rows, n_columns = len(table.rows), len(table.columns)
    for place, figures in enumerate(table.values):
        is_last = place >= n_rows
        _write_row_head(sheet, looks, table, has_codes, language, place, row)
        for column, value in enumerate(figures.tolist()):
            if table.is_small(place, column):
                look = looks.of(font_color=_GREY, align="right")
                words = language.text("fewer_than", n=table.fewer_than)
                write_text(sheet, row, n_heads + column, words, look)
                continue
            is_doubtful = bool(doubtful[place, column])
            if np.isnan(value) or (publication.leave_empty and is_doubtful):
                continue
            look = looks.figure(
                str(flags[place, column]),
                decimals,
                is_publishable=not is_doubtful,
                is_total=is_last or column >= n_columns,
                is_last=is_last,
            )
            sheet.write_number(row, n_heads + column, value, look)
        row += 1
    row += 1
    for sentence in legend(table, publication, elsewhere="below_for_figures", language=language):
        write_text(sheet, row, 0, sentence, looks.of(font_color=_GREY))
        row += 1
    if not has_margins_beside(table):
        return
    write_text(sheet, row + 1, 0, language.text("margins_head"), looks.of(bold=True))
    row = _write_heads(sheet, looks, table, has_codes, language, row + 3)
    look = looks.of(num_format="#,##0.00")
    for place, errors in enumerate(table.errors):
        _write_row_head(sheet, looks, table, has_codes, language, place, row)
        for column, error in enumerate(errors.tolist()):
            is_hidden = publication.leave_empty and doubtful[place, column]
            if not (np.isnan(error) or is_hidden):
                sheet.write_number(row, n_heads + column, Z_95 * error, look)
        row += 1


def _write_heads(
    sheet: "Worksheet",
    looks: _Looks,
    table: Crosstab,
    has_codes: Sequence[bool],
    language: Language,
    row: int,
) -> int:
    """The names of attributes and the labels of columns, from a row on; the row behind them."""
    left = looks.of(bold=True, bottom=1, bottom_color=_RULE)
    right = looks.of(
        bold=True, bottom=1, bottom_color=_RULE, align="right", text_wrap=True, valign="top"
    )
    n_heads = max(len(has_codes) + sum(has_codes), 1)
    heads = [language.text("share" if table.unit else table.head)]
    if table.columns.names:
        write_text(sheet, row, n_heads, table.columns.names[0], looks.of(bold=True))
        heads = [label for (label,) in table.columns.labels]
        row += 1
    heads += [language.text("total")] if table.has_total_column else []
    column = 0
    for name, with_code in zip(table.rows.names, has_codes, strict=True):
        for text in [name, language.text("code", name=name)][: 1 + with_code]:
            write_text(sheet, row, column, text, left)
            column += 1
    for column, head in enumerate(heads, start=n_heads):
        write_text(sheet, row, column, head, right)
    return row + 1


def _write_row_head(
    sheet: "Worksheet",
    looks: _Looks,
    table: Crosstab,
    has_codes: Sequence[bool],
    language: Language,
    place: int,
    row: int,
) -> None:
    """The labels of a row, each with its code behind it where there are codes."""
    if place >= len(table.rows) or not table.rows.names:
        is_total = place >= len(table.rows)
        text = language.text("total" if is_total else "all")
        write_text(sheet, row, 0, text, looks.of(bold=is_total))
        return
    column = 0
    for label, code, with_code in zip(
        table.rows.labels[place], table.rows.codes[place], has_codes, strict=True
    ):
        for text in [label, code][: 1 + with_code]:
            write_text(sheet, row, column, text)
            column += 1


def write_text(
    sheet: "Worksheet", row: int, column: int, text: str, look: "Format | None" = None
) -> None:
    """Raises `ReleaseError` for what the library leaves out, a text that is too long."""
    if sheet.write_string(row, column, text, look):
        raise too_long(text)
