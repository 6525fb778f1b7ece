"""Files of records that are refused, and values that are shown to nobody else."""

import gzip
import math
from contextlib import suppress

import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from rpexplore import Bins, Categories, Domain, Integers
from rpexplore.data.files.columns import read_header
from rpexplore.data.files.csv_batches import csv_form
from rpexplore.data.files.source import FileSource
from rpexplore.data.frames import FrameSource
from rpexplore.errors import DataError, DomainError
from tests.data.coded_records import read_records
from tests.data.files.written_records import (
    LETTERS,
    NUMBERED,
    SECRET,
    codes,
    domain_of,
    refusal,
    stored,
    written,
)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        f"{SECRET}\n1\n",
        f"{SECRET},b\n1,2\n",
        f"c,c,{SECRET}\na,b,1\n",
        f"C,{SECRET}\na,1\n",
        f"a,{SECRET}\nb,1\n",
    ],
)
def test_a_header_without_the_column_once(text, tmp_path):
    error = refusal(written(tmp_path, text), LETTERS, SECRET)
    assert ("'c'" if text.strip() else "are empty, or do not start with a header") in str(error)
    if SECRET in text:
        assert SECRET in error.on_screen()


@pytest.mark.parametrize("text", ["", "\n", "\nc,d\na,1\n"])
def test_a_header_is_needed_even_where_no_column_is(text, tmp_path):
    """A file that was never written is not a dataset without records."""
    with pytest.raises(DataError):
        read_records(written(tmp_path, text), LETTERS, [])


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"PK\x03\x04" + bytes(50), "a spreadsheet or another ZIP file"),
        (b"\n<!DOCTYPE html>\n<p>Not found</p>\n", "a web page"),
        (gzip.compress(b"c\na\n", mtime=0), "compressed by gzip"),
        (b"c\n" + bytes(40), "no text"),
    ],
)
def test_files_of_another_kind_are_called_by_it(content, kind, tmp_path):
    path = tmp_path / "records.csv"
    path.write_bytes(content)
    assert f"are {kind}" in str(refusal(path, LETTERS))
    with pytest.raises(DomainError, match=f"is {kind}"):
        Domain.load(path)


@pytest.mark.parametrize("change", [slice(None, -9), slice(None, 20), slice(0, 0), slice(1, None)])
def test_a_damaged_gzip_file_is_called_so(change, tmp_path):
    packed = gzip.compress(b"c\n" + b"a\nb\n" * 3000)
    path = tmp_path / "records.csv.gz"
    path.write_bytes(packed[change])
    reason = "are empty" if not packed[change] else "a broken or incomplete gzip file"
    assert reason in str(refusal(path, LETTERS))
    path.write_bytes(packed[:-8] + bytes(4) + packed[-4:])
    assert "a broken or incomplete gzip file" in str(refusal(path, LETTERS))


def test_texts_in_parquet_that_are_not_utf8(tmp_path):
    offsets, texts = pa.array([0, 2, 4], pa.int32()).buffers()[1], pa.py_buffer(b"\xff\xfeyo")
    path = stored(tmp_path, c=pa.Array.from_buffers(pa.string(), 2, [None, offsets, texts]))
    assert "in UTF-8" in str(refusal(path, LETTERS))


def test_columns_may_be_named_in_another_unicode_form(tmp_path):
    domain = domain_of(**{"\u00e9": Categories(("a",))})
    assert codes(written(tmp_path, "e\u0301,d\na,1\n"), domain) == [[0]]
    assert codes(stored(tmp_path, **{"e\u0301": ["a"]}), domain) == [[0]]
    frame = FrameSource(pd.DataFrame({"e\u0301": ["a"]}), name="people", columns=["\u00e9"])
    assert frame.count(domain, [(0,)]).counts((0,)).tolist() == [1]
    both = written(tmp_path, "e\u0301,\u00e9\na,a\n")
    assert "2 columns 'é'" in str(refusal(both, domain))


