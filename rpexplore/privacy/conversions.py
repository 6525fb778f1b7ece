"""Conversions between privacy cost, rho, mu and (epsilon, delta).

A release of total privacy cost c satisfies rho-zCDP with rho = c / 2, exactly. The claim
(epsilon, delta) follows by the optimal conversion (docs/mathematics.md §2.2; Canonne, Kamath,
Steinke: The Discrete Gaussian for Differential Privacy, NeurIPS 2020, Prop. 7), with a > 0:

    epsilon = min over a of  rho (1 + a) - (log(delta) + log(1 + a)) / a + log(a / (1 + a))

Every a gives a valid bound. The best a is searched in floats, and the bound at that a evaluated in
decimal arithmetic, with an allowance for its rounding errors, and rounded against us. A budget may
be stated as mu, the square root of c; nothing is claimed by it.

Every function raises BudgetError when a parameter is out of range.
"""

import math
from collections.abc import Callable
from decimal import ROUND_FLOOR, Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

import numpy as np

from rpexplore.common.numbers import Exact, exact_fraction, float_at_least, shown
from rpexplore.common.text import rounded, small
from rpexplore.errors import BudgetError

# For which ε is stated beside ρ, unless another δ is chosen.
USUAL_DELTAS = ("1e-6", "1e-9", "1e-12")

MOST_RHO = Fraction("5e99")  # a ρ is below that

_RANGES = {  # parameter: (least, below, what it must be)
    name: (Fraction(least), Fraction(below), must_be)
    for name, least, below, must_be in (
        ("privacy cost", "0", "1e100", "0 or more and below 1e100, for example 1"),
        ("rho", "0", "5e99", "0 or more and below 5e99, for example 0.5"),
        ("mu", "1e-300", "1e50", "above 0 (from 1e-300, and below 1e50), for example 1"),
        ("epsilon", "0", "1e100", "0 or more and below 1e100, for example 1"),
        (
            *("epsilon of a budget", "1e-100", "1e100"),
            "above 0 (from 1e-100, below 1e100), for example 1",
        ),
        ("delta", "1e-300", "1", "above 0 (from 1e-300) and below 1, for example 1e-9"),
    )
}


def rho_from_privacy_cost(cost: Exact) -> Fraction:
    """rho = cost / 2, exactly."""
    return _parameter("privacy cost", cost) / 2


def privacy_cost_from_rho(rho: Exact) -> Fraction:
    """Privacy cost = 2 rho, exactly."""
    return _parameter("rho", rho) * 2


def privacy_cost_from_mu(mu: Exact) -> Fraction:
    """Privacy cost = mu squared, exactly."""
    return _parameter("mu", mu) ** 2


def mu_from_privacy_cost(cost: Exact) -> float:
    """mu = sqrt(cost), rounded up: the least float that, read as a decimal, is at least that."""
    exact = _parameter("privacy cost", cost)
    with localcontext(Context(prec=30)):
        mu = math.nextafter(float(decimal_of(exact).sqrt()), 0)
    while exact_fraction(mu, "mu") ** 2 < exact:
        mu = math.nextafter(mu, math.inf)
    return mu


# --- the claim: rho and (epsilon, delta)


def epsilon_from_rho(rho: Exact, delta: Exact) -> float:
    """The least epsilon for which rho-zCDP implies (epsilon, delta)-DP, rounded up."""
    return _epsilon_from_rho(_parameter("rho", rho), _parameter("delta", delta))


@lru_cache(maxsize=1024)  # a page states it several times, as do others with the same budget
def _epsilon_from_rho(exact_rho: Fraction, exact_delta: Fraction) -> float:
    if exact_rho == 0:
        return 0.0
    # The derivative by a vanishes where rho a^2 + log(1 + a) = -log(delta), once.
    log_rho, log_inverse_delta = log_of(exact_rho), -log_of(exact_delta)
    log_a = _crossing(
        lambda t: math.exp(log_rho + 2 * t) + math.log1p(math.exp(t)) - log_inverse_delta,
        min((math.log(log_inverse_delta / 2) - log_rho) / 2, _log_expm1(log_inverse_delta / 2)),
        min((math.log(log_inverse_delta) - log_rho) / 2, _log_expm1(log_inverse_delta)),
    )
    context, allowance = _arithmetic(log_a)
    with localcontext(context):
        a = Decimal(math.exp(log_a))
        log_one_plus_a, spent = (1 + a).ln(), decimal_of(exact_rho) * (1 + a)
        terms = [
            spent,
            -decimal_of(exact_delta).ln() / a,
            -log_one_plus_a / a,
            a.ln(),
            -log_one_plus_a,
        ]
        epsilon = sum(terms) + _slack(terms, allowance)
    return float_at_least(max(epsilon, Decimal(0)))


