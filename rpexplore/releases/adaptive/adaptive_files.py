"""The files of an adaptive release, from what was measured."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from rpexplore.common.concurrency import Progress, in_order, part_of_progress
from rpexplore.domain.domain import AttributeIndices
from rpexplore.domain.result_schema import ADAPTIVE
from rpexplore.estimation.smooth_tables import SmoothTables
from rpexplore.planning.adaptive.adaptive_plan import AdaptivePlan
from rpexplore.releases.adaptive.estimates import MeasuredSoFar, downward_closed, tables_of
from rpexplore.releases.adaptive.outcomes import RoundOutcome, read_outcomes
from rpexplore.releases.adaptive.table_bounds import bounds_of_tables
from rpexplore.releases.csv_cells import csv_decimals
from rpexplore.releases.manifest import file_entry
from rpexplore.releases.measurement_file import Measured, MeasuredFile, MeasurementNote
from rpexplore.releases.residual_files import residual_files, write_residuals
from rpexplore.releases.table_cells import (
    Labels,
    for_csv,
    label_columns,
    pieces_of_cells,
)
from rpexplore.releases.table_files import write_table

LABEL = "adaptive, biased: best guesses by a model; intervals hold if the model does"

ROUNDS, BOUNDS = "rounds.parquet", "bounds"
ROUND_COLUMNS = {
    "round": pa.int32(),
    "drawn": pa.int32(),
    "candidate": pa.int32(),
    "cell": pa.int64(),
    "measured": pa.int64(),
}
_FIT_SHARE = 0.5  # of the writing
LEAST_ERROR = 1e-3  # for the decimals of CSV files: a model may be sure of a cell


class AdaptiveWriter:
    """Writes the parts of a release, from its measurements, into a folder not finished yet."""

    def __init__(
        self, plan: AdaptivePlan, folder: Path, measured: Measured, note: MeasurementNote
    ) -> None:
        self._plan, self._folder, self._note = plan, folder, note
        self._file = MeasuredFile(measured, plan.first.closure)
        first_end = int(self._file.starts[-1])
        self._outcomes = read_outcomes(plan, measured.read(first_end))

    def write(
        self, on_progress: Progress
    ) -> tuple[list[Mapping[str, Any]], Sequence[RoundOutcome]]:
        """Write all files but plan, README and manifest; their entries, and what rounds did."""
        plan, folder, note = self._plan, self._folder, self._note
        (folder / "tables").mkdir(exist_ok=True)
        first = all_of(self._file)
        tables = [plan.workload.attribute_indices(place) for place in range(len(plan.workload))]
        several = tables_of(plan)
        fit = MeasuredSoFar.of(plan, first, self._outcomes).fit(
            downward_closed(several), part_of_progress(on_progress, 0.0, _FIT_SHARE / 2)
        )
        fit.rehearse_errors(part_of_progress(on_progress, _FIT_SHARE / 2, _FIT_SHARE))
        files = [*self._residuals(), self._rounds()]
        bounds = bounds_of_tables(plan, first, self._outcomes, several, fit)
        rows = pa.table(
            {
                "table": [" × ".join(names) for names in plan.workload.tables],
                "measured": [bound.is_measured for bound in bounds],
                # NaN as empty cells; of this type even if all are.
                "error_bound_95": pa.array(
                    [bound.records for bound in bounds], type=pa.float64(), from_pandas=True
                ),
            }
        )
        pyarrow.parquet.write_table(rows, folder / f"{BOUNDS}.parquet")
        files.append(file_entry(folder, f"{BOUNDS}.parquet"))
        if not note.parquet_only:
            as_csv = for_csv(rows, escape_formulas=note.escape_formulas)
            pyarrow.csv.write_csv(as_csv, folder / f"{BOUNDS}.csv")
            files.append(file_entry(folder, f"{BOUNDS}.csv"))
        files += self._tables(tables, fit, part_of_progress(on_progress, _FIT_SHARE, 1.0))
        return files, self._outcomes

    def _residuals(self) -> Iterator[Mapping[str, Any]]:
        for path, residuals in residual_files(self._plan.first.closure).items():
            write_residuals(self._file, self._folder, path, residuals)
            yield file_entry(self._folder, path)

    def _rounds(self) -> Mapping[str, Any]:
        columns: dict[str, list[np.ndarray]] = {name: [] for name in ROUND_COLUMNS}
        for outcome in self._outcomes:
            drawn = zip(outcome.selected, outcome.measured, strict=False)
            for place, (index, measured) in enumerate(drawn, start=1):
                size = measured.size
                numbers = (
                    np.full(size, outcome.number + 1),
                    np.full(size, place),
                    np.full(size, index),
                    np.arange(size),
                    measured.reshape(-1),
                )
                for name, column in zip(columns, numbers, strict=True):
                    columns[name].append(column)
        arrays = [
            pa.array(np.concatenate([*parts, np.zeros(0, dtype=np.int64)]), type=kind)
            for parts, kind in zip(columns.values(), ROUND_COLUMNS.values(), strict=True)
        ]
        rows = pa.table(arrays, schema=pa.schema(list(ROUND_COLUMNS.items())))
        pyarrow.parquet.write_table(rows, self._folder / ROUNDS)
        return file_entry(self._folder, ROUNDS)

    def _tables(
        self, tables: Sequence[AttributeIndices], fit: SmoothTables, on_progress: Progress
    ) -> list[Mapping[str, Any]]:
        def write(position: int) -> list[dict[str, Any]]:
            indices = tables[position]
            values, errors = fit.table(indices), fit.standard_errors(indices)
            labels = [self._labels[index] for index in indices]
            return write_table(
                self._folder,
                position,
                self._plan.workload.tables[position],
                pieces_of_cells(labels, values, errors**2, ADAPTIVE, LABEL),
                decimals=csv_decimals(max(errors.min(), LEAST_ERROR), values.max()),
                escape_formulas=self._note.escape_formulas,
                with_csv=not self._note.parquet_only,
            )

        files = []
        with closing(in_order(write, range(len(tables)))) as written:
            for position, entries in enumerate(written):
                files += entries
                if position % 16 == 0:
                    on_progress("Writing the release", position / len(tables))
        return files

    @cached_property
    def _labels(self) -> dict[int, Labels]:
        domain = self._plan.domain
        return {index: label_columns(domain.attributes[index]) for index in range(len(domain))}


def all_of(first: MeasuredFile) -> list[np.ndarray]:
    """What the first plan measured of each of its residuals."""
    return [first.measured(residual) for residual in range(len(first.closure))]