def test_a_parquet_file_without_the_column(tmp_path):
    error = refusal(stored(tmp_path, **{SECRET: ["a"]}), LETTERS, SECRET)
    assert "no column 'c'" in str(error)
    assert SECRET in error.on_screen()
    twice = pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"])], names=["c", "c"])
    pq.write_table(twice, tmp_path / "twice.parquet")
    assert "2 columns 'c'" in str(refusal(tmp_path / "twice.parquet", LETTERS))


@pytest.mark.parametrize(
    "row", [f"a,1,{SECRET}", SECRET, f'"{SECRET}"', f"   {SECRET}  "], ids=repr
)
def test_ragged_rows_are_refused(row, tmp_path):
    error = refusal(written(tmp_path, f"c,d\na,1\n{row}\nb,1\n"), LETTERS, SECRET)
    assert "columns in every row" in str(error)


@pytest.mark.parametrize(
    "rows",
    [
        'a,ok\nb,"never closed\na,ok\nb,ok\n',
        'a,ok\nb,"never closed',
        'a,ok\nb,"closed by another\na,ok\nb,"next" one\na,ok\n',
        '"a",ok\nb,"closed by another\na,"next one\n"b",ok\n',
    ],
)
def test_a_quote_that_swallows_records_is_refused(rows, tmp_path):
    """Otherwise one record's text would silently drop the records after it."""
    refusal(written(tmp_path, f"c,d\n{rows}"), LETTERS, "never closed", "closed by")


def test_what_is_not_utf8_is_refused(tmp_path):
    for text in (
        "c,d\na,s3cr3t\n".encode("utf-16")[:-1] + b"\xd8",
        b"d,c\n" + b"1,a\n" * 5000 + b"1,s3cr3t\xe9\n",
    ):
        refusal(written(tmp_path, text), LETTERS, "s3cr3t")


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1 rubbish PAR1", b"c\na\n"])
def test_a_corrupt_parquet_file_is_refused(content, tmp_path):
    path = tmp_path / "records.parquet"
    path.write_bytes(content)
    assert "cannot be read" in str(refusal(path, LETTERS))


def test_a_truncated_parquet_file_is_refused(tmp_path):
    path = stored(tmp_path, c=[f"{SECRET}-{i}" for i in range(1000)])
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    refusal(path, LETTERS, SECRET)


def test_a_damaged_page_is_refused(tmp_path):
    path = stored(tmp_path, c=[f"{SECRET}-{i}" for i in range(1000)])
    content = bytearray(path.read_bytes())
    content[100:3000] = b"\xaa" * 2900
    path.write_bytes(content)
    refusal(path, LETTERS, SECRET)


@pytest.mark.parametrize("name", ["none.csv", "none.parquet", "folder.csv", "folder.parquet"])
def test_what_is_not_a_file_is_refused(name, tmp_path):
    if name.startswith("folder"):
        (tmp_path / name).mkdir()
    assert name in str(refusal(tmp_path / name, LETTERS))


@pytest.mark.parametrize("name", ["records.xlsx", "records", "records.csv.bz2", "records.json"])
def test_other_formats_are_refused(name, tmp_path):
    (tmp_path / name).write_text("c\na\n")
    assert ".csv or .parquet" in str(refusal(tmp_path / name, LETTERS))


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize(
    "values", [Categories(("a", "b")), Integers(0, 9), Bins((0, 1))], ids=lambda v: type(v).__name__
)
def test_a_value_outside_is_told_on_screen_only(values, ending, tmp_path):
    domain = domain_of(c=values)
    fine = domain["c"].labels()[0] if not isinstance(values, Bins) else "0"
    neighbour, n_rows = "neighbours-value", 4321
    columns = {"c": [fine] * (n_rows - 1) + [SECRET], neighbour: [neighbour] * n_rows}
    path = tmp_path / f"records.{ending}"
    if ending == "csv":
        pd.DataFrame(columns).to_csv(path, index=False)
    else:
        pq.write_table(pa.table(columns), path)
    error = refusal(path, domain, SECRET, neighbour)
    assert "'c'" in str(error)
    assert "a category of 'c' that takes such values" in str(error)
    assert SECRET in error.on_screen()
    for private in (neighbour, "4321", "4320", "4,321"):
        assert private not in error.on_screen().replace(str(tmp_path), "")


