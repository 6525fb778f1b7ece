"""Baselines that measure the tables that are asked for, each by itself."""

from dataclasses import dataclass

import numpy as np

from rpexplore.planning.baselines.base import Baseline, LogVariances, shares_for
from rpexplore.planning.losses.base import Loss
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.mechanism.strategy import Moments
from rpexplore.workload.bases.operators import Operator
from rpexplore.workload.query_matrix import query_matrix
from rpexplore.workload.workload import Workload

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
