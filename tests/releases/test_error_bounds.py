"""Error bounds: how often they hold with the sampler's own noise, and that they are not too wide.

A bound that fails in more than the stated share of cases is found with certainty for practical
purposes; one that is right is refused with probability below 1e-7 (exact binomial counts).
"""

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from rpexplore.errors import ReleaseError
from rpexplore.releases import error_bounds
from rpexplore.releases.error_bounds import (
    bounds_from_selection,
    informative,
    noise_bound,
    share_of_history,
)
from rpexplore.releases.noise.discrete_gaussian import discrete_gaussian
from rpexplore.releases.noise.exponential_mechanism import select


def subsets(table):
    return [subset for k in range(len(table) + 1) for subset in combinations(table, k)]


def residual_noise(subset, sizes, variance: Fraction, draws: int) -> np.ndarray:
    """Noise of contributions as a release has it: drawn, divided by ∏n, centred; [draws, ...]."""
    shape = [sizes[i] for i in subset]
    drawn = discrete_gaussian(draws * math.prod(shape), variance * math.prod(shape) ** 2)
    noise = drawn.reshape(draws, *shape) / math.prod(shape)
    for axis in range(1, noise.ndim):
        noise = noise - noise.mean(axis=axis, keepdims=True)
    return noise


def table_noise(table, sizes, variances, draws: int) -> np.ndarray:
    """‖unbiased table - exact table‖₁ in each draw: float64[draws]."""
    total = np.zeros((draws, *(sizes[i] for i in table)))
    for subset in subsets(table):
        of_each = variances[subset]
        weights = np.array([float(1 / variance) for variance in of_each])
        noise = sum(
            weight * residual_noise(subset, sizes, variance, draws)
            for weight, variance in zip(weights / weights.sum(), of_each, strict=True)
        )
        shape = [sizes[i] if i in subset else 1 for i in table]
        others = math.prod(sizes[i] for i in table if i not in subset)
        total += noise.reshape(draws, *shape) / others
    return np.abs(total).reshape(draws, -1).sum(axis=1)


def fails_too_often(failures: int, draws: int, failure: float) -> bool:
    return bool(stats.binom.sf(failures - 1, draws, failure) < 1e-7)


def equal(table, variance: Fraction) -> dict:
    return {subset: [variance] for subset in subsets(table)}


