"""Exact samples of the discrete Gaussian distribution."""

import math
import operator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from rpexplore.common.numbers import read_only
from rpexplore.errors import ReleaseError
from rpexplore.releases.noise.uniform import (
    MOST_DIGITS,
    OPERATING_SYSTEM,
    RandomBytes,
    Uniform,
    broken_source,
    checked_source,
)

# ---- The stepped envelope under which discrete Gaussian noise is drawn: tables, no randomness.
#
# Write f(x) = exp(-x^2/(2 gamma^2)). The integers are cut into blocks of w = 2^block_bits; block b
# holds b w, ..., b w + w - 1. Over block b stands a column of H_b slots, each 1/c high, the j-th
# covering heights j/c to (j + 1)/c, where
#
#     H_b >= c f(x)         for every x of the block: the column covers the density;
#     j + 1 <= c f(x)       for every x of the block, if the slot is called sure.
#
# All columns, -K <= b < K, with two slots for the tails beyond them and some for nothing, are
# 2^16 slots. `discrete_gaussian` draws one of them, all alike, and an offset in its block.
#
# So that few tables serve every gamma, gamma is known by a grid: steps <= gamma / 2^exponent <
# steps + 1, with 64 <= steps < 128 (fewer where gamma is below 1/4). H_b is computed for the upper
# end of that interval, which has the larger f, and what is sure for the lower end. In units of
# blocks the tables depend on nothing else: gamma / w is between 32 and 64, where blocks are wider
# than one integer.


SLOT_BITS = 16
TAIL_SLOTS = 2  # the last ones: beyond the columns on the right, and on the left
_SMALLEST_EXPONENT = -8  # of the grid
_REACH = 6.5  # K w is at least this many gamma

# What floats do to c f(x). If the exponent x^2/(2 gamma^2) is at most 2^10, its four roundings,
# each by a factor within 1 +- 2^-53, change f by one within 1 +- 2^-41; libraries promise exp to
# an ulp or so, and 2^10 ulps, 2^-43, are allowed; two products follow: all in all 1 +- 2^-40.
# Beyond, c f(x) is below 2^-1000 in truth and in floats: one slot covers it, and none is sure.
_FLOAT_ERROR = 2.0**-40


@dataclass(frozen=True, eq=False)
class Envelope:
    """Tables of one interval of gamma. Slots are numbered; the sure ones come first."""

    blocks: np.ndarray  # int16[2^16], the block of each slot
    n_sure: int
    heights: np.ndarray  # float64[2^16 - n_sure], j of each slot that is not sure
    slots_at_zero: int  # c, below 2^16
    n_blocks: int  # K, on either side
    tail_width: int  # in blocks; a power of two, at most 32
    acceptance: float  # share of candidates that are kept, about; only sets the size of batches


def block_bits(exponent: int) -> int:
    """log2 w: blocks have 2^(exponent + 1) integers, or one where that is less."""
    return max(0, exponent + 1)


def grid(gamma_squared: Fraction) -> tuple[int, int]:
    """(steps, exponent) with steps <= gamma / 2^exponent < steps + 1, computed in integers."""
    numerator, denominator = gamma_squared.as_integer_ratio()
    fine = (numerator << -2 * _SMALLEST_EXPONENT) // denominator  # floor(gamma^2 4^8)
    # 2^12 <= gamma^2 / 4^exponent < 2^14, unless gamma is too small for the grid
    exponent = max(0, fine.bit_length() - 13) // 2 + _SMALLEST_EXPONENT
    # floor(sqrt(q)) = isqrt(floor(q)), and a floor may be taken before a division by an integer
    return math.isqrt(fine >> 2 * (exponent - _SMALLEST_EXPONENT)), exponent


def envelope(steps: int, exponent: int) -> Envelope:
    """The tables of `grid`'s interval; the same for all intervals with blocks of several integers.

    The tails: a candidate beyond K blocks is in part v = 0, 1, ... with probability 2^-(v + 1),
    uniformly on T blocks (T the tail width) from K + T v on, and is kept with probability
    2^8 c T 2^(v + 1) f(x), where the 2^8 makes up for another 2^-8 (see that module). That is at
    most 1: c < 2^16, T <= 32, and f < exp(-6.5^2/2) < 2^-30 for v = 0; a further v doubles the
    bound and multiplies it by exp(-K T w^2/gamma^2) < exp(-6.5/2) at most, as T w >= gamma/2.
    """
    return _cached_envelope(steps, min(exponent, 0))


