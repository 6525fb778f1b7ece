"""Attacks on a ledger in a file by those who may write to it: swallowed bookings, other names.

Nobody can be kept from writing; the attack is noticed before noise is drawn.
"""

import json
import os
import pwd
import sqlite3
from fractions import Fraction
from pathlib import Path

import pytest

import rpexplore as rp
from rpexplore.data.files.source import FileSource
from rpexplore.errors import LedgerError
from rpexplore.releases.ledger import ledger as ledger_module
from rpexplore.releases.ledger.ledger import Ledger
from tests.attacks.books import THIRD, costing, in_command, run_of

SWALLOWED = {
    "the entry": "CREATE TRIGGER t AFTER INSERT ON events BEGIN DELETE FROM events "
    "WHERE id = new.id; END",
    "and that it is the last": "CREATE TRIGGER u AFTER UPDATE ON last BEGIN UPDATE last SET "
    "n_events = old.n_events, digest = old.digest; END",
}


def in_file(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    for statement in statements:
        connection.execute(statement)
    connection.close()


@pytest.mark.parametrize(
    "statements",
    [
        [*SWALLOWED.values()],
        ["CREATE VIEW v AS SELECT * FROM events"],
        ["CREATE TABLE t (a)"],
        ["CREATE INDEX i ON events (kind)"],
        [
            "CREATE TABLE kept AS SELECT * FROM events",
            "DROP TABLE events",
            "CREATE VIEW events AS SELECT * FROM kept",
        ],
    ],
    ids=["triggers", "a view", "a table", "an index", "a view for the table"],
)
def test_a_file_with_what_this_program_does_not_make_is_no_ledger(
    statements, data, tmp_path, no_noise
):
    book = Ledger.beside(data)
    book.set_limit(data, Fraction(1))
    assert book.path is not None
    in_file(book.path, *statements)
    for refused in (book.accounts, lambda: rp.release(THIRD, data, tmp_path / "out")):
        with pytest.raises(LedgerError, match=r"holds a .* that this program has not made"):
            refused()


def test_a_booking_that_a_trigger_swallows_is_noticed_before_noise_is_drawn(
    data, tmp_path, monkeypatch, no_noise
):
    """Even if the trigger itself were not seen: what was entered is read again after the commit."""
    book = Ledger.beside(data)
    book.set_limit(data, Fraction(1))
    assert book.path is not None
    in_file(book.path, *SWALLOWED.values())
    monkeypatch.setattr("rpexplore.releases.ledger.ledger_file._OBJECTS", "SELECT 1 WHERE 0")
    with pytest.raises(LedgerError, match=r"has not kept what was entered.*Nothing was charged"):
        rp.release(THIRD, data, tmp_path / "out")


def test_a_ledger_replaced_while_a_run_is_booked_is_noticed(data, tmp_path, monkeypatch, no_noise):
    """The commit goes to a file that has no name any more."""
    book = Ledger.beside(data)
    book.set_limit(data, Fraction(1))
    assert book.path is not None
    path, copy, add = book.path, book.path.read_bytes(), ledger_module.LedgerTransaction.add

    def replaced(transaction, kind, content):
        number = add(transaction, kind, content)
        if kind == "run":
            path.unlink()
            path.write_bytes(copy)
        return number

    monkeypatch.setattr(ledger_module.LedgerTransaction, "add", replaced)
    with pytest.raises(LedgerError, match="has not kept what was entered"):
        rp.release(THIRD, data, tmp_path / "out")


def test_the_user_of_an_entry_is_not_what_the_environment_says(data, monkeypatch):
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.setenv(name, "somebody")
    book = Ledger.beside(data)
    book.book(data, THIRD, "out")
    (entry,) = book.account(data).entries
    assert entry.user == pwd.getpwuid(os.getuid()).pw_name


LONG = [f"1/{10**3998}", f"1/{10**3998 + 7}", f"1/{'3' * 3999}"]  # servers once took these


def test_amounts_of_thousands_of_digits_add_up(data, tmp_path, monkeypatch):
    """Their exact sum has 12,000 digits, which Python does not read; it is rounded up."""
    book = Ledger(tmp_path / "elsewhere.sqlite")
    names = [*book._names(FileSource(data))]
    with book.store.transaction() as events:
        for amount in LONG:
            events.add("run", run_of(book, data, names=names, record_rho=amount))
    book.book(data, costing("1/3"), "out")
    spent = book.account(data).spent_record_rho
    assert 0 < spent - Fraction(1, 3) <= Fraction(4, 10**400)
    book.set_limit(data, Fraction(1))  # which notes beside the records what is spent
    (noted,) = Ledger.beside(data).account(data).elsewhere
    assert noted.known.spent_record_rho == spent
    said = in_command(data, "--ledger", book.name, "--json")
    assert json.loads(said)["runs"][0]["record_rho"] == f"0.{'0' * 3997}1"


def test_what_could_not_be_read_again_is_not_entered(data):
    """Texts of amounts hold 400 decimals."""
    book = Ledger.beside(data)
    with pytest.raises(LedgerError, match="cannot be added to the ledger: the amount"):
        book.set_limit(data, Fraction(1, 10**401))
    book.set_limit(data, Fraction(1, 10**400))
    assert book.account(data).limit_record_rho == Fraction(1, 10**400)
