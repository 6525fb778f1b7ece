"""Area design: what is measured in every area of a tree, and how accurate its answers are."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Self

import numpy as np

from rpexplore.common.numbers import read_only
from rpexplore.common.text import plural
from rpexplore.domain.domain import Domain
from rpexplore.planning.areas.area_groups import AreaGroups
from rpexplore.planning.areas.area_workload import AreaWorkload
from rpexplore.planning.areas.tree_passes import Estimation
from rpexplore.planning.mechanism.closure import Closure


@dataclass(frozen=True, eq=False, repr=False)
class AreaDesign:
    """Which residuals of the tables are measured in every area, and how precisely. No records.

    In one area of group v, residual S of the closure is measured with precision
    t = unit · factor_S · multiple_{k(S), v} (σ̄² = 1/t), or not at all where that is 0. A plan is
    one with whole multiples, exactly; releases that are combined make another, in floats. On some
    levels, from the top on, a residual may be known exactly: there it is counted without noise.

    workload      what is asked
    groups        areas that are alike
    closure       residuals of the tables of the other attributes
    of_residual   int64[n_residuals]: the profile k(S) of each
    factors       int64[n_residuals], above 0
    multiples     int64[n_profiles, n_groups], or float64: of the unit and a residual's factor; 0:
                  not measured with noise
    exact_levels  int64[n_profiles]: how many levels, from the top on, are known exactly
    unit          exact
    """

    workload: AreaWorkload
    groups: AreaGroups
    closure: Closure
    of_residual: np.ndarray
    factors: np.ndarray
    multiples: np.ndarray
    exact_levels: np.ndarray
    unit: Fraction

    @property
    def domain(self) -> Domain:
        """The other attributes."""
        return self.workload.domain

    @property
    def products(self) -> Sequence[tuple[int, int]]:
        """As of `PartPlan.products`."""
        return self.workload.tables.products

    @property
    def attribute_indices(self) -> tuple[int, ...]:
        """Those in some table, as columns of the records: ascending, without levels."""
        return tuple(np.unique(self.domain.columns[list(self.workload.tables.used)]).tolist())

    @property
    def bare(self) -> Self:
        """The same without what was worked out on the way, or read from its files."""
        return replace(self)

    @property
    def n_items(self) -> int:
        return self.workload.n_tables

    @property
    def contents(self) -> str:
        """What is known in all areas, for a sentence: "7 noisy tables in areas"."""
        return f"{plural(self.n_items, 'noisy table')} in areas"

    @property
    def precisions(self) -> np.ndarray:
        """The multiples as float64[n_profiles, n_groups]."""
        return self.multiples.astype(float)

    @cached_property
    def estimations(self) -> tuple[Estimation, ...]:
        """How the measurements of each profile are combined, at precisions equal to multiples."""
        pairs = zip(self.precisions, self.exact_levels.tolist(), strict=True)
        return tuple(Estimation.of(self.groups, *pair) for pair in pairs)

    @cached_property
    def is_counted(self) -> np.ndarray:
        """What is measured in areas, with noise or without: bool[n_profiles, n_groups]."""
        exactly = [self.groups.known_exactly(levels) for levels in self.exact_levels.tolist()]
        return read_only((self.multiples > 0) | np.array(exactly))

    @cached_property
    def scales(self) -> np.ndarray:
        """The unit times each residual's factor, float64[n_residuals]."""
        return read_only(np.array([float(self.unit * factor) for factor in self.factors.tolist()]))

    @property
    def gamma_squared(self) -> np.ndarray:
        """The largest variance parameter of each residual's whole numbers: float64[n_residuals].

        Over the areas in which noise is added to them; 0 where it is in none.
        """
        least = np.min(np.where(self.precisions > 0, self.precisions, np.inf), axis=1)
        return self.closure.squared_scales / (self.scales * least[self.of_residual])

    @cached_property
    def residual_variances(self) -> np.ndarray:
        """Of the least-squares answers to residuals, float64[n_residuals, n_groups].

        0 where no table that is asked for has the residual; below `NO_ERROR` where it is exact.
        """
        found = np.empty((len(self.closure), len(self.groups)))
        for residual, profile in enumerate(self.of_residual.tolist()):
            np.divide(
                self.estimations[profile].variances, self.scales[residual], out=found[residual]
            )
        return read_only(found)
