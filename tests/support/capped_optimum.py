"""The best noise within caps by CVXPY over all rows of B, an independent judge; random problems."""

import warnings
from dataclasses import replace
from typing import Any

import cvxpy as cp
import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

import rpexplore as rp
from tests.support.oracles import variance_matrix
from tests.support.strategies import domains, workloads

# How well CVXPY knows its own optimum, at the slacks tried here.
SOLVER = 3e-6


def smallest_value(
    b: np.ndarray,
    p: np.ndarray,
    privacy_cost: float,
    *,
    unit: np.ndarray,
    of_sum: np.ndarray,
    of_max: np.ndarray,
    caps: np.ndarray,
) -> float:
    """The smallest of_sum·Var + max of_max·Var with Var ≤ caps, at this privacy cost.

    Solved twice, the second time in units of the first solution.

    b       float64[n_rows, n_residuals]: the variance of each row (a table, or one of its cells)
    unit    float64[n_residuals]: σ² near the solution, so that the solver works at scale 1; it
            changes no digit of the optimum
    of_sum  float64[n_rows]; of_max too, with 0 for rows that are not in the maximum
    caps    float64[n_rows], inf where there is none
    """
    _, unit = _solved(b, p, privacy_cost, unit, of_sum, of_max, caps)
    return _solved(b, p, privacy_cost, unit, of_sum, of_max, caps)[0]


def _solved(
    b: np.ndarray,
    p: np.ndarray,
    privacy_cost: float,
    unit: np.ndarray,
    of_sum: np.ndarray,
    of_max: np.ndarray,
    caps: np.ndarray,
) -> tuple[float, np.ndarray]:
    """(the smallest value, σ² where it is)."""
    scaled = cp.Variable(len(p), pos=True)
    at_unit = b @ unit
    scale = float(of_sum @ at_unit + np.max(of_max * at_unit))
    loss = (of_sum @ (b * unit) / scale) @ scaled
    if np.any(in_max := of_max > 0):
        loss += cp.max((of_max[in_max, None] * b[in_max] * unit / scale) @ scaled)
    limits: list[cp.Constraint] = [(p / unit / privacy_cost) @ cp.inv_pos(scaled) <= 1]
    if np.any(capped := np.isfinite(caps)):
        limits.append((b[capped] * unit / caps[capped, None]) @ scaled <= 1)
    problem = cp.Problem(cp.Minimize(loss), limits)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # it seldom reaches such tolerances
        problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-10)
    assert problem.status in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE), problem.status
    # By as much as it breaks the limits, at their prices, its value is too small.
    broken = sum(
        float(np.sum(np.maximum(limit.args[0].value - 1, 0) * limit.dual_value)) for limit in limits
    )
    value: Any = problem.value
    at: Any = scaled.value
    return (float(value) + broken) * scale, unit * np.clip(at, 1e-3, 1e3)


def smallest_ratio(b: np.ndarray, p: np.ndarray, caps: np.ndarray) -> float:
    """The smallest possible max Var/cap at privacy cost 1: the budget at which caps can be kept."""
    capped = np.isfinite(caps)
    used = np.any(b[capped] > 0, axis=0)  # other residuals cost nothing where they are not measured
    b, p, inverse = b[np.ix_(capped, used)], p[used], 1 / caps[capped]
    weights = b.T @ inverse
    unit = np.sqrt(p / weights) * np.sum(np.sqrt(p * weights))
    none = np.full(len(inverse), np.inf)
    return smallest_value(
        b, p, 1.0, unit=unit, of_sum=np.zeros(len(inverse)), of_max=inverse, caps=none
    )


def bound_of(b: np.ndarray, p: np.ndarray, privacy_cost: float, dual: np.ndarray) -> float:
    """(Σ√(p Bᵀd))²/c: the smallest Σ d · Var."""
    return float(np.sum(np.sqrt(p * (b.T @ dual))) ** 2 / privacy_cost)


@st.composite
def workloads_with_required(
    draw,
    *,
    powers: float = 1.0,
    all_required: bool | None = None,
    max_size: int = 8,
):
    """Workloads whose tables all have targets, some or all of them to be met.

    powers: of ten, that targets may be above and below 1
    all_required: whether every target must be met; None: maybe
    """
    workload = draw(workloads(domains(max_size=max_size), with_targets=True))
    count = len(workload)
    powers_of_ten = draw(st.lists(st.floats(-powers, powers), min_size=count, max_size=count))
    required = np.array(draw(st.lists(st.booleans(), min_size=count, max_size=count)))
    required[draw(st.integers(0, count - 1))] = True
    if all_required if all_required is not None else draw(st.integers(0, 4)) == 0:
        required[:] = True
    if all_required is False:
        assume(count > 1)
        required[0] = not np.all(required[1:])
    return replace(workload, targets=10.0 ** np.array(powers_of_ten), required=required)


def least_record_cost(workload: rp.Workload) -> float:
    """The smallest privacy cost at which the required targets can be met, by CVXPY."""
    b, p = variance_matrix(workload)
    return smallest_ratio(b, p, np.where(workload.required, workload.targets**2, np.inf))
