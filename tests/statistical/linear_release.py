"""Releases as what they are: linear in their noise, so that a few runs stand for all of them.

The real measuring and writing code runs once with no noise, and once with each number of the noise
alone. That is the map from the noise to the errors of all answers, and with it the mean and the
covariance of a release are exact: nothing is left to chance. That the code is linear is tried on
real runs, whose noise is drawn where the code draws it, and noted.

Many releases then are many draws of the real sampler and one matrix product. For every pair (a, b)
of answers the mean of y_a y_b over N of them has standard deviation √((C_aa C_bb + C_ab²)/N) for
normal errors (the discrete Gaussian here has scales above 10, where its moments are normal to far
below 1e-9).

False alarms: a pair at 7.5 deviations. The normal tail is 6e-14; a mean of N = 10^5 products has
skewness up to √8/316, which makes its tail up to exp(√8·7.5³/1900) = 1.9 times heavier. The tests
on the whole vector have a threshold of 7 deviations, 3e-12.

Power: a pair is rejected for a covariance wrong by 6 % of √(C_aa C_bb) or more. All covariances
wrong by 2 % lie 14 deviations off and more.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

import numpy as np
import pytest

from rpexplore.releases.noise.discrete_gaussian import discrete_gaussian

DRAWS = 100_000
REAL_RUNS = 100
PAIR_DEVIATIONS = 7.5
DEVIATIONS = 7.0
UNIT = 2**20  # of noise, in place of 1: the map has more digits


@dataclass(frozen=True, eq=False)
class LinearRelease:
    """What releases of one plan and of the same records are.

    run             the answers of one release, with the sampler replaced by this one: [answers]
    calls           what is asked of the sampler, in order: how many numbers, and their γ²
    without_noise   the answers of a release whose noise is 0: [answers]
    matrix          how far each number of the noise moves each answer: [answers, noise]
    """

    run: Callable[[Callable], np.ndarray]
    calls: list[tuple[int, Fraction]]
    without_noise: np.ndarray
    matrix: np.ndarray

    @classmethod
    def of(cls, released: Callable[[], np.ndarray], sampler: str) -> Self:
        """Of what releases, and where it finds the sampler, as `package.module.name`."""

        def run(draw: Callable) -> np.ndarray:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(sampler, draw)
                return released()

        calls: list[tuple[int, Fraction]] = []

        def silent(size, gamma_squared):
            calls.append((size, gamma_squared))
            return np.zeros(size, dtype=np.int64)

        without_noise = run(silent)
        columns = []
        for unit in UNIT * np.eye(sum(size for size, _ in calls), dtype=np.int64):
            columns.append((run(handed_out(calls, unit)) - without_noise) / UNIT)
        return cls(run, calls, without_noise, np.array(columns).T)

    @property
    def variances(self) -> np.ndarray:
        """Of the noise, in order."""
        assert all(gamma_squared > 100 for _, gamma_squared in self.calls)
        return np.concatenate([np.full(size, float(each)) for size, each in self.calls])

    @property
    def covariance(self) -> np.ndarray:
        """Of the answers, exactly: [answers, answers]."""
        return self.matrix * self.variances @ self.matrix.T

    def errors(self, n: int = DRAWS) -> np.ndarray:
        """The errors of all answers in n releases, with noise of the real sampler: [n, answers]."""
        drawn = [discrete_gaussian(n * size, each).reshape(n, size) for size, each in self.calls]
        return np.hstack(drawn) @ self.matrix.T

    def check_real_runs(self) -> None:
        """Real runs ask for the same noise, and differ by what the matrix makes of it."""
        for _ in range(REAL_RUNS):
            calls, noise = [], []

            def noted(size, gamma_squared, calls=calls, noise=noise):
                calls.append((size, gamma_squared))
                noise.append(discrete_gaussian(size, gamma_squared))
                return noise[-1]

            errors = self.run(noted) - self.without_noise
            assert calls == self.calls
            assert np.count_nonzero(np.concatenate(noise)) > 0
            assert np.allclose(errors, self.matrix @ np.concatenate(noise), rtol=1e-9, atol=1e-9)


def handed_out(calls: list[tuple[int, Fraction]], noise: np.ndarray) -> Callable:
    """In the place of the sampler: this noise, a piece a call; another call than these fails."""
    left, position = iter(calls), 0

    def draw(size, gamma_squared):
        nonlocal position
        assert (size, gamma_squared) == next(left)
        position += size
        return noise[position - size : position].copy()

    return draw


def pair_deviations(errors: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """How far each mean product lies from its covariance, in standard deviations."""
    variance = np.diag(covariance)
    spread = np.sqrt((np.outer(variance, variance) + covariance**2) / len(errors))
    return (errors.T @ errors / len(errors) - covariance) / spread


def whole_deviations(errors: np.ndarray, covariance: np.ndarray) -> float:
    """How far Σ yᵀ C⁺ y is from its expectation, N · rank, in standard deviations."""
    rank = np.linalg.matrix_rank(covariance, tol=1e-9 * np.max(covariance))
    squares = np.sum((errors @ np.linalg.pinv(covariance, rcond=1e-9)) * errors)
    return float((squares - len(errors) * rank) / np.sqrt(2 * len(errors) * rank))


def assert_exact(release: LinearRelease, truth: np.ndarray, covariance: np.ndarray) -> None:
    """Assert that releases are unbiased, and have this covariance, whatever noise is drawn."""
    assert np.allclose(release.without_noise, truth, rtol=0, atol=1e-9)
    scale = np.sqrt(np.diag(covariance))
    assert np.allclose(
        release.covariance / np.outer(scale, scale),
        covariance / np.outer(scale, scale),
        rtol=0,
        atol=1e-9,
    )


def assert_mean_and_covariance(errors: np.ndarray, covariance: np.ndarray, rank: int) -> None:
    """Assert that errors have mean 0 and this covariance, of this rank, and lie in its range."""
    assert np.max(np.abs(pair_deviations(errors, covariance))) < PAIR_DEVIATIONS
    assert abs(whole_deviations(errors, covariance)) < DEVIATIONS
    # Unbiased: the mean of every cell, and nothing outside the space of consistent answers.
    means = errors.mean(axis=0) / np.sqrt(np.diag(covariance) / len(errors))
    assert np.max(np.abs(means)) < DEVIATIONS
    values, vectors = np.linalg.eigh(covariance)
    null = vectors[:, values < 1e-9 * values.max()]
    assert null.shape[1] == len(covariance) - rank
    assert np.max(np.abs(errors @ null), initial=0) < 1e-6


def assert_told_from_two_percent(errors: np.ndarray, covariance: np.ndarray) -> None:
    """Assert that a covariance that is wrong by 2 % throughout is told from the right one.

    It moves the sum of squares by more than what is let pass, whatever is drawn.
    """
    rank = np.linalg.matrix_rank(covariance, tol=1e-9 * np.max(covariance))
    assert 0.02 / 1.02 * np.sqrt(len(errors) * rank / 2) > DEVIATIONS
