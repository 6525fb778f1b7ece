"""Project files that somebody made by hand: read as what they say, or refused in one sentence.

Nothing in them becomes a path: names in a zip file are compared, and never followed.
"""

import io
import struct
import zipfile

import pytest

import rpexplore as rp
from rpexplore.common.file_kinds import unpacked_size
from rpexplore.errors import WorkloadError
from rpexplore.scenarios.project import Project, project_of_file
from rpexplore.scenarios.scenario import Scenario

PROJECT = Project((Scenario(rp.Domain.from_sizes({"a": 2})),))
TEXT = PROJECT.text()
_METHOD, _SIZE, _START = 10, 24, 42  # in the header of an entry (APPNOTE.TXT, 4.3.12)


def zipped(*entries: tuple[str, str], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, content in entries:
            archive.writestr(name, content)
    return file.getvalue()


def with_header(content: bytes, at: int, form: str, value: int) -> bytes:
    """The zip file with one number in the central header of its first entry replaced."""
    start = content.index(b"PK\x01\x02") + at
    number = struct.pack(form, value)
    return content[:start] + number + content[start + len(number) :]


@pytest.mark.parametrize(
    "content",
    [
        zipped(("project.json", TEXT), ("areas-/../../../tmp/x.parquet", "x"), ("../../x", "x")),
        zipped(("project.json", TEXT), method=zipfile.ZIP_LZMA),
        zipped(("project.json", TEXT), *((f"areas-{i}", "") for i in range(1_000))),
    ],
    ids=["paths", "lzma", "many"],
)
def test_what_else_is_in_the_file_does_nothing(content, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert project_of_file(content, "p.zip") == PROJECT
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (with_header(zipped(("project.json", TEXT)), 8, "<H", 1), "damaged one"),
        (with_header(zipped(("project.json", TEXT)), _METHOD, "<H", 99), "damaged one"),
        (with_header(zipped(("project.json", "[" * 10**7)), _SIZE, "<I", 5), "damaged one"),
        (with_header(zipped(("project.json", TEXT)), _START, "<I", 2**32 - 16), "damaged one"),
        (zipped(("project.json", "[" * 100_000)), "nested too deeply"),
        (zipped(("project.json/", "")), "holds no project.json"),
    ],
    ids=["encrypted", "unknown method", "false size", "false place", "deep", "folder"],
)
def test_damaged_and_forged_files_are_refused_in_a_sentence(content, message):
    with pytest.raises(WorkloadError, match=message):
        project_of_file(content, "p.zip")


def test_what_a_small_file_becomes_is_known_before_it_is_read():
    """As a planning server asks it."""
    content = zipped(("project.json", " " * 5_000_000), method=zipfile.ZIP_BZIP2)
    assert len(content) < 1_000
    assert unpacked_size(content, 4_000_000) > 4_000_000
