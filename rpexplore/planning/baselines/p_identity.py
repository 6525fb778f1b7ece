"""p-identity strategies: each value, and a few weighted sums of values (McKenna et al. 2018).

A = [I; Θ] D with Θ ≥ 0 of p rows, and D the diagonal for which every column has the norm 1. So the
sensitivity is 1 whatever Θ is, and the error is smooth in Θ. It is not convex: of some starts the
best is taken, the same in every run; of many values the first.
"""

import numpy as np

from rpexplore.planning.baselines.attribute_strategies import AttributeStrategy
from rpexplore.planning.baselines.base import UnsuitableError

_IRRATIONAL = tuple(np.sqrt((2.0, 3.0, 5.0)))
_MOST_STEPS = 200
_FEW_VALUES = 128  # for which all starts are tried
_MOST_VALUES = 256


def p_identity(size: int, gram: np.ndarray) -> AttributeStrategy:
    """The best found for Laplace noise, with a sixteenth as many rows as values (HDMM's OPT_0)."""
    from scipy.optimize import minimize  # heavy

    if size > _MOST_VALUES:
        raise UnsuitableError(f"only for attributes of at most {_MOST_VALUES} values.")
    n_rows = max(size // 16, 1)
    best = None
    for irrational in _IRRATIONAL[: None if size <= _FEW_VALUES else 1]:
        # Spread evenly over 0 to 1, and without a pattern that the search could keep.
        given = (np.arange(1, n_rows * size + 1) * irrational) % 1.0
        found = minimize(
            _error, given, args=(gram,), jac=True, method="L-BFGS-B",
            bounds=[(0.0, None)] * given.size, options={"maxiter": _MOST_STEPS},
        )  # fmt: skip
        if best is None or found.fun < best.fun:
            best = found
    assert best is not None
    sums, scale = best.x.reshape(n_rows, size), 1 + np.sum(best.x.reshape(n_rows, size), axis=0)
    inner = np.linalg.inv(np.eye(n_rows) + sums @ sums.T)
    inverse = (np.eye(size) - sums.T @ inner @ sums) * np.outer(scale, scale)
    return AttributeStrategy(inverse, (1.0, float("nan")))


def _error(theta: np.ndarray, gram: np.ndarray) -> tuple[float, np.ndarray]:
    """tr(G (AᵀA)⁻¹) and its gradient in Θ.

    (AᵀA)⁻¹ = S (I + ΘᵀΘ)⁻¹ S with S = diag(1 + Σ rows of Θ); by Woodbury's formula all products
    are of p rows.
    """
    size = len(gram)
    sums = theta.reshape(-1, size)
    scale = 1 + np.sum(sums, axis=0)
    scaled = gram * np.outer(scale, scale)
    inner = np.linalg.solve(np.eye(len(sums)) + sums @ sums.T, sums)  # (I + ΘΘᵀ)⁻¹ Θ
    right = scaled - (scaled @ sums.T) @ inner  # S G S (I + ΘᵀΘ)⁻¹
    inverse_right = right - inner.T @ (sums @ right)
    error = float(np.trace(right))
    # In S: G ∘ (I + ΘᵀΘ)⁻¹ S is what is left of one factor; in Θ: −2 Θ M⁻¹ SGS M⁻¹.
    inverse = np.eye(size) - sums.T @ inner
    of_scale = 2 * (gram * inverse) @ scale
    gradient = of_scale[None] - 2 * sums @ inverse_right
    return error, gradient.ravel()
