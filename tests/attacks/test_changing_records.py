"""Records that change while they are counted, and files changed at times beyond any calendar."""

import mmap
import os
from collections.abc import Callable
from pathlib import Path

import pytest

import rpexplore as rp
from rpexplore.data.files.source import FileSource
from rpexplore.errors import DataError

DOMAIN = rp.Domain.from_sizes({"a": 2})
CHANGES: list[Callable[[Path], object]] = []


@CHANGES.append
def by_a_map_of_memory(path: Path) -> None:
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as content:
        content[2:3] = b"1"


@CHANGES.append
def in_place_with_its_time_put_back(path: Path) -> None:
    before = path.stat()
    with path.open("r+b") as file:
        file.seek(2)
        file.write(b"1")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@CHANGES.append
def cut(path: Path) -> None:
    os.truncate(path, 4)


@CHANGES.append
def exchanged_and_put_back(path: Path) -> None:
    path.rename(path.with_suffix(".old"))
    path.write_text("a\n1\n1\n")
    path.with_suffix(".old").rename(path)


@CHANGES.append
def removed(path: Path) -> None:
    path.unlink()


@pytest.mark.parametrize("change", CHANGES)
def test_records_that_change_while_they_are_counted_are_refused(change, tmp_path, monkeypatch):
    path = tmp_path / "records.csv"
    path.write_text("a\n0\n1\n")
    read = FileSource.batches

    def batches(self, names):
        for batch in read(self, names):
            yield batch
            change(path)

    monkeypatch.setattr(FileSource, "batches", batches)
    with pytest.raises(DataError, match=r"changed while|no records at"):
        FileSource(path).count(DOMAIN, [(0,)])


@pytest.mark.parametrize(("seconds", "year"), [(1e12, 9999), (-1e12, 1), (2**63, 9999)])
def test_a_file_of_no_year_is_counted(seconds, year, tmp_path, monkeypatch):
    """A file system in memory keeps any time that a program sets."""
    path = tmp_path / "records.csv"
    path.write_text("a\n0\n1\n")
    files = FileSource._files

    def set_back(self):
        return [(name, size, int(seconds * 1e9), *more) for name, size, _, *more in files(self)]

    monkeypatch.setattr(FileSource, "_files", set_back)
    source = FileSource(path)
    assert source.count(DOMAIN, [(0,)]).n_records == 2
    assert source.fingerprint().modified.startswith(f"{year:04}-")
