"""Codebooks in spreadsheets, PX files and metadata of CSV on the Web."""

import json
import zipfile
from datetime import date
from io import BytesIO

import openpyxl
import pytest

import rpexplore as rp
from rpexplore.common.spreadsheets import sheets_of
from rpexplore.domain.codebook_formats import draft_of_file
from rpexplore.domain.codebook_remarks import remarks_on_codebook
from rpexplore.domain.domain import Domain
from rpexplore.domain.table_codebooks import codebook_of_sheets
from rpexplore.errors import DomainError

SEX = rp.Attribute("sex", rp.Categories(("F", "M"), ("Female", "Male")))
ODS_NAMES = (
    'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" '
    'xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0" '
    'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"'
)


def excel(**sheets: list[list[object]]) -> bytes:
    book = openpyxl.Workbook()
    assert book.active is not None
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    file = BytesIO()
    book.save(file)
    return file.getvalue()


def ods(**sheets: list[list[object]]) -> bytes:
    def cell(value: object) -> str:
        if value is None:
            return '<table:table-cell table:number-columns-repeated="1"/>'
        kind = f'office:value-type="float" office:value="{value}"' * isinstance(value, int | float)
        if isinstance(value, date):
            kind, value = f'office:value-type="date" office:date-value="{value}"', "31.01.26"
        note = "<office:annotation><text:p>a note</text:p></office:annotation>"
        return f"<table:table-cell {kind}>{note}<text:p>{value}</text:p></table:table-cell>"

    end = '<table:table-row table:number-rows-repeated="1048000"><table:table-cell/>'
    tables = "".join(
        f'<table:table table:name="{name}">'
        + "".join(f"<table:table-row>{''.join(map(cell, row))}</table:table-row>" for row in rows)
        + f"{end}</table:table-row></table:table>"
        for name, rows in sheets.items()
    )
    text = f"<office:document-content {ODS_NAMES}>{tables}</office:document-content>"
    file = BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("content.xml", text)
    return file.getvalue()


@pytest.fixture(params=[("c.xlsx", excel), ("c.ods", ods)], ids=["xlsx", "ods"])
def written(request, tmp_path):
    name, write = request.param

    def path_of(**sheets):
        (tmp_path / name).write_bytes(write(**sheets))
        return tmp_path / name

    return path_of


def test_rows_of_values_of_all_sheets_are_read(written):
    path = written(
        Values=[["Attribute", "Value", "Label"], ["sex", "F", "Female"], ["sex", "M", "Male"]],
        Notes=[["These are notes"], [None, None, 3]],
        region=[["Code", "Label"], [1, "North"], [2, "South"], ["03", "Isles"]],
    )
    domain = Domain.load(path)
    regions = rp.Categories(("1", "2", "03"), ("North", "South", "Isles"))
    assert domain == Domain((SEX, rp.Attribute("region", regions)))
    assert remarks_on_codebook(path) == ["Sheets that hold no codebook were passed over: 'Notes'."]


def test_columns_may_have_other_names(written):
    rows = [["Variable", "Schlüssel", "Text"], ["sex", "F", "Female"], [None, "M", "Male"]]
    columns = {"attribute": "Variable", "value": "Schlüssel", "label": "Text"}
    assert Domain.load(written(Tabelle1=rows), columns=columns) == Domain((SEX,))


def test_a_sheet_of_one_attribute_may_have_other_names_too(written):
    columns = {"attribute": "Variable", "value": "Code", "label": "Text"}
    rows = [["Variable", "Code", "Text"], ["sex", "F", "Female"], [None, "M", "Male"]]
    land = [["Code", "Text"], ["01", "Wien"], ["02", "Tirol"]]
    other = [["Code", "Text", "Population"], ["x", "y", "1"]]
    draft = codebook_of_sheets(
        written(Tabelle1=rows, land=land, Info=other).read_bytes(), "c", columns
    )
    land = rp.Attribute("land", rp.Categories(("01", "02"), ("Wien", "Tirol")))
    assert draft.domain == Domain((SEX, land))
    assert draft.remarks == ("Sheets that hold no codebook were passed over: 'Info'.",)