def delta_from_rho(rho: Exact, epsilon: Exact) -> float:
    """The least delta for which rho-zCDP implies (epsilon, delta)-DP, rounded up.

    From the smallest positive float to 1: never 0, not even for rho = 0.
    """
    return _delta_from_rho(_parameter("rho", rho), _parameter("epsilon", epsilon))


@lru_cache(maxsize=1024)
def _delta_from_rho(exact_rho: Fraction, exact_epsilon: Fraction) -> float:
    log_delta = _log_delta(exact_rho, exact_epsilon)
    if log_delta < -800:  # smaller than all floats
        return math.ulp(0.0)
    with localcontext(Context(prec=50)):
        delta = log_delta.exp() * (1 + Decimal("1e-40"))
    return min(float_at_least(delta), 1.0)


def _log_delta(rho: Fraction, epsilon: Fraction) -> Decimal:
    """min over a of rho a (1 + a) - epsilon a + a log(a) - (1 + a) log(1 + a), at least."""
    if rho == 0:
        return Decimal("-Infinity")
    # The derivative by a vanishes where rho (1 + 2a) = epsilon + log(1 + 1/a), once, and is
    # positive from a = max(epsilon / rho, 1 / sqrt(rho)) on. The constants keep exp(t) a float;
    # outside them delta is within 1e-50 of 1, or far below all floats.
    log_rho, target = log_of(rho), float(epsilon)
    high = max(log_of(epsilon) - log_rho if epsilon else -math.inf, -log_rho / 2)

    def slope(t: float) -> float:
        wanted = target + math.log1p(math.exp(-t))
        return log_rho + math.log1p(2 * math.exp(t)) - math.log(wanted)

    log_a = _crossing(slope, -120.0, min(max(high, -120.0), 690.0))
    context, allowance = _arithmetic(log_a)
    with localcontext(context):
        a = Decimal(math.exp(log_a))
        spent, given = decimal_of(rho) * a * (1 + a), decimal_of(epsilon) * a
        terms = [spent, -given, a * a.ln(), -(1 + a) * (1 + a).ln()]
        return min(sum(terms) + _slack(terms, allowance), Decimal(0))


def rho_from_epsilon_delta(epsilon: Exact, delta: Exact) -> Fraction:
    """The greatest rho for which rho-zCDP implies (epsilon, delta)-DP, rounded down.

    A decimal of at most 15 significant digits with epsilon_from_rho(rho, delta) <= epsilon.
    """
    exact_epsilon = _parameter("epsilon of a budget", epsilon)
    return _rho_from_epsilon_delta(exact_epsilon, _parameter("delta", delta))


@lru_cache(maxsize=1024)
def _rho_from_epsilon_delta(exact_epsilon: Fraction, exact_delta: Fraction) -> Fraction:
    target, log_inverse_delta = float(exact_epsilon), -log_of(exact_delta)

    # Solved for rho, the bound is greatest where
    # (1 + 2a) (-log(delta) - log(1 + a)) / a^2 = epsilon + log(1 + 1/a), once.
    def slope(t: float) -> float:
        rest = log_inverse_delta - math.log1p(math.exp(t))
        if rest <= 0:
            return math.inf
        wanted = target + math.log1p(math.exp(-t))
        return math.log(wanted) + 2 * t - math.log(rest) - math.log1p(2 * math.exp(t))

    log_a = _crossing(
        slope,
        math.log(min(math.sqrt(log_inverse_delta / target) / 2, log_inverse_delta / 4)),
        min(_log_expm1(log_inverse_delta), math.log(max(1.0, 3 * log_inverse_delta / target))),
    )
    context, allowance = _arithmetic(log_a)
    with localcontext(context) as arithmetic:
        a = Decimal(math.exp(log_a))
        given, log_one_plus_a = decimal_of(exact_epsilon), (1 + a).ln()
        terms = [
            given,
            decimal_of(exact_delta).ln() / a,
            log_one_plus_a / a,
            -a.ln(),
            log_one_plus_a,
        ]
        rho = (sum(terms) - _slack(terms, allowance)) / (1 + a)
        # Less by some units of a float's last place: the way back must not end above epsilon.
        rho *= 1 - Decimal("1e-15")
        arithmetic.prec, arithmetic.rounding = 15, ROUND_FLOOR
        return Fraction(+rho)


