"""A Parquet file of a kilobyte that stands for gigabytes takes no memory of who is sent it."""

import io
import zipfile
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rpexplore.common.file_kinds import unpacked_size
from rpexplore.common.parquet_bytes import table_of_parquet
from rpexplore.domain.area_file import columns_of_file
from rpexplore.errors import DomainError

N = 4_000_000
LIMIT = 1_000_000


def parquet(column: pa.Array) -> bytes:
    file = io.BytesIO()
    table = pa.table({"region": column})
    options = {"compression": "zstd", "dictionary_pagesize_limit": 1 << 30}
    pq.write_table(table, file, store_schema=False, **options)
    return file.getvalue()


def one_list() -> bytes:
    """One row: a list of zeros, which take a few bits in the file."""
    return parquet(pa.ListArray.from_arrays([0, N], pa.nulls(N, pa.int64()).fill_null(0)))


def one_text() -> bytes:
    """100 rows, each with the one text of the file."""
    return parquet(pa.DictionaryArray.from_arrays(pa.array([0] * 100), pa.array(["x" * N])))


@contextmanager
def little_memory():
    """A block in which pyarrow takes little memory of this process."""
    before = pa.default_memory_pool()
    pool = pa.proxy_memory_pool(before)
    pa.set_memory_pool(pool)
    try:
        yield
    finally:
        pa.set_memory_pool(before)
    assert pool.max_memory() < LIMIT


def project() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("project.json", "{}")
        archive.writestr("areas-1.parquet", one_list())
    return file.getvalue()


@pytest.mark.parametrize("made", [one_list, one_text, project])
def test_a_planning_server_takes_no_memory_for_it(made):
    content = made()
    assert len(content) < 10_000
    with little_memory():
        assert unpacked_size(content, 10 * LIMIT) > 10 * LIMIT


def test_areas_with_lists_are_refused_unread():
    content = one_list()
    with little_memory():
        with pytest.raises(DomainError, match="lists in its cells"):
            columns_of_file(content, "areas.parquet")
        with pytest.raises(DomainError, match="must be of type string, got list"):
            table_of_parquet(content, {"region": pa.string()}, DomainError)