@lru_cache(maxsize=128)  # 17 MB at most; wide blocks have 64 intervals in all
def _cached_envelope(steps: int, exponent: int) -> Envelope:
    unit = 2.0 ** (exponent - block_bits(exponent))  # of the grid, in blocks; exact, as are:
    upper = (steps + 1) * unit
    lower = max(steps, 2.0**-10) * unit  # anything above 0, instead of 0, makes the same slots
    n_blocks = math.ceil(_REACH * upper)
    right = np.arange(n_blocks)
    blocks = np.concatenate([right, ~right])
    # Block k reaches from k w to (k + 1) w - 1, block ~k from -(k + 1) w to -k w - 1.
    if block_bits(exponent):
        nearest, farthest = np.concatenate([right, right]), np.concatenate([right, right]) + 1
    else:
        nearest = farthest = np.concatenate([right, right + 1])
    with np.errstate(under="ignore"):
        largest = np.exp(-0.5 * (nearest / upper) ** 2) * (1 + _FLOAT_ERROR)
        least = np.exp(-0.5 * (farthest / lower) ** 2) * (1 - _FLOAT_ERROR)

    # Each column has at most c f + 1 slots; one slot in reserve for the rounding of the sum.
    available = 2**SLOT_BITS - TAIL_SLOTS
    c = int((available - 1 - len(blocks)) / largest.sum())
    n_slots = (c * largest).astype(np.int64) + 1
    n_sure = (c * least).astype(np.int64)
    n_open = n_slots - n_sure
    unused = available - n_slots.sum()

    # Unused slots, and those of the tails, get a height that no density reaches.
    starts = n_open.cumsum() - n_open
    heights = np.arange(n_open.sum()) - np.repeat(starts - n_sure, n_open)
    heights = np.concatenate([heights, np.full(unused + TAIL_SLOTS, c + 1)]).astype(np.float64)
    no_block = np.zeros(unused + TAIL_SLOTS)
    table = np.concatenate([np.repeat(blocks, n_sure), np.repeat(blocks, n_open), no_block])
    return Envelope(
        blocks=read_only(table.astype(np.int16)),
        n_sure=int(n_sure.sum()),
        heights=read_only(heights),
        slots_at_zero=c,
        n_blocks=n_blocks,
        tail_width=1 << max(0, math.ceil(upper / 2) - 1).bit_length(),
        acceptance=c * float(largest.sum() + least.sum()) / 2 / 2**SLOT_BITS,
    )


# ---- Exact samples of the discrete Gaussian distribution.
#
# Write f(x) = exp(-x^2/(2 gamma^2)). Candidates are drawn under the stepped envelope of
# `envelope`: a slot, one of 2^16 that are all alike, and an offset, one of the w in its
# block. The slot has a height j, and slot and offset name an integer x, which is kept if
#
#     j + U < c f(x),    U uniform on [0, 1),
#
# where c is the number of slots that are as high together as f(0) = 1.
#
# The slots of a block have the heights j = 0, ..., H - 1, where H >= c f(x). So x is drawn and kept
# with probability 2^-16/w times the sum of min(1, max(0, c f(x) - j)) over them, which is c f(x):
# all together proportional to f(x). A sure slot has j + 1 <= c f(x), so that its candidates are
# kept without another thought; these are 19 of 20. Beyond the columns of the envelope,
# `_tail_candidate` draws and keeps x with the same probability, 2^-16/w c f(x).
#
# Candidates are independent and alike, so the accepted ones, taken in order, are independent
# samples however the candidates were cut into batches.
#
# Each other decision is the comparison of a uniform real number with c f(x) - j. The number's first
# digits are compared with a float of proven error; where that does not decide (once in some 10^8
# candidates), `Uniform` reads as many further digits as it takes and compares with exact rational
# and decimal arithmetic. So no probability is rounded.
#
# Not claimed: constant running time (rejection and the rare exact path take time).


LARGEST_GAMMA = 2**52
"""gamma, the square root of `gamma_squared`, must be below this: it keeps every candidate below
2**61 (see `_tail_candidate`), so that 64-bit integers cannot overflow."""