def test_one_row_an_attribute(written):
    rows = [
        ["name", "label", "type", "values", "missing"],
        ["sex", "", "", "F=Female; M=Male", ""],
        ["age", "Age", "integer", "0..99 step 5", "-9=refused"],
        ["income", "", "bins", "0; 500; 1000.5", None],
        ["day", "", "date", "2026-01-01..2026-12-31 step month", None],
        ["size", "", "", "1, 2, 3+", None],
        ["pay", "", "amounts", "0..1000", None],
        ["id", "Number", "", None, None],
    ]
    path = written(Variables=rows)
    domain = Domain.load(path)
    assert domain.names == ("sex", "age", "income", "day", "size", "pay")
    assert domain["sex"] == SEX
    assert domain["age"].values == rp.Integers(0, 99, 5, (("-9", "refused"),))
    assert domain["income"].values == rp.Bins((0, 500, 1000.5))
    assert domain["day"].values == rp.Dates("2026-01-01", "2026-12-31", "month")
    assert domain["size"].values == rp.Categories(("1", "2", "3+"))
    assert domain["pay"].values == rp.Amounts(0, 1000)
    assert draft_of_file(path, path.name).without_values == {"id": "any"}


def test_one_row_an_attribute_in_csv_and_labels_on_a_sheet_of_their_own(written, tmp_path):
    text = 'name;type;values\nsex;;"F=Female; M=Male"\nage;integer;0..9\n'
    domain = Domain.parse(text, "codebook.csv")
    assert domain == Domain((SEX, rp.Attribute("age", rp.Integers(0, 9))))
    path = written(
        list=[["name", "label"], ["sex", "Sex of the person"], ["id", "Number"]],
        sex=[["value", "label"], ["F", "Female"], ["M", "Male"]],
    )
    assert Domain.load(path)["sex"].label == "Sex of the person"
    with pytest.raises(DomainError, match=r"line 2: Attribute 'sex': .*minimum"):
        Domain.parse("name,type,values\nsex,integer,5..1\n", "c.csv")


def test_files_that_are_no_codebook_are_refused(written, tmp_path):
    with pytest.raises(DomainError, match="has no sheet with the columns"):
        Domain.load(written(Sheet=[["a", "b"], [1, 2]]))
    (tmp_path / "bad.xlsx").write_bytes(b"PK\x03\x04 no zip")
    with pytest.raises(DomainError, match="is no usable spreadsheet"):
        Domain.load(tmp_path / "bad.xlsx")
    path = written(values=[["attribute", "value"], *(["a", number] for number in range(99))])
    for limit in ({"most_cells": 100}, {"most_bytes": 500}):
        with pytest.raises(DomainError, match="holds more than any codebook"):
            sheets_of(path.read_bytes(), path.name, DomainError, **limit)


def test_empty_rows_count_towards_what_a_file_may_hold():
    last = excel(a=[["value"], *[[]] * 150, ["F"]])
    for content in (last, ods(a=[["value"], *[[]] * 150, ["F"]])):
        with pytest.raises(DomainError, match="holds more than any codebook"):
            sheets_of(content, "c", DomainError, most_cells=100)


def test_entities_are_refused():
    file = BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("content.xml", '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>')
    with pytest.raises(DomainError, match="declares entities"):
        sheets_of(file.getvalue(), "c.ods", DomainError)


PX = """CHARSET="ANSI";
AXIS-VERSION="2013";
CODEPAGE="utf-8";
LANGUAGE="en";
TITLE="Persons; by sex"
" and age";
STUB="Sex","Age group";
HEADING="Year","Contents";
CONTVARIABLE="Contents";
VALUES("Sex")="men","women";
VALUES[sv]("Sex")="män","kvinnor";
VALUES("Age group")="0-14","a long"
" label","not known","not known";
VALUES("Year")="2025","2026";
VALUES("Contents")="persons";
CODES("Sex")="1","2";
CODES("Age group")="K","M","U1","U2";
VARIABLECODE("Sex")="sex";
DATA=
1 2 3 4 ;
"""


