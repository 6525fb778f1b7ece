"""Codebooks that are small and would take for ever: read in seconds, or refused in one sentence.

A planning server reads one upload at a time, so that whoever has a slow one makes all others wait.
"""

import io
import json
import time
import zipfile

import pytest

from rpexplore import AreaTree, Attribute, Categories, Domain
from rpexplore.common.spreadsheets import sheets_of
from rpexplore.data.files.columns import CodebookFile, recognise
from rpexplore.domain.area_file import tree_of_file
from rpexplore.domain.values import values_by_name
from rpexplore.errors import DomainError, RpexploreError
from rpexplore.workload.query_definitions import stated_from_lines, with_conditions
from rpexplore.workload.rules import rules_from_text
from rpexplore.workload.targets import Target

WHOLE = {"type": "integer", "constraints": {"minimum": 0, "maximum": 99_999}}
IMPOSSIBLE = [{"a": f"{i}..{i + 40_000}", "b": str(i)} for i in range(100)]


def schema(**properties) -> bytes:
    return json.dumps(properties).encode()


CODEBOOKS = {
    "fields without values.json": schema(fields=[{"name": f"a{i}"} for i in range(20_000)]),
    "impossible.json": schema(
        fields=[{"name": "a", **WHOLE}, {"name": "b", **WHOLE}], impossible=IMPOSSIBLE
    ),
    "name of digits.csv": b"1" * 60_000 + b"a,b\n1,2\n",
}
REFUSED = {
    "missing.json": (
        schema(missingValues=[str(-i) for i in range(9_000)], fields=[{"name": "a", **WHOLE}]),
        "1,000 at most",
    ),
    "many.json": (
        schema(fields=[{"name": "a", **WHOLE}], impossible=[{"a": "0"}] * 20_001),
        "at most 20,000 impossible combinations",
    ),
    "large.json": (
        schema(fields=[{"name": "a", **WHOLE}], impossible=[{"a": str(i)} for i in range(501)]),
        "of too many values, 50,000,000 in all at most",
    ),
}
PATIENCE = 4  # seconds of the processor, of which each took more, and most more than 20


@pytest.fixture(autouse=True)
def _in_time():
    began = time.process_time()
    yield
    assert time.process_time() - began < PATIENCE


@pytest.mark.parametrize("name", CODEBOOKS)
def test_is_read_in_time(name):
    recognise(CODEBOOKS[name], name)


@pytest.mark.parametrize("name", REFUSED)
def test_is_refused_in_time(name):
    content, said = REFUSED[name]
    with pytest.raises(RpexploreError, match=said):
        recognise(content, name)


def test_groups_that_lie_deep_in_each_other_are_left_out_in_time():
    groups = b"".join(
        b'<catgryGrp ID="g%d" catGrp="g%d"><labl>g</labl></catgryGrp>' % (i, i + 1)
        for i in range(9_000)
    )
    values = b"".join(b"<catgry><catValu>%d</catValu></catgry>" % i for i in (1, 2))
    head = b'<codeBook xmlns="ddi:codebook:2_5"><dataDscr><var name="v">'
    content = head + groups + values + b"</var></dataDscr></codeBook>"
    file = recognise(content, "groups.xml")
    assert isinstance(file, CodebookFile)
    (remark,) = file.remarks
    assert "more than 20 deep in each other" in remark


def test_names_of_very_many_groups_are_found_in_time():
    values = tuple(map(str, range(30_000)))
    groups = tuple((f"g{value}",) for value in values)
    attribute = Attribute("a", Categories(values), groups=groups)
    assert list(values_by_name(attribute)["g29999"]) == [29_999]


def test_rules_of_semicolons_are_refused_in_time():
    with pytest.raises(RpexploreError, match="10,000 characters"):
        rules_from_text(Domain.from_sizes({"a": 2}), ";" * 200_000)