def test_some_values_are_shown_and_said_to_be_some(tmp_path):
    rows = "".join(f"{SECRET}{i}\n{SECRET}{i}\n" for i in range(9))
    error = refusal(written(tmp_path, f"c\n{rows}"), LETTERS, SECRET)
    assert error.private == (
        "'c': 18 not in the codebook. It holds: "
        + ", ".join(f"'{SECRET}{i}'" for i in range(5))
        + ", …."
    )


def test_nothing_is_logged_or_printed(tmp_path, caplog, capfd, recwarn):
    caplog.set_level(0)
    refusal(written(tmp_path, f"c\n{SECRET}\n"), LETTERS, SECRET)
    refusal(stored(tmp_path, c=[1.0, math.nan, 7e18]), NUMBERED)
    codes(written(tmp_path, "c\na\n"), LETTERS)
    assert caplog.records == []
    assert capfd.readouterr() == ("", "")
    assert [str(warning.message) for warning in recwarn] == []


def test_a_gzip_file_of_many_members_is_read_to_its_end(tmp_path):
    members = ["c\na\n", "", "b\n" * 300_000, "a\n"]
    packed = b"".join(gzip.compress(member.encode()) for member in members)
    (tmp_path / "records.csv.gz").write_bytes(packed)
    records = read_records(tmp_path / "records.csv.gz", domain_of(c=Categories(("a", "b"))), [0])
    assert records.n_records == 300_002


@pytest.mark.by_day(8)
@pytest.mark.parametrize(
    ("names", "content"),
    [
        (["sex=S3/a.csv", "sex=f/a.csv"], b"other\n1\n"),  # no column
        (["sex=S3/a.csv"], b"PK\x03\x04"),  # another kind
        (["sex=S3/a.csv"], b'n,m\n"1,2\n'),  # an open quote
        (["sex=S3/a.csv"], b"n,m\n1\n"),  # ragged
        (["sex=S3/a.csv.gz"], b"n\n1\n"),  # not compressed
        (["sex=S3/a.parquet"], b"PAR1"),
        (["sex=S3/a.sav"], b"$FL2@(#)"),
        (["sex=S3/a.csv", "sex=S3/b.csv"], b"n\n1\n"),  # twice
        (["sex=S3/a.csv", "sex=S3/a.csv.gz"], b"n\n1\n"),
        (["sex=S3/a.csv", "sex=S3/n=S3/b.csv"], b"n\n1\n"),  # other keys
        (["sex=S3/sex=S3/a.csv"], b"n\n1\n"),
        (["sex=S3/a.csv", "sex=S3/a.txt"], b"n\n1\n"),
        (["sex=S3/a.csv", "sex=S3/b.parquet"], b"n\n1\n"),
        (["sex=S3/_delta_log/a.csv"], b"n\n1\n"),
        (["sex=S3/.a.csv"], b"n\n1\n"),
        (["n=1/sex=S3.csv"], b"PK\x03\x04"),  # its own name may tell as much
    ],
)
def test_values_in_names_of_folders_are_told_on_screen_only(names, content, tmp_path):
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    domain = Domain.from_sizes({"n": 2})
    with pytest.raises(DataError) as caught:
        FileSource(tmp_path).count(domain, [(0,)])
    assert "S3" not in str(caught.value)
    assert "S3" in caught.value.on_screen()
    with suppress(DataError):
        read_header(tmp_path)
        return
    with pytest.raises(DataError) as caught:
        read_header(tmp_path)
    assert "S3" not in str(caught.value)


def test_a_value_of_many_megabytes_is_named(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("a,note\nx," + "n" * 20_000_000 + "\nx,y\n")
    with pytest.raises(DataError, match=r"hold a value of several megabytes, or a quotation mark"):
        list(FileSource(path).batches(["a"]))


def test_a_header_line_of_megabytes_is_named_as_such(tmp_path):
    (tmp_path / "records.csv").write_text(f"a,{'x' * 200_000}\n1,2\n")
    with pytest.raises(DataError, match=r"The header line of 'records\.csv' has a name of more"):
        csv_form(tmp_path / "records.csv", "records.csv")
