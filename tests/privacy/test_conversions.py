"""Conversions of privacy parameters, against published figures and three independent oracles:
mpmath at 60 digits, OpenDP, and direct summation of the discrete Gaussian.
"""

import math
from collections.abc import Callable
from decimal import ROUND_DOWN, Context, Decimal, localcontext
from fractions import Fraction

import mpmath
import numpy as np
import opendp.prelude as dp
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from rpexplore.common.numbers import exact_fraction
from rpexplore.errors import BudgetError
from rpexplore.privacy import conversions as privacy
from rpexplore.privacy.conversions import (
    delta_from_rho,
    epsilon_from_rho,
    max_correct_guesses,
    max_true_positive_rate,
    mu_from_privacy_cost,
    privacy_cost_from_mu,
    privacy_cost_from_rho,
    rho_from_epsilon_delta,
    rho_from_privacy_cost,
)

DELTAS = [1e-300, 1e-100, 1e-30, 1e-9, 1e-6, 0.01, 0.5, 0.9, 0.999999, "0.999999999999"]


def powers_of_ten(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(low, high).map(lambda exponent: 10.0**exponent)


# --- oracles


def exact_mpf(value: privacy.Exact) -> mpmath.mpf:
    fraction = exact_fraction(value, "value")
    return mpmath.mpf(fraction.numerator) / fraction.denominator


def minimum(function: Callable, low: float, high: float) -> mpmath.mpf:
    """Of a function that falls, then rises: golden section, to 50 digits (error is quadratic)."""
    ratio = (mpmath.sqrt(5) - 1) / 2
    low, high = mpmath.mpf(low), mpmath.mpf(high)
    left, right = high - ratio * (high - low), low + ratio * (high - low)
    at_left, at_right = function(left), function(right)
    for _ in range(130):
        if at_left < at_right:
            high, right, at_right = right, left, at_left
            left = high - ratio * (high - low)
            at_left = function(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + ratio * (high - low)
            at_right = function(right)
    return min(at_left, at_right)


def optimal_epsilon(rho: privacy.Exact, delta: privacy.Exact) -> mpmath.mpf:
    """CKS Prop. 7 as printed, minimised over log(alpha - 1)."""
    r, d = exact_mpf(rho), exact_mpf(delta)

    def bound(t: mpmath.mpf) -> mpmath.mpf:
        alpha = 1 + mpmath.exp(t)
        return r * alpha + mpmath.log(1 / (alpha * d)) / (alpha - 1) + mpmath.log(1 - 1 / alpha)

    return minimum(bound, -40, 60)


def optimal_log_delta(rho: privacy.Exact, epsilon: privacy.Exact) -> mpmath.mpf:
    """CKS Corollary 13: exp((alpha-1)(alpha rho - epsilon)) / (alpha-1) (1 - 1/alpha)^alpha."""
    r, e = exact_mpf(rho), exact_mpf(epsilon)

    def log_bound(t: mpmath.mpf) -> mpmath.mpf:
        alpha = 1 + mpmath.exp(t)
        return (alpha - 1) * (alpha * r - e) - t + alpha * mpmath.log(1 - 1 / alpha)

    return minimum(log_bound, -40, 60)


def continuous_delta(mu: mpmath.mpf | float, epsilon: mpmath.mpf | float) -> mpmath.mpf:
    """The delta of continuous Gaussian noise, which discrete noise does not keep (Balle and Wang,
    ICML 2018, Theorem 8, as printed).
    """
    m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)

    def tail(x: mpmath.mpf) -> mpmath.mpf:
        return mpmath.erfc(x / mpmath.sqrt(2)) / 2

    return tail(e / m - m / 2) - mpmath.exp(e) * tail(e / m + m / 2)


def discrete_gaussian_delta(sigma: float, epsilon: float) -> float:
    """Hockey-stick divergence of the discrete Gaussian and its shift by 1, summed directly."""
    x = np.arange(-40 * sigma, 40 * sigma + 2)
    weight = np.exp(-(x**2) / (2 * sigma**2))
    shifted = np.exp(-((x - 1) ** 2) / (2 * sigma**2))
    return float(np.maximum(shifted - math.exp(epsilon) * weight, 0).sum() / weight.sum())


@pytest.fixture(autouse=True)
def sixty_digits():
    with mpmath.workdps(60):
        yield


# --- what is refused


@pytest.mark.parametrize(
    ("name", "value", "call"),
    [
        ("privacy cost", -1, rho_from_privacy_cost),
        ("privacy cost", "1e100", rho_from_privacy_cost),
        ("privacy cost", Fraction(-1, 3), mu_from_privacy_cost),
        ("rho", -0.5, privacy_cost_from_rho),
        ("mu", 0, privacy_cost_from_mu),
        ("mu", -1, privacy_cost_from_mu),
        ("rho", -0.5, lambda rho: epsilon_from_rho(rho, 1e-6)),
        ("delta", 0, lambda delta: epsilon_from_rho(1, delta)),
        ("delta", 1, lambda delta: epsilon_from_rho(1, delta)),
        ("delta", 1.5, lambda delta: epsilon_from_rho(1, delta)),
        ("delta", -1e-09, lambda delta: epsilon_from_rho(0, delta)),
        ("delta", "1e-301", lambda delta: epsilon_from_rho(1, delta)),
        ("rho", -1, lambda rho: delta_from_rho(rho, 1)),
        ("epsilon", -1, lambda epsilon: delta_from_rho(1, epsilon)),
        ("epsilon of a budget", 0, lambda epsilon: rho_from_epsilon_delta(epsilon, 1e-6)),
        ("epsilon of a budget", -1, lambda epsilon: rho_from_epsilon_delta(epsilon, 1e-6)),
        ("delta", 0.0, lambda delta: rho_from_epsilon_delta(1, delta)),
        ("delta", "1", lambda delta: rho_from_epsilon_delta(1, delta)),
    ],
)
def test_a_parameter_out_of_range_is_named_with_its_value_and_the_remedy(name, value, call):
    with pytest.raises(BudgetError) as caught:
        call(value)
    message = str(caught.value)
    assert message.startswith(f"{name} must be ")
    assert ", for example " in message
    assert message.endswith(f", got {value}.")


def test_an_integer_too_long_to_print_is_refused_in_words():
    with pytest.raises(BudgetError, match=r"got a number of thousands of digits\.$"):
        delta_from_rho(1, 10**5000)


# --- exact conversions


def test_privacy_cost_rho_and_mu_are_exact():
    assert rho_from_privacy_cost(Fraction(1, 3)) == Fraction(1, 6)
    assert privacy_cost_from_rho(Fraction(1, 6)) == Fraction(1, 3)
    assert privacy_cost_from_mu(0.1) == Fraction(1, 100)
    assert privacy_cost_from_mu("1/3") == Fraction(1, 9)


@given(powers_of_ten(-100, 40))
def test_mu_survives_the_way_through_privacy_cost(mu):
    assert mu_from_privacy_cost(privacy_cost_from_mu(mu)) == mu


@pytest.mark.parametrize("cost", [Fraction(2), Fraction(1, 3), Fraction(1, 10**500), Fraction(0)])
def test_mu_is_the_next_float_above_the_square_root(cost):
    mu = mu_from_privacy_cost(cost)
    assert exact_fraction(mu, "mu") ** 2 >= cost
    assert mu == 0 or exact_fraction(math.nextafter(mu, 0), "mu") ** 2 < cost


# --- rho and (epsilon, delta)


def test_figures_of_the_design():
    """docs/mathematics.md §2.2: rho = 0.5 at delta = 1e-6."""
    assert epsilon_from_rho(Fraction(1, 2), 1e-6) == pytest.approx(5.2215, abs=5e-5)


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("rho", [1e-14, 1e-6, 0.01, 0.5, 10, 1e4])
def test_epsilon_is_the_optimum_rounded_up(rho, delta):
    optimum = optimal_epsilon(rho, delta)
    epsilon = epsilon_from_rho(rho, delta)
    if optimum <= 0:
        assert epsilon == 0
    else:
        assert optimum <= epsilon <= optimum * (1 + mpmath.mpf("1e-15"))
        assert optimum <= mpmath.mpf(repr(epsilon))  # what is printed is a bound, too


@pytest.mark.parametrize("epsilon", [0, 1e-6, 0.001, 0.1, 1, 10, 500])
@pytest.mark.parametrize("rho", [1e-14, 1e-6, 0.01, 0.5, 10])
def test_delta_is_the_optimum_rounded_up(rho, epsilon):
    optimum = optimal_log_delta(rho, epsilon)
    delta = delta_from_rho(rho, epsilon)
    if optimum < -745:  # below the smallest float
        assert delta == math.ulp(0.0)
    else:
        assert mpmath.exp(optimum) <= delta <= mpmath.exp(optimum) * (1 + mpmath.mpf("1e-15"))
        assert mpmath.exp(optimum) <= mpmath.mpf(repr(delta))


def test_the_ends_of_epsilon_and_delta():
    assert epsilon_from_rho(0, 1e-6) == 0
    assert epsilon_from_rho(1e-9, 0.5) == 0  # the bound at its best alpha is negative
    assert delta_from_rho(0, 1) == math.ulp(0.0)
    assert delta_from_rho(1e6, 1) == 1
    assert delta_from_rho("1e99", "1e99") <= 1
    assert delta_from_rho(Fraction(1, 10**500), 500) == math.ulp(0.0)
    assert epsilon_from_rho(Fraction(1, 10**500), 1e-9) >= 0


@pytest.mark.parametrize("sigma", [0.1, 1.0, 10.0, 1000.0])
def test_epsilon_and_delta_agree_with_opendp(sigma):
    dp.enable_features("contrib")
    integers = dp.atom_domain(T=int), dp.absolute_distance(T=int)
    measurement = dp.m.make_gaussian(*integers, scale=sigma)
    rho = measurement.map(1)
    profile = dp.c.make_zCDP_to_approxDP(measurement).map(1)
    for delta in [1e-300, 1e-100, 1e-9, 1e-6, 0.1, 0.5]:
        assert epsilon_from_rho(rho, delta) == pytest.approx(profile.epsilon(delta), rel=1e-12)
    for epsilon in [0.01, 0.1, 1.0, 5.0, 50.0]:
        assert delta_from_rho(rho, epsilon) == pytest.approx(profile.delta(epsilon), rel=1e-12)


@given(powers_of_ten(-10, 4), st.sampled_from(DELTAS))
def test_rho_of_a_budget_keeps_and_exhausts_it(epsilon, delta):
    rho = rho_from_epsilon_delta(epsilon, delta)
    assert len(Decimal(str(float(rho))).as_tuple().digits) <= 15
    assert Fraction(str(float(rho))) == rho
    assert epsilon_from_rho(rho, delta) <= epsilon
    assert delta_from_rho(rho, epsilon) <= float(delta) * (1 + 4e-16)
    more = rho * (1 + Fraction(1, 10**13))
    assert epsilon_from_rho(more, delta) > epsilon


def test_what_rounding_may_lose_is_counted_against_us(monkeypatch):
    """Were it 0.01: it is added to what is claimed, and taken from what may be spent."""
    exact = epsilon_from_rho(1, 1e-6), delta_from_rho(1, 4), rho_from_epsilon_delta(4, 1e-6)
    monkeypatch.setattr(privacy, "_slack", lambda terms, allowance: Decimal("0.01"))
    # Without what it has kept, and keeping nothing for others.
    for name in ("_epsilon_from_rho", "_delta_from_rho", "_rho_from_epsilon_delta"):
        monkeypatch.setattr(privacy, name, getattr(privacy, name).__wrapped__)
    lost = epsilon_from_rho(1, 1e-6), delta_from_rho(1, 4), rho_from_epsilon_delta(4, 1e-6)
    assert lost[0] == pytest.approx(exact[0] + 0.01, rel=1e-12)
    assert lost[1] == pytest.approx(exact[1] * math.exp(0.01), rel=1e-12)
    assert float(exact[2]) * 0.99 < float(lost[2]) < float(exact[2])


@given(powers_of_ten(-10, 4), st.floats(-300, -0.001).map(lambda exponent: 10.0**exponent))
def test_delta_is_exhausted_too(epsilon, delta):
    rho = rho_from_epsilon_delta(epsilon, delta)
    assert delta_from_rho(rho, epsilon) <= delta * (1 + 4e-16)
    assert delta_from_rho(rho * (1 + Fraction(1, 10**9)), epsilon) > delta


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("epsilon", ["1e-99", 1e-6, "1/3", 500, "1e99"])
def test_rho_of_extreme_budgets(epsilon, delta):
    rho = rho_from_epsilon_delta(epsilon, delta)
    exact = exact_fraction(epsilon, "epsilon")
    assert Fraction(epsilon_from_rho(rho, delta)) <= exact
    assert Fraction(epsilon_from_rho(rho * (1 + Fraction(1, 10**13)), delta)) > exact


@given(powers_of_ten(-12, 6), st.sampled_from(DELTAS))
def test_rho_survives_the_way_through_epsilon(rho, delta):
    epsilon = epsilon_from_rho(rho, delta)
    if epsilon > 1e-90:
        assert float(rho_from_epsilon_delta(epsilon, delta)) == pytest.approx(rho, rel=1e-13)


@given(powers_of_ten(-6, 4), powers_of_ten(-6, 4), powers_of_ten(-300, -0.001))
def test_more_rho_or_less_delta_is_more_epsilon(rho, other, delta):
    assert epsilon_from_rho(max(rho, other), delta) >= epsilon_from_rho(min(rho, other), delta)
    assert epsilon_from_rho(rho, delta) >= epsilon_from_rho(rho, (1 + 9 * delta) / 10)


def test_the_caller_s_decimal_context_changes_nothing():
    def figures() -> tuple:
        return (
            exact_fraction("0.123456789", "rho"),
            mu_from_privacy_cost(2),
            epsilon_from_rho("1/3", 1e-9),
            delta_from_rho("1/3", 1),
            rho_from_epsilon_delta(1, 1e-9),
        )

    expected = figures()
    with localcontext(Context(prec=3, rounding=ROUND_DOWN, traps=[])):
        assert figures() == expected


def test_an_accounted_rho_of_thousands_of_digits_is_fine():
    rho = Fraction(10**5000 + 1, 2 * 10**5000)
    assert epsilon_from_rho(rho, 1e-6) == pytest.approx(epsilon_from_rho(0.5, 1e-6), rel=1e-15)


# --- why the claim is zCDP


@pytest.mark.parametrize(
    ("sigma", "epsilon", "known"),
    # The same sums at 50 digits, by mpmath; the first also as P(X >= 1) - e P(X >= 2) by hand.
    [(1, 1.0, 0.141351339405622), (10, 0.3, 4.45647579095095e-5)],
)
def test_discrete_noise_is_between_the_continuous_curve_and_the_claim(sigma, epsilon, known):
    discrete = discrete_gaussian_delta(sigma, epsilon)
    assert discrete == pytest.approx(known, rel=1e-12)
    assert continuous_delta(1 / mpmath.mpf(sigma), epsilon) * 1.004 < discrete
    assert discrete < delta_from_rho(Fraction(1, 2 * sigma**2), epsilon)


@given(powers_of_ten(-3, 1.5), powers_of_ten(-300, -0.1))
def test_the_claim_is_never_below_the_continuous_curve(mu, delta):
    rho = rho_from_privacy_cost(privacy_cost_from_mu(mu))
    claim = epsilon_from_rho(rho, delta)
    assert continuous_delta(mu, claim) <= delta


# --- membership inference


@pytest.mark.parametrize("rho", ["0.0001", "0.01", "0.1", "0.5", "2"])
@pytest.mark.parametrize("false_positive_rate", [0.001, 0.05, 0.3])
def test_no_test_of_continuous_noise_does_better(rho, false_positive_rate):
    """Continuous Gaussian noise is ρ-zCDP: the best test against it keeps within the bound."""
    mu = mu_from_privacy_cost(privacy_cost_from_rho(rho))
    best_test = norm.cdf(norm.ppf(false_positive_rate) + mu)
    bound = max_true_positive_rate(rho, false_positive_rate)
    assert best_test <= bound <= 1
    # The conversion from ρ is not tight, but far from empty while there is privacy left.
    assert bound <= max(2.5 * best_test, 1.5 * false_positive_rate)


@pytest.mark.by_day(1)
@pytest.mark.parametrize("rho", ["1e-6", "0.1", "2"])
def test_nobody_guesses_better_than_the_bound(rho):
    """The best guess against continuous Gaussian noise, and that of the best of many tests."""
    mu = mu_from_privacy_cost(privacy_cost_from_rho(rho))
    bound = max_correct_guesses(rho)
    assert norm.cdf(mu / 2) <= bound <= 1
    rates = np.linspace(0, 1, 13)[1:-1].tolist()
    assert max((1 + max_true_positive_rate(rho, rate) - rate) / 2 for rate in rates) <= bound
    assert bound <= 0.5 + 2 * (norm.cdf(mu / 2) - 0.5)


def test_without_privacy_loss_guessing_is_all():
    assert max_true_positive_rate("1e-12", 0.05) == pytest.approx(0.05, rel=1e-3)


def test_more_budget_can_only_give_away_more():
    bounds = [
        max_true_positive_rate(rho, 0.05) for rho in ("0.001", "0.01", "0.1", "1", "10", "100")
    ]
    assert bounds == sorted(bounds)
    assert bounds[-1] == pytest.approx(1)
