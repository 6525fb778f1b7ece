"""Sheets of Excel: what is written plainly is read as the parser reads it."""

import io
import re
import zipfile

import openpyxl
import pytest
from openpyxl.utils.datetime import CALENDAR_MAC_1904

from rpexplore.common.spreadsheets import sheets_of
from rpexplore.errors import DomainError

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
ROWS = [
    '<row r="1"><c r="A1" t="s"><v>0</v></c><c r="B1" s="3" t="s"><v>1</v></c></row>',
    '<row r="2" spans="1:2"><c r="A2"><v>1.0</v></c><c r="B2" t="inlineStr"><is><t>x</t></is></c>'
    "</row>",
    '<row r="5"><c r="C5" t="b"><v>1</v></c></row>',
    '<row r="6"><c r="A6" s="1"/><c r="B6" t="s"><v>2</v></c></row>',
    '<row r="7"><c r="A7" t="str"><f>B6&amp;"x"</f><v>y</v></c></row>',
    '<row r="8"><c r="A8" t="inlineStr"><is><t xml:space="preserve"> é </t></is></c></row>',
    '<row r="9"><c r="A9" t="e"><v>#N/A</v></c><c r="D9" t="s"><v>9</v></c><c><v>7</v></c></row>',
    '<row r="10"><c r="A10" s="3"><v>46053</v></c><c r="B10" s="2"><v>46053</v></c></row>',
]
READ = [
    ["attribute", "a & b"], ["1", "x"], [], [], ["", "", "true"], ["", " c"], ["y"], [" é "],
    ["", "", "", "", "7"], ["2026-01-31", "46053"],
]  # fmt: skip
FORMATS = "".join(f'<xf numFmtId="{number}"/>' for number in (0, 0, 2, 14))  # the last of days
SHARED = "<si><t>attribute</t></si><si><t>a &amp; b</t></si><si><t xml:space='preserve'> c</t></si>"


def book(rows: list[str], shared: str = SHARED, head: str = "<?xml version='1.0'?>") -> bytes:
    relations = '<Relationships><Relationship Id="r1" Target="worksheets/s.xml"/></Relationships>'
    parts = {
        "xl/_rels/workbook.xml.rels": relations,
        "xl/workbook.xml": '<workbook><sheets><sheet name="one" id="r1"/></sheets></workbook>',
        "xl/styles.xml": f"<styleSheet><cellXfs>{FORMATS}</cellXfs></styleSheet>",
        "xl/sharedStrings.xml": f'<sst xmlns="{MAIN}" count="3">{shared}</sst>',
        "xl/worksheets/s.xml": f'{head}<worksheet xmlns="{MAIN}"><dimension ref="A1"/><sheetData>'
        f"{''.join(rows)}</sheetData><pageMargins/></worksheet>",
    }
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, text in parts.items():
            archive.writestr(name, text.encode("utf-8", "surrogateescape"))
    return content.getvalue()


def read(content: bytes, **options) -> list[list[str]]:
    return sheets_of(content, "b.xlsx", DomainError, **options)["one"]


@pytest.mark.parametrize("first_parsed", range(len(ROWS) + 1))
def test_rows_are_the_same_from_whichever_on_they_are_parsed(first_parsed):
    """A comment ends what is taken plainly; so does a blank that Excel does not write."""
    rows = [*ROWS[:first_parsed], "<!-- parsed -->", *ROWS[first_parsed:]]
    assert read(book(rows)) == READ
    rows = [re.sub("<c ", "<c  ", row) if n >= first_parsed else row for n, row in enumerate(ROWS)]
    assert read(book(rows)) == READ


def test_rows_that_lie_in_several_pieces_are_whole():
    many = [
        f'<row r="{n}"><c r="A{n}" t="inlineStr"><is><t>{"v" * (n % 97)}{n}</t></is></c></row>'
        for n in range(1, 5001)
    ]
    assert read(book(many)) == [[f"{'v' * (n % 97)}{n}"] for n in range(1, 5001)]
    long = f'<row r="1"><c r="A1" t="inlineStr"><is><t>{"w" * 2_000_000}</t></is></c></row>'
    assert read(book([long]))[0] == ["w" * 2_000_000]


def test_plain_rows_are_counted_refused_and_passed_over_as_others():
    many = [f'<row r="{n}"><c r="A{n}"><v>{n}</v></c></row>' for n in range(1, 200)]
    with pytest.raises(DomainError, match="holds more than any codebook"):
        read(book(many), most_cells=100)
    assert len(read(book(many), is_wanted=lambda rows: False)) == 50
    broken = '<row r="1"><c r="A1" t="str"><v>\udcff</v></c></row>'
    with pytest.raises(DomainError, match="is damaged"):
        read(book([broken]))
    with pytest.raises(DomainError, match="is damaged"):
        read(book(['<row r="1"><c r="A1"><v>1</c></row>']))
    doctype = "<?xml version='1.0'?><!DOCTYPE x [<!ENTITY e 'e'>]>"
    with pytest.raises(DomainError, match="declares entities"):
        read(book(ROWS, head=doctype))
    latin = "<?xml version='1.0' encoding='iso-8859-1'?>"
    assert read(book(['<row r="1"><c r="A1" t="str"><v>\udce9</v></c></row>'], head=latin)) == [
        ["é"]
    ]


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("dd.mm.yy", "2026-01-31"), ("mm-dd-yy", "2026-01-31"), ("mmm", "2026-01-31"),
        ('[$-407]d. mmmm yyyy" at "h:mm', "2026-01-31"), ("General", "46053"), ("mm:ss", "46053"),
        ('0" days"', "46053"), ("[h]:mm", "46053"), ("0_d", "46053"), ("#,##0;[Red]d", "46053"),
    ],
)  # fmt: skip
def test_a_number_is_a_day_where_excel_shows_one(code, text):
    file = openpyxl.Workbook()
    file.active.title = "one"
    file.active.append([46053])
    file.active["A1"].number_format = code
    content = io.BytesIO()
    file.save(content)
    assert read(content.getvalue()) == [[text]]


@pytest.mark.parametrize(
    ("is_from_1904", "number", "text"),
    [
        (False, 46053.5625, "2026-01-31T13:30:00"), (True, 44591, "2026-01-31"),
        (False, 61, "1900-03-01"), (False, 60, "60"), (False, 59, "1900-02-28"),
        (False, 1, "1900-01-01"), (False, 0, "0"), (False, -1, "-1"), (False, 1e9, "1000000000"),
    ],
)  # fmt: skip
def test_days_are_counted_from_where_a_workbook_says(is_from_1904, number, text):
    file = openpyxl.Workbook()
    file.active.title = "one"
    if is_from_1904:
        file.epoch = CALENDAR_MAC_1904
    file.active.append([number])
    file.active["A1"].number_format = "yyyy-mm-dd"
    content = io.BytesIO()
    file.save(content)
    assert read(content.getvalue()) == [[text]]
