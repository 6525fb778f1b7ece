"""Publishable cells: those whose noise is small enough beside their count."""

import numpy as np


def coefficients_of_variation(standard_errors: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Standard error over the size of the count, shaped as both; ∞ where that is 0."""
    errors, sizes = np.broadcast_arrays(standard_errors, np.abs(counts))
    return np.divide(errors, sizes, out=np.full(sizes.shape, np.inf), where=sizes > 0)


def are_publishable(standard_errors: np.ndarray, counts: np.ndarray, cv_limit: float) -> np.ndarray:
    """Whether cells have a coefficient of variation of at most `cv_limit`, bool."""
    return coefficients_of_variation(standard_errors, counts) <= cv_limit


def are_publishable_as_estimated(
    standard_errors: np.ndarray, estimates: np.ndarray, cv_limit: float
) -> np.ndarray:
    """The same by noisy counts, of which those above 0 can be publishable."""
    return (estimates > 0) & are_publishable(standard_errors, estimates, cv_limit)
