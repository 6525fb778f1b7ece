"""What a ledger knows records by: one account, whatever they are called and wherever they lie."""

import os
import shutil
from fractions import Fraction
from pathlib import Path

import pytest

from rpexplore.data.engines.connections import ENGINES
from rpexplore.data.source import place_in_name
from rpexplore.errors import LedgerError
from rpexplore.releases.ledger.ledger import FILENAME, Ledger
from tests.releases.ledger.test_ledger import costing, spent
from tests.releases.ledger.test_ledger import data as data
from tests.releases.ledger.test_ledger import in_file as in_file


@pytest.fixture
def ledger(in_file) -> Ledger:
    """Beside the data: that of a database names them otherwise (test_ledger_database.py)."""
    return in_file


def test_the_same_file_under_other_paths_is_the_same_dataset(ledger, data, tmp_path, monkeypatch):
    link, folder_link = tmp_path / "link.csv", tmp_path / "folder-link"
    link.symlink_to(data)
    folder_link.symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path / "sub")
    same = [
        data,
        str(data),
        link,
        Path("../records.csv"),
        tmp_path / "sub" / ".." / "records.csv",
        folder_link / "records.csv",
        folder_link / "link.csv",
    ]
    for path in same:
        Ledger.beside(path).book(path, costing(Fraction(1)), "out")
    for path in same:
        assert Ledger.beside(path).path == ledger.path
        assert spent(ledger, path) == len(same)


def test_a_link_elsewhere_leads_to_the_ledger_beside_the_data(data, tmp_path_factory):
    link = tmp_path_factory.mktemp("elsewhere") / "records.csv"
    link.symlink_to(data)
    assert Ledger.beside(link).path == data.parent / FILENAME


@pytest.mark.parametrize("name", ["sub/records.csv", "sub.csv"])
def test_data_and_ledger_move_together(name, tmp_path):
    here, there = tmp_path / "here", tmp_path / "there"
    data = here / name
    data.parent.mkdir(parents=True)
    data.touch()
    Ledger(here / "ledger.sqlite").book(data, costing(Fraction(1, 3)), "out")
    shutil.move(here, there)
    assert spent(Ledger(there / "ledger.sqlite"), there / name) == Fraction(1, 3)


def test_changed_contents_stay_the_same_dataset(ledger, data):
    ledger.book(data, costing(Fraction(1)), "out")
    data.write_text("a\n0\n")
    os.utime(data, (1, 1))
    assert spent(ledger, data) == 1


def test_a_name_that_is_no_text_is_booked_or_refused(tmp_path):
    """Linux file names are bytes; these are no UTF-8, which is what SQLite keeps."""
    data = tmp_path / os.fsdecode(b"records-\xff.csv")
    data.touch()
    try:
        Ledger.beside(data).book(data, costing(Fraction(1)), "out")
    except LedgerError:
        return
    assert spent(Ledger.beside(data), data) == 1


def test_a_ledger_in_a_folder_whose_name_is_no_text_books(data, tmp_path):
    folder = tmp_path / os.fsdecode(b"ledgers-\xff")
    folder.mkdir()
    ledger = Ledger(folder / "ledger.sqlite")
    for n in (1, 2):  # the end that is remembered of the first is found by the second
        ledger.book(data, costing(Fraction(1)), "out")
        assert spent(ledger, data) == n


def test_a_renamed_moved_or_linked_file_keeps_its_account(ledger, data, tmp_path):
    ledger.book(data, costing(Fraction(1)), "out")
    (tmp_path / "sub").mkdir()
    for name in ("renamed.csv", "sub/moved.csv"):
        data = data.rename(tmp_path / name)
        assert spent(ledger, data) == 1
    (tmp_path / "hard.csv").hardlink_to(data)
    assert spent(ledger, tmp_path / "hard.csv") == 1
    (tmp_path / "soft.csv").symlink_to(data)
    ledger.book(tmp_path / "soft.csv", costing(Fraction(1)), "out")
    assert spent(ledger, data) == 2
    assert [account.dataset for account in ledger.accounts()] == ["sub/moved.csv"]


def test_a_copy_is_another_dataset(ledger, data, tmp_path):
    ledger.book(data, costing(Fraction(1)), "out")
    shutil.copy2(data, tmp_path / "copy.csv")
    assert spent(ledger, tmp_path / "copy.csv") == 0


def test_a_new_file_that_gets_the_number_of_a_removed_one_is_another_dataset(ledger, data):
    ledger.book(data, costing(Fraction(1)), "out")
    content = data.read_text()
    data.unlink()
    new = data.with_name("new.csv")
    new.write_text(content)
    assert spent(ledger, new) == 0


def test_accounts_that_turn_out_to_be_one_are_added_up(ledger, data, tmp_path):
    """Two files are charged, then one takes the place of the other."""
    second = tmp_path / "second.csv"
    second.write_text("a\n1\n")
    ledger.book(data, costing(Fraction(1)), "out")
    ledger.book(second, costing(Fraction(2)), "out")
    second.replace(data)
    assert spent(ledger, data) == 3
    ledger.book(data, costing(Fraction(4)), "out")
    (account,) = ledger.accounts()
    assert account.spent_record_rho == 7


def test_names_of_tables_are_no_paths():
    """They begin with the engine, or by ADBC with the kind of server."""
    for engine in ENGINES.values():
        kinds = engine.schemes if engine.name == "adbc" else (engine.name,)
        for kind in kinds:
            name = f"{kind.removeprefix('adbc+')}:any"
            assert place_in_name(Path("/data"), name) == (name, frozenset())
