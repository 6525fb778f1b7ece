"""Losses within limits: required targets, and a bounded largest error."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rpexplore.errors import WorkloadError
from rpexplore.planning.losses.losses import Loss, NumberOption, WeightedSum, weights_to_targets
from rpexplore.workload.workload import Workload

_LEAST_SLACK, _MOST_SLACK = 1e-6, 1e6


class WithinTargets(Loss):
    """The required targets are met; what is left of the budget serves the other tables.

    If every table's target is required, all count. A target is met when the least accurate cell of
    its table meets it (docs/mathematics.md §6.5, §6.6).
    """

    is_homogeneous: ClassVar[bool] = False  # caps do not fall as the budget rises
    meets_required_targets: ClassVar[bool] = True

    def caps(self, workload: Workload, limit: float | None = None) -> np.ndarray:
        """The largest variance that each table may have, float64[n_tables]; inf: any.

        Raises `WorkloadError` if no target is required.
        """
        if not np.any(workload.required):
            raise WorkloadError(
                "No target is marked required; mark those that have to be met, or choose "
                "another objective."
            )
        with np.errstate(over="ignore"):  # the planner refuses what is out of its range
            return np.where(workload.required, workload.planned_targets**2, np.inf)

    def counted_tables(self, workload: Workload) -> np.ndarray:
        """The tables that the loss counts: those without a required target, bool[n_tables]."""
        return ~workload.required if not np.all(workload.required) else workload.required


@dataclass(frozen=True)
class SumWithinTargets(WeightedSum, WithinTargets):
    """The required targets are met, and the other tables' weighted sum of variances is smallest.

    weighting: of the sum; as for `SumOfVariances`

    Example:
        >>> SumWithinTargets().meets_required_targets
        True
    """

    kind: ClassVar[str] = "sum_within_targets"
    option: ClassVar[str] = "required"
    _objective: ClassVar[str] = (
        "meet required targets, then minimise the average error of the others"
    )

    @property
    def description(self) -> str:
        return f"{super().description} of tables without required target"

    def table_weights(self, workload: Workload) -> np.ndarray:
        """Weight on each table's variance, float64[n_tables]; 0 where a target is required."""
        return np.where(self.counted_tables(workload), super().table_weights(workload), 0.0)

    def minorant(self, dual_weights: np.ndarray, workload: Workload) -> tuple[float, float]:
        """The solution within required targets; dual weights beyond its own price the caps."""
        prices = dual_weights - self.table_weights(workload)
        priced = prices > 0
        return 1.0, float(np.sum(prices[priced] * self.caps(workload)[priced]))


@dataclass(frozen=True)
class MaxWithinTargets(WithinTargets):
    """The required targets are met, and the others' largest variance over its target² is smallest.

    Each of the other tables needs a target.

    Example:
        >>> MaxWithinTargets().meets_required_targets
        True
    """

    kind: ClassVar[str] = "max_within_targets"
    option: ClassVar[str] = "required-then-targets"
    _objective: ClassVar[str] = (
        "meet required targets, then minimise the largest shortfall from the others"
    )
    looks_at_least_accurate_cells: ClassVar[bool] = True

    @property
    def description(self) -> str:
        return "the largest variance relative to its target, of tables without required target"

    @property
    def compares_with_targets(self) -> bool:
        return True

    def table_weights(self, workload: Workload) -> np.ndarray:
        """1/target², float64[n_tables]; 0 where a target is required.

        Raises `WorkloadError` for a table without a target.
        """
        return weights_to_targets(
            workload,
            self.counted_tables(workload),
            "meet the required ones and then minimise the average error",
        )

    def value(self, variances: np.ndarray, workload: Workload) -> float:
        """The largest ratio, whether or not the required targets are met."""
        return float(np.max(self.table_weights(workload) * variances))

    def minorant(self, dual_weights: np.ndarray, workload: Workload) -> tuple[float, float]:
        """The solution within required targets; a maximum is at least any mean."""
        weights = self.table_weights(workload)
        counts = weights > 0
        total = float(np.sum(dual_weights[counts] / weights[counts]))
        if total == 0:
            return 0.0, 0.0
        price_of_caps = dual_weights[~counts] * self.caps(workload)[~counts]
        return 1 / total, float(np.sum(price_of_caps)) / total

    def weights_on_means(self, workload: Workload, dual_weights: np.ndarray) -> np.ndarray:
        return np.zeros(len(workload))


@dataclass(frozen=True)
class SumWithBoundedMax(WeightedSum):
    """Weighted sum of variances, with the largest weighted standard error bounded.

    weighting: as of `SumOfVariances`. slack: by how much, relative, the largest may be above the
    smallest possible one: 0.1 for 10 %. The bound on weight times variance is the `limit` of the
    plan's certificate.

    Example:
        >>> SumWithBoundedMax(slack=0.2).slack
        0.2
    """

    slack: float = 0.1

    kind: ClassVar[str] = "sum_with_bounded_max"
    option: ClassVar[str] = "bounded"
    _objective: ClassVar[str] = "minimise the average error, with a bounded largest error"
    number: ClassVar[NumberOption | None] = NumberOption(
        "slack",
        "Largest standard error above the smallest possible, at most",
        least=0.01,
        most=10_000.0,
        step=5.0,
        scale=100.0,
        help="0 would be the plan with the smallest largest error; the more is allowed, the nearer "
        "the plan comes to the one with the smallest average error.",
    )
    has_limit: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.slack, bool) or not isinstance(self.slack, int | float):
            raise WorkloadError(f"The slack must be a number, got {self.slack!r}.")
        if not _LEAST_SLACK <= self.slack <= _MOST_SLACK:
            raise WorkloadError(
                f"The slack must be from {_LEAST_SLACK:g} to {_MOST_SLACK:g} (0.1 is 10 %), got "
                f"{self.slack:g}; for the smallest largest error itself use MaxVariance()."
            )

    @property
    def description(self) -> str:
        return (
            f"{super().description}, with the largest standard error at most "
            f"{100 * self.slack:.6g} % above the smallest possible"
        )

    def limit(self, smallest: float) -> float:
        """The bound, for the smallest possible maximum of weight times variance."""
        return smallest * (1 + self.slack) ** 2

    def caps(self, workload: Workload, limit: float | None = None) -> np.ndarray:
        """The largest variance that each table may have, float64[n_tables].

        limit: on weight times variance; without one, none is allowed any
        """
        return (0.0 if limit is None else limit) / workload.weights

    def minorant_of_plan(
        self, dual_weights: np.ndarray, workload: Workload, limit: float | None, near: np.ndarray
    ) -> tuple[float, float]:
        """The solution within the limit; dual weights beyond the sum's are prices of it."""
        prices = dual_weights - self.table_weights(workload)
        return 1.0, float(np.sum(prices * self.caps(workload, limit)))
