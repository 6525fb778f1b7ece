"""Adaptive tables of a release: counted, measured, written; their folder `rounds`."""

import math
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property, partial
from math import prod
from pathlib import Path
from typing import Any, ClassVar, NoReturn

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from rpexplore.common.processes import Progress, in_order, part_of_progress
from rpexplore.common.text import rounded
from rpexplore.data.source import Counts
from rpexplore.domain.domain import AttributeSet, Domain
from rpexplore.domain.result_schema import ADAPTIVE, frame_of
from rpexplore.errors import ReleaseError
from rpexplore.estimation.smooth_tables import SmoothTables
from rpexplore.planning.adaptive import AdaptivePlan
from rpexplore.planning.mechanism.reconstruction import (
    Where,
    impossible_answers,
    query_attributes,
)
from rpexplore.releases import adaptive_rounds, measurement
from rpexplore.releases.adaptive_rounds import (
    MeasuredSoFar,
    RoundOutcome,
    downward_closed,
    most_numbers,
    read_outcomes,
    shape_of,
    tables_of,
)
from rpexplore.releases.error_bounds import bounds_of_tables
from rpexplore.releases.finished_release import WRITING, PartRelease, WrittenPart
from rpexplore.releases.items import Item
from rpexplore.releases.manifest import TableFiles, file_entry, in_release
from rpexplore.releases.measurement import Part
from rpexplore.releases.measurement_file import Measured, MeasuredFile, MeasurementNote
from rpexplore.releases.packed_tables import (
    PACKED,
    PackedTables,
    bytes_of_tables,
    packed_tables,
    rows_of_packed,
    tables_in_files,
    write_packed,
)
from rpexplore.releases.readme import adaptive_readme
from rpexplore.releases.residual_files import StoredResiduals, residual_files, write_residuals
from rpexplore.releases.table_cells import (
    TABLES,
    check_schema,
    csv_decimals,
    files_of_tables,
    for_csv,
    not_what_was_written,
    pieces_of_cells,
    read_columns,
    read_rows,
    table_path,
    write_table,
)
from rpexplore.releases.table_release import LabelsOfBases

# tables/NNNN_age_sex.*   each estimated table as Parquet and CSV, one row a cell; of a run that
#                         wants Parquet only, without CSV
# tables.parquet          instead of these, small tables where there are more than 100
#                         (`packed_tables`), unless the run wants a file for each
# bounds.csv, .parquet    one row a table: whether all of it was measured, and how far all its
#                         estimates together are from the true counts at most
# residuals.parquet       what the first plan measured, as in a release of tables
# rounds.parquet          what rounds selected and measured (round: from 1; drawn: the order in
#                         its round; candidate: its place among the plan's; cell: row-major;
#                         measured: integer), without what was lost