def test_variables_of_a_px_file_are_attributes(tmp_path):
    (tmp_path / "table.px").write_text(PX, encoding="utf-8")
    domain = Domain.load(tmp_path / "table.px")
    ages = rp.Categories(
        ("K", "M", "U1", "U2"), ("0-14", "a long label", "not known (U1)", "not known (U2)")
    )
    assert domain == Domain(
        (
            rp.Attribute("sex", rp.Categories(("1", "2"), ("men", "women")), "Sex"),
            rp.Attribute("Age group", ages),
            rp.Attribute("Year", rp.Categories(("2025", "2026"))),
        )
    )
    with pytest.raises(DomainError, match="has no variables with values"):
        draft_of_file(b'CHARSET="ANSI";\nDATA=1;', "x.px")


def test_columns_of_csvw_are_attributes_those_without_values_are_left_out(tmp_path):
    columns = [
        {"titles": "sex", "datatype": {"base": "string", "format": "F|M"}, "null": ["NA"]},
        {"titles": {"en": ["age"]}, "datatype": {"base": "integer", "minimum": 0, "maximum": "99"}},
        {"name": "works", "datatype": {"base": "boolean", "format": "Y|N"}},
        {"name": "day", "datatype": {"base": "date", "minimum": "2026-01-01",
                                     "maximum": "2026-01-31"}},
        {"name": "free", "datatype": "string"},
        {"name": "unit", "virtual": True, "default": "x"},
    ]  # fmt: skip
    content = {
        "@context": ["http://www.w3.org/ns/csvw", {"@language": "en"}],
        "url": "records.csv",
        "tableSchema": {"columns": columns},
    }
    path = tmp_path / "records-metadata.json"
    path.write_text(json.dumps(content), "utf-8")
    domain = Domain.load(path)
    assert domain.names == ("sex", "age", "works", "day")
    assert domain["sex"].stored_values() == ["F", "M", "NA"]
    assert domain["age"].values == rp.Integers(0, 99)
    assert domain["works"].values == rp.Categories(("Y", "N"))
    assert domain["day"].size == 31
    (remark,) = remarks_on_codebook(path)
    assert remark.startswith("Left out, because the file lists no values for them: free")


def test_data_packages_leave_out_what_lists_no_values(tmp_path):
    fields = [
        {"name": "sex", "type": "string", "constraints": {"enum": ["F", "M"]}},
        {"name": "id", "type": "string"},
    ]
    package = {"name": "p", "resources": [{"name": "r", "schema": {"fields": fields}}]}
    (tmp_path / "datapackage.json").write_text(json.dumps(package), "utf-8")
    assert Domain.load(tmp_path / "datapackage.json").names == ("sex",)
    assert "id (type string)" in remarks_on_codebook(tmp_path / "datapackage.json")[0]
    with pytest.raises(DomainError, match="its values are not known"):
        Domain.from_schema({"fields": fields})


def test_a_part_that_is_many_sheets_is_read_within_the_limit_of_all():
    file = BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        sheets = "".join(f'<sheet name="{number}" id="a"/>' for number in range(9))
        archive.writestr("xl/workbook.xml", f"<workbook>{sheets}</workbook>")
        archive.writestr(
            "xl/_rels/workbook.xml.rels",
            '<all><Relationship Id="a" Target="worksheets/a.xml"/></all>',
        )
        archive.writestr("xl/worksheets/a.xml", f"<worksheet>{'<x/>' * 2500}</worksheet>")
    with pytest.raises(DomainError, match="holds more than any codebook"):
        sheets_of(file.getvalue(), "c.xlsx", DomainError, most_bytes=50_000)
    assert len(sheets_of(file.getvalue(), "c.xlsx", DomainError, most_bytes=100_000)) == 9


def test_titles_above_and_merged_cells_are_understood(written):
    rows = [
        ["Codebook 2026"],
        [],
        ["attribute", "value", "label"],
        ["sex", "F", "Female"],
        [None, "M", "Male"],
    ]
    one = [["Regions"], ["code", "label"], [1, "North"], [2, "South"]]
    domain = Domain.load(written(Codes=rows, region=one))
    regions = rp.Attribute("region", rp.Categories(("1", "2"), ("North", "South")))
    assert domain == Domain((SEX, regions))


