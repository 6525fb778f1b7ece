"""Own counts of a release: what is counted, measured and written, and their folder `counts`.

answers.csv, .parquet   one row a query
measurements.parquet    what was measured, one whole number a row of the plan's strategy
"""

from abc import abstractmethod
from collections.abc import Collection, Generator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from rpexplore.common.numbers import normal_quantile, shown_few
from rpexplore.common.processes import Progress
from rpexplore.common.text import plural
from rpexplore.data.source import Counts
from rpexplore.domain.amounts import Amounts, sentences_of
from rpexplore.domain.atoms import Atoms
from rpexplore.domain.domain import Domain
from rpexplore.domain.result_schema import (
    NOTE,
    NUMBER,
    OWN_COUNT,
    OWN_COUNTS,
    RECORDS,
    UNIT,
    WEIGHTED_RECORDS,
    Column,
    frame_of,
)
from rpexplore.errors import ReleaseError
from rpexplore.planning.counts import QueryPlan
from rpexplore.releases.finished_release import WRITING, PartRelease, WrittenPart
from rpexplore.releases.items import Answer, CountAnswer, Item, PartReader
from rpexplore.releases.manifest import CONFIDENCE, CheckedFolder, TableFiles, file_entry
from rpexplore.releases.measurement import Part, check_product_units, no_amounts_text
from rpexplore.releases.measurement_file import Measured, MeasurementNote
from rpexplore.releases.noise.discrete_gaussian import discrete_gaussian
from rpexplore.releases.readme import query_readme
from rpexplore.releases.table_cells import for_csv, notes_of, read_columns, read_rows, write_rows
from rpexplore.workload.counts_by import name_by_labels
from rpexplore.workload.query_list import QueryList

ANSWERS, MEASUREMENTS = "answers", "measurements.parquet"
_FILES = (f"{ANSWERS}.csv", f"{ANSWERS}.parquet", MEASUREMENTS)
_MOST_MEASURED = 2**61  # in absolute value, without noise


class OwnCounts(PartReader):
    """Own counts, released or combined: each with its answer and its accuracy."""

    kind: ClassVar[str] = "counts"

    @cached_property
    @abstractmethod
    def queries(self) -> QueryList:
        """What is counted, and the target of each count."""

    @abstractmethod
    def cells(self) -> pa.Table:
        """One row a query, in the columns of `OWN_COUNTS`, perhaps with a unit and a note."""

    @property
    @abstractmethod
    def noise_rows(self) -> np.ndarray:
        """The noise of the answers as rows of independent noise of variance 1, [n_queries, k]."""

    @property
    def figures(self) -> str:
        return "Noisy counts"

    @property
    def contents(self) -> str:
        return plural(len(self.queries), "noisy own count")

    @property
    def why_no_tables(self) -> str:
        return (
            "own counts stay as they were released, or are combined: only tables are processed. "
            "`rpexplore answer`, `combine`, `publish` and `workbook` take them."
        )

    @property
    def own_counts(self) -> "OwnCounts":
        return self

    @property
    def rows_count_records(self) -> np.ndarray:
        """Where each record counts as one, or not at all."""
        queries = self.queries
        return np.array(
            [
                bool(np.isin(coefficients, (0.0, 1.0)).all()) and not queries.adds_up_amounts(row)
                for row, coefficients in enumerate(queries.coefficients)
            ]
        )

    @cached_property
    def items(self) -> Sequence[Item]:
        return [Item((OWN_COUNT,), ANSWERS, len(self.queries), self.cells, file=ANSWERS)]

    @property
    def adding_up(self) -> str:
        return (
            "The errors of different counts go together, so a sum of them has another standard "
            "error than theirs suggest; make the sum a count of its own."
        )

    def clamping_of(self, attributes: Collection[str]) -> str:
        if OWN_COUNT not in attributes:
            return ""
        amounts = (one.values for one in self.queries.domain)
        return sentences_of(values for values in amounts if isinstance(values, Amounts))

    @property
    def answers(self) -> pd.DataFrame:
        """One row a query: name, answer, standard_error, margin_95, target, met, perhaps note.

        Where some attribute has amounts, with the unit of each answer behind it.
        """
        return frame_of(self.cells())

    def name_of(self, text: str) -> str | None:
        """The name of a query, of one by attributes also with codes in place of their labels.

        None where there is none of that name.
        """
        tried = (text, name_by_labels(self.queries.domain, text))
        return next((name for name in tried if name in self.queries.names), None)

    def answer(self, name: str) -> Answer:
        """The noisy answer to one query, by its name as of `name_of`.

        Raises `ReleaseError` if there is none of that name.
        """
        rows = self.answers
        found = rows.loc[rows["name"] == self.name_of(name)]
        if len(found) != 1:
            raise ReleaseError(
                f"There is no count {name!r}; there are {shown_few(list(self.queries.names))}."
            )
        return CountAnswer(float(found["answer"].iloc[0]), float(found["standard_error"].iloc[0]))