class AdaptiveRelease(PartRelease[AdaptivePlan]):
    """The adaptive tables of a finished release. Holds noisy figures only."""

    kind = "rounds"
    postprocessing = "estimates by a model (smooth tables), biased"

    @classmethod
    def files_of(cls, plan: AdaptivePlan, listed: Collection[str]) -> TableFiles:
        others = (*residual_files(plan.first.closure), ROUNDS)
        bounds = (f"{BOUNDS}.parquet", f"{BOUNDS}.csv")
        in_files = in_release(cls.kind, PACKED) not in listed
        packed = packed_tables(plan.workload, file_per_table=in_files)
        return (
            ({PACKED: None} if len(packed) else {})
            | files_of_tables(plan.workload.tables, TABLES, tables_in_files(plan.workload, packed))
            | dict.fromkeys((*others, *bounds))
        )

    @property
    def domain(self) -> Domain:
        """The attributes that the tables are about."""
        return self.plan.domain

    @property
    def label(self) -> str:
        """How the tables came about, in words that go with them."""
        return LABEL

    @cached_property
    def table_names(self) -> tuple[tuple[str, ...], ...]:
        """The attributes of each table, in the domain's order."""
        return tuple(self.plan.workload.tables)

    @property
    def remark(self) -> str:
        """That its tables are biased, and how many have a bound."""
        n_tables = len(self.table_names)
        n_bounds = int(self.bounds["error_bound_95"].notna().to_numpy().sum())
        return (
            f"Adaptive, biased: best guesses by a model; {n_bounds:,} of {n_tables:,} tables have "
            "a bound on their errors (bounds.csv, or bounds.parquet)."
        )

    @property
    def figures(self) -> str:
        return "Estimated tables"

    @property
    def is_biased(self) -> bool:
        return True

    @property
    def is_smooth(self) -> bool:
        return True

    @property
    def why_no_tables(self) -> str:
        return (
            "adaptive estimates are biased, and sums of them have no known standard error. Use a "
            "release by a plan that is not adaptive, or add up the values of a table."
        )

    @cached_property
    def items(self) -> Sequence[Item]:
        cells, bounds = self.plan.workload.exact_cells, self.describe_bounds()
        items = []
        for place, (names, bound) in enumerate(zip(self.table_names, bounds, strict=True)):
            item = Item.of_table(place, names, int(cells[place]), partial(self.cells, place), bound)
            items.append(item.in_one_file(place) if place in self._packed else item)
        return items

    @property
    def adding_up(self) -> str:
        return (
            "Of sums of these estimates no error is known; where there is a smaller table, use "
            "its cell."
        )

    def describe_bounds(self, record_noun: str = "records") -> list[str]:
        """The bound of each table in words, in its order."""
        return [_described(*texts, record_noun) for texts in self.bound_texts]

    @property
    def bound_texts(self) -> list[tuple[str, str]]:
        # The cells of any table add up to the estimated records; those with the fewest are read.
        smallest = int(np.argmin(self.plan.workload.cells))
        total = float(self.cells(smallest)["value"].to_numpy().sum())
        return [texts_of_bound(bound, total) for bound in self.bounds["error_bound_95"].tolist()]

    def bound_of(self, attributes: Collection[str], record_noun: str = "records") -> str:
        position = [set(table) for table in self.table_names].index(set(attributes))
        return bound_sentence(self.describe_bounds(record_noun)[position])

    @property
    def bounds(self) -> pd.DataFrame:
        """One row a table: attributes, measured, error_bound_95 (L1, in records; NaN for none)."""
        columns = {"table": pa.string(), "measured": pa.bool_()}
        path, n_rows = self.checked / f"{BOUNDS}.parquet", len(self.table_names)
        stored = read_columns(path, columns, n_rows)
        check_schema(path, stored.schema, {"error_bound_95": pa.float64()})
        frame = stored.to_pandas()
        if np.any(frame["error_bound_95"] < 0):
            raise not_what_was_written(path, "no bound can be below 0")
        return frame.assign(table=self.table_names).rename(columns={"table": "attributes"})

    @property
    def selections(self) -> pd.DataFrame:
        """One row a table that was selected: round (from 1), drawn (from 1), attributes."""
        names = self.domain.names
        rows = [
            (outcome.number + 1, place, tuple(names[i] for i in self.plan.candidates[index]))
            for outcome in self.outcomes
            for place, index in enumerate(outcome.selected, start=1)
        ]
        return pd.DataFrame(rows, columns=["round", "drawn", "attributes"])

    def has(self, attributes: AttributeSet) -> bool:
        """Whether there is a table with exactly these attributes."""
        return self.plan.workload.find(self.domain.positions(attributes)) is not None

    def table(self, *attributes: AttributeSet) -> pd.DataFrame:
        """One row a cell: labels, value, model_error, lower_95, upper_95, value_is.

        Raises `ReleaseError` if there is no table with exactly these attributes.
        """
        indices = query_attributes(self.domain, attributes)
        position = self.plan.workload.find(indices)
        if position is None:
            raise ReleaseError(
                f"There is no estimated table of ({self.domain.describe(indices)}); ask for one "
                "that is there."
            )
        return frame_of(self.cells(position))

    def cells(self, position: int) -> pa.Table:
        """The table at a position of the workload, one row a cell."""
        workload = self.plan.workload
        if position in self._packed:
            bases = workload.attribute_basis_index[position, : workload.orders[position]].tolist()
            values, errors = self._packed.figures(position)
            return rows_of_packed(
                [self._labels.of(basis) for basis in bases],
                [workload.n_queries[basis] for basis in bases],
                values,
                errors,
                impossible_answers(self.domain, workload.attribute_indices(position)),
                ADAPTIVE,
                LABEL,
            )
        n_rows = int(workload.exact_cells[position])
        path = self.checked / f"{table_path(position, workload.tables[position])}.parquet"
        return read_rows(path, ADAPTIVE, n_rows)

    counts = table

    @cached_property
    def _packed(self) -> PackedTables:
        """The tables that are in one file, if there are any."""
        workload = self.plan.workload
        path = in_release(self.kind, PACKED)
        listed = any(entry["path"] == path for entry in self.manifest["files"])
        packed = packed_tables(workload, file_per_table=not listed)
        sizes = np.array([int(workload.exact_cells[table]) for table in packed.tolist()], int)
        return PackedTables(self.checked, packed, sizes, ADAPTIVE[:2])

    @cached_property
    def _labels(self) -> LabelsOfBases:
        return LabelsOfBases(self.plan.workload)

    def measured_tables(self) -> "AdaptiveRelease":
        return self

    def answer(self, *attributes: AttributeSet, where: Where | None = None) -> NoReturn:
        """Raises `ReleaseError`: no error of a sum of estimates is known."""
        raise ReleaseError(
            "Sums of adaptive estimates have no known standard error; add up the values of a table."
        )

    @cached_property
    def outcomes(self) -> Sequence[RoundOutcome]:
        """What each round selected and measured, but for what was lost."""
        path = self.checked / ROUNDS
        stored = read_columns(path, ROUND_COLUMNS)
        number, drawn, candidate, cell, measured = (
            stored[name].to_numpy() for name in ROUND_COLUMNS
        )
        plan, outcomes = self.plan, []
        for one in np.unique(number).tolist():
            rows = np.flatnonzero(number == one)
            selected = candidate[rows[cell[rows] == 0]].tolist()
            if not (
                1 <= one <= len(plan.rounds)
                and len(selected) == len(set(selected)) == plan.rounds[one - 1].n_tables
                and all(0 <= index < len(plan.candidates) for index in selected)
            ):
                raise not_what_was_written(path, "it names what the plan does not have")
            shapes = [shape_of(plan, plan.candidates[index]) for index in selected]
            sizes = [prod(shape) for shape in shapes]
            places = np.arange(1, len(sizes) + 1)
            if not (
                np.array_equal(drawn[rows], np.repeat(places, sizes))
                and np.array_equal(candidate[rows], np.repeat(selected, sizes))
                and np.array_equal(cell[rows], np.concatenate([np.arange(size) for size in sizes]))
            ):
                raise not_what_was_written(path, "each number must be in it once, in order")
            pieces = np.split(measured[rows], np.cumsum(sizes)[:-1])
            cells = [piece.reshape(shape) for piece, shape in zip(pieces, shapes, strict=True)]
            outcomes.append(RoundOutcome(one - 1, tuple(selected), tuple(cells)))
        return outcomes

    @property
    def measured(self) -> MeasuredSoFar:
        """Everything that was measured."""
        closure = self.plan.first.closure
        stored = StoredResiduals(self.checked, closure).measured(range(len(closure)))
        return MeasuredSoFar.of(self.plan, list(stored.values()), self.outcomes)


