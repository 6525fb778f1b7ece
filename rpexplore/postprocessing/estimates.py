"""Estimates: unbiased tables and their exact accuracy, whatever measurements they came from.

Of every residual A there is one contribution to its own marginal: the truth, centred along every
axis, plus noise of covariance σ²_A ⊗_{i∈A} (I − 11ᵀ/n_i) (D Dᵀ in the place of an attribute with a
strategy), independent of the noise of all others. That is what one release measures
(docs/mathematics.md §9), and what several give that are combined by inverse variance (§10 there);
so the formulas for variances are the same.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from rpexplore.domain.domain import Domain
from rpexplore.errors import ReleaseError, WorkloadError
from rpexplore.planning.mechanism.cell_variances import CellVariances
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.mechanism.query_covariance import query_covariance
from rpexplore.planning.mechanism.reconstruction import contribution, marginal
from rpexplore.planning.mechanism.strategy import Moments, Strategy
from rpexplore.postprocessing.measurement_source import Source, Spent, guarantee, in_words, spent
from rpexplore.postprocessing.stored_arrays import read_arrays
from rpexplore.releases.table_folder import Release, label_columns, table_of_cells
from rpexplore.workload.attribute_sets import AttributeSet
from rpexplore.workload.workload import Workload

if TYPE_CHECKING:
    import pandas as pd

Places = tuple[int, ...]
"""Ascending places of attributes in the domain."""


@dataclass(frozen=True, eq=False, repr=False)
class Estimates:
    """What is known of every residual within some tables, with its accuracy. Noisy figures only.

    tables         the tables that there are, by number of attributes, then lexicographically
    contributions  of every subset of a table's attributes with several values: float64, one axis
                   an attribute, all its values; sums along any axis are 0. Read-only
    variances      σ² of each of these, exact
    strategies     how attributes that are not measured by single values are, by place
    sources        what it was computed from

    Raises `ReleaseError` if a residual of a table is missing, has no positive variance or not the
    domain's shape, or if nothing was measured at all.
    """

    domain: Domain
    tables: tuple[Places, ...]
    contributions: Mapping[Places, np.ndarray]
    variances: Mapping[Places, Fraction]
    strategies: Mapping[int, Strategy]
    sources: tuple[Source, ...]

    def __post_init__(self) -> None:
        tables = tuple(sorted(set(self.tables), key=lambda table: (len(table), table)))
        if not (tables and self.sources):
            raise ReleaseError("Estimates need a table and a source; got none.")
        sizes, variances = self.domain.sizes, dict(self.variances)
        contributions = {}
        for subset, values in self.contributions.items():
            array = np.array(values, dtype=float, copy=None).view()
            if array.shape != tuple(sizes[list(subset)]) or any(sizes[i] < 2 for i in subset):
                raise ReleaseError(
                    f"The contribution of {self.domain.describe(subset)} must have the shape "
                    f"{tuple(sizes[list(subset)].tolist())}, of several values each, got "
                    f"{array.shape}."
                )
            if not variances.get(subset, 0) > 0:
                raise ReleaseError(
                    f"The contribution of {self.domain.describe(subset)} must have a positive "
                    f"variance, got {variances.get(subset)}."
                )
            array.setflags(write=False)
            contributions[subset] = array
        needed = [_several(self.domain, table) for table in tables]
        needed += [subset[:i] + subset[i + 1 :] for subset in variances for i in range(len(subset))]
        for subset in (*needed, *variances):
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
    def of(cls, release: Release) -> "Estimates":
        """All that a release measured; takes up to 17 bytes of memory a measured number."""
        plan, closure = release.plan, release.plan.closure
        subsets = [closure.attributes(residual) for residual in range(len(closure))]
        shapes = [
            tuple(int(closure.sizes[i]) - (i in closure.strategies) for i in subset)
            for subset in subsets
        ]
        path = release.folder / "residuals.parquet"
        drawn = read_arrays(path, "measured", shapes, np.int64)
        source = Source(
            name=release.folder.resolve().name,
            sha256=_sha256_in(release, path.name),
            rho=plan.rho,
            max_records_per_person=plan.budget.max_records_per_person,
            plan_sha256=plan.sha256,
            other_values=release.manifest["other_values"],
            persons=release.manifest.get("persons", ""),  # older releases had no such rules
        )
        return cls(
            plan.workload.domain,
            tuple(plan.workload.places(position) for position in range(len(plan.workload))),
            {
                subset: contribution(each, subset, closure.strategies)
                for subset, each in zip(subsets, drawn, strict=True)
            },
            {subset: plan.sigma_squared.fraction(i) for i, subset in enumerate(subsets)},
            closure.strategies,
            (source,),
        )

    # ---- how it came about

    @property
    def label(self) -> str:
        """How the tables came about, in words that go with them wherever they go."""
        if len(self.sources) == 1:
            return f"unbiased; from {in_words(self.sources)}"
        return f"unbiased; combined by inverse variance from {in_words(self.sources)}"

    @property
    def spent(self) -> Spent:
        """What was spent on everything that was measured, exact, and for whom."""
        return spent(self.sources)

    @property
    def guarantee(self) -> str:
        """What holds for everything that was measured, in words."""
        return guarantee(self.sources)

    # ---- answers

    def marginal(self, attributes: AttributeSet) -> np.ndarray:
        """The counts of the single values, float64, one axis an attribute in the domain's order.

        Of any attributes that some table holds together; `WorkloadError` for others.
        """
        return self._marginal(self._places(attributes))

    def marginal_variances(self, attributes: AttributeSet) -> np.ndarray:
        """The variance of every cell of `marginal`; read-only."""
        return self._variances(self._places(attributes))

    def cells(self, attributes: AttributeSet) -> pa.Table:
        """One row a cell: labels, value, standard_error, lower_95, upper_95."""
        places = self._places(attributes)
        labels = [self._labels[place] for place in places]
        return table_of_cells(labels, self._marginal(places), self._variances(places))

    def table(self, attributes: AttributeSet) -> "pd.DataFrame":
        """`cells` as a DataFrame."""
        return self.cells(attributes).to_pandas()

    def answer(
        self, table: AttributeSet, query: Mapping[str, Sequence[float]]
    ) -> tuple[float, float]:
        """(value, standard error) of any product query on a table: a range, a subtotal, …

        query: a vector for attributes of the table, one number for each of its values; what is
        left out is summed over. The standard error is exact, with all covariances between what the
        query adds up. Raises `WorkloadError`.
        """
        places = self._places(table)
        vectors = self._vectors(places, query)
        closure, sigma_squared = self._noise(places)
        variance = query_covariance(closure, sigma_squared, places, vectors, vectors)
        values = self._marginal(places)
        for place in places:
            values = np.tensordot(vectors[place], values, axes=(0, 0))
        return float(values), float(np.sqrt(variance))

    def covariance(
        self,
        table: AttributeSet,
        query: Mapping[str, Sequence[float]],
        other: Mapping[str, Sequence[float]],
    ) -> float:
        """Covariance of the noise in the answers to two product queries on a table."""
        places = self._places(table)
        left, right = (self._vectors(places, each) for each in (query, other))
        return query_covariance(*self._noise(places), places, left, right)

    def __repr__(self) -> str:
        return f"<Estimates of {len(self.tables):,} tables, {self.label}>"

    # ---- inside

    def _places(self, attributes: AttributeSet) -> Places:
        places = self.domain.positions(attributes)
        if _several(self.domain, places) not in self.contributions:
            raise WorkloadError(
                f"The attributes {self.domain.describe(places)} are in no table together, so "
                "nothing is known of them together; ask for fewer of them."
            )
        return places

    def _marginal(self, places: Places) -> np.ndarray:
        kept = _several(self.domain, places)
        subsets = [each for order in range(len(kept) + 1) for each in combinations(kept, order)]
        within = {subset: self.contributions[subset] for subset in subsets}
        return marginal(places, self.domain.sizes, within, self.strategies)

    def _variances(self, places: Places) -> np.ndarray:
        closure, sigma_squared = self._noise(places)
        return CellVariances(self._workload(places), closure).variances_of(0, sigma_squared)

    def _noise(self, places: Places) -> tuple[Closure, np.ndarray]:
        """The residuals within a marginal, as they are measured, and their σ²."""
        workload = self._workload(places)
        of_values = [
            Moments.of_values(self.strategies[place])
            if place in self.strategies
            else Moments.of_single_values(int(self.domain.sizes[place]))
            for place, _ in workload.attribute_bases
        ]
        closure = Closure.of(workload)
        closure = replace(closure, strategies=self.strategies, moments=of_values)
        found = [self.variances[closure.attributes(each)] for each in range(len(closure))]
        return closure, np.array(found, dtype=float)

    def _workload(self, places: Places) -> Workload:
        return Workload.of(self.domain, [[self.domain.names[place] for place in places]])

    @cached_property
    def _labels(self) -> dict[int, list[tuple[str, pa.Array]]]:
        """Made once for each attribute: it may have a million values, and be in every table."""
        used = sorted({place for table in self.tables for place in table})
        return {place: label_columns(self.domain.attributes[place]) for place in used}

    def _vectors(
        self, places: Places, query: Mapping[str, Sequence[float]]
    ) -> dict[int, np.ndarray]:
        """The query's vectors by place; ones where it says nothing."""
        vectors = {place: np.ones(self.domain.attributes[place].size) for place in places}
        for name, vector in query.items():
            place = self.domain.position(name)
            if place not in vectors:
                raise WorkloadError(
                    f"The table {self.domain.describe(places)} does not have the attribute "
                    f"{name!r}; ask a table that has it."
                )
            try:
                values = np.asarray(vector, dtype=float)
            except (TypeError, ValueError):
                values = np.empty(0)
            if values.shape != vectors[place].shape or not np.all(np.isfinite(values)):
                raise WorkloadError(
                    f"The query on {name!r} must be {len(vectors[place])} finite numbers, one for "
                    f"each of its values, got the shape {values.shape}."
                )
            vectors[place] = values
        return vectors


def _several(domain: Domain, places: Sequence[int]) -> Places:
    """Those of the places whose attribute has several values: what has a residual."""
    return tuple(place for place in places if domain.sizes[place] > 1)


def _sha256_in(release: Release, path: str) -> str:
    return next(each["sha256"] for each in release.manifest["files"] if each["path"] == path)
