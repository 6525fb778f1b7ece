"""Weights for smooth tables, from how far pairs of attributes are from independence."""

import math
import sys
from dataclasses import dataclass, replace
from itertools import combinations
from numbers import Real
from typing import Any

import numpy as np

from rpexplore.common.json_fields import check_keys, list_of
from rpexplore.common.numbers import shown
from rpexplore.common.text import joined, rounded
from rpexplore.domain.domain import AttributeSet
from rpexplore.errors import WorkloadError
from rpexplore.workload.workload import Workload

# ---- How far pairs of attributes are from independence, as a release shows it: for a second plan.
#
# docs/mathematics.md §6.10. Noisy figures only, and public: what follows from a release spends
# nothing. How they are computed: `results.second_plan`.


# Below that share of the mean a pair is as good as independent, and noise decides where it stands.
_LEAST_DEPENDENCE = 0.02
_FARTHEST = 2.0  # of two distributions in L1
_SHORT = 12  # characters of a SHA-256 that tell releases apart


@dataclass(frozen=True)
class PairDependence:
    """The distance of each pair's table from the product of its margins, in L1.

    releases    SHA-256 of the manifests of the releases that show it, or of noisy marginals
    attributes  names, in the order of their domain
    pairs       (first, second, distance): places in `attributes`, ascending, and the distance as a
                share of the records, from 0 to 2

    Raises `WorkloadError` if there is no pair, or one is not like that.
    """

    releases: tuple[str, ...]
    attributes: tuple[str, ...]
    pairs: tuple[tuple[int, int, float], ...]

    def __post_init__(self) -> None:
        if not self.pairs:
            raise WorkloadError(
                "The release shows no pair of attributes together, so nothing about pairs follows "
                "from it; take one with tables of two attributes or more."
            )
        for first, second, distance in self.pairs:
            if not (0 <= first < second < len(self.attributes) and 0 <= distance <= _FARTHEST):
                raise WorkloadError(
                    "Each pair must be two places of attributes in ascending order and a distance "
                    f"from 0 to 2, got {shown([first, second, distance])}."
                )

    @property
    def text(self) -> str:
        """Whose it is: "what the release 1a2b3c4d5e6f shows of pairs of attributes"."""
        noun, verb = ("release", "shows") if len(self.releases) == 1 else ("releases", "show")
        names = joined([sha256[:_SHORT] for sha256 in self.releases])
        return f"what the {noun} {names} {verb} of pairs of attributes"

    def factors(self, workload: Workload) -> np.ndarray:
        """Factor for the weight of each table, float64[n_tables].

        max(d / mean d, 0.02) of pairs, with the mean over those pairs of the workload that are
        known; 1 of all other tables.
        """
        factors = np.ones(len(workload))
        rows = np.flatnonzero(workload.orders == 2)
        if not len(rows):
            return factors
        position = {name: index for index, name in enumerate(workload.domain.names)}
        places = np.array([position[name] for name in self.attributes])
        known = np.full((len(position), len(position)), np.nan)
        first, second, of_pairs = map(np.array, zip(*self.pairs, strict=True))
        ends = np.sort([places[first], places[second]], axis=0)
        known[ends[0], ends[1]] = of_pairs
        distances = known[tuple(workload.members[rows, :2].T)]
        is_known = ~np.isnan(distances)
        total = float(distances[is_known].sum())
        if total > 0:
            relative = distances[is_known] * (int(is_known.sum()) / total)
            factors[rows[is_known]] = np.maximum(relative, _LEAST_DEPENDENCE)
        return factors

    # ---- files

    def to_json(self) -> dict[str, Any]:
        """Plain values for a file; `from_json` undoes it exactly."""
        return dict(vars(self))

    @classmethod
    def from_json(cls, content: Any) -> "PairDependence":
        """Raises KeyError, TypeError, ValueError or `RpexploreError` for what holds none."""
        check_keys(content, ("releases", "attributes", "pairs"), "what a release shows of pairs")
        for name in ("releases", "attributes"):
            if not all(isinstance(text, str) for text in list_of(content, name)):
                raise TypeError
        pairs = tuple((first, second, distance) for first, second, distance in content["pairs"])
        if not all(type(place) is int for *places, _ in pairs for place in places):
            raise TypeError
        return cls(tuple(content["releases"]), tuple(content["attributes"]), pairs)


# ---- Weights for smooth tables (docs/mathematics.md §6.10).
#
# Smoothing estimates a table from its subtables and from what its own measurement says beyond them.
# So what few cells share is worth more than in unbiased tables, and a table of three attributes
# needs little of the budget. How little depends on the noise in comparison with the counts: the
# weights depend on the budget and on the expected number of records, as no loss may.


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
    by_cell  what each cell of a table adds to its weight, against dependence of three attributes
             that no pair shows

    Raises `WorkloadError` if one of them is not a positive number.
    """

    rho: float
    records: float
    pairs: PairDependence | None = None
    by_cell: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.by_cell < math.inf:
            raise WorkloadError(
                "What a cell adds to the weights of smooth tables must be 0 or a positive number, "
                f"got {shown(self.by_cell)}."
            )
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
        if self.by_cell:
            text += f", with {rounded(self.by_cell, 3)} for each cell"
        return text if self.pairs is None else f"{text}, and {self.pairs.text}"

    def weights(self, workload: Workload) -> np.ndarray:
        """The weight of each table, float64[n_tables], to three significant digits.

        Raises `WorkloadError` for a table with amounts, and for an attribute at several levels.
        """
        if np.any(workload.has_amounts):
            table = workload.describe(int(np.argmax(workload.has_amounts)))
            raise WorkloadError(
                f"The table {table} has amounts, and there are weights for smooth tables of counts "
                "alone; leave the table out, or weigh the tables yourself."
            )
        if workload.has_levels:
            level = workload.domain.attributes[min(workload.at_several_levels)]
            raise WorkloadError(
                f"The attribute {level.of or level.name!r} is in tables at several levels, and "
                "smooth tables go with one level of each attribute; plan with one level, or leave "
                "the weights for smooth tables out."
            )
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
        weights = weights + self.by_cell * cells
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
        content: dict[str, Any] = {"rho": self.rho, "records": self.records}
        if self.pairs is not None:
            content["pairs"] = self.pairs.to_json()
        return content | ({"by_cell": self.by_cell} if self.by_cell else {})

    @classmethod
    def from_json(cls, content: Any) -> "SmoothWeights":
        """Raises KeyError, TypeError, ValueError or `RpexploreError` for what holds none."""
        there = content if isinstance(content, dict) else {}
        names = ["rho", "records", *(name for name in ("pairs", "by_cell") if name in there)]
        check_keys(content, names, "the weights for smooth tables")
        pairs = PairDependence.from_json(content["pairs"]) if "pairs" in there else None
        return cls(content["rho"], content["records"], pairs, content.get("by_cell", 0.0))


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
