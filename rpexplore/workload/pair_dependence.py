"""How far pairs of attributes are from independence, as a release shows it: for a second plan.

docs/mathematics.md §6.10. Noisy figures only, and public: what follows from a release spends
nothing. How they are computed: `postprocessing.dependence`.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from rpexplore.common.exact_numbers import shown
from rpexplore.common.formatting import joined
from rpexplore.common.json_fields import check_keys, list_of
from rpexplore.errors import WorkloadError
from rpexplore.workload.workload import Workload

# Below that share of the mean a pair is as good as independent, and noise decides where it stands.
_LEAST = 0.02
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
            factors[rows[is_known]] = np.maximum(relative, _LEAST)
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
