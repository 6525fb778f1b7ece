"""A release of tables: what it counts, measures and writes."""

from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from rpexplore.common.concurrency import in_order
from rpexplore.data.counts import Counts
from rpexplore.planning.plan import Plan
from rpexplore.releases import measurement
from rpexplore.releases.measurement_file import MeasurementNote
from rpexplore.releases.table_folder import BYTES_PER_CELL, FORMAT, FolderWriter, Release


@dataclass(frozen=True)
class TableRun:
    """A plan of tables while it is run, a `PlanRun`: residuals are measured."""

    plan: Plan
    release_format: ClassVar[tuple[str, int]] = FORMAT
    booked_share: ClassVar[float] = 0.3
    drawn_share: ClassVar[float] = 0.4

    @property
    def n_bytes(self) -> float:
        return BYTES_PER_CELL * float(np.sum(self.plan.workload.cells)) + 8.0 * self.n_measured

    @property
    def tables(self) -> Sequence[Sequence[int]]:
        workload = self.plan.workload
        return [workload.attribute_indices(position) for position in range(len(workload))]

    @property
    def n_measured(self) -> int:
        return int(np.sum(measurement.measured_cells(self.plan.closure)))

    def check_measurable(self) -> None:
        measurement.check_measurable(self.plan)

    def check_countable(self, counts: Counts) -> None:
        measurement.check_countable(self.plan, counts)

    def measure(self, counts: Counts) -> Generator[np.ndarray, None, None]:
        return measurement.measure_all(self.plan, counts)

    def write(
        self, folder: Path, note: MeasurementNote, on_share: Callable[[float], None]
    ) -> Mapping[str, Any]:
        """Tables and residuals, on all processors."""
        writer = FolderWriter(folder, self.plan, note)
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
                        on_share(n_written / n_cells)
            files.append(residuals.result())
        return writer.finish(files)

    def finished_release(self, folder: Path, manifest: Mapping[str, Any]) -> Release:
        return Release(folder, self.plan, manifest)
