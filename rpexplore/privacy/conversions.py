"""Conversions between privacy cost, rho, mu and (epsilon, delta).

A release of total privacy cost c satisfies rho-zCDP with rho = c / 2, whether its Gaussian noise
is discrete or continuous; both numbers are exact rationals. The claim (epsilon, delta) follows by
the optimal conversion (Canonne, Kamath, Steinke: The Discrete Gaussian for Differential Privacy,
NeurIPS 2020, Prop. 7), written here with a = alpha - 1 > 0:

    epsilon = min over a of  rho (1 + a) - (log(delta) + log(1 + a)) / a + log(a / (1 + a))

Every a gives a valid bound. So the best a is looked for in floats, and the bound at that a is
evaluated in decimal arithmetic, with an allowance for its rounding errors, and rounded against us:
an inexact search costs tightness, never validity.

Continuous Gaussian noise also has mu = sqrt(c) and a smaller delta (the functions `continuous_*`).
Discrete noise does not satisfy that curve: show it as what it is, never as the claim.

Every function raises BudgetError when a parameter is out of range.
"""

import math
from collections.abc import Callable
from decimal import ROUND_FLOOR, Context, Decimal, localcontext
from fractions import Fraction

import numpy as np
from scipy.special import erfcx, exprel

from rpexplore.common.exact_numbers import Exact, exact_fraction, float_at_least, shown
from rpexplore.common.formatting import rounded, small
from rpexplore.errors import BudgetError

_USUAL_DELTAS = (Fraction(1, 10**6), Fraction(1, 10**9), Fraction(1, 10**12))

