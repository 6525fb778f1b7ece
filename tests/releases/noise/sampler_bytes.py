"""Bytes for the sampler, and what it must make of them by definition."""

import random
from fractions import Fraction

import mpmath

from rpexplore.releases.noise import discrete_gaussian as sampling
from rpexplore.releases.noise.discrete_gaussian import LARGEST_GAMMA

SCALES = [
    Fraction(1, 10**400),
    Fraction(1, 20),
    Fraction(1),
    Fraction(103, 10),
    Fraction(123456789012, 10**12) * 97**2,
    Fraction(4097),
    Fraction(10**6) + Fraction(1, 3),
    Fraction(10**10, 7),
    Fraction(10**20),
    Fraction(LARGEST_GAMMA**2 * 10**30 - 1, 10**30),
]


class Stream:
    """A finite source of bytes: repeatable pseudorandom ones, or given ones."""

    def __init__(self, content: bytes) -> None:
        self.content, self.position, self.calls = content, 0, 0

    @classmethod
    def repeatable(cls, name: str, length: int = 2**20) -> "Stream":
        return cls(random.Random(name).randbytes(length))

    def __call__(self, count: int) -> bytes:
        block = self.content[self.position : self.position + count]
        self.position += len(block)
        self.calls += 1
        return block


def density(x: int, gamma_squared: Fraction) -> mpmath.mpf:
    exponent = Fraction(x * x) / (2 * gamma_squared)
    return mpmath.exp(-mpmath.mpf(exponent.numerator) / exponent.denominator)


def layout(gamma_squared: Fraction) -> tuple[int, int]:
    """(w, bytes of an offset), from gamma alone: gamma / w is in [32, 64) where w is above 1."""
    width = 1
    while width**2 * 64**2 <= gamma_squared:
        width *= 2
    return width, next(n for n in (0, 1, 2, 4, 8) if 256**n >= width)


def candidates(words: list[int], offsets: list[int], gamma_squared: Fraction) -> bytes:
    """What the source must give for these slots and offsets."""
    _, size = layout(gamma_squared)
    given = [word.to_bytes(2, "little") for word in words]
    return b"".join(given + [offset.to_bytes(size, "little") for offset in offsets if size])


@mpmath.workdps(60)
def accepted_by_definition(rows: int, content: bytes, gamma_squared: Fraction) -> list[int]:
    """One candidate at a time, with 60-digit arithmetic; without tails and further digits."""
    tables = sampling._proposal(gamma_squared).envelope
    width, size = layout(gamma_squared)
    words = [int.from_bytes(content[2 * i : 2 * i + 2], "little") for i in range(rows)]
    starts = range(2 * rows, (2 + size) * rows, size) if size else [0] * rows
    offsets = [int.from_bytes(content[start : start + size], "little") for start in starts]
    following = content[(2 + size) * rows :]
    accepted = []
    for word, offset in zip(words, offsets, strict=True):
        x = int(tables.blocks[word]) * width + offset % width
        if word < tables.n_sure:
            accepted.append(x)
            continue
        digits, following = int.from_bytes(following[:4], "little"), following[4:]
        height = int(tables.heights[word - tables.n_sure])
        if height + mpmath.mpf(digits) / 2**32 < tables.slots_at_zero * density(x, gamma_squared):
            accepted.append(x)
    return accepted


def content_of_open_slots(rows: int, gamma_squared: Fraction) -> bytes:
    """Random candidates none of which is sure, nor in a tail."""
    numbers = random.Random("open")
    n_sure = sampling._proposal(gamma_squared).envelope.n_sure
    words = [numbers.randrange(n_sure, 2**16 - 2) for _ in range(rows)]
    offsets = [numbers.randrange(256 ** layout(gamma_squared)[1]) for _ in range(rows)]
    return candidates(words, offsets, gamma_squared) + numbers.randbytes(2**16)
