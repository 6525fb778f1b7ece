"""The stepped envelope under which discrete Gaussian noise is drawn: tables, no randomness.

Write f(x) = exp(-x^2/(2 gamma^2)). The integers are cut into blocks of w = 2^block_bits; block b
holds b w, ..., b w + w - 1. Over block b stands a column of H_b slots, each 1/c high, the j-th
covering heights j/c to (j + 1)/c, where

    H_b >= c f(x)         for every x of the block: the column covers the density;
    j + 1 <= c f(x)       for every x of the block, if the slot is called sure.

All columns, -K <= b < K, with two slots for the tails beyond them and some for nothing, are
2^16 slots. `discrete_gaussian` draws one of them, all alike, and an offset in its block.

So that few tables serve every gamma, gamma is known by a grid: steps <= gamma / 2^exponent <
steps + 1, with 64 <= steps < 128 (fewer where gamma is below 1/4). H_b is computed for the upper
end of that interval, which has the larger f, and what is sure for the lower end. In units of
blocks the tables depend on nothing else: gamma / w is between 32 and 64, where blocks are wider
than one integer.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from rpexplore.common.numerics import read_only

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
