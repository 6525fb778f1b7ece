"""Files written whole or not at all, and where none is written."""

import os
import socket
import stat
from pathlib import Path

import pytest

from rpexplore.common.files import _locked, whole_file, write_whole


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def special(folder: Path, kind: str) -> Path:
    """Something at a path that is no file."""
    path = folder / kind
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(path))
    elif kind == "folder":
        path.mkdir()
    else:
        (folder / "file").touch()
        path.symlink_to({"link": "file", "dangling": "none", "loop": "loop"}[kind])
    return path


@pytest.mark.parametrize("kind", ["pipe", "socket", "folder", "link", "dangling", "loop"])
def test_what_is_no_file_is_never_replaced(kind, tmp_path):
    path = special(tmp_path, kind)
    before, there = path.lstat(), names(tmp_path)
    with pytest.raises(OSError, match="it is a"):
        write_whole(path, "text")
    assert path.lstat() == before
    assert names(tmp_path) == there


def test_a_device_is_never_replaced(tmp_path, monkeypatch):
    monkeypatch.setattr(Path, "replace", lambda *_: pytest.fail("replaced"))
    with pytest.raises(OSError, match="it is a device"):
        write_whole("/dev/null", "text")


def test_a_path_that_is_no_text_is_refused(tmp_path):
    with pytest.raises(OSError, match="not UTF-8"):
        write_whole(tmp_path / os.fsdecode(b"\xff"), "text")
    assert names(tmp_path) == []


@pytest.mark.parametrize(("old", "asked", "new"), [(None, 0o600, 0o600), (0o640, 0o666, 0o640)])
def test_a_file_keeps_who_may_read_it(old, asked, new, tmp_path):
    path = tmp_path / "file"
    if old is not None:
        path.touch()
        path.chmod(old)
    write_whole(path, "text", mode=asked)
    assert stat.S_IMODE(path.stat().st_mode) == new


def test_contents_are_on_disk_before_the_name_and_the_name_afterwards(tmp_path, monkeypatch):
    done, fsync, replace = [], os.fsync, Path.replace

    def synced(descriptor):
        done.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        fsync(descriptor)

    def named(part, path):
        done.append("name")
        return replace(part, path)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "replace", named)
    write_whole(tmp_path / "file", "text")
    assert done == ["file", "name", "folder"]


def test_a_link_that_somebody_else_has_prepared_is_not_written_to(tmp_path):
    (tmp_path / f".file.part-{os.getpid()}").symlink_to("precious")
    write_whole(tmp_path / "file", "text")
    assert "precious" not in names(tmp_path)


def test_what_a_killed_writer_left_is_cleared(tmp_path):
    """Its lock went with it; one that writes has its own, and one that begins none as yet."""
    ages = {"killed": 60, "killed just now": 0, "named": 7200, "writing": 7200, "begun": 0}
    for name, age in ages.items():
        folder = tmp_path / f".rpexplore-part-{name}"
        folder.mkdir()
        if name != "begun":
            (folder / ("thesis.txt" if name == "named" else "part")).touch()
        os.utime(folder, (0, folder.stat().st_mtime - age))
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / ".rpexplore-part-link").symlink_to("elsewhere")
    os.utime(tmp_path / ".rpexplore-part-link", (0, 0), follow_symlinks=False)
    with _locked(tmp_path / ".rpexplore-part-writing"):
        write_whole(tmp_path / "file", "text")
    left = [f".rpexplore-part-{name}" for name in ("begun", "link", "named", "writing")]
    assert names(tmp_path) == [*left, "elsewhere", "file"]


def test_a_file_that_a_slow_disk_takes_long_for_is_not_taken_for_left(tmp_path, monkeypatch):
    at_once = os.fsync

    def slow(file: int) -> None:
        monkeypatch.setattr(os, "fsync", at_once)
        for folder in tmp_path.glob(".rpexplore-part-*"):
            os.utime(folder, (0, folder.stat().st_mtime - 60))
        write_whole(tmp_path / "other", "text")
        at_once(file)

    monkeypatch.setattr(os, "fsync", slow)
    write_whole(tmp_path / "file", "text")
    assert names(tmp_path) == ["file", "other"]


def test_the_folder_of_another_user_is_not_cleared(tmp_path, monkeypatch):
    folder = tmp_path / ".rpexplore-part-killed"
    folder.mkdir()
    os.utime(folder, (0, 0))
    monkeypatch.setattr(os, "geteuid", lambda: folder.stat().st_uid + 1)
    write_whole(tmp_path / "file", "text")
    assert names(tmp_path) == [folder.name, "file"]


def test_a_file_for_which_there_is_no_room_is_named(tmp_path):
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("no /dev/full")
    with pytest.raises(OSError, match="No space left") as caught, whole_file(tmp_path / "out"):
        full.write_text("x")
    assert caught.value.filename == str(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []
