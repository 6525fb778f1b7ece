"""Tables of a release: what is counted, measured and written, and their files.

tables/NNNN_age_sex.*   each table as Parquet and CSV, one row a cell (an answer); of a run
                        that wants Parquet only, without CSV
tables.parquet          instead of these, small tables where there are more than 100
                        (`packed_tables`), unless the run wants a file for each
residuals.parquet       what was measured, so that tables can be rebuilt (residual: its place
                        in the plan file's list; cell: row-major, an attribute with a strategy
                        having one entry for each row of its matrix; measured: integer); beyond
                        100 million rows a folder, residuals/NNNN.parquet
pilot.parquet           the same of what a pilot measured, where the plan has one; what is in
                        residuals.parquet of the total and of single attributes was measured after
                        it, and tables have the mean of both (`planning/pilot.py`)
"""

import threading
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import prod
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet

from rpexplore.common.numbers import Decimals
from rpexplore.common.processes import Progress, in_order
from rpexplore.data.source import Counts
from rpexplore.domain.domain import AttributeIndices, AttributeSet, Domain
from rpexplore.domain.result_schema import MEANS, RELEASED, frame_of
from rpexplore.errors import WorkloadError
from rpexplore.planning.mechanism.asked_levels import least_noisy_query
from rpexplore.planning.mechanism.levels import LevelTree
from rpexplore.planning.mechanism.reconstruction import (
    Where,
    contribution,
    impossible_answers,
    query_attributes,
    query_matrices,
    residuals_within,
)
from rpexplore.planning.mechanism.variances import CellVariances
from rpexplore.planning.pilot import pilot_scales, pilot_weights, rest_scales
from rpexplore.planning.table_plan import TablePlan, n_pilot_residuals
from rpexplore.releases import large_tables, measurement
from rpexplore.releases.contributions import Contributions
from rpexplore.releases.finished_release import WRITING, PartRelease, WrittenPart
from rpexplore.releases.items import Answer, Item, Marginal, MarginalEstimate
from rpexplore.releases.large_tables import SlicedTable, are_large, refuse_as_whole
from rpexplore.releases.manifest import TableFiles, WrittenFiles, file_entry
from rpexplore.releases.means import (
    amounts_of,
    clamping_of,
    figures_of_means,
    figures_of_sums,
    labels_of_means,
    mean_asked,
    mean_of,
    n_groups,
    ratio_columns,
    with_sum,
)
from rpexplore.releases.measurement import LARGE, Part, measured_cells
from rpexplore.releases.measurement_file import Measured, MeasurementNote
from rpexplore.releases.packed_tables import (
    PACKED,
    VALUE_AND_ERROR,
    Figures,
    PackedTables,
    bytes_of_tables,
    packed_tables,
    released_figures,
    rows_of_packed,
    tables_in_files,
    write_packed,
)
from rpexplore.releases.readme import table_readme
from rpexplore.releases.residual_files import (
    PILOT,
    PilotedFile,
    StoredResiduals,
    measurements_of,
    residual_files,
    together,
    write_residuals,
)
from rpexplore.releases.table_cells import (
    MEANS_FOLDER,
    TABLES,
    Labels,
    csv_decimals,
    files_of_tables,
    label_columns,
    pieces_of_cells,
    read_rows,
    rows_of_columns,
    smallest_error,
    table_path,
    table_paths,
    write_table,
)
from rpexplore.workload.table_text import QueryMatrix
from rpexplore.workload.workload import Workload


