"""Whether releases are of the same records, as far as a ledger knows them.

A run is known by its plan and by the folder it was written to. The folder may have been moved or
renamed since; then its last name decides, and else every run of the plan.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rpexplore.errors import LedgerError, ReleaseError
from rpexplore.releases.ledger import Ledger, LedgerEntry


@dataclass(frozen=True)
class RunId:
    """A run, as whoever holds its release knows it.

    folder: where the release lies, the whole path or its last name alone
    """

    plan_sha256: str
    folder: str


def refuse_other_records(ledger: str | Path, runs: Sequence[RunId]) -> None:
    """Raise `ReleaseError` if the ledger knows two of the runs, and by different records.

    What it does not know, or cannot tell apart, is passed over. Raises `LedgerError` if there is no
    ledger that can be read.
    """
    booked = _booked(Path(ledger))
    known = [(run, datasets) for run in runs if (datasets := _datasets(run, booked))]
    for place, (run, datasets) in enumerate(known):
        for other, of_other in known[:place]:
            if not datasets & of_other:
                raise ReleaseError(
                    f"By the ledger the releases {Path(other.folder).name!r} and "
                    f"{Path(run.folder).name!r} are of different records, {min(of_other)!r} and "
                    f"{min(datasets)!r}; only releases of the same records can be combined."
                )


def _datasets(run: RunId, booked: Sequence[tuple[str, str, str]]) -> set[str]:
    """The datasets that the run may have been on; none if the ledger does not know it."""
    of_plan = [(dataset, output) for dataset, sha256, output in booked if sha256 == run.plan_sha256]
    here = {dataset for dataset, output in of_plan if output == run.folder}
    name = Path(run.folder).name
    moved = {dataset for dataset, output in of_plan if Path(output).name == name}
    return here or moved or {dataset for dataset, _ in of_plan}


def _booked(ledger: Path) -> list[tuple[str, str, str]]:
    """(records, plan_sha256, output) of every run: the dataset, and its state where it is known."""
    if not ledger.is_file():
        raise LedgerError(f"There is no ledger at {str(ledger)!r}; check the path.")
    return [
        (f"{account.dataset}{_state_of(run)}", run.plan_sha256, run.output)
        for account in Ledger(ledger).accounts()
        for run in account.runs
    ]


def _state_of(run: LedgerEntry) -> str:
    if not run.data_modified:
        return ""
    return f" as of {run.data_modified} ({run.data_bytes:,} bytes)"