@pytest.mark.parametrize(
    ("content", "how"),
    [
        ("code\n" + f"{'1|' * 900}0\n" * 2_000, {"separator": "|"}),
        ("code\n" + f"{'1' * 900}\n" * 2_000, {"lengths": [1] * 900}),
        (",".join(f"l{i}" for i in range(900)) + ("\n" + ",".join("1" * 900)) * 99, {}),
    ],
    ids=["separator", "lengths", "columns"],
)
def test_areas_of_very_many_levels_are_refused_before_they_are_made(content, how):
    """A file of 3 MB took 0.8 GB of memory: the beginnings of each code, level by level."""
    with pytest.raises(RpexploreError, match="100 levels at most"):
        tree_of_file(content.encode(), "areas.csv", **how)


def test_a_list_of_too_many_counts_is_refused_at_the_line_that_is_too_many(monkeypatch):
    """Few lines may stand for any number of counts: 10 MB of them for billions."""
    monkeypatch.setattr("rpexplore.workload.query_list.MAX_QUERIES", 150)
    domain = Domain.from_sizes({"a": 10, "b": 10, "c": 1_000})

    def lines():
        yield "Line 1", "x", "total by a, b", "5"
        yield "Line 2", "y", "total by a, b", "5"
        raise AssertionError("another line was asked for")

    with pytest.raises(RpexploreError, match="Line 2: A list can have at most 150 own counts"):
        stated_from_lines(domain, with_conditions(domain, lines()), Target(5))


def test_recodes_of_areas_that_stand_for_very_many_codes_are_refused():
    tree = AreaTree.from_columns({"town": ["a", "b"]})
    for recode in ({"1..99999999999": "a"}, {f"1..{n}": "a" for n in range(90_000, 90_100)}):
        with pytest.raises(RpexploreError, match="stand for more than 200,000 codes"):
            tree.with_recodes({"town": recode})


def spreadsheet(**parts: str) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return content.getvalue()


def open_document(row: str) -> bytes:
    sheet = f"<table name='one'><table-row>{row}</table-row></table>"
    return spreadsheet(**{"content.xml": sheet})


def workbook(rows: str, text: str = "x") -> bytes:
    return spreadsheet(
        **{
            "xl/_rels/workbook.xml.rels": "<r><Relationship Id='r' Target='worksheets/s.xml'/></r>",
            "xl/workbook.xml": "<workbook><sheets><sheet name='one' id='r'/></sheets></workbook>",
            "xl/sharedStrings.xml": f"<sst><si><t>{text}</t></si></sst>",
            "xl/worksheets/s.xml": f"<worksheet><sheetData>{rows}</sheetData></worksheet>",
        }
    )


SHARING = "<row><c r='A1' t='s'><v>0</v></c></row>" * 20_000
REPEATING = {
    "blanks": open_document("<table-cell><p>a<s c='99999999'/></p></table-cell>"),
    "repeated cells": open_document(
        f"<table-cell number-columns-repeated='1000'><p>{'a' * 100_000}</p></table-cell>"
    ),
    "shared texts": workbook(SHARING, "a" * 10_000),
}


@pytest.mark.parametrize("name", REPEATING)
def test_spreadsheets_whose_texts_become_large_are_refused(name):
    """736 bytes with two runs of blanks took 3.9 GB."""
    with pytest.raises(DomainError, match="repeats texts to more than any codebook holds"):
        sheets_of(REPEATING[name], "sheets", DomainError)


def test_cells_in_cells_are_read_in_time():
    """The text so far was put together anew at each of their ends."""
    n, cell = 10_000, "<table-cell>"
    text = "a" * 2_000_000
    within = f"{cell * n}<p>{text}</p><p>b</p>{cell.replace('<', '</') * n}"
    ((row,),) = sheets_of(open_document(within), "sheets", DomainError).values()
    assert row == [f"{text}\nb"]


def test_numbers_of_rows_and_texts_that_no_sheet_has_are_passed_over():
    digits = "9" * 5_000  # which Python does not read as a number
    rows = f"<row r='{digits}'><c r='A1' t='s'><v>{digits}</v></c><c r='B1'><v>7</v></c></row>"
    assert sheets_of(workbook(rows), "sheets", DomainError) == {"one": [["", "7"]]}
