"""How large an uploaded file becomes when it is read."""

import io
import struct
import zipfile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rpexplore.common.file_kinds import number_of_values, unpacked_size

MOST = 1_000_000


def parquet(*columns: pa.Array) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table({f"c{n}": column for n, column in enumerate(columns)}), file)
    return file.getvalue()


def zipped(*contents: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for number, content in enumerate(contents):
            archive.writestr(f"areas-{number}.parquet", content)
    return file.getvalue()


def long_texts() -> bytes:
    return parquet(pa.array(["N" * 10_000] * 1_000))  # each row has the one text of the file


SMALL = {
    "zip": lambda: zipped(b" " * 2 * MOST),
    "files": lambda: zipped(*[b" " * 300_000] * 4),
    "rows": lambda: parquet(pa.array(["N"] * 2 * MOST)),
    "texts": long_texts,
    "columns": lambda: parquet(*[pa.array([1] * 20_000)] * 60),
    "texts in a zip": lambda: zipped(long_texts()),
}


@pytest.mark.parametrize("made", SMALL.values(), ids=SMALL)
def test_a_small_file_that_holds_much(made):
    content = made()
    assert len(content) < 100_000
    assert unpacked_size(content, MOST) > MOST


def test_very_many_files_are_too_large_however_small_they_are():
    """Opening 90,000 of them took a quarter of a minute."""
    assert unpacked_size(zipped(*[b"{}"] * 1_000), MOST) == 2_000
    assert unpacked_size(zipped(*[b""] * 1_001), MOST) > MOST


def test_others_are_as_large_as_they_are():
    areas = parquet(pa.array(["N", "S"]), pa.array(["1", "2"]))
    for content in (
        b"",
        b"a,b\n1,2\n",
        areas,
        zipped(areas, b"{}"),
        b"PK\x03\x04",
        b"PAR1 damaged",
    ):
        assert unpacked_size(content, MOST) < 10_000


@pytest.mark.parametrize(
    ("content", "n_values"),
    [
        (b'[1, 2, {"a": []}]', 6),
        (b'["' + b",count\n1\n" * 1000, 2000),  # which begins like JSON, and is lines of a table
        (b" " * 1000 + b"[" * 9, 9),
        (b"a;b\r1;2\r", 2),
        (zipped(b"[1,2]", b"[" * 1000), 1002),
        (zipped(parquet(pa.array([1] * 1000), pa.array([None] * 1000)), b"1,2"), 2001),
        (b"\x93NUMPY" + b"," * 99, 0),
        (b"PAR1" + b"," * 99, 0),  # a damaged one is refused by its reader
    ],
)
def test_values_are_counted_before_one_is_made(content, n_values):
    assert number_of_values(content) == n_values


def test_what_is_packed_twice_is_not_unpacked_twice():
    assert number_of_values(zipped(zipped(b"," * MOST))) < 100  # no reader would


@pytest.mark.parametrize("packing", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2])
def test_a_zip_file_that_states_less_than_it_holds_is_not_unpacked(packing):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", packing) as archive:
        archive.writestr("project.json", bytes(7_654_321))
    small = file.getvalue().replace(struct.pack("<I", 7_654_321), struct.pack("<I", 100))
    assert unpacked_size(small, most=10_000) > 10_000


def test_a_file_with_a_password_does_not_hide_what_another_one_holds():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("secret", b"")
        archive.writestr("project.json", b"," * 7_654_321)
    first = file.getvalue().index(b"PK\1\2") + 8  # its flags, where the list of files is
    locked = bytearray(file.getvalue())
    locked[first] |= 1
    assert number_of_values(bytes(locked)) == 7_654_321
    small = locked.replace(struct.pack("<I", 7_654_321), struct.pack("<I", 100))
    assert unpacked_size(bytes(small), most=10_000) > 10_000
