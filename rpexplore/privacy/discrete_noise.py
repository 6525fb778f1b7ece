"""The (ε, δ) of discrete Gaussian noise, close to that of continuous noise of the same scale.

zCDP keeps one number of a mechanism and gives away a tenth of the variance at a stated (ε, δ).
Here the noise itself is looked at. With γ² the variance parameter of a measured number and any
0 < s² < γ², discrete Gaussian noise of γ² has, up to a factor, the probabilities of continuous
noise of γ² − s² that is rounded at random, so that (docs/guarantees.md has the proof)

    δ(ε) ≤ U · δ_Gauss(ε − Λ; μ),    μ² = Σ Δ²/(γ² − s²),
    Λ = Σ ln((1 + η)/(1 − η)),  U = ∏ (1 + η),  η = 2 Σ_{m≥1} exp(−2π² s² m²),

the sums over all measured numbers that one unit of privacy changes, by Δ. Every s² gives a valid
claim. Good ones are chosen in floats; the claim is evaluated with errors of rounding on our side:
in floats where each is a relative error of a sum of positive terms, else in decimals.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, getcontext, localcontext
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Self

import numpy as np

from rpexplore.common.numbers import Exact, exact_fraction, float_at_least, read_only
from rpexplore.common.text import rounded
from rpexplore.privacy import conversions

# Sums of positive floats, of their logarithms' arguments as well, are off by less than this,
# relative: fewer than 2^22 terms, each of less than a hundred roundings of 2^-53.
_FLOAT_ERROR = 1e-8
_DIGITS = 40  # of decimals, beside those that are lost where numbers cancel
_SLACK_DIGITS = 8  # rounding of a few hundred operations is below 10^8 units of the last digit
_TAIL = 4  # from where on the tail of the normal distribution is a continued fraction
_LEAST_DELTA = Decimal("1e-400")  # below all floats
_LEAST_EPSILON, _LEAST_TARGET = Fraction("1e-100"), Fraction("1e-300")  # of a budget
_LEAST_NOTED = Fraction("1e-15")  # of Λ and U − 1, where a claim is noted
_STEPS = 60  # of Newton's method, which takes about six
_NEAR = 1e-9  # from where on a further step of it changes nothing that floats hold, relative


@dataclass(frozen=True)
class GaussianClaim:
    """A release is as private as Gaussian noise, nearly: δ(ε) ≤ factor · δ_Gauss(ε − shift; μ).

    mu_squared  of Gaussian differential privacy, squared, for the unit of privacy; exact
    shift       Λ, by which ε is larger than of μ-GDP
    excess      factor − 1, by which δ is larger
    """

    mu_squared: Fraction
    shift: float
    excess: float

    @property
    def mu(self) -> float:
        """μ, rounded up."""
        return conversions.mu_from_privacy_cost(self.mu_squared)

    @property
    def text(self) -> str:
        """The claim with its errors, to go on with: "δ(ε) ≤ U · δ_Gauss(ε − Λ; μ) with …"."""
        return (
            f"δ(ε) ≤ U · δ_Gauss(ε − Λ; μ) with μ = {rounded(self.mu, 5, 'up')}, Λ = "
            f"{rounded(self.shift, 2, 'up')} and U = 1 + {rounded(self.excess, 2, 'up')}"
        )

    def delta(self, epsilon: Exact) -> Decimal:
        """The δ for this ε, rounded up; at most 1."""
        return self._delta(exact_fraction(epsilon, "epsilon"))

    @lru_cache(maxsize=1024)  # noqa: B019 - as of `_epsilon`
    def _delta(self, exact_epsilon: Fraction) -> Decimal:
        shifted = exact_epsilon - Fraction(self.shift)
        with localcontext(Context(prec=_DIGITS)):
            delta = gaussian_delta(shifted, self.mu_squared) * (1 + Decimal(self.excess))
            return min(delta * (1 + Decimal(1).scaleb(2 - _DIGITS)), Decimal(1))

    def epsilon(self, delta: Exact, of_zcdp: float) -> float:
        """The smallest ε that it proves for this δ, rounded up; `of_zcdp`, the ε of ρ, if less."""
        return self._epsilon(exact_fraction(delta, "delta"), of_zcdp)

    @lru_cache(maxsize=1024)  # noqa: B019 - claims are small, and sessions share budgets
    def _epsilon(self, exact_delta: Fraction, of_zcdp: float) -> float:
        target = exact_delta / (1 + Fraction(self.excess))
        found = _epsilon_of_gaussian(self.mu_squared, target, of_zcdp)
        epsilon = max(found + self.shift, 0.0)
        # Found in few steps, and proven here.
        for raised in (0.0, 1e-15, 1e-13, 1e-10):
            candidate = math.nextafter(epsilon * (1 + raised), math.inf) if epsilon else 0.0
            if candidate >= of_zcdp:
                break
            if Fraction(self.delta(candidate)) <= exact_delta:
                return candidate
        return of_zcdp

    @classmethod
    def composed(cls, claims: Sequence["GaussianClaim"]) -> "GaussianClaim":
        """Of releases of the same records together: μ² and Λ add up, and U multiplies."""
        if len(claims) == 1:
            return claims[0]
        return cls(
            sum((claim.mu_squared for claim in claims), Fraction()),
            float_at_least(sum((Fraction(claim.shift) for claim in claims), Fraction())),
            _excess_of(sum((Fraction(claim.excess) for claim in claims), Fraction())),
        )

    def of_records(self, k: int) -> "GaussianClaim":
        """For somebody who has k records, of the claim for one: μ and Λ k times, U to the k."""
        if k == 1:
            return self
        return GaussianClaim(
            self.mu_squared * k * k,
            float_at_least(Fraction(self.shift) * k),
            _excess_of(Fraction(self.excess) * k),
        )

    def to_texts(self) -> list[str]:
        """(μ², Λ, U) as decimals, each rounded up; above 0."""
        return [
            _decimal_text(self.mu_squared, 17),
            _decimal_text(max(Fraction(self.shift), _LEAST_NOTED), 10),
            _decimal_text(1 + max(Fraction(self.excess), _LEAST_NOTED), 17),
        ]

    @classmethod
    def from_texts(cls, texts: Sequence[str]) -> "GaussianClaim":
        """The claim of `to_texts`. Raises `ValueError` for texts of no claim."""
        mu_squared, shift, factor = (exact_fraction(text, "a claim's number") for text in texts)
        if not (mu_squared > 0 and shift > 0 and factor > 1):
            raise ValueError(f"(μ², Λ, U) must be above (0, 0, 1), got {', '.join(texts)}.")
        # Not as exact as somebody may have written it, so that sums stay short.
        mu_squared = Fraction(_decimal_text(mu_squared, 17))
        return cls(mu_squared, float_at_least(shift), float_at_least(factor - 1))


@dataclass(frozen=True, eq=False)
class DiscreteNoise:
    """All discrete Gaussian noise of a release, as far as its (ε, δ) depends on it. No records.

    Measured numbers are in groups of one γ². A unit of privacy is one record, or a person.

    privacy_cost   Σ Δ²/γ² over all numbers is at most this for any two neighbours; exact
    gamma_squared  float64[n]: at most the γ² of each group
    numbers        float64[n]: at least how many numbers of the group a unit changes
    costs          float64[n]: at least Σ Δ²/γ² over the group, for the unit that it is largest for
    """

    privacy_cost: Fraction
    gamma_squared: np.ndarray
    numbers: np.ndarray
    costs: np.ndarray

    @classmethod
    def of(
        cls,
        privacy_cost: Fraction,
        gamma_squared: np.ndarray,
        numbers: np.ndarray,
        costs: np.ndarray,
    ) -> Self:
        """From floats that are right up to a few roundings, with those of one γ² taken together.

        Raises nothing: γ² that are no positive numbers make claims that say nothing.
        """
        scales, groups = np.unique(gamma_squared, return_inverse=True)
        return cls(
            privacy_cost,
            read_only(scales * (1 - _FLOAT_ERROR)),
            read_only(np.bincount(groups, numbers, len(scales)) * (1 + _FLOAT_ERROR)),
            read_only(np.bincount(groups, costs, len(scales)) * (1 + _FLOAT_ERROR)),
        )

    @classmethod
    def joined(cls, noises: Sequence["DiscreteNoise"]) -> "DiscreteNoise":
        """Of releases of the same records together, also if one was chosen after another was seen.

        The scales of each must be stated before its noise is drawn (docs/guarantees.md).
        """
        if len(noises) == 1:
            return noises[0]
        return cls(
            sum((noise.privacy_cost for noise in noises), Fraction()),
            np.concatenate([noise.gamma_squared for noise in noises]),
            np.concatenate([noise.numbers for noise in noises]),
            np.concatenate([noise.costs for noise in noises]),
        )

    def for_one_record(self, records_factor: int) -> "DiscreteNoise":
        """The noise for one record, where the unit costs that many times as much (m²).

        A record changes no more numbers than the unit may.
        """
        return DiscreteNoise(
            self.privacy_cost / records_factor,
            self.gamma_squared,
            self.numbers,
            self.costs / records_factor * (1 + _FLOAT_ERROR),
        )

    def times(self, factor: Fraction) -> "DiscreteNoise":
        """Noise of 1/factor times the variance, which costs that factor."""
        ratio = float(factor)
        return DiscreteNoise(
            self.privacy_cost * factor,
            self.gamma_squared / ratio * (1 - _FLOAT_ERROR),
            self.numbers,
            self.costs * ratio * (1 + _FLOAT_ERROR),
        )

    @property
    def rho(self) -> Fraction:
        """ρ of zCDP that it keeps, exact."""
        return self.privacy_cost / 2

    def at_rho(self, rho: Fraction) -> "DiscreteNoise":
        """The same noise scaled to this ρ, which is above 0: all its variances by one factor."""
        return self.times(rho / self.rho)

    def epsilon_at(self, rho: Exact, delta: Exact) -> float:
        """`epsilon` where the noise is scaled to this ρ; kept, as charts and sliders ask again."""
        asked = exact_fraction(rho, "rho"), exact_fraction(delta, "delta")
        if asked not in self._epsilons:
            exact_rho, exact_delta = asked
            if not exact_rho:
                return conversions.epsilon_from_rho(0, exact_delta)
            self._epsilons[asked] = self.at_rho(exact_rho).epsilon(exact_delta)
        return self._epsilons[asked]

    @cached_property
    def _epsilons(self) -> dict[tuple[Fraction, Fraction], float]:
        return {}

    def claim(self, epsilons_per_cost: float) -> GaussianClaim | None:
        """The claim with the s² that are best where μ² counts so much beside Λ; None: no claim."""
        # Of a group, s² costs κ c s²/γ² through μ² and 4 n exp(−2π² s²) through Λ, to first order:
        # least where exp(2π² s²) = 8π² n γ² / (κ c). At most half of γ², to stay away from it.
        with np.errstate(all="ignore"):
            rate = 2 * np.pi**2
            best = np.log(4 * rate * self.numbers * self.gamma_squared
                          / (epsilons_per_cost * self.costs)) / rate  # fmt: skip
            smoothing = np.minimum(np.maximum(best, 0.1), self.gamma_squared / 2)
            power = np.exp(-rate * smoothing) * (1 + _FLOAT_ERROR)
            # Σ q^(m²) ≤ q Σ q^(3(m − 1)), and ln((1 + η)/(1 − η)) ≤ 2η/(1 − η²).
            eta = 2 * power / (1 - power**3) * (1 + _FLOAT_ERROR)
            shift = np.sum(self.numbers * 2 * eta / (1 - eta**2)) * (1 + _FLOAT_ERROR)
            excess = np.expm1(np.sum(self.numbers * eta) * (1 + _FLOAT_ERROR)) * (1 + _FLOAT_ERROR)
            lost = np.sum(self.costs * smoothing / (self.gamma_squared - smoothing))
            lost *= 1 + _FLOAT_ERROR
        # Also not where a number is none, or γ² so small that q is about 1.
        usable = np.all((power < 0.25) & (eta >= 0) & (eta < 0.6) & (smoothing > 0))
        if not usable or not 0 <= lost < np.inf or not 0 <= shift + excess <= 1:
            return None
        return GaussianClaim(self.privacy_cost + Fraction(lost), float(shift), float(excess))

    def epsilon(self, delta: Exact) -> float:
        """The smallest proven ε for this δ, rounded up: by the noise itself, or by zCDP."""
        exact = exact_fraction(delta, "delta")
        if exact not in self._by_delta:
            of_zcdp = conversions.epsilon_from_rho(self.privacy_cost / 2, exact)
            claim = self.claim_at(exact) if of_zcdp else None
            self._by_delta[exact] = of_zcdp if claim is None else claim.epsilon(exact, of_zcdp)
        return self._by_delta[exact]

    @cached_property
    def _by_delta(self) -> dict[Fraction, float]:
        return {}

    def delta(self, epsilon: Exact) -> float:
        """The smallest proven δ for this ε, rounded up; see `epsilon`. Never 0."""
        of_zcdp = conversions.delta_from_rho(self.privacy_cost / 2, epsilon)
        if self.privacy_cost == 0:
            return of_zcdp
        mu = math.sqrt(self.privacy_cost)
        claim = self.claim(0.5 + max(float(exact_fraction(epsilon, "epsilon")) / mu, 1) / (2 * mu))
        return of_zcdp if claim is None else min(of_zcdp, float_at_least(claim.delta(epsilon)))

    def claim_at(self, delta: Exact) -> GaussianClaim | None:
        """The claim that is about the best near this δ."""
        if self.privacy_cost == 0:
            return None
        # ε ≈ μ²/2 + z μ with z the quantile of δ, so dε/dμ² ≈ 1/2 + z/(2μ).
        quantile = math.sqrt(2 * -math.log(float(exact_fraction(delta, "delta"))))
        return self.claim(0.5 + quantile / (2 * math.sqrt(self.privacy_cost)))

    def factor_within(self, epsilon: Exact, delta: Exact) -> Fraction:
        """The largest factor found by which `times` keeps (ε, δ), by whichever proof; rounded down.

        At least what zCDP allows.
        """
        exact_epsilon, exact_delta = exact_fraction(epsilon, "ε"), exact_fraction(delta, "δ")
        by_zcdp = 2 * conversions.rho_from_epsilon_delta(epsilon, delta) / self.privacy_cost
        factor = Fraction(gaussian_cost(exact_epsilon, exact_delta)) / self.privacy_cost
        for _ in range(6):
            claim = self.times(factor).claim_at(delta)
            if claim is None:
                return by_zcdp
            rest = exact_epsilon - Fraction(claim.shift)
            target = exact_delta / (1 + Fraction(claim.excess))
            if rest < _LEAST_EPSILON or target < _LEAST_TARGET:
                return by_zcdp
            allowed = gaussian_cost(rest, target)
            before, factor = factor, factor * allowed / claim.mu_squared
            factor = Fraction(float(factor))
            if factor <= by_zcdp:
                return by_zcdp
            if abs(factor / before - 1) < Fraction(1, 10**12):
                break
        for digits in (11, 10, 9, 8, 6):  # as μ² is not quite proportional to the factor
            lowered = factor * (1 - Fraction(1, 10**digits))
            if lowered > by_zcdp and self.times(lowered).epsilon(delta) <= exact_epsilon:
                return lowered
        return by_zcdp


def _excess_of(total: Fraction) -> float:
    """∏ (1 + x) − 1 for numbers x of this sum, or more: it is at most exp(Σ x) − 1."""
    return math.expm1(min(float_at_least(total), 500.0)) * (1 + _FLOAT_ERROR)


def _decimal_text(value: Fraction, digits: int) -> str:
    up = Context(prec=digits, rounding=ROUND_CEILING)
    return f"{up.divide(Decimal(value.numerator), Decimal(value.denominator)):f}"


def proven_epsilon(rho: Exact, delta: Exact, noise: DiscreteNoise | None) -> float:
    """The smallest proven ε at δ of a release of this ρ, rounded up.

    noise: of a plan for it, at any scale; None: it is not known, so that ρ alone proves ε
    """
    if noise is None:
        return conversions.epsilon_from_rho(rho, delta)
    return noise.epsilon_at(rho, delta)


# ---- Gaussian differential privacy: δ_Gauss(ε; μ) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ)


def gaussian_delta(epsilon: Fraction, mu_squared: Fraction) -> Decimal:
    """δ of continuous Gaussian noise at this ε (which may be below 0), rounded up; at most 1.

    Balle and Wang (ICML 2018), Theorem 8. With M the Mills ratio (1 − Φ)/φ and x = ε/μ ∓ μ/2 it is
    φ(x₁) (M(x₁) − M(x₂)), because e^ε φ(x₂) = φ(x₁).
    """
    return max(min(_gaussian(epsilon, mu_squared)[0], Decimal(1)), _LEAST_DELTA)


def gaussian_epsilon(mu_squared: Fraction, delta: Exact) -> float:
    """About the ε of continuous Gaussian noise at this δ, which discrete noise comes near to."""
    of_zcdp = conversions.epsilon_from_rho(mu_squared / 2, delta)
    if of_zcdp == 0:
        return 0.0
    return max(_epsilon_of_gaussian(mu_squared, exact_fraction(delta, "delta"), of_zcdp), 0.0)


@lru_cache(maxsize=256)
def gaussian_cost(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest μ² at which continuous Gaussian noise is (ε, δ)-DP, rounded down.

    A decimal of 17 digits, or 2ρ of zCDP, which such noise keeps as well, if that is more.
    """
    of_zcdp = 2 * conversions.rho_from_epsilon_delta(epsilon, delta)
    cost, log_delta = of_zcdp, conversions.log_of(delta)
    for _ in range(_STEPS):
        value, first, second = _gaussian(epsilon, cost)
        if value <= 0:
            return of_zcdp
        # d ln δ / d ln μ = μ / (M(x₁) − M(x₂)), and ln δ is concave in ln μ.
        step = (log_delta - float(value.ln())) * float(first - second) / math.sqrt(cost)
        grown = float(cost) * math.exp(2 * max(min(step, 1.0), -1.0))
        cost = max(Fraction(grown), of_zcdp)
        if abs(step) < 1e-9:  # the next would be its square
            break
    down = Context(prec=17, rounding=ROUND_FLOOR)
    for digits in (15, 14, 13, 12, 10):
        lowered = cost * (1 - Fraction(1, 10**digits))
        lowered = Fraction(down.divide(Decimal(lowered.numerator), Decimal(lowered.denominator)))
        if lowered <= of_zcdp:
            break
        if Fraction(gaussian_delta(epsilon, lowered)) <= delta:
            return lowered
    return of_zcdp


