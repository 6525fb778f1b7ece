"""Shadow prices by Newton's method, where multiplicative steps crawl (docs/mathematics.md §6.3).

For the largest variance g(y) = Σ_j √(p_j (v₀ + Cᵀy)_j), with C the weighted rows of B, is maximised
over y on the simplex; for caps g(z)²/c − Σ z over z ≥ 0. A logarithmic barrier makes both strictly
concave. Its maximum comes with a gap of about m times the barrier's weight (m cells), which is
lowered until that is small enough (Boyd and Vandenberghe, Convex Optimization, §11.3).
"""

from collections.abc import Callable

import numpy as np
from scipy import sparse
from scipy.linalg import LinAlgError, cho_factor, cho_solve

MOST_CELLS = 1500  # a step solves a dense system of so many unknowns
_STEPS = 40  # of Newton for one weight of the barrier
_FALL = 0.05  # of the barrier's weight between them

# The point that a step of some length leads to, its gain to first order, and the longest length.
_Step = tuple[Callable[[float], np.ndarray], float, float]


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

    weighted: C, float64[m, n_residuals]. costs, fixed: p and v₀, float64[n_residuals]. start:
    float64[m], sum 1, and the gap it has.
    """
    count = len(start)
    # A barrier of b a price means a gap of about b · count: it begins where the start already is.
    barrier = max(min(gap, 0.01), tolerance / 8) / count
    y = np.maximum(start, 0.1 * barrier)
    y /= np.sum(y)
    scale = float(np.sum(np.sqrt(costs * (fixed + weighted.T @ y))))

    def value(y: np.ndarray) -> float:
        root_sum = float(np.sum(np.sqrt(costs * (fixed + weighted.T @ y))))
        return root_sum / scale + barrier * float(np.sum(np.log(y)))

    def newton(y: np.ndarray) -> _Step:
        within = fixed + weighted.T @ y
        roots = np.sqrt(costs / within)
        gradient = (weighted @ roots) / (2 * scale) + barrier / y
        # −∂²g = ¼ C diag(√p v^−3/2) Cᵀ.
        bent = sparse.csr_array(weighted.multiply((roots / within) / (4 * scale)))
        # In units of y, so that small prices do not spoil the system's conditioning.
        hessian = (bent @ weighted.T).toarray() * np.outer(y, y)
        hessian[np.diag_indices_from(hessian)] += barrier * (1 + 1e-9)
        towards = cho_solve(cho_factor(hessian), np.column_stack([gradient * y, y]))
        # Σ move = 0: y stays on the simplex.
        move = (towards[:, 0] - towards[:, 1] * (y @ towards[:, 0]) / (y @ towards[:, 1])) * y
        falling = move < 0
        # No further than 99 % of the way to where a price would become 0.
        longest = 0.99 * float(np.min(-y[falling] / move[falling], initial=np.inf))
        return (lambda length: y + length * move), float(gradient @ move), longest

    while True:
        # To a thousandth of the barrier: what is gained beyond that is lost when it falls.
        y = _maximum(value, newton, y, 1e-3 * barrier, accepted=lambda y: y / np.sum(y))
        if barrier * count <= tolerance / 8:
            return y
        barrier *= _FALL


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

    relative: float64[m, n_residuals], rows of B over their caps. held: v₀. value: about the
    maximum; gap: that of the start, relative. The rest as for `central_prices`.
    """
    count = len(start)
    barrier = max(min(gap, 0.01), tolerance / 4) * value / count
    z = np.maximum(start, barrier)

    def objective(z: np.ndarray) -> float:
        root_sum = float(np.sum(np.sqrt(costs * (held + relative.T @ z))))
        rest = barrier * float(np.sum(np.log(z))) - float(np.sum(z))
        return root_sum * root_sum / privacy_cost + rest

    def newton(z: np.ndarray) -> _Step:
        weights = held + relative.T @ z
        roots = np.sqrt(costs / weights)
        root_sum = float(roots @ weights)
        slopes = z * (relative @ roots) / 2  # of g, in log z
        gradient = 2 * root_sum / privacy_cost * slopes - z + barrier
        bent = sparse.csr_array(relative.multiply(roots / weights * (root_sum / privacy_cost / 2)))
        hessian = (bent @ relative.T).toarray() * np.outer(z, z)
        # g² also bends by the square of its slope; what remains is positive semidefinite (§6.5).
        hessian -= np.outer(slopes, slopes) * (2 / privacy_cost)
        hessian[np.diag_indices_from(hessian)] += barrier * (1 + 1e-9)
        move = cho_solve(cho_factor(hessian), gradient)
        longest = -0.99 / min(float(np.min(move)), -1e-300)
        return (lambda length: z * (1 + length * move)), float(gradient @ move), longest

    while True:
        # To so little gain that the response keeps stiff caps, too.
        z = _maximum(objective, newton, z, 1e-6 * barrier)
        if barrier * count <= tolerance / 4 * value:
            return z
        barrier *= _FALL


def _maximum(
    value: Callable[[np.ndarray], float],
    newton: Callable[[np.ndarray], _Step],
    point: np.ndarray,
    least_gain: float,
    accepted: Callable[[np.ndarray], np.ndarray] = lambda point: point,
) -> np.ndarray:
    """The maximum of a concave function by Newton's steps, halved until they raise it enough.

    least_gain: by which a step raises the value, to first order, else the search has ended.
    accepted: what becomes of a point that is taken.
    """
    present = value(point)
    for _ in range(_STEPS):
        try:
            step, gain, longest = newton(point)
        # Not positive definite by rounding: there is no more to gain here.
        except LinAlgError:
            return point
        if gain <= least_gain:
            return point
        length = min(1.0, longest)
        while length > 1e-10:
            new = value(step(length))
            # Armijo's rule.
            if new >= present + 1e-4 * length * gain:
                break
            length /= 2
        else:
            return point
        point, present = accepted(step(length)), new
    return point
