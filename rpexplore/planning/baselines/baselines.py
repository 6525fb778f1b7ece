"""Baselines: plainer mechanisms by the error in every table; those that measure the tables."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from rpexplore.errors import PlanError
from rpexplore.planning.losses.losses import Loss, RelativeLoss, SumOfVariances
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.mechanism.strategy import Moments
from rpexplore.workload.bases.base import Operator
from rpexplore.workload.table_text import query_matrix
from rpexplore.workload.workload import Workload

# ---- Baseline: a plainer mechanism, by the error that it has in every table.


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


def shares_for(loss: Loss, weights: np.ndarray, logs: np.ndarray, exponent: int = 1) -> np.ndarray:
    """Shares of the budget for parts whose variances are `exp(logs)` at all of it, by their loss.

    weights: of the parts, float64[n]; those of 0 get next to nothing. exponent: of the share by
    which variances are divided: 1 for shares of a privacy cost, 2 for those of ε with Laplace noise
    """
    with np.errstate(divide="ignore"):
        log_weighted = np.log(np.maximum(weights, np.max(weights) * 1e-12)) + logs
    # Σ (w v / c^k)^p is smallest at c ∝ (w v)^(p/(kp + 1)).
    power = power_of(loss)
    log_shares = log_weighted / (exponent if np.isinf(power) else exponent + 1 / power)
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


# ---- Baselines that measure the tables that are asked for, each by itself.


_AT_ONCE = 1 << 22  # numbers worked on together


@dataclass(frozen=True)
class SameNoise(Baseline):
    """The same noise in every cell of every table, as it is asked for.

    Where an attribute is asked for in several bases, its costs in them are added up although no
    single value may have the largest one in all of them.

    norm  2 for Gaussian noise; 1 for Laplace noise, as if its variance were 1 at ε = 1
    """

    norm: int = 2

    def variances(self, workload: Workload, closure: Closure, loss: Loss) -> LogVariances:
        logs = np.zeros(len(workload.attribute_bases) + 1)
        for index, (attribute, basis) in enumerate(workload.attribute_bases):
            queries = query_matrix(basis, workload.domain.attributes[attribute]).operator
            logs[index] = 0.0 if basis.is_identity else np.log(_sensitivity(queries, self.norm))
        # Column sums of absolute numbers, or of squares, are added up over tables.
        of_tables = np.sum(logs[workload.attribute_basis_index], axis=1)
        highest = np.max(of_tables)
        total = highest + np.log(np.sum(np.exp(of_tables - highest)))
        everywhere = np.full(len(workload), total * (2 if self.norm == 1 else 1))
        return LogVariances(everywhere, everywhere)


@dataclass(frozen=True)
class OneByOne(Baseline):
    """Every table planned by itself, with the shares of the budget that are best for the loss.

    With the strategies of the plan, the residuals of a single table are best measured at variances
    for which its cells have the mean variance ∏ (√η + √(β τ))² over the number of cells.
    """

    def variances(self, workload: Workload, closure: Closure, loss: Loss) -> LogVariances:
        of_bases = np.zeros((2, len(workload.attribute_bases) + 1))
        for index, (attribute, _) in enumerate(workload.attribute_bases):
            moments, beta = moments_of(workload, closure, index), beta_of(closure, attribute)
            eta, tau = moments.total_sum, moments.spread_sum
            scale = np.sqrt(beta * eta / tau) if tau > 0 else 1.0
            rows, cost = moments.total + moments.spread * scale, 1 + beta / scale
            of_bases[:, index] = np.log(cost * np.mean(rows)), np.log(cost * np.max(rows))
        logs = np.sum(of_bases[:, workload.attribute_basis_index], axis=2)
        alone = LogVariances(*logs)
        shares = shares_for(loss, loss.table_weights(workload), alone.of_loss(loss))
        return LogVariances(alone.mean - np.log(shares), alone.largest - np.log(shares))


@dataclass(frozen=True)
class OneByOneLaplace(Baseline):
    """Every table of single values with Laplace noise of its own, by the best shares of ε."""

    def variances(self, workload: Workload, closure: Closure, loss: Loss) -> LogVariances:
        """As if the noise's variance were 1 at ε = 1."""
        if not workload.is_marginals:
            raise UnsuitableError("only for tables of single values.")
        alone = np.zeros(len(workload))
        logs = -2 * np.log(shares_for(loss, loss.table_weights(workload), alone, exponent=2))
        return LogVariances(logs, logs)


def _sensitivity(queries: Operator, norm: int) -> float:
    """The largest sum of absolute numbers, or of squares, in a column of queries."""
    if norm == 2:
        return float(np.max(np.diag(queries.gram)))
    step = max(_AT_ONCE // queries.n_rows, 1)
    largest = 0.0
    for start in range(0, queries.n_values, step):
        columns = np.eye(queries.n_values, min(step, queries.n_values - start), -start)
        largest = max(largest, float(np.max(np.sum(np.abs(queries.of(columns, 0)), axis=0))))
    return largest


def beta_of(closure: Closure, attribute: int) -> float:
    """β of an attribute: what its residual costs at variance 1."""
    strategy = closure.strategies.get(attribute)
    if strategy is not None:
        return float(strategy.cost_factor)
    size = int(closure.sizes[attribute])
    return (size - 1) / size


def moments_of(workload: Workload, closure: Closure, index: int) -> Moments:
    """T and N of one of `workload.attribute_bases`."""
    if closure.moments:
        return closure.moments[index]
    attribute, _ = workload.attribute_bases[index]
    return Moments.of_single_values(int(closure.sizes[attribute]))
