"""The only source of noise: exact samples of the discrete Gaussian distribution.

`discrete_gaussian` follows Canonne, Kamath, Steinke: "The Discrete Gaussian for Differential
Privacy" (NeurIPS 2020), Algorithms 1 to 3, on whole arrays of candidates. Algorithm 3 proposes
from the discrete Laplace distribution of scale t = floor(gamma) + 1 (Algorithm 2) and rejects:

    U uniform on {0..t-1}, kept with probability exp(-U/t)
    V geometric, P(V >= k) = exp(-k);                           Y = U + t V
    a fair sign, where "minus zero" is rejected
    kept with probability exp(-(Y - gamma^2/t)^2 / (2 gamma^2))

The two "kept with" decisions are independent, so they are one decision on the sum of the two
exponents. Candidates are independent and alike, so the accepted ones, taken in order, are
independent samples however the candidates were cut into batches.

Every random decision is the comparison of a uniform real number with exp(-x), x rational. The
number's first digits are compared with a bracket of exp(-x) that is proven below; where the
bracket does not decide (once in some 10^8 candidates), `_Uniform` reads as many further digits
as it takes and compares with exact rational and decimal arithmetic. So no probability is rounded.

Not claimed: constant running time (rejection and the rare exact path take time).
"""

import decimal
import math
import operator
import os
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from rpexplore.errors import ReleaseError

LARGEST_GAMMA = 2**46
"""gamma, the square root of `gamma_squared`, must be below this: it keeps every candidate below
2**55 (see `_Uniform.refine`), so that 64-bit integers cannot overflow."""

_ROWS_PER_BATCH = 2**16  # candidates held at once: 1 MB of random words, some MB of work arrays
_BYTES_PER_ROW = 16
_MOST_DIGITS = 512  # an honest source leaves a comparison open for longer in 1 of 2^500 cases
_MOST_REJECTIONS = 4096  # in a row; an honest source gets there with probability below 0.7^4096

# Digits of a candidate's second 64-bit word: 1 for the sign, 31 for V, 32 for the acceptance.
_GEOMETRIC_BITS = 31
_ACCEPTANCE_BITS = 32

# Float error of the acceptance probability. Write e = 2^-53, g = gamma^2, c = g/t, d = Y - c,
# s = |d| / sqrt(2g); the exponent is x = U/t + s^2. Each float operation, and each conversion of
# an exact integer or ratio, is off by a factor within 1 +- e.
#   d:    Y, c, and their difference are each rounded: off by at most 2.01 e (Y + c). As c < gamma,
#         (Y + c)/sqrt(2g) <= s + 1.42, so s is off by at most 2.01 e (s + 1.42).
#   s^2:  three more roundings (square, 1/(2g), product): off by at most e (7.1 s^2 + 5.8 s + 1).
#   x:    U/t < 1 is off by at most e, the sum by a factor e: in all e (8.2 s^2 + 5.8 s + 4).
#   p:    an error of x changes exp(-x) by at most itself times exp(-x) <= exp(-s^2); with
#         s^2 exp(-s^2) < 0.37 and s exp(-s^2) < 0.43 that is below 10 e < 2^-49 while
#         s^2 < 2^20, and beyond that both values of exp(-x) are below 2^-1000.
#   exp:  libraries promise an ulp or so; 2^10 ulps, 2^-43, are allowed.
#   tiny: gamma^2 below 2^-100 is computed as 2^-100. Y = 0 has x <= gamma^2/2 < 2^-100 either
#         way, and Y >= 1 has x > 2^98 either way.
# The sum is below 2^-42. The margin is four times that.
_MARGIN = 2.0**-40
_SMALLEST_FLOAT_G = 2.0**-100


def discrete_gaussian(
    size: int,
    gamma_squared: Fraction,
    *,
    random_bytes: Callable[[int], bytes] = os.urandom,
) -> np.ndarray:
    """Independent integers x with probability exactly proportional to exp(-x^2/(2 gamma_squared)).

    Args:
        size: how many, 0 or more.
        gamma_squared: variance parameter; any positive rational below `LARGEST_GAMMA` squared.
            The variance itself is at most this, and indistinguishable from it from about 2 on.
        random_bytes: gives n independent uniform bytes for n. Only tests pass another source
            than the operating system's; there is no seed.

    Returns:
        int64[size].

    Raises:
        ReleaseError: a refused argument, or a source that gives too few bytes or bytes that
            cannot be random.
    """
    size = _checked_size(size)
    proposal = _proposal(_checked_gamma_squared(gamma_squared))
    source = _checked_source(random_bytes)
    samples = np.empty(size, dtype=np.int64)
    filled = rejected_in_a_row = 0
    while filled < size:
        rows = _rows_to_propose(size - filled, proposal.acceptance)
        accepted = _accepted_candidates(rows, proposal, source)[: size - filled]
        samples[filled : filled + len(accepted)] = accepted
        filled += len(accepted)
        rejected_in_a_row = 0 if len(accepted) else rejected_in_a_row + rows
        if rejected_in_a_row > _MOST_REJECTIONS:
            raise _broken_source(f"{rejected_in_a_row} candidates in a row were rejected")
    return samples


