"""Estimates: unbiased tables and their exact accuracy, whatever measurements they came from."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, partial
from itertools import chain, islice, product
from math import prod
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from rpexplore.common.text import plural
from rpexplore.domain.domain import AttributeIndices, AttributeSet, Domain, subsets
from rpexplore.domain.result_schema import frame_of
from rpexplore.errors import ReleaseError, WorkloadError
from rpexplore.estimation.table_map import ArrayStore, largest
from rpexplore.planning.mechanism.asked_levels import least_noisy_query
from rpexplore.planning.mechanism.levels import Block, LevelTree
from rpexplore.planning.mechanism.reconstruction import (
    MarginalNoise,
    Where,
    contribution,
    impossible_answers,
    query_attributes,
)
from rpexplore.planning.mechanism.strategy import Strategy
from rpexplore.planning.table_plan import n_pilot_residuals
from rpexplore.privacy.budget import ADD_REMOVE
from rpexplore.releases.adaptive_release import AdaptiveRelease
from rpexplore.releases.items import Answer, Item, Marginal, MarginalEstimate, PartReader
from rpexplore.releases.large_tables import refuse_as_whole
from rpexplore.releases.measurement import measured_shape
from rpexplore.releases.residual_files import residual_files
from rpexplore.releases.table_cells import (
    Labels,
    check_schema,
    label_columns,
    not_what_was_written,
    refuse_gaps,
)
from rpexplore.releases.table_release import TableRelease
from rpexplore.results.measurement_source import (
    MeasurementSource,
    Spent,
    guarantee,
    label_of_sources,
    spent,
)
from rpexplore.workload.workload import Workload

if TYPE_CHECKING:
    import pandas as pd


# Of every residual there is one contribution to its own marginal: the truth, centred along every
# axis, plus noise that is independent of that of all others. One release measures just that
# (docs/mathematics.md §9), and several give it when they are combined (§10 there).


def refuse_open_values(domain: Domain, open_attributes: Sequence[int]) -> None:
    """Raise `ReleaseError` if tables leave open how many have each value of an attribute."""
    if open_attributes:
        name = domain.names[open_attributes[0]]
        raise ReleaseError(
            "Nonnegative and smooth tables are made of the counts of single values, and the own "
            f"matrices of attribute {name!r} leave these open; use the unbiased tables, or plan "
            f"with a level of {name!r} whose groups are what is wanted."
        )


@dataclass(frozen=True, eq=False, repr=False)
class Estimates(PartReader):
    """What is known of every residual within some tables, with its accuracy. Noisy figures only.

    tables         the tables that there are, by number of attributes, then lexicographically
    contributions  of every subset of a table's attributes with several values: float64, one axis
                   an attribute, all its values; sums along any axis are 0. Read-only
    variances      σ² of each of these, exact
    strategies     of attributes that are not measured by single values, by their index
    sources        what it was computed from
    is_adaptive    whether it was measured in adaptive rounds: selected by what had been measured
    open_attributes
                   indices of those whose values the own matrices of tables leave open: counts of
                   single values have errors beyond any use
    packed         places of the tables that its folder has in one file (`packed_tables`)
    trees, blocks  of attributes that tables have at several levels, as of a `Closure`: subsets have
                   the numbers of blocks in place of these
    known          the subsets whose contributions are publicly known from elsewhere, and all of
                   their own subsets (`known_totals`); the variances of these stand for 0
    known_marginals
                   where there are trees, the largest of the tables that are publicly known

    Raises `ReleaseError` if a residual of a table is missing, has no positive variance or not the
    domain's shape, or if nothing was measured at all.
    """

    kind: ClassVar[str] = "tables"

    domain: Domain
    tables: tuple[AttributeIndices, ...]
    contributions: Mapping[AttributeIndices, np.ndarray]
    variances: Mapping[AttributeIndices, Fraction]
    strategies: Mapping[int, Strategy]
    sources: tuple[MeasurementSource, ...]
    is_adaptive: bool = False
    open_attributes: tuple[int, ...] = ()
    packed: frozenset[int] = frozenset()
    known: frozenset[AttributeIndices] = frozenset()
    trees: tuple[LevelTree, ...] = ()
    blocks: Mapping[int, Block] = field(default_factory=dict)
    known_marginals: tuple[AttributeIndices, ...] = ()

    def __post_init__(self) -> None:
        tables = tuple(sorted(set(self.tables), key=lambda table: (len(table), table)))
        if not (tables and self.sources):
            raise ReleaseError("Estimates need a table and a source; got none.")
        variances = dict(self.variances)
        contributions = self.contributions
        if not isinstance(contributions, ArrayStore):
            contributions = ArrayStore(
                (subset, np.array(values, dtype=float, copy=None))
                for subset, values in contributions.items()
            )
        for subset in contributions:
            shape, needed = contributions.shape(subset), self.shape_of(subset)
            if shape != needed or any(size < 2 for size in needed):
                raise ReleaseError(
                    f"The contribution of {self.describe(subset)} must have the shape {needed}, of "
                    f"several values each, got {shape}."
                )
            if not variances.get(subset, 0) > 0:
                raise ReleaseError(
                    f"The contribution of {self.describe(subset)} must have a positive variance, "
                    f"got {variances.get(subset)}."
                )
        of_tables = chain.from_iterable(map(self.residuals_of, tables))
        within = (subset[:i] + subset[i + 1 :] for subset in variances for i in range(len(subset)))
        for subset in chain(of_tables, within, variances, self.known):
            if subset not in contributions:
                raise ReleaseError(
                    f"The residual of {self.describe(subset)} is needed and not there."
                )
        object.__setattr__(self, "tables", tables)
        object.__setattr__(self, "contributions", MappingProxyType(contributions))
        object.__setattr__(self, "variances", MappingProxyType(variances))
        object.__setattr__(self, "strategies", MappingProxyType(dict(self.strategies)))
        object.__setattr__(self, "sources", tuple(self.sources))

    @classmethod
    def of(cls, results: PartReader, *, at_levels: bool = False) -> "Estimates":
        """All that was measured for tables; what exceeds 128 MB lies in a temporary file.

        at_levels: whether attributes may be in tables at several levels

        Raises `ReleaseError` if there are no tables, or they have an attribute at several levels.
        """
        part: Any = results if isinstance(results, cls) else results.measured_tables()
        if part.kind == "tables" and not at_levels and part.trees:
            raise several_levels(part.domain.names[part.trees[0].column])
        if isinstance(part, cls):
            return part
        makers = {"tables": cls.of_tables, "rounds": cls.of_adaptive}
        return makers[part.kind](part)

    @classmethod
    def of_tables(cls, release: TableRelease) -> "Estimates":
        """All that a release of tables measured, but for tables with amounts.

        Raises `ReleaseError` where all tables have amounts, one is too large to be read as a whole,
        or there are exact totals beside the number of records with an attribute at several levels.
        """
        plan, closure = release.plan, release.plan.closure
        if closure.trees and any(
            map(closure.attributes, np.flatnonzero(closure.is_public).tolist())
        ):
            raise ReleaseError(
                f"The tables of {str(release.home)!r} have exact totals, and attributes at several "
                "levels; use the tables as they are, or plan without exact totals."
            )
        counted = np.flatnonzero(~plan.workload.has_amounts).tolist()
        if not counted:
            raise ReleaseError(
                f"All tables of {str(release.home)!r} are {plan.workload.sums_noun}, and "
                "estimates, combined tables and synthetic records are made of tables of counts; "
                "name a release that has some, or take these tables as they are."
            )
        for position in counted:
            refuse_as_whole(
                plan.workload.describe(position), int(plan.workload.exact_cells[position])
            )
        amounts = set(plan.domain.amounts)
        residuals = [closure.attributes(position) for position in range(len(closure))]
        shapes = [measured_shape(closure, position) for position in range(len(closure))]
        measured = chain.from_iterable(
            read_arrays(
                release.checked / path,
                "measured",
                shapes[within.start : within.stop],
                np.int64,
                first=within.start,
            )
            for path, within in residual_files(closure).items()
        )
        if plan.has_pilot:
            n_pilot = n_pilot_residuals(closure)
            of_one_way = release.measured(range(n_pilot)).values()
            measured = chain(of_one_way, islice(measured, n_pilot, None))
        source = MeasurementSource.of(release)
        estimates = cls(
            plan.workload.domain,
            tuple(map(plan.workload.attribute_indices, counted)),
            ArrayStore(
                (residual, contribution(array, residual, closure.strategies))
                for residual, array in zip(residuals, measured, strict=True)
                if not amounts.intersection(residual)
            ),
            {
                residual: plan.sigma_squared.fraction(i)
                for i, residual in enumerate(residuals)
                if not amounts.intersection(residual)
            },
            {index: own for index, own in closure.strategies.items() if index not in amounts},
            (source,),
            open_attributes=plan.workload.open_attributes,
            trees=closure.trees,
            blocks={
                number: closure.blocks[number] for tree in closure.trees for number in tree.numbers
            },
        )
        return release.with_known_totals(estimates)

    @classmethod
    def of_adaptive(cls, release: AdaptiveRelease) -> "Estimates":
        """All that an adaptive release measured, and the tables that follow from it unbiased.

        What was measured was selected by what had been: standard errors hold nearly only.
        """
        measured = release.measured
        # Those that no other contains: each holds its subsets of one attribute less.
        within = {
            subset[:i] + subset[i + 1 :]
            for subset in measured.variances
            for i in range(len(subset))
        }
        return cls(
            release.domain,
            tuple(subset for subset in measured.variances if subset not in within),
            measured.contributions,
            measured.variances,
            {},
            (MeasurementSource.of(release),),
            is_adaptive=True,
        )

    @property
    def label(self) -> str:
        """How the tables came about."""
        label = label_of_sources(self.sources)
        return f"{label}; meets publicly known totals" if self.known else label

    @property
    def contents(self) -> str:
        return plural(len(self.tables), "noisy table")

    @property
    def taken_over(self) -> Sequence[str]:
        """The parts that only one of several sources has: none, as there are tables only."""
        return ()

    def part(self, kind: str) -> "Estimates | None":
        """These, as the tables of what is combined; None of other parts."""
        return self if kind == self.kind else None

    @cached_property
    def public(self) -> frozenset[AttributeIndices]:
        """Those of `contributions` that are exact: publicly known, or not noisy.

        The latter are, where neighbours replace records, the number of records and all within
        exact totals. Their variance stands for 0.
        """
        total = self.spent
        if total.neighbours == ADD_REMOVE:
            return self.known
        own = [[name for name in names if name in self.domain] for names in total.exact]
        totals = [set(map(self.domain.position, names)) for names in own]
        return self.known | {
            subset
            for subset in self.variances
            if not subset or any(set(subset) <= one for one in totals)
        }

    @cached_property
    def known_tables(self) -> Sequence[tuple[str, ...]]:
        """The attributes of the publicly known totals that no other of them contains."""
        names, known = self.domain.names, self.known_marginals or self.known
        return [tuple(names[index] for index in one) for one in sorted(largest(known))]

    def shape_of(self, subset: AttributeIndices) -> tuple[int, ...]:
        """The shape of a contribution: numbers of values, or of groups of a block."""
        blocks, sizes = self.blocks, self.domain.sizes
        return tuple(blocks[i].size if i in blocks else int(sizes[i]) for i in subset)

    def describe(self, subset: AttributeIndices) -> str:
        """A residual for a sentence, as `Domain.describe`: groups by the attribute they are of."""
        return self.domain.describe(
            self.blocks[index].column if index in self.blocks else index for index in subset
        )

    def residuals_of(self, table: AttributeIndices) -> list[AttributeIndices]:
        """The residuals that the counts by some attributes follow from, by number of attributes."""
        # Attributes of one value have no residual.
        several = tuple(index for index in table if self.domain.sizes[index] > 1)
        if not self.trees:
            return list(subsets(several))
        of_tables = {index: tree for tree in self.trees for index in tree.of_tables}
        choices = [
            (None, *(of_tables[index].within(index) if index in of_tables else (index,)))
            for index in several
        ]
        chosen = ([index for index in choice if index is not None] for choice in product(*choices))
        return sorted({tuple(sorted(subset)) for subset in chosen}, key=lambda one: (len(one), one))

    def is_known(self, attributes: AttributeSet) -> bool:
        """Whether the counts by these attributes are publicly known."""
        return self.known.issuperset(self.residuals_of(self.domain.positions(attributes)))

    @property
    def spent(self) -> Spent:
        """What was spent on everything that was measured, exact, and for whom."""
        return spent(self.sources)

    @property
    def guarantee(self) -> str:
        """What holds for everything that was measured, in words."""
        return guarantee(self.sources)

    @cached_property
    def table_names(self) -> tuple[tuple[str, ...], ...]:
        """The attributes of each table, in the domain's order."""
        names = self.domain.names
        return tuple(tuple(names[attribute] for attribute in table) for table in self.tables)

    @property
    def n_cells(self) -> float:
        """Cells of all tables together."""
        sizes = self.domain.sizes.astype(float)
        return float(sum(np.prod(sizes[list(table)]) for table in self.tables))

    @property
    def made_of(self) -> Sequence[MeasurementSource]:
        return self.sources

    @cached_property
    def items(self) -> Sequence[Item]:
        sizes = self.domain.sizes.tolist()
        items = [
            Item.of_table(
                position,
                names,
                prod(sizes[attribute] for attribute in self.tables[position]),
                partial(self.cells, names),
            )
            for position, names in enumerate(self.table_names)
        ]
        return [
            item.in_one_file(position) if position in self.packed else item
            for position, item in enumerate(items)
        ]

    def unbiased_tables(self) -> "Estimates":
        return self

    @property
    def queries(self) -> Sequence[Sequence[None]]:
        """What the cells of each table count, by axis: single values."""
        return [[None] * len(table) for table in self.tables]

    @property
    def residuals(self) -> Sequence[AttributeIndices]:
        """The attributes of everything that was measured."""
        return list(self.contributions)

    def has(self, attributes: AttributeSet) -> bool:
        """Whether a table holds these attributes together."""
        within = self.residuals_of(self.domain.positions(attributes))
        return all(subset in self.contributions for subset in within)

    def marginal(self, attributes: AttributeSet) -> np.ndarray:
        """The counts of the single values, float64, one axis an attribute in the domain's order.

        Of any attributes that some table holds together; `WorkloadError` for others.
        """
        return self._estimate(self.domain.positions(attributes)).values

    def marginal_variances(self, attributes: AttributeSet) -> np.ndarray:
        """The variance of every cell of `marginal`."""
        return self._estimate(self.domain.positions(attributes)).noise.variances

    def cells(self, attributes: AttributeSet) -> pa.Table:
        """One row a cell: labels, value, standard_error, lower_95, upper_95, and perhaps note."""
        indices = self.domain.positions(attributes)
        labels = [self._labels[index] for index in indices]
        return self._estimate(indices).cells(labels, is_known=self.is_known(attributes))

    @cached_property
    def workload(self) -> Workload:
        """The tables, in their order."""
        return Workload.of(self.domain, self.table_names)

    def figures_of(self, position: int) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray | None]:
        """Values and standard errors of a table, and which cells no record can be in."""
        indices = self.domain.positions(self.table_names[position])
        estimate = self._estimate(indices)
        impossible = impossible_answers(self.domain, indices, [None] * len(indices))
        return (estimate.values, np.sqrt(estimate.noise.variances)), impossible

    def table(self, *attributes: AttributeSet) -> "pd.DataFrame":
        """`cells` as a DataFrame, by names or by one collection of names."""
        names = [self.domain.names[index] for index in query_attributes(self.domain, attributes)]
        return frame_of(self.cells(names))

    counts = table

    def answer(self, *attributes: AttributeSet, where: Where | None = None) -> Answer:
        """The noisy answer to a product query on a table, as `Release.answer`."""
        if not attributes:
            where = least_noisy_query(
                self.domain, where or {}, self.table_names, lambda own: self._estimate(own).noise
            )
        indices = query_attributes(self.domain, attributes, where)
        return self._estimate(indices).answer(where or {})

    @property
    def has_sums(self) -> bool:
        return True

    def marginals(self, attributes: Collection[str]) -> Sequence[Marginal]:
        return [self._estimate(self.domain.positions(attributes)).marginal]

    def covariance(self, table: AttributeSet, where: Where, other: Where) -> float:
        """Covariance of the noise in the answers to two product queries on a table."""
        noise = self._estimate(self.domain.positions(table)).noise
        return noise.covariance(noise.vectors(where), noise.vectors(other))

    def __repr__(self) -> str:
        return f"<Estimates of {len(self.tables):,} tables, {self.label}>"

    def _estimate(self, attributes: AttributeIndices) -> MarginalEstimate:
        within = self.residuals_of(attributes)
        if not all(subset in self.contributions for subset in within):
            raise WorkloadError(
                f"The attributes {self.domain.describe(attributes)} are in no table together, so "
                "nothing is known of them together; ask for fewer of them."
            )
        sigma_squared = {
            subset: 0.0 if subset in self.public else float(self.variances[subset])
            for subset in within
        }
        return MarginalEstimate(
            MarginalNoise(self.domain, attributes, self.strategies, sigma_squared, self.trees),
            {subset: self.contributions[subset] for subset in within},
        )

    @cached_property
    def _labels(self) -> dict[int, Labels]:
        """Made once for each attribute: it may have a million values, and be in every table."""
        used = sorted({attribute for table in self.tables for attribute in table})
        return {attribute: label_columns(self.domain.attributes[attribute]) for attribute in used}


