"""Where a ledger is kept, and how that is named: the path of a file, or postgresql:NAME.

NAME is that of a connection (an environment variable, or an entry in the file of secrets), never an
address. So a name can be noted, shown and passed on.
"""

import os
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from rpexplore.data.databases.connections import ENGINES
from rpexplore.errors import LedgerError
from rpexplore.releases.ledger.event_chain import LedgerTransaction
from rpexplore.releases.ledger.events import Event
from rpexplore.releases.ledger.ledger_database import ENGINE, LedgerDatabase
from rpexplore.releases.ledger.ledger_file import LedgerFile


class LedgerStore(Protocol):
    """Where the events of a ledger are kept, each chained to the one before."""

    @property
    def name(self) -> str:
        """What `store_of` finds it by: holds no address of a server, and no password."""
        ...

    @property
    def path(self) -> Path | None:
        """The file; None for a database."""
        ...

    @property
    def folder(self) -> Path | None:
        """What names of records in files are seen from; None where several machines share it."""
        ...

    def read_events(self) -> list[Event]:
        """All events in their order. Raises `LedgerError` if they cannot be read, or were changed
        by something else."""
        ...

    def settled_events(self) -> list[Event]:
        """As `read_events`, when whoever was adding some is done, or has failed."""
        ...

    def transaction(self) -> AbstractContextManager[LedgerTransaction]:
        """What is added in the block is on disk when it ends, and not there if it ends badly.

        Nobody else can add events meanwhile. Raises `LedgerError`; if it does so at the end, only
        `settled_events` tell what is there.
        """
        ...

    def check_bookable(self) -> None:
        """Raise `LedgerError` where it is plain that nothing can be added."""
        ...


def store_of(place: str | Path) -> LedgerStore:
    """Where the ledger of this name is kept: a path (a `Path` always is one), or postgresql:NAME.

    Raises `LedgerError` for an address, and for what could be meant either way.
    """
    if not is_database(place):
        return LedgerFile(Path(os.path.realpath(place)))
    connection = str(place).strip().partition(":")[2]
    if "/" in connection or "@" in connection:  # it may hold a password, so it is not said again
        raise LedgerError(
            "A ledger in PostgreSQL must be given by the name of a connection, as postgresql:NAME, "
            "not by its address; keep the address in an environment variable, or in the file of "
            "secrets, and give the name of that."
        )
    database = LedgerDatabase(connection)
    if isinstance(place, Path) or os.path.lexists(place):
        raise LedgerError(
            f"{str(place)!r} can be a file, or a ledger in PostgreSQL; name the file with its "
            "folder, as a whole path, or the ledger as a text where no file has its name."
        )
    return database


def is_database(place: str | Path) -> bool:
    """Whether this names no file: it begins with postgresql: (or postgres:)."""
    scheme, colon, _ = str(place).strip().partition(":")
    return bool(colon) and scheme.lower() in ENGINES[ENGINE].schemes
