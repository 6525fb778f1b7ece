"""An Excel workbook as a file (ECMA-376): sheets of tables, written as bytes many rows at a time.

Cells have no references of their own, which the format leaves out where they follow one another.
Numbers have all their digits, as text and not as Excel shows them; texts are in the table of shared
strings, each once. Nothing is a formula.
"""

import re
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast
from xml.sax.saxutils import escape, quoteattr

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from rpexplore.errors import ReleaseError
from rpexplore.releases.table_cells import ByteField, byte_items, joined_bytes

# pyarrow.compute makes its functions when it is imported, so pyright cannot know them.
# pyright: reportAttributeAccessIssue=false

_LONGEST_TEXT = 32_767  # of a cell, of Excel
_ROWS = 1 << 12  # laid out together
_LEVEL = 1  # of compression: the next takes twice the time for a tenth of the size
# What XML cannot hold, and what Excel would read as such a character.
_UNWRITABLE = re.compile(r"_(?=x[0-9A-Fa-f]{4}_)|[\x00-\x08\x0b-\x1f\ufffe\uffff]")
_HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_TYPES = "application/vnd.openxmlformats-officedocument.spreadsheetml"
_PLAIN = "PLAIN"

BOLD, WRAPPED, LINK = "bold", "wrapped", "link"
"""Looks of single cells."""
_LOOKS = {
    _PLAIN: '<xf numFmtId="0" fontId="0" fillId="0" borderId="0" xfId="0"/>',
    BOLD: '<xf numFmtId="0" fontId="1" fillId="0" borderId="0" xfId="0" applyFont="1" '
    'applyAlignment="1"><alignment vertical="top"/></xf>',
    WRAPPED: '<xf numFmtId="0" fontId="0" fillId="0" borderId="0" xfId="0" applyAlignment="1">'
    '<alignment wrapText="1"/></xf>',
    LINK: '<xf numFmtId="0" fontId="2" fillId="0" borderId="0" xfId="0" applyFont="1"/>',
}
_FONTS = (
    '<fonts count="3"><font><sz val="11"/><name val="Calibri"/></font>'
    '<font><b/><sz val="11"/><name val="Calibri"/></font>'
    '<font><u/><sz val="11"/><color rgb="FF1D4F8F"/><name val="Calibri"/></font></fonts>'
)
_FIRST_PATTERN = 164  # lower numbers are Excel's own patterns


@dataclass(frozen=True)
class SheetCell:
    """A text or a number; with a name of a sheet, a link to it."""

    content: str | int
    look: str = _PLAIN
    sheet: str = ""


