"""Statistical tests of selection, on fresh entropy, each able to fail.

Each comparison fails at a nominal level of 1e-11 (`LEVEL`), with cells of at least 40 expected
draws, so that a right mechanism fails one of the fewer than 20 comparisons with probability below
1e-6 (see `test_discrete_gaussian`). Wrong mechanisms are emulated beside it and are rejected.
"""

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from scipy import stats

from rpexplore.releases.noise import exponential_mechanism as module
from rpexplore.releases.noise.exponential_mechanism import select
from rpexplore.releases.noise.uniform import OPERATING_SYSTEM

LEVEL = 1e-11
SCORES = np.array([5, -3, 9, 9, 0, 7, -7], dtype=np.int64)


def shares(scores: np.ndarray, rate: float) -> np.ndarray:
    weights = np.exp(rate * (scores - scores.max()))
    return weights / weights.sum()


def p_value(observed: np.ndarray, probabilities: np.ndarray) -> float:
    expected = probabilities * observed.sum()
    assert expected.min() >= 40
    return float(stats.chisquare(observed, expected).pvalue)


def counts_of_accepted(scores: np.ndarray, rate: Fraction, proposals: int) -> np.ndarray:
    gaps = (scores.max() - scores).astype(np.uint64)
    densities = np.exp(gaps * -float(rate))
    accepted = module._accepted_proposals(proposals, gaps, densities, rate, OPERATING_SYSTEM)
    return np.bincount(accepted, minlength=len(scores))


@pytest.mark.parametrize("n", [2, 7, 64, 65])
def test_accepted_proposals_have_the_right_shares(n):
    scores, rate = np.resize(SCORES, n), Fraction(1, 4)
    observed = counts_of_accepted(scores, rate, 2**20)
    assert p_value(observed, shares(scores, 0.25)) > LEVEL
    assert p_value(observed, shares(scores, 0.28)) < LEVEL


def test_the_exact_path_alone_has_the_right_distribution(monkeypatch):
    def undecided(digits, densities):
        return digits % 2 == 0, np.ones(len(digits), dtype=bool)

    monkeypatch.setattr(module, "_fast_acceptance", undecided)
    observed = counts_of_accepted(SCORES, Fraction(1, 4), 20_000)
    assert p_value(observed, shares(SCORES, 0.25)) > LEVEL
    assert p_value(observed, shares(SCORES, 0.20)) < LEVEL


def test_draws_without_replacement_have_the_right_probabilities():
    """Ordered pairs of three: p_i p_j/(1 - p_i), that is, by peeling; ε = 1, Δ = 2."""
    scores = np.array([4, 0, 7])
    p = shares(scores, 1 / 4)
    pairs = list(permutations(range(3), 2))
    drawn = [tuple(select(scores, Fraction(1), 2, 2)) for _ in range(4_000)]
    observed = np.array([drawn.count(pair) for pair in pairs])
    assert p_value(observed, np.array([p[i] * p[j] / (1 - p[i]) for i, j in pairs])) > LEVEL
    uniform_second = np.array([p[i] / 2 for i, j in pairs])
    assert p_value(observed, uniform_second) < LEVEL
