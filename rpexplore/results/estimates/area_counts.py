"""Whole counts of a release of tables in areas, or best guesses, in a folder of their own.

tables/5_block/0003_age_sex/00000.parquet
                as in the release, one row a cell of an area: its labels, value (a whole
                number), of best guesses its model-based error, the unbiased value with its standard
                error and interval, and what was done, in words
cells/5_block/00000.parquet
                of best guesses: the cells above 0 of the table of which all tables of an area are
                margins: area (its place in the plan's list), cell (row-major), value
manifest.json   what was done, totals that are not protected, the source, size and SHA-256 of
                every file
README.md       how to read all this
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from rpexplore.common.numbers import shown_value
from rpexplore.common.processes import Progress, no_progress, one_thread
from rpexplore.common.template_text import text_from_template
from rpexplore.data.engines.connections import Connection
from rpexplore.domain.area_tree import AreaTree
from rpexplore.domain.result_schema import AREA_MODEL_ERROR, PROCESSED_VALUE, Column, frame_of
from rpexplore.errors import ReleaseError
from rpexplore.planning.areas.area_sums import AreaName, area_number, number_with_empty
from rpexplore.releases.area_files import (
    empty_file,
    plain_name,
    table_file,
    tables_of_empty,
    tables_of_part,
)
from rpexplore.releases.area_release import TablesInAreas
from rpexplore.releases.atomic_folder import check_new
from rpexplore.releases.finished_release import Release
from rpexplore.releases.manifest import file_entry, now, read_manifest, save_manifest
from rpexplore.releases.table_cells import write_rows
from rpexplore.results.estimates.area_cells import AreaCells, PartCells, cells_of, exact_numbers
from rpexplore.results.estimates.area_families import mean_noise
from rpexplore.results.estimates.area_guesses import BestGuesses, find_spreads, tables_with_errors
from rpexplore.results.estimates.area_subtrees import (
    Found,
    Subtrees,
    by_level,
    check_cluster,
    here,
    in_cluster,
)
from rpexplore.results.estimates.whole_areas import UNKNOWN, WholeCounts, known_totals
from rpexplore.results.measurement_source import SPENT, facts_of_sources, guarantee, sources_of
from rpexplore.results.processed_tables import (
    ComputedFolder,
    load_checked,
    new_tables_folder,
    said_in_files,
    with_unbiased,
)

if TYPE_CHECKING:
    import pandas as pd


KIND = ("rpexplore-area-counts", 2)
LABEL = "whole, nonnegative and consistent; biased; intervals are those of the unbiased answers"
GUESSES_LABEL = (
    "best guesses, whole, nonnegative and consistent; biased; model_error if the model holds; "
    "intervals are those of the unbiased answers"
)
ROUNDED = "rounded"
"""In manifests: the number to whose multiples counts were rounded; not there for whole numbers."""
_CELLS = "cells"
_CELLS_SCHEMA = pa.schema([(name, pa.int32()) for name in ("area", "cell", "value")])
_NOUN = "whole counts of areas"
_FACTS = ("created", "label", "guarantee", "known_totals", *SPENT)


@dataclass(frozen=True, eq=False, repr=False)
class AreaCounts(ComputedFolder):
    """The tables of a folder that `whole_area_counts` or `area_guesses` has written."""

    @classmethod
    def load(cls, folder: str | Path) -> "AreaCounts":
        """Open a folder; raises `ReleaseError` if it is not one or a file was changed."""
        folder = Path(folder)

        def facts_of(manifest: Mapping[str, Any]) -> dict[str, Any]:
            label, _ = said_in_files(folder, manifest)
            facts = {"label": label, "known_totals": int(manifest["known_totals"])}
            if ROUNDED in manifest:
                facts[ROUNDED] = int(manifest[ROUNDED])
            return facts

        facts = (*_FACTS, *({ROUNDED} & read_manifest(folder).keys()))
        return cls(folder, load_checked(folder, KIND, _NOUN, facts, facts_of))

    @property
    def is_smooth(self) -> bool:
        """Whether these are best guesses, with errors of their own."""
        return are_guesses(self.manifest)

    def cells(self, levels: Sequence[str]) -> list[np.ndarray]:
        """Of each level int32[n, 3]: area, cell and count of the cells above 0, of best guesses."""
        found = []
        for number, level in enumerate(levels):
            within = f"{cells_folder(number, level)}/"
            files = [entry["path"] for entry in self.manifest["files"]]
            checked = [self.checked / path for path in sorted(files) if path.startswith(within)]
            tables = [pyarrow.parquet.read_table(path) for path in checked]
            rows = pa.concat_tables([_CELLS_SCHEMA.empty_table(), *tables])
            found.append(np.stack([column.to_numpy() for column in rows.columns], axis=1))
        return found

    def table(self, level: str, *attributes: str) -> "pd.DataFrame":
        """A table in all areas of a level for which it was asked, one row a cell of an area.

        Columns: the codes of the area on each level below the top, the labels of attributes, value,
        of best guesses model_error, then unbiased_value, standard_error, lower_95, upper_95,
        value_is.

        Raises:
            ReleaseError: If there is no such level or table on it.
        """
        paths = self._tables.get((level, frozenset(attributes)))
        if paths is None:
            raise ReleaseError(
                f"There is no table ({', '.join(attributes) or 'total'}) on a level {level!r} "
                "among these counts; ask for one that the release has."
            )
        found = [pyarrow.parquet.read_table(self.checked / path) for path in paths]
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


def are_guesses(manifest: Mapping[str, Any]) -> bool:
    """Whether a manifest of counts of areas is that of best guesses, which have all cells."""
    return any(str(entry["path"]).startswith(f"{_CELLS}/") for entry in manifest["files"])


def whole_area_counts(
    release: TablesInAreas | Release,
    output: str | Path,
    *,
    totals: Mapping[AreaName, int] | None = None,
    base: int = 1,
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
        base: The number whose multiples all counts are, such as 3, 5 or 10; 1 for whole numbers.

    Returns:
        The counts that were written.

    Raises:
        ReleaseError: If a known or exact total is no multiple of the base; if some area has no
            answer to its total, if there are too many cells, if totals do not add up or the
            codebook leaves no record possible, or if nothing can be written.
        DomainError: For the codes of no area.
    """
    return _write(release, output, totals or {}, on_progress, as_guesses=False, base=base)