_ROWS_PER_BATCH = 2**15  # candidates held at once: what is computed of them stays in the cache
_FEWEST_ROWS = 16  # 32 bytes, enough to see whether a source repeats itself
_MOST_REJECTIONS = 4096  # in a row; an honest source gets there with probability below 0.1^4096

_ACCEPTANCE_BITS = 32  # the first digits of U
_TAIL_BITS = 8  # of these must be 0 for a tail slot to count: so tails take no time
_FIRST_TAIL_SLOT = 2**SLOT_BITS - TAIL_SLOTS

# Float error of c f(x) - (j + U). Write e = 2^-53. j and the first digits of U are exact, and so is
# j + U of 49 bits. x, below 2^55, is rounded once, so that the exponent y = x^2/(2 gamma^2) is off
# by five roundings (two of x), 5.01 e y, which changes exp(-y) by at most 5.01 e y exp(-y) < 1.9 e
# while y < 2^50; beyond that both values are below 2^-1000. Libraries promise exp to an ulp or so;
# 2^10 ulps, 2^-43, are allowed. As c < 2^16, the product and the difference are rounded by 2^16 e
# each: all is below 2^16 (2^-43 + 3.9 e) < 2^-26. The further digits of U add up to 2^-32. The
# margin is larger than both together, by far.
#   tiny: gamma^2 below 2^-100 is computed as 2^-100. x = 0 has y = 0 either way, and all others
#         have y >= 2^99 either way.
_MARGIN = 2.0**-24
_LARGEST_STEEPNESS = 2.0**99