@dataclass(frozen=True)
class _Proposal:
    """What the candidates of one variance parameter share. Floats only approximate."""

    gamma_squared: Fraction
    t: int  # scale of the discrete Laplace proposal, 1 <= t <= 2^46
    largest_word: int  # a word up to this is uniform modulo t
    centre: float  # gamma^2 / t
    steepness: float  # 1 / (2 gamma^2)
    acceptance: float  # share of accepted candidates, about; only sets the size of batches


def _proposal(gamma_squared: Fraction) -> _Proposal:
    numerator, denominator = gamma_squared.as_integer_ratio()
    t = math.isqrt(numerator // denominator) + 1  # floor(sqrt(q)) = isqrt(floor(q))
    if denominator > numerator << 100:
        g, centre, steepness = _SMALLEST_FLOAT_G, _SMALLEST_FLOAT_G, 0.5 / _SMALLEST_FLOAT_G
    else:  # int / int is correctly rounded, however many digits
        g = numerator / denominator
        centre = numerator / (denominator * t)
        steepness = denominator / (2 * numerator)
    total = max(1.0, math.sqrt(2 * math.pi * g))  # sum of exp(-x^2/2g) over the integers, about
    acceptance = (1 - math.exp(-1)) / (2 * t) * math.exp(-centre / (2 * t)) * total
    return _Proposal(gamma_squared, t, 2**64 // t * t - 1, centre, steepness, acceptance)


def _rows_to_propose(wanted: int, acceptance: float) -> int:
    """Candidates that yield `wanted` samples nearly always, as far as one batch goes."""
    return min(_ROWS_PER_BATCH, int((wanted + 3 * math.sqrt(wanted) + 2) / acceptance))


def _accepted_candidates(
    rows: int, proposal: _Proposal, source: Callable[[int], bytes]
) -> np.ndarray:
    """The accepted ones of `rows` candidates, in order: int64[at most rows]."""
    words = np.frombuffer(source(_BYTES_PER_ROW * rows), dtype="<u8").reshape(2, rows)
    is_uniform = words[0] <= proposal.largest_word
    u = (words[0] % proposal.t).view(np.int64)

    low_half = (words[1] & 0xFFFFFFFF).view(np.int64)
    is_negative = (low_half & 1).astype(bool)
    geometric_digits = low_half >> 1
    v, is_decided = _fast_geometric(geometric_digits)
    for row in np.flatnonzero(~is_decided):
        v[row] = _exact_geometric(_Uniform(int(geometric_digits[row]), _GEOMETRIC_BITS, source))

    y = u + proposal.t * v  # below 2^55
    is_possible = is_uniform & ~_is_negative_zero(is_negative, y)
    acceptance_digits = (words[1] >> 32).view(np.int64)
    is_accepted, is_decided = _fast_acceptance(acceptance_digits, u, y, proposal)
    for row in np.flatnonzero(is_possible & ~is_decided):
        uniform = _Uniform(int(acceptance_digits[row]), _ACCEPTANCE_BITS, source)
        exponent = _exact_exponent(int(u[row]), int(y[row]), proposal)
        is_accepted[row] = uniform.is_below_exp_minus(exponent)

    is_kept = is_possible & is_accepted
    y, is_negative = y[is_kept], is_negative[is_kept]
    return np.where(is_negative, -y, y)


def _is_negative_zero(is_negative: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Zero has two signs; keeping both would count it twice (Algorithm 2)."""
    return is_negative & (y == 0)


def _fast_geometric(digits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """V from the first digits of uniform reals (integers below 2^31), and where V is certain.

    V is the number of k >= 1 with uniform < exp(-k). An integer above or below
    floor(2^31 exp(-k)) decides that comparison whatever digits follow; equality does not.
    """
    floors_reached = np.searchsorted(_GEOMETRIC_FLOORS, digits, side="right")
    v = len(_GEOMETRIC_FLOORS) - floors_reached
    return v, _GEOMETRIC_FLOORS[floors_reached - 1] != digits  # the least floor is 0


def _exact_geometric(uniform: "_Uniform") -> int:
    v = 0
    while uniform.is_below_exp_minus(Fraction(v + 1)):
        v += 1
    return v


def _fast_acceptance(
    digits: np.ndarray, u: np.ndarray, y: np.ndarray, proposal: _Proposal
) -> tuple[np.ndarray, np.ndarray]:
    """Whether uniform reals with these first digits (integers below 2^32) are below
    exp(-exponent), and where that is certain."""
    distance = y - proposal.centre
    exponent = u / proposal.t + distance * distance * proposal.steepness
    with np.errstate(under="ignore"):  # exp(-1000) is 0 here, well within the margin
        probability = np.exp(-exponent)
    # The real number is in [digits, digits + 1] / 2^32. Scaling by 2^32 is exact; the subtraction
    # is rounded by less than 2^-53 of 2^32, which the margin covers as well.
    excess = digits - probability * 2.0**_ACCEPTANCE_BITS
    margin = _MARGIN * 2.0**_ACCEPTANCE_BITS
    is_below = excess <= -1 - margin
    return is_below, is_below | (excess >= margin)


def _exact_exponent(u: int, y: int, proposal: _Proposal) -> Fraction:
    g, t = proposal.gamma_squared, proposal.t
    return Fraction(u, t) + (y - g / t) ** 2 / (2 * g)


class _Uniform:
    """A uniform real number in [0, 1] of which the first `bits` binary digits are known.

    Further digits are read from the source when a comparison needs them, and kept.
    """

    def __init__(self, digits: int, bits: int, source: Callable[[int], bytes]) -> None:
        self.digits, self.bits = digits, bits
        self._source = source

    def is_below_exp_minus(self, x: Fraction) -> bool:
        """Whether the number is below exp(-x), exactly; x >= 0."""
        while True:
            low, high = _scaled_exp_bracket(x, self.bits)
            if self.digits + 1 <= low:
                return True
            if self.digits >= high:
                return False
            self.refine()

    def refine(self) -> None:
        """Read 64 more digits.

        The bound on the digits stops a source of nothing but zeros. It also bounds V: at most
        544 digits are known, and 2^-544 <= exp(-V) means V <= 377, so that
        Y < t (V + 1) < 2^46 * 2^9 = 2^55.
        """
        if self.bits >= _MOST_DIGITS:
            raise _broken_source(f"{self.bits} digits did not decide one comparison")
        self.digits = self.digits << 64 | int.from_bytes(self._source(8), "little")
        self.bits += 64


def _scaled_exp_bracket(x: Fraction, bits: int) -> tuple[int, int]:
    """Integers low <= 2^bits exp(-x) <= high, rarely more than 1 apart; x >= 0."""
    if x >= bits:
        return 0, 1  # without computing exp of what may be an enormous number
    precision = bits // 3 + 20  # 10^-precision is far below 2^-bits
    down = decimal.Context(prec=precision, rounding=decimal.ROUND_FLOOR)
    up = decimal.Context(prec=precision, rounding=decimal.ROUND_CEILING)
    numerator, denominator = decimal.Decimal(-x.numerator), decimal.Decimal(x.denominator)
    # Context.exp is correctly rounded, to nearest: the true value is within one step.
    low = down.next_minus(down.exp(down.divide(numerator, denominator)))
    high = up.next_plus(up.exp(up.divide(numerator, denominator)))
    return math.floor(Fraction(low) * 2**bits), math.ceil(Fraction(high) * 2**bits)


def _geometric_floors() -> np.ndarray:
    """floor(2^31 exp(-k)), ascending, from the first k where it is 0 to k = 1: int64[22]."""
    floors = [_scaled_exp_bracket(Fraction(k), _GEOMETRIC_BITS)[0] for k in range(22, 0, -1)]
    return np.array(floors, dtype=np.int64)


_GEOMETRIC_FLOORS = _geometric_floors()


def _checked_size(size: int) -> int:
    try:
        checked = operator.index(size)
    except TypeError:
        checked = -1
    if checked < 0:
        raise ReleaseError(
            f"The number of noise values must be an integer of 0 or more, got {size!r}; "
            "pass the number of cells."
        )
    return checked


def _checked_gamma_squared(gamma_squared: Fraction) -> Fraction:
    if not isinstance(gamma_squared, (int, Fraction)):
        raise ReleaseError(
            "The variance parameter gamma_squared must be a Fraction, so that the noise is exactly "
            f"what the plan accounts for, got {type(gamma_squared).__name__}; convert it, upwards."
        )
    # A Fraction may hold numpy integers, which overflow; Python's do not.
    numerator, denominator = int(gamma_squared.numerator), int(gamma_squared.denominator)
    if numerator <= 0:
        raise ReleaseError(
            "The variance parameter gamma_squared must be above 0, got "
            f"{gamma_squared}; a table without noise cannot be released."
        )
    if numerator >= denominator * LARGEST_GAMMA**2:
        exponent = (numerator // denominator).bit_length() - 1
        raise ReleaseError(
            f"The noise scale gamma must be below 2**46 (gamma_squared below 2**92), got "
            f"gamma_squared of at least 2**{exponent}; use a larger budget for this table, or "
            "attributes with fewer values."
        )
    return Fraction(numerator, denominator)


def _checked_source(random_bytes: Callable[[int], bytes]) -> Callable[[int], bytes]:
    def source(count: int) -> bytes:
        block = random_bytes(count)
        if len(block) != count:
            raise _broken_source(f"it gave {len(block)} bytes where {count} were asked for")
        return block

    return source


def _broken_source(what: str) -> ReleaseError:
    return ReleaseError(
        f"The source of random bytes must give independent uniform bytes: {what}. No noise was "
        "returned; check the operating system's random number generator before another run."
    )
