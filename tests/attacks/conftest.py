"""Records that the attacks on accounts and ledgers are about."""

from pathlib import Path

import pytest

from rpexplore.releases.release import release
from tests.attacks.books import PLAN


@pytest.fixture
def folder(tmp_path) -> Path:
    folder = tmp_path / "survey"
    folder.mkdir()
    for name, records in (("one.csv", "a\n0\n1\n"), ("two.csv", "a\n1\n1\n")):
        (folder / name).write_text(records)
    return folder


@pytest.fixture
def named(folder, tmp_path) -> Path:
    """A ledger on a share, in which one.csv is charged."""
    named = tmp_path / "share" / "ledger.sqlite"
    named.parent.mkdir()
    release(PLAN, folder / "one.csv", tmp_path / "out", ledger=named)
    return named


@pytest.fixture
def data(tmp_path) -> Path:
    path = tmp_path / "survey" / "records.csv"
    path.parent.mkdir()
    path.write_text("a\n0\n1\n")
    return path


@pytest.fixture
def no_noise(monkeypatch):
    def draw(*_):
        raise AssertionError("noise was drawn")

    monkeypatch.setattr("rpexplore.releases.release.write_measured", draw)
