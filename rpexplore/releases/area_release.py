"""Tables in areas of a release: what is counted, measured and written, and their folder `areas`."""

from abc import abstractmethod
from collections.abc import Collection, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet

from rpexplore.common.processes import Progress, in_order
from rpexplore.data.areas import AreaShares, Work
from rpexplore.data.source import Counts
from rpexplore.domain.area_tree import AreaRange, AreaTree
from rpexplore.domain.domain import Domain
from rpexplore.domain.result_schema import RELEASED, Column, apart_from, frame_of
from rpexplore.errors import ReleaseError, WorkloadError
from rpexplore.planning.areas.area_plan import AreaPlan
from rpexplore.planning.areas.area_sums import (
    AreaLists,
    AreaSums,
    area_number,
    variances_of_sums,
)
from rpexplore.planning.mechanism.reconstruction import query_attributes
from rpexplore.releases.area_files import (
    CellErrors,
    ReleasedAnswers,
    area_files,
    empty_file,
    folders_of,
    items_of_areas,
    residual_file,
    rows_of_areas,
    rows_of_empty,
    table_file,
    table_folder,
    tables_of_empty,
    tables_of_part,
    with_empty,
    write_empty,
    write_residuals,
    write_table,
)
from rpexplore.releases.area_measurement import (
    AreaAnswers,
    MeasuredAnswers,
    check_countable,
    check_measurable,
    measure_areas,
    tasks_from,
)
from rpexplore.releases.area_parts import AreaParts
from rpexplore.releases.finished_release import WRITING, PartRelease, WrittenPart
from rpexplore.releases.items import Item, PartReader
from rpexplore.releases.manifest import TableFiles, WrittenFiles, file_entry
from rpexplore.releases.means import clamping_of
from rpexplore.releases.measurement import Part, check_ranges
from rpexplore.releases.measurement_file import Measured, MeasurementNote
from rpexplore.releases.readme import area_readme
from rpexplore.releases.table_cells import (
    MEANS_FOLDER,
    TABLES,
    arrays_of_figures,
    label_columns,
)

# tables/         each table on each level in a folder of its own, as Parquet files of areas that
#                     follow one another, one row a cell of an area (`area_files`)
#     residuals/      what was measured: area (its place in the plan's list), residual (its place in
#                     the plan file's list), cell (row-major), measured (an integer)
#
# Measured and written a subtree after another. Of a run that was stopped, the subtrees that were
# measured, and the files that were written, are kept.


_BYTES_PER_NUMBER, _BYTES_PER_CELL = 12, 40  # or fewer, of what is measured and of tables
_LIST = Column("list", "code", "The list of areas that are added up.", attribute="list")


