"""Floors for small areas: a truth that noise is added to is a draw of its own posterior."""

import numpy as np

from tests.benchmarks import made_up_state
from tests.benchmarks.small_area_floors import Subtrees, posterior

FOLLOWING, MEAN, N = (4, 3), 3.0, 2_500


def test_chains_leave_the_distribution_that_truths_were_drawn_from():
    """Of two parts of each area, two cells: moments of the last draws are those of the truths."""
    generator = np.random.default_rng(1)
    shares = np.tile([0.7, 0.3], (N, 1))
    own = np.stack([generator.dirichlet(FOLLOWING[0] * each) for each in shares])
    within = np.repeat(np.arange(N), 2)
    sizes = generator.poisson(generator.gamma(made_up_state.SIZES, 1, 2 * N) * MEAN / 0.6)
    of_blocks = np.stack([generator.dirichlet(FOLLOWING[1] * each) for each in own[within]])
    counts = generator.multinomial(sizes, of_blocks)
    subtrees = Subtrees(
        counts, [within, np.arange(2 * N)], [np.full(N, 0.1), np.full(2 * N, 0.2)], shares,
        FOLLOWING, MEAN, np.array([[1.0, 0.8], [0.8, 1.0]]),
    )  # fmt: skip
    drawn = posterior(subtrees, 2, n_samples=9, n_steps=20)[-1].astype(float)

    def moments(x):
        first, second = x[::2], x[1::2]
        return np.stack([
            first[:, 0], first[:, 1], first.sum(axis=1) == 0, first[:, 0] * first[:, 1],
            first[:, 0] * second[:, 0], first[:, 0] * second[:, 1], first[:, 1] == 0,
        ])  # fmt: skip

    gained = moments(drawn) - moments(counts.astype(float))
    assert np.mean(np.any(drawn != counts, axis=1)) > 0.3
    assert np.all(np.abs(gained.mean(axis=1)) < 3.5 * gained.std(axis=1) / np.sqrt(N))
