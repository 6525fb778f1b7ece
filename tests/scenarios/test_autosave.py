"""Autosaves: saved whole, read again by their key alone, never written over unawares."""

import os
import shutil
import stat
from pathlib import Path

import pytest

import rpexplore as rp
from rpexplore.errors import WorkloadError
from rpexplore.scenarios.autosave import Autosaves, SavedRelease
from rpexplore.scenarios.project import Project
from rpexplore.scenarios.scenario import Scenario

PROJECT = Project((Scenario(rp.Domain.from_sizes({"age": 10, "sex": 2}), name="kept"),))


@pytest.fixture
def autosaves(tmp_path):
    return Autosaves(tmp_path / "home" / "autosaves")


def test_a_saved_project_is_read_by_its_key_only(autosaves):
    key, other = Autosaves.new_key(), Autosaves.new_key()
    assert autosaves.save(key, PROJECT.text(), None)
    saved = autosaves.read(key)
    assert (saved.project, saved.text) == (PROJECT, PROJECT.text())
    assert autosaves.read(other) is None
    autosaves.path(other).mkdir()
    assert autosaves.keys() == [key]


def test_nothing_is_saved_over_what_another_window_saved(autosaves):
    key = Autosaves.new_key()
    autosaves.save(key, "first", None)
    assert autosaves.save(key, "second", "first")
    assert not autosaves.save(key, "third", "first")
    assert not autosaves.save(key, "third", None)
    assert autosaves.path(key).read_text() == "second"


def noted(folder: Path) -> SavedRelease:
    return SavedRelease(folder, "2 noisy tables", "plan", PROJECT.current)


def finish(release: SavedRelease, at: int) -> None:
    release.folder.mkdir(exist_ok=True)
    manifest = release.folder / "manifest.json"
    manifest.touch()
    os.utime(manifest, (at, at))


def test_releases_are_noted_with_their_project_and_for_its_owner_alone(autosaves, tmp_path):
    key, release = Autosaves.new_key(), noted(tmp_path / "a \udcff")
    assert autosaves.last_release(key) is None
    autosaves.save_release(key, release)
    finish(release, at=5)
    assert autosaves.last_release(key) == release
    assert autosaves.last_release(Autosaves.new_key()) is None
    (path,) = autosaves.folder.iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.write_text('[{"folder": "/out"}]')
    assert autosaves.last_release(key) is None
    autosaves.forget_releases(key)
    assert not path.exists()


def test_results_are_noted_while_they_are_there(autosaves, tmp_path):
    key, folder = autosaves.new_key(), tmp_path / "out"
    autosaves.save_results_folder(key, folder)
    assert autosaves.results_folder(key) is None  # no results are there
    folder.mkdir()
    (folder / "manifest.json").touch()
    assert autosaves.results_folder(key) == folder
    assert autosaves.results_folder(autosaves.new_key()) is None
    autosaves.save_results_folder(key, None)
    assert autosaves.results_folder(key) is None


def test_the_last_release_is_that_which_was_finished_last(autosaves, tmp_path):
    key = Autosaves.new_key()
    first, stopped, last = (noted(tmp_path / name) for name in ("first", "stopped", "last"))
    for release in (first, stopped, last):
        autosaves.save_release(key, release)
    finish(first, at=5)
    assert autosaves.last_release(key) == first  # the others have only begun
    finish(last, at=7)
    finish(stopped, at=9)
    assert autosaves.last_release(key) == stopped
    shutil.rmtree(stopped.folder)
    assert autosaves.last_release(key) == last


def test_a_draft_that_is_gone_is_written_again(autosaves):
    key = Autosaves.new_key()
    autosaves.save(key, "first", None)
    autosaves.path(key).unlink()
    assert autosaves.save(key, "second", "first")
    assert autosaves.path(key).read_text() == "second"


def test_only_the_user_may_read_a_draft(autosaves):
    key = Autosaves.new_key()
    autosaves.save(key, PROJECT.text(), None)
    (file,) = autosaves.folder.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(autosaves.folder.stat().st_mode) == 0o700


@pytest.mark.parametrize("key", ["", "x", "../" * 8 + "etc/passwd", "0" * 31, "A" * 32, "0" * 33])
def test_what_is_no_key_leads_nowhere(autosaves, key):
    autosaves.save(Autosaves.new_key(), "text", None)
    assert autosaves.read(key) is None


@pytest.mark.parametrize("content", [b'{"format": "of the future"}', b"", b"\xff\xfe"])
def test_an_unusable_project_is_refused_and_left_as_it_is(autosaves, content):
    key = Autosaves.new_key()
    autosaves.save(key, "text", None)
    autosaves.path(key).write_bytes(content)
    with pytest.raises(WorkloadError, match=key):
        autosaves.read(key)
    assert not autosaves.save(key, "text", None)
    assert autosaves.path(key).read_bytes() == content


def test_a_folder_that_cannot_be_made_raises(tmp_path):
    (tmp_path / "home").write_text("a file")
    with pytest.raises(NotADirectoryError):
        Autosaves(tmp_path / "home" / "autosaves").save(Autosaves.new_key(), "text", None)


def test_the_folder_can_be_named(monkeypatch, tmp_path):
    monkeypatch.setenv("RPEXPLORE_HOME", str(tmp_path))
    assert Autosaves.of_user().folder == tmp_path / "autosaves"


def test_keys_are_never_repeated():
    keys = {Autosaves.new_key() for _ in range(1000)}
    assert len(keys) == 1000


def test_a_user_without_a_home_has_a_folder_all_the_same(monkeypatch):
    def no_home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("RPEXPLORE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    assert Autosaves.of_user().folder.name == "autosaves"
