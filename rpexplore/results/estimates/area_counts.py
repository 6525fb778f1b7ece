"""Whole counts of a release of tables in areas, in a folder of their own.

tables/5_block/0003_age_sex/00000.parquet
                as in the release, one row a cell of an area: its labels, value (a whole
                number), the unbiased value with its standard error and interval, and what was
                done, in words
manifest.json   what was done, totals that are not protected, the source, size and SHA-256 of
                every file
README.md       how to read all this
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from rpexplore.common.processes import Progress, no_progress, one_thread
from rpexplore.common.template_text import text_from_template
from rpexplore.domain.area_tree import AreaTree
from rpexplore.domain.result_schema import PROCESSED_VALUE, frame_of
from rpexplore.errors import ReleaseError
from rpexplore.planning.areas.area_sums import AreaName, area_number, number_with_empty
from rpexplore.releases.area_files import empty_file, table_file, tables_of_empty, tables_of_part
from rpexplore.releases.area_parts import AreaParts
from rpexplore.releases.area_release import TablesInAreas
from rpexplore.releases.atomic_folder import check_new
from rpexplore.releases.finished_release import Release
from rpexplore.releases.manifest import (
    check_facts,
    checked_folder,
    file_entry,
    not_as_written,
    now,
    save_manifest,
)
from rpexplore.releases.table_cells import write_rows
from rpexplore.results.estimates.area_cells import AreaCells, PartCells, cells_of
from rpexplore.results.estimates.whole_areas import WholeCounts, known_totals
from rpexplore.results.measurement_source import (
    SPENT,
    MeasurementSource,
    facts_as_worded,
    facts_of_sources,
    guarantee,
    sources_of,
)
from rpexplore.results.processed_folder import with_unbiased
from rpexplore.results.processed_tables import UNREADABLE, new_tables_folder, said_in_files

if TYPE_CHECKING:
    import pandas as pd


KIND = ("rpexplore-area-counts", 2)
LABEL = "whole, nonnegative and consistent; biased; intervals are those of the unbiased answers"
_NOUN = "whole counts of areas"
_FACTS = ("created", "label", "guarantee", "known_totals", *SPENT)


@dataclass(frozen=True, eq=False, repr=False)
class AreaCounts:
    """The tables of a folder that `whole_area_counts` has written."""

    folder: Path
    manifest: Mapping[str, Any]

    @classmethod
    def load(cls, folder: str | Path) -> "AreaCounts":
        """Open a folder; raises `ReleaseError` if it is not one or a file was changed."""
        folder = Path(folder)
        manifest = checked_folder(folder, KIND, _NOUN, _FACTS)
        try:
            sources = [MeasurementSource.from_json(each) for each in manifest["sources"]]
            label, _ = said_in_files(folder, manifest)
            facts = {
                "label": label,
                "guarantee": guarantee(sources),
                "known_totals": int(manifest["known_totals"]),
                **facts_as_worded(manifest),
            }
        except UNREADABLE:
            raise not_as_written(folder, _NOUN, "its manifest has not what it must have") from None
        check_facts(folder, manifest, facts, _NOUN)
        return cls(folder, manifest)

    def table(self, level: str, *attributes: str) -> "pd.DataFrame":
        """A table in all areas of a level for which it was asked, one row a cell of an area.

        Columns: the codes of the area on each level below the top, the labels of attributes, value,
        unbiased_value, standard_error, lower_95, upper_95, value_is.

        Raises:
            ReleaseError: If there is no such level or table on it.
        """
        paths = self._tables.get((level, frozenset(attributes)))
        if paths is None:
            raise ReleaseError(
                f"There is no table ({', '.join(attributes) or 'total'}) on a level {level!r} "
                "among these counts; ask for one that the release has."
            )
        found = [pyarrow.parquet.read_table(self.folder / path) for path in paths]
        return frame_of(pa.concat_tables([each.unify_dictionaries() for each in found]))

    @cached_property
    def _tables(self) -> dict[tuple[str, frozenset[str]], list[str]]:
        """The files of each table on each level."""
        found: dict[tuple[str, frozenset[str]], list[str]] = {}
        for entry in self.manifest["files"]:
            if "attributes" in entry:
                level, *attributes = entry["attributes"]
                found.setdefault((level, frozenset(attributes)), []).append(entry["path"])
        return found


def whole_area_counts(
    release: TablesInAreas | Release,
    output: str | Path,
    *,
    totals: Mapping[AreaName, int] | None = None,
    on_progress: Progress = no_progress,
) -> AreaCounts:
    """Counts in whole numbers that are never negative and agree; costs no privacy. Biased.

    All tables of an area agree, areas add up to what they are parts of, and what the codebook
    states to be impossible is 0 (where all its attributes are asked for together). From the top
    down, each area's parts get the nearest such counts to their unbiased answers.

    Args:
        release: Of tables in areas.
        output: The folder to write, which must not exist yet.
        totals: Areas, each by its number or its codes from below the top, and their totals, which
            are met. **They are not protected**: give only what is publicly known. Of all areas from
            the top down to a level, or of all parts of some areas.

    Returns:
        The counts that were written.

    Raises:
        ReleaseError: If some area has no answer to its total, if there are too many cells, if
            totals do not add up or the codebook leaves no record possible, or if nothing can be
            written.
        DomainError: For the codes of no area.
    """
    in_areas: TablesInAreas = release.area_tables()
    output, plan = Path(output), in_areas.plan
    tree = plan.workload.tree
    check_new(output)
    cells = cells_of(plan)
    numbers = _totals_by_number(tree, totals or {})
    all_totals, sources = known_totals(tree, numbers), sources_of(in_areas)
    parts, answers = in_areas.parts, in_areas.answers_in_areas
    last = len(cells.attributes) - 1
    with one_thread(), new_tables_folder(output) as folder:
        above = PartCells(cells, answers.of_top, 0)
        counts = WholeCounts(tree, cells, above, all_totals)
        top = _by_level(counts, 0, slice(0, 1), counts.of_top(), min(parts.level, last))
        entries = _write_part(in_areas, parts, 0, cells, top, folder) if parts.level else []
        first_of_level = int(tree.starts[parts.level])
        for part, areas in enumerate(parts.areas):
            on_progress("Making whole counts", part / len(parts.areas))
            if part == 0 and parts.level:
                continue
            some = areas.slices[0]
            own = top[parts.level][some.start - first_of_level : some.stop - first_of_level]
            within = WholeCounts(
                tree, cells, PartCells(cells, answers.of_part(part), parts.level), all_totals
            )
            found = _by_level(within, parts.level, some, own, last)
            entries += _write_part(in_areas, parts, part, cells, found, folder)
        entries += _write_empty(in_areas, folder)
        text = text_from_template(
            "rpexplore.results",
            "area_counts.md.j2",
            label=LABEL,
            guarantee=guarantee(sources),
            levels=tree.levels,
            n_totals=len(numbers),
            empty=tree.empty_text,
            sources=sources,
        )
        (folder / "README.md").write_text(text, encoding="utf-8", newline="\n")
        facts = {
            "created": now(),
            "label": LABEL,
            "guarantee": guarantee(sources),
            "known_totals": len(numbers),
            **facts_of_sources(sources),
        }
        manifest = save_manifest(folder, KIND, facts, [*entries, file_entry(folder, "README.md")])
    on_progress("Finished", 1.0)
    return AreaCounts(output, MappingProxyType(manifest))


def _by_level(
    whole: WholeCounts, level: int, areas: slice, counts: np.ndarray, last: int
) -> dict[int, np.ndarray]:
    """The counts of some areas of a level, and of all within them down to another, by level."""
    pieces: dict[int, list[np.ndarray]] = {}
    for at, _, found in whole.downwards(level, areas, counts, last):
        pieces.setdefault(at, []).append(found.astype(np.int32))
    return {at: np.concatenate(found) for at, found in pieces.items()}


def _write_part(
    release: TablesInAreas,
    parts: AreaParts,
    part: int,
    cells: AreaCells,
    counts: Mapping[int, np.ndarray],
    folder: Path,
) -> list[dict[str, Any]]:
    """Write the tables of a part; what the manifest says of their files."""
    plan, entries = release.plan, []
    first, asked = 0 if part == 0 else parts.level, plan.workload.rows
    for level, table in tables_of_part(parts, part):
        areas = parts.areas[part].slices[level - first]
        kinds = [kind for kind, rows in enumerate(asked) if table in rows]
        within = np.isin(plan.workload.kinds[areas], kinds)
        attributes = plan.workload.tables.attribute_indices(table)
        values = cells.margin_on(counts[level][within], level, attributes).ravel()
        path = table_file(plan, level, table, part)
        _write_table(release.folder / path, folder / path, values)
        names = [plan.workload.tree.levels[level], *plan.workload.tables.tables[table]]
        entries.append(file_entry(folder, path, attributes=names))
    return entries


def _write_empty(release: TablesInAreas, folder: Path) -> list[dict[str, Any]]:
    """Write the tables of empty areas; what the manifest says of their files."""
    plan, entries = release.plan, []
    for level, table in tables_of_empty(plan):
        n_cells = int(plan.workload.tables.exact_cells[table])
        zeros = np.zeros(len(plan.workload.tree.empty_on(level)) * n_cells, dtype=np.int64)
        path = empty_file(plan, level, table)
        _write_table(release.folder / path, folder / path, zeros)
        names = [plan.workload.tree.levels[level], *plan.workload.tables.tables[table]]
        entries.append(file_entry(folder, path, attributes=names))
    return entries


def _totals_by_number(tree: AreaTree, totals: Mapping[AreaName, int]) -> dict[int, int]:
    """Known totals by the numbers of areas; of empty ones, whose total is 0, none."""
    numbers = {}
    for area, total in totals.items():
        number = number_with_empty(tree, area)
        if number < tree.n_areas:
            numbers[number] = int(total)
        elif int(total):
            area_number(tree, tree.path(number))  # which says that it is empty
    return numbers


def _write_table(released: Path, path: Path, values: np.ndarray) -> None:
    """Write a released table with these values beside the unbiased ones, row by row."""
    path.parent.mkdir(parents=True, exist_ok=True)

    def pieces() -> Iterator[pa.Table]:
        start = 0
        with pyarrow.parquet.ParquetFile(released) as file:
            for batch in file.iter_batches(1 << 20):
                rows = pa.Table.from_batches([batch])
                own = values[start : start + len(rows)]
                start += len(rows)
                yield with_unbiased({PROCESSED_VALUE: own}, rows, LABEL)

    n_rows = write_rows(path, pieces())
    assert n_rows == len(values)
