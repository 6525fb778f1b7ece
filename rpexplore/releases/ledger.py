"""Ledger: what has been spent on each dataset. A run is entered before its noise is drawn.

One SQLite file, beside the data unless told otherwise. Files are known by their path as seen from
the ledger's folder, so that data and ledger can move together, tables of a database by server and
name; size and time of change are noted, a row count is not. All amounts are ρ for one record, as
exact rationals in text; a plan that protects a person with at most m records shows them times m².
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

from rpexplore.common.exact_numbers import exact_text
from rpexplore.common.formatting import rounded, text_of_path
from rpexplore.data.files.listing import LEDGER
from rpexplore.data.files.source import AnySource, source_of
from rpexplore.errors import LedgerError
from rpexplore.planning.release_plan import ReleasePlan

FILENAME = LEDGER

_SCHEMA = """
CREATE TABLE IF NOT EXISTS datasets (
    dataset TEXT PRIMARY KEY,
    cap_record_rho TEXT
);
CREATE TABLE IF NOT EXISTS runs (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    dataset TEXT NOT NULL,
    data_bytes INTEGER NOT NULL,
    data_modified TEXT NOT NULL,
    started TEXT NOT NULL,
    finished TEXT,
    plan_sha256 TEXT NOT NULL,
    record_rho TEXT NOT NULL,
    unit TEXT NOT NULL,
    output TEXT NOT NULL
);
"""


@dataclass(frozen=True)
class LedgerEntry:
    """One entry: a run that was started, and is charged whether or not it finished."""

    id: int
    started: str
    plan_sha256: str
    record_rho: Fraction
    state: str  # "started" or "finished"
    output: str
    data_bytes: int = 0
    data_modified: str = ""


@dataclass(frozen=True)
class Account:
    """What a dataset's records have been charged so far, and its budget limit if there is one."""

    dataset: str
    spent_record_rho: Fraction
    limit_record_rho: Fraction | None
    runs: tuple[LedgerEntry, ...]


@dataclass(frozen=True)
class Ledger:
    """The ledger in a file, which is made at the first entry.

    Example:
        >>> import tempfile, pandas, rpexplore as rp
        >>> records = rp.FrameSource(pandas.DataFrame({"sex": ["f", "m"]}), name="survey")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     ledger = rp.Ledger(f"{folder}/ledger.sqlite")
        ...     ledger.set_limit(records, Fraction(1, 2))
        ...     account = ledger.account(records)
        >>> account.dataset, account.spent_record_rho, account.limit_record_rho
        ('survey', Fraction(0, 1), Fraction(1, 2))
    """

    path: Path

    def __init__(self, path: str | Path) -> None:
        object.__setattr__(self, "path", Path(path).resolve())

    @classmethod
    def beside(cls, data: AnySource) -> "Ledger":
        """The ledger in the folder that a file or folder of records lies in.

        Raises `LedgerError` for records without a folder, those of a database.
        """
        source = source_of(data)
        if source.home is None:
            raise LedgerError(
                f"The records {source.name!r} lie in no folder that could hold their ledger; name "
                "one (the option --ledger), the same for every release of them."
            )
        return cls(source.home / FILENAME)

    def account(self, data: AnySource) -> Account:
        """What the ledger holds on a data file; nothing spent if it does not know it."""
        dataset = self._dataset(data)
        if not self.path.exists():
            return Account(dataset, Fraction(0), None, ())
        with self._connection() as connection:
            return _account(connection, dataset)

    def accounts(self) -> tuple[Account, ...]:
        """What the ledger holds on every dataset, by name; none if there is no ledger yet."""
        if not self.path.exists():
            return ()
        with self._connection() as connection:
            names = connection.execute(
                "SELECT dataset FROM runs UNION SELECT dataset FROM datasets"
            )
            return tuple(_account(connection, name) for name in sorted(row[0] for row in names))

    def entry(self, entry_id: int) -> LedgerEntry | None:
        """An entry by its number; None if the ledger has none."""
        entries = (entry for account in self.accounts() for entry in account.runs)
        return next((entry for entry in entries if entry.id == entry_id), None)

    def set_limit(self, data: AnySource, record_rho: Fraction | None) -> None:
        """Set or (with None) lift the limit on the total ρ for one record of a dataset.

        Raises `LedgerError` for a limit below what is spent already.
        """
        dataset = self._dataset(data)
        with self._connection() as connection:
            spent = _account(connection, dataset).spent_record_rho
            if record_rho is not None and (record_rho <= 0 or record_rho < spent):
                raise LedgerError(
                    "The budget limit for one record must be positive and not below what is spent, "
                    f"{rounded(spent, 9, 'up')}; got {rounded(record_rho, 9)}."
                )
            _note_limit(connection, dataset, record_rho)

    def check(
        self,
        data: AnySource,
        plan: ReleasePlan,
        record_rho: Fraction,
        limit_record_rho: Fraction | None = None,
    ) -> None:
        """Raise `LedgerError` where `book` would; enters nothing."""
        _check_limit(self.account(data), plan, record_rho, limit_record_rho)

    def book(
        self,
        data: AnySource,
        plan: ReleasePlan,
        record_rho: Fraction,
        output: str | Path,
        limit_record_rho: Fraction | None = None,
    ) -> int:
        """Enter a run and return its number; the entry is on disk when this returns.

        limit_record_rho: noted as the dataset's limit if it has none yet. Raises `LedgerError`, and
        enters nothing, if it has another one, or if the run would go beyond its limit.
        """
        dataset, fingerprint = self._dataset(data), source_of(data).fingerprint()
        row = {
            "dataset": dataset,
            "data_bytes": fingerprint.size,
            "data_modified": fingerprint.modified,
            "started": _now(),
            "plan_sha256": plan.sha256,
            "record_rho": exact_text(record_rho),
            "unit": plan.budget.unit,
            "output": text_of_path(Path(output).resolve()),
        }
        with self._connection() as connection:
            _check_limit(_account(connection, dataset), plan, record_rho, limit_record_rho)
            if limit_record_rho is not None:
                _note_limit(connection, dataset, limit_record_rho)
            cursor = connection.execute(
                f"INSERT INTO runs ({', '.join(row)}) VALUES (:{', :'.join(row)})", row
            )
            assert cursor.lastrowid is not None
            return cursor.lastrowid

    def finish(self, entry_id: int) -> None:
        """Note that a run has been written; what it cost was booked before."""
        with self._connection() as connection:
            connection.execute("UPDATE runs SET finished = ? WHERE id = ?", (_now(), entry_id))

    def _dataset(self, data: AnySource) -> str:
        return source_of(data).dataset(self.path.parent)

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        """A write transaction: nobody else enters a run between the check and the entry."""
        try:
            connection = sqlite3.connect(self.path, timeout=30, isolation_level=None)
            try:
                connection.row_factory = sqlite3.Row
                connection.execute("PRAGMA synchronous = EXTRA")
                connection.execute("BEGIN IMMEDIATE")
                for statement in _SCHEMA.split(";"):
                    connection.execute(statement)
                yield connection
                connection.execute("COMMIT")
            finally:
                connection.close()  # rolls back what was not committed
        except (sqlite3.Error, ValueError, ZeroDivisionError) as error:
            raise LedgerError(
                f"The ledger {str(self.path)!r} cannot be used ({error}); check that its folder "
                "can be written to, or name another ledger."
            ) from None


