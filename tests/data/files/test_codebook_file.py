"""A file for a codebook, recognised by what it holds, whatever it is called."""

import gzip
import json

import pytest

from rpexplore import Attribute, Bins, Categories, Domain, Integers
from rpexplore.data.files.columns import (
    CodebookFile,
    Column,
    ColumnsFile,
    OwnFile,
    PackageFile,
    recognise,
    recognise_path,
)
from rpexplore.domain import codebook_formats
from rpexplore.errors import DomainError, RpexploreError
from tests.data.files.written_records import SECRET, stored, written

SCHEMA = {
    "fields": [
        {"name": "sex", "constraints": {"enum": ["f", "m"]}},
        {"name": "weight", "type": "number"},
        {"name": "income", "type": "number", "bins": [0, 1, 2]},
        {"name": "height", "type": "number", "constraints": {"minimum": 0, "maximum": 3}},
        {"name": "name"},
    ]
}
CSV = b"Attribute;Value;Label\nsex;f;Women\nsex;m;Men\nage;0,5;\n"


def as_json(content):
    return json.dumps(content).encode()


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("Table Schema", SCHEMA),
        ("Data Package", {"name": "x", "resources": [{"path": "x.csv", "schema": SCHEMA}]}),
    ],
)
def test_fields_without_values_are_left_out_and_named(kind, content, tmp_path):
    found = recognise(b"\xef\xbb\xbf " + as_json(content), "anything.txt")
    assert isinstance(found, CodebookFile)
    assert found.kind == kind
    assert [each.values for each in found.domain] == [Categories(("f", "m")), Bins((0, 1, 2))]
    assert found.without_values == {"weight": "number", "height": "number", "name": "any"}
    path = tmp_path / "codes"
    path.write_bytes(as_json(content))
    assert recognise_path(path) == found


def test_one_table_of_a_package_is_chosen(tmp_path):
    homes = {"fields": [{"name": "rooms", "constraints": {"minimum": 1, "maximum": 4}}]}
    resources = [{"name": "people", "schema": SCHEMA}, {"name": "homes", "schema": homes}]
    content = as_json({"resources": [*resources, {"name": "notes", "path": "notes.pdf"}]})
    found = recognise(content, "datapackage.json")
    assert isinstance(found, PackageFile)
    assert found.tables == ("people", "homes")
    assert found.table("homes").domain == Domain((Attribute("rooms", Integers(1, 4)),))
    assert found.table("people").without_values["weight"] == "number"
    path = tmp_path / "datapackage.json"
    path.write_bytes(content)
    assert Domain.load(path, "homes") == found.table("homes").domain
    for name, why in ((None, "2 tables, 'people', 'homes'; take one"), ("dogs", "no table 'dogs'")):
        with pytest.raises(DomainError, match=why):
            Domain.load(path, name)
    path.write_bytes(as_json(homes))
    with pytest.raises(DomainError, match=r"^datapackage\.json is no Data Package"):
        Domain.load(path, "homes")


def test_sizes():
    found = recognise(b'{"age": 32, "sex": 2}', "domain.json")
    sizes = Domain.from_sizes({"age": 32, "sex": 2})
    assert found == CodebookFile("sizes", sizes, {})
    assert Domain.parse('{"age": 32, "sex": 2}', "domain.json") == sizes
    assert sizes["age"].values == Integers(0, 31)


def test_csv_codebooks_with_semicolons():
    found = recognise(CSV, "codes.dat")
    assert isinstance(found, CodebookFile)
    assert found.kind == "CSV codebook"
    assert found.domain["sex"].labels() == ["Women", "Men"]
    assert found.domain["age"].labels() == ["0,5"]


