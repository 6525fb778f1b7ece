"""Weights for smooth tables (docs/mathematics.md §6.10).

Smoothing estimates a table from its subtables and from what its own measurement says beyond them.
So what few cells share is worth more than in unbiased tables, and a table of three attributes
needs little of the budget. How little depends on the noise in comparison with the counts: the
weights depend on the budget and on the expected number of records, as no loss may.
"""

import sys
from dataclasses import dataclass, replace
from itertools import combinations
from numbers import Real
from typing import Any

import numpy as np

from rpexplore.common.exact_numbers import shown
from rpexplore.common.formatting import rounded
from rpexplore.common.json_fields import check_keys
from rpexplore.domain.domain import AttributeSet
from rpexplore.errors import WorkloadError
from rpexplore.workload.pair_dependence import PairDependence
from rpexplore.workload.workload import Workload

# The power of cells in the weight of pairs; of triples twice that, and so on.
_POWER = 0.2
# ρ N² / this is 1 where ρ = 1 and N = 50,000, about what the rule was found with.
_UNIT = 2.5e9
# Beyond it, numbers from a file could leave the floats; nobody has such budgets and counts.
_MOST_RATIO = 1e30
# Below that weight a table has next to nothing of the budget, and its noise could not be counted.
_LEAST = 1e-7


@dataclass(frozen=True)
class SmoothWeights:
    """The weights of tables that are to be smoothed, for the loss that counts tables equally.

    With r = ρ N² / 2.5e9, a table of k attributes and c cells (of single values) has the weight

        k ≤ 1   0.1 r^−0.25 c
        k = 2   c^0.2
        k ≥ 3   max(min(0.003 r^0.9, 0.1)^(k−2), 1e-7) c^(0.2 (k−1))

    rho      ρ of the budget for one record
    records  N, how many records are expected
    pairs    what a first release shows of pairs of attributes, for a second plan: the weight of a
             pair is multiplied by `PairDependence.factors`; None: plain weights

    Raises `WorkloadError` if one of them is not a positive number.
    """

    rho: float
    records: float
    pairs: PairDependence | None = None

    def __post_init__(self) -> None:
        for name, value in (("budget", self.rho), ("expected number of records", self.records)):
            # As exact as a budget's own ρ is, or as a person types it.
            is_number = isinstance(value, Real) and not isinstance(value, bool)
            if not is_number or not 0 < value <= sys.float_info.max:
                raise WorkloadError(
                    f"For the weights of smooth tables the {name} must be a positive number, got "
                    f"{shown(value)}."
                )
        object.__setattr__(self, "rho", float(self.rho))

    @property
    def text(self) -> str:
        """A description: "Weights for smooth tables, for ρ = 0.1 and 48,842 records"."""
        records = f"{self.records:,.0f}" if self.records >= 1 else rounded(self.records, 3)
        text = f"Weights for smooth tables, for ρ = {rounded(self.rho, 3)} and {records} records"
        return text if self.pairs is None else f"{text}, and {self.pairs.text}"

    def weights(self, workload: Workload) -> np.ndarray:
        """The weight of each table, float64[n_tables], to three significant digits."""
        ratio = float(self.rho) * float(self.records) * float(self.records) / _UNIT
        ratio = min(max(ratio, 1 / _MOST_RATIO), _MOST_RATIO)
        cells, orders = workload.counted_cells, workload.orders
        of_triples = min(3e-3 * ratio**0.9, 0.1)
        larger = np.maximum(of_triples ** np.maximum(orders - 2.0, 0.0), _LEAST)
        weights = np.where(
            orders <= 1, 0.1 * ratio**-0.25 * cells, larger * cells ** (_POWER * (orders - 1))
        )
        if self.pairs is not None:
            weights = weights * self.pairs.factors(workload)
        distinct, which = np.unique(weights, return_inverse=True)
        return np.array([float(f"{weight:.3g}") for weight in distinct.tolist()])[which]

    def weighted(self, workload: Workload) -> Workload:
        """The tables and the small ones within them, with these weights."""
        missing = missing_small_tables(workload)
        if missing:
            workload |= Workload.of(workload.domain, missing)
        return replace(workload, weights=self.weights(workload))

    # ---- files

    def to_json(self) -> dict[str, Any]:
        """Plain values for a file; `from_json` undoes it exactly."""
        content = {"rho": self.rho, "records": self.records}
        return content if self.pairs is None else content | {"pairs": self.pairs.to_json()}

    @classmethod
    def from_json(cls, content: Any) -> "SmoothWeights":
        """Raises KeyError, TypeError, ValueError or `RpexploreError` for what holds none."""
        has_pairs = isinstance(content, dict) and "pairs" in content
        names = ["rho", "records", *(["pairs"] if has_pairs else [])]
        check_keys(content, names, "the weights for smooth tables")
        pairs = PairDependence.from_json(content["pairs"]) if has_pairs else None
        return cls(content["rho"], content["records"], pairs)


def missing_small_tables(workload: Workload) -> list[AttributeSet]:
    """The tables of 1 and 2 attributes within tables of the workload that are not in it.

    They are measured in any case, being part of larger tables. By number of attributes, then
    lexicographically.
    """
    width = workload.members.shape[1]
    small = {
        subset
        for order in (1, 2)
        for columns in combinations(range(width), order)
        for subset in map(tuple, np.unique(workload.members[:, columns], axis=0).tolist())
        if min(subset) >= 0 and workload.find(subset) is None
    }
    names = workload.domain.names
    ordered = sorted(small, key=lambda subset: (len(subset), subset))
    return [tuple(names[index] for index in subset) for subset in ordered]