class WorkbookFile:
    """A workbook under way; sheets are written one after another, in any order.

    names: of the sheets, in the order in which they are shown
    patterns: how numbers are shown, each once
    """

    def __init__(self, path: Path, names: Sequence[str], patterns: Sequence[str]) -> None:
        self._names, self._patterns = names, patterns
        self._styles = {look: style for style, look in enumerate([*_LOOKS, *patterns])}
        self._texts: dict[str, int] = {}
        self._zip = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=_LEVEL)

    def __enter__(self) -> "WorkbookFile":
        return self

    def __exit__(self, *stopped: object) -> None:
        # Closed on a full disk as well, where Python would try again when it forgets the file.
        with closing(self._zip):
            if stopped[0] is None:
                self._write_rest()

    def write_cells(
        self, number: int, rows: Iterable[Sequence[SheetCell]], widths: Sequence[int]
    ) -> None:
        """Write the sheet at a place in the list, of single cells; widths in characters."""
        lines, links = [], []
        for row, cells in enumerate(rows, start=1):
            line = []
            for column, cell in enumerate(cells):
                line.append(self._cell(cell))
                if cell.sheet:
                    location = quoteattr(f"'{cell.sheet}'!A1")
                    links.append(f'<hyperlink ref="{_letters(column)}{row}" location={location}/>')
            lines.append(f"<row>{''.join(line)}</row>")
        after = f"<hyperlinks>{''.join(links)}</hyperlinks>" if links else ""
        with self._zip.open(_sheet_path(number), "w") as file:
            file.write(_begin(widths).encode())
            file.write("".join(lines).encode())
            file.write(f"</sheetData>{after}</worksheet>".encode())

    def write_table(
        self, number: int, columns: Mapping[str, "pd.Series"], looks: Sequence[str], width: int
    ) -> None:
        """Write the sheet at a place in the list: heads, which stay, and a row for each row.

        columns: by their heads: numbers, empty where they are NaN, or texts
        looks: the pattern of each column; "" for texts
        """
        head = "".join(self._cell(SheetCell(name)) for name in columns)
        fields = [
            self._numbers(column.to_numpy(np.float64), self._styles[look])
            if look
            else self._coded(column)
            for column, look in zip(columns.values(), looks, strict=True)
        ]
        n_rows = max(map(len, columns.values()), default=0)
        with self._zip.open(_sheet_path(number), "w") as opened:
            file = cast(BinaryIO, opened)
            file.write(_begin([width] * len(columns), is_frozen=True).encode())
            file.write(f"<row>{head}</row>".encode())
            for start in range(0, n_rows, _ROWS):
                stop = min(start + _ROWS, n_rows)
                row: list[ByteField] = [b"<row>"]
                for field in fields:
                    row += field(start, stop)
                file.write(joined_bytes([*row, b"</row>"], stop - start))
            file.write(b"</sheetData></worksheet>")

    def _numbers(self, numbers: np.ndarray, style: int) -> Any:
        begin, end = f'<c s="{style}"><v>', "</v></c>"
        texts = pa.array(numbers, from_pandas=True)
        if len(numbers) and np.all(numbers == numbers[0]):  # as most errors of a table are
            return lambda start, stop: [f"{begin}{float(numbers[0])!r}{end}".encode()]

        def fields(start: int, stop: int) -> list[ByteField]:
            part = texts[start:stop].cast(pa.string())
            if not part.null_count:
                return [begin.encode(), byte_items(part), end.encode()]
            cells = pc.binary_join_element_wise(begin, part, end, "")
            return [byte_items(cells.fill_null(f'<c s="{style}"/>'))]

        return fields

    def _coded(self, column: "pd.Series") -> Any:
        """A column of texts: cells with their numbers among the shared strings."""
        if isinstance(column.dtype, pd.CategoricalDtype):
            codes, texts = column.cat.codes.to_numpy(), column.cat.categories.tolist()
        else:
            codes, distinct = pd.factorize(column)
            texts = distinct.tolist()
        cells = byte_items(pa.array([self._cell(SheetCell(str(text))) for text in texts]))
        return lambda start, stop: [cells.take(codes[start:stop])]

    def _cell(self, cell: SheetCell) -> str:
        style = self._styles[cell.look]
        look = f' s="{style}"' if style else ""
        if isinstance(cell.content, int):
            return f"<c{look}><v>{cell.content}</v></c>"
        if len(cell.content) > _LONGEST_TEXT:
            raise too_long(cell.content)
        number = self._texts.setdefault(cell.content, len(self._texts))
        return f'<c{look} t="s"><v>{number}</v></c>'

    def _write_rest(self) -> None:
        """The shared strings, the looks, and what lists all parts of the file."""
        strings = "".join(
            f'<si><t xml:space="preserve">{_written(text)}</t></si>' for text in self._texts
        )
        patterns = "".join(
            f'<numFmt numFmtId="{number}" formatCode={quoteattr(pattern)}/>'
            for number, pattern in enumerate(self._patterns, start=_FIRST_PATTERN)
        )
        looks = "".join(_LOOKS.values()) + "".join(
            f'<xf numFmtId="{number}" fontId="0" fillId="0" borderId="0" xfId="0" '
            'applyNumberFormat="1"/>'
            for number in range(_FIRST_PATTERN, _FIRST_PATTERN + len(self._patterns))
        )
        plain = '<xf numFmtId="0" fontId="0" fillId="0" borderId="0"'
        styles = (
            f'<numFmts count="{len(self._patterns)}">{patterns}</numFmts>{_FONTS}'
            '<fills count="2"><fill><patternFill patternType="none"/></fill>'
            '<fill><patternFill patternType="gray125"/></fill></fills>'
            '<borders count="1"><border><left/><right/><top/><bottom/><diagonal/></border>'
            f'</borders><cellStyleXfs count="1">{plain}/></cellStyleXfs>'
            f'<cellXfs count="{len(self._styles)}">{looks}</cellXfs><cellStyles count="1">'
            '<cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles>'
        )
        numbers = range(1, len(self._names) + 1)
        sheets = "".join(
            f'<sheet name={quoteattr(name)} sheetId="{number}" r:id="rId{number}"/>'
            for number, name in zip(numbers, self._names, strict=True)
        )
        parts = {f"worksheets/sheet{number}.xml": "worksheet" for number in numbers}
        parts |= {"styles.xml": "styles", "sharedStrings.xml": "sharedStrings"}
        relations = "".join(
            f'<Relationship Id="rId{number}" Type="{_RELATIONS}/{kind}" Target="{path}"/>'
            for number, (path, kind) in enumerate(parts.items(), start=1)
        )
        types = "".join(
            f'<Override PartName="/xl/{path}" ContentType="{_TYPES}.{kind}+xml"/>'
            for path, kind in {"workbook.xml": "sheet.main", **parts}.items()
        )
        package = f'xmlns="{_PACKAGE}/relationships"'
        files = {
            "xl/sharedStrings.xml": f'<sst xmlns="{_MAIN}">{strings}</sst>',
            "xl/styles.xml": f'<styleSheet xmlns="{_MAIN}">{styles}</styleSheet>',
            "xl/workbook.xml": f'<workbook xmlns="{_MAIN}" xmlns:r="{_RELATIONS}">'
            f"<sheets>{sheets}</sheets></workbook>",
            "xl/_rels/workbook.xml.rels": f"<Relationships {package}>{relations}</Relationships>",
            "_rels/.rels": f'<Relationships {package}><Relationship Id="rId1" '
            f'Type="{_RELATIONS}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
            "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}/content-types"><Default '
            f'Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships'
            f'+xml"/><Default Extension="xml" ContentType="application/xml"/>{types}</Types>',
        }
        for path, text in files.items():
            self._zip.writestr(path, f"{_HEAD}{text}")