class QueryRelease(OwnCounts, PartRelease[QueryPlan]):
    """The own counts of a finished release. Holds noisy figures only."""

    kind = "counts"

    @classmethod
    def files_of(cls, plan: QueryPlan, listed: Collection[str]) -> TableFiles:
        return dict.fromkeys(_FILES)

    @property
    def domain(self) -> Domain:
        """The attributes that the counts are about."""
        return self.plan.domain

    @cached_property
    def queries(self) -> QueryList:
        return self.plan.queries

    def cells(self) -> pa.Table:
        return read_rows(self.checked / f"{ANSWERS}.parquet", OWN_COUNTS, self.plan.n_items)

    @property
    def noise_rows(self) -> np.ndarray:
        strategy, gamma = self.plan.strategy, np.sqrt(float(self.plan.gamma_squared))
        if not self.plan.budget.replaces:
            return strategy.decoding * gamma
        is_noisy = ~strategy.are_public[:, None] & ~strategy.is_same
        return np.where(is_noisy, strategy.decoding, 0.0) * gamma

    @property
    def measurements(self) -> np.ndarray:
        """The noisy whole numbers that the answers are computed from, int64[k]."""
        return read_measurements(self.checked, self.plan)


def read_measurements(folder: CheckedFolder, plan: QueryPlan) -> np.ndarray:
    """The noisy whole numbers that were measured for own counts, int64[k]; folder: of the part."""
    path, n_rows = folder / MEASUREMENTS, len(plan.strategy.integers)
    return read_columns(path, {"measured": pa.int64()}, n_rows)["measured"].to_numpy()


def figures_of_counts(domain: Domain) -> tuple[Column, ...]:
    """The columns of own counts; where there are amounts, with units, and what is done to these."""
    if not domain.amounts:
        return OWN_COUNTS
    amounts = [one for one in domain if isinstance(one.values, Amounts)]
    clamping = sentences_of(one.values for one in amounts if isinstance(one.values, Amounts))
    name, answer, *others = OWN_COUNTS
    meaning = f"The noisy count or sum. Unbiased; may be negative. {clamping}"
    return (name, replace(answer, meaning=meaning), UNIT, *others)


def rows_of_counts(queries: QueryList, answers: np.ndarray, errors: np.ndarray) -> pa.Table:
    """Own counts with their answers and standard errors, one row a query."""
    units = [[_unit(queries, row) for row in range(len(queries))]] if queries.domain.amounts else []
    # In the order of `figures_of_counts`.
    columns = [
        pa.array(list(queries.names)),
        pa.array(answers),
        *map(pa.array, units),
        pa.array(errors),
        pa.array(normal_quantile(CONFIDENCE) * errors),
        pa.array(queries.targets),
        pa.array(errors <= queries.targets),
    ]
    figures = figures_of_counts(queries.domain)
    possible = None
    if queries.atoms is None:
        possible = queries.domain.structural_zeros.possible(tuple(range(len(queries.domain))))
    if possible is not None:
        counts_some = np.any(queries.coefficients[:, possible.ravel()] != 0, axis=1)
        if not np.all(counts_some):
            figures, columns = (*figures, NOTE), [*columns, notes_of(~counts_some)]
    fields = [column.field(values.type) for column, values in zip(figures, columns, strict=True)]
    return pa.table(columns, schema=pa.schema(fields))


def _unit(queries: QueryList, row: int) -> str:
    """What the answer to a query is a number of, as a word: "EUR", "records"."""
    _, amounts = queries.summed(row)
    if amounts is not None:
        return amounts.unit or NUMBER
    return WEIGHTED_RECORDS if queries.is_weighted(row) else RECORDS


def write_answers(folder: Path, rows: pa.Table, *, csv: bool, escape_formulas: bool) -> list[str]:
    """Write the rows of own counts, as Parquet and perhaps CSV; returns the names of the files."""
    if csv:
        as_csv = for_csv(rows, escape_formulas=escape_formulas)
        pyarrow.csv.write_csv(as_csv, folder / f"{ANSWERS}.csv")
    write_rows(folder / f"{ANSWERS}.parquet", [rows])
    return [*([f"{ANSWERS}.csv"] if csv else []), f"{ANSWERS}.parquet"]


@dataclass(frozen=True)
class QuerySteps:
    """The `PartSteps` of own counts: the rows of their strategy are measured."""

    plan: QueryPlan
    # Whatever comes after the counting is quick.
    booked_share: ClassVar[float] = 0.9
    drawn_share: ClassVar[float] = 0.95

    def n_bytes(self, *, parquet_only: bool, file_per_table: bool = False) -> float:
        return 3.0 * len(self.plan.text)  # the plan is in the folder, and nothing else is larger

    @property
    def parts(self) -> Sequence[Part]:
        return self._parts

    @cached_property
    def _parts(self) -> list[Part]:  # whose tables are compared by identity
        n_measured, every = len(self.plan.strategy.integers), self.plan.attribute_indices
        tables = [every]
        if self._atoms is not None:  # each attribute too, by which other parts are compared
            tables = [*((index,) for index in every), self._counted]
        return [Part(tables, range(n_measured), n_measured, atoms=self._atoms)]

    @cached_property
    def _atoms(self) -> Atoms | None:
        """What records are counted by: what the counts tell apart but for amounts."""
        return None if self._by_amounts is None else self._by_amounts[0]

    @cached_property
    def _by_amounts(self) -> tuple[Atoms, list[np.ndarray]] | None:
        """The atoms of records, and for each combination of the values that amounts have, in their
        order, which of the plan's atoms each is; None where there are none."""
        atoms, domain = self.plan.queries.atoms, self.plan.domain
        if atoms is None:
            return None
        if not domain.amounts:
            return atoms, [np.arange(len(atoms))]
        sizes = (range(domain.attributes[index].size) for index in domain.amounts)
        parts = [
            atoms.at(dict(zip(domain.amounts, values, strict=True))) for values in product(*sizes)
        ]
        joint, own = Atoms.joined(domain, [part for part, _ in parts])
        return joint, [numbers[of] for (_, numbers), of in zip(parts, own, strict=True)]

    @property
    def _counted(self) -> tuple[int, ...]:
        """What is measured: the cells, or amounts and the atoms, which are behind the domain."""
        every = self.plan.attribute_indices
        return every if self._atoms is None else (*self.plan.domain.amounts, len(every))

    def _cells(self, counts: Counts) -> np.ndarray:
        """x, times the steps of amounts: int64[n_cells], or [n_atoms]."""
        cells = counts.counts(self._counted)
        if self._by_amounts is None:
            return cells.ravel()
        found = np.zeros(self.plan.queries.n_cells, dtype=np.int64)
        of_values = cells.reshape(-1, cells.shape[-1])
        for numbers, own in zip(self._by_amounts[1], of_values, strict=True):
            np.add.at(found, numbers, own)
        return found

    def check_measurable(self) -> None:
        """A query plan has a small strategy, and noise that can be drawn, or it would be none."""

    def check_countable(self, counts: Counts) -> None:
        """Raise `ReleaseError` if R x, or a sum on the way to it, could leave 64-bit integers.

        All of them are at most max |R_ij| · records; noise is below 2^61.
        """
        largest = int(np.max(np.abs(self.plan.strategy.integers))) * self.plan.queries.steps
        for index in self.plan.domain.amounts:
            amounts = self.plan.domain.attributes[index].values
            if isinstance(amounts, Amounts) and counts.ranges.get(index) != amounts.range_in_steps:
                raise ReleaseError(no_amounts_text(self.plan.domain.names[index]))
        check_product_units(self.plan.domain, self.plan.products, counts)
        if largest * max(counts.n_records, 1) >= _MOST_MEASURED:
            raise ReleaseError(
                "There are too many records to measure these counts in 64-bit integers; split the "
                "records, or use counts whose coefficients have fewer digits."
            )

    def measure(self, part: Part, counts: Counts) -> Generator[np.ndarray, None, None]:
        """R x + noise: int64[k], x the exact counts of the cells, the last attribute fastest.

        The noise is independent discrete Gaussian of variance parameter γ², which costs
        ρ = max_j Σ_i R_ij² / (2γ²): a record is in one cell j, and moves R x by column j. Where
        neighbours replace a record, multiples of the number of records are public, and exact; so
        is what exact totals tell.

        With amounts x, and so γ, are multiplied by their steps: a record is shares of cells, which
        sum to 1, and moves R x by no more than the longest of their columns.
        """
        exact = self.plan.strategy.integers @ self._cells(counts)
        noise = discrete_gaussian(len(exact), self.plan.measured_gamma_squared)
        if self.plan.budget.replaces:
            noise[self.plan.strategy.is_same] = 0
        yield exact + noise

    def write(
        self, folder: Path, measured: Measured, note: MeasurementNote, on_progress: Progress
    ) -> WrittenPart:
        """The answers D (R x + noise) = W x + D·noise, and what was measured."""
        plan = self.plan
        numbers = measured.read(0, len(plan.strategy.integers))
        answers = plan.strategy.decoding @ numbers / plan.queries.steps
        if plan.budget.replaces:
            for place, answer in plan.strategy.public_answers(numbers).items():
                answers[place] = answer / plan.queries.steps
        rows = rows_of_counts(plan.queries, answers, plan.standard_errors)
        names = write_answers(
            folder, rows, csv=not note.parquet_only, escape_formulas=note.escape_formulas
        )
        pyarrow.parquet.write_table(pa.table({"measured": numbers}), folder / MEASUREMENTS)
        files = [file_entry(folder, name) for name in (*names, MEASUREMENTS)]
        on_progress(WRITING, 1.0)
        return WrittenPart(query_readme(plan, note), files)
