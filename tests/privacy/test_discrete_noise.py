"""(ε, δ) of discrete Gaussian noise: the bound of docs/guarantees.md against exact distributions,
and δ of continuous noise against mpmath.
"""

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from rpexplore.privacy import conversions
from rpexplore.privacy.discrete_noise import (
    DiscreteNoise,
    GaussianClaim,
    gaussian_cost,
    gaussian_delta,
    proven_epsilon,
)

# --- the exact distribution of the privacy loss


def kept(probabilities: np.ndarray) -> np.ndarray:
    """Without tails of together less than 1e-18: a symmetric distribution around 0."""
    tails = np.cumsum(probabilities)
    return probabilities[(cut := int(np.searchsorted(tails, 1e-18))) : len(tails) - cut]


def sum_of(weight: int, gamma_squared: int, n: int) -> np.ndarray:
    """weight · (sum of n discrete Gaussian numbers), probabilities of integers around 0."""
    reach = int(11 * math.sqrt(gamma_squared)) + 1
    one = np.exp(-(np.arange(-reach, reach + 1.0) ** 2) / (2 * gamma_squared))
    power, total = one / one.sum(), np.ones(1)
    while n:
        if n % 2:
            total = kept(np.convolve(total, power))
        power, n = kept(np.convolve(power, power)), n // 2
    stretched = np.zeros((len(total) - 1) * weight + 1)
    stretched[::weight] = total
    return stretched


def exact_delta(groups: list[tuple[int, int, int]], epsilons: list[float]) -> list[float]:
    """δ of independent discrete Gaussian noise on shifted numbers, to about 11 digits.

    groups: (shift, γ², how many numbers). The loss Σ (Δk/γ² + Δ²/2γ²) at noise k has steps of
    1/common; sums of positive numbers keep their digits.
    """
    common = math.lcm(*(gamma_squared for _, gamma_squared, _ in groups))
    total = np.ones(1)
    for shift, gamma_squared, n in groups:
        step = shift * common // gamma_squared
        total = kept(np.convolve(total, sum_of(step, gamma_squared, n)))
    sums = np.arange(len(total)) - len(total) // 2
    loss = sums / common + sum(n * Δ**2 / (2 * g) for Δ, g, n in groups)
    return [float(total @ -np.expm1(np.minimum(eps - loss, 0))) for eps in epsilons]


def noise_of(groups: Sequence[tuple[int, float, int]]) -> DiscreteNoise:
    costs = [n * shift**2 / Fraction(str(gamma_squared)) for shift, gamma_squared, n in groups]
    gammas, numbers = [float(g) for _, g, _ in groups], [float(n) for *_, n in groups]
    return DiscreteNoise.of(
        sum(costs, Fraction()),
        np.array(gammas),
        np.array(numbers),
        np.array([float(cost) for cost in costs]),
    )


def test_the_bound_holds_for_exact_distributions_and_is_near_them():
    """240 cases of 1 to 40 numbers with γ² from 2 to 60, and ε from 0 to beyond μ²/2 + 3μ."""
    random, tightest = np.random.default_rng(5), []
    for _ in range(60):
        n_groups = int(random.integers(1, 4))
        sizes = random.multinomial(int(random.integers(n_groups, 41)) - n_groups,
                                   np.ones(n_groups) / n_groups) + 1  # fmt: skip
        scale = int(random.choice([2, 4, 10, 20, 30]))
        groups = [
            (int(random.integers(1, 4)), scale * int(random.integers(1, 3)), int(n)) for n in sizes
        ]
        noise = noise_of(groups)
        mu = math.sqrt(noise.privacy_cost)
        epsilons = [0.0, mu**2 / 2, mu**2 / 2 + mu, mu**2 / 2 + 3 * mu]
        for epsilon, exact in zip(epsilons, exact_delta(groups, epsilons), strict=True):
            bound = noise.delta(epsilon)
            assert bound >= exact * (1 - 1e-10), (groups, epsilon)
            claim = noise.claim(0.5 + 1 / mu)
            if claim is not None:
                assert float(claim.delta(epsilon)) >= exact * (1 - 1e-10), (groups, epsilon)
            if scale >= 20:
                tightest.append(bound / exact)
    # zCDP says about 2.5 times as much as is true.
    assert np.median(tightest) < 1.15