def too_long(text: str) -> ReleaseError:
    """What to raise for a text that no cell of a workbook holds."""
    return ReleaseError(
        f"A cell of a workbook cannot hold {text[:60]!r}…; shorten the label in the codebook, or "
        "use the CSV files."
    )


def _sheet_path(number: int) -> str:
    return f"xl/worksheets/sheet{number + 1}.xml"


def _begin(widths: Sequence[int], *, is_frozen: bool = False) -> str:
    """A sheet up to its rows."""
    pane = ""
    if is_frozen:
        pane = '<pane ySplit="1" topLeftCell="A2" activePane="bottomLeft" state="frozen"/>'
    columns = "".join(
        f'<col min="{number}" max="{number}" width="{width}" customWidth="1"/>'
        for number, width in enumerate(widths, start=1)
    )
    return (
        f'{_HEAD}<worksheet xmlns="{_MAIN}"><sheetViews><sheetView workbookViewId="0">{pane}'
        f"</sheetView></sheetViews><cols>{columns}</cols><sheetData>"
    )


def _letters(column: int) -> str:
    """What a spreadsheet calls a column: A, B, …, Z, AA, …"""
    letters = ""
    column += 1
    while column:
        column, letter = divmod(column - 1, 26)
        letters = chr(ord("A") + letter) + letters
    return letters


def _written(text: str) -> str:
    """A text as XML has it: `_x0007_` for what cannot be in it, and for what looks like this."""
    return escape(_UNWRITABLE.sub(lambda found: f"_x{ord(found[0]):04X}_", text))
