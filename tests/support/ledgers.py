"""Ledgers for tests, in files and on a PostgreSQL server, and what somebody else does to them."""

import sqlite3
from pathlib import Path

import pytest

from rpexplore.releases.ledger.ledger import Ledger
from rpexplore.releases.ledger.ledger_database import LedgerDatabase
from tests.data.engines.servers import Server

KINDS = ("file", "postgresql")
OWNER, BOOKER = "LEDGER_OWNER", "LEDGER"  # connections


def database_ledger(server: Server, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    """A new ledger on a server, used by a role that may add entries and nothing else."""
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
    LedgerDatabase(OWNER).create(("booker",))
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
