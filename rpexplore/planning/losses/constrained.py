"""Losses within limits: targets that must be met, and a bounded largest error."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rpexplore.errors import WorkloadError
from rpexplore.planning.losses.base import (
    AIMS,
    WEIGHTINGS,
    Loss,
    SumOfVariances,
    weighting_in_words,
    weights_to_targets,
)
from rpexplore.workload.workload import Workload

_LEAST_EXCESS, _MOST_EXCESS = 1e-6, 1e6


class WithinTargets:
    """The targets that must be met are; what is left of the budget serves the other tables.

    Where every table must meet its target there are no others, and all count as if they were.
    A must is met when the least accurate cell of its table meets it. (docs/mathematics.md
    §6.5, §6.6.)
    """

    is_homogeneous: ClassVar[bool] = False  # caps do not fall as the budget rises

    def caps(self, workload: Workload) -> np.ndarray:
        """The largest variance that each table may have, float64[n_tables]; inf: any.

        Raises `WorkloadError` if no table has a must.
        """
        if not np.any(workload.required):
            raise WorkloadError(
                "No target is marked required; mark those that have to be met, or choose another "
                "aim."
            )
        with np.errstate(over="ignore"):  # the planner refuses what is out of its range
            return np.where(workload.required, workload.targets**2, np.inf)

    def counted(self, workload: Workload) -> np.ndarray:
        """The tables that the loss counts: those without a must, bool[n_tables]."""
        return ~workload.required if not np.all(workload.required) else workload.required


@dataclass(frozen=True)
class SumWithinTargets(WithinTargets):
    """The musts are met, and the other tables' weighted sum of variances is smallest.

    weighting: of the sum; as for `SumOfVariances`
    """

    weighting: str = "equal"

    looks_at_worst_cells: ClassVar[bool] = False

    def __post_init__(self) -> None:
        SumOfVariances(self.weighting)  # refuses others than those there are

    @property
    def description(self) -> str:
        how = weighting_in_words(self.weighting)
        return f"the sum of variances times importance ({how}) of tables without a must"

    @property
    def aim(self) -> str:
        """What a plan with this loss is for."""
        return f"{AIMS['required']}, {WEIGHTINGS[self.weighting]}"

    def table_weights(self, workload: Workload) -> np.ndarray:
        """Weight on each table's variance, float64[n_tables]; 0 for those with a must."""
        weights = SumOfVariances(self.weighting).table_weights(workload)
        return np.where(self.counted(workload), weights, 0.0)

    def value(self, variances: np.ndarray, workload: Workload) -> float:
        """The sum; whether the musts are met is another matter."""
        return float(np.sum(self.table_weights(workload) * variances))

    def minorant(self, dual_weights: np.ndarray, workload: Workload) -> tuple[float, float]:
        """Where the musts are met; dual weights beyond those of the sum are prices of caps."""
        prices = dual_weights - self.table_weights(workload)
        priced = prices > 0
        return 1.0, float(np.sum(prices[priced] * self.caps(workload)[priced]))


@dataclass(frozen=True)
class MaxWithinTargets(WithinTargets):
    """The musts are met, and the other tables' largest variance relative to its target is smallest.

    Each of the others needs a target, which is met in proportion: as in
    `MaxVariance(relative_to="target")`.
    """

    looks_at_worst_cells: ClassVar[bool] = True

    @property
    def description(self) -> str:
        return "the largest variance relative to its target, of tables without a must"

    @property
    def aim(self) -> str:
        """What a plan with this loss is for."""
        return AIMS["musts, then targets"]

    def table_weights(self, workload: Workload) -> np.ndarray:
        """1/target², float64[n_tables]; 0 for tables with a must.

        Raises `WorkloadError` for a table without a target.
        """
        return weights_to_targets(
            workload, self.counted(workload), "aim at the musts and then the average"
        )

    def value(self, variances: np.ndarray, workload: Workload) -> float:
        """The largest ratio; whether the musts are met is another matter."""
        return float(np.max(self.table_weights(workload) * variances))

    def minorant(self, dual_weights: np.ndarray, workload: Workload) -> tuple[float, float]:
        """Where the musts are met; a maximum is at least any mean."""
        weights = self.table_weights(workload)
        counted = weights > 0
        total = float(np.sum(dual_weights[counted] / weights[counted]))
        if total == 0:
            return 0.0, 0.0
        held = dual_weights[~counted] * self.caps(workload)[~counted]
        return 1 / total, float(np.sum(held)) / total


@dataclass(frozen=True)
class SumWithBoundedMax:
    """Weighted sum of variances, with the largest importance-weighted standard error bounded.

    weighting  of the sum; as for `SumOfVariances`
    excess     by how much, relative, the largest may be above the smallest possible one: 0.1 for
               10 %. The larger it is, the nearer to the plan that is best on average.

    The plan holds the bound that follows as its certificate's `limit`, on importance times the
    variance of a table's least accurate cell.
    """

    weighting: str = "equal"
    excess: float = 0.1

    looks_at_worst_cells: ClassVar[bool] = False
    is_homogeneous: ClassVar[bool] = True

    def __post_init__(self) -> None:
        SumOfVariances(self.weighting)
        if isinstance(self.excess, bool) or not isinstance(self.excess, int | float):
            raise WorkloadError(f"The excess must be a number, got {self.excess!r}.")
        if not _LEAST_EXCESS <= self.excess <= _MOST_EXCESS:
            raise WorkloadError(
                f"The excess must be from {_LEAST_EXCESS:g} to {_MOST_EXCESS:g} (0.1 is 10 %), got "
                f"{self.excess:g}; for the smallest largest error itself use MaxVariance()."
            )

    @property
    def description(self) -> str:
        how = weighting_in_words(self.weighting)
        return (
            f"the sum of variances times importance ({how}), with the largest standard error at "
            f"most {100 * self.excess:.6g} % above the smallest possible"
        )

    @property
    def aim(self) -> str:
        return f"{AIMS['bounded']}, {WEIGHTINGS[self.weighting]}"

    def limit(self, smallest: float) -> float:
        """The bound, for the smallest possible maximum of importance times variance."""
        return smallest * (1 + self.excess) ** 2

    def caps(self, workload: Workload, limit: float) -> np.ndarray:
        """The largest variance that each table may have, float64[n_tables]."""
        return limit / workload.weights

    def table_weights(self, workload: Workload) -> np.ndarray:
        return SumOfVariances(self.weighting).table_weights(workload)

    def value(self, variances: np.ndarray, workload: Workload) -> float:
        return float(np.sum(self.table_weights(workload) * variances))

    def minorant(self, dual_weights: np.ndarray, workload: Workload) -> tuple[float, float]:
        """Without the bound, only what is counted of the sum; see `minorant_within`."""
        return SumOfVariances(self.weighting).minorant(dual_weights, workload)

    def minorant_within(
        self, limit: float, dual_weights: np.ndarray, workload: Workload
    ) -> tuple[float, float]:
        """Where no table is above the limit; dual weights beyond the sum's are prices of it."""
        prices = dual_weights - self.table_weights(workload)
        return 1.0, float(np.sum(prices * self.caps(workload, limit)))


def compares_with_targets(loss: Loss) -> bool:
    """Whether the tables that the loss counts need targets, and their importance has no effect."""
    relative_to = getattr(loss, "relative_to", "importance")  # not all losses are relative
    return relative_to == "target" or isinstance(loss, MaxWithinTargets)