def _account(connection: sqlite3.Connection, dataset: str) -> Account:
    rows = connection.execute("SELECT * FROM runs WHERE dataset = ? ORDER BY id", (dataset,))
    runs = tuple(
        LedgerEntry(
            row["id"],
            row["started"],
            row["plan_sha256"],
            Fraction(row["record_rho"]),
            "finished" if row["finished"] else "started",
            row["output"],
            row["data_bytes"],
            row["data_modified"],
        )
        for row in rows
    )
    limit = connection.execute(
        "SELECT cap_record_rho FROM datasets WHERE dataset = ?", (dataset,)
    ).fetchone()
    return Account(
        dataset,
        sum((run.record_rho for run in runs), Fraction(0)),
        Fraction(limit[0]) if limit and limit[0] else None,
        runs,
    )


def _note_limit(connection: sqlite3.Connection, dataset: str, record_rho: Fraction | None) -> None:
    connection.execute(
        "INSERT INTO datasets VALUES (?, ?) ON CONFLICT (dataset) "
        "DO UPDATE SET cap_record_rho = excluded.cap_record_rho",
        (dataset, None if record_rho is None else exact_text(record_rho)),
    )


def _check_limit(
    account: Account, plan: ReleasePlan, record_rho: Fraction, wanted_limit: Fraction | None
) -> None:
    """Raise `LedgerError` for another limit than the noted one, or a run beyond it."""
    unit, limit = plan.budget.unit, account.limit_record_rho

    def for_unit(rho: Fraction, mode: str) -> str:
        return f"ρ = {rounded(rho * plan.budget.records_factor, 9, mode)}"

    if limit is not None and wanted_limit not in (None, limit):
        raise LedgerError(
            f"The ledger has another budget limit for the dataset {account.dataset!r}, "
            f"{for_unit(limit, 'down')} for {unit}; leave the limit out here, or change it first "
            "(rpexplore ledger)."
        )
    limit = wanted_limit if limit is None else limit
    if limit is not None and account.spent_record_rho + record_rho > limit:
        left = max(limit - account.spent_record_rho, Fraction(0))
        raise LedgerError(
            f"This run costs {for_unit(record_rho, 'up')} for {unit}, and the dataset "
            f"{account.dataset!r} has only {for_unit(left, 'down')} left of its budget limit of "
            f"{for_unit(limit, 'down')}; plan with a smaller budget, or have the limit raised "
            "(rpexplore ledger)."
        )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