@dataclass(frozen=True)
class AdaptiveSteps:
    """The `PartSteps` of adaptive rounds: their first plan is measured, then the rounds."""

    plan: AdaptivePlan
    booked_share: ClassVar[float] = 0.1
    drawn_share: ClassVar[float] = 0.6

    def n_bytes(self, *, parquet_only: bool, file_per_table: bool = False) -> float:
        of_tables = bytes_of_tables(
            self.plan.workload, parquet_only=parquet_only, file_per_table=file_per_table
        )
        n_measured = float(np.sum(measurement.measured_cells(self.plan.first.closure)))
        n_measured += self.n_in_rounds
        return float(np.sum(of_tables)) + 16.0 * n_measured

    @property
    def parts(self) -> Sequence[Part]:
        return self._parts

    @cached_property
    def _parts(self) -> Sequence[Part]:
        """What the first plan measures. Counted are all candidates: rounds need them."""
        every = [(index,) for index in self.plan.attribute_indices]
        closure = self.plan.first.closure
        n_measured = int(measurement.measured_cells(closure).sum())
        tables = [*every, *self.plan.candidates]
        return [Part(tables, range(len(closure)), n_measured, is_needed_again=True)]

    @cached_property
    def n_in_rounds(self) -> int:
        """How many numbers the rounds can have at most."""
        return most_numbers(self.plan)

    def check_measurable(self) -> None:
        measurement.check_measurable(self.plan.first)
        adaptive_rounds.check_measurable(self.plan)

    def check_countable(self, counts: Counts) -> None:
        measurement.check_countable(self.plan.first, counts)
        adaptive_rounds.check_countable(self.plan, counts)

    def measure(self, part: Part, counts: Counts) -> Generator[np.ndarray, None, None]:
        return measurement.measure_part(self.plan.first, part, counts)

    def measure_rounds(
        self,
        measured: Measured,
        n_drawn: int,
        counts: Counts,
        write: adaptive_rounds.Write,
        progress: Progress,
    ) -> None:
        """Draw the rounds that are left; see `rounds.measure_rounds`.

        measured: has all that the first plan measured; n_drawn: how many numbers are in it, with
        those of rounds
        """
        first = MeasuredFile(measured, self.plan.first.closure)
        drawn = measured.read(int(first.starts[-1]), n_drawn)
        adaptive_rounds.measure_rounds(self.plan, counts, all_of(first), drawn, write, progress)

    def write(
        self, folder: Path, measured: Measured, note: MeasurementNote, on_progress: Progress
    ) -> WrittenPart:
        writer = AdaptiveWriter(self.plan, folder, measured, note)
        files, outcomes = writer.write(on_progress)
        readme = adaptive_readme(self.plan, note, outcomes, n_packed=len(writer.packed))
        return WrittenPart(readme, files)