class TableRelease(PartRelease[TablePlan]):
    """The tables of a finished release. Holds noisy figures only."""

    kind = "tables"
    is_adaptive: ClassVar[bool] = False  # as of `Estimates`

    @classmethod
    def files_of(cls, plan: TablePlan, listed: Collection[str]) -> TableFiles:
        workload = plan.workload
        packed = packed_tables(workload, file_per_table=PACKED not in listed)
        of_means = np.flatnonzero(workload.has_means).tolist()
        # Large ones have no CSV.
        large = np.flatnonzero(are_large(workload)).tolist()
        small = np.setdiff1d(tables_in_files(workload, packed), large).tolist()
        return (
            ({PACKED: None} if len(packed) else {})
            | {
                path: list(workload.tables[table])
                for table in large
                for path in table_paths(table, workload.tables[table], with_csv=False)
            }
            | files_of_tables(workload.tables, TABLES, small)
            | files_of_tables(workload.tables, MEANS_FOLDER, of_means)
            | dict.fromkeys(residual_files(plan.closure))
            | ({PILOT: None} if plan.has_pilot else {})
        )

    @property
    def workload(self) -> Workload:
        """The tables that were asked for, in their order."""
        return self.plan.workload

    @property
    def domain(self) -> Domain:
        """The attributes that the tables are about."""
        return self.workload.domain

    @cached_property
    def table_names(self) -> tuple[tuple[str, ...], ...]:
        """The attributes of each released table, in the domain's order."""
        return tuple(self.workload.tables)

    @cached_property
    def items(self) -> Sequence[Item]:
        workload = self.workload
        cells, packed = workload.exact_cells, set(self._packed.tables.tolist())
        tables = [
            Item.of_table(position, names, int(cells[position]), partial(self.cells, position))
            for position, names in enumerate(self.table_names)
        ]
        return [
            item.in_one_file(position) if position in packed else item
            for position, item in enumerate(tables)
        ] + [
            Item(
                names,
                f"{Path(path).name}_means",
                n_groups(workload, position),
                partial(self.mean_cells, position),
                file=path,
                note="means",
            )
            for position, names in enumerate(self.table_names)
            if workload.has_means[position] and (path := table_path(position, names, MEANS_FOLDER))
        ]

    @property
    def trees(self) -> tuple[LevelTree, ...]:
        """Of attributes that tables have at several levels, as of its closure."""
        return self.plan.closure.trees

    @property
    def sums_noun(self) -> str:
        return self.plan.workload.sums_noun

    def unbiased_tables(self) -> "TableRelease":
        return self

    @cached_property
    def queries(self) -> Sequence[Sequence[QueryMatrix | None]]:
        """What the cells of each table count, by axis: sums by a basis; None: single values."""
        workload, matrices = self.workload, query_matrices(self.workload)
        return [
            [matrices[index] for index in workload.attribute_basis_index[position, :order]]
            for position, order in enumerate(workload.orders)
        ]

    @property
    def residuals(self) -> Sequence[AttributeIndices]:
        """The attributes of everything that was measured."""
        closure = self.plan.closure
        return [closure.columns_of(position) for position in range(len(closure))]

    @property
    def n_cells(self) -> float:
        """Cells of all tables together."""
        return float(np.sum(self.workload.cells))

    def has(self, attributes: AttributeSet) -> bool:
        """Whether a table holds these attributes together."""
        try:
            residuals_within(self.plan.closure, self.domain.positions(attributes))
        except WorkloadError:
            return False
        return True

    def table(self, *attributes: AttributeSet) -> pd.DataFrame:
        """A table as it was released; by single values (`counts`) if it is within a released one.

        Columns: labels, value, standard_error, lower_95, upper_95. `table("age", "sex")` and
        `table(["age", "sex"])` are the same.
        """
        position = self.workload.find(query_attributes(self.domain, attributes))
        return self.counts(*attributes) if position is None else frame_of(self.cells(position))

    def cells(self, position: int) -> pa.Table:
        """The table at a position of the workload as it was released, one row a cell."""
        workload = self.workload
        if position in self._packed:
            bases = workload.attribute_basis_index[position, : workload.orders[position]].tolist()
            labels = [self._labels.of(basis) for basis in bases]
            (values, errors), impossible = self.figures_of(position)
            flat = values.ravel(), errors.ravel(), impossible
            return rows_of_packed(labels, values.shape, *flat, released_figures(self.plan))
        n_rows = int(workload.exact_cells[position])
        refuse_as_whole(workload.describe(position), n_rows)
        path = self.checked / f"{table_path(position, workload.tables[position])}.parquet"
        return read_rows(path, RELEASED, n_rows)

    def figures_of(self, position: int) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray | None]:
        """The same as values and errors, one axis an attribute, and cells without any record."""
        workload, order = self.workload, self.workload.orders[position]
        bases = workload.attribute_basis_index[position, :order].tolist()
        shape = [workload.n_queries[basis] for basis in bases]
        indices = workload.attribute_indices(position)
        impossible = impossible_answers(self.domain, indices, self.queries[position])
        if position in self._packed:
            values, errors = self._packed.figures(position)
        else:
            rows = self.cells(position)
            values, errors = (rows[column.name].to_numpy() for column in VALUE_AND_ERROR)
        return (values.reshape(shape), errors.reshape(shape)), impossible

    @cached_property
    def _packed(self) -> PackedTables:
        """The tables that are in one file, if there are any."""
        listed = any(entry["path"] == PACKED for entry in self.manifest["files"])
        workload = self.workload
        packed = packed_tables(workload, file_per_table=not listed)
        sizes = np.array([int(workload.exact_cells[table]) for table in packed.tolist()], int)
        return PackedTables(self.checked, packed, sizes)

    @cached_property
    def _labels(self) -> "LabelsOfBases":
        return LabelsOfBases(self.workload)

    def means(self, *attributes: AttributeSet) -> pd.DataFrame:
        """The means of a table with amounts, by the others of its attributes, as released.

        Columns: labels, value, standard_error, lower_95, upper_95; empty where a count is not
        clearly above 0.
        """
        indices = query_attributes(self.domain, attributes)
        position = self.workload.find(indices)
        if position is None or not self.workload.has_means[position]:
            raise WorkloadError(
                f"There are no means of {self.domain.describe(indices)}; name a table with an "
                "attribute of amounts that are no weights."
            )
        return frame_of(self.mean_cells(position))

    def means_of(self, attributes: Collection[str]) -> pd.DataFrame | None:
        position = self.workload.find(self.domain.positions(attributes))
        if position is None or not self.workload.has_means[position]:
            return None
        return frame_of(self.mean_cells(position))

    def clamping_of(self, attributes: Collection[str]) -> str:
        return clamping_of(self.domain, attributes)

    def mean_cells(self, position: int) -> pa.Table:
        """The means of the table at a position of the workload, one row a group."""
        workload = self.workload
        path = f"{table_path(position, workload.tables[position], MEANS_FOLDER)}.parquet"
        n_rows = n_groups(workload, position)
        return read_rows(self.checked / path, MEANS, n_rows, may_be_empty=True)

    def counts(self, *attributes: AttributeSet) -> pd.DataFrame:
        """Any marginal within a released table, by single values, whatever the bases.

        Of amounts, their sums and the records with and without one.
        """
        indices = query_attributes(self.domain, attributes)
        labels = [label_columns(self.domain.attributes[index]) for index in indices]
        return frame_of(self._estimate(indices).cells(labels))

    def answer(self, *attributes: AttributeSet, where: Where | None = None) -> Answer:
        """The noisy answer to a product query on a table: a range, a subtotal, a difference.

        Args:
            attributes: Names of the attributes of a table; those of `where` if none is named.
            where: Attribute name -> its values as a text ("18..24"), or a number for each of its
                values. What it leaves out is summed over. An attribute that tables have at a level
                is answered from its groups, if they tell what is asked. Of amounts "sum", "records"
                or "mean".

        Returns:
            Value and exact standard error, with all covariances of what is added up; of a mean with
            Fieller's interval.

        Raises:
            WorkloadError: If no table has these attributes together (a model may answer then, by
                `rpexplore.Questions`), the groups that they have do not tell it, or numbers do
                not fit.
            DomainError: For an unknown attribute, or a text that names no values.
            ReleaseError: For a mean over records whose number may be 0 for all that is known.
        """
        where = where or {}
        if (mean := mean_asked(self.domain, where)) is not None:
            where = with_sum(where, mean)
        if not attributes:
            noise_of = self.plan.marginal_noise
            where = least_noisy_query(self.domain, where, self.table_names, noise_of)
        estimate = self._estimate(query_attributes(self.domain, attributes, where), in_slices=True)
        return estimate.answer(where) if mean is None else mean_of(estimate, where, mean)

    @property
    def has_sums(self) -> bool:
        return True

    def marginals(self, attributes: Collection[str]) -> Sequence[Marginal]:
        return [self._estimate(self.domain.positions(attributes)).marginal]

    def _estimate(
        self, attributes: AttributeIndices, *, in_slices: bool = False
    ) -> MarginalEstimate:
        """A marginal, from the measured residuals within it; perhaps a `SlicedEstimate`.

        in_slices: whether that is enough; else a large one is refused
        """
        closure = self.plan.closure
        residuals = residuals_within(closure, attributes)
        n_cells = prod(self.domain.sizes[list(attributes)].tolist())
        if in_slices and n_cells > large_tables.MAX_TABLE_CELLS:
            sliced = SlicedTable(closure, attributes, residuals, self._stored.rows)
            return SlicedEstimate(self.plan.marginal_noise(attributes), {}, sliced)
        refuse_as_whole(self.domain.describe(attributes), n_cells)
        measured = self.measured(list(residuals.values()))
        contributions = {
            subset: contribution(measured[residual], subset, closure.strategies)
            for subset, residual in residuals.items()
        }
        return MarginalEstimate(self.plan.marginal_noise(attributes), contributions)

    def measured(self, residuals: Sequence[int]) -> dict[int, np.ndarray]:
        """What was measured of these residuals, one axis an attribute: int64, means float64.

        Raises `ReleaseError` for one of so many cells that it is read slice by slice only.
        """
        closure = self.plan.closure
        for residual in residuals:
            n_cells = float(closure.residual_cells[residual])
            refuse_as_whole(self.domain.describe(closure.columns_of(residual)), n_cells)
        measured = self._stored.measured(residuals)
        if self.plan.has_pilot:
            weights = pilot_weights(self.plan)
            first = [residual for residual in residuals if weights[residual]]
            of_pilot = self._stored_pilot.measured(first)
            for residual, array in of_pilot.items():
                measured[residual] = together(array, measured[residual], weights[residual])
        return measured

    @cached_property
    def _stored(self) -> "StoredResiduals":
        return StoredResiduals(self.checked, self.plan.closure)

    @cached_property
    def _stored_pilot(self) -> "StoredResiduals":
        return StoredResiduals(self.checked, self.plan.closure, PILOT)


