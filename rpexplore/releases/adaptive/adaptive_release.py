"""Adaptive tables of a release: what is counted, measured and written, and their folder `rounds`.

tables/NNNN_age_sex.*   each estimated table as Parquet and CSV, one row a cell; of a run that
                        wants Parquet only, without CSV
bounds.csv, .parquet    one row a table: whether all of it was measured, and how far all its
                        estimates together are from the true counts at most
residuals.parquet       what the first plan measured, as in a release of tables
rounds.parquet          what rounds selected and measured (round: from 1; drawn: the order in
                        its round; candidate: its place among the plan's; cell: row-major;
                        measured: integer), without what was lost
"""

from collections.abc import Collection, Generator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from math import prod
from pathlib import Path
from typing import ClassVar, NoReturn

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from rpexplore.common.concurrency import Progress
from rpexplore.data.counts import Counts
from rpexplore.domain.domain import AttributeSet, Domain
from rpexplore.domain.result_schema import ADAPTIVE, frame_of
from rpexplore.errors import ReleaseError
from rpexplore.planning.adaptive.adaptive_plan import AdaptivePlan
from rpexplore.planning.mechanism.marginal_noise import Where, query_attributes
from rpexplore.releases import measurement
from rpexplore.releases.adaptive import rounds
from rpexplore.releases.adaptive.adaptive_files import (
    BOUNDS,
    LABEL,
    ROUND_COLUMNS,
    ROUNDS,
    AdaptiveWriter,
    all_of,
)
from rpexplore.releases.adaptive.bound_texts import bound_sentence, describe_bounds
from rpexplore.releases.adaptive.estimates import MeasuredSoFar
from rpexplore.releases.adaptive.outcomes import RoundOutcome, most_numbers, shape_of
from rpexplore.releases.finished_release import PartRelease, WrittenPart
from rpexplore.releases.items import Item
from rpexplore.releases.manifest import TableFiles
from rpexplore.releases.measurement import Part
from rpexplore.releases.measurement_file import Measured, MeasuredFile, MeasurementNote
from rpexplore.releases.readme import adaptive_readme
from rpexplore.releases.residual_files import StoredResiduals, residual_files
from rpexplore.releases.stored_columns import check_schema, not_what_was_written, read_columns
from rpexplore.releases.stored_tables import read_rows
from rpexplore.releases.table_files import (
    BYTES_PER_CELL,
    BYTES_PER_CELL_IN_PARQUET,
    files_of_tables,
    table_path,
)


class AdaptiveRelease(PartRelease[AdaptivePlan]):
    """The adaptive tables of a finished release. Holds noisy figures only."""

    kind = "rounds"
    postprocessing = "estimates by a model (smooth tables), biased"

    @classmethod
    def files_of(cls, plan: AdaptivePlan) -> TableFiles:
        others = (*residual_files(plan.first.closure), ROUNDS)
        bounds = (f"{BOUNDS}.parquet", f"{BOUNDS}.csv")
        return files_of_tables(plan.workload.tables) | dict.fromkeys((*others, *bounds))

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
        return [
            Item.of_table(place, names, int(cells[place]), partial(self.cells, place), bound)
            for place, (names, bound) in enumerate(zip(self.table_names, bounds, strict=True))
        ]

    @property
    def adding_up(self) -> str:
        return (
            "Of sums of these estimates no error is known; where there is a smaller table, use "
            "its cell."
        )

    def describe_bounds(self, record_noun: str = "records") -> list[str]:
        """The bound of each table in words, in its order."""
        # The cells of any table add up to the estimated records; those with the fewest are read.
        smallest = int(np.argmin(self.plan.workload.cells))
        total = float(self.cells(smallest)["value"].to_numpy().sum())
        return describe_bounds(self.bounds["error_bound_95"].tolist(), total, record_noun)

    def bound_of(self, attributes: Collection[str], record_noun: str = "records") -> str:
        position = [set(table) for table in self.table_names].index(set(attributes))
        return bound_sentence(self.describe_bounds(record_noun)[position])

    @property
    def bounds(self) -> pd.DataFrame:
        """One row a table: attributes, measured, error_bound_95 (L1, in records; NaN for none)."""
        columns = {"table": pa.string(), "measured": pa.bool_()}
        path, n_rows = self.folder / f"{BOUNDS}.parquet", len(self.table_names)
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
        n_rows = int(workload.exact_cells[position])
        path = self.folder / f"{table_path(position, workload.tables[position])}.parquet"
        return read_rows(path, ADAPTIVE, n_rows)

    counts = table

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
        path = self.folder / ROUNDS
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
        stored = StoredResiduals(self.folder, closure).measured(range(len(closure)))
        return MeasuredSoFar.of(self.plan, list(stored.values()), self.outcomes)


@dataclass(frozen=True)
class AdaptiveSteps:
    """The `PartSteps` of adaptive rounds: their first plan is measured, then the rounds."""

    plan: AdaptivePlan
    booked_share: ClassVar[float] = 0.1
    drawn_share: ClassVar[float] = 0.6

    def n_bytes(self, *, parquet_only: bool) -> float:
        per_cell = BYTES_PER_CELL_IN_PARQUET if parquet_only else BYTES_PER_CELL
        n_measured = float(np.sum(measurement.measured_cells(self.plan.first.closure)))
        n_measured += self.n_in_rounds
        return per_cell * float(np.sum(self.plan.workload.cells)) + 16.0 * n_measured

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
        rounds.check_measurable(self.plan)

    def check_countable(self, counts: Counts) -> None:
        measurement.check_countable(self.plan.first, counts)
        rounds.check_countable(self.plan, counts)

    def measure(self, part: Part, counts: Counts) -> Generator[np.ndarray, None, None]:
        return measurement.measure_part(self.plan.first, part, counts)

    def measure_rounds(
        self,
        measured: Measured,
        n_drawn: int,
        counts: Counts,
        write: rounds.Write,
        progress: Progress,
    ) -> None:
        """Draw the rounds that are left; see `rounds.measure_rounds`.

        measured: has all that the first plan measured; n_drawn: how many numbers are in it, with
        those of rounds
        """
        first = MeasuredFile(measured, self.plan.first.closure)
        drawn = measured.read(int(first.starts[-1]), n_drawn)
        rounds.measure_rounds(self.plan, counts, all_of(first), drawn, write, progress)

    def write(
        self, folder: Path, measured: Measured, note: MeasurementNote, on_progress: Progress
    ) -> WrittenPart:
        writer = AdaptiveWriter(self.plan, folder, measured, note)
        files, outcomes = writer.write(on_progress)
        return WrittenPart(adaptive_readme(self.plan, note, outcomes), files)
