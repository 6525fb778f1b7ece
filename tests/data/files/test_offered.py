"""What is offered to choose from: names under some folders, and nothing that lies elsewhere."""

import builtins
import io
import os
from types import SimpleNamespace

import pytest

from rpexplore.data.files import offered as module
from rpexplore.data.files.offered import codebooks, folders_with, ledgers, offered, records


@pytest.fixture
def shelf(tmp_path):
    """A folder "shelf" with files, beside it one that nobody opened."""
    names = [
        "codes.json", "notes.txt", "people.csv", "rpexplore-ledger.sqlite", ".hidden.csv",
        "_draft.csv", ".git/index.csv", "older/visits.CSV.GZ", "parts/a.parquet", "parts/b.parquet",
        "stays/year=2025/a.csv", "stays/year=2026/a.csv", "versions/_delta_log/0.json",
        "versions/deleted.parquet", "made/manifest.json", "made/plan.json", "made/README.md",
        "made/tables/x.csv",
    ]  # fmt: skip
    for name in names:
        path = tmp_path / "shelf" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/secret.csv").touch()
    return tmp_path / "shelf"


def names(kind, *folders, **limits):
    return list(offered(folders, kind, **limits).names.values())


def test_records_are_files_and_folders_of_parts(shelf):
    assert names(records, shelf) == [
        "shelf/people.csv",
        "shelf/older/visits.CSV.GZ",
        "shelf/parts/",
        "shelf/parts/a.parquet",
        "shelf/parts/b.parquet",
        "shelf/stays/",
    ]
    found = offered([shelf], records)
    assert not found.is_cut
    assert all(path.exists() and str(path).endswith(name.strip("/").removeprefix("shelf"))
               for path, name in found.names.items())  # fmt: skip


def test_no_file_is_opened_for_the_list(shelf, monkeypatch):
    expected = names(records, shelf), names(codebooks, shelf)
    opened = []
    for place, name in ((builtins, "open"), (io, "open"), (os, "open")):
        monkeypatch.setattr(place, name, lambda *given, **_: opened.append(given))
    assert (names(records, shelf), names(codebooks, shelf)) == expected
    assert not opened


def test_other_kinds(shelf):
    assert names(codebooks, shelf)[:2] == ["shelf/codes.json", "shelf/people.csv"]
    assert names(ledgers, shelf) == ["shelf/rpexplore-ledger.sqlite"]
    assert names(folders_with("manifest.json"), shelf) == ["shelf/made/"]


def test_links_are_neither_listed_nor_followed(shelf, tmp_path):
    before = names(records, shelf)
    (shelf / "link.csv").symlink_to(tmp_path / "elsewhere/secret.csv")
    (shelf / "folder").symlink_to(tmp_path / "elsewhere")
    (shelf / "loop").symlink_to(shelf)
    assert names(records, shelf) == before
    # But the folder that was opened may be named by a link.
    (tmp_path / "named").symlink_to(shelf)
    assert offered([tmp_path / "named"], records) == offered([shelf], records)


def test_folders_of_one_name_are_told_apart(tmp_path):
    for parent in ("a", "b"):
        (tmp_path / parent / "data").mkdir(parents=True)
        (tmp_path / parent / "data" / "x.csv").touch()
    folders = [tmp_path / "a/data", tmp_path / "b/data", tmp_path / "missing"]
    assert names(records, *folders) == [f"{folder}/x.csv" for folder in folders[:2]]


def test_huge_folders_are_cut_and_say_so(tmp_path):
    huge = tmp_path / "huge"
    huge.mkdir()
    for number in range(30):
        (huge / f"{number:02}.json").touch()
    assert not offered([huge], codebooks).is_cut
    few = offered([huge], codebooks, most=10)
    assert (len(few.names), few.is_cut) == (10, True)
    # A huge folder hides no other one.
    (tmp_path / "other").mkdir()
    (tmp_path / "other/small.json").touch()
    unseen = offered([huge, tmp_path / "other"], codebooks, most_seen=10)
    assert (len(unseen.names), unseen.is_cut) == (6, True)
    assert "other/small.json" in unseen.names.values()


def test_many_names_in_a_folder_leave_room_for_those_of_others(tmp_path):
    for folder, count in (("many", 30), ("more", 20), ("few", 2)):
        (tmp_path / folder).mkdir()
        for number in range(count):
            (tmp_path / folder / f"{number:02}.json").touch()
    folders = [tmp_path / name for name in ("many", "more", "few")]
    found = offered(folders, codebooks, most=12)
    assert [name.split("/")[0] for name in found.names.values()] == [
        *["many"] * 5, *["more"] * 5, *["few"] * 2
    ]  # fmt: skip
    assert found.is_cut
    assert len(offered(folders, codebooks, most=52).names) == 52
    assert not offered(folders, codebooks, most=52).is_cut
    # A folder inside another one is listed once, also where the other one has too many names.
    inside = offered([tmp_path, tmp_path / "many"], codebooks, most=52)
    assert (len(inside.names), inside.is_cut) == (52, False)
    few = offered([tmp_path, tmp_path / "many"], codebooks, most=12)
    assert any(path.parent.name == "many" for path in few.names)


def test_slow_disks_are_not_waited_for(shelf, monkeypatch):
    look_at, now = module._look_at, [0]

    def slow(path, most):
        now[0] += 1
        return look_at(path, most)

    # A clock on which time passes only where a folder is looked at: a second each.
    clock = SimpleNamespace(monotonic=lambda: now[0])
    monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(module, "_look_at", slow)
    monkeypatch.setattr(module, "_SECONDS", 0.01)
    found = offered([shelf], records)
    assert list(found.names.values()) == ["shelf/people.csv"]
    assert found.is_cut
    # A slow folder does not take the time of another one.
    found = offered([shelf, shelf.parent / "elsewhere"], records)
    assert list(found.names.values()) == ["shelf/people.csv", "elsewhere/secret.csv"]