def _epsilon_of_gaussian(mu_squared: Fraction, delta: Fraction, above: float) -> float:
    """Where δ_Gauss is δ, about; `above`: the ε of zCDP, which is above it."""
    log_delta, least = conversions.log_of(delta), -math.sqrt(mu_squared)
    epsilon = _epsilon_in_floats(math.sqrt(mu_squared), log_delta, above)
    for _ in range(_STEPS):
        # d ln δ / dε = −M(x₂) / (M(x₁) − M(x₂)), and ln δ is concave in ε: Newton's method comes
        # down from above.
        value, first, second = _gaussian(Fraction(epsilon), mu_squared)
        if value <= 0:
            return above
        step = (float(value.ln()) - log_delta) * float((first - second) / second)
        before, epsilon = epsilon, min(max(epsilon + step, least), above)
        # The next step would be the square of this one.
        if abs(epsilon - before) <= _NEAR * abs(epsilon):
            break
    return epsilon


def _epsilon_in_floats(mu: float, log_delta: float, above: float) -> float:
    """`_epsilon_of_gaussian` up to rounding in floats; `above` where these do not do."""
    from scipy.special import erfcx  # slow to import

    epsilon = above
    for _ in range(_STEPS):
        first, second = epsilon / mu - mu / 2, epsilon / mu + mu / 2
        if first < -30:  # erfcx of it is near the largest float
            return above
        high, low = math.sqrt(math.pi / 2) * erfcx(np.array([first, second]) / math.sqrt(2))
        if not high - low > 1e-9 * high:  # too few digits are left of it
            return above
        log_value = math.log(high - low) - first**2 / 2 - math.log(2 * math.pi) / 2
        before, epsilon = epsilon, epsilon + (log_value - log_delta) * (high - low) / low
        if not -mu < epsilon <= above:
            return above
        if abs(epsilon - before) <= _NEAR * abs(epsilon):
            break
    return epsilon


