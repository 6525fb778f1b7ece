"""Shadow prices by Newton's method, where the multiplicative steps of `max_variance` crawl.

The bound on the smallest largest variance is the square of g(y) = Σ_j √(p_j (v₀ + Cᵀy)_j) over the
budget, concave in y on the simplex, with C the weighted rows of B. Where many cells are nearly
equal, y moves along directions in which g is almost flat. A logarithmic barrier makes g strictly
concave there; its maximum comes with a gap of about m times the barrier's weight (m cells), which
is lowered until that is small enough (Boyd and Vandenberghe, Convex Optimization, §11.3).
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
