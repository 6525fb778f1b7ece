"""Numbers that look random and follow from a seed: the same input gives the same figures.

They make up records, and draw what is not known. None of them protects anybody: the noise of a
release comes from the operating system (`releases.noise`). The numbers are the output of SHAKE-256,
so that they are the same in every version of every library.
"""

import hashlib

import numpy as np


class SeededNumbers:
    """A sequence of numbers that follows from a seed."""

    def __init__(self, seed: bytes) -> None:
        self._seed, self._calls = seed, 0

    def uniforms(self, count: int) -> np.ndarray:
        """Multiples of 2⁻²⁴ in [0, 1), float32[count]."""
        bits = np.frombuffer(self._bytes(4 * count), dtype="<u4")
        return (bits >> 8).astype(np.float32) * np.float32(2.0**-24)

    def normals(self, count: int) -> np.ndarray:
        """Standard normal numbers by the method of Box and Muller, float64[count]."""
        half = (count + 1) // 2
        radius = np.sqrt(-2 * np.log1p(-self.uniforms(half).astype(float)))
        angle = 2 * np.pi * self.uniforms(half).astype(float)
        return np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])[:count]

    def permutation(self, count: int) -> np.ndarray:
        """The numbers below `count` in an arbitrary order, int64[count]."""
        return np.argsort(np.frombuffer(self._bytes(8 * count), dtype="<u8"), kind="stable")

    def systematic(self, count: int) -> np.ndarray:
        """One number in each of `count` equal parts of [0, 1), in an arbitrary order, float64."""
        start = float(self.uniforms(1)[0])
        return (self.permutation(count) + start) / max(count, 1)

    def _bytes(self, count: int) -> bytes:
        self._calls += 1
        text = self._seed + self._calls.to_bytes(8, "little")
        return hashlib.shake_256(text).digest(count)