def _gaussian(epsilon: Fraction, mu_squared: Fraction) -> tuple[Decimal, Decimal, Decimal]:
    """δ_Gauss(ε; μ), rounded up, and about M(x₁) and M(x₂)."""
    mu = math.sqrt(mu_squared)
    size = abs(float(epsilon)) / mu + mu + 1
    # M(x₁) − M(x₂) is about μ M/x: the digits that are lost where these are near to each other.
    lost = 2 * math.ceil(abs(math.log10(mu)) + math.log10(size))
    with localcontext(Context(prec=_DIGITS + lost + 10)) as arithmetic:
        unit = Decimal(1).scaleb(_SLACK_DIGITS - arithmetic.prec)
        root = conversions.decimal_of(mu_squared).sqrt() * (1 + unit)  # a larger μ has a larger δ
        ratio = conversions.decimal_of(epsilon) / root
        first, second = ratio - root / 2, ratio + root / 2
        if first < -40:  # δ is about 1, or ε far below 0
            return Decimal(1), Decimal(1), Decimal(1)
        high, low = _mills_ratio(first)[1], _mills_ratio(second)[0]
        # x is off by a unit of its last digit, and exp(x²/2), in M and φ, by x² of these.
        slack = unit * (1 + first * first + second * second)
        density = (-first * first / 2).exp() / (2 * _pi(arithmetic.prec)).sqrt()
        return density * (1 + slack) * (high - low + slack * (high + low)), high, low


