"""What an error about records was raised for: readers quote these, and no log may have them.

A traceback shows nothing behind `raise … from None`. Loggers and notebooks can look further.
"""

import gzip
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from duckdb import connect

import rpexplore as rp
from rpexplore.data.engines.source import DatabaseSource
from rpexplore.data.files.columns import header_of_bytes
from rpexplore.data.files.source import FileSource
from rpexplore.data.frames import FrameSource
from rpexplore.domain.record_layout import Place, RecordLayout
from rpexplore.errors import DataError, RpexploreError
from tests.data.engines.servers import Server, in_duckdb

SECRET = "hidden7391"
DOMAIN = rp.Domain((rp.Attribute("sex", rp.Categories(("f", "m"))),))


def links(error: BaseException) -> Iterator[BaseException]:
    """All errors that one was raised for, at whichever remove."""
    waiting: list[BaseException | None] = [error.__context__, error.__cause__]
    while waiting:
        if (link := waiting.pop()) is not None:
            yield link
            waiting += [link.__context__, link.__cause__]


def in_file(name: str, content: bytes) -> Callable[[Path], Any]:
    def source(folder: Path) -> FileSource:
        (folder / name).write_bytes(content)
        return FileSource(folder / name)

    return source


def fixed_width(folder: Path) -> FileSource:
    (folder / "a.dat").write_bytes(f"f{SECRET}\xff\n".encode("latin-1"))
    layout = RecordLayout(("sex", "town"), (Place(0, 1), Place(1, 12)), 12)
    return FileSource(folder / "a.dat", layout=layout)


def parquet(folder: Path) -> FileSource:
    """With a page of which a byte is another one."""
    path = folder / "a.parquet"
    table = pa.table({"sex": [f"{SECRET} {number}" for number in range(1000)]})
    pq.write_table(table, path, use_dictionary=False, compression="none")
    content = bytearray(path.read_bytes())
    content[content.index(SECRET.encode()) - 4 : content.index(SECRET.encode())] = b"\xff" * 4
    path.write_bytes(content)
    return FileSource(path)


def stata(folder: Path) -> FileSource:
    path = folder / "a.dta"
    pd.DataFrame({"sex": [SECRET] * 1000}).to_stata(path)
    path.write_bytes(path.read_bytes()[:-5000])
    return FileSource(path)


def duckdb(folder: Path) -> DatabaseSource:
    """A view that an engine cannot work on, which it says with the value."""
    source = in_duckdb(pa.table({"text": [SECRET]}), folder / "a.duckdb", "texts")
    with connect(folder / "a.duckdb") as database:
        database.execute("CREATE VIEW records AS SELECT CAST(text AS INTEGER) AS sex FROM texts")
    return DatabaseSource(source.connection, "records")


def postgres(server: Server) -> DatabaseSource:
    source = server.source(pa.table({"text": [SECRET]}), "texts")
    server.run("CREATE VIEW records AS SELECT CAST(text AS integer) AS sex FROM texts")
    return DatabaseSource(source.connection, "records")


SOURCES = {
    "ragged": in_file("a.csv", f"sex\nf\n{SECRET},m,1\n".encode()),
    "ragged, in another encoding": in_file("a.csv", f"sex\nf\n{SECRET},\xe9\n".encode("latin-1")),
    "not in UTF-8": in_file("a.csv", b"sex\nf\n" + SECRET.encode() + b"\xff\n"),
    "open quotation mark": in_file("a.csv", f'sex\nf\n"{SECRET}\nm\n'.encode()),
    "cut gzip": in_file("a.csv.gz", gzip.compress(f"sex\nf\n{SECRET}\n".encode() * 99)[:-9]),
    "fixed width": fixed_width,
    "Parquet": parquet,
    "Stata": stata,
    "frame": lambda _: FrameSource(pd.DataFrame({"sex": ["f", SECRET, 1, b"\xff"]}), name="a"),
    "DuckDB": duckdb,
}


by_night = pytest.mark.nightly


@pytest.mark.parametrize(
    "kind",
    [
        *(pytest.param(kind, marks=by_night if kind == "Stata" else ()) for kind in SOURCES),
        pytest.param("PostgreSQL", marks=by_night),
    ],
)
def test_no_error_about_records_holds_what_a_reader_has_quoted(kind, request, tmp_path):
    def count() -> None:
        if kind == "PostgreSQL":
            source = postgres(request.getfixturevalue("postgres"))
        else:
            source = SOURCES[kind](tmp_path)
        source.count(DOMAIN, [(0,)])

    with pytest.raises(RpexploreError) as refused:
        count()
    assert SECRET not in str(refused.value)
    assert list(links(refused.value)) == []


def test_no_error_about_a_head_does_so_either():
    with pytest.raises(DataError) as refused:
        header_of_bytes(b"PAR1" + SECRET.encode(), "a.csv")
    assert list(links(refused.value)) == []
