"""Area loss: what a loss looks at in the areas of a tree, and the problem that it poses."""

import numpy as np

from rpexplore.planning.areas.area_groups import AreaGroups
from rpexplore.planning.areas.area_workload import AreaWorkload
from rpexplore.planning.areas.profiles import Profiles
from rpexplore.planning.areas.solvers import AreaMaximum, AreaProblem, AreaSum
from rpexplore.planning.losses.base import Loss, SumOfVariances
from rpexplore.planning.mechanism.closure import Closure


def loss_of_variances(
    workload: AreaWorkload,
    groups: AreaGroups,
    closure: Closure,
    loss: Loss,
    residual_variances: np.ndarray,
) -> float:
    """The loss where residuals have these variances, float64[n_residuals, n_groups]."""
    total, largest = 0.0, 0.0
    for kind, asked in enumerate(workload.workloads):
        of_kind = groups.kinds == kind
        matrix = closure.variance_matrix[workload.rows[kind]]
        weighted = loss.table_weights(asked)[:, None] * (matrix @ residual_variances[:, of_kind])
        total += float(np.sum(weighted @ groups.multiplicity[of_kind])) / float(
            workload.areas_asked[kind]
        )
        largest = max(largest, float(np.max(weighted)))
    return total if isinstance(loss, SumOfVariances) else largest


def profiles_of(workload: AreaWorkload, closure: Closure, loss: Loss) -> Profiles:
    """Which residuals are planned as one for a loss."""
    matrix = closure.variance_matrix
    if isinstance(loss, SumOfVariances):
        of_kinds = _table_weights(workload, closure, loss) / workload.areas_asked[:, None]
        matrix = of_kinds @ matrix
    return Profiles.of(matrix, closure.privacy_cost_factor)


def area_problem(
    workload: AreaWorkload,
    groups: AreaGroups,
    closure: Closure,
    loss: Loss,
    profiles: Profiles,
    uniform: bool,
) -> AreaProblem:
    """What the search for the best precisions is given."""
    if isinstance(loss, SumOfVariances):
        weights = _of_groups(profiles.columns, groups)
        return AreaSum(groups, profiles.costs, uniform, weights)
    weights = _of_groups(_table_weights(workload, closure, loss), groups)
    return AreaMaximum(groups, profiles.costs, uniform, profiles.columns, weights)


def _table_weights(workload: AreaWorkload, closure: Closure, loss: Loss) -> np.ndarray:
    """Weight of each table where a workload is asked for, float64[n_workloads, n_tables]."""
    weights = np.zeros((len(workload.workloads), len(closure.cells)))
    for kind, asked in enumerate(workload.workloads):
        weights[kind, workload.rows[kind]] = loss.table_weights(asked)
    return weights


def _of_groups(of_kinds: np.ndarray, groups: AreaGroups) -> np.ndarray:
    """Rows of kinds as columns of groups, [n_columns, n_groups]; 0 where nothing is asked."""
    nothing = np.zeros((1, of_kinds.shape[1]))
    return np.ascontiguousarray(np.append(of_kinds, nothing, axis=0)[groups.kinds].T)