class TablesInAreas(PartReader):
    """Tables in areas as a folder holds them, released or combined.

    plan    what is known in which area, and how accurately
    folder  of the tables
    """

    kind: ClassVar[str] = "areas"

    @cached_property
    @abstractmethod
    def answers_in_areas(self) -> AreaAnswers:
        """The least-squares answers to all residuals, from what was measured."""

    @property
    def tree(self) -> AreaTree:
        """The areas."""
        return self.plan.workload.tree

    @property
    def domain(self) -> Domain:
        """The attributes that the tables are about, without the levels of areas."""
        return self.plan.domain

    def area_tables(self) -> "TablesInAreas":
        return self

    @property
    def area_levels(self) -> Sequence[str]:
        levels = self.tree.levels
        used = {item.level for item in self.items}
        return levels[1 : 1 + max(i for i, level in enumerate(levels) if level in used)]

    @property
    def why_no_tables(self) -> str:
        return (
            "this is not made of tables in areas. `rpexplore answer`, `combine`, `publish` and "
            "`workbook` take them, and `postprocess --nonnegative --round` makes whole counts."
        )

    @cached_property
    def items(self) -> Sequence[Item]:
        return items_of_areas(self.parts, self.checked)

    def table(
        self, level: str, *attributes: str, within: str | Sequence[str] | None = None
    ) -> pd.DataFrame:
        """A table in all areas of a level for which it was asked, one row a cell of an area.

        Args:
            level: Its name.
            attributes: Those of the table; none for totals.
            within: An area to whose areas it is limited: its codes from below the top down, or its
                own code where no other has it.

        Returns:
            Columns: the codes of the area on each level below the top, its name if there are
            names, the labels of attributes, value, standard_error, lower_95, upper_95, and note
            where some areas are empty or some rows impossible. Empty areas come last.

        Raises:
            ReleaseError: If there is no such level or table on it.
            DomainError: If there is no such area.
        """
        return self._read(level, attributes, within, TABLES)

    def means(
        self, level: str, *attributes: str, within: str | Sequence[str] | None = None
    ) -> pd.DataFrame:
        """The means of a table with amounts in areas of a level, one row a group of an area.

        Columns as of `table`; empty where a count is not clearly above 0. Raises `WorkloadError`
        for a table without means, and else what `table` raises.
        """
        tables = self.plan.workload.tables
        table = tables.find(indices := query_attributes(self.plan.domain, [attributes]))
        if table is not None and not tables.has_means[table]:
            raise WorkloadError(
                f"There are no means of {self.plan.domain.describe(indices)}; name a table with an "
                "attribute of amounts that are no weights."
            )
        return self._read(level, attributes, within, MEANS_FOLDER)

    def _read(
        self,
        level: str,
        attributes: Sequence[str],
        within: str | Sequence[str] | None,
        kind: str,
    ) -> pd.DataFrame:
        """The rows of a table, or its means, in the areas of a level; kind: the folder of both."""
        plan, levels = self.plan, self.tree.levels
        table = plan.workload.tables.find(query_attributes(plan.domain, [attributes]))
        if level not in levels or table is None:
            raise self._no_table(level, attributes)
        number = levels.index(level)
        folder = table_folder(plan, number, table, kind)
        if not (self.folder / folder).is_dir():
            raise self._no_table(level, attributes)
        top = area_number(self.tree, within) if within else 0
        depth = int(self.tree.level_of[top])
        if depth > number:
            raise ReleaseError(
                f"An area {' > '.join(self.tree.path(top))!r} has no areas on the level {level!r}, "
                "which is above it; give fewer codes."
            )
        areas = AreaRange.within(self.tree, depth, top, top + 1, number).slices[-1]
        rows = with_empty(
            rows_of_areas(self.parts, self.checked, number, table, areas, kind),
            rows_of_empty(plan, self.checked, number, table, top, kind),
        )
        if rows is None:
            first = min(path.name for path in (self.folder / folder).iterdir())
            rows = pyarrow.parquet.read_schema(self.checked / f"{folder}/{first}").empty_table()
        return frame_of(rows)

    def sums_of_areas(self, lists: AreaLists, *attributes: str) -> pd.DataFrame:
        """A table summed over lists of areas: unbiased, with exact standard errors.

        Args:
            lists: As of `AreaPlan.accuracy_of_sums`: name -> areas, or a single area such as "R01".
            attributes: Those of a table of the plan; none for totals.

        Returns:
            One row a cell of a list: list, the labels of attributes, value, standard_error,
            lower_95, upper_95.

        Raises:
            ReleaseError: If an area of a list has no answer.
            DomainError: For an area that is not there, or that a list counts twice.
            WorkloadError: For a table that is asked for nowhere.
        """
        plan = self.plan
        sums = AreaSums.of(self.tree, lists)
        indices, tables = query_attributes(plan.domain, [attributes]), plan.workload.tables
        names = tuple(plan.domain.names[index] for index in indices)
        table, parts = tables.position(names), self.parts
        errors_of = CellErrors.of(parts, table)
        variances = variances_of_sums(plan, sums)[errors_of.residuals]
        without = np.flatnonzero(np.any(np.isnan(variances), axis=0)).tolist()
        if without:
            raise ReleaseError(
                f"The list {sums.names[without[0]]!r} has an area for which the table "
                f"({', '.join(names) or 'total'}) was not asked; take areas of another level."
            )
        labels = [
            label_columns(plan.domain.attributes[index], tables.basis_of(table, index))
            for index in indices
        ]
        values = np.zeros((len(sums.names), *(len(named[0][1]) for named in labels)))
        answers = self.answers_in_areas
        for part, within in enumerate(parts.areas):
            inside = np.zeros(len(sums.areas), dtype=bool)
            rows = np.zeros(len(sums.areas), dtype=np.int64)
            for level, areas in enumerate(within.slices):
                here = (sums.areas >= areas.start) & (sums.areas < areas.stop)
                inside |= here
                rows[here] = within.rows(level).start + sums.areas[here] - areas.start
            if np.any(inside):
                of_areas = answers.of_part(part).tables(table, rows[inside])
                np.add.at(values, sums.lists[inside], of_areas)
        of_cells = errors_of.from_variances(variances)
        errors = np.broadcast_to(of_cells, (len(values), values[0].size)).ravel()
        codes = np.indices(values.shape).reshape(values.ndim, -1)
        of_cells = [_LIST, *(column for named in labels for column, _ in named)]
        arrays = [pa.array(sums.names).take(codes[0])]
        for code, named in zip(codes[1:], labels, strict=True):
            arrays += [texts.take(code) for _, texts in named]
        arrays += arrays_of_figures(RELEASED, values.ravel(), errors)
        columns = (*apart_from(of_cells, RELEASED), *RELEASED)
        fields = [column.field(array.type) for column, array in zip(columns, arrays, strict=True)]
        return frame_of(pa.table(arrays, schema=pa.schema(fields)))

    def clamping_of(self, attributes: Collection[str]) -> str:
        return clamping_of(self.domain, attributes)

    @cached_property
    def parts(self) -> AreaParts:
        """The subtrees that its files are of."""
        return AreaParts(self.plan)

    def _no_table(self, level: str, attributes: Sequence[str]) -> ReleaseError:
        table = ", ".join(attributes) or "total"
        return ReleaseError(
            f"There is no table ({table}) on a level {level!r}; the levels are "
            f"{', '.join(self.tree.levels)}, what was asked for on each is in `plan.accuracy()`."
        )


