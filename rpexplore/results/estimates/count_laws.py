"""Counts that cannot be negative, beside normal answers: expectation propagation.

The answers to the cells of an area err together, normally, and sums of cells are given. The law of
a single count is not normal: it is 0 or more, and of a rare kind mostly 0. Each law is replaced by
a normal factor, its site, with which the cell has the mean and the variance that the law itself
gives it, given all else (Minka 2001). Sums that are precise stay so, as all sites and answers are
solved together (docs/mathematics.md §15.11).
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

MOST = 120  # counts up to which a law is summed; cells that may be larger keep their first site
_DAMPING = 0.8  # share of the new site
_LEAST_VARIANCE = 1e-3  # of a count given all else, in records²
_INFORMED = 1e-6  # of a cell's precision: what all else has to say of it, for its site to move
_WIDTH = 5.0  # standard deviations within which a count is looked for

# Of the power law: its exponents, and what is added to counts.
_POWERS = (0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 2.5)
_ADDED = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)


@dataclass(frozen=True, eq=False)
class CountLaws:
    """The laws of some counts a priori, and normal sites to begin with.

    logs        float64[..., n_counts]: log probability of 0, 1, 2 … records, up to a constant
    precisions  float64[...]: of the first sites
    linear      float64[...]: precisions times means
    """

    logs: np.ndarray
    precisions: np.ndarray
    linear: np.ndarray

    @cached_property
    def _counts(self) -> np.ndarray:
        return np.arange(float(self.logs.shape[-1]))

    def next_sites(
        self,
        precisions: np.ndarray,
        linear: np.ndarray,
        means: np.ndarray,
        variances: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Sites nearer to the laws.

        Args:
            precisions: Of the sites so far.
            linear: Likewise, precisions times means.
            means: Of the counts, with these sites.
            variances: Likewise.
        """
        others = 1 / np.maximum(variances, 1e-9) - precisions
        is_moved = others > _INFORMED * (others + precisions)
        others = np.maximum(others, 1e-12)
        of_others = means / np.maximum(variances, 1e-9) - linear
        is_moved &= of_others / others + _WIDTH / np.sqrt(others) < MOST
        new, new_linear = self.precisions.copy(), self.linear.copy()
        if not np.any(is_moved):
            return new, new_linear
        others, of_others = others[is_moved], of_others[is_moved]
        # log of a normal factor, up to a constant.
        weights = self.logs[is_moved] + self._counts * (
            of_others[:, None] - others[:, None] / 2 * self._counts
        )
        weights -= weights.max(axis=-1, keepdims=True)
        np.exp(weights, out=weights)
        weights /= weights.sum(axis=-1, keepdims=True)
        mean = weights @ self._counts
        variance = np.maximum(weights @ self._counts**2 - mean**2, _LEAST_VARIANCE)
        # A law may leave a count less certain than all else does; a site has no negative precision.
        own = np.maximum(1 / variance - others, self.precisions[is_moved] * 1e-3)
        new[is_moved] = _DAMPING * own + (1 - _DAMPING) * precisions[is_moved]
        new_linear[is_moved] = (
            _DAMPING * (mean * (others + own) - of_others) + (1 - _DAMPING) * linear[is_moved]
        )
        return new, new_linear


def negative_binomial(means: np.ndarray, ratios: np.ndarray, most: int) -> np.ndarray:
    """Log probabilities of 0 … most records, up to a constant: float64[..., most + 1].

    Args:
        means: float64[...] > 0.
        ratios: Of the variance to the mean, float64[...]; of 1 and less it is Poisson's law.
        most: The largest count.
    """
    over = np.maximum(ratios, 1.02)
    sizes = means / (over - 1)
    counts = np.arange(1.0, most + 1)
    found = np.zeros((*means.shape, most + 1))
    steps = np.log(sizes[..., None] + (counts - 1))
    steps += (np.log1p(-1 / over))[..., None] - np.log(counts)
    np.cumsum(steps, axis=-1, out=found[..., 1:])
    return found


def power_law(answers: np.ndarray, variances: np.ndarray, total: int) -> np.ndarray:
    """Log probabilities of 0 … `MOST` records, of the likeliest law (x + a)^-b: float64[MOST + 1].

    Args:
        answers: float64[n], unbiased, with normal errors.
        variances: float64[n] > 0, of these.
        total: What no count is larger than.
    """
    counts = np.arange(MOST + 1.0)
    small = answers < MOST - _WIDTH * np.sqrt(variances)
    large = np.maximum(answers[~small], 1.0)
    off = -((answers[small, None] - counts) ** 2) / (2 * variances[small, None])
    top = max(float(total), MOST + 1.0)
    best, found = -np.inf, np.zeros(len(counts))
    for power in _POWERS:
        for added in _ADDED:
            logs = -power * np.log(counts + added)
            low, high = np.log(MOST + 0.5 + added), np.log(top + added)
            # ∫ (x + a)^-b dx over the larger counts, also for b = 1.
            places = np.linspace(low, high, 200)
            tail = np.trapezoid(np.exp((1 - power) * places), places)
            logs -= np.log(np.sum(np.exp(logs)) + tail)
            size = logs[0] + power * np.log(added)  # of the constant
            likelihood = np.sum(np.logaddexp.reduce(off + logs, axis=1))
            likelihood += np.sum(size - power * np.log(large + added))
            if likelihood > best:
                best, found = float(likelihood), logs
    return found
