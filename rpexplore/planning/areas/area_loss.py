"""Area loss: what a loss looks at in the areas of a tree, and the problem that it poses."""

import numpy as np

from rpexplore.planning.areas.area_cells import LossRows, extreme_variances, mean_variances
from rpexplore.planning.areas.area_groups import AreaGroups
from rpexplore.planning.areas.area_workload import AreaWorkload
from rpexplore.planning.areas.capped_solver import AreaCapped
from rpexplore.planning.areas.profiles import Profiles
from rpexplore.planning.areas.solvers import AreaMaximum, AreaProblem, AreaSum
from rpexplore.planning.losses.base import Loss, MaxVariance, SumOfVariances, WeightedSum
from rpexplore.planning.losses.constrained import (
    MaxWithinTargets,
    SumWithinTargets,
    WithinTargets,
)
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.privacy.budget import Budget

AREA_LOSSES = (SumOfVariances, MaxVariance, SumWithinTargets, MaxWithinTargets)
"""What plans for areas can make small."""


def loss_of_variances(
    workload: AreaWorkload,
    groups: AreaGroups,
    closure: Closure,
    loss: Loss,
    residual_variances: np.ndarray,
) -> float:
    """The loss where residuals have these variances, float64[n_residuals, n_groups]."""
    total, largest, weights = 0.0, 0.0, table_weights(workload, loss)
    for kind, of_tables in enumerate(weights):
        of_kind = groups.kinds == kind
        variances = residual_variances[:, of_kind]
        if isinstance(loss, WeightedSum):
            weighted = of_tables @ mean_variances(workload, closure, kind, variances)
            total += float(weighted @ groups.multiplicity[of_kind]) / float(
                workload.areas_asked[kind]
            )
        else:
            of_cells = extreme_variances(workload, closure, kind, variances, largest=True)
            largest = max(largest, float(np.max(of_tables[:, None] * of_cells)))
    return total if isinstance(loss, WeightedSum) else largest


def profiles_of(workload: AreaWorkload, closure: Closure, loss: Loss, rows: LossRows) -> Profiles:
    """Which residuals are planned as one for a loss."""
    matrix = rows.matrix
    if isinstance(loss, SumOfVariances):
        matrix = _weights(workload, loss, rows) / workload.areas_asked[:, None] @ matrix
    return Profiles.of(matrix, closure.privacy_cost_factor)


def area_problem(
    workload: AreaWorkload,
    groups: AreaGroups,
    loss: Loss,
    rows: LossRows,
    profiles: Profiles,
    uniform: bool,
    budget: Budget,
) -> AreaProblem:
    """The input of the search for the best precisions.

    Its variances are those at a privacy cost of 1, its losses those at the budget.
    """
    cost = float(budget.record_privacy_cost)
    if isinstance(loss, SumOfVariances):
        weights = _of_groups(profiles.columns / cost, groups)
        return AreaSum(groups, profiles.costs, uniform, weights)
    of_rows = _weights(workload, loss, rows) / cost
    largest = not isinstance(loss, WeightedSum)
    if not largest:
        of_rows /= workload.areas_asked[:, None]
    weights = _of_groups(of_rows, groups)
    if not isinstance(loss, WithinTargets) or (largest and requires_all(workload)):
        return AreaMaximum(groups, profiles.costs, uniform, profiles.columns, weights)
    caps = _of_groups(row_caps(workload, loss, rows) * cost, groups, np.inf)
    return AreaCapped(groups, profiles.costs, uniform, profiles.columns, weights, caps, largest)


def requires_all(workload: AreaWorkload) -> bool:
    """Whether the targets of all tables in all areas are required."""
    return all(bool(np.all(asked.required)) for asked in workload.workloads)


def table_weights(workload: AreaWorkload, loss: Loss) -> list[np.ndarray]:
    """Weight of the variance of each table of each of the workloads; 0: it does not count.

    If every target is required, all tables count, as in plans without areas.
    """
    all_count = not loss.meets_required_targets or requires_all(workload)
    return [
        loss.table_weights(asked)
        if all_count or not np.all(asked.required)
        else np.zeros(len(asked))
        for asked in workload.workloads
    ]


def caps_of(workload: AreaWorkload, loss: WithinTargets) -> list[np.ndarray]:
    """The largest variance that each table of each of the workloads may have; inf: any.

    Raises `WorkloadError` if no target is required.
    """
    required = [bool(np.any(asked.required)) for asked in workload.workloads]
    if not any(required):
        return [loss.caps(asked) for asked in workload.workloads]  # which says what is missing
    return [
        loss.caps(asked) if has_some else np.full(len(asked), np.inf)
        for asked, has_some in zip(workload.workloads, required, strict=True)
    ]


def row_caps(workload: AreaWorkload, loss: WithinTargets, rows: LossRows) -> np.ndarray:
    """The largest variance of each row where a workload is asked: float64[n_workloads, n_rows]."""
    of_rows = [
        np.where(rows.single, rows.of_tables(limits, own, np.inf), np.inf)
        for own, limits in zip(workload.rows, caps_of(workload, loss), strict=True)
    ]
    return np.stack(of_rows)


def _weights(workload: AreaWorkload, loss: Loss, rows: LossRows) -> np.ndarray:
    """Weight of each row where a workload is asked for, float64[n_workloads, n_rows]."""
    counted = rows.means if isinstance(loss, WeightedSum) else rows.single
    of_rows = [
        np.where(counted, rows.of_tables(of_tables, own, 0.0), 0.0)
        for own, of_tables in zip(workload.rows, table_weights(workload, loss), strict=True)
    ]
    return np.stack(of_rows)


def _of_groups(of_kinds: np.ndarray, groups: AreaGroups, otherwise: float = 0.0) -> np.ndarray:
    """Rows of kinds as columns of groups, [n_columns, n_groups].

    otherwise: where nothing is asked
    """
    nothing = np.full((1, of_kinds.shape[1]), otherwise)
    return np.ascontiguousarray(np.append(of_kinds, nothing, axis=0)[groups.kinds].T)