class AreaRelease(TablesInAreas, PartRelease[AreaPlan]):
    """The tables in areas of a finished release. Holds noisy figures only."""

    kind = "areas"

    @cached_property
    def answers_in_areas(self) -> ReleasedAnswers:
        return ReleasedAnswers(self.parts, self.checked)

    @classmethod
    def files_of(cls, plan: AreaPlan, listed: Collection[str]) -> TableFiles:
        return area_files(AreaParts(plan))


@dataclass(frozen=True)
class AreaSteps:
    """The `PartSteps` of tables in areas: residuals of all areas are measured.

    in_tasks  whether parts below the first are counted and measured where the records lie
    """

    plan: AreaPlan
    in_tasks: bool = False
    booked_share: ClassVar[float] = 0.1
    drawn_share: ClassVar[float] = 0.5

    def n_bytes(self, *, parquet_only: bool, file_per_table: bool = False) -> float:
        workload = self.plan.workload
        of_kinds = [float(np.sum(asked.cells)) for asked in workload.workloads]
        n_cells = float(np.array(of_kinds) @ workload.areas_asked)
        return _BYTES_PER_NUMBER * float(self._parts.starts[-1]) + _BYTES_PER_CELL * n_cells

    @property
    def parts(self) -> Sequence[Part]:
        return self._parts.parts

    @cached_property
    def _parts(self) -> AreaParts:
        return AreaParts(self.plan, alone=self.in_tasks)

    def tasks_from(self, part: Part) -> tuple[AreaShares, Work]:
        """What is worked on in tasks from a part on, which is not the first."""
        return tasks_from(self._parts, part.items.start)

    def check_measurable(self) -> None:
        check_measurable(self._parts)

    def check_countable(self, counts: Counts) -> None:
        check_ranges(self.plan.workload.tables, self.plan.closure, counts)
        check_countable(self.plan, counts)

    def measure(self, part: Part, counts: Counts) -> Generator[np.ndarray, None, None]:
        return measure_areas(self._parts, part.items.start, counts)

    def write(
        self, folder: Path, measured: Measured, note: MeasurementNote, on_progress: Progress
    ) -> WrittenPart:
        """Tables and residuals, a part after another."""
        parts, files = self._parts, area_files(self._parts)
        for parent in {Path(path).parent for path in files}:
            (folder / parent).mkdir(parents=True, exist_ok=True)
        written = WrittenFiles(folder, files, measured)
        answers, entries = MeasuredAnswers(parts, measured), []
        for part in range(len(parts.areas)):
            on_progress(WRITING, part / len(parts.areas))
            entries += self._write_part(part, folder, answers, written)
        for level, table in tables_of_empty(self.plan):
            entries += self._write_empty(level, table, folder, written)
        example = next(path for path in reversed(files) if files[path] is not None)
        readme = area_readme(self.plan, "/".join(example.split("/")[1:3]))
        return WrittenPart(readme, entries)

    def _write_empty(
        self, level: int, table: int, folder: Path, written: WrittenFiles
    ) -> list[dict[str, Any]]:
        """Write a table in empty areas, unless it is there; what the manifest says of it."""
        paths = [
            empty_file(self.plan, level, table, within) for within in folders_of(self.plan, table)
        ]
        facts = {"attributes": list(self.plan.workload.tables.tables[table])}
        kept = written.entries(paths, **facts)
        if kept is None:
            write_empty(self.plan, level, table, folder)
            kept = [file_entry(folder, path, **facts) for path in paths]
            written.note(kept)
        return list(kept)

    def _write_part(
        self, part: int, folder: Path, answers: MeasuredAnswers, written: WrittenFiles
    ) -> list[dict[str, Any]]:
        """Write the files of a part, unless they are there; what the manifest says of them."""
        parts = self._parts
        tables = list(tables_of_part(parts, part))
        names = self.plan.workload.tables.tables
        files = {
            table_file(self.plan, level, table, part, within): {"attributes": list(names[table])}
            for level, table in tables
            for within in folders_of(self.plan, table)
        }
        files = {residual_file(part): {}, **files}
        kept = [written.entries([path], **facts) for path, facts in files.items()]
        if all(entry is not None for entry in kept):
            return [entry for of_file in kept for entry in of_file or ()]
        write_residuals(parts, part, answers.measured, folder)
        of_part = answers.of_part(part)

        def write(at: tuple[int, int]) -> None:
            write_table(of_part, part, *at, folder)

        with closing(in_order(write, tables)) as done:
            for _ in done:
                pass
        entries = [file_entry(folder, path, **facts) for path, facts in files.items()]
        written.note(entries)
        return entries
