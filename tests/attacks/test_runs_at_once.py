"""Runs on a file and on its folder, booked at the same moment: no noise while two ledgers count."""

import sqlite3
from contextlib import closing
from fractions import Fraction

import pytest

from rpexplore.errors import LedgerError, ReleaseError
from rpexplore.releases import atomic_folder
from rpexplore.releases.ledger import ledger_file
from rpexplore.releases.ledger.ledger import FILENAME, Ledger
from rpexplore.releases.release import release
from tests.attacks.books import PLAN, n_runs


@pytest.fixture
def folder_is_released_first(folder, tmp_path, monkeypatch):
    """The folder is released after the run on its file has looked, and before that is booked."""
    real = Ledger.book

    def book(self, *arguments, **options):
        monkeypatch.setattr(Ledger, "book", real)
        release(PLAN, folder, tmp_path / "of_folder", limit_rho=Fraction(1, 2))
        return real(self, *arguments, **options)

    monkeypatch.setattr(Ledger, "book", book)


def test_a_file_and_its_folder_at_once_draw_noise_when_their_ledgers_are_merged(
    folder, tmp_path, folder_is_released_first
):
    data, output = folder / "one.csv", tmp_path / "of_file"
    both = Ledger(tmp_path / FILENAME)
    with pytest.raises(LedgerError, match=r"The run is charged in .* merge the two ledgers"):
        release(PLAN, data, output)
    assert not output.exists()
    with pytest.raises(LedgerError, match="accounts in two ledgers"):
        release(PLAN, data, output)
    both.merge(Ledger(folder / FILENAME))
    with pytest.raises(LedgerError, match=r"more than its budget limit of 0\.5"):
        release(PLAN, data, output)
    both.set_limit(folder, Fraction(1))
    release(PLAN, data, output)
    assert n_runs(data) == n_runs(folder) == 2


def test_a_ledger_that_another_program_holds_is_not_said_to_lack_rights(tmp_path):
    path = tmp_path / FILENAME
    with closing(sqlite3.connect(path, isolation_level=None)) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        with (
            pytest.raises(LedgerError, match="another program holds it: try again"),
            closing(sqlite3.connect(path, timeout=0)) as waiting,
            ledger_file._refusing(path),
        ):
            waiting.execute("CREATE TABLE events (id)")


def test_a_run_that_comes_too_late_leaves_no_unfinished_folder(tmp_path, monkeypatch):
    """Another run ends between the first look at the output and the lock."""
    records, out = tmp_path / "records.csv", tmp_path / "a release"
    records.write_text("a\n0\n1\n")
    open_folder = atomic_folder._open_folder

    def opened_late(folder):
        out.mkdir()
        return open_folder(folder)

    monkeypatch.setattr(atomic_folder, "_open_folder", opened_late)
    with pytest.raises(ReleaseError, match="already something at"):
        release(PLAN, records, out)
    assert [path.name for path in tmp_path.iterdir() if "unfinished" in path.name] == []
