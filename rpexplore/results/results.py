"""Results: tables to be looked at, be they released, combined, processed or estimated."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

from rpexplore.common.text import joined
from rpexplore.errors import ReleaseError
from rpexplore.releases.adaptive_release import AdaptiveRelease
from rpexplore.releases.finished_release import FORMAT as RELEASE
from rpexplore.releases.finished_release import Release
from rpexplore.releases.items import PartReader
from rpexplore.releases.manifest import MANIFEST, manifest_sha256, read_manifest
from rpexplore.releases.table_release import TableRelease
from rpexplore.results.area_results import AreaResults, AreaTables, tables_of
from rpexplore.results.combination import KIND as COMBINED
from rpexplore.results.combination import PARTS, load_combined, load_unbiased
from rpexplore.results.estimates.area_counts import KIND as WHOLE_AREA_COUNTS
from rpexplore.results.estimates.area_counts import AreaCounts, are_guesses
from rpexplore.results.processed_tables import KIND as PROCESSED
from rpexplore.results.processed_tables import ProcessedTables
from rpexplore.results.synthetic.area_records import KIND as AREA_RECORDS
from rpexplore.results.synthetic.area_records import AreaRecords
from rpexplore.results.synthetic.records import KIND as SYNTHETIC
from rpexplore.results.synthetic.records import SyntheticRecords
from rpexplore.results.unbiased import Estimates

Results: TypeAlias = TableRelease | Estimates | ProcessedTables | AdaptiveRelease
"""Tables from one source: their label, domain and table_names, table, counts and answer."""


AnyResults: TypeAlias = PartReader
"""What a folder of figures holds, table by table, whatever its kind."""

ShownTables: TypeAlias = Results | AreaTables
"""What can be shown table by table: those, or tables of areas."""


def load_any_results(folder: str | Path) -> AnyResults:
    """What a folder holds: a release of any kind, or tables that were made of one.

    Raises `ReleaseError` if it is neither, or a file was changed since it was written.
    """
    folder = Path(folder)
    load = _LOADERS.get(str(read_manifest(folder).get("format")))
    return load_unbiased(folder) if load is None else load(folder)


def load_results(folder: str | Path) -> Results | SyntheticRecords | AreaRecords:
    """What a folder holds: tables that were released, combined or processed, or synthetic records.

    Raises `ReleaseError` if it is none of these, or a file was changed since it was written.
    """
    folder = Path(folder)
    kind = read_manifest(folder).get("format")
    if kind == PROCESSED[0]:
        return ProcessedTables.load(folder)
    if kind == SYNTHETIC[0]:
        return SyntheticRecords.load(folder)
    if kind == AREA_RECORDS[0]:
        return AreaRecords.load(folder)
    if kind == RELEASE[0]:
        release = Release.load(folder)
        if release.part("tables") is None and (rounds := release.part("rounds")) is not None:
            return rounds
    return load_unbiased(folder)


def load_area_results(folder: str | Path, others: Iterable[Path] = ()) -> AreaResults:
    """A release of tables in areas, or whole counts of one, which lies beside them or in `others`.

    Raises `ReleaseError` if it is neither, a file was changed, or the release of whole counts is
    not found: it has the areas.
    """
    folder = Path(folder)
    if read_manifest(folder).get("format") in (RELEASE[0], COMBINED[0]):
        results = load_any_results(folder)
        return AreaResults.of(results)
    whole = AreaCounts.load(folder)
    sources = whole.manifest["sources"]
    beside = [folder.parent / source["name"] for source in sources]
    # Combined results have a name that no source knows.
    beside += sorted(path.parent for path in folder.parent.glob(f"*/{MANIFEST}"))
    release = source_folder(sources, [*beside, *others], "areas")
    if release is None:
        names = joined([repr(source["name"]) for source in sources])
        origin = "release" if len(sources) == 1 else "folder of combined results"
        raise ReleaseError(
            f"The whole counts in {str(folder)!r} need the {origin} that they were made of "
            f"({names}), which holds the areas; put its folder beside them."
        )
    results = load_any_results(release)
    return AreaResults(results.area_tables(), whole, tables_of(results))


def source_folder(
    sources: Sequence[Mapping[str, Any]], folders: Iterable[Path], kind: str = "tables"
) -> Path | None:
    """The first of some folders that holds what other tables or records were made of, or None.

    sources: as the manifest of what was made lists them
    kind: of the part that it was made of
    """
    sources = list(sources)
    for folder in folders:
        with suppress(OSError, ReleaseError, LookupError, TypeError):
            if [source["sha256"] for source in sources] == [manifest_sha256(folder)]:
                return folder
            manifest = read_manifest(folder)
            if manifest.get("format") != COMBINED[0]:
                continue
            own = manifest["sources"]
            if PARTS in manifest:
                own = [own[number - 1] for number in manifest[PARTS][kind]]
            if own == sources:
                return folder
    return None


BEST_GUESSES, WHOLE_NUMBERS, NONNEGATIVE = "Best guesses", "Whole numbers", "Nonnegative"


def readings_of(folder: Path, others: Iterable[Path]) -> dict[str, Path]:
    """Other readings of the tables in a folder: what they are, and the first folder of each.

    others: folders that may hold what was made of them
    """
    readings: dict[str, Path] = {}
    for other in others:
        with suppress(OSError, ReleaseError, LookupError, TypeError):
            manifest = read_manifest(other)
            kind = manifest.get("format")
            if kind not in (PROCESSED[0], WHOLE_AREA_COUNTS[0]):
                continue
            if source_folder(manifest["sources"], [folder]) is None:
                continue
            reading = WHOLE_NUMBERS
            if manifest.get("method") == "smooth" or are_guesses(manifest):
                reading = BEST_GUESSES
            elif kind == PROCESSED[0] and not manifest["rounded"]:
                reading = NONNEGATIVE
            readings.setdefault(reading, other)
    order = (BEST_GUESSES, WHOLE_NUMBERS, NONNEGATIVE)
    return {name: readings[name] for name in order if name in readings}


# Format of a folder -> what opens it, where that is not `load_unbiased`.
_LOADERS: Mapping[str, Callable[[Path], Any]] = {
    PROCESSED[0]: ProcessedTables.load,
    WHOLE_AREA_COUNTS[0]: load_area_results,
    COMBINED[0]: load_combined,
    RELEASE[0]: Release.load,
}
