"""The exponential mechanism: an index drawn with probability exactly ∝ exp(ε q/(2Δ)).

The scores q are integers, and one record more or less changes each by at most Δ, the sensitivity.
Then logarithms of ratios of probabilities differ by at most ε between neighbours (bounded range),
which is (ε²/8)-zCDP (Cesar, Rogers: *Bounding, Concentrating, and Truncating: Unifying Privacy Loss
Composition for Data Analytics*, ALT 2021; `docs/mathematics.md` §17.1).

Exact by rejection: an index is proposed uniformly and accepted with probability
exp(-ε (q_max - q)/(2Δ)), decided by digits of a uniform real number as in `discrete_gaussian`. The
best score is always accepted, so that n proposals are expected at most.

Not claimed: constant running time (the number of proposals depends on the scores, and so on the
records).
"""

import math
from fractions import Fraction

import numpy as np

from rpexplore.common.numbers import positive_rational, shown, whole_number
from rpexplore.errors import ReleaseError
from rpexplore.releases.noise.uniform import (
    OPERATING_SYSTEM,
    RandomBytes,
    Uniform,
    broken_source,
    checked_source,
)

_FEWEST_ROWS, _MOST_ROWS = 16, 2**15  # proposals held at once
_MOST_ATTEMPTS = 1024  # times the expected number; an honest source gets there with odds of e^-1024
_EPSILON_DIGITS = 12  # significant decimal digits of ε, so that it can be read in a file

_ACCEPTANCE_BITS = 32  # the first digits of U

# Float error of exp(-y) - U. Write e = 2^-53. y = rate * gap is off by three roundings, 3.01 e y,
# which changes exp(-y) by at most 3.01 e y exp(-y) < 1.2 e while y < 2^50; beyond that both values
# are below 2^-1000. Libraries promise exp to an ulp or so; 2^10 ulps, 2^-43, are allowed. The
# further digits of U add up to 2^-32. The margin is larger than both together, by far.
#   steep: a rate above 2^99 is computed as 2^99. A gap of 0 has y = 0 either way, and all others
#          have y >= 2^99 either way.
#   flat: a rate below 2^-1000 may have lost digits, but y is below 2^-930 either way.
_MARGIN = 2.0**-24
_LARGEST_RATE = 2**99


def epsilon_of_rho(rho: Fraction) -> Fraction:
    """The ε of one selection that costs at most ρ: √(8ρ) rounded down to 12 digits or more.

    Exactly ε²/8 <= ρ.

    Raises:
        ReleaseError: ρ is not a positive Fraction.
    """
    rho = positive_rational(rho, "The privacy cost rho of a selection", "downwards")
    places = 0
    while 8 * rho * 100**places < 100 ** (_EPSILON_DIGITS - 1):
        places += 1
    # floor(√q) = isqrt(floor(q))
    return Fraction(math.isqrt(math.floor(8 * rho * 100**places)), 10**places)


def select(
    scores: np.ndarray,
    epsilon: Fraction,
    sensitivity: int,
    k: int = 1,
    *,
    random_bytes: RandomBytes = OPERATING_SYSTEM,
) -> list[int]:
    """k different indices, each drawn from those left with probability ∝ exp(ε q/(2Δ)).

    Each of the k draws costs ε²/8 in zCDP.

    Args:
        scores: q, int64[n]; one record more or less changes each by at most `sensitivity`.
        epsilon: ε of one draw; any positive rational.
        sensitivity: Δ, an integer of 1 or more.
        k: from 1 to n.
        random_bytes: as for `discrete_gaussian`.

    Returns:
        The indices, in the order drawn.

    Raises:
        ReleaseError: a refused argument, or a source of bytes that cannot be random.
    """
    scores = _checked_scores(scores)
    k = _checked_count(k, "The number of tables to select", len(scores))
    sensitivity = _checked_count(sensitivity, "The sensitivity of the scores")
    rate = positive_rational(epsilon, "The epsilon of a selection", "downwards") / (2 * sensitivity)
    source = checked_source(random_bytes)
    left = np.arange(len(scores))
    selected = []
    for _ in range(k):
        at = _draw(scores[left], rate, source)
        selected.append(int(left[at]))
        left = np.delete(left, at)
    return selected


def _draw(scores: np.ndarray, rate: Fraction, source: RandomBytes) -> int:
    """An index with probability ∝ exp(rate · score)."""
    # Modulo 2^64, where a difference of two int64 is exact.
    gaps = scores.max().astype(np.uint64) - scores.astype(np.uint64)
    slope = float(min(rate, _LARGEST_RATE))
    with np.errstate(under="ignore"):  # exp(-1000) is 0 here, well within the margin
        densities = np.exp(gaps * -slope)
    expected = 2 ** _index_bits(len(gaps)) / densities.sum()
    rows = int(min(max(2 * expected, _FEWEST_ROWS), _MOST_ROWS))
    attempts = 0
    while attempts <= _MOST_ATTEMPTS * expected:
        accepted = _accepted_proposals(rows, gaps, densities, rate, source)
        if len(accepted):
            return int(accepted[0])
        attempts += rows
    raise broken_source(f"{attempts} proposals in a row were rejected")


def _accepted_proposals(
    rows: int, gaps: np.ndarray, densities: np.ndarray, rate: Fraction, source: RandomBytes
) -> np.ndarray:
    """The accepted ones of `rows` uniform proposals, in order: int64[at most rows].

    The first half of 8 bytes is the index, if it is one, the other half the first digits of U.
    """
    words = np.frombuffer(source(8 * rows), dtype="<u4").reshape(rows, 2)
    indices = words[:, 0] & np.uint32(2 ** _index_bits(len(gaps)) - 1)
    is_index = indices < len(gaps)
    indices, digits = indices[is_index].astype(np.int64), words[is_index, 1]
    is_below, is_undecided = _fast_acceptance(digits, densities[indices])
    for i in is_undecided.nonzero()[0]:
        uniform = Uniform(int(digits[i]), _ACCEPTANCE_BITS, source)
        is_below[i] = uniform.is_below_exp_minus(rate * int(gaps[indices[i]]))
    return indices[is_below]


def _index_bits(n: int) -> int:
    """The fewest bits that n indices need; more than half of the words are indices."""
    return (n - 1).bit_length()


def _fast_acceptance(digits: np.ndarray, densities: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Whether uniform reals with these first digits (integers below 2^32) are below the densities,
    and where that is uncertain."""
    excess = digits * 2.0**-_ACCEPTANCE_BITS - densities
    return excess < 0, np.abs(excess) < _MARGIN


def _checked_scores(scores: np.ndarray) -> np.ndarray:
    if not isinstance(scores, np.ndarray) or scores.dtype != np.int64:
        kind = scores.dtype if isinstance(scores, np.ndarray) else type(scores).__name__
        raise ReleaseError(
            f"The scores of a selection must be an array of int64, got {kind}; compute them in "
            "whole numbers, so that their sensitivity is exact."
        )
    if scores.ndim != 1 or not 1 <= len(scores) <= 2**32:
        raise ReleaseError(
            "The scores of a selection must be a list of one number or more, got an array of shape "
            f"{scores.shape}; pass one score for each table that can be selected."
        )
    return scores


def _checked_count(value: int, name: str, most: int | None = None) -> int:
    number = whole_number(value)
    if number is None or number < 1 or (most is not None and number > most):
        limits = "of 1 or more" if most is None else f"from 1 to {most}"
        raise ReleaseError(f"{name} must be an integer {limits}, got {shown(value)}; pass one.")
    return number
