"""Ledgers for tests, in files and on a PostgreSQL server, and what somebody else does to them."""

import sqlite3
import struct
from pathlib import Path

import pytest

from rpexplore.releases.ledger.ledger import Ledger
from rpexplore.releases.ledger.ledger_database import LedgerDatabase
from tests.data.engines.servers import Server

KINDS = ("file", "postgresql")
OWNER, BOOKER = "LEDGER_OWNER", "LEDGER"  # connections


def database_ledger(
    server: Server, monkeypatch: pytest.MonkeyPatch, *, sets_limits: bool = True
) -> Ledger:
    """A new ledger on a server, used by a role that may add entries and nothing else.

    sets_limits: also limits and demands, and not runs alone
    """
    server.run(
        "SET client_min_messages = error",
        "DROP SCHEMA IF EXISTS rpexplore_ledger CASCADE",
        *(
            f"DO $$ BEGIN CREATE ROLE {role} LOGIN; EXCEPTION WHEN duplicate_object THEN END $$"
            for role in ("booker", "ledger_owner")
        ),
        "GRANT CREATE ON DATABASE postgres TO ledger_owner",
    )
    monkeypatch.setenv(OWNER, server.url.replace("keeper@", "ledger_owner@"))
    monkeypatch.setenv(BOOKER, server.url.replace("keeper@", "booker@"))
    LedgerDatabase(OWNER).create(("booker",), ("booker",) if sets_limits else ())
    return Ledger(f"postgresql:{BOOKER}")


def tamper(ledger: Ledger, server: Server | None, statement: str) -> None:
    """Run a statement on the tables of a ledger, whatever would keep others from that.

    server: that a ledger in a database is on
    """
    if isinstance(ledger.path, Path):
        connection = sqlite3.connect(ledger.path, isolation_level=None)
        connection.execute(statement)
        connection.close()
        return
    assert server is not None
    server.run(
        "SET session_replication_role = replica", "SET search_path = rpexplore_ledger", statement
    )


def journal_to(earlier: bytes) -> bytes:
    """A rollback journal that makes a database of SQLite what it was earlier.

    https://www.sqlite.org/fileformat.html, section 3: a header, then pages with their checksums.
    """
    page_size, sector, nonce = 4096, 512, 12345
    n_pages = len(earlier) // page_size
    header = bytes.fromhex("d9d505f920a163d7")
    header += struct.pack(">5I", n_pages, nonce, n_pages, sector, page_size)
    journal = header.ljust(sector, b"\0")
    for number in range(n_pages):
        page = earlier[number * page_size : (number + 1) * page_size]
        checksum = (nonce + sum(page[page_size - 200 : 0 : -200])) % 2**32
        journal += struct.pack(">I", number + 1) + page + struct.pack(">I", checksum)
    return journal


def version_1(server: Server) -> None:
    """Make a ledger of version 1 of the one on a server, where whoever booked wrote to tables."""
    server.run(
        "SET client_min_messages = error",
        "DROP FUNCTION rpexplore_ledger.book, rpexplore_ledger.set_limits, "
        "rpexplore_ledger.hold_off_others, rpexplore_ledger.append, rpexplore_ledger.is_sound, "
        "rpexplore_ledger.spent, rpexplore_ledger.ratio, rpexplore_ledger.in_force, "
        "rpexplore_ledger.connected, rpexplore_ledger.own_names_of, "
        "rpexplore_ledger.places_of, rpexplore_ledger.around, rpexplore_ledger.names_of",
        "REVOKE ALL ON ALL TABLES IN SCHEMA rpexplore_ledger FROM booker",
        "GRANT SELECT ON rpexplore_ledger.version TO booker",
        "GRANT SELECT, INSERT ON rpexplore_ledger.events TO booker",
        "GRANT SELECT, UPDATE ON rpexplore_ledger.last TO booker",
        "UPDATE rpexplore_ledger.version SET version = 1",
    )
