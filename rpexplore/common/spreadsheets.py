"""Spreadsheets: the rows of all sheets of an Excel workbook (.xlsx) or of OpenDocument (.ods).

Read with the standard library, a piece after another, with a limit on what a file may become: both
are zip files of XML, of which a small one can hold very much. Formulas count by their last results.
"""

import io
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any
from xml.parsers import expat

from rpexplore.common.text import data_size
from rpexplore.errors import RpexploreError

EXCEL, OPEN_DOCUMENT = "Excel workbook", "OpenDocument spreadsheet"
_KINDS = {".xlsx": EXCEL, ".xlsm": EXCEL, ".ods": OPEN_DOCUMENT}
MOST_XML = 256 * 1024**2  # bytes of all parts that are read, unpacked; one read twice counts twice
MOST_CELLS = 5_000_000  # of all sheets; an empty row counts as one
_PIECE = 1 << 16
_MOST_COLUMNS = 1000
_REFERENCE = re.compile(r"([A-Z]+)[0-9]+")
FIRST_ROWS = 50  # of a sheet, which tell what it holds
_EMPTY_RUN = 1000  # cells or rows that are repeated more often are the rest of the sheet
_MOST_REPEATED = 1 << 26  # characters of all cells beyond what is written, as cells share texts

Row = list[str]


def spreadsheet_kind(filename: str) -> str:
    """The kind of file in words, by its ending; "" for another kind."""
    return _KINDS.get(Path(filename).suffix.lower(), "")


