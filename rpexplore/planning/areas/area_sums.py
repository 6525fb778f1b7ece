"""Sums over areas that are no area of the tree: a school district, given as a list of blocks.

Their answers are sums of the least-squares answers to the areas. How accurate these are is known
from the plan alone (docs/mathematics.md §15.8).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rpexplore.common.numbers import read_only
from rpexplore.domain.area_levels import text_column
from rpexplore.domain.area_tree import AreaTree
from rpexplore.domain.named_areas import areas_by_code
from rpexplore.errors import DomainError
from rpexplore.planning.areas.tree_passes import Estimation, stated_errors

if TYPE_CHECKING:
    import pandas as pd

    from rpexplore.planning.areas.area_design import AreaDesign
    from rpexplore.planning.areas.area_plan import AreaPlan

# An area by its number in the tree, by its codes from below the top, or by its own code alone.
AreaName = int | str | Sequence[str]
# Name -> areas or the code of one; or a single area, which is a list of its own.
AreaLists = Mapping[str, Iterable[AreaName] | str] | AreaName


NO_ANSWER = "not all of these areas have this table"
"""The note beside a sum that has no standard error."""


@dataclass(frozen=True, eq=False)
class AreaSums:
    """Lists of areas, each of which is added up; the areas of a list do not overlap.

    names  what the lists are called
    lists  int64[n]: the list that each area is in, ascending
    areas  int64[n]: the areas by their numbers
    """

    tree: AreaTree
    names: tuple[str, ...]
    lists: np.ndarray
    areas: np.ndarray

    @classmethod
    def of(cls, tree: AreaTree, lists: AreaLists) -> "AreaSums":
        """From name -> areas, on any mix of levels; a single area is called by its codes.

        Raises:
            DomainError: For no lists, an empty one, or an area that is not in the tree.
        """
        if not isinstance(lists, Mapping):
            codes = [lists] if isinstance(lists, int | str) else list(lists)
            lists = {" > ".join(map(str, codes)) or tree.levels[0]: [lists]}
        if not lists:
            raise DomainError("No list of areas is given; give one at least.")
        numbers = [area_numbers(tree, areas, f"The list {name!r}") for name, areas in lists.items()]
        return cls(
            tree,
            tuple(lists),
            read_only(np.repeat(np.arange(len(numbers)), [len(areas) for areas in numbers])),
            read_only(np.concatenate(numbers)),
        )

    @property
    def sizes(self) -> np.ndarray:
        """How many areas each list has, int64[n_lists]."""
        return np.bincount(self.lists, minlength=len(self.names))

    def variances(self, estimation: Estimation) -> np.ndarray:
        """Variance of the sum of the least-squares answers to each list, float64[n_lists].

        NaN where an area of the list has no answer. Upwards from the areas through all that they
        lie in, level by level. Raises `DomainError` where areas of a list overlap.
        """
        tree, of_area = self.tree, estimation.groups.of_area
        levels = tree.level_of[self.areas]
        lists = areas = np.empty(0, dtype=np.int64)
        # The part of a list's sum that lies in an area varies with the area's answer by `slopes`,
        # and independently of all that is outside of it by `within`.
        slopes = within = np.empty(0)
        for level in range(len(tree.levels) - 1, -1, -1):
            own = levels == level
            lists, areas = np.append(lists, self.lists[own]), np.append(areas, self.areas[own])
            slopes = np.append(slopes, np.ones(np.count_nonzero(own)))
            within = np.append(within, np.zeros(np.count_nonzero(own)))
            order = np.lexsort((areas, lists))
            lists, areas = lists[order], areas[order]
            slopes, within = slopes[order], within[order]
            self._refuse_overlaps(lists, areas)
            if level == 0 or not len(areas):
                continue
            below, above = estimation.below[of_area[areas]], tree.parents[areas].astype(np.int64)
            first = np.flatnonzero(
                (np.diff(lists, prepend=-1) != 0) | (np.diff(above, prepend=-1) != 0)
            )
            counts = np.diff(first, append=len(areas))
            lists, areas = lists[first], above[first]
            all_parts = estimation.sums[of_area[areas]]
            # The slope of the whole is the mean of the parts' slopes, 0 for those not listed.
            mean = np.divide(
                np.add.reduceat(slopes * below, first),
                all_parts,
                out=np.zeros(len(areas)),
                where=all_parts > 0,
            )
            apart = within + below * (slopes - np.repeat(mean, counts)) ** 2
            others = np.maximum(all_parts - np.add.reduceat(below, first), 0.0)
            others[counts == tree.n_parts[areas]] = 0.0  # exactly
            slopes, within = mean, np.add.reduceat(apart, first) + others * mean**2
        found = within + slopes**2 * estimation.variances[0]
        unknown = estimation.variances[of_area[self.areas]] == 0
        found[np.bincount(self.lists, unknown, minlength=len(self.names)) > 0] = np.nan
        return found

    def _refuse_overlaps(self, lists: np.ndarray, areas: np.ndarray) -> None:
        """Raise if an area, or one with others within it, stands twice in a list; both sorted."""
        twice = (np.diff(lists) == 0) & (np.diff(areas) == 0)
        if np.any(twice):
            row = int(np.argmax(twice))
            path = " > ".join(self.tree.path(int(areas[row]))) or self.tree.levels[0]
            raise DomainError(
                f"The list {self.names[int(lists[row])]!r} counts the area {path}, or one within "
                "it, twice; leave one of them out."
            )


def accuracy_of_sums(
    plan: "AreaPlan",
    lists: AreaLists,
    tables: Iterable[Sequence[str]] | None = None,
) -> "pd.DataFrame":
    """As `AreaPlan.accuracy_of_sums`."""
    import pandas as pd

    sums, asked = AreaSums.of(plan.workload.tree, lists), plan.workload.tables
    rows = (
        np.arange(len(asked))
        if tables is None
        else np.array([asked.position(table) for table in tables])
    )
    matrix, of_residuals = plan.closure.variance_matrix[rows], variances_of_sums(plan, sums)
    variances = np.zeros((len(rows), len(sums.names)))
    for counts, of_residual in zip(matrix.T, of_residuals, strict=True):
        counted = np.flatnonzero(counts)  # what a table does not have may be missing
        variances[counted] += counts[counted, None] * of_residual
    table = pd.DataFrame(
        {
            "list": np.repeat(np.array(sums.names, dtype=object), len(rows)),
            "attributes": [asked.tables[row] for row in rows.tolist()] * len(sums.names),
            "areas": np.repeat(sums.sizes, len(rows)),
            "standard_error": (stated_errors(variances.T) * asked.units[rows]).ravel(),
        }
    )
    table["note"] = np.where(table["standard_error"].isna(), NO_ANSWER, "")
    return table.sort_values("standard_error", ascending=False, kind="stable", ignore_index=True)


def variances_of_sums(plan: "AreaDesign", sums: AreaSums) -> np.ndarray:
    """Of the sums of the answers to each residual, float64[n_residuals, n_lists]; NaN for none."""
    of_profiles = np.stack([sums.variances(estimation) for estimation in plan.estimations])
    return of_profiles[plan.of_residual] / plan.scales[:, None]


def area_number(tree: AreaTree, area: AreaName) -> int:
    """The number of an area; `DomainError` for the codes of none, and for an empty area.

    A number is left as it is.
    """
    number = number_with_empty(tree, area)
    if isinstance(area, str | Sequence) and number >= tree.n_areas:
        tree.find(tree.path(number))  # raises
    return number


def number_with_empty(tree: AreaTree, area: AreaName) -> int:
    """The number of an area, which may be an empty one, as `area_number`."""
    if isinstance(area, str):
        return int(_by_own_codes(tree, [area], "The area")[0])
    if not isinstance(area, Sequence):
        return area
    try:
        return tree.find(area, empty=True)
    except DomainError:
        if len(area) > 1:
            raise
        return number_with_empty(tree, area[0])


def _by_own_codes(tree: AreaTree, codes: Sequence[str], source: str) -> np.ndarray:
    """The areas with these codes on any level, int64[n]; source: what has them, for errors."""
    remedy = f"give its codes from below {tree.levels[0]!r}, as a tuple"
    return areas_by_code(tree, text_column("codes", codes), lambda _: source, remedy)


def area_numbers(
    tree: AreaTree, areas: Iterable[AreaName] | str, source: str = "The list of areas"
) -> np.ndarray:
    """The numbers of areas, or of the one with this code, int64[n]; empty areas are left out.

    source: what has them, for errors; `DomainError` for none, for empty areas only, and for areas
    that are not there
    """
    given = [areas] if isinstance(areas, str) else list(areas)
    if len(given) == 0:
        raise DomainError(f"{source} has no areas; name one at least.")
    # All codes at once: there may be thousands of them, in a tree of millions of areas.
    codes = [area for area in given if isinstance(area, str)]
    by_code = iter(_by_own_codes(tree, codes, source).tolist() if codes else ())
    numbers = np.asarray(
        [
            next(by_code) if isinstance(area, str) else number_with_empty(tree, area)
            for area in given
        ]
    )
    if numbers.dtype.kind not in "iu":
        raise DomainError(
            f"{source} must name areas by their numbers or by their codes from below "
            f"{tree.levels[0]!r}, got {given[0]!r}."
        )
    outside = (numbers < 0) | (numbers >= tree.n_all)
    if np.any(outside):
        raise DomainError(
            f"{source} has the number {int(numbers[np.argmax(outside)]):,}; the areas "
            f"have the numbers 0 to {tree.n_areas - 1:,}."
        )
    numbers = numbers[numbers < tree.n_areas]
    if not len(numbers):
        raise DomainError(
            f"{source} has no areas but such as are stated to be empty: their counts are 0, "
            "without noise; leave it out."
        )
    return numbers.astype(np.int64)