@dataclass(frozen=True, eq=False)
class SlicedEstimate(MarginalEstimate):
    """A marginal of so many cells that answers are added up slice by slice."""

    sliced: SlicedTable

    def value(self, vectors: Mapping[int, np.ndarray]) -> float:
        answer = 0.0
        for rows, values in self.sliced.slices():
            for attribute in self.noise.attributes:
                vector = vectors[attribute]
                if attribute == self.sliced.first:
                    vector = vector[rows.start : rows.stop]
                values = np.tensordot(vector, values, axes=(0, 0))
            answer += float(values)
        return answer


@dataclass(frozen=True)
class TableSteps:
    """The `PartSteps` of tables: their residuals are measured."""

    plan: TablePlan
    booked_share: ClassVar[float] = 0.3
    drawn_share: ClassVar[float] = 0.4

    def n_bytes(self, *, parquet_only: bool, file_per_table: bool = False) -> float:
        n_measured = float(np.sum(measured_cells(self.plan.closure)))
        of_tables = bytes_of_tables(
            self.plan.workload, parquet_only=parquet_only, file_per_table=file_per_table
        )
        return float(np.sum(of_tables)) + 8.0 * n_measured

    @property
    def parts(self) -> Sequence[Part]:
        return self._parts

    @cached_property
    def _parts(self) -> Sequence[Part]:
        parts = measurement.parts_of(self.plan)
        if not self.plan.has_pilot:
            return parts
        n_pilot = n_pilot_residuals(self.plan.closure)
        n_measured = int(measured_cells(self.plan.closure)[:n_pilot].sum())
        # With the tables of the part that follows, so that these are counted once.
        return [Part(parts[0].tables, range(n_pilot), n_measured), *parts]

    @cached_property
    def _measured_plans(self) -> tuple[TablePlan, TablePlan]:
        """The plan with the noise of the pilot, and with that of what follows."""
        scales, pilot = self.plan.sigma_squared, pilot_scales(self.plan)
        others = scales[np.arange(len(pilot), len(scales))]
        first = Decimals.joined(pilot, others)
        alone = replace(self.plan, pilot=None, then=None, first=None, pilot_sha256="")
        return (
            replace(alone, sigma_squared=first),
            replace(alone, sigma_squared=rest_scales(self.plan)),
        )

    @property
    def n_pilot(self) -> int:
        """How many numbers the pilot measures; 0 without one."""
        return self._parts[0].n_measured if self.plan.has_pilot else 0

    def check_measurable(self) -> None:
        measurement.check_measurable(self.plan)
        for plan in self._measured_plans if self.n_pilot else ():
            measurement.check_measurable(plan)

    def check_countable(self, counts: Counts) -> None:
        measurement.check_ranges(self.plan.workload, self.plan.closure, counts)
        measurement.check_countable(self.plan, counts)

    def measure(self, part: Part, counts: Counts) -> Generator[np.ndarray, None, None]:
        plan = self.plan
        if self.n_pilot:
            plan = self._measured_plans[0 if part is self._parts[0] else 1]
        return measurement.measure_part(plan, part, counts)

    def write(
        self, folder: Path, measured: Measured, note: MeasurementNote, on_progress: Progress
    ) -> WrittenPart:
        """Tables and residuals, on all processors."""
        writer = TableWriter(
            folder,
            self.plan,
            measured,
            escape_formulas=note.escape_formulas,
            with_csv=not note.parquet_only,
            file_per_table=note.file_per_table,
        )
        workload = self.plan.workload
        cells = workload.cells
        n_written, n_cells = 0.0, float(np.sum(cells))
        files = []
        with ThreadPoolExecutor(1) as beside:
            residuals = beside.submit(writer.residuals)
            if len(writer.packed):
                files += writer.packed_file(lambda n: on_progress(WRITING, n / n_cells))
                n_written = float(np.sum(cells[writer.packed]))
            others = tables_in_files(workload, writer.packed)
            with closing(in_order(writer.table, others)) as written:
                for number, (position, entries) in enumerate(zip(others, written, strict=True)):
                    files += entries
                    n_written += cells[position]
                    if number % 16 == 0:
                        on_progress(WRITING, n_written / n_cells)
            files += residuals.result()
        return WrittenPart(
            table_readme(
                folder,
                self.plan,
                residual_files(self.plan.closure),
                writer.packed,
                with_csv=not note.parquet_only,
            ),
            files,
        )