def sheets_of(
    content: bytes,
    name: str,
    error: type[RpexploreError],
    *,
    most_bytes: int = MOST_XML,
    most_cells: int = MOST_CELLS,
    is_wanted: Callable[[list[Row]], bool] = lambda _: True,
) -> dict[str, list[Row]]:
    """The rows of each sheet as texts, by its name; empty rows behind them are left out.

    Args:
        content: What the file holds, of either kind.
        name: What errors call it.
        most_bytes, most_cells: Of all parts that are read, unpacked, and of all sheets.
        is_wanted: Of a sheet of Excel whether it is read on, by its first `FIRST_ROWS` that are not
            empty. Records, of which a sheet may have a million, need not be read to be passed over.

    Raises:
        error: For a file that is none, is damaged, or holds more than a codebook has.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            parts = _Parts(archive, name, error, most_bytes, most_cells)
            is_excel = "xl/workbook.xml" in archive.namelist()
            return _of_excel(parts, is_wanted) if is_excel else _of_open_document(parts)
    # What zipfile raises for damage, an unknown compression and a password. Not `DAMAGED`: its
    # ValueError would hide what is said of the rows.
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError):
        raise error(
            f"{name} is no usable spreadsheet; save it anew, without a password, or as CSV."
        ) from None


@dataclass
class _Parts:
    """The parts of the file, and what is counted while they are read."""

    archive: zipfile.ZipFile
    name: str
    error: type[RpexploreError]
    most_bytes: int
    most_cells: int
    n_cells: int = 0
    n_bytes: int = 0
    n_characters: int = 0

    def parse(
        self,
        part: str,
        start: Callable[[str, dict[str, str]], None],
        end: Callable[[str], None],
        text: Callable[[str], None],
        plain: "_Plain | None" = None,
    ) -> None:
        """Read a part, with names of elements and attributes without their namespaces.

        plain: elements that are taken as a whole, as long as they are written plainly
        """
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True
        parser.StartElementHandler = lambda tag, given: start(
            _local(tag), {_local(key): value for key, value in given.items()}
        )
        parser.EndElementHandler = lambda tag: end(_local(tag))
        parser.CharacterDataHandler = text
        parser.StartDoctypeDeclHandler = self._refuse_doctype
        try:
            with self.archive.open(part) as file:
                while piece := file.read(_PIECE):
                    self.n_bytes += len(piece)
                    if self.n_bytes > self.most_bytes:
                        raise self.too_large()
                    parser.Parse(piece if plain is None else plain.rest_of(piece), False)
            if plain is not None:
                parser.Parse(plain.left, False)
            parser.Parse(b"", True)
        except KeyError:
            raise self.error(f"{self.name} has no part {part!r}; save it anew.") from None
        except (expat.ExpatError, UnicodeDecodeError):
            raise self.error(f"{self.name} is damaged (in {part!r}); save it anew.") from None

    def counted(self, row: Row) -> Row:
        self.n_cells += max(len(row), 1)  # many empty rows take memory as well
        if self.n_cells > self.most_cells:
            raise self.too_large()
        self.take_characters(sum(map(len, row)))
        return row

    def take_characters(self, n: int) -> None:
        """Refuse a small file whose texts become large: a text of many cells is written once."""
        self.n_characters += n
        if self.n_characters > self.n_bytes + _MOST_REPEATED:
            raise self.error(
                f"{self.name} repeats texts to more than any codebook holds (over "
                f"{data_size(_MOST_REPEATED)}); leave out sheets that are none."
            )

    def too_large(self) -> RpexploreError:
        return self.error(
            f"{self.name} holds more than any codebook (over {self.most_cells:,} cells, or "
            f"{data_size(self.most_bytes)}); leave out sheets that are none."
        )

    def _refuse_doctype(self, *_: Any) -> None:
        raise self.error(f"{self.name} declares entities, which no spreadsheet does; save it anew.")


def _local(name: str) -> str:
    return name.rpartition(" ")[2]


def _without_end(rows: list[Row]) -> list[Row]:
    while rows and not any(rows[-1]):
        rows.pop()
    return rows


# ---- Elements that are written as Excel writes them: a million of them would be many millions of
# events of a parser, each a call, and are read by one expression in a fifth of the time. What is
# written otherwise (entities, prefixes, formulas, formatted texts), and all behind it, is parsed.


_TEXT = rb"[^<>&\x00-\x1f]*+"
_IN_T = rb"<t(?: xml:space=\"preserve\")?+>(" + _TEXT + rb")</t>"
_SHARED = re.compile(rb"<si>" + _IN_T + rb"</si>")
_CELL = re.compile(
    rb'<c r="([A-Z]++)[0-9]++"(?: s="([0-9]++)")?+(?: t="([a-zA-Z]++)")?+'
    rb"(?:/>|>(?:<v>(" + _TEXT + rb")</v>|<is>" + _IN_T + rb"</is>)?+</c>)"
)
_ROW = re.compile(
    rb"<row([^<>&/]*+)>((?>" + re.sub(rb"(?<!\\)\((?!\?)", b"(?:", _CELL.pattern) + rb")*+)</row>"
)
_CELL_OF_TEXT = re.compile(_CELL.pattern.decode())
_IN_SHEET, _IN_SHARED = re.compile(rb"<sheetData>"), re.compile(rb"<sst\b[^<>]*+>")
_NUMBER_OF_ROW = re.compile(rb'(?:^|\s)r="([0-9]{1,9})"')


@dataclass
class _Plain:
    """What takes the elements of a part that are written plainly, up to the first other one.

    opened   the element that they lie in
    element  one of them; closed: how it ends
    take     is given the matches, one after another
    left     what has been read, and neither taken nor parsed
    """

    opened: re.Pattern[bytes]
    element: re.Pattern[bytes]
    closed: bytes
    take: Callable[[re.Match[bytes]], None]
    left: bytes = b""
    is_open: bool = False
    is_over: bool = False

    def rest_of(self, piece: bytes) -> bytes:
        """What is to be parsed once the next piece is read."""
        if self.is_over:
            return piece
        self.left += piece
        before = b""
        if not self.is_open:
            found = self.opened.search(self.left)
            if found is None:
                self.is_over = len(self.left) > _LONGEST
                return self._given_away() if self.is_over else b""
            before, self.left = self.left[: found.end()], self.left[found.end() :]
            self.is_open = True
            # Texts of another encoding are the parser's, and so is a declaration of entities.
            is_utf8 = b"encoding=" not in before or b"utf-8" in before.lower()
            if not is_utf8 or b"<!" in before:
                self.is_over = True
                return before + self._given_away()
        place = 0
        while matched := self.element.match(self.left, place):
            self.take(matched)
            place = matched.end()
        self.left = self.left[place:]
        # One that has not ended yet is tried again with the next piece.
        self.is_over = self.closed in self.left or len(self.left) > _LONGEST
        return before + self._given_away() if self.is_over else before

    def _given_away(self) -> bytes:
        left, self.left = self.left, b""
        return left


_LONGEST = 1 << 20  # bytes of one element, and of what stands before all


# ---- Excel: a list of sheets, where each lies, texts that cells share, and the cells.
#
# A day is a number of days whose cell is shown as one: its format says so, and the workbook from
# when they are counted. It is read as in OpenDocument, whose files have the day itself.


_DAY_FORMATS = {*range(14, 18), 22, *range(27, 37), *range(50, 59)}  # that every program knows
# Texts, colours, languages and what negative numbers are shown by; not durations such as [h].
_NOT_OF_FORMAT = re.compile(
    r'"[^"]*"|\\.|[_*].|\[(?!(?:h+|m+|s+)\])[^\]]*\]|;.*', re.DOTALL | re.IGNORECASE
)
_FIRST_DAY, _FIRST_DAY_1904 = date(1899, 12, 30), date(1904, 1, 1)
_LEAP_DAY = 60  # 29 February 1900, which Excel counts and no calendar has
_SECONDS = 86_400


@dataclass
class _Days:
    """Which numbers of a workbook are days: those of cells with these styles."""

    styles: frozenset[str] = frozenset()
    is_from_1904: bool = False

    def text(self, number: str) -> str:
        """A number of days as 2026-01-31, or 2026-01-31T13:30:00; as a number what is no day."""
        first = _FIRST_DAY_1904 if self.is_from_1904 else _FIRST_DAY
        try:
            days = float(number)
            if not self.is_from_1904 and days < _LEAP_DAY + 1:
                if not 1 <= days < _LEAP_DAY:
                    return _number_text(number)
                first += timedelta(days=1)
            whole, seconds = divmod(round(days * _SECONDS), _SECONDS)
            day = (first + timedelta(days=whole)).isoformat()
        except (ValueError, OverflowError):
            return _number_text(number)
        return f"{day}T{timedelta(seconds=seconds)!s:0>8}" if seconds else day


def _is_of_days(code: str) -> bool:
    """Whether a format such as dd.mm.yyyy shows numbers as days, or days and times."""
    signs = {*_NOT_OF_FORMAT.sub("", code).lower()}
    return not signs.isdisjoint("dy") or ("m" in signs and signs.isdisjoint("hs[0#"))


def _styles_of_days(parts: _Parts) -> frozenset[str]:
    """The numbers of the styles of cells that show days."""
    codes: dict[str, str] = {}
    formats: list[str] = []  # of each style
    within = ""

    def start(tag: str, given: dict[str, str]) -> None:
        nonlocal within
        if tag in ("numFmts", "cellXfs"):
            within = tag
        elif (within, tag) == ("numFmts", "numFmt"):
            codes[given.get("numFmtId", "")] = given.get("formatCode", "")
        elif (within, tag) == ("cellXfs", "xf"):
            formats.append(given.get("numFmtId", ""))

    def end(tag: str) -> None:
        nonlocal within
        if tag == within:
            within = ""

    parts.parse("xl/styles.xml", start, end, lambda _: None)
    known = {str(number) for number in _DAY_FORMATS} - codes.keys()
    known |= {number for number, code in codes.items() if _is_of_days(code)}
    return frozenset(str(style) for style, number in enumerate(formats) if number in known)


def _of_excel(parts: _Parts, is_wanted: Callable[[list[Row]], bool]) -> dict[str, list[Row]]:
    places: dict[str, str] = {}  # of relationships, by their identifiers
    listed: list[tuple[str, str]] = []  # name and relationship of each sheet

    def relationship(tag: str, given: dict[str, str]) -> None:
        if tag == "Relationship":
            places[given.get("Id", "")] = given.get("Target", "")

    days = _Days()

    def sheet(tag: str, given: dict[str, str]) -> None:
        if tag == "sheet":
            listed.append((given.get("name", ""), given.get("id", "")))
        elif tag == "workbookPr":
            days.is_from_1904 = given.get("date1904") in ("1", "true")

    def nothing(_: str) -> None:
        pass

    parts.parse("xl/_rels/workbook.xml.rels", relationship, nothing, nothing)
    parts.parse("xl/workbook.xml", sheet, nothing, nothing)
    names = parts.archive.namelist()
    texts = _shared_texts(parts) if "xl/sharedStrings.xml" in names else []
    if "xl/styles.xml" in names:
        days.styles = _styles_of_days(parts)
    sheets = {}
    for name, identifier in listed:
        target = places.get(identifier, "")
        part = target.lstrip("/") if target.startswith("/") else str(PurePosixPath("xl") / target)
        if "worksheets/" in part:  # and no chart
            sheets[name] = _rows_of_excel(parts, part, texts, days, is_wanted)
    return sheets


def _shared_texts(parts: _Parts) -> list[str]:
    texts: list[str] = []
    reader = _Texts()

    def start(tag: str, _: dict[str, str]) -> None:
        if tag == "si":
            reader.begin()
        reader.start(tag)

    def end(tag: str) -> None:
        reader.end(tag)
        if tag == "si":
            texts.append(reader.joined)

    plain = _Plain(_IN_SHARED, _SHARED, b"</si>", lambda found: texts.append(found[1].decode()))
    parts.parse("xl/sharedStrings.xml", start, end, reader.text, plain)
    return texts


@dataclass
class _Texts:
    """The text of a cell or a shared one: what is in `t`, but not readings beside it (`rPh`)."""

    pieces: list[str] = field(default_factory=list)
    is_text: bool = False
    is_reading: bool = False

    def begin(self) -> None:
        self.pieces = []

    def start(self, tag: str) -> None:
        self.is_reading |= tag == "rPh"
        self.is_text = tag in ("t", "v") and not self.is_reading

    def end(self, tag: str) -> None:
        self.is_text = False
        self.is_reading &= tag != "rPh"

    def text(self, text: str) -> None:
        if self.is_text:
            self.pieces.append(text)

    @property
    def joined(self) -> str:
        return "".join(self.pieces)


class _EnoughError(Exception):
    """The first rows of a sheet tell that it is not wanted."""


def _rows_of_excel(
    parts: _Parts,
    part: str,
    texts: list[str],
    days: _Days,
    is_wanted: Callable[[list[Row]], bool],
) -> list[Row]:
    rows: list[Row] = []
    n_filled = 0
    row: Row = []
    cell: dict[str, str] = {}
    reader = _Texts()

    def fill_up_to(number: str) -> None:
        gap = _repeats(number) - 1 - len(rows)
        if 0 < gap <= _EMPTY_RUN:
            rows.extend(parts.counted([]) for _ in range(gap))

    def put(row: Row, reference: str, style: str, kind: str, text: str) -> None:
        place = _column(reference, len(row))
        if place < _MOST_COLUMNS:
            row.extend([""] * (place + 1 - len(row)))
            is_day = kind == "n" and style in days.styles
            row[place] = days.text(text) if is_day else _excel_text(text, kind, texts)

    def finish(row: Row) -> None:
        nonlocal n_filled
        rows.append(parts.counted(row))
        is_filled = any(row)
        n_filled += is_filled
        if is_filled and n_filled == FIRST_ROWS and not is_wanted(rows):
            raise _EnoughError

    def start(tag: str, given: dict[str, str]) -> None:
        nonlocal row, cell
        if tag == "row":
            fill_up_to(given.get("r", ""))
            row = []
        elif tag == "c":
            cell = given
            reader.begin()
        reader.start(tag)

    def end(tag: str) -> None:
        reader.end(tag)
        if tag == "c":
            put(row, cell.get("r", ""), cell.get("s", ""), cell.get("t", "n"), reader.joined)
        elif tag == "row":
            finish(row)

    def take(found: re.Match[bytes]) -> None:
        number = _NUMBER_OF_ROW.search(found[1])
        fill_up_to("" if number is None else number[1].decode())
        row: Row = []
        for letters, style, kind, value, text in _CELL_OF_TEXT.findall(found[2].decode()):
            if kind == "s" and _is_short(value) and _place_of(letters) == len(row):  # nearly all
                place = int(value)
                row.append(texts[place] if place < len(texts) else "")
            else:
                put(row, letters + "1", style, kind or "n", value or text)
        finish(row)

    plain = _Plain(_IN_SHEET, _ROW, b"</row>", take)
    with suppress(_EnoughError):
        parts.parse(part, start, end, reader.text, plain)
    return _without_end(rows)


def _excel_text(text: str, kind: str, texts: list[str]) -> str:
    if kind == "s":
        place = int(text) if _is_short(text) else len(texts)
        return texts[place] if place < len(texts) else ""
    if kind == "b":
        return {"1": "true", "0": "false"}.get(text, "")
    if kind == "e":  # an error, such as #N/A
        return ""
    if kind == "n":
        return _number_text(text)
    return text


def _number_text(text: str) -> str:
    """A number as a codebook has it: whole ones without a decimal point or an exponent."""
    try:
        number = float(text)
    except ValueError:
        return text
    return str(int(number)) if number.is_integer() and abs(number) < 2**53 else text


def _column(reference: str, usual: int) -> int:
    """The place of a cell in its row, from 0 on, by a reference such as AB12."""
    match = _REFERENCE.fullmatch(reference)
    return usual if match is None else _place_of(match[1])


@lru_cache(maxsize=_MOST_COLUMNS)
def _place_of(letters: str) -> int:
    place = 0
    for letter in letters[:4]:
        place = 26 * place + ord(letter) - ord("A") + 1
    return place - 1


# ---- OpenDocument: all sheets in one part.


def _of_open_document(parts: _Parts) -> dict[str, list[Row]]:
    sheets: dict[str, list[Row]] = {}
    rows: list[Row] = []
    row: Row = []
    cell: dict[str, str] = {}
    pieces: list[str] = []  # of the text of a cell, whose paragraphs are lines
    is_begun = False  # whether that has a paragraph
    depth = 0  # of paragraphs, and of notes, which are no content
    notes = 0

    def start(tag: str, given: dict[str, str]) -> None:
        nonlocal rows, row, cell, pieces, is_begun, depth, notes
        if tag == "table":
            rows = sheets.setdefault(given.get("name", ""), [])
        elif tag == "table-row":
            row, cell = [], {}
            repeats.append(_repeats(given.get("number-rows-repeated", "1")))
        elif tag in ("table-cell", "covered-table-cell"):
            cell, pieces, is_begun = given, [], False
        elif tag == "annotation":
            notes += 1
        elif tag == "p" and not notes:
            depth += 1
            if is_begun:
                pieces.append("\n")
            is_begun = True
        elif tag == "s" and depth and not notes:
            n_blanks = _repeats(given.get("c", "1"))
            parts.take_characters(n_blanks)
            pieces.append(" " * n_blanks)

    def end(tag: str) -> None:
        nonlocal pieces, depth, notes
        if tag in ("table-cell", "covered-table-cell"):
            text, pieces = "".join(pieces), []
            if cell.get("value-type") in ("float", "percentage", "currency"):
                text = _number_text(cell.get("value", text))
            elif cell.get("value-type") == "boolean":
                text = cell.get("boolean-value", text)
            elif cell.get("value-type") == "date":  # shown with two digits of the year, or fewer
                text = cell.get("date-value", text).removesuffix("T00:00:00")
            times = _repeats(cell.get("number-columns-repeated", "1"))
            if text or times <= _EMPTY_RUN:
                row.extend([text] * min(times, _MOST_COLUMNS - len(row)))
        elif tag == "table-row":
            times = repeats.pop()
            while row and not row[-1]:
                row.pop()
            if row or times <= _EMPTY_RUN:
                rows.extend(parts.counted(list(row)) for _ in range(min(times, MOST_CELLS)))
        elif tag == "annotation":
            notes -= 1
        elif tag == "p" and not notes:
            depth -= 1

    def text(piece: str) -> None:
        if depth and not notes:
            pieces.append(piece)

    repeats: list[int] = []
    parts.parse("content.xml", start, end, text)
    return {name: _without_end(of_sheet) for name, of_sheet in sheets.items()}


def _repeats(text: str) -> int:
    return int(text) if _is_short(text) else 1


def _is_short(text: str) -> bool:
    """Whether a text is a whole number of a size that a sheet can have; Python reads no longer."""
    return text.isdecimal() and len(text) < 10


def numbered(rows: list[Row]) -> Iterator[tuple[int, Row]]:
    """The rows that are not empty, each with its number as the program shows it."""
    return ((number, row) for number, row in enumerate(rows, start=1) if any(row))
