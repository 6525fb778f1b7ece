"""Synthetic records for areas: one for each person that best guesses have in a lowest area.

records/by_region=R01/part-0.parquet
                the records of an area below the top: the codes of the area on each level, and of
                each attribute its value and, where it has one, its label
manifest.json   how they were made, sources, size and SHA-256 of every file
README.md       the label: what these records are, and what they are not
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from rpexplore.common.processes import Progress, no_progress, part_of_progress
from rpexplore.common.seeded_numbers import SeededNumbers
from rpexplore.common.template_text import text_from_template
from rpexplore.domain.area_tree import AreaRange
from rpexplore.domain.attribute import Attribute
from rpexplore.errors import ReleaseError
from rpexplore.planning.areas.area_design import AreaDesign
from rpexplore.releases.area_files import area_columns
from rpexplore.releases.atomic_folder import check_new
from rpexplore.releases.items import PartReader
from rpexplore.releases.manifest import file_entry, now, save_manifest
from rpexplore.releases.table_cells import label_columns
from rpexplore.results.area_results import AreaResults
from rpexplore.results.estimates.area_cells import AreaCells, cells_of
from rpexplore.results.estimates.area_counts import area_guesses
from rpexplore.results.measurement_source import SPENT, facts_of_sources, guarantee
from rpexplore.results.processed_tables import ComputedFolder, load_checked, new_tables_folder
from rpexplore.results.synthetic.further_attributes import FurtherAttributes

if TYPE_CHECKING:
    import pandas as pd

KIND = ("rpexplore-area-records", 1)
LABEL = "synthetic records; no row is a person; they add up to best guesses for areas; biased"
_NOUN = "synthetic records of areas"
_FACTS = ("created", "label", "rows", "attributes", "by_model", "guarantee", *SPENT)
_RECORDS, _LABEL_IN_FILES = "records", b"rpexplore"


@dataclass(frozen=True, eq=False, repr=False)
class AreaRecords(ComputedFolder):
    """The records of a folder that `synthesize_areas` has written."""

    kind: ClassVar[str] = "area records"

    @classmethod
    def load(cls, folder: str | Path) -> "AreaRecords":
        """Open a folder; raises `ReleaseError` if it is not one or a file was changed."""
        folder = Path(folder)

        def facts_of(manifest: Mapping[str, Any]) -> dict[str, Any]:
            files = [pyarrow.parquet.read_metadata(folder / name) for name in _files(manifest)]
            label = files[0].metadata[_LABEL_IN_FILES].decode()
            return {"label": label, "rows": sum(file.num_rows for file in files)}

        return cls(folder, load_checked(folder, KIND, _NOUN, _FACTS, facts_of, made="records"))

    @property
    def n_records(self) -> int:
        return int(self.manifest["rows"])

    @property
    def files(self) -> list[str]:
        """The files of records within the folder, one for each area below the top."""
        return _files(self.manifest)

    def of_file(self, name: str) -> "pd.DataFrame":
        """The records of one of the `files`."""
        return pyarrow.parquet.ParquetFile(self.checked / name).read().to_pandas()

    def records(self) -> "pd.DataFrame":
        """All records, one row each: codes of the area on each level, values of attributes."""
        tables = [pyarrow.parquet.ParquetFile(self.checked / name).read() for name in self.files]
        return pa.concat_tables([each.unify_dictionaries() for each in tables]).to_pandas()


def _files(manifest: Mapping[str, Any]) -> list[str]:
    names = [entry["path"] for entry in manifest["files"]]
    return [name for name in names if name.startswith(f"{_RECORDS}/")]


def synthesize_areas(
    source: PartReader,
    output: str | Path,
    *,
    on_progress: Progress = no_progress,
) -> AreaRecords:
    """Make one synthetic record for each person in every lowest area; costs no privacy.

    Counted again, the records have every whole count of the best guesses, on every level. Where a
    level crosses more attributes than the areas further down, its records have them in such
    combinations, given the area and what is crossed further down; which record of a lower area has
    which is chosen at random, from numbers that follow from the release. Attributes that only the
    tables without areas have are drawn from a model of these (`FurtherAttributes`), given what the
    record has already.

    Args:
        source: Best guesses, which `results.load_area_results` opens; or the release, of which they
            are made first.
        output: The folder to write, which must not exist yet.

    Returns:
        The records that were written.

    Raises:
        ReleaseError: For whole counts that are not best guesses, or have nobody in any area, for
            what `area_guesses` refuses, or if nothing can be written.
    """
    output = Path(output)
    check_new(output)
    results = AreaResults.of(source)
    if results.whole is None:
        with TemporaryDirectory(prefix="rpexplore-") as made:
            half = part_of_progress(on_progress, 0.0, 0.7)
            guesses = area_guesses(results.release, Path(made) / "guesses", on_progress=half)
            rest = part_of_progress(on_progress, 0.7, 1.0)
            return synthesize_areas(replace(results, whole=guesses), output, on_progress=rest)
    if not results.is_smooth:
        raise ReleaseError(
            "Records are made of best guesses, which hold all cells of an area together, and these "
            "are other whole counts; run `rpexplore postprocess RELEASE --best-guesses` first."
        )
    plan, sources = results.plan, results.made_of
    found = results.whole.cells(results.tree.levels)
    if not any(map(len, found)):
        raise ReleaseError(
            "The best guesses have nobody in any area, so there are no records to make; release "
            "the areas with a larger budget, or use the counts."
        )
    cells, seed, further = cells_of(plan), _seed(results), None
    if results.tables is not None:
        on_fit = part_of_progress(on_progress, 0.0, 0.5)
        further = FurtherAttributes.of(results.tables, _known(plan, cells), seed, on_fit)
        on_progress = part_of_progress(on_progress, 0.5, 1.0)
    maker = _Maker(plan, cells, found, seed, further)
    by_model = [] if further is None else [each.name for each in further.attributes]
    label, entries, n_records = LABEL, [], 0
    with new_tables_folder(output) as folder:
        (folder / "tables").rmdir()
        tops = maker.tops
        for number, top in enumerate(tops):
            on_progress("Making records", number / len(tops))
            rows = maker.rows(top, label)
            if len(rows):
                path = f"{_RECORDS}/{maker.folder(top)}/part-0.parquet"
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                pyarrow.parquet.write_table(rows, folder / path)
                entries.append(file_entry(folder, path))
            n_records += len(rows)
        facts = {
            "created": now(),
            "label": label,
            "rows": n_records,
            "attributes": [plan.domain.names[index] for index in cells.of_records] + by_model,
            "by_model": by_model,
            "guarantee": guarantee(sources, "records"),
            **facts_of_sources(sources),
        }
        text = text_from_template(
            "rpexplore.results", "area_records.md.j2", **facts, made_of=sources,
            levels=results.tree.levels[1:],
        )  # fmt: skip
        (folder / "README.md").write_text(text, encoding="utf-8", newline="\n")
        manifest = save_manifest(folder, KIND, facts, [*entries, file_entry(folder, "README.md")])
    on_progress("Finished", 1.0)
    return AreaRecords(output, MappingProxyType(manifest))


def _known(plan: AreaDesign, cells: AreaCells) -> dict[str, list[str]]:
    """The columns that records of areas have in any case, and the texts of their values."""
    tree, known = plan.workload.tree, {}
    for level, name in enumerate(tree.levels[1:], start=1):
        known[name] = tree.codes[tree.level_slice(level)].unique().to_pylist()
    for attribute in (plan.domain.attributes[index] for index in cells.of_records):
        known[attribute.name] = attribute.labels()
    return known


def _seed(source: AreaResults) -> bytes:
    """What all numbers follow from: the same of the same sources."""
    hashes = sorted(each.sha256 for each in source.made_of)
    return hashlib.sha256(" ".join(["rpexplore area records", *hashes]).encode()).digest()


@dataclass(frozen=True, eq=False)
class _Maker:
    """Makes the records of one area below the top after another.

    found    of each level int32[n, 3]: area, cell and count, by area
    further  attributes that no table of areas has; None for none
    """

    plan: AreaDesign
    cells: AreaCells
    found: list[np.ndarray]
    seed: bytes
    further: FurtherAttributes | None

    @property
    def tops(self) -> range:
        """The areas that records are made of at a time, by their numbers."""
        tree = self.plan.workload.tree
        if len(tree.levels) == 1 or len(self.cells.attributes) == 1:
            return range(1)
        areas = tree.level_slice(1)
        return range(areas.start, areas.stop)

    def folder(self, top: int) -> str:
        """The folder of an area's records, as partitions are named.

        Not by the column itself: readers would take its codes from the folders, and 01 for a 1.
        """
        tree = self.plan.workload.tree
        if not top:
            return "all"
        return f"by_{quote(tree.levels[1], safe=' ')}={quote(tree.path(top)[0], safe=' ')}"

    def rows(self, top: int, label: str) -> pa.Table:
        """The records of an area."""
        areas, codes = self.records(top)
        tree, domain = self.plan.workload.tree, self.plan.domain
        columns: list[pa.Array] = []
        for level in range(len(tree.levels) - 1, 0, -1):
            is_there = tree.level_of[areas] == level
            texts = tree.codes.take(pa.array(areas, mask=~is_there)).dictionary_encode()
            columns.insert(0, texts)
            areas = np.where(is_there, tree.parents[areas], areas)
        fields = [
            column.field(array.type)
            for column, array in zip(
                [each for each in area_columns(tree, len(tree.levels) - 1) if each.role == "code"],
                columns,
                strict=True,
            )
        ]

        def add(attribute: Attribute, codes: np.ndarray) -> None:
            for column, texts in label_columns(attribute):
                array = pa.DictionaryArray.from_arrays(codes.astype(np.int32), texts)
                columns.append(array)
                fields.append(column.field(array.type))

        indices = self.cells.of_records
        for index, own in zip(indices, self.cells.values_of(0, codes, indices), strict=True):
            add(domain.attributes[index], own)
        if self.further is not None:
            known = {field.name: column for field, column in zip(fields, columns, strict=True)}
            numbers = SeededNumbers(self.seed + f"further {top}".encode())
            drawn = self.further.drawn(known, len(codes), numbers)
            for attribute, own in zip(self.further.attributes, drawn.T, strict=True):
                add(attribute, own)
        return pa.table(
            columns, schema=pa.schema(fields, metadata={_LABEL_IN_FILES: label.encode()})
        )

    def records(self, top: int) -> tuple[np.ndarray, np.ndarray]:
        """The lowest area of each record, and its cell among those of the top: int64[n] each.

        From below upwards: on each level the records of an area are those of its parts, whose
        attributes are crossed with more by the cells of the area.
        """
        tree, numbers = self.plan.workload.tree, SeededNumbers(self.seed + f"{top}".encode())
        first = int(tree.level_of[top])
        last = len(self.cells.attributes) - 1
        below = AreaRange.within(tree, first, top, top + 1, last)
        lowest, within, codes = (np.empty(0, dtype=np.int64) for _ in range(3))
        for level in range(last, first - 1, -1):
            areas = below.slices[level - first]
            own = self._of_areas(level, areas)
            if level < last:
                within = tree.parents[within].astype(np.int64)
                codes = self._crossed(level, own, within, codes, numbers)
            # Areas without parts, and those whose parts are asked for nothing, end here.
            ends = (tree.n_parts[own[:, 0]] == 0) | (level == last)
            own = own[ends]
            area = np.repeat(own[:, 0].astype(np.int64), own[:, 2])
            lowest, within = np.concatenate([lowest, area]), np.concatenate([within, area])
            codes = np.concatenate([codes, np.repeat(own[:, 1].astype(np.int64), own[:, 2])])
        if first:
            whole = self._cells_of_top.get(top)
            if whole is not None:
                codes = self._crossed(0, whole, np.zeros(len(codes), np.int64), codes, numbers)
        order = np.argsort(lowest, kind="stable")
        return lowest[order], codes[order]

    def _of_areas(self, level: int, areas: slice) -> np.ndarray:
        rows = self.found[level]
        start, stop = np.searchsorted(rows[:, 0], [areas.start, areas.stop])
        return rows[start:stop]

    def _crossed(
        self,
        level: int,
        cells: np.ndarray,
        within: np.ndarray,
        codes: np.ndarray,
        numbers: SeededNumbers,
    ) -> np.ndarray:
        """The cells on a level of records whose cells on the level below are known.

        cells: int32[n, 3] of areas of the level; within: int64[n_records]: the area of each record
        """
        if self.cells.attributes[level] == self.cells.attributes[level + 1]:
            return codes
        known = self._margin(level, cells[:, 1])
        order = np.lexsort((known, cells[:, 0]))
        crossed = np.repeat(cells[order, 1].astype(np.int64), cells[order, 2])
        # Records of the same area and known cell get its cells in an order by chance.
        divided = self.plan.workload.tree.n_parts[cells[order, 0]] > 0
        crossed = crossed[np.repeat(divided, cells[order, 2])]
        places = np.lexsort((numbers.uniforms(len(codes)), codes, within))
        found = np.empty_like(codes)
        found[places] = crossed
        return found

    def _margin(self, level: int, codes: np.ndarray) -> np.ndarray:
        """Cells of a level as cells of the level below, which has some of its attributes."""
        values = self.cells.values(level, codes)
        found = np.zeros(len(codes), dtype=np.int64)
        for index in self.cells.attributes[level + 1]:
            found = found * self.cells.sizes[index] + values[index]
        return found

    @cached_property
    def _cells_of_top(self) -> dict[int, np.ndarray]:
        """The share of each area below the top in the top's cells, where these are crossed more."""
        if len(self.cells.attributes) < 2 or self.cells.attributes[0] == self.cells.attributes[1]:
            return {}
        top, below = self.found[0], self.found[1]
        known = self._margin(0, top[:, 1])
        order = np.argsort(known, kind="stable")
        crossed = np.repeat(top[order, 1].astype(np.int64), top[order, 2])
        own = np.repeat(known[order], top[order, 2])
        numbers = SeededNumbers(self.seed + b"top")
        crossed = crossed[np.lexsort((numbers.uniforms(len(crossed)), own))]
        # Of each known cell the records of one area after another.
        order = np.lexsort((below[:, 0], below[:, 1]))
        areas = np.repeat(below[order, 0], below[order, 2])
        n_cells = prod(self.cells.shape(0))
        pairs, counts = np.unique(areas.astype(np.int64) * n_cells + crossed, return_counts=True)
        found = {}
        for area in np.unique(areas).tolist():
            some = pairs // n_cells == area
            rows = np.stack([np.zeros(some.sum()), pairs[some] % n_cells, counts[some]], axis=1)
            found[area] = rows.astype(np.int32)
        return found