def test_the_remarks_on_a_codebook_know_other_names_of_columns(written):
    rows = [["List of codes"], ["Merkmal", "Code"], ["sex", "F"], [None, "M"]]
    path = written(Codes=rows, Notes=[["no codebook"]])
    columns = {"attribute": "Merkmal", "value": "Code"}
    assert Domain.load(path, columns=columns).names == ("sex",)
    (remark,) = remarks_on_codebook(path, columns=columns)
    assert "'Notes'" in remark


@pytest.mark.parametrize(
    "text",
    [
        "sep=;\nattribute;value;label\nsex;F;Female\nsex;M;Male\n",
        "Codes of the survey\n\nattribute;value;label\nsex;F;Female\n;M;Male\n;;\n",
        '"sep=\t"\r\nattribute\tvalue\tlabel\r\nsex\tF\tFemale\r\nsex\tM\tMale\r\n',
    ],
)
def test_csv_as_excel_writes_it_is_understood(text):
    assert Domain.parse(text, "codebook.csv") == Domain((SEX,))


def test_edges_of_bins_may_have_decimal_commas():
    domain = Domain.parse("name;type;values\nx;bins;0|0,5|2\n", "codebook.csv")
    assert domain["x"].values == rp.Bins((0, 0.5, 2))


def test_labels_of_px_files_are_in_the_language_that_is_named():
    text = (
        'LANGUAGE="sv";LANGUAGES="sv","en";STUB="kön";STUB[en]="sex";HEADING="år";\n'
        'HEADING[en]="year";VALUES("kön")="män","kvinnor";VALUES[en]("sex")="men","women";\n'
        'CODES("kön")="1","2";VALUES("år")="2026";VARIABLECODE("kön")="Kon";DATA=\n1 2;'
    )
    for language, expected in (
        ("", ["kön", "män"]),
        ("en", ["sex", "men"]),
        ("de", ["kön", "män"]),
    ):
        domain = draft_of_file(text.encode(), "c.px", language=language).domain
        assert domain.names == ("Kon", "år")
        assert [domain["Kon"].label, domain["Kon"].labels()[0]] == expected


def test_a_sheet_of_records_is_not_read_beyond_its_first_rows():
    """Names, and ages below them that are no values; a codebook is read to its end."""
    values = [["attribute", "value"], *(["a", str(number)] for number in range(5000))]
    content = excel(Records=[["age", "income"], *([1, 2] for _ in range(5000))], Values=values)
    looked: list[int] = []

    def is_wanted(rows):
        looked.append(len(rows))
        return "attribute" in rows[0]

    sheets = sheets_of(content, "c.xlsx", DomainError, is_wanted=is_wanted)
    assert {name: len(rows) for name, rows in sheets.items()} == {"Records": 50, "Values": 5001}
    assert looked == [50, 50]
    draft = codebook_of_sheets(content, "c.xlsx")
    assert draft.domain.sizes.tolist() == [5000]
    assert draft.remarks == ("Sheets that hold no codebook were passed over: 'Records'.",)


def test_a_day_is_the_day_in_either_kind_however_it_is_shown(written):
    path = written(day=[["value", "label"], [date(2026, 1, 31), "a"], [date(1926, 1, 31), "b"]])
    values = Domain.load(path)["day"].values
    assert values == rp.Categories(("2026-01-31", "1926-01-31"), ("a", "b"))


def test_a_range_of_whole_numbers_may_have_a_dash_and_is_no_single_band():
    of_type = Domain.parse("name;type;values\nage;integer;0-9\n", "codebook.csv")
    assert of_type["age"].values == rp.Integers(0, 9)
    in_steps = Domain.parse("name;type;values\nage;integer;0-9 step 5\n", "codebook.csv")
    assert in_steps["age"].values == rp.Integers(0, 9, 5)
    bands = Domain.parse("name;values\nage;0-9, 10-19\n", "codebook.csv")
    assert bands["age"].labels() == ["0-9", "10-19"]
    with pytest.raises(DomainError, match=r"line 2: .* write 0\.\.9 for the numbers"):
        Domain.parse("name;values\nage;0–9\n", "codebook.csv")
