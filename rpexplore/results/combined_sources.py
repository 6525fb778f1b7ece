"""What combined results are computed from: measurements of releases, of the same records."""

import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

from rpexplore.domain.attribute import Attribute
from rpexplore.domain.categories import Categories
from rpexplore.domain.domain import Domain
from rpexplore.domain.values import ImpossibleCombination
from rpexplore.errors import LedgerError, ReleaseError
from rpexplore.planning.plan import Plan
from rpexplore.releases.area_files import residual_file
from rpexplore.releases.area_parts import AreaParts
from rpexplore.releases.finished_release import PartRelease
from rpexplore.releases.manifest import CheckedFolder
from rpexplore.releases.measurement_file import PLAN
from rpexplore.releases.query_release import MEASUREMENTS
from rpexplore.results.measurement_source import MeasurementSource, guarantee, label_of_sources

if TYPE_CHECKING:
    from rpexplore.releases.ledger.account import LedgerEntry
    from rpexplore.releases.ledger.ledger import Ledger

# A folder of combined results keeps, of each release, the plan and what was measured for areas and
# own counts, as whole numbers, byte for byte, where a release has them:
#
#     sources/01/plan.json, areas-….parquet         the plan, and the files that it names
#     sources/01/areas/residuals/00000.parquet      what was measured in areas
#     sources/01/counts/measurements.parquet        what was measured for own counts
#
# So that combining goes on from there as from the releases themselves.


@dataclass(frozen=True, eq=False)
class MeasuredRelease:
    """A release of which areas or own counts are combined.

    home    the release's folder, or that of its measurements among combined results
    source  what it is known by
    """

    home: CheckedFolder
    source: MeasurementSource

    @classmethod
    def of(cls, part: "PartRelease") -> "MeasuredRelease":
        """The release that a part is of."""
        return cls(CheckedFolder(part.home, part.manifest), MeasurementSource.of(part))

    @cached_property
    def plan(self) -> Plan:
        return Plan.load(self.home / PLAN)

    def folder(self, kind: str) -> CheckedFolder:
        """Where the measurements of a part lie."""
        return self.home.folder(kind)

    def files(self, kinds: Sequence[str]) -> list[str]:
        """Those that results keep of it that combine these parts, within its folder."""
        paths = [PLAN, *self.plan.companions]
        if "areas" in kinds:
            n_parts = len(AreaParts(self.plan.part("areas")).areas)
            paths += [f"areas/{residual_file(part)}" for part in range(n_parts)]
        if "counts" in kinds:
            paths.append(f"counts/{MEASUREMENTS}")
        return paths

    def copy_to(self, folder: Path, kinds: Sequence[str]) -> list[str]:
        """Copy these files; returns what they are called within the folder."""
        paths = self.files(kinds)
        for path in paths:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(self.home / path, folder / path)
        return paths


class Combined:
    """What areas and own counts have in common that are combined from some releases."""

    releases: tuple[MeasuredRelease, ...]

    @property
    def sources(self) -> tuple[MeasurementSource, ...]:
        return tuple(release.source for release in self.releases)

    @property
    def made_of(self) -> Sequence[MeasurementSource]:
        return self.sources

    @property
    def label(self) -> str:
        return label_of_sources(self.sources)

    @property
    def guarantee(self) -> str:
        return guarantee(self.sources)


def joint_domain(domains: Iterable[Domain]) -> Domain:
    """The attributes of some domains, each once, with what any of them states to be impossible.

    Records may write values as any of the domains says, for what is combined with them later.
    """
    found: dict[str, Attribute] = {}
    stated: list[ImpossibleCombination] = []
    for domain in domains:
        for attribute in domain:
            first = found.setdefault(attribute.name, attribute)
            own, others = first.values, attribute.values
            if (
                first != attribute
                and isinstance(own, Categories)
                and isinstance(others, Categories)
            ):
                found[attribute.name] = replace(first, values=own.with_spellings_of(others))
        # Left out is what would not mean the same there, by other labels or groups.
        stated += [
            combination
            for combination in domain.impossible
            if all(
                (domain[name].values, domain[name].groups)
                == (found[name].values, found[name].groups)
                for name in combination.names
            )
        ]
    levels_last = sorted(found.values(), key=lambda attribute: bool(attribute.of))
    return Domain(tuple(levels_last), tuple(dict.fromkeys(stated)))


# ---- Whether releases are of the same records, as far as a ledger knows them.
#
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