def test_the_worked_example():
    """docs/guarantees.md: shifts (2, −1, −1), γ² = 20; exact 1.169e-2, zCDP 2.95e-2."""
    groups = [(2, 20, 1), (1, 20, 2)]
    [exact] = exact_delta(groups, [1.0])
    assert exact == pytest.approx(1.169e-2, rel=1e-3)
    assert exact < noise_of(groups).delta(1) < 1.26e-2
    assert conversions.delta_from_rho(Fraction(3, 20), 1) == pytest.approx(2.95e-2, rel=0.005)


def test_epsilon_is_where_delta_is_and_small_scales_leave_it_to_zcdp():
    noise = noise_of([(1, 400, 30), (2, 900, 8)])
    for delta in ("0.05", "1e-6", "1e-9", "1e-100"):
        epsilon = noise.epsilon(delta)
        assert noise.delta(epsilon * (1 + 1e-9)) <= float(delta)
        assert noise.delta(epsilon * 0.999) > float(delta)
        assert epsilon < conversions.epsilon_from_rho(noise.privacy_cost / 2, delta)
    # δ(0) = 2Φ(μ/2) − 1 = 0.109 for μ² = 0.075, and 0.165 by ρ.
    assert noise_of([(1, 400, 30)]).epsilon("0.12") == 0
    for small in map(noise_of, [[(1, 1, 40)], [(1, 0.1, 1)], [(1, 1e-7, 1)], [(1, 1e-20, 1)]]):
        rho = small.privacy_cost / 2
        assert small.epsilon("1e-6") == conversions.epsilon_from_rho(rho, "1e-6")
        assert small.delta(30) == conversions.delta_from_rho(rho, 30)


def test_noise_at_another_scale_is_that_of_the_scaled_numbers():
    """γ² four times as large is ρ a fourth; exact at δ = 10⁻⁶."""
    noise = noise_of([(1, 30, 5), (2, 50, 3)])
    epsilon = noise.epsilon_at(noise.rho / 4, "1e-6")
    assert epsilon == pytest.approx(noise_of([(1, 120, 5), (2, 200, 3)]).epsilon("1e-6"), rel=1e-7)
    [exact] = exact_delta([(1, 120, 5), (2, 200, 3)], [epsilon])
    assert 0.8e-6 < exact <= 1e-6
    assert proven_epsilon(noise.rho / 4, "1e-6", noise) == epsilon
    assert proven_epsilon(noise.rho / 4, "1e-6", None) > 1.03 * epsilon
    assert noise.epsilon_at(0, "1e-6") == 0


def test_noise_of_parts_is_that_of_all_of_them():
    """μ² and Λ add, U multiplies: nothing of the claim depends on how the numbers are grouped."""
    parts = [noise_of([(1, 30, 5)]), noise_of([(2, 50, 3)])]
    both, whole = DiscreteNoise.joined(parts), noise_of([(1, 30, 5), (2, 50, 3)])
    assert both.privacy_cost == whole.privacy_cost
    assert both.epsilon("1e-6") == pytest.approx(whole.epsilon("1e-6"), rel=1e-12)
    [exact] = exact_delta([(1, 30, 5), (2, 50, 3)], [both.epsilon("1e-6")])
    assert exact <= 1e-6


