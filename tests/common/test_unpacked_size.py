"""How large an uploaded file becomes when it is read."""

import io
import zipfile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rpexplore.common.file_kinds import unpacked_size

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


MANY_ROWS = parquet(pa.array(["N"] * 2 * MOST))
LONG_TEXTS = parquet(pa.array(["N" * 10_000] * 1_000))  # each row has the one text of the file
MANY_COLUMNS = parquet(*[pa.array([1] * 20_000)] * 60)


@pytest.mark.parametrize(
    "content",
    [
        zipped(b" " * 2 * MOST),
        zipped(*[b" " * 300_000] * 4),
        MANY_ROWS,
        LONG_TEXTS,
        MANY_COLUMNS,
        zipped(LONG_TEXTS),
    ],
    ids=["zip", "files", "rows", "texts", "columns", "texts in a zip"],
)
def test_a_small_file_that_holds_much(content):
    assert len(content) < 100_000
    assert unpacked_size(content, MOST) > MOST


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