def area_guesses(
    release: TablesInAreas | Release,
    output: str | Path,
    *,
    totals: Mapping[AreaName, int] | None = None,
    cluster: Connection | None = None,
    on_progress: Progress = no_progress,
) -> AreaCounts:
    """Best guesses for areas: whole counts by a hierarchical model, with errors. Biased.

    As `whole_area_counts`, they are never negative, agree, and add up; and each area's counts are
    drawn towards the shares of the area that it lies in, as far as what was measured is noise.
    Costs no privacy. Beside each value stands its model-based error, which nothing guarantees.

    Args:
        release: Of tables in areas.
        output: The folder to write, which must not exist yet.
        totals: As of `whole_area_counts`. **They are not protected.**
        cluster: Spark, whose workers find the release where it is here: each subtree is estimated
            in a task, with the same counts. None: one after another here.

    Returns:
        The counts that were written.

    Raises:
        ReleaseError: As of `whole_area_counts`; of a cluster, if it is none, if its workers do not
            have the release, or if this is a combined one.
        DomainError: For the codes of no area; for what Spark refuses.
    """
    return _write(release, output, totals or {}, on_progress, as_guesses=True, cluster=cluster)


def _write(
    release: TablesInAreas | Release,
    output: str | Path,
    given: Mapping[AreaName, int],
    on_progress: Progress,
    *,
    as_guesses: bool,
    base: int = 1,
    cluster: Connection | None = None,
) -> AreaCounts:
    """Whole counts, or best guesses, in a new folder."""
    if isinstance(base, bool) or not isinstance(base, int) or base < 1:
        raise ReleaseError(
            "The base of rounding must be a whole number of 1 or more, got "
            f"{shown_value(base)}; give 5, say, or 1 for whole numbers."
        )
    in_areas: TablesInAreas = release.area_tables()
    output, plan = Path(output), in_areas.plan
    tree = plan.workload.tree
    check_new(output)
    cells = cells_of(plan)
    parts, answers = in_areas.parts, in_areas.answers_in_areas
    if cluster is not None:
        check_cluster(cluster, answers)
    numbers, exact = _totals_by_number(tree, given), exact_numbers(plan, answers)
    for area in sorted(numbers.keys() & exact.keys()):
        if numbers[area] != exact[area]:
            name = " > ".join(tree.path(area)) or tree.levels[0]
            raise ReleaseError(
                f"The known total of the area {name} is {numbers[area]:,}, and the release has "
                f"{exact[area]:,} records there, exactly; leave the known total out."
            )
    all_totals, sources = known_totals(tree, exact | numbers), sources_of(in_areas)
    last, label = len(cells.attributes) - 1, GUESSES_LABEL if as_guesses else LABEL
    if base > 1:
        label = LABEL.replace("whole", f"multiples of {base}", 1)
        all_totals = _in_units(tree, all_totals, base, keeps_exact=bool(cells.exact))
    tables = tables_with_errors(plan, cells)
    noise = [] if as_guesses else [variance / base**2 for variance in mean_noise(plan, cells)]

    def guesses_of(
        unbiased: PartCells, spreads: dict[int, np.ndarray], curves: dict[int, np.ndarray]
    ) -> BestGuesses:
        return BestGuesses(tree, cells, unbiased, all_totals, plan, tables, spreads, curves)

    with one_thread(), new_tables_folder(output) as folder:
        spreads: dict[int, np.ndarray] = {}
        if as_guesses:
            on_progress("Finding how areas differ", 0.0)
            spreads = find_spreads(guesses_of, parts, answers, cells)

        def counts_of(unbiased: PartCells) -> WholeCounts:
            if as_guesses:
                return guesses_of(unbiased, spreads, {})
            return WholeCounts(
                tree, cells, lambda level, areas: unbiased(level, areas) / base, all_totals,
                noise=noise,
            )  # fmt: skip

        writer = _Writer(in_areas, cells, label, folder, base)
        above = counts_of(PartCells(cells, answers.of_top, 0))
        errors = above.top_errors if isinstance(above, BestGuesses) else None
        top = by_level(above, 0, slice(0, 1), above.of_top(), errors, min(parts.level, last))
        written = {0: writer.part(0, top, above)} if parts.level else {}
        subtrees = Subtrees(above, answers, *top[parts.level], base)

        def progress(n_done: int) -> None:
            step = "Making best guesses" if as_guesses else "Making whole counts"
            on_progress(step, n_done / len(subtrees.numbers))

        progress(0)
        found = here(subtrees) if cluster is None else in_cluster(subtrees, cluster, progress)
        with closing(found):
            for n_done, (part, of_part) in enumerate(found, start=1):
                written[part] = writer.part(part, of_part, above)
                progress(n_done)
        entries = [entry for part in sorted(written) for entry in written[part]]
        entries += writer.empty()
        text = text_from_template(
            "rpexplore.results",
            "area_counts.md.j2",
            label=label,
            are_guesses=as_guesses,
            base=base,
            guarantee=guarantee(sources),
            levels=tree.levels,
            n_totals=len(numbers),
            empty=tree.empty_text,
            sources=sources,
        )
        (folder / "README.md").write_text(text, encoding="utf-8", newline="\n")
        facts = {
            "created": now(),
            "label": label,
            "guarantee": guarantee(sources),
            "known_totals": len(numbers),
            **({ROUNDED: base} if base > 1 else {}),
            **facts_of_sources(sources),
        }
        manifest = save_manifest(folder, KIND, facts, [*entries, file_entry(folder, "README.md")])
    on_progress("Finished", 1.0)
    return AreaCounts(output, MappingProxyType(manifest))