def test_a_schema_without_any_values_names_columns():
    fields = [{"name": "age", "type": "integer"}, {"name": "born", "type": "date"}, {"name": "x"}]
    found = recognise(as_json({"fields": fields}), "schema.json")
    assert isinstance(found, ColumnsFile)
    assert (found.kind, found.records) == ("Table Schema without values", None)
    assert found.header.columns == (
        Column("age", "whole numbers"),
        Column("born", "dates"),
        Column("x"),
    )


def test_of_records_the_names_of_columns_are_read(tmp_path):
    text = f"age,sex\n5,{SECRET}\n".encode()
    found = [
        recognise(text, "people.csv"),
        recognise(gzip.compress(text, mtime=0), "people.csv.gz"),
        recognise(stored(tmp_path, age=[5], sex=[SECRET]).read_bytes(), "people"),
    ]
    for one in found:
        assert isinstance(one, ColumnsFile)
        assert [column.name for column in one.header.columns] == ["age", "sex"]
        assert one.records is None
        assert SECRET not in repr(one)
    path = written(tmp_path, text.decode())
    assert recognise_path(path) == ColumnsFile("data file", found[0].header, path)
    folder = tmp_path / "parts"
    folder.mkdir()
    path.rename(folder / "a.csv")
    assert recognise_path(folder) == ColumnsFile("folder of data files", found[0].header, folder)


@pytest.mark.parametrize("kind", ["rpexplore-plan", "rpexplore-project"])
def test_own_files_say_what_they_are(kind):
    assert recognise(as_json({"format": kind, "domain": {}}), "x.json") == OwnFile(kind)


@pytest.mark.parametrize(
    ("content", "name", "message"),
    [
        (b"PK\x03\x04", "codes.xlsx", r"codes\.xlsx is no usable spreadsheet; save it anew"),
        (b'{"age": 32, "sex": "two"}', "a.json", r'a\.json is JSON, but no codebook: .*"fields"'),
        (b'{"fields": []}', "a.json", r"a\.json is JSON, but no codebook"),
        (b"[1, 2]", "a.json", r"a\.json is JSON, but no codebook"),
        (b'{"age": 0}', "a.json", r"a\.json must be .* size of 'age' must be at least 1, got 0"),
        (b'{"age": 3', "a.json", r"a\.json must be a codebook: it is not valid JSON"),
        (b'{"resources": []}', "a.json", r"the schema of a table itself, got none"),
        (b"Dear Sir,", "letter.txt", r"letter\.txt is neither a codebook nor a data file"),
        (b"", "empty", r"empty is neither a codebook nor a data file"),
        (b"attribute,value\nsex,f\nsex,f\n", "a.csv", r"'sex': The category 'f' is listed twice"),
        (b"1,2\n3,4\n", "a.csv", r"does not look like the names of columns"),
        (b"PAR1", "a.parquet", r"head of 'a\.parquet' cannot be read"),
        (gzip.compress(b"a,b\n", mtime=0)[:-9], "a.csv.gz", r"head of 'a\.csv\.gz' cannot be read"),
    ],
)
def test_what_fits_nowhere_is_one_sentence(content, name, message, tmp_path):
    with pytest.raises(RpexploreError, match=message):
        recognise(content, name)
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(RpexploreError):
        recognise_path(path)


def test_a_codebook_is_not_read_whatever_its_size(tmp_path, monkeypatch):
    monkeypatch.setattr(codebook_formats, "MOST_BYTES", 5)
    path = written(tmp_path, '{"age": 32}', "a.json")
    for read in (lambda: recognise_path(path), lambda: recognise(path.read_bytes(), path.name)):
        with pytest.raises(RpexploreError, match="more than any codebook"):
            read()


def test_records_are_read_as_records_whatever_they_begin_with():
    for content, name in (
        (b"[age],[sex]\n1,2\n", "a.csv"),
        (b"age,sex\r1,2\r", "a.csv"),
        (b"age\tsex\n1\t2\n", "a.txt"),
    ):
        recognised = recognise(content, name)
        assert isinstance(recognised, ColumnsFile)
        assert len(recognised.header.columns) == 2
