"""A server without records takes codebooks, and refuses files of records whatever their names."""

import gzip
import hashlib
import io
import json
import zipfile

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rpexplore.data.files.columns import CodebookFile
from rpexplore.data.files.offered import recognise_public, refuse_records_beside
from rpexplore.domain.hierarchy_file import HierarchyFile
from rpexplore.errors import DomainError

SCHEMA = {"fields": [{"name": "sex", "constraints": {"enum": ["F", "M"]}}]}
CSV = b"age,sex\n12,F\n13,M\n"


def parquet(columns) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue().to_pybytes()


RECORDS = {
    "SPSS": b"$FL2@(#) SPSS DATA FILE" + bytes(200),
    "compressed SPSS": b"$FL3@(#) SPSS DATA FILE" + bytes(200),
    "portable SPSS": b"ASCII SPSS PORT FILE".ljust(40) + b"0" * 400,
    "Stata": b"<stata_dta><header><release>118",
    "old Stata": b"\x72\x02\x01\x00\x03\x00" + bytes(400),
    "SAS": bytes(12) + b"\xc2\xea\x81\x60\xb3\x14\x11\xcf" + bytes(400),
    "SAS transport": b"HEADER RECORD*******LIBRARY HEADER RECORD!!!!!!!",
    "Parquet": parquet({"age": [12, 13]}),
    "gzip": gzip.compress(CSV),
    "CSV": CSV,
    "CSV with a codebook's columns among others": b"attribute,value,income\na,1,9\nb,2,8\n",
    "CSV with semicolons": b"age;sex\n12;F\n",
    "one column": b"age\n12\n13\n",
    "one very long line": b"x" * 200_000,
    "a list of objects": b'[{"age": 12, "sex": "F"}]',
    "lines of objects": b'{"age": 12.5, "sex": "F"}\n{"age": 13.5, "sex": "M"}\n',
    "a spreadsheet": b"PK\x03\x04" + bytes(400),
    "a Data Resource with its rows": json.dumps(
        {"name": "people", "schema": SCHEMA, "data": [["F"], ["M"]]}
    ).encode(),
    "a Data Package with rows": json.dumps(
        {"resources": [{"name": "people", "schema": SCHEMA, "data": [{"sex": "F"}]}]}
    ).encode(),
}


@pytest.mark.parametrize("name", ["survey", "c.json", "c.csv", "c.xml", "c.hrc", "c.txt"])
@pytest.mark.parametrize("kind", RECORDS)
def test_records_are_refused_whatever_their_name(kind, name):
    with pytest.raises(DomainError):
        recognise_public(RECORDS[kind], name)


@pytest.mark.parametrize("ending", ["sav", "zsav", "por", "dta", "sas7bdat", "xpt"])
def test_what_is_named_as_records_is_refused_whatever_it_holds(ending):
    with pytest.raises(DomainError, match=r"rpexplore schema FILE --out codebook\.json"):
        recognise_public(json.dumps(SCHEMA).encode(), f"survey.{ending}")


def test_a_refusal_says_what_to_upload_instead():
    said = r"columns attribute and value.*takes no records.*codebook\.json"
    with pytest.raises(DomainError, match=said):
        recognise_public(CSV, "survey.csv")


def test_codebooks_are_taken():
    for name, content in {
        "c.json": json.dumps(SCHEMA).encode(),
        "package.json": json.dumps(
            {"resources": [{"name": "people", "path": "people.csv", "schema": SCHEMA}]}
        ).encode(),
        "sizes.json": b'{"data": 3, "sex": 2}',
        "c.csv": b"attribute,value,label\nsex,F,Female\nsex,M,Male\n",
        "semicolons.csv": b"\xef\xbb\xbfValue;Attribute\nF;sex\nM;sex\n",
    }.items():
        assert isinstance(recognise_public(content, name), CodebookFile), name
    hierarchy = recognise_public(b"North\n@N1\n@N2, with a comma\nSouth\n@S1\n", "regions.hrc")
    assert isinstance(hierarchy, HierarchyFile)
    with pytest.raises(DomainError, match="one level"):
        recognise_public(b"12\n13\n14\n", "codes.hrc")


def workbook(**sheets: list[list[str]]) -> bytes:
    book, content = openpyxl.Workbook(), io.BytesIO()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    book.save(content)
    return content.getvalue()


@pytest.mark.usefixtures("in_this_process")
def test_spreadsheets_are_taken_if_all_sheets_are_codebooks():
    values = [["attribute", "value", "label"], ["sex", "1", "men"], ["sex", "2", "women"]]
    one_attribute = [["Code", "Label"], ["1", "North"], ["2", "South"]]
    taken = recognise_public(workbook(codes=values, region=one_attribute), "c.xlsx")
    assert isinstance(taken, CodebookFile)
    assert taken.domain.names == ("sex", "region")
    with pytest.raises(DomainError, match=r"whose sheet 'people' has a record in each row"):
        recognise_public(workbook(codes=values, people=[["age", "sex"], ["12", "1"]]), "c.xlsx")
    with pytest.raises(DomainError, match="no sheet with values of attributes"):
        recognise_public(workbook(codes=[["name", "label"], ["sex", "Sex"]]), "c.xlsx")


def test_spreadsheets_that_unpack_to_much_are_refused():
    content = io.BytesIO(workbook(codes=[["attribute", "value"], ["sex", "1"]]))
    with zipfile.ZipFile(content, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/sharedStrings.xml", b"<sst>" + b" " * 50_000_000 + b"</sst>")
    assert len(content.getvalue()) < 1_000_000
    with pytest.raises(DomainError, match="more than any codebook"):
        recognise_public(content.getvalue(), "c.xlsx")


def areas(content: bytes, **stated) -> bytes:
    field = {"path": "towns.csv", "sha256": hashlib.sha256(content).hexdigest(), **stated}
    return json.dumps({"fields": [{"name": "town", "areas": field}, *SCHEMA["fields"]]}).encode()


def test_a_file_of_areas_has_no_columns_but_theirs():
    towns = b"region,town,town_name\nN,1,Nord\nN,2,Nox\n"
    refuse_records_beside(areas(towns, levels=["region", "town"]), "c.json", {"towns.csv": towns})
    people = b"region,town,income\nN,1,20\nN,2,30\n"
    with pytest.raises(DomainError, match=r"columns \('income'\)"):
        refuse_records_beside(
            areas(people, levels=["region", "town"]), "c.json", {"towns.csv": people}
        )
    with pytest.raises(DomainError, match="SPSS"):
        refuse_records_beside(areas(towns), "c.json", {"towns.csv": RECORDS["SPSS"]})
    as_parquet = parquet({"town": ["a", "b"]})
    refuse_records_beside(areas(as_parquet), "c.json", {"towns.parquet": as_parquet})
