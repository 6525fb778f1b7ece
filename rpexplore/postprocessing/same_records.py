"""Whether releases are of the same records, as far as a ledger knows them.

A run is known by its plan and by the folder it was written to. The folder may have been moved or
renamed since; then its last name decides, and else every run of the plan.
"""

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import TypeAlias

from rpexplore.errors import LedgerError, ReleaseError
from rpexplore.releases.ledger import Ledger

RunId: TypeAlias = tuple[str, str]
"""(SHA-256 of the plan, where its release lies: the whole path or its last name alone)."""


def refuse_other_records(ledger: str | Path, runs: Sequence[RunId]) -> None:
    """Raise `ReleaseError` if the ledger knows two of the runs, and by different records.

    What it does not know, or cannot tell apart, is passed over. Raises `LedgerError` if there is no
    ledger that can be read.
    """
    booked = _booked(Path(ledger))
    known = [(run, records) for run in runs if (records := _records_of(run, booked))]
    for (left, left_records), (right, right_records) in combinations(known, 2):
        if left_records.isdisjoint(right_records):
            raise ReleaseError(
                f"By the ledger the releases {Path(left[1]).name!r} and "
                f"{Path(right[1]).name!r} are of different records, {min(left_records)!r} and "
                f"{min(right_records)!r}; only releases of the same records can be combined."
            )


def _records_of(run: RunId, booked: Sequence[tuple[str, str, str]]) -> set[str]:
    """The records that the run may have been on; none if the ledger does not know it."""
    plan_sha256, folder = run
    of_plan = [(records, output) for records, sha256, output in booked if sha256 == plan_sha256]
    here = {records for records, output in of_plan if output == folder}
    name = Path(folder).name
    moved = {records for records, output in of_plan if Path(output).name == name}
    return here or moved or {records for records, _ in of_plan}


def _booked(ledger: Path) -> list[tuple[str, str, str]]:
    """(records, plan_sha256, output) of every run: the dataset, and its state where it is known."""
    if not ledger.is_file():
        raise LedgerError(f"There is no ledger at {str(ledger)!r}; check the path.")
    booked = []
    for account in Ledger(ledger).accounts():
        for run in account.runs:
            records = account.dataset
            if run.data_modified:
                records += f" as of {run.data_modified} ({run.data_bytes:,} bytes)"
            booked.append((records, run.plan_sha256, run.output))
    return booked
