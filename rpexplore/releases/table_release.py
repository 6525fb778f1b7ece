"""Tables of a release: what is counted, measured and written, and their files.

tables/NNNN_age_sex.*   each table as Parquet and CSV, one row a cell (an answer); of a run
                        that wants Parquet only, without CSV
residuals.parquet       what was measured, so that tables can be rebuilt (residual: its place
                        in the plan file's list; cell: row-major, an attribute with a strategy
                        having one entry for each row of its matrix; measured: integer); beyond
                        100 million rows a folder, residuals/NNNN.parquet
"""

from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd
import pyarrow as pa

from rpexplore.common.processes import Progress, in_order
from rpexplore.data.source import Counts
from rpexplore.domain.domain import AttributeIndices, AttributeSet, Domain
from rpexplore.domain.result_schema import RELEASED, frame_of
from rpexplore.errors import WorkloadError
from rpexplore.planning.mechanism.reconstruction import (
    Where,
    contribution,
    query_attributes,
    query_matrices,
    residuals_within,
)
from rpexplore.planning.table_plan import TablePlan
from rpexplore.releases import measurement
from rpexplore.releases.finished_release import WRITING, PartRelease, WrittenPart
from rpexplore.releases.items import Answer, Item, MarginalEstimate
from rpexplore.releases.manifest import TableFiles
from rpexplore.releases.measurement import Part
from rpexplore.releases.measurement_file import Measured, MeasurementNote
from rpexplore.releases.readme import table_readme
from rpexplore.releases.table_cells import label_columns, read_rows
from rpexplore.releases.table_files import (
    BYTES_PER_CELL,
    BYTES_PER_CELL_IN_PARQUET,
    StoredResiduals,
    TableWriter,
    files_of_tables,
    residual_files,
    table_path,
)
from rpexplore.workload.table_text import QueryMatrix


class TableRelease(PartRelease[TablePlan]):
    """The tables of a finished release. Holds noisy figures only."""

    kind = "tables"
    is_adaptive: ClassVar[bool] = False  # as of `Estimates`

    @classmethod
    def files_of(cls, plan: TablePlan) -> TableFiles:
        return files_of_tables(plan.workload.tables) | dict.fromkeys(residual_files(plan.closure))

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
        cells = self.plan.workload.exact_cells
        return [
            Item.of_table(position, names, int(cells[position]), partial(self.cells, position))
            for position, names in enumerate(self.table_names)
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
        path = self.folder / f"{table_path(position, workload.tables[position])}.parquet"
        n_rows = int(workload.exact_cells[position])
        return read_rows(path, RELEASED, n_rows)

    def counts(self, *attributes: AttributeSet) -> pd.DataFrame:
        """Any marginal within a released table, by single values, whatever the bases."""
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
            WorkloadError: If no table has these attributes together, or numbers do not fit.
            DomainError: For an unknown attribute, or a text that names no values.
        """
        indices = query_attributes(self.domain, attributes, where)
        return self._estimate(indices).answer(where or {})

    def _estimate(self, attributes: AttributeIndices) -> MarginalEstimate:
        """A marginal, from the measured residuals within it."""
        closure = self.plan.closure
        residuals = residuals_within(closure, attributes)
        measured = StoredResiduals(self.folder, closure).measured(list(residuals.values()))
        contributions = {
            subset: contribution(measured[residual], subset, closure.strategies)
            for subset, residual in residuals.items()
        }
        return MarginalEstimate(self.plan.marginal_noise(attributes), contributions)


@dataclass(frozen=True)
class TableSteps:
    """The `PartSteps` of tables: their residuals are measured."""

    plan: TablePlan
    booked_share: ClassVar[float] = 0.3
    drawn_share: ClassVar[float] = 0.4

    def n_bytes(self, *, parquet_only: bool) -> float:
        n_measured = float(np.sum(measurement.measured_cells(self.plan.closure)))
        per_cell = BYTES_PER_CELL_IN_PARQUET if parquet_only else BYTES_PER_CELL
        return per_cell * float(np.sum(self.plan.workload.cells)) + 8.0 * n_measured

    @property
    def parts(self) -> Sequence[Part]:
        return self._parts

    @cached_property
    def _parts(self) -> Sequence[Part]:
        return measurement.parts_of(self.plan)

    def check_measurable(self) -> None:
        measurement.check_measurable(self.plan)

    def check_countable(self, counts: Counts) -> None:
        measurement.check_countable(self.plan, counts)

    def measure(self, part: Part, counts: Counts) -> Generator[np.ndarray, None, None]:
        return measurement.measure_part(self.plan, part, counts)

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
        )
        cells = self.plan.workload.cells
        n_written, n_cells = 0.0, float(np.sum(cells))
        files = []
        with ThreadPoolExecutor(1) as beside:
            residuals = beside.submit(writer.residuals)
            with closing(in_order(writer.table, range(len(cells)))) as written:
                for position, entries in enumerate(written):
                    files += entries
                    n_written += cells[position]
                    if position % 16 == 0:
                        on_progress(WRITING, n_written / n_cells)
            files += residuals.result()
        return WrittenPart(table_readme(folder, self.plan), files)
