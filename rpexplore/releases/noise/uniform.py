"""Random bytes of the operating system, and uniform real numbers compared exactly.

A uniform real number in [0, 1] is read digit by digit, as far as a comparison with an exponential
needs. So an event of probability exp(-y) happens with exactly that probability, y any rational.

This is the only module that names the operating system's source of random bytes.
"""

import os
from collections.abc import Callable
from fractions import Fraction
from typing import TypeAlias

from rpexplore.common.numbers import scaled_exp_bracket
from rpexplore.errors import ReleaseError

RandomBytes: TypeAlias = Callable[[int], bytes]
"""Gives n independent uniform bytes for n."""

OPERATING_SYSTEM: RandomBytes = os.urandom

MOST_DIGITS = 512  # an honest source leaves a comparison open for longer in 1 of 2^500 cases


class Uniform:
    """A uniform real number in [0, 1] of which the first `bits` binary digits are known.

    Further digits are read from the source when a comparison needs them.
    """

    def __init__(self, digits: int, bits: int, source: RandomBytes) -> None:
        self.digits, self.bits = digits, bits
        self._source = source

    def is_below_exp_minus(self, y: Fraction, scale: int = 1, height: int = 0) -> bool:
        """Whether the number is below scale exp(-y) - height, exactly; y >= 0."""
        while True:
            low, high = scaled_exp_bracket(y, scale << self.bits)
            if self.digits + 1 <= low - (height << self.bits):
                return True
            if self.digits >= high - (height << self.bits):
                return False
            self.refine()

    def refine(self) -> None:
        """Read 64 more digits. The bound on them stops a source of nothing but zeros."""
        if self.bits >= MOST_DIGITS:
            raise broken_source(f"{self.bits} digits did not decide one comparison")
        self.digits = self.digits << 64 | int.from_bytes(self._source(8), "little")
        self.bits += 64


def checked_source(random_bytes: RandomBytes) -> RandomBytes:
    """The source, which refuses blocks of a wrong length, and long ones that repeat themselves or
    the one before: those of a constant or stuck source. (Honest ones do with odds of 2^-127.)"""
    latest = b""

    def source(count: int) -> bytes:
        nonlocal latest
        block = random_bytes(count)
        if len(block) != count:
            raise broken_source(f"it gave {len(block)} bytes where {count} were asked for")
        if count >= 32:
            if block[:16] in (latest, block[16:32]):
                raise broken_source("it gave the same 16 bytes twice in a row")
            latest = block[:16]
        return block

    return source


def broken_source(what: str) -> ReleaseError:
    return ReleaseError(
        f"The source of random bytes must give independent uniform bytes: {what}. No noise was "
        "returned; check the operating system's random number generator before another run."
    )
