"""Overlapping records: a folder and a file in it must not be charged apart, unseen."""

from contextlib import suppress
from pathlib import Path

from rpexplore.data.files.source import FileSource
from rpexplore.data.source import Source
from rpexplore.errors import LedgerError
from rpexplore.releases.ledger import FILENAME, Ledger


def refuse_overlaps(ledger: Ledger, source: Source) -> None:
    """Raise `LedgerError` if records that lie in these, or around them, have runs of their own, or
    if these have some in another ledger.

    Looks into the ledger, into those that lie in the folders around the records, and, for a folder,
    into those that lie in it.
    """
    if not isinstance(source, FileSource):
        return
    path = source.path.resolve()
    around = [folder / FILENAME for folder in path.parents]
    inside = list(path.rglob(FILENAME)) if path.is_dir() else []
    further = [file for file in (*around, *inside) if file != ledger.path and file.is_file()]
    for book in (ledger, *map(Ledger, further)):
        for booked in _booked_paths(book):
            if booked == path and book != ledger:
                raise LedgerError(
                    f"The ledger {str(book.path)!r} has runs on these records already; use that "
                    "one, so that all they cost stands in one place."
                )
            if booked in path.parents or path in booked.parents:
                how = "which they lie in" if booked in path.parents else "which lies in them"
                raise LedgerError(
                    f"The ledger {str(book.path)!r} has runs on {str(booked)!r}, {how}: what the "
                    f"records {str(source.path)!r} cost would be counted apart. Name the records "
                    "as in those runs."
                )


def _booked_paths(ledger: Ledger) -> list[Path]:
    """The files and folders that the ledger has runs on."""
    # Others than the one in use may be somebody else's, and closed to us.
    with suppress(LedgerError, OSError):
        folder = ledger.path.parent
        return [
            (folder / account.dataset).resolve() for account in ledger.accounts() if account.runs
        ]
    return []