def test_claims_of_several_releases_and_records_hold_for_exact_distributions():
    """Two releases, and one or two records of somebody; and nothing is lost by writing them down.

    A second record doubles every shift.
    """
    random = np.random.default_rng(8)
    for _ in range(10):
        releases = [
            [
                (int(random.integers(1, 3)), int(random.choice([20, 30, 60])), n)
                for n in random.integers(1, 9, 2).tolist()
            ]
            for _ in range(2)
        ]
        claims = [claim for one in releases if (claim := noise_of(one).claim_at("1e-6"))]
        assert len(claims) == 2
        noted = [GaussianClaim.from_texts(claim.to_texts()) for claim in claims]
        for claim, texts in zip(claims, noted, strict=True):
            assert 0 <= texts.mu_squared / claim.mu_squared - 1 < Fraction(1, 10**15)
            assert claim.shift <= texts.shift <= claim.shift * 1.001
            assert claim.excess <= texts.excess <= claim.excess * 1.001
        for k in (1, 2):
            claim = GaussianClaim.composed(noted).of_records(k)
            together = [(k * shift, g, n) for shift, g, n in itertools.chain(*releases)]
            mu = claim.mu
            epsilons = [0.0, mu**2 / 2, mu**2 / 2 + mu, mu**2 / 2 + 3 * mu]
            for epsilon, exact in zip(epsilons, exact_delta(together, epsilons), strict=True):
                assert float(claim.delta(epsilon)) >= exact * (1 - 1e-10), (releases, k, epsilon)
            [exact] = exact_delta(together, [claim.epsilon("1e-6", 50.0)])
            assert exact <= 1e-6


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(1, "1e-6"), ("0.1", "1e-9"), (10, "1e-6"), (30, "1e-9")]
)
def test_the_largest_factor_keeps_and_exhausts_a_budget(epsilon, delta):
    noise = noise_of([(1, 30, 5), (3, 400, 300)])
    factor = noise.factor_within(epsilon, delta)
    kept = noise.times(factor)
    assert kept.epsilon(delta) <= float(Fraction(epsilon))
    # Nor does the ledger, which notes a rounded claim, say more of the run.
    claim = kept.claim_at(delta)
    assert claim is not None
    of_zcdp = conversions.epsilon_from_rho(factor * noise.privacy_cost / 2, delta)
    noted = GaussianClaim.from_texts(claim.to_texts())
    assert min(of_zcdp, noted.epsilon(delta, of_zcdp)) <= float(Fraction(epsilon))
    by_zcdp = 2 * conversions.rho_from_epsilon_delta(epsilon, delta) / noise.privacy_cost
    assert factor >= by_zcdp
    if factor > by_zcdp:
        assert noise.times(factor * Fraction(10**6 + 1, 10**6)).epsilon(delta) > Fraction(epsilon)


# --- continuous noise


@pytest.fixture
def many_digits():
    with mpmath.workdps(200):
        yield


def test_delta_of_continuous_noise_is_right_and_rounded_up(many_digits):
    random = np.random.default_rng(6)
    for _ in range(60):
        mu = 10 ** random.uniform(-12, 1.5)
        place = random.uniform(-2, 20)  # ε = μ²/2 + place μ
        epsilon = Fraction(mu * mu / 2 + place * mu)
        m, e = mpmath.sqrt(mpmath.mpf(mu) ** 2), mpmath.mpf(epsilon.numerator) / epsilon.denominator
        tails = [mpmath.erfc((e / m + side * m / 2) / mpmath.sqrt(2)) / 2 for side in (-1, 1)]
        exact = tails[0] - mpmath.exp(e) * tails[1]
        bound = gaussian_delta(epsilon, Fraction(mu) ** 2)
        excess = mpmath.mpf(str(bound)) / exact - 1
        assert 0 <= excess < mpmath.mpf("1e-25"), (mu, place, excess)


@pytest.mark.parametrize("delta", ["1e-300", "1e-9", "1e-6", "0.5", "0.999"])
@pytest.mark.parametrize("epsilon", ["1e-30", "0.001", "1", "20", "1e4"])
def test_the_largest_cost_of_continuous_noise_keeps_and_exhausts_it(epsilon, delta):
    e, d = Fraction(epsilon), Fraction(delta)
    cost = gaussian_cost(e, d)
    assert gaussian_delta(e, cost) <= d
    assert gaussian_delta(e, cost * (1 + Fraction(1, 10**8))) > d
    assert cost >= 2 * conversions.rho_from_epsilon_delta(e, d)


# --- another accountant


def test_the_bound_is_above_what_dp_accounting_computes_and_near_it():
    """Privacy loss distributions of Google's library, rounded down and up (docs/guarantees.md)."""
    distributions = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    for groups in ([(1, 400, 30)], [(2, 400, 8), (1, 900, 20)], [(1, 50, 5)]):
        totals = []
        for rounded_up in (False, True):
            total = None
            for shift, gamma_squared, n in groups:
                one = distributions.from_discrete_gaussian_mechanism(
                    math.sqrt(gamma_squared),
                    sensitivity=shift,
                    value_discretization_interval=1e-5,
                    pessimistic_estimate=rounded_up,
                ).self_compose(n)
                total = one if total is None else total.compose(one)
            totals.append(total)
        noise = noise_of(groups)
        for delta in (1e-4, 1e-6):
            least, most = (total.get_epsilon_for_delta(delta) for total in totals)
            assert least <= noise.epsilon(delta) <= 1.01 * most