class LabelsOfBases:
    """The label columns of each basis of a workload, made once: there may be a million in each."""

    def __init__(self, workload: Workload) -> None:
        self._workload = workload
        self._labels: dict[int, Labels] = {}

    def of(self, basis_index: int) -> Labels:
        """Those of one of `workload.attribute_bases`."""
        if basis_index not in self._labels:
            index, basis = self._workload.attribute_bases[basis_index]
            attribute = self._workload.domain.attributes[index]
            self._labels[basis_index] = label_columns(attribute, basis)
        return self._labels[basis_index]


class TableWriter:
    """Writes the parts of a release, from its measurements, into a folder not finished yet."""

    def __init__(
        self,
        folder: Path,
        plan: TablePlan,
        measured: Measured,
        *,
        escape_formulas: bool,
        with_csv: bool = True,
        file_per_table: bool = False,
    ) -> None:
        self.folder, self.plan = folder, plan
        self.packed = packed_tables(plan.workload, file_per_table=file_per_table)
        self._escape_formulas, self._with_csv = escape_formulas, with_csv
        self._measurements = measurements_of(plan, measured)
        self._contributions = Contributions(plan, self._measurements)
        self._cells = CellVariances(plan.workload, plan.closure)
        self._labels = LabelsOfBases(plan.workload)
        self._large = threading.Lock()
        folders = [TABLES] if len(self.packed) < len(plan.workload) else []
        folders += [MEANS_FOLDER] if np.any(plan.workload.has_means) else []
        self._written = WrittenFiles(
            folder, [*residual_files(plan.closure), *map("{}/".format, folders)], measured
        )

    def table(self, position: int) -> list[dict[str, Any]]:
        """Write a table of the workload; what the manifest says of its files."""
        workload = self.plan.workload
        names = list(workload.tables[position])
        is_large = bool(are_large(workload)[position])
        paths = table_paths(position, names, with_csv=self._with_csv and not is_large)
        if workload.has_means[position]:
            paths += table_paths(position, names, MEANS_FOLDER, with_csv=self._with_csv)
        if (entries := self._written.entries(paths, attributes=names)) is not None:
            return entries
        with self._large if workload.cells[position] > LARGE else nullcontext():
            entries = (self._write_slices if is_large else self._write)(position, names)
        self._written.note(entries)
        return entries

    def packed_file(self, on_cells: Callable[[int], None]) -> list[dict[str, Any]]:
        """Write the tables that are in one file; what the manifest says of it."""
        if (entries := self._written.entries([PACKED])) is not None:
            return entries
        figures_of = self._figures_of
        path, workload, labels_of = self.folder / PACKED, self.plan.workload, self._labels.of
        figures = released_figures(self.plan)[:2]
        for n_cells in write_packed(
            path, workload, self.packed, labels_of, figures_of, figures=figures
        ):
            on_cells(n_cells)
        entries = [file_entry(self.folder, PACKED)]
        self._written.note(entries)
        return entries

    def _figures_of(self, position: int) -> Figures:
        if self._common_errors is None:
            errors = np.sqrt(self._cells.variances_of(position, self.plan.stated_scales))
        else:
            errors = self._common_errors[position]
        impossible = None
        if self.plan.domain.impossible:
            impossible = self._contributions.impossible(position)
        return (self._contributions.answers(position), errors), impossible

    @cached_property
    def _common_errors(self) -> np.ndarray | None:
        """The standard error of all cells of each table, where those of a table are alike."""
        if not self.plan.workload.is_marginals:
            return None
        return np.sqrt(self.plan.closure.variances(self.plan.stated_scales))

    def _write(self, position: int, names: Sequence[str]) -> list[dict[str, Any]]:
        workload = self.plan.workload
        units = self._cells.units_of(position)
        values = self._contributions.answers(position) * units
        labels = [
            self._labels.of(basis_index)
            for basis_index in workload.attribute_basis_index[position, : values.ndim].tolist()
        ]
        variances = self._cells.variances_of(position, self.plan.stated_scales)
        if units.ndim and np.any(units != 1):
            variances = variances * units**2
        figures = released_figures(self.plan)
        if workload.has_amounts[position]:
            figures = figures_of_sums(workload, position)
        pieces = pieces_of_cells(
            labels,
            values,
            variances,
            figures,
            impossible=self._contributions.impossible(position),
        )
        entries = write_table(
            self.folder,
            position,
            names,
            pieces,
            decimals=csv_decimals(smallest_error(variances), max(-values.min(), values.max())),
            escape_formulas=self._escape_formulas,
            with_csv=self._with_csv,
        )
        if workload.has_means[position]:
            entries += self._write_means(position, labels, values, variances)
        return entries

    def _write_slices(self, position: int, names: Sequence[str]) -> list[dict[str, Any]]:
        """Write a large table, of which a slice is in memory at a time; without CSV."""
        workload = self.plan.workload
        indices = workload.attribute_indices(position)
        first = next(axis for axis, i in enumerate(indices) if workload.domain.sizes[i] > 1)
        labels = [
            self._labels.of(basis_index)
            for basis_index in workload.attribute_basis_index[position, : len(indices)].tolist()
        ]
        variances = self._cells.variances_of(position, self.plan.stated_scales)
        variance = variances[(0,) * variances.ndim]  # the same everywhere

        def pieces() -> Iterator[pa.Table]:
            for rows, values in self._contributions.slices(position):
                of_rows = [(one, texts[rows.start : rows.stop]) for one, texts in labels[first]]
                of_slice = [*labels[:first], of_rows, *labels[first + 1 :]]
                yield from pieces_of_cells(
                    of_slice, values, np.broadcast_to(variance, values.shape)
                )

        return write_table(
            self.folder,
            position,
            names,
            pieces(),
            decimals=0,
            escape_formulas=self._escape_formulas,
            with_csv=False,
        )

    def _write_means(
        self,
        position: int,
        labels: Sequence[Labels],
        values: np.ndarray,
        variances: np.ndarray,
    ) -> list[dict[str, Any]]:
        """Write the means of a table with amounts, from its sums and counts."""
        workload = self.plan.workload
        axis, _ = amounts_of(workload, position)
        covariances = self._cells.sum_covariances_of(position, self.plan.sigma_squared.floats)
        sums, counts = (values.take([row], axis) for row in (0, 1))
        of_sums, of_counts = (variances.take([row], axis) for row in (0, 1))
        columns = ratio_columns(sums, counts, of_sums, of_counts, covariances)
        named = labels_of_means(workload, position, labels)
        figures = figures_of_means(workload, position)
        errors = columns[1][np.isfinite(columns[1])]
        largest = np.max(np.abs(columns[0]), where=np.isfinite(columns[0]), initial=1.0)
        return write_table(
            self.folder,
            position,
            workload.tables[position],
            iter([rows_of_columns(named, columns, figures)]),
            decimals=csv_decimals(errors.min(initial=1.0), largest),
            escape_formulas=self._escape_formulas,
            with_csv=self._with_csv,
            within=MEANS_FOLDER,
        )

    def residuals(self) -> list[dict[str, Any]]:
        """Write all that was measured; what the manifest says of the files."""
        entries = []
        for path, residuals in residual_files(self.plan.closure).items():
            written = self._written.entries([path])
            if written is None:
                write_residuals(self._measurements, self.folder, path, residuals)
                written = [file_entry(self.folder, path)]
                self._written.note(written)
            entries += written
        if isinstance(self._measurements, PilotedFile):
            pilot = range(n_pilot_residuals(self.plan.closure))
            write_residuals(self._measurements.pilot, self.folder, PILOT, pilot)
            entries.append(file_entry(self.folder, PILOT))
        return entries