def _mills_ratio(x: Decimal) -> tuple[Decimal, Decimal]:
    """Numbers below and above (1 − Φ(x))/φ(x), up to rounding in the current precision."""
    precision = getcontext().prec
    size = abs(x)
    if size < _TAIL:
        # Φ(x) = 1/2 + φ(x) Σ x^(2k+1)/(1·3·5⋯(2k+1)): half the inverse density, less that sum.
        term, total, odd = x, x, 1
        while abs(term) > Decimal(1).scaleb(-precision) * abs(total) or odd < 2 * _TAIL**2:
            odd += 2
            term = term * x * x / odd
            total += term
        ratio = (2 * _pi(precision)).sqrt() * (x * x / 2).exp() / 2 - total
        # From there on terms are less than half of those before.
        return ratio - abs(term), ratio + abs(term)
    # 1/(x + 1/(x + 2/(x + 3/…))), cut off at an even place above it, at an odd one below.
    n = 2 * int((precision / float(min(size, Decimal(10**9)))) ** 2 / 3 + precision / 4) + 2
    above, below = size, size
    for k in range(n, 0, -1):
        above = size + k / above
    for k in range(n + 1, 0, -1):
        below = size + k / below
    low, high = 1 / below, 1 / above
    if x > 0:
        return low, high
    inverse_density = (2 * _pi(precision)).sqrt() * (x * x / 2).exp()
    return inverse_density - high, inverse_density - low


@lru_cache(maxsize=64)
def _pi(precision: int) -> Decimal:
    """π to so many digits, by the arithmetic-geometric mean (Gauss, Legendre)."""
    with localcontext(Context(prec=precision + 5)):
        a, b, t, p = Decimal(1), Decimal("0.5").sqrt(), Decimal("0.25"), 1
        while a - b > Decimal(1).scaleb(-precision):
            mean = (a + b) / 2
            t -= p * (a - mean) ** 2
            a, b, p = mean, (a * b).sqrt(), 2 * p
        return (a + b) ** 2 / (4 * t)
