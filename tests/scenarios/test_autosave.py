"""Drafts: saved whole, found again by their key alone, never written over unawares."""

import stat
from pathlib import Path

import pytest

import rpexplore as rp
from rpexplore.errors import WorkloadError
from rpexplore.scenarios.autosave import Drafts
from rpexplore.scenarios.project import Study
from rpexplore.scenarios.scenario import Scenario

STUDY = Study((Scenario(rp.Domain.from_sizes({"age": 10, "sex": 2}), name="kept"),))


@pytest.fixture
def drafts(tmp_path):
    return Drafts(tmp_path / "home" / "drafts")


def test_a_saved_study_is_found_under_its_key_and_no_other(drafts):
    key, other = Drafts.new_key(), Drafts.new_key()
    assert drafts.save(key, STUDY.text(), None)
    draft = drafts.read(key)
    assert (draft.study, draft.text) == (STUDY, STUDY.text())
    assert drafts.read(other) is None


def test_nothing_is_saved_over_what_another_window_saved(drafts):
    key = Drafts.new_key()
    drafts.save(key, "first", None)
    assert drafts.save(key, "second", "first")
    assert not drafts.save(key, "third", "first")
    assert not drafts.save(key, "third", None)
    assert drafts.path(key).read_text() == "second"


def test_a_draft_that_is_gone_is_written_again(drafts):
    key = Drafts.new_key()
    drafts.save(key, "first", None)
    drafts.path(key).unlink()
    assert drafts.save(key, "second", "first")
    assert drafts.path(key).read_text() == "second"


def test_only_the_user_may_read_a_draft(drafts):
    key = Drafts.new_key()
    drafts.save(key, STUDY.text(), None)
    (file,) = drafts.folder.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(drafts.folder.stat().st_mode) == 0o700


@pytest.mark.parametrize("key", ["", "x", "../" * 8 + "etc/passwd", "0" * 31, "A" * 32, "0" * 33])
def test_what_is_no_key_leads_nowhere(drafts, key):
    drafts.save(Drafts.new_key(), "text", None)
    assert drafts.read(key) is None


@pytest.mark.parametrize("content", [b'{"format": "of the future"}', b"", b"\xff\xfe"])
def test_a_draft_that_cannot_be_used_is_told_and_left_as_it_is(drafts, content):
    key = Drafts.new_key()
    drafts.save(key, "text", None)
    drafts.path(key).write_bytes(content)
    with pytest.raises(WorkloadError, match=key):
        drafts.read(key)
    assert not drafts.save(key, "text", None)
    assert drafts.path(key).read_bytes() == content


def test_a_folder_that_cannot_be_made_is_told(tmp_path):
    (tmp_path / "home").write_text("a file")
    with pytest.raises(NotADirectoryError):
        Drafts(tmp_path / "home" / "drafts").save(Drafts.new_key(), "text", None)


def test_the_folder_can_be_named(monkeypatch, tmp_path):
    monkeypatch.setenv("RPEXPLORE_HOME", str(tmp_path))
    assert Drafts.of_user().folder == tmp_path / "drafts"


def test_keys_are_never_repeated():
    keys = {Drafts.new_key() for _ in range(1000)}
    assert len(keys) == 1000


def test_a_user_without_a_home_has_a_folder_all_the_same(monkeypatch):
    def no_home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("RPEXPLORE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    assert Drafts.of_user().folder.name == "drafts"
