"""What combined areas and own counts are computed from: the measurements of some releases."""

import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from rpexplore.domain.attribute import Attribute
from rpexplore.domain.categories import Categories
from rpexplore.domain.domain import Domain
from rpexplore.domain.values import ImpossibleCombination
from rpexplore.planning.plan import Plan
from rpexplore.releases.area_files import residual_file
from rpexplore.releases.area_parts import AreaParts
from rpexplore.releases.finished_release import PartRelease
from rpexplore.releases.manifest import CheckedFolder
from rpexplore.releases.measurement_file import PLAN
from rpexplore.releases.query_release import MEASUREMENTS
from rpexplore.results.measurement_source import MeasurementSource, guarantee, label_of_sources

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