def rho_text(rho: float | Fraction, digits: int = 6, mode: str = "up") -> str:
    """ρ as text, "ρ = 0.1": what is spent rounded up, what may be spent "down"."""
    return f"ρ = {rounded(rho, digits, mode)}"


def epsilon_text(rho: Exact, delta: Exact, mode: str = "up") -> str:
    """ε at this δ as text, "ε = 4.31 at δ = 1e-6".

    Args:
        mode: "up" for what is spent; "down" for what may be spent: a budget of that ε is within it.
    """
    epsilon = epsilon_from_rho(rho, delta)
    text = rounded(epsilon, 3, "up")
    rho_of_text = rho_from_epsilon_delta(text.replace(",", ""), delta) if epsilon > 0 else 0
    if mode == "down" and rho_of_text > exact_fraction(rho, "rho"):
        text = rounded(epsilon, 3, "down")
    return f"ε = {text} at δ = {small(exact_fraction(delta, 'delta'))}"


def epsilon_at_delta(epsilon: float, delta: Exact) -> str:
    """An ε that is spent, as text, rounded up: "ε = 4.31 at δ = 1e-6"."""
    return f"ε = {rounded(epsilon, 3, 'up')} at δ = {small(exact_fraction(delta, 'delta'))}"


def epsilon_texts(epsilon: Callable[[Exact], float], stated_delta: Fraction | None) -> list[str]:
    """The (ε, δ) of a release as text, ε rounded up: the stated δ first, if there is one.

    epsilon: the ε that is proven for a δ
    """
    deltas = [*([] if stated_delta is None else [stated_delta]), *map(Fraction, USUAL_DELTAS)]
    return [
        f"ε = {rounded(epsilon(delta), 5, 'up')} at δ = {small(delta)}"
        for delta in dict.fromkeys(deltas)
    ]


# --- what follows for membership inference

_EPSILONS = np.geomspace(1e-4, 100.0, 150).tolist()


@lru_cache(maxsize=256)  # every report of a plan states it, and it takes 150 conversions
def max_true_positive_rate(rho: Exact, false_positive_rate: float) -> float:
    """The largest share of those in the data whom any test of a release could recognise.

    false_positive_rate: the share of those not in the data whom the test takes to be in it. Each
    (epsilon, delta) gives two bounds (Kairouz, Oh, Viswanath, ICML 2015, Thm. 2.1).
    """
    rate = 1.0
    for epsilon in _EPSILONS:
        delta, factor = delta_from_rho(rho, epsilon), math.exp(epsilon)
        swapped = 1 - (1 - delta - false_positive_rate) / factor
        rate = min(rate, factor * false_positive_rate + delta, swapped)
    return float(rate)


def max_correct_guesses(rho: Exact) -> float:
    """The largest share of right guesses of whether somebody is in the data, where half are.

    Rounded up. Half, and half of the total variation between the two answers, which is at most the
    delta of epsilon 0.
    """
    return (1 + delta_from_rho(rho, 0)) / 2


# --- numbers


def _parameter(name: str, value: Exact) -> Fraction:
    """`value` as an exact number, within the range of the parameter `name`."""
    number = exact_fraction(value, name)
    least, below, must_be = _RANGES[name]
    if not least <= number < below:
        raise BudgetError(f"{name} must be {must_be}, got {shown(value)}.")
    return number


def log_of(value: Fraction) -> float:
    """Natural logarithm, precise next to 1 and for numbers beyond the range of floats."""
    if abs(value - 1) < Fraction(1, 2):
        return math.log1p(float(value - 1))
    return math.log(value.numerator) - math.log(value.denominator)


def _log_expm1(x: float) -> float:
    return x + math.log(-math.expm1(-x))


def _crossing(rising: Callable[[float], float], low: float, high: float) -> float:
    """The zero of a rising function, by bisection; an end of the interval if there is none."""
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if rising(middle) < 0 else (low, middle)
    return low


def _arithmetic(log_a: float) -> tuple[Context, Decimal]:
    """Decimal arithmetic for a bound at this a, and the allowance for its rounding errors.

    Each term is off by some units of its last digit; the rounding of 1 + a and delta adds some
    units of the last digit of 1, times a or 1/a. The allowance is a million times that.
    """
    size = math.ceil(abs(log_a) / math.log(10))
    return Context(prec=50 + 2 * size), Decimal(1).scaleb(-40 - size)


def _slack(terms: list[Decimal], allowance: Decimal) -> Decimal:
    return allowance * (1 + sum(abs(term) for term in terms))


def decimal_of(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)
