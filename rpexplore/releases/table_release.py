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
from collections import OrderedDict
from collections.abc import Callable, Collection, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet

from rpexplore.common.numbers import Decimals, distinct_rows
from rpexplore.common.processes import Progress, in_order
from rpexplore.data.source import Counts
from rpexplore.domain.amounts import Amounts
from rpexplore.domain.domain import AttributeIndices, AttributeSet, Domain
from rpexplore.domain.result_schema import MEANS, RELEASED, frame_of
from rpexplore.errors import WorkloadError
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.mechanism.reconstruction import (
    Where,
    answers,
    contribution,
    impossible_answers,
    marginal,
    query_attributes,
    query_matrices,
    residuals_within,
)
from rpexplore.planning.mechanism.variances import CellVariances
from rpexplore.planning.pilot import (
    n_pilot_residuals,
    pilot_scales,
    pilot_weights,
    rest_scales,
)
from rpexplore.planning.table_plan import TablePlan
from rpexplore.releases import measurement
from rpexplore.releases.finished_release import WRITING, PartRelease, WrittenPart
from rpexplore.releases.items import Answer, Item, Marginal, MarginalEstimate
from rpexplore.releases.manifest import TableFiles, WrittenFiles, file_entry
from rpexplore.releases.means import (
    amounts_of,
    clamping_sentences,
    figures_of_sums,
    n_groups,
    ratio_columns,
)
from rpexplore.releases.measurement import (
    LARGE,
    Part,
    measured_cells,
    measured_shape,
    ranges_of,
)
from rpexplore.releases.measurement_file import Measured, MeasuredFile, MeasurementNote
from rpexplore.releases.packed_tables import (
    PACKED,
    Figures,
    PackedTables,
    bytes_of_tables,
    packed_tables,
    rows_of_packed,
    write_packed,
)
from rpexplore.releases.readme import table_readme
from rpexplore.releases.table_cells import (
    MEANS_FOLDER,
    TABLES,
    Labels,
    check_schema,
    csv_decimals,
    files_of_tables,
    label_columns,
    not_what_was_written,
    pieces_of_cells,
    read_rows,
    refuse_gaps,
    rows_of_columns,
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
        return (
            ({PACKED: None} if len(packed) else {})
            | files_of_tables(workload.tables, TABLES, _others(workload, packed))
            | files_of_tables(workload.tables, MEANS_FOLDER, of_means)
            | dict.fromkeys(residual_files(plan.closure))
            | ({} if plan.pilot is None else {PILOT: None})
        )

    @property
    def domain(self) -> Domain:
        """The attributes that the tables are about."""
        return self.plan.workload.domain

    @cached_property
    def table_names(self) -> tuple[tuple[str, ...], ...]:
        """The attributes of each released table, in the domain's order."""
        return tuple(self.plan.workload.tables)

    @cached_property
    def items(self) -> Sequence[Item]:
        workload = self.plan.workload
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

    def unbiased_tables(self) -> "TableRelease":
        return self

    @cached_property
    def queries(self) -> Sequence[Sequence[QueryMatrix | None]]:
        """What the cells of each table count, by axis: sums by a basis; None: single values."""
        workload, matrices = self.plan.workload, query_matrices(self.plan.workload)
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
        return float(np.sum(self.plan.workload.cells))

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
        position = self.plan.workload.find(query_attributes(self.domain, attributes))
        return self.counts(*attributes) if position is None else frame_of(self.cells(position))

    def cells(self, position: int) -> pa.Table:
        """The table at a position of the workload as it was released, one row a cell."""
        workload = self.plan.workload
        if position in self._packed:
            bases = workload.attribute_basis_index[position, : workload.orders[position]].tolist()
            labels = [self._labels.of(basis) for basis in bases]
            shape = [workload.n_queries[basis] for basis in bases]
            indices = workload.attribute_indices(position)
            impossible = impossible_answers(self.domain, indices, self.queries[position])
            values, errors = self._packed.figures(position)
            return rows_of_packed(labels, shape, values, errors, impossible)
        path = self.folder / f"{table_path(position, workload.tables[position])}.parquet"
        n_rows = int(workload.exact_cells[position])
        return read_rows(path, RELEASED, n_rows)

    @cached_property
    def _packed(self) -> PackedTables:
        """The tables that are in one file, if there are any."""
        listed = any(entry["path"] == PACKED for entry in self.manifest["files"])
        workload = self.plan.workload
        packed = packed_tables(workload, file_per_table=not listed)
        return PackedTables(self.folder / PACKED, workload, packed)

    @cached_property
    def _labels(self) -> "LabelsOfBases":
        return LabelsOfBases(self.plan.workload)

    def means(self, *attributes: AttributeSet) -> pd.DataFrame:
        """The means of a table with amounts, by the others of its attributes, as released.

        Columns: labels, value, standard_error, lower_95, upper_95; empty where a count is not
        clearly above 0.
        """
        indices = query_attributes(self.domain, attributes)
        position = self.plan.workload.find(indices)
        if position is None or not self.plan.workload.has_means[position]:
            raise WorkloadError(
                f"There are no means of {self.domain.describe(indices)}; name a table with an "
                "attribute of amounts that are no weights."
            )
        return frame_of(self.mean_cells(position))

    def means_of(self, attributes: Collection[str]) -> pd.DataFrame | None:
        position = self.plan.workload.find(self.domain.positions(attributes))
        if position is None or not self.plan.workload.has_means[position]:
            return None
        return frame_of(self.mean_cells(position))

    def clamping_of(self, attributes: Collection[str]) -> str:
        values = (self.domain[name].values for name in attributes)
        return " ".join(one.clamping_sentence for one in values if isinstance(one, Amounts))

    def mean_cells(self, position: int) -> pa.Table:
        """The means of the table at a position of the workload, one row a group."""
        workload = self.plan.workload
        path = self.folder / f"{table_path(position, workload.tables[position], MEANS_FOLDER)}"
        n_rows = n_groups(workload, position)
        return read_rows(path.with_name(f"{path.name}.parquet"), MEANS, n_rows, may_be_empty=True)

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
                values. What it leaves out is summed over.

        Returns:
            Value and exact standard error, with all covariances of what is added up.

        Raises:
            WorkloadError: If no table has these attributes together (a model may answer then, by
                `rpexplore.Questions`), or numbers do not fit.
            DomainError: For an unknown attribute, or a text that names no values.
        """
        indices = query_attributes(self.domain, attributes, where)
        return self._estimate(indices).answer(where or {})

    @property
    def has_sums(self) -> bool:
        return True

    def marginals(self, attributes: Collection[str]) -> Sequence[Marginal]:
        return [self._estimate(self.domain.positions(attributes)).marginal]

    def _estimate(self, attributes: AttributeIndices) -> MarginalEstimate:
        """A marginal, from the measured residuals within it."""
        closure = self.plan.closure
        residuals = residuals_within(closure, attributes)
        measured = self.measured(list(residuals.values()))
        contributions = {
            subset: contribution(measured[residual], subset, closure.strategies)
            for subset, residual in residuals.items()
        }
        return MarginalEstimate(self.plan.marginal_noise(attributes), contributions)

    def measured(self, residuals: Sequence[int]) -> dict[int, np.ndarray]:
        """What was measured of these residuals, one axis an attribute: int64, means float64."""
        measured = self._stored.measured(residuals)
        if self.plan.pilot is not None:
            weights = pilot_weights(self.plan)
            first = [residual for residual in residuals if weights[residual]]
            of_pilot = self._stored_pilot.measured(first)
            for residual, array in of_pilot.items():
                measured[residual] = together(array, measured[residual], weights[residual])
        return measured

    @cached_property
    def _stored(self) -> "StoredResiduals":
        return StoredResiduals(self.folder, self.plan.closure)

    @cached_property
    def _stored_pilot(self) -> "StoredResiduals":
        return StoredResiduals(self.folder, self.plan.closure, PILOT)


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
        if self.plan.pilot is None:
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
        return (
            replace(self.plan, sigma_squared=first),
            replace(self.plan, sigma_squared=rest_scales(self.plan)),
        )

    @property
    def n_pilot(self) -> int:
        """How many numbers the pilot measures; 0 without one."""
        return 0 if self.plan.pilot is None else self._parts[0].n_measured

    def check_measurable(self) -> None:
        measurement.check_measurable(self.plan)
        for plan in self._measured_plans if self.n_pilot else ():
            measurement.check_measurable(plan)

    def check_countable(self, counts: Counts) -> None:
        measurement.check_ranges(self.plan, counts)
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
            others = _others(workload, writer.packed)
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


def _others(workload: Workload, packed: np.ndarray) -> list[int]:
    """The tables that have files of their own."""
    return np.setdiff1d(np.arange(len(workload)), packed).tolist()


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
        paths = table_paths(position, names, with_csv=self._with_csv)
        if workload.has_means[position]:
            paths += table_paths(position, names, MEANS_FOLDER, with_csv=self._with_csv)
        if (entries := self._written.entries(paths, attributes=names)) is not None:
            return entries
        with self._large if workload.cells[position] > LARGE else nullcontext():
            entries = self._write(position, names)
        self._written.note(entries)
        return entries

    def packed_file(self, on_cells: Callable[[int], None]) -> list[dict[str, Any]]:
        """Write the tables that are in one file; what the manifest says of it."""
        if (entries := self._written.entries([PACKED])) is not None:
            return entries
        figures_of = self._figures_of
        path, workload, labels_of = self.folder / PACKED, self.plan.workload, self._labels.of
        for n_cells in write_packed(path, workload, self.packed, labels_of, figures_of):
            on_cells(n_cells)
        entries = [file_entry(self.folder, PACKED)]
        self._written.note(entries)
        return entries

    def _figures_of(self, position: int) -> Figures:
        if self._common_errors is None:
            scales = self.plan.sigma_squared.floats
            errors = np.sqrt(self._cells.variances_of(position, scales))
        else:
            errors = self._common_errors[position]
        impossible = None
        if self.plan.domain.impossible:
            impossible = self._contributions.impossible(position)
        return self._contributions.answers(position), errors, impossible

    @cached_property
    def _common_errors(self) -> np.ndarray | None:
        """The standard error of all cells of each table, where those of a table are alike."""
        if not self.plan.workload.is_marginals:
            return None
        return np.sqrt(self.plan.closure.variances(self.plan.sigma_squared.floats))

    def _write(self, position: int, names: Sequence[str]) -> list[dict[str, Any]]:
        workload = self.plan.workload
        units = self._cells.units_of(position)
        values = self._contributions.answers(position) * units
        labels = [
            self._labels.of(basis_index)
            for basis_index in workload.attribute_basis_index[position, : values.ndim].tolist()
        ]
        variances = self._cells.variances_of(position, self.plan.sigma_squared.floats)
        if units.ndim and np.any(units != 1):
            variances = variances * units**2
        figures = RELEASED
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
            decimals=csv_decimals(np.sqrt(variances.min()), max(-values.min(), values.max())),
            escape_formulas=self._escape_formulas,
            with_csv=self._with_csv,
        )
        if workload.has_means[position]:
            entries += self._write_means(position, labels, values, variances)
        return entries

    def _write_means(
        self,
        position: int,
        labels: Sequence[Labels],
        values: np.ndarray,
        variances: np.ndarray,
    ) -> list[dict[str, Any]]:
        """Write the means of a table with amounts, from its sums and counts."""
        workload = self.plan.workload
        axis, amounts = amounts_of(workload, position)
        covariances = self._cells.sum_covariances_of(position, self.plan.sigma_squared.floats)
        sums, counts = (values.take([row], axis) for row in (0, 1))
        of_sums, of_counts = (variances.take([row], axis) for row in (0, 1))
        columns = ratio_columns(sums, counts, of_sums, of_counts, covariances)
        unit = f" ({amounts.unit})" if amounts.unit else ""
        named = [*labels]
        named[axis] = [(labels[axis][0][0], pa.array([f"mean{unit}"]))]
        for place, index in enumerate(workload.attribute_indices(position)):
            if index in workload.domain.weights:
                named[place] = [(labels[place][0][0], pa.array(["weighted"]))]
        figures = [replace(column, unit=amounts.unit) for column in MEANS]
        clamping = clamping_sentences(workload, position)
        figures[0] = replace(figures[0], meaning=f"{MEANS[0].meaning} {clamping}")
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


# ---- What a pilot measured, with what was measured after it.


@dataclass(frozen=True, eq=False, repr=False)
class PilotedFile(MeasuredFile):
    """The measured residuals of a plan with a pilot: of those measured twice the mean.

    numbers  those after the pilot; closure: as of all
    pilot    what the pilot measured
    weights  float64[n_residuals]: of the pilot's figures in the mean
    """

    pilot: MeasuredFile
    weights: np.ndarray

    def stacked(self, residuals: np.ndarray) -> np.ndarray:
        """The means of residuals of one shape, int64[m]: float64[m, …]; int64 without a pilot."""
        rest = super().stacked(residuals)
        if not self.weights[residuals[0]]:  # those of one shape all have one, or none
            return rest
        weights = self.weights[residuals].reshape(-1, *([1] * (rest.ndim - 1)))
        return together(self.pilot.stacked(residuals), rest, weights)


def measurements_of(plan: TablePlan, measured: Measured) -> MeasuredFile:
    """What was measured for a plan, with its pilot if it has one."""
    if plan.pilot is None:
        return MeasuredFile(measured, plan.closure)
    pilot = MeasuredFile(measured, plan.closure)
    n_pilot = int(pilot.starts[n_pilot_residuals(plan.closure)])
    rest = replace(measured, start=measured.start + n_pilot)
    return PilotedFile(rest, plan.closure, pilot, pilot_weights(plan))


def together(pilot: np.ndarray, rest: np.ndarray, weights: float | np.ndarray) -> np.ndarray:
    """The mean of what was measured twice; weights: of the pilot's figures."""
    return rest + weights * (pilot - rest)


# ---- The tables of a release from its measurements, several at a time where they are alike.
#
# Alike are residuals, or tables, whose attributes are measured, and asked for, alike along every
# axis: what is done to one is done to a stack of them.


_MOST_KEPT = 400_000_000  # bytes
_CELLS_AT_ONCE = 1 << 17  # of a stack, which stays in the cache
_STACKS_KEPT = 8


class Contributions:
    """What each residual of a plan adds to its tables, and the tables.

    What several tables need is kept, up to 400 MB. Several threads may use it at a time.
    """

    def __init__(self, plan: TablePlan, measurements: MeasuredFile) -> None:
        self._plan, self._measurements = plan, measurements
        self._query_matrices = query_matrices(plan.workload)
        self._kept: dict[int, np.ndarray] = {}
        self._stacks: OrderedDict[int, np.ndarray] = OrderedDict()
        self._lock = threading.RLock()

    def answers(self, table: int) -> np.ndarray:
        """The unbiased answers of a table of the workload: float64, one axis an attribute.

        Best asked for in the order of the workload: tables alike that follow each other are
        computed together.
        """
        values = self._in_stack(table)
        # Exact totals are whole numbers, of which sums of floats are off by a rounding.
        return np.rint(values) if self._is_exact[table] else values

    @cached_property
    def _is_exact(self) -> np.ndarray:
        """Which tables are exact totals, or inside of one: bool[n_tables]."""
        workload, exact = self._plan.workload, self._plan.closure.exact_totals
        is_exact = np.zeros(len(workload), dtype=bool)
        for total in exact:
            single = np.flatnonzero(np.array(workload.domain.sizes) == 1)
            inside = np.isin(workload.members, [-1, *total, *single.tolist()])
            is_exact |= np.all(inside, axis=1)
        return is_exact

    def _in_stack(self, table: int) -> np.ndarray:
        stack = int(self._stack_of[table])
        first, stop = np.searchsorted(self._stack_of, [stack, stack + 1]).tolist()
        if stop - first == 1:  # without waiting for others
            return self._answers(np.array([table]))[0]
        with self._lock:
            if stack not in self._stacks:
                self._stacks[stack] = self._answers(np.arange(first, stop))
                if len(self._stacks) > _STACKS_KEPT:
                    self._stacks.popitem(last=False)
            return self._stacks[stack][table - first]

    def impossible(self, table: int) -> np.ndarray | None:
        """Which answers of a table count no possible record; None if all count some."""
        workload = self._plan.workload
        return impossible_answers(
            workload.domain, workload.attribute_indices(table), self._matrices(table)
        )

    def _matrices(self, table: int) -> list[QueryMatrix | None]:
        bases = self._plan.workload.attribute_basis_index[table]
        return [self._query_matrices[basis] for basis in bases if basis >= 0]

    def _answers(self, tables: np.ndarray) -> np.ndarray:
        """The answers of tables alike, int64[m]: float64[m, …]."""
        return answers(self._marginals(tables), self._matrices(int(tables[0])))

    def _marginals(self, tables: np.ndarray) -> np.ndarray:
        """Their marginals by single values: float64[m, …]."""
        workload, closure = self._plan.workload, self._plan.closure
        indices = workload.attribute_indices(int(tables[0]))
        # Column by column the same subsets of the attributes of each.
        residuals = np.stack([closure.subsets(table) for table in tables.tolist()])
        parts = {
            closure.attributes(int(column[0])): self._contributions(column)
            for column in residuals.T
        }
        return marginal(indices, closure.sizes, parts, closure.strategies, closure.trees)

    def _contributions(self, residuals: np.ndarray) -> np.ndarray:
        """Those of residuals alike, int64[m]: float64[m, …]."""
        form = int(self._forms[residuals[0]])
        if not self._are_kept[form]:
            return self._computed(residuals)
        with self._lock:
            if form not in self._kept:
                self._kept[form] = self._computed(np.flatnonzero(self._forms == form))
        return self._kept[form][self._rows[residuals]]

    def _computed(self, residuals: np.ndarray) -> np.ndarray:
        closure, m = self._plan.closure, len(residuals)
        attributes = closure.attributes(int(residuals[0]))
        step = max(1, _CELLS_AT_ONCE // int(closure.residual_cells[residuals[0]]))
        parts = (
            contribution(
                self._measurements.stacked(residuals[start : start + step]),
                attributes,
                closure.strategies,
            )
            for start in range(0, m, step)
        )
        if m <= step:
            return next(parts)
        computed = np.empty((m, *closure.sizes[list(attributes)]))
        for start, part in zip(range(0, m, step), parts, strict=True):
            computed[start : start + step] = part
        return computed

    @cached_property
    def _forms(self) -> np.ndarray:
        """Of each residual a number, the same for those alike: int64[n_residuals]."""
        closure = self._plan.closure
        orders = np.count_nonzero(closure.members >= 0, axis=1)
        return distinct_rows([orders, *closure.attribute_forms[closure.members].T])[1]

    @cached_property
    def _rows(self) -> np.ndarray:
        """Which of those alike a residual is: int64[n_residuals]."""
        order = np.argsort(self._forms, kind="stable")
        counts = np.bincount(self._forms)
        rows = np.empty_like(order)
        rows[order] = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
        return rows

    @cached_property
    def _are_kept(self) -> np.ndarray:
        """Whether residuals of a form are kept, bool: those of several tables, small ones first."""
        closure = self._plan.closure
        uses = np.bincount(closure.incidence.indices, minlength=len(closure))
        n_bytes = 8 * np.bincount(self._forms, closure.residual_cells)
        are_shared = np.bincount(self._forms, uses > 1) > 0
        order = np.argsort(np.where(are_shared, n_bytes, np.inf), kind="stable")
        fit = np.empty_like(are_shared)
        fit[order] = np.cumsum(n_bytes[order]) <= _MOST_KEPT
        return are_shared & fit

    @cached_property
    def _stack_of(self) -> np.ndarray:
        """The tables that are computed together, as ascending numbers: int64[n_tables]."""
        workload, closure = self._plan.workload, self._plan.closure
        is_single = [basis.is_identity for _, basis in workload.attribute_bases]
        bases = np.where([*is_single, True], -1, np.arange(len(is_single) + 1))
        forms = [
            workload.orders,
            *closure.attribute_forms[workload.members].T,
            *bases[workload.attribute_basis_index].T,
        ]
        alike = distinct_rows(forms)[1]
        n_cells = np.maximum(workload.cells, workload.counted_cells)
        pieces = np.cumsum(n_cells) // _CELLS_AT_ONCE
        begins = (np.diff(alike) != 0) | (np.diff(pieces) != 0)
        return np.concatenate([[0], np.cumsum(begins)])


# ---- The files of what was measured: one, or a folder of several, which programs read as one.


_NAME = "residuals"
PILOT = "pilot.parquet"
_ROWS_PER_FILE = 100_000_000  # or those of one residual that has more; of the format
_COLUMNS = {"residual": pa.int32(), "cell": pa.int64(), "measured": pa.int64()}
_SCHEMA = pa.schema(list(_COLUMNS.items()))
_ROWS_AT_ONCE = 1 << 20
_ROWS_IN_GROUP = 1 << 14  # what is read, at least, to have one residual
_SMALL_STEPS = "DELTA_BINARY_PACKED"
_MANY_GROUPS = 64  # that are read in threads
_NOT_IN_ORDER = "each number must be in it once, in order"


def residual_files(closure: Closure) -> dict[str, range]:
    """The files of what was measured, and the residuals in each, which follow each other.

    One file, `residuals.parquet`, or where it would have more than 100 million rows several in the
    folder `residuals`.
    """
    ranges = ranges_of(measured_cells(closure), _ROWS_PER_FILE)
    if len(ranges) == 1:
        return {f"{_NAME}.parquet": ranges[0]}
    return {f"{_NAME}/{number:04d}.parquet": items for number, items in enumerate(ranges)}


def write_residuals(measurements: MeasuredFile, folder: Path, path: str, residuals: range) -> None:
    """Write one of the `residual_files` into the folder of a part."""
    starts = measurements.starts
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    first, last = starts[[residuals.start, residuals.stop]].tolist()
    options: dict[str, Any] = {
        "use_dictionary": ["residual"],
        "column_encoding": {"cell": _SMALL_STEPS},
        "write_statistics": ["residual"],
    }
    with pyarrow.parquet.ParquetWriter(folder / path, _SCHEMA, **options) as writer:
        for start in range(first, last, _ROWS_AT_ONCE):
            stop = min(start + _ROWS_AT_ONCE, last)
            within = np.diff(np.clip(starts, start, stop))
            residual = np.repeat(np.arange(len(within), dtype=np.int32), within)
            columns = [
                pa.array(residual),
                pa.array(np.arange(start, stop) - starts[residual]),
                pa.array(measurements.numbers.read(start, stop)),
            ]
            rows = pa.record_batch(columns, schema=_SCHEMA)
            writer.write_batch(rows, row_group_size=_ROWS_IN_GROUP)


@dataclass(frozen=True, eq=False)
class StoredResiduals:
    """What a finished release has measured, in whichever files.

    Any of it is read without the rest: where a residual begins follows from the plan.
    """

    folder: Path
    closure: Closure
    file: str = ""  # the one that has them, if it is not those of `residual_files`

    def measured(self, residuals: Sequence[int]) -> dict[int, np.ndarray]:
        """What was measured of these residuals: int64, one axis an attribute.

        Raises `ReleaseError` for files that do not hold it once, in order.
        """
        measured = {}
        for path, within in self._files.items():
            if wanted := [residual for residual in residuals if residual in within]:
                measured |= self._in_file(path, wanted)
        return measured

    @cached_property
    def _files(self) -> dict[str, range]:
        if self.file:
            return {self.file: range(n_pilot_residuals(self.closure))}
        return residual_files(self.closure)

    @cached_property
    def _starts(self) -> np.ndarray:
        """Where each residual begins in the list, and the end: int64[n_residuals + 1]."""
        return np.concatenate([[0], np.cumsum(measured_cells(self.closure))])

    @cached_property
    def _footers(self) -> dict[str, "tuple[pyarrow.parquet.FileMetaData, np.ndarray]"]:
        """Path -> the footer of the file; where its row groups begin, and the last one ends."""
        return {}

    def _footer(self, name: str) -> "tuple[pyarrow.parquet.FileMetaData, np.ndarray]":
        if name not in self._footers:
            path, within = self.folder / name, self._files[name]
            footer = pyarrow.parquet.read_metadata(path)
            check_schema(path, footer.schema.to_arrow_schema(), _COLUMNS)
            first, stop = self._starts[[within.start, within.stop]].tolist()
            if footer.num_rows != stop - first:
                raise not_what_was_written(path, _NOT_IN_ORDER)
            sizes = [footer.row_group(group).num_rows for group in range(footer.num_row_groups)]
            self._footers[name] = footer, first + np.cumsum([0, *sizes])
        return self._footers[name]

    def _in_file(self, name: str, residuals: Sequence[int]) -> dict[int, np.ndarray]:
        path = self.folder / name
        firsts = self._starts[list(residuals)]
        stops = self._starts[[residual + 1 for residual in residuals]]
        try:
            footer, begins = self._footer(name)
            of_first = np.searchsorted(begins, firsts, "right") - 1
            of_last = np.searchsorted(begins, stops - 1, "right")
            groups = np.unique(np.concatenate([*map(np.arange, of_first, of_last)]))
            with pa.OSFile(str(path)) as raw:
                file = pyarrow.parquet.ParquetFile(raw, metadata=footer)
                stored = file.read_row_groups(
                    groups.tolist(), columns=[*_COLUMNS], use_threads=len(groups) > _MANY_GROUPS
                )
        except (OSError, pa.ArrowException):
            raise not_what_was_written(path, "it cannot be read any more") from None
        refuse_gaps(path, stored, _COLUMNS)
        number, cell, measured = (stored[column].to_numpy() for column in _COLUMNS)
        # Where the first row of each group is among those that were read, and in the file.
        sizes = np.diff(begins)[groups]
        shifts = np.cumsum(sizes) - sizes - begins[groups]
        at = firsts + shifts[np.searchsorted(groups, of_first)]
        arrays = {}
        for residual, start, size in zip(residuals, at.tolist(), stops - firsts, strict=True):
            rows = slice(start, start + int(size))
            in_order = np.array_equal(cell[rows], np.arange(size))
            if not (in_order and np.all(number[rows] == residual)):
                raise not_what_was_written(path, _NOT_IN_ORDER)
            arrays[residual] = measured[rows].reshape(measured_shape(self.closure, residual))
        return arrays
