"""Own counts of a release: what is counted, measured and written, and their folder `counts`.

answers.csv, .parquet   one row a query
measurements.parquet    what was measured, one whole number a row of the plan's strategy
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from rpexplore.common.numbers import shown_few
from rpexplore.common.processes import Progress
from rpexplore.data.source import Counts
from rpexplore.domain.domain import Domain
from rpexplore.domain.result_schema import NOTE, OWN_COUNT, OWN_COUNTS, frame_of
from rpexplore.errors import ReleaseError
from rpexplore.planning.counts import QueryPlan
from rpexplore.releases.finished_release import WRITING, PartRelease, WrittenPart
from rpexplore.releases.items import Answer, Item
from rpexplore.releases.manifest import CONFIDENCE, TableFiles, file_entry, without_csv
from rpexplore.releases.measurement import Part
from rpexplore.releases.measurement_file import Measured, MeasurementNote
from rpexplore.releases.noise.discrete_gaussian import discrete_gaussian
from rpexplore.releases.readme import query_readme
from rpexplore.releases.table_cells import (
    for_csv,
    notes_of,
    read_columns,
    read_rows,
    write_rows,
)

_ANSWERS, _MEASUREMENTS = "answers", "measurements.parquet"
_FILES = (f"{_ANSWERS}.csv", f"{_ANSWERS}.parquet", _MEASUREMENTS)
_MOST_MEASURED = 2**61  # in absolute value, without noise


class QueryRelease(PartRelease[QueryPlan]):
    """The own counts of a finished release. Holds noisy figures only."""

    kind = "counts"

    @classmethod
    def files_of(cls, plan: QueryPlan) -> TableFiles:
        return dict.fromkeys(_FILES)

    @property
    def figures(self) -> str:
        return "Noisy counts"

    @property
    def domain(self) -> Domain:
        """The attributes that the counts are about."""
        return self.plan.domain

    @property
    def why_no_tables(self) -> str:
        return (
            "own counts stay as they were released: only tables are processed. `rpexplore answer`, "
            "`publish` and `workbook` take them."
        )

    @cached_property
    def items(self) -> Sequence[Item]:
        return [Item((OWN_COUNT,), _ANSWERS, self.plan.n_items, self.cells, file=_ANSWERS)]

    @property
    def adding_up(self) -> str:
        return (
            "The errors of different counts go together, so a sum of them has another standard "
            "error than theirs suggest; make the sum a count of its own."
        )

    @property
    def answers(self) -> pd.DataFrame:
        """One row a query: name, answer, standard_error, margin_95, target, met, perhaps note."""
        return frame_of(self.cells())

    def cells(self) -> pa.Table:
        """The same as Arrow."""
        return read_rows(self.folder / f"{_ANSWERS}.parquet", OWN_COUNTS, self.plan.n_items)

    def answer(self, name: str) -> Answer:
        """The noisy answer to one query, by its name.

        Raises `ReleaseError` if there is none of that name.
        """
        rows = self.answers
        found = rows.loc[rows["name"] == name]
        if len(found) != 1:
            raise ReleaseError(
                f"There is no count {name!r}; the release has "
                f"{shown_few(list(self.plan.queries.names))}."
            )
        return Answer(float(found["answer"].iloc[0]), float(found["standard_error"].iloc[0]))

    @property
    def measurements(self) -> np.ndarray:
        """The noisy whole numbers that the answers are computed from, int64[k]."""
        path, n_rows = self.folder / _MEASUREMENTS, len(self.plan.strategy.integers)
        return read_columns(path, {"measured": pa.int64()}, n_rows)["measured"].to_numpy()


@dataclass(frozen=True)
class QuerySteps:
    """The `PartSteps` of own counts: the rows of their strategy are measured."""

    plan: QueryPlan
    # Whatever comes after the counting is quick.
    booked_share: ClassVar[float] = 0.9
    drawn_share: ClassVar[float] = 0.95

    def n_bytes(self, *, parquet_only: bool) -> float:
        return 3.0 * len(self.plan.text)  # the plan is in the folder, and nothing else is larger

    @property
    def parts(self) -> Sequence[Part]:
        return self._parts

    @cached_property
    def _parts(self) -> list[Part]:  # whose tables are compared by identity
        n_measured = len(self.plan.strategy.integers)
        return [Part([self.plan.attribute_indices], range(n_measured), n_measured)]

    def check_measurable(self) -> None:
        """A query plan has a small strategy, and noise that can be drawn, or it would be none."""

    def check_countable(self, counts: Counts) -> None:
        """Raise `ReleaseError` if R x, or a sum on the way to it, could leave 64-bit integers.

        All of them are at most max |R_ij| · records; noise is below 2^55.
        """
        largest = int(np.max(np.abs(self.plan.strategy.integers)))
        if largest * max(counts.n_records, 1) >= _MOST_MEASURED:
            raise ReleaseError(
                "There are too many records to measure these counts in 64-bit integers; split the "
                "records, or use counts whose coefficients have fewer digits."
            )

    def measure(self, part: Part, counts: Counts) -> Generator[np.ndarray, None, None]:
        """R x + noise: int64[k], x the exact counts of the cells, the last attribute fastest.

        The noise is independent discrete Gaussian of variance parameter γ², which costs
        ρ = max_j Σ_i R_ij² / (2γ²): a record is in one cell j, and moves R x by column j.
        """
        cells = counts.counts(self.plan.attribute_indices).ravel()
        exact = self.plan.strategy.integers @ cells
        yield exact + discrete_gaussian(len(exact), self.plan.gamma_squared)

    def write(
        self, folder: Path, measured: Measured, note: MeasurementNote, on_progress: Progress
    ) -> WrittenPart:
        """The answers D (R x + noise) = W x + D·noise, and what was measured."""
        plan = self.plan
        numbers = measured.read(0, len(plan.strategy.integers))
        # In the order of `OWN_COUNTS`.
        columns = [
            pa.array(list(plan.queries.names)),
            pa.array(plan.strategy.decoding @ numbers),
            pa.array(plan.standard_errors),
            pa.array(plan.margins_of_error(CONFIDENCE)),
            pa.array(plan.targets),
            pa.array(plan.met),
        ]
        figures = OWN_COUNTS
        possible = plan.domain.structural_zeros.possible(plan.attribute_indices)
        if possible is not None:
            counts_some = np.any(plan.queries.coefficients[:, possible.ravel()] != 0, axis=1)
            if not np.all(counts_some):
                figures, columns = (*OWN_COUNTS, NOTE), [*columns, notes_of(~counts_some)]
        fields = [
            column.field(values.type) for column, values in zip(figures, columns, strict=True)
        ]
        rows = pa.table(columns, schema=pa.schema(fields))
        if not note.parquet_only:
            as_csv = for_csv(rows, escape_formulas=note.escape_formulas)
            pyarrow.csv.write_csv(as_csv, folder / f"{_ANSWERS}.csv")
        write_rows(folder / f"{_ANSWERS}.parquet", [rows])
        pyarrow.parquet.write_table(pa.table({"measured": numbers}), folder / _MEASUREMENTS)
        names = without_csv(_FILES) if note.parquet_only else _FILES
        files = [file_entry(folder, name) for name in names]
        on_progress(WRITING, 1.0)
        return WrittenPart(query_readme(plan, note), files)
