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
    """What a dataset's records have been charged so far, and its cap if there is one."""

    dataset: str
    spent_record_rho: Fraction
    cap_record_rho: Fraction | None
    runs: tuple[LedgerEntry, ...]

    @property
    def left_record_rho(self) -> Fraction | None:
        """What may still be spent; None without a cap."""
        if self.cap_record_rho is None:
            return None
        return max(self.cap_record_rho - self.spent_record_rho, Fraction(0))


@dataclass(frozen=True)
class Ledger:
    """The ledger in a file, which is made at the first entry."""

    path: Path

    def __init__(self, path: str | Path) -> None:
        object.__setattr__(self, "path", Path(path).resolve())

    @classmethod
    def beside(cls, data: AnySource) -> "Ledger":
        """The ledger in the folder that a file or folder of records lies in.

        Raises `LedgerError` for records without a folder, those of a database.
        """
        home = source_of(data).home
        if home is None:
            raise LedgerError(
                f"The records {source_of(data).name!r} lie in no folder that could hold their "
                "ledger; name one (the option --ledger), the same for every release of them."
            )
        return cls(home / FILENAME)

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

    def set_cap(self, data: AnySource, record_rho: Fraction | None) -> None:
        """Set or (with None) lift the cap on the total ρ for one record of a dataset.

        Raises `LedgerError` for a cap below what is spent already.
        """
        dataset = self._dataset(data)
        with self._connection() as connection:
            spent = _account(connection, dataset).spent_record_rho
            if record_rho is not None and (record_rho <= 0 or record_rho < spent):
                raise LedgerError(
                    f"The cap for one record must be positive and not below what is spent, "
                    f"{rounded(spent, 9, 'up')}; got {rounded(record_rho, 9)}."
                )
            _note_cap(connection, dataset, record_rho)

    def check(
        self,
        data: AnySource,
        plan: ReleasePlan,
        record_rho: Fraction,
        cap_record_rho: Fraction | None = None,
    ) -> None:
        """Raise `LedgerError` where `book` would; enters nothing."""
        _check_cap(self.account(data), plan, record_rho, cap_record_rho)

    def book(
        self,
        data: AnySource,
        plan: ReleasePlan,
        record_rho: Fraction,
        output: str | Path,
        cap_record_rho: Fraction | None = None,
    ) -> int:
        """Enter a run and return its number; the entry is on disk when this returns.

        cap_record_rho: noted as the dataset's cap if it has none yet. Raises `LedgerError`, and
        enters nothing, if it has another one, or if the run would go beyond its cap.
        """
        dataset, stamp = self._dataset(data), source_of(data).fingerprint()
        with self._connection() as connection:
            _check_cap(_account(connection, dataset), plan, record_rho, cap_record_rho)
            if cap_record_rho is not None:
                _note_cap(connection, dataset, cap_record_rho)
            cursor = connection.execute(
                "INSERT INTO runs (dataset, data_bytes, data_modified, started, plan_sha256, "
                "record_rho, unit, output) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    dataset,
                    stamp.size,
                    stamp.modified,
                    _now(),
                    plan.sha256,
                    exact_text(record_rho),
                    plan.budget.unit,
                    text_of_path(Path(output).resolve()),
                ),
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
    rows = connection.execute(
        "SELECT id, started, plan_sha256, record_rho, finished, output, data_bytes, data_modified "
        "FROM runs "
        "WHERE dataset = ? ORDER BY id",
        (dataset,),
    )
    runs = tuple(
        LedgerEntry(
            number, started, sha256, Fraction(rho), _state(finished), output, size, modified
        )
        for number, started, sha256, rho, finished, output, size, modified in rows
    )
    cap = connection.execute(
        "SELECT cap_record_rho FROM datasets WHERE dataset = ?", (dataset,)
    ).fetchone()
    return Account(
        dataset,
        sum((run.record_rho for run in runs), Fraction(0)),
        Fraction(cap[0]) if cap and cap[0] else None,
        runs,
    )


def _state(finished: str | None) -> str:
    return "finished" if finished else "started"


def _note_cap(connection: sqlite3.Connection, dataset: str, record_rho: Fraction | None) -> None:
    connection.execute(
        "INSERT INTO datasets VALUES (?, ?) ON CONFLICT (dataset) "
        "DO UPDATE SET cap_record_rho = excluded.cap_record_rho",
        (dataset, None if record_rho is None else exact_text(record_rho)),
    )


def _check_cap(
    account: Account, plan: ReleasePlan, record_rho: Fraction, wanted_cap: Fraction | None
) -> None:
    """Raise `LedgerError` for another cap than the noted one, or a run beyond it."""
    unit, cap = plan.budget.unit, account.cap_record_rho

    def for_unit(rho: Fraction, mode: str) -> str:
        return f"ρ = {rounded(rho * plan.budget.records_factor, 9, mode)}"

    if cap is not None and wanted_cap is not None and cap != wanted_cap:
        raise LedgerError(
            f"The ledger has another cap for the dataset {account.dataset!r}, "
            f"{for_unit(cap, 'down')} for {unit}; leave the cap out here, or change it "
            "first (rpexplore ledger)."
        )
    cap = wanted_cap if cap is None else cap
    if cap is not None and account.spent_record_rho + record_rho > cap:
        left = max(cap - account.spent_record_rho, Fraction(0))
        raise LedgerError(
            f"This run costs {for_unit(record_rho, 'up')} for {unit}, and the dataset "
            f"{account.dataset!r} has only {for_unit(left, 'down')} left of its cap of "
            f"{for_unit(cap, 'down')}; plan with a smaller budget, or have the "
            "cap raised (rpexplore ledger)."
        )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