def positions_of_counts(tables: TableRelease | Estimates) -> list[int]:
    """The positions of the tables without amounts, ascending."""
    amounts = {tables.domain.names[index] for index in tables.domain.amounts}
    return [
        position
        for position, names in enumerate(tables.table_names)
        if not amounts.intersection(names)
    ]


def several_levels(column: str) -> ReleaseError:
    """What to raise where estimates would be made of an attribute at several levels."""
    return ReleaseError(
        f"The attribute {column!r} is in tables at several levels, and smooth tables, known totals "
        "and second plans go with one level of each attribute; use the unbiased tables, combined "
        "or nonnegative ones, or plan with one level."
    )


# ---- A list of arrays in a Parquet file: one row a number, with its array's index and its own.


_ROWS_AT_ONCE = 1 << 18


def write_arrays(path: Path, column: str, arrays: Iterable[np.ndarray]) -> None:
    """Write the arrays, float64, row-major, one after another.

    Columns: residual (the array's index in the list), cell (the number's index in it), `column`.
    """
    schema = pa.schema([("residual", pa.int32()), ("cell", pa.int64()), (column, pa.float64())])
    waiting: list[pa.RecordBatch] = []
    rows = 0
    with pyarrow.parquet.ParquetWriter(path, schema) as writer:
        for index, array in enumerate(arrays):
            columns = [
                pa.array(np.full(array.size, index, dtype=np.int32)),
                pa.array(np.arange(array.size)),
                pa.array(array.ravel()),
            ]
            waiting.append(pa.record_batch(columns, schema=schema))
            rows += array.size
            if rows >= _ROWS_AT_ONCE:
                writer.write_table(pa.Table.from_batches(waiting))
                waiting, rows = [], 0
        writer.write_table(pa.Table.from_batches(waiting, schema=schema))


