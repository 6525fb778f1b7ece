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
