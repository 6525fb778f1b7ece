"""Shadow prices by Newton's method, where the multiplicative steps of `max_variance` crawl.

The bound on the smallest largest variance is the square of g(y) = Σ_j √(p_j (v₀ + Cᵀy)_j) over the
budget, concave in y on the simplex, with C the weighted rows of B. Where many cells are nearly
equal, y moves along directions in which g is almost flat. A logarithmic barrier makes g strictly
concave there; its maximum comes with a gap of about m times the barrier's weight (m cells), which
is lowered until that is small enough (Boyd and Vandenberghe, Convex Optimization, §11.3).

Prices of caps, where `capped` crawls, are found alike: they maximise g(z)²/c − Σ z over z ≥ 0. On
the way there the best response is inside all caps, and its gap is m times the barrier's weight.
"""

import numpy as np
from scipy import sparse
from scipy.linalg import LinAlgError, cho_factor, cho_solve

MOST_CELLS = 1500  # a step solves a dense system of so many unknowns
_STEPS = 40  # of Newton for one weight of the barrier
_FALL = 0.05  # of the barrier's weight between them


def central_prices(
    weighted: sparse.csr_array,
    costs: np.ndarray,
    fixed: np.ndarray,
    start: np.ndarray,
    *,
    gap: float,
    tolerance: float,
) -> np.ndarray:
    """y, float64[m] on the simplex, with g(y) within `tolerance` (relative) of its maximum.

    weighted  float64[m, n_residuals]: C
    costs     float64[n_residuals]: p; fixed: v₀
    start     float64[m], sum 1, to begin with, and the gap it has
    """
    count = len(start)
    barrier = max(min(gap, 0.01), tolerance / 8) / count
    y = np.maximum(start, 0.1 * barrier)
    y /= np.sum(y)
    scale = float(np.sum(np.sqrt(costs * (fixed + weighted.T @ y))))
    while True:
        y = _centred(weighted, costs, fixed, y, barrier, scale)
        if barrier * count <= tolerance / 8:
            return y
        barrier *= _FALL


def _centred(
    weighted: sparse.csr_array,
    costs: np.ndarray,
    fixed: np.ndarray,
    y: np.ndarray,
    barrier: float,
    scale: float,
) -> np.ndarray:
    """The maximum of g(y)/scale + barrier · Σ log y on the simplex, from y."""

    def value(at: np.ndarray) -> float:
        within = fixed + weighted.T @ at
        return float(np.sum(np.sqrt(costs * within))) / scale + barrier * float(np.sum(np.log(at)))

    present = value(y)
    for _ in range(_STEPS):
        within = fixed + weighted.T @ y
        roots = np.sqrt(costs / within)
        gradient = (weighted @ roots) / (2 * scale) + barrier / y
        bent = sparse.csr_array(weighted.multiply((roots / within) / (4 * scale)))
        # In units of y, so that small prices do not spoil the system's conditioning.
        hessian = (bent @ weighted.T).toarray() * np.outer(y, y)
        hessian[np.diag_indices_from(hessian)] += barrier * (1 + 1e-9)
        try:
            factor = cho_factor(hessian)
        except LinAlgError:
            return y
        towards = cho_solve(factor, np.column_stack([gradient * y, y]))
        move = (towards[:, 0] - towards[:, 1] * (y @ towards[:, 0]) / (y @ towards[:, 1])) * y
        gain = float(gradient @ move)
        if gain <= 1e-3 * barrier:
            return y
        falling = move < 0
        length = min(1.0, 0.99 * float(np.min(-y[falling] / move[falling], initial=np.inf)))
        while length > 1e-10:
            there = y + length * move
            new = value(there)
            if new >= present + 1e-4 * length * gain:
                break
            length /= 2
        else:
            return y
        y, present = there / np.sum(there), new
    return y


def central_cap_prices(
    relative: sparse.csr_array,
    costs: np.ndarray,
    held: np.ndarray,
    start: np.ndarray,
    *,
    privacy_cost: float,
    value: float,
    gap: float,
    tolerance: float,
) -> np.ndarray:
    """z, float64[m] > 0, with g(z)²/c − Σ z within `tolerance` times `value` of its maximum.

    relative  float64[m, n_residuals]: rows of B over their caps
    held      float64[n_residuals]: v₀; with costs and start as for `central_prices`
    value     about the maximum, and the gap that the start has, relative
    """
    count = len(start)
    barrier = max(min(gap, 0.01), tolerance / 4) * value / count
    z = np.maximum(start, barrier)
    while True:
        z = _centred_in_caps(relative, costs, held, z, barrier, privacy_cost)
        if barrier * count <= tolerance / 4 * value:
            return z
        barrier *= _FALL


def _centred_in_caps(
    relative: sparse.csr_array,
    costs: np.ndarray,
    held: np.ndarray,
    z: np.ndarray,
    barrier: float,
    privacy_cost: float,
) -> np.ndarray:
    """The maximum of g(z)²/c − Σ z + barrier · Σ log z, from z."""

    def objective(at: np.ndarray) -> float:
        root_sum = float(np.sum(np.sqrt(costs * (held + relative.T @ at))))
        rest = barrier * float(np.sum(np.log(at))) - float(np.sum(at))
        return root_sum * root_sum / privacy_cost + rest

    present = objective(z)
    for _ in range(_STEPS):
        weights = held + relative.T @ z
        roots = np.sqrt(costs / weights)
        root_sum = float(roots @ weights)
        slopes = z * (relative @ roots) / 2  # of g, in log z
        gradient = 2 * root_sum / privacy_cost * slopes - z + barrier
        bent = sparse.csr_array(relative.multiply(roots / weights * (root_sum / privacy_cost / 2)))
        hessian = (bent @ relative.T).toarray() * np.outer(z, z)
        hessian -= np.outer(slopes, slopes) * (2 / privacy_cost)
        hessian[np.diag_indices_from(hessian)] += barrier * (1 + 1e-9)
        try:
            move = cho_solve(cho_factor(hessian), gradient)
        except LinAlgError:
            return z
        gain = float(gradient @ move)
        if gain <= 1e-6 * barrier:  # so far that the response keeps stiff caps, too
            return z
        length = min(1.0, -0.99 / min(float(np.min(move)), -1e-300))
        while length > 1e-10:
            there = z * (1 + length * move)
            new = objective(there)
            if new >= present + 1e-4 * length * gain:
                break
            length /= 2
        else:
            return z
        z, present = there, new
    return z