def read_arrays(
    path: Path,
    column: str,
    shapes: Sequence[tuple[int, ...]],
    dtype: type[np.generic],
    *,
    first: int = 0,
) -> Iterator[np.ndarray]:
    """The arrays of a file, of these shapes, one after another: all are never in memory at a time.

    first: the index of the first of them.
    Raises `ReleaseError` for a file that does not hold every number of these arrays once, in order.
    """
    sizes = np.array([prod(shape) for shape in shapes], int)
    parts = _read_numbers(path, column, sizes, dtype, first)
    rest = np.empty(0, dtype)
    for shape in shapes:
        array, filled = np.empty(prod(shape), dtype), 0
        while filled < array.size:
            rest = rest if len(rest) else next(parts)
            taken = rest[: array.size - filled]
            array[filled : filled + len(taken)] = taken
            filled, rest = filled + len(taken), rest[len(taken) :]
        yield array.reshape(shape)
    for _ in parts:  # which refuse what is too much
        pass


def _read_numbers(
    path: Path, column: str, sizes: np.ndarray, dtype: type[np.generic], first: int
) -> Iterator[np.ndarray]:
    """The numbers of all arrays, in parts, none of them empty."""
    starts = np.concatenate([[0], np.cumsum(sizes)])
    columns = {
        "residual": pa.int32(),
        "cell": pa.int64(),
        column: pa.from_numpy_dtype(dtype),
    }
    start = 0
    try:
        # Not buffered beforehand: that would be the whole file, in memory.
        with pyarrow.parquet.ParquetFile(path, pre_buffer=False) as file:
            check_schema(path, file.schema_arrow, columns)
            for batch in file.iter_batches(batch_size=_ROWS_AT_ONCE, columns=list(columns)):
                refuse_gaps(path, batch, columns)
                stop = start + len(batch)
                # Fewer than there are rows, if these are too many.
                residual = np.repeat(np.arange(len(sizes)), np.diff(np.clip(starts, start, stop)))
                cell = np.arange(start, start + len(residual)) - starts[residual]
                for name, indices in (("residual", residual + first), ("cell", cell)):
                    if not np.array_equal(batch[name].to_numpy(), indices):
                        raise _not_in_order(path)
                if len(batch):
                    yield batch[column].to_numpy()
                start = stop
    except (OSError, pa.ArrowException):
        raise not_what_was_written(path, "it cannot be read any more") from None
    if start != starts[-1]:
        raise _not_in_order(path)


def _not_in_order(path: Path) -> ReleaseError:
    return not_what_was_written(path, "each number must be in it once, in order")
