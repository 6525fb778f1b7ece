"""Baseline: a plainer mechanism, by the error that it has in every table."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from rpexplore.errors import PlanError
from rpexplore.planning.losses.base import Loss, RelativeLoss, SumOfVariances
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.workload.workload import Workload

_DIGITS = 1e-6  # of a ratio of losses


class UnsuitableError(PlanError):
    """A baseline does not exist for some tables, or not for so many; says why."""


@dataclass(frozen=True, eq=False)
class LogVariances:
    """Natural logarithms of the variance of each table's cells, float64[n_tables] each.

    Noise in every cell of hundreds of attributes has variances beyond what floats hold.

    mean over the cells of the table; largest: of its least accurate cell
    """

    mean: np.ndarray
    largest: np.ndarray

    def of_loss(self, loss: Loss) -> np.ndarray:
        """Those that a loss looks at."""
        return self.largest if loss.looks_at_least_accurate_cells else self.mean

    def ratio(
        self, loss: Loss, workload: Workload, value: float, caps: np.ndarray | None = None
    ) -> float:
        """Natural logarithm of what all variances must be divided by for the loss to be this.

        caps: the largest variance that each table may have besides, float64[n_tables]
        """
        variances = self.of_loss(loss)

        def is_above(log_divisor: float) -> bool:
            with np.errstate(over="ignore", invalid="ignore"):
                return not loss.value(np.exp(variances - log_divisor), workload) <= value

        # Any loss that grows with variances has one such divisor; most are ratios of two values.
        low, high = float(np.min(variances)) - 1.0, float(np.max(variances)) + 1.0
        step = 1.0
        while not is_above(low):
            low, step = low - step, 2 * step
        step = 1.0
        while is_above(high):
            high, step = high + step, 2 * step
        while high - low > _DIGITS:
            middle = (low + high) / 2
            low, high = (middle, high) if is_above(middle) else (low, middle)
        return high if caps is None else max(high, float(np.max(self.largest - np.log(caps))))


@dataclass(frozen=True)
class Baseline(ABC):
    """A mechanism to compare a plan with.

    name    on the command line and in files
    title   in a sentence: "noise in every cell"
    source  where it is from
    """

    name: str
    title: str
    source: str

    @abstractmethod
    def variances(self, workload: Workload, closure: Closure, loss: Loss) -> LogVariances:
        """At privacy cost 1, with what it can choose chosen for the loss.

        closure: of the workload, with the strategies of the plan that is compared

        Raises:
            UnsuitableError: If there is no such mechanism for the workload.
        """


def shares_for(loss: Loss, weights: np.ndarray, logs: np.ndarray) -> np.ndarray:
    """Shares of the budget for parts whose variances are `exp(logs)` at all of it, by their loss.

    weights: of the parts, float64[n]; those of 0 get next to nothing
    """
    with np.errstate(divide="ignore"):
        log_weighted = np.log(np.maximum(weights, np.max(weights) * 1e-12)) + logs
    # Σ (w v / c)^p is smallest at c ∝ (w v)^(p/(p + 1)).
    power = power_of(loss)
    log_shares = log_weighted * (1.0 if np.isinf(power) else power / (power + 1))
    shares = np.exp(log_shares - np.max(log_shares))
    return shares / np.sum(shares)


def power_of(loss: Loss) -> float:
    """p of a loss that is the p-norm of weighted variances: 1 for a sum, ∞ for the largest.

    Raises:
        UnsuitableError: For any other loss: a mechanism is chosen for no such one.
    """
    if isinstance(loss, SumOfVariances):
        return 1.0
    if isinstance(loss, RelativeLoss):
        return float(loss.p)
    raise UnsuitableError("only chosen for the average or the largest error, or between them.")