def discrete_gaussian(
    size: int,
    gamma_squared: Fraction,
    *,
    random_bytes: RandomBytes = OPERATING_SYSTEM,
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
    source = checked_source(random_bytes)
    samples = np.empty(size, dtype=np.int64)
    filled = rejected_in_a_row = 0
    while filled < size:
        rows = _rows_to_propose(size - filled, proposal.envelope.acceptance)
        accepted = _accepted_candidates(rows, proposal, source)[: size - filled]
        samples[filled : filled + len(accepted)] = accepted
        filled += len(accepted)
        rejected_in_a_row = 0 if len(accepted) else rejected_in_a_row + rows
        if rejected_in_a_row > _MOST_REJECTIONS:
            raise broken_source(f"{rejected_in_a_row} candidates in a row were rejected")
    return samples


@dataclass(frozen=True)
class _Proposal:
    """What the candidates of one variance parameter share."""

    gamma_squared: Fraction
    envelope: Envelope
    block_bits: int  # log2 w, 0 to 46
    steepness: float  # 1 / (2 gamma^2), rounded


def _proposal(gamma_squared: Fraction) -> _Proposal:
    numerator, denominator = gamma_squared.as_integer_ratio()
    if denominator > numerator << 100:
        steepness = _LARGEST_STEEPNESS
    else:  # int / int is correctly rounded, however many digits
        steepness = denominator / (2 * numerator)
    steps, exponent = grid(gamma_squared)
    return _Proposal(gamma_squared, envelope(steps, exponent), block_bits(exponent), steepness)


def _rows_to_propose(wanted: int, acceptance: float) -> int:
    """Candidates that yield `wanted` samples nearly always, as far as one batch goes."""
    spare = 4 * math.sqrt(wanted * (1 - acceptance)) + 2
    return max(_FEWEST_ROWS, min(_ROWS_PER_BATCH, int((wanted + spare) / acceptance)))


def _accepted_candidates(rows: int, proposal: _Proposal, source: RandomBytes) -> np.ndarray:
    """The accepted ones of `rows` candidates, in order: int64[at most rows]."""
    slots, x = _candidates(rows, proposal, source)
    is_accepted = slots < proposal.envelope.n_sure
    open_rows = (~is_accepted).nonzero()[0]
    open_slots, open_x = slots[open_rows], x[open_rows]
    digits = np.frombuffer(source(_ACCEPTANCE_BITS // 8 * len(open_rows)), dtype="<u4")

    heights = proposal.envelope.heights[open_slots - proposal.envelope.n_sure]
    is_below, is_undecided = _fast_acceptance(digits, heights, open_x, proposal)
    for i in is_undecided.nonzero()[0]:
        uniform = Uniform(int(digits[i]), _ACCEPTANCE_BITS, source)
        exponent, scale = _exponent(int(open_x[i]), proposal), proposal.envelope.slots_at_zero
        is_below[i] = uniform.is_below_exp_minus(exponent, scale, int(heights[i]))
    is_accepted[open_rows] = is_below

    for i in (open_slots >= _FIRST_TAIL_SLOT).nonzero()[0]:
        if digits[i] < 2 ** (_ACCEPTANCE_BITS - _TAIL_BITS):
            row, is_right = open_rows[i], open_slots[i] == _FIRST_TAIL_SLOT
            x[row], is_accepted[row] = _tail_candidate(is_right, proposal, source)
    return x[is_accepted]


def _candidates(
    rows: int, proposal: _Proposal, source: RandomBytes
) -> tuple[np.ndarray, np.ndarray]:
    """Slots, uint16[rows], and the integers that they and random offsets name, int64[rows]."""
    bits = proposal.block_bits
    offset_bytes = 1 << (bits - 1 >> 3).bit_length() if bits else 0  # 1, 2, 4 or 8
    block = source((SLOT_BITS // 8 + offset_bytes) * rows)
    slots = np.frombuffer(block, dtype="<u2", count=rows)
    x = proposal.envelope.blocks.take(slots).astype(np.int64)
    if bits:
        x <<= bits
        offsets = np.frombuffer(block, dtype=f"<u{offset_bytes}", offset=slots.nbytes)
        x |= (offsets & (2**bits - 1)).astype(np.int64)
    return slots, x


def _fast_acceptance(
    digits: np.ndarray, heights: np.ndarray, x: np.ndarray, proposal: _Proposal
) -> tuple[np.ndarray, np.ndarray]:
    """Whether uniform reals with these first digits (integers below 2^32) are below
    c f(x) - height, and where that is uncertain.

    Unused slots, and those of the tails, are too high: they are certainly not below.
    """
    x = x.astype(np.float64)
    with np.errstate(under="ignore"):  # exp(-1000) is 0 here, well within the margin
        density = np.exp(x * x * -proposal.steepness)
    excess = digits * 2.0**-_ACCEPTANCE_BITS + heights - proposal.envelope.slots_at_zero * density
    return excess < 0, np.abs(excess) < _MARGIN


def _tail_candidate(is_right: bool, proposal: _Proposal, source: RandomBytes) -> tuple[int, bool]:
    """An integer beyond the columns of the envelope, and whether it is accepted.

    Part v = 0, 1, ... has T w integers (T the tail width), and comes up with probability
    2^-(v + 1). An integer of it is drawn and accepted with probability, in this order,

        2^-16 (the slot) 2^-8 (its digits) 2^-(v + 1) 1/(T w) (2^8 2^(v + 1) T c f(x))

    which is 2^-16/w c f(x). The last factor is at most 1 (see `envelope`).
    As K w < 416 * 2^46, T w <= 32 * 2^46 and v < 512, |x| < 2^61.
    """
    envelope, bits = proposal.envelope, proposal.block_bits
    part = _zeros_before_a_one(source)
    width = envelope.tail_width << bits  # a power of two: a word is uniform modulo it
    beyond = part * width + int.from_bytes(source(8), "little") % width
    distance = (envelope.n_blocks << bits) + beyond
    x = distance if is_right else ~distance  # the first block on the left ends at -1
    scale = envelope.tail_width * envelope.slots_at_zero << _TAIL_BITS + part + 1
    uniform = Uniform(0, 0, source)
    return x, uniform.is_below_exp_minus(_exponent(x, proposal), scale)


def _zeros_before_a_one(source: RandomBytes) -> int:
    """k with probability 2^-(k + 1), below `MOST_DIGITS`."""
    for zeros in range(0, MOST_DIGITS, 64):
        if word := int.from_bytes(source(8), "little"):
            return zeros + (word & -word).bit_length() - 1
    raise broken_source(f"{MOST_DIGITS} binary digits in a row were 0")


def _exponent(x: int, proposal: _Proposal) -> Fraction:
    return x * x / (2 * proposal.gamma_squared)


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
            f"The noise scale gamma must be below 2**52 (gamma_squared below 2**104), got "
            f"gamma_squared of at least 2**{exponent}; use a larger budget for this table, or "
            "attributes with fewer values."
        )
    return Fraction(numerator, denominator)