# ---- The files of an adaptive release, from what was measured.


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
        self._labels = LabelsOfBases(plan.workload)
        self.packed = packed_tables(plan.workload, file_per_table=note.file_per_table)

    def write(
        self, on_progress: Progress
    ) -> tuple[list[Mapping[str, Any]], Sequence[RoundOutcome]]:
        """Write all files but plan, README and manifest; their entries, and what rounds did."""
        plan, folder, note = self._plan, self._folder, self._note
        first = all_of(self._file)
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
        files += self._tables(fit, part_of_progress(on_progress, _FIT_SHARE, 1.0))
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

    def _tables(self, fit: SmoothTables, on_progress: Progress) -> list[Mapping[str, Any]]:
        workload, files = self._plan.workload, []
        n_cells = float(np.sum(workload.cells))

        def figures_of(
            position: int,
        ) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray | None]:
            indices = workload.attribute_indices(position)
            impossible = impossible_answers(self._plan.domain, indices)
            return (fit.table(indices), fit.standard_errors(indices)), impossible

        def write(position: int) -> list[dict[str, Any]]:
            (values, errors), impossible = figures_of(position)
            bases = workload.attribute_basis_index[position, : values.ndim].tolist()
            labels = [self._labels.of(basis) for basis in bases]
            # Cells that can have no record are known without error.
            least = errors.min(initial=errors.max(), where=errors > 0)
            return write_table(
                self._folder,
                position,
                workload.tables[position],
                pieces_of_cells(labels, values, errors**2, ADAPTIVE, LABEL, impossible),
                decimals=csv_decimals(max(least, LEAST_ERROR), values.max()),
                escape_formulas=self._note.escape_formulas,
                with_csv=not self._note.parquet_only,
            )

        n_written = 0.0
        if len(self.packed):
            path, labels_of = self._folder / PACKED, self._labels.of
            for n_written in write_packed(
                path, workload, self.packed, labels_of, figures_of, figures=ADAPTIVE[:2]
            ):
                on_progress(WRITING, n_written / n_cells)
            files.append(file_entry(self._folder, PACKED))
        others = tables_in_files(self._plan.workload, self.packed)
        if others:
            (self._folder / TABLES).mkdir(exist_ok=True)
        with closing(in_order(write, others)) as written:
            for number, (position, entries) in enumerate(zip(others, written, strict=True)):
                files += entries
                n_written += workload.cells[position]
                if number % 16 == 0:
                    on_progress(WRITING, n_written / n_cells)
        return files


def all_of(first: MeasuredFile) -> list[np.ndarray]:
    """What the first plan measured of each of its residuals."""
    return [first.measured(residual) for residual in range(len(first.closure))]


# ---- What is known of each table of an adaptive release, in words (docs/mathematics.md §17.3).


BOUND = "All errors together, 95 %"
NO_GUARANTEE = "no guarantee"
BOUND_MEANING = (
    "How far all estimates of a table together are from the true counts at most: the sum of all "
    "cells' errors, without their signs. It holds for each table by itself with a probability of "
    "at least 95 %, whether the model does or not. Shares are of the estimated number of records."
)


def texts_of_bound(bound: float, total: float) -> tuple[str, str]:
    """A bound in records, and what it is of the estimated number of records in per cent.

    Both rounded up: "1,240", "2.5"; "" for what is not known.
    """
    if math.isnan(bound):
        return "", ""
    share = rounded(100 * bound / total, 2, "up") if total > 0 else ""
    return rounded(math.ceil(bound), 3, "up"), share


def bound_sentence(text: str) -> str:
    """A bound in words as a sentence on its table."""
    if text == NO_GUARANTEE:
        return "No guarantee of how far this table is from the true counts."
    return f"All errors of this table together are {text}, with 95 %."


def _described(limit: str, share: str, record_noun: str) -> str:
    """ "at most 1,240 people, 2.5 % of all"; `NO_GUARANTEE` for no limit."""
    if not limit:
        return NO_GUARANTEE
    text = f"at most {limit} {record_noun}"
    return f"{text}, {share} % of all" if share else text
