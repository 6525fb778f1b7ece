"""Whether releases are of the same records, as far as a ledger knows them."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

from rpexplore.errors import LedgerError, ReleaseError

if TYPE_CHECKING:
    from rpexplore.releases.ledger.account import LedgerEntry
    from rpexplore.releases.ledger.ledger import Ledger

# A finished run is known by the manifest that it wrote. One of which only the start is noted is
# known by its plan and the folder it was written to; if that was moved or renamed since, by its
# last name, and else it may be every such run of the plan.


@dataclass(frozen=True)
class ReleaseId:
    """What a release is known by: its plan, its manifest, and its folder or the last name of it."""

    plan_sha256: str
    manifest_sha256: str
    folder: str


def refuse_other_records(ledger: str | Path, releases: Sequence[ReleaseId]) -> None:
    """Raise `ReleaseError` if the ledger knows two of the releases, and by different records.

    What it does not know, or cannot tell apart, is passed over; but if it has only finished runs of
    a plan, one of them must have written the manifest. Raises `LedgerError` if there is no ledger
    that can be read.
    """
    from rpexplore.releases.ledger.ledger import Ledger  # which a planning server never loads

    booked = _booked(Ledger(ledger))
    known = [(each, records) for each in releases if (records := _records_of(each, booked, ledger))]
    for (left, left_records), (right, right_records) in combinations(known, 2):
        if left_records.isdisjoint(right_records):
            raise ReleaseError(
                f"By the ledger the releases {Path(left.folder).name!r} and "
                f"{Path(right.folder).name!r} are of different records, {min(left_records)!r} and "
                f"{min(right_records)!r}; only releases of the same records can be combined."
            )


def _records_of(
    release: ReleaseId, booked: "Sequence[tuple[str, LedgerEntry]]", ledger: str | Path
) -> set[str]:
    """The records that a release may be of; none if the ledger does not know it."""
    of_plan = [each for each in booked if each[1].plan_sha256 == release.plan_sha256]
    if not of_plan:  # a plan of a rest is booked as its first plan: the manifest is known
        manifest = release.manifest_sha256
        of_plan = [each for each in booked if manifest and each[1].manifest_sha256 == manifest]
    for wanted in (release.manifest_sha256, ""):
        entries = [each for each in of_plan if each[1].manifest_sha256 == wanted]
        if entries:
            break
    else:
        if not of_plan:
            return set()
        raise ReleaseError(
            f"The manifest of {Path(release.folder).name!r} is none that the ledger "
            f"{str(ledger)!r} holds for runs of its plan; use the original folder, or name the "
            "ledger of its run."
        )
    here = {records for records, entry in entries if entry.output == release.folder}
    name = Path(release.folder).name
    moved = {records for records, entry in entries if Path(entry.output).name == name}
    return here or moved or {records for records, _ in entries}


def _booked(ledger: "Ledger") -> "list[tuple[str, LedgerEntry]]":
    """Every run, behind its records: the dataset, and its state where it is known."""
    if ledger.path is not None and not ledger.path.is_file():
        raise LedgerError(f"There is no ledger at {ledger.name!r}; check the path.")
    booked = []
    for account in ledger.accounts():
        for entry in account.entries:
            records = account.dataset
            if entry.data_modified:
                records += f" as of {entry.data_modified} ({entry.data_bytes:,} bytes)"
            booked.append((records, entry))
    return booked
