"""A folder that is there when it is complete, and not before."""

import os
from pathlib import Path

import pytest

from rpexplore.errors import ReleaseError
from rpexplore.releases import atomic_folder
from rpexplore.releases.atomic_folder import check_new, new_folder


def test_a_folder_gets_its_name_at_the_end_only(tmp_path):
    output = tmp_path / "not" / "yet" / "out"
    with new_folder(output) as folder:
        (folder / "file").touch()
        assert not output.exists()
        assert folder.parent == output.parent
        assert folder.stat().st_mode & 0o777 == 0o700
        assert folder.name == ".out.unfinished"
    assert [path.name for path in output.parent.iterdir()] == ["out"]
    assert [path.name for path in output.iterdir()] == ["file"]


def fill(output: Path, and_then) -> None:
    with new_folder(output) as folder:
        (folder / "tables").mkdir()
        (folder / "tables" / "file").touch()
        and_then()


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, GeneratorExit])
def test_a_failure_leaves_nothing(error, tmp_path):
    def fail():
        raise error

    with pytest.raises(error):
        fill(tmp_path / "out", fail)
    assert list(tmp_path.iterdir()) == []


def test_an_unfinished_folder_that_cannot_be_opened_is_not_left(tmp_path, monkeypatch):
    """As with a umask of 0777, which takes its owner's rights, too."""

    def closed(_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(atomic_folder, "_open_folder", closed)
    with pytest.raises(ReleaseError, match="can be written to"), new_folder(tmp_path / "out"):
        raise AssertionError
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("what", ["folder", "full folder", "file", "link", "dangling link"])
def test_what_is_there_already_is_kept(what, tmp_path):
    output = tmp_path / "out"
    if "folder" in what:
        output.mkdir()
    if what == "full folder":
        (output / "precious").touch()
    elif what == "file":
        output.write_text("precious")
    elif "link" in what:
        output.symlink_to(tmp_path / ("none" if what == "dangling link" else "."))
    before = os.lstat(output).st_mtime_ns
    with pytest.raises(ReleaseError, match="nothing is ever overwritten"):
        check_new(output)
    with pytest.raises(ReleaseError, match="nothing is ever overwritten"), new_folder(output):
        raise AssertionError
    assert os.lstat(output).st_mtime_ns == before
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        (os.fsdecode(b"\xff"), "not UTF-8"),
        ("file/out", "'.*file' is no folder"),
        ("loop/out", "'.*loop' is no folder"),
        ("dangling/more/out", "'.*dangling' is no folder"),
        ("nul\0", "NUL"),
        ("long" * 200, "File name too long"),
    ],
)
def test_where_no_folder_can_be_made_is_said_at_once(name, reason, tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "dangling").symlink_to("none")
    with pytest.raises(ReleaseError, match=f"cannot be written to .*{reason}"):
        check_new(tmp_path / name)


def test_an_output_that_appears_late_is_kept(tmp_path):
    def meanwhile():
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "precious").touch()

    with pytest.raises(ReleaseError, match="nothing is ever overwritten"):
        fill(tmp_path / "out", meanwhile)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert (tmp_path / "out" / "precious").exists()


@pytest.mark.parametrize("when", ["before", "while it is written to disk"])
@pytest.mark.parametrize("kind", ["link", "folder", "nothing"])
def test_an_unfinished_folder_that_was_exchanged_is_no_release(kind, when, tmp_path, monkeypatch):
    """By somebody who may write beside it: what was written may lie in a folder of theirs."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    (elsewhere / "precious").touch()

    def exchange():
        unfinished = tmp_path / ".out.unfinished"
        unfinished.rename(tmp_path / "taken")
        if kind == "link":
            unfinished.symlink_to("elsewhere")
        elif kind == "folder":
            elsewhere.rename(unfinished)

    if when == "while it is written to disk":
        monkeypatch.setattr(os, "sync", exchange)
    with pytest.raises(ReleaseError, match="somebody has exchanged its unfinished folder"):
        fill(tmp_path / "out", exchange if when == "before" else lambda: None)
    assert not os.path.lexists(tmp_path / "out")
    (precious,) = (
        tmp_path.rglob("precious")
        if kind != "folder"
        else [tmp_path / ".out.unfinished" / "precious"]
    )
    assert precious.exists()
    assert precious.parent.stat().st_mode & 0o777 == 0o700