ONE_HALF, LITTLE = Fraction(1, 2), Fraction(1, 50)
CASES = {
    "total": ((), (), equal((), Fraction(9)), 1.75),
    "two cells": ((0,), (2,), equal((0,), Fraction(100)), 1.75),
    "small": ((0, 1), (2, 3), equal((0, 1), Fraction(40)), 1.8),
    "three attributes": ((0, 1, 2), (2, 3, 4), equal((0, 1, 2), Fraction(7, 3)), 1.65),
    "medium": ((0, 1, 2), (5, 6, 7), equal((0, 1, 2), Fraction(1, 9)), 1.25),
    "uneven": (
        (0, 2),
        (4, 9, 12),
        {(): [Fraction(1)], (0,): [LITTLE], (2,): [Fraction(50)], (0, 2): [Fraction(2)]},
        1.75,
    ),
    "measured thrice": (
        (0, 1),
        (6, 6),
        equal((0, 1), LITTLE) | {(0, 1): [Fraction(3), Fraction(1), Fraction(1, 7)]},
        1.6,
    ),
    # γ² = 0.5, 1.1, 0.3 and 0.4: most of what is drawn is 0.
    "less than a record": (
        (0, 1),
        (5, 4),
        {
            (): [ONE_HALF],
            (0,): [Fraction(11, 250)],
            (1,): [Fraction(3, 160)],
            (0, 1): [Fraction(1, 1000)],
        },
        3.0,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_noise_bound_holds_as_often_as_it_says(name):
    table, sizes, variances, slack = CASES[name]
    draws = 200_000 // max(math.prod(sizes), 40)
    errors = table_noise(table, sizes, variances, draws)
    floats = {subset: [float(v) for v in of_each] for subset, of_each in variances.items()}
    for failure in (0.3, 0.05):
        bound = noise_bound(table, sizes, floats, failure)
        failures = int((errors > bound).sum())
        assert not fails_too_often(failures, draws, failure)
    too_low = int((errors > bound / slack).sum())
    assert fails_too_often(too_low, draws, failure), "the bound is wider than it need be"


def test_the_noise_bound_by_hand():
    # 2 × 2 cells, σ² = 4 throughout: λ = 4 (the pair), cell variance 4 (1/4 + 2/8 + 1/16) = 9/4.
    variances = {subset: [4.0] for subset in subsets((0, 1))}
    by_signs = math.sqrt(2 * 4 * 4 * (4 * math.log(2) + math.log(20)))
    assert math.isclose(noise_bound((0, 1), (2, 2), variances, 0.05), by_signs)
    # 50 × 50 cells, noise hardly but on the pair: λ = 4.
    variances = {(): [1.0], (0,): [0.01], (1,): [0.01], (0, 1): [4.0]}
    cell = 4 * 0.98**2 + 0.01 * 2 * 0.98 / 50**2 + 1 / 50**4
    normal = math.sqrt(2 / math.pi) * 2500 * math.sqrt(cell) + math.sqrt(
        2 * 2500 * 4 * math.log(20)
    )
    bound = noise_bound((0, 1), (50, 50), variances, 0.05)
    assert normal < bound < 1.001 * normal


@pytest.mark.parametrize("gamma_squared", [0.05, 0.3, 1.0, 4.0, 50.0])
@pytest.mark.parametrize("share", [0.05, 0.25, 0.5])
def test_discrete_plus_normal_noise_is_nearly_normal(gamma_squared, share):
    """The density is at most R times that of the normal distribution of the summed variance."""
    s_squared = gamma_squared * share
    tau_squared = gamma_squared * s_squared / (gamma_squared - s_squared)
    z = np.arange(-200, 201)
    masses = np.exp(-(z**2) / (2 * gamma_squared))
    x = np.linspace(-3, 3, 1201)
    density = stats.norm.pdf(x[:, None], z, tau_squared**0.5) @ (masses / masses.sum())
    normal = stats.norm.pdf(x, 0, (gamma_squared + tau_squared) ** 0.5)
    ratio = math.exp(error_bounds._log_density_ratio(s_squared))
    assert (density <= ratio * normal * (1 + 1e-9)).all()
    exact = 1 + 2 * np.exp(-2 * math.pi**2 * s_squared * np.arange(1, 400) ** 2).sum()
    assert exact <= ratio * (1 + 1e-12)
    assert ratio < 1.5 * exact


def test_shares_of_all_histories_add_up_to_less_than_one():
    for n_possible in (0, 1, 6, 24):
        shares = [
            math.comb(n_possible, n) * share_of_history(n, n_possible)
            for n in range(n_possible + 1)
        ]
        assert sum(shares) < 1
    assert share_of_history(0, 24) == 1 / 2
    assert share_of_history(1, 24) == 1 / 4 / 24


def test_measuring_until_it_looks_bad_does_not_break_a_bound():
    """Whoever saw the noise could stop where it is worst; its share of the failures makes up."""
    rounds, draws, failure = 8, 40_000, 0.2
    noise = discrete_gaussian(rounds * draws, Fraction(100)).reshape(draws, rounds)
    means = noise.cumsum(axis=1) / np.arange(1, rounds + 1)

    def worst(share):
        bounds = [
            noise_bound((), (), {(): [100.0] * n}, failure * share(n)) for n in range(1, rounds + 1)
        ]
        return int((np.abs(means) > bounds).any(axis=1).sum())

    assert not fails_too_often(worst(lambda n: share_of_history(n, rounds)), draws, failure)
    assert fails_too_often(worst(lambda n: 1.0), draws, failure / 2)


@pytest.mark.by_day(1)
@pytest.mark.parametrize("epsilon", [Fraction(1, 20), Fraction(1, 10)])
def test_bounds_from_a_selection_hold_together_as_often_as_they_say(epsilon):
    numbers = np.random.default_rng(18)
    weights = numbers.integers(1, 4, 40)
    allowances = numbers.integers(0, 30, 40)
    distances = numbers.integers(0, 200, 40)
    scores = weights * (distances - allowances)
    draws, failure, failures, is_not_best = 4_000, 0.2, 0, 0
    for _ in range(draws):
        (selected,) = select(scores, epsilon, int(weights.max()))
        bounds = bounds_from_selection(
            selected, distances[selected], weights, allowances, float(epsilon), failure
        )
        failures += bool((distances > bounds).any())
        is_not_best += bool((scores > scores[selected]).any())
    assert not fails_too_often(failures, draws, failure)
    assert fails_too_often(is_not_best, draws, failure)  # a bound without slack would not hold


def test_bounds_from_a_selection_by_hand():
    # Weights 1, 2, 4: Δ = 4. The third has the score 4 (10 - 3) = 28; ε = 8/10.
    # Slack (2 · 4/0.8)(ln 3 + ln 10) = 10 ln 30 = 34.01, so no score is above 62.01.
    bounds = bounds_from_selection(
        2, 10, np.array([1, 2, 4]), np.array([5, 1, 3]), epsilon=0.8, failure=0.1
    )
    top = 28 + 10 * math.log(30)
    np.testing.assert_allclose(bounds, [5 + top, 1 + top / 2, 3 + top / 4])


def test_bounds_that_say_nothing_are_left_out():
    bounds = informative(np.array([10.0, 219.9, 220.0, 1e9]), 100, 10)
    assert bounds[:2].tolist() == [10.0, 219.9]
    assert np.isnan(bounds[2:]).all()


def test_little_noise_never_leads_to_a_trivial_bound():
    """The bound of a table with 10,000 records shrinks with the noise, whatever the table."""
    for sizes in [(2, 2), (3, 20), (10, 10, 10)]:
        table = tuple(range(len(sizes)))
        for variance in (1.0, 1e-2, 1e-4):
            floats = {subset: [variance] for subset in subsets(table)}
            bound = noise_bound(table, sizes, floats, 0.05)
            assert bound < 2.3 * math.prod(sizes) * variance**0.5
            assert not np.isnan(informative(np.array([bound]), 10_000, 10))


def test_a_residual_that_was_not_measured_is_refused():
    with pytest.raises(ReleaseError, match=r"got none of \(1,\) for \(0, 1\); pass the variances"):
        noise_bound((0, 1), (2, 3), {(): [1.0], (0,): [1.0], (0, 1): [1.0]}, 0.05)