def _in_units(tree: AreaTree, totals: np.ndarray, base: int, *, keeps_exact: bool) -> np.ndarray:
    """Totals of `known_totals` over a base; raises `ReleaseError` for one that is no multiple."""
    if keeps_exact:
        raise ReleaseError(
            f"The release has exact totals, which multiples of {base} would not keep; round to "
            "whole numbers."
        )
    for area in np.flatnonzero((totals != UNKNOWN) & (totals % base != 0)).tolist():
        raise ReleaseError(
            f"The known total of the area {' > '.join(tree.path(area)) or tree.levels[0]} is "
            f"{totals[area]:,}, which is no multiple of {base}; leave it out, or round to whole "
            "numbers."
        )
    return np.where(totals == UNKNOWN, UNKNOWN, totals // base)


@dataclass(frozen=True, eq=False)
class _Writer:
    """Writes the tables of parts to a folder, and says what the manifest says of their files."""

    release: TablesInAreas
    cells: AreaCells
    label: str
    folder: Path
    base: int = 1

    def part(self, part: int, found: Found, whole: WholeCounts) -> list[dict[str, Any]]:
        """Those of a part, by level: counts, and squared errors of best guesses."""
        plan, parts, entries = self.release.plan, self.release.parts, []
        first, asked = 0 if part == 0 else parts.level, plan.workload.rows
        for level, table in tables_of_part(parts, part):
            if plan.workload.tables.has_amounts[table]:
                continue
            areas = parts.areas[part].slices[level - first]
            kinds = [kind for kind, rows in enumerate(asked) if table in rows]
            within = np.isin(plan.workload.kinds[areas], kinds)
            attributes = plan.workload.tables.attribute_indices(table)
            counts, squared = found[level]
            margin = self.cells.margin_on(counts[within], level, attributes)
            figures = {PROCESSED_VALUE: self.base * margin}
            if squared is not None and isinstance(whole, BestGuesses):
                own = tuple(index for index in attributes if self.cells.sizes[index] > 1)
                columns = next(here for each, _, here in whole.columns(level) if each == own)
                # What is impossible is 0, in truth as well, whatever the model has of its noise.
                is_possible = self.cells.margin_on(self.cells.possible[None], 0, attributes) > 0
                figures[AREA_MODEL_ERROR] = np.sqrt(squared[within, columns]) * is_possible
            entries.append(self._table(table_file(plan, level, table, part), level, table, figures))
        if isinstance(whole, BestGuesses):
            for level, (counts, _) in found.items():
                if level - first < len(parts.areas[part].slices):
                    start = parts.areas[part].slices[level - first].start
                    entries.append(self._cells(part, level, start, counts))
        return entries

    def empty(self) -> list[dict[str, Any]]:
        """Those of empty areas: 0 everywhere."""
        plan, entries = self.release.plan, []
        for level, table in tables_of_empty(plan):
            if plan.workload.tables.has_amounts[table]:
                continue
            n_cells = int(plan.workload.tables.exact_cells[table])
            zeros = np.zeros(len(plan.workload.tree.empty_on(level)) * n_cells, dtype=np.int64)
            figures: dict[Column, np.ndarray] = {PROCESSED_VALUE: zeros}
            if self.label == GUESSES_LABEL:
                figures[AREA_MODEL_ERROR] = zeros.astype(np.float32)  # as in other files
            entries.append(self._table(empty_file(plan, level, table), level, table, figures))
        return entries

    def _table(
        self, path: str, level: int, table: int, figures: Mapping[Column, np.ndarray]
    ) -> dict[str, Any]:
        """Write a released table with figures before the unbiased ones, row by row."""
        values = {column: own.ravel() for column, own in figures.items()}
        (self.folder / path).parent.mkdir(parents=True, exist_ok=True)

        def pieces() -> Iterator[pa.Table]:
            start = 0
            with pyarrow.parquet.ParquetFile(self.release.checked / path) as file:
                for batch in file.iter_batches(1 << 20):
                    rows = pa.Table.from_batches([batch])
                    stop = start + len(rows)
                    own = {column: every[start:stop] for column, every in values.items()}
                    start = stop
                    yield with_unbiased(own, rows, self.label)

        n_rows = write_rows(self.folder / path, pieces())
        assert n_rows == len(values[PROCESSED_VALUE])
        workload = self.release.plan.workload
        names = [workload.tree.levels[level], *workload.tables.tables[table]]
        return file_entry(self.folder, path, attributes=names)

    def _cells(self, part: int, level: int, start: int, counts: np.ndarray) -> dict[str, Any]:
        """Write the cells above 0 of areas of a level from a number on."""
        levels = self.release.plan.workload.tree.levels
        path = f"{cells_folder(level, levels[level])}/{part:05d}.parquet"
        (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
        areas, cells = np.nonzero(counts)
        columns = [(areas + start).astype(np.int32), cells.astype(np.int32), counts[areas, cells]]
        pyarrow.parquet.write_table(
            pa.table(columns, schema=_CELLS_SCHEMA), self.folder / path, write_statistics=False
        )
        return file_entry(self.folder, path)


def cells_folder(level: int, name: str) -> str:
    """Where the cells of a level are."""
    return f"{_CELLS}/{level}_{plain_name(name)}"


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