_RANGES = {  # parameter: (least, below, what it must be)
    name: (Fraction(least), Fraction(below), must_be)
    for name, least, below, must_be in [
        ("privacy cost", "0", "1e100", "0 or more and below 1e100, for example 1"),
        ("rho", "0", "5e99", "0 or more and below 5e99, for example 0.5"),
        ("mu", "1e-300", "1e50", "above 0 (from 1e-300, and below 1e50), for example 1"),
        ("epsilon", "0", "1e100", "0 or more and below 1e100, for example 1"),
        (
            "budget epsilon",
            "1e-100",
            "1e100",
            "above 0 (from 1e-100, below 1e100), for example 1",
        ),
        ("delta", "1e-300", "1", "above 0 (from 1e-300) and below 1, for example 1e-9"),
    ]
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
        mu = math.nextafter(float(_decimal(exact).sqrt()), 0)
    while exact_fraction(mu, "mu") ** 2 < exact:
        mu = math.nextafter(mu, math.inf)
    return mu


# --- the claim: rho and (epsilon, delta)


def epsilon_from_rho(rho: Exact, delta: Exact) -> float:
    """The least epsilon for which rho-zCDP implies (epsilon, delta)-DP, rounded up."""
    exact_rho, exact_delta = _parameter("rho", rho), _parameter("delta", delta)
    if exact_rho == 0:
        return 0.0
    # The derivative by a vanishes where rho a^2 + log(1 + a) = -log(delta), once.
    log_rho, surprise = _log(exact_rho), -_log(exact_delta)
    log_a = _crossing(
        lambda t: math.exp(log_rho + 2 * t) + math.log1p(math.exp(t)) - surprise,
        min((math.log(surprise / 2) - log_rho) / 2, _log_expm1(surprise / 2)),
        min((math.log(surprise) - log_rho) / 2, _log_expm1(surprise)),
    )
    context, allowance = _arithmetic(log_a)
    with localcontext(context):
        a = Decimal(math.exp(log_a))
        log_alpha, spent = (1 + a).ln(), _decimal(exact_rho) * (1 + a)
        terms = [spent, -_decimal(exact_delta).ln() / a, -log_alpha / a, a.ln(), -log_alpha]
        epsilon = sum(terms) + _slack(terms, allowance)
    return float_at_least(max(epsilon, Decimal(0)))


def delta_from_rho(rho: Exact, epsilon: Exact) -> float:
    """The least delta for which rho-zCDP implies (epsilon, delta)-DP, rounded up.

    From the smallest positive float to 1: never 0, not even for rho = 0.
    """
    log_delta = _log_delta(_parameter("rho", rho), _parameter("epsilon", epsilon))
    if log_delta < -800:  # smaller than all floats
        return math.ulp(0.0)
    with localcontext(Context(prec=50)):
        delta = log_delta.exp() * (1 + Decimal("1e-40"))
    return min(float_at_least(delta), 1.0)


def log_delta_from_rho(rho: Exact, epsilon: Exact) -> float:
    """Natural logarithm of the least delta, rounded up; does not underflow (-inf for rho = 0)."""
    return float_at_least(_log_delta(_parameter("rho", rho), _parameter("epsilon", epsilon)))


def _log_delta(rho: Fraction, epsilon: Fraction) -> Decimal:
    """min over a of rho a (1 + a) - epsilon a + a log(a) - (1 + a) log(1 + a), at least."""
    if rho == 0:
        return Decimal("-Infinity")
    # The derivative by a vanishes where rho (1 + 2a) = epsilon + log(1 + 1/a), once, and is
    # positive from a = max(epsilon / rho, 1 / sqrt(rho)) on. The constants keep exp(t) a float;
    # outside them delta is within 1e-50 of 1, or far below all floats.
    log_rho, target = _log(rho), float(epsilon)
    high = max(_log(epsilon) - log_rho if epsilon else -math.inf, -log_rho / 2)

    def slope(t: float) -> float:
        wanted = target + math.log1p(math.exp(-t))
        return log_rho + math.log1p(2 * math.exp(t)) - math.log(wanted)

    log_a = _crossing(slope, -120.0, min(max(high, -120.0), 690.0))
    context, allowance = _arithmetic(log_a)
    with localcontext(context):
        a = Decimal(math.exp(log_a))
        spent, given = _decimal(rho) * a * (1 + a), _decimal(epsilon) * a
        terms = [spent, -given, a * a.ln(), -(1 + a) * (1 + a).ln()]
        return min(sum(terms) + _slack(terms, allowance), Decimal(0))


def rho_from_epsilon_delta(epsilon: Exact, delta: Exact) -> Fraction:
    """The greatest rho for which rho-zCDP implies (epsilon, delta)-DP, rounded down.

    A decimal of at most 15 significant digits with epsilon_from_rho(rho, delta) <= epsilon.
    """
    exact_epsilon, exact_delta = (
        _parameter("budget epsilon", epsilon),
        _parameter("delta", delta),
    )
    target, surprise = float(exact_epsilon), -_log(exact_delta)

    # Solved for rho, the bound is greatest where
    # (1 + 2a) (-log(delta) - log(1 + a)) / a^2 = epsilon + log(1 + 1/a), once.
    def slope(t: float) -> float:
        rest = surprise - math.log1p(math.exp(t))
        if rest <= 0:
            return math.inf
        wanted = target + math.log1p(math.exp(-t))
        return math.log(wanted) + 2 * t - math.log(rest) - math.log1p(2 * math.exp(t))

    log_a = _crossing(
        slope,
        math.log(min(math.sqrt(surprise / target) / 2, surprise / 4)),
        min(_log_expm1(surprise), math.log(max(1.0, 3 * surprise / target))),
    )
    context, allowance = _arithmetic(log_a)
    with localcontext(context) as arithmetic:
        a = Decimal(math.exp(log_a))
        given, log_alpha = _decimal(exact_epsilon), (1 + a).ln()
        terms = [given, _decimal(exact_delta).ln() / a, log_alpha / a, -a.ln(), log_alpha]
        rho = (sum(terms) - _slack(terms, allowance)) / (1 + a)
        # Less by some units of a float's last place: the way back must not end above epsilon.
        rho *= 1 - Decimal("1e-15")
        arithmetic.prec, arithmetic.rounding = 15, ROUND_FLOOR
        return Fraction(+rho)


# --- continuous Gaussian noise only: for information


def continuous_delta(mu: Exact, epsilon: Exact) -> float:
    """The delta of *continuous* Gaussian noise that is mu-GDP, to nearest; 0.0 if it underflows.

    Phi(mu/2 - epsilon/mu) - exp(epsilon) Phi(-mu/2 - epsilon/mu) (Balle, Wang: Improving the
    Gaussian Mechanism for Differential Privacy, ICML 2018). Discrete noise of the same variance
    has a greater delta: the claim is `delta_from_rho`.
    """
    return math.exp(log_continuous_delta(mu, epsilon))


def log_continuous_delta(mu: Exact, epsilon: Exact) -> float:
    """Natural logarithm of `continuous_delta`; does not underflow."""
    return _log_continuous(float(_parameter("mu", mu)), float(_parameter("epsilon", epsilon)))[0]


def continuous_epsilon(mu: Exact, delta: Exact) -> float:
    """The least epsilon >= 0 at which `continuous_delta` is at most delta, to nearest."""
    m, exact_delta = float(_parameter("mu", mu)), _parameter("delta", delta)
    excess = _excess_over(exact_delta)
    if excess(m, 0.0) <= 0:
        return 0.0
    zcdp_epsilon = m * (m / 2 + math.sqrt(-2 * _log(exact_delta)))
    return _root(lambda epsilon: excess(m, epsilon), 0.0, zcdp_epsilon)


def continuous_mu(epsilon: Exact, delta: Exact) -> float:
    """The greatest mu at which `continuous_delta` is at most delta, to nearest."""
    target, exact_delta = (
        float(_parameter("budget epsilon", epsilon)),
        _parameter("delta", delta),
    )
    excess, surprise = _excess_over(exact_delta), -_log(exact_delta)
    # Two lower bounds: by zCDP, epsilon = rho + 2 sqrt(rho log(1/delta)), and, from epsilon = 0,
    # delta = mu / sqrt(2 pi).
    zcdp_mu = math.sqrt(2) * target / (math.sqrt(surprise + target) + math.sqrt(surprise))
    low = 0.99 * max(zcdp_mu, math.sqrt(2 * math.pi) * float(exact_delta))
    high = 2 * low
    while excess(high, target) < 0:
        high *= 2
    return _root(lambda mu: excess(mu, target), low, high)


def _excess_over(delta: Fraction) -> Callable[[float, float], float]:
    """(mu, epsilon) -> how far the curve is above delta, in log odds: precise next to 0 and 1."""
    log_odds = _log(delta) - _log(1 - delta)

    def excess(mu: float, epsilon: float) -> float:
        log_delta, log_complement = _log_continuous(mu, epsilon)
        return log_delta - log_complement - log_odds

    return excess


_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(40)  # [40] each, on [-1, 1]


def _log_continuous(mu: float, epsilon: float) -> tuple[float, float]:
    """(log(delta), log(1 - delta)) of the continuous curve, neither by a cancelling difference.

    With x = epsilon/mu - mu/2, y = x + mu and the Mills ratio M = (1 - Phi) / phi it is
    delta = phi(x) (M(x) - M(y)), because exp(epsilon) phi(y) = phi(x).
    """
    x, y = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    if x > 1e150:
        return -math.inf, 0.0
    log_phi = -x * x / 2 - math.log(2 * math.pi) / 2
    # M(x) - M(y) is the integral of exp(-s^2/2 - x s) (1 - exp(-mu s)) over s > 0, here up to a
    # reach where the first exponent is -40 (for x > 0): precise for small mu, where M(x) ~ M(y).
    half_chord = math.hypot(x, math.sqrt(80))
    reach = 80 / (half_chord + x) if x > 0 else half_chord - x
    if mu * reach < 20:
        s = reach * (1 + _NODES) / 2
        mean = float(_WEIGHTS @ (s * np.exp(-s * (s / 2 + x)) * exprel(-mu * s))) / 2
        log_delta = log_phi + math.log(mu) + math.log(reach) + math.log(mean)
    elif x >= 0:
        log_delta = log_phi + math.log(_mills(x) - _mills(y))
    else:  # delta is over 1/3: start from the complement
        log_complement = log_phi + math.log(_mills(-x) + _mills(y))
        return math.log1p(-math.exp(log_complement)), log_complement
    return log_delta, math.log1p(-math.exp(log_delta))


def _mills(x: float) -> float:
    return math.sqrt(math.pi / 2) * float(erfcx(x / math.sqrt(2)))


# --- numbers


def _parameter(name: str, value: Exact) -> Fraction:
    """`value` as an exact number, within the range of the parameter `name`."""
    number = exact_fraction(value, name)
    least, below, must_be = _RANGES[name]
    if not least <= number < below:
        raise BudgetError(f"{name.removeprefix('budget ')} must be {must_be}, got {shown(value)}.")
    return number


def _log(value: Fraction) -> float:
    """Natural logarithm, precise next to 1 and for numbers beyond the range of floats."""
    if abs(value - 1) < Fraction(1, 2):
        return math.log1p(float(value - 1))
    return math.log(value.numerator) - math.log(value.denominator)


def _log_expm1(x: float) -> float:
    return x + math.log(-math.expm1(-x))


def _crossing(rising: Callable[[float], float], low: float, high: float) -> float:
    """Where a rising function crosses 0, by bisection; an end of the interval if it does not."""
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if rising(middle) < 0 else (low, middle)
    return low


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    """A root to full relative precision, however small it is."""
    from scipy.optimize import root_scalar  # slow to import, and rarely needed

    return float(root_scalar(function, bracket=(low, high), xtol=1e-300, rtol=1e-15).root)


def _arithmetic(log_a: float) -> tuple[Context, Decimal]:
    """Decimal arithmetic for a bound at this a, and the allowance for its rounding errors.

    Each term is off by some units of its last digit; the rounding of 1 + a and delta adds some
    units of the last digit of 1, times a or 1/a. The allowance is a million times that.
    """
    size = math.ceil(abs(log_a) / math.log(10))
    return Context(prec=50 + 2 * size), Decimal(1).scaleb(-40 - size)


def _slack(terms: list[Decimal], allowance: Decimal) -> Decimal:
    return allowance * (1 + sum(abs(term) for term in terms))


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def guarantees(rho: Fraction, stated_delta: Fraction | None) -> list[str]:
    """The (ε, δ) that follow from ρ, as text, ε rounded up: the stated δ first, if there is one."""
    deltas = [*([] if stated_delta is None else [stated_delta]), *_USUAL_DELTAS]
    return [
        f"ε = {rounded(epsilon_from_rho(rho, delta), 5, 'up')} at δ = {small(delta)}"
        for delta in dict.fromkeys(deltas)
    ]
