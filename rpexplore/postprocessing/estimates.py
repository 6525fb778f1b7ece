"""Estimates: unbiased tables and their exact accuracy, whatever measurements they came from.

Of every residual there is one contribution to its own marginal: the truth, centred along every
axis, plus noise that is independent of that of all others. One release measures just that
(docs/mathematics.md §9), and several give it when they are combined (§10 there).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from itertools import chain
from math import prod
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa

from rpexplore.domain.domain import AttributeIndices, AttributeSet, Domain
from rpexplore.domain.result_schema import frame_of
from rpexplore.errors import ReleaseError, WorkloadError
from rpexplore.estimation.array_store import ArrayStore
from rpexplore.estimation.table_map import subsets
from rpexplore.planning.mechanism.marginal_noise import MarginalNoise, Where, query_attributes
from rpexplore.planning.mechanism.reconstruction import contribution
from rpexplore.planning.mechanism.strategy import Strategy
from rpexplore.postprocessing.measurement_source import (
    MeasurementSource,
    Spent,
    describe_sources,
    guarantee,
    spent,
)
from rpexplore.postprocessing.stored_arrays import read_arrays
from rpexplore.releases.adaptive.adaptive_release import AdaptiveRelease
from rpexplore.releases.items import Item, PartReader
from rpexplore.releases.marginal_estimate import Answer, MarginalEstimate
from rpexplore.releases.measurement import measured_shape
from rpexplore.releases.residual_files import residual_files
from rpexplore.releases.table_cells import Labels, label_columns
from rpexplore.releases.table_release import TableRelease

if TYPE_CHECKING:
    import pandas as pd


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

    Raises `ReleaseError` if a residual of a table is missing, has no positive variance or not the
    domain's shape, or if nothing was measured at all.
    """

    kind: ClassVar[str] = "combined"

    domain: Domain
    tables: tuple[AttributeIndices, ...]
    contributions: Mapping[AttributeIndices, np.ndarray]
    variances: Mapping[AttributeIndices, Fraction]
    strategies: Mapping[int, Strategy]
    sources: tuple[MeasurementSource, ...]
    is_adaptive: bool = False

    def __post_init__(self) -> None:
        tables = tuple(sorted(set(self.tables), key=lambda table: (len(table), table)))
        if not (tables and self.sources):
            raise ReleaseError("Estimates need a table and a source; got none.")
        sizes, variances = self.domain.sizes, dict(self.variances)
        contributions = self.contributions
        if not isinstance(contributions, ArrayStore):
            contributions = ArrayStore(
                (subset, np.array(values, dtype=float, copy=None))
                for subset, values in contributions.items()
            )
        for subset in contributions:
            shape = contributions.shape(subset)
            if shape != tuple(sizes[list(subset)]) or any(sizes[i] < 2 for i in subset):
                raise ReleaseError(
                    f"The contribution of {self.domain.describe(subset)} must have the shape "
                    f"{tuple(sizes[list(subset)].tolist())}, of several values each, got "
                    f"{shape}."
                )
            if not variances.get(subset, 0) > 0:
                raise ReleaseError(
                    f"The contribution of {self.domain.describe(subset)} must have a positive "
                    f"variance, got {variances.get(subset)}."
                )
        of_tables = (_several(self.domain, table) for table in tables)
        within = (subset[:i] + subset[i + 1 :] for subset in variances for i in range(len(subset)))
        for subset in chain(of_tables, within, variances):
            if subset not in contributions:
                raise ReleaseError(
                    f"The residual of {self.domain.describe(subset)} is needed and not there."
                )
        object.__setattr__(self, "tables", tables)
        object.__setattr__(self, "contributions", MappingProxyType(contributions))
        object.__setattr__(self, "variances", MappingProxyType(variances))
        object.__setattr__(self, "strategies", MappingProxyType(dict(self.strategies)))
        object.__setattr__(self, "sources", tuple(self.sources))

    @classmethod
    def of(cls, results: PartReader) -> "Estimates":
        """All that was measured for tables; what exceeds 128 MB lies in a temporary file.

        Raises `ReleaseError` if there are no tables.
        """
        if isinstance(results, cls):
            return results
        part: Any = results.measured_tables()
        makers = {"tables": cls.of_tables, "rounds": cls.of_adaptive}
        return makers[part.kind](part)

    @classmethod
    def of_tables(cls, release: TableRelease) -> "Estimates":
        """All that a release of tables measured."""
        plan, closure = release.plan, release.plan.closure
        residuals = [closure.attributes(position) for position in range(len(closure))]
        shapes = [measured_shape(closure, position) for position in range(len(closure))]
        measured = chain.from_iterable(
            read_arrays(
                release.folder / path,
                "measured",
                shapes[within.start : within.stop],
                np.int64,
                first=within.start,
            )
            for path, within in residual_files(closure).items()
        )
        source = MeasurementSource.of(release)
        return cls(
            plan.workload.domain,
            tuple(map(plan.workload.attribute_indices, range(len(plan.workload)))),
            ArrayStore(
                (residual, contribution(array, residual, closure.strategies))
                for residual, array in zip(residuals, measured, strict=True)
            ),
            {residual: plan.sigma_squared.fraction(i) for i, residual in enumerate(residuals)},
            closure.strategies,
            (source,),
        )

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
        if len(self.sources) == 1:
            return f"unbiased; from {describe_sources(self.sources)}"
        return f"unbiased; combined by inverse variance from {describe_sources(self.sources)}"

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
        return [
            Item.of_table(
                position,
                names,
                prod(sizes[attribute] for attribute in self.tables[position]),
                partial(self.cells, names),
            )
            for position, names in enumerate(self.table_names)
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
        return _several(self.domain, self.domain.positions(attributes)) in self.contributions

    def marginal(self, attributes: AttributeSet) -> np.ndarray:
        """The counts of the single values, float64, one axis an attribute in the domain's order.

        Of any attributes that some table holds together; `WorkloadError` for others.
        """
        return self._estimate(self.domain.positions(attributes)).values

    def marginal_variances(self, attributes: AttributeSet) -> np.ndarray:
        """The variance of every cell of `marginal`."""
        return self._estimate(self.domain.positions(attributes)).noise.variances

    def cells(self, attributes: AttributeSet) -> pa.Table:
        """One row a cell: labels, value, standard_error, lower_95, upper_95."""
        indices = self.domain.positions(attributes)
        return self._estimate(indices).cells([self._labels[index] for index in indices])

    def table(self, *attributes: AttributeSet) -> "pd.DataFrame":
        """`cells` as a DataFrame, by names or by one collection of names."""
        names = [self.domain.names[index] for index in query_attributes(self.domain, attributes)]
        return frame_of(self.cells(names))

    counts = table

    def answer(self, *attributes: AttributeSet, where: Where | None = None) -> Answer:
        """The noisy answer to a product query on a table, as `Release.answer`."""
        indices = query_attributes(self.domain, attributes, where)
        return self._estimate(indices).answer(where or {})

    def covariance(self, table: AttributeSet, where: Where, other: Where) -> float:
        """Covariance of the noise in the answers to two product queries on a table."""
        noise = self._estimate(self.domain.positions(table)).noise
        return noise.covariance(noise.vectors(where), noise.vectors(other))

    def __repr__(self) -> str:
        return f"<Estimates of {len(self.tables):,} tables, {self.label}>"

    def _estimate(self, attributes: AttributeIndices) -> MarginalEstimate:
        several = _several(self.domain, attributes)
        if several not in self.contributions:
            raise WorkloadError(
                f"The attributes {self.domain.describe(attributes)} are in no table together, so "
                "nothing is known of them together; ask for fewer of them."
            )
        within = list(subsets(several))
        sigma_squared = {subset: float(self.variances[subset]) for subset in within}
        return MarginalEstimate(
            MarginalNoise(self.domain, attributes, self.strategies, sigma_squared),
            {subset: self.contributions[subset] for subset in within},
        )

    @cached_property
    def _labels(self) -> dict[int, Labels]:
        """Made once for each attribute: it may have a million values, and be in every table."""
        used = sorted({attribute for table in self.tables for attribute in table})
        return {attribute: label_columns(self.domain.attributes[attribute]) for attribute in used}


def _several(domain: Domain, attributes: Sequence[int]) -> AttributeIndices:
    """The attributes that have several values: the others have no residual."""
    return tuple(attribute for attribute in attributes if domain.sizes[attribute] > 1)
