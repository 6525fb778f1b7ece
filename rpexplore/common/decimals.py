"""Decimals: a long list of exact positive decimal numbers.

Noise scales must be exact (the privacy accounting runs on them), readable in a file, and there
may be a million of them. A number is digits · 10^exponent with at most 18 digits, so the text
in a plan file *is* the number, and arithmetic on whole lists stays in integers.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property

import numpy as np

SIGNIFICANT_DIGITS = 12
_PATTERN = re.compile(r"([0-9]+)(?:\.([0-9]+))?")
_LARGEST_EXPONENT = 290  # floats hold it with all digits


@dataclass(frozen=True, eq=False)
class Decimals:
    """digits[i] · 10^exponents[i]; both int64[n], read-only, in lowest form (no trailing zeros)."""

    digits: np.ndarray
    exponents: np.ndarray

    def __post_init__(self) -> None:
        digits = np.array(self.digits, dtype=np.int64)
        exponents = np.array(self.exponents, dtype=np.int64)
        if digits.shape != exponents.shape or np.any(digits <= 0):
            raise ValueError("digits and exponents must have one length, and digits be positive")
        while np.any(trailing := digits % 10 == 0):
            digits[trailing] //= 10
            exponents[trailing] += 1
        digits.setflags(write=False)
        exponents.setflags(write=False)
        object.__setattr__(self, "digits", digits)
        object.__setattr__(self, "exponents", exponents)

    @classmethod
    def rounded_up(cls, values: np.ndarray) -> "Decimals":
        """Positive floats [n] rounded up to 12 significant digits.

        Up to float error: a value that is within 1e-15 (relative) of a decimal becomes that
        decimal. Whoever needs a bound checks it exactly afterwards, as the planner does.
        """
        exponents = np.floor(np.log10(values)).astype(np.int64) - (SIGNIFICANT_DIGITS - 1)
        scaled = values * 10.0 ** -exponents.astype(float)
        return cls(np.ceil(scaled * (1 - 1e-15)).astype(np.int64), exponents)

    @classmethod
    def parse(cls, texts: Sequence[str]) -> "Decimals":
        """From plain decimal texts such as "12.5"; `ValueError` names the first bad one."""
        digits = np.empty(len(texts), dtype=np.int64)
        exponents = np.empty(len(texts), dtype=np.int64)
        for place, text in enumerate(texts):
            match = _PATTERN.fullmatch(text) if isinstance(text, str) else None
            if match is None:
                raise ValueError(f'must be a plain decimal text such as "12.5", got {text!r}')
            whole, fraction = match[1], match[2] or ""
            number = (whole + fraction).rstrip("0")
            exponents[place] = len(whole) - len(number)
            number = number.lstrip("0")
            if not 1 <= len(number) <= 18 or abs(exponents[place]) > _LARGEST_EXPONENT:
                raise ValueError(
                    "must be positive, with at most 18 significant digits and a size that floats "
                    f"hold, got {text if len(text) < 50 else text[:40] + '…'!r}"
                )
            digits[place] = int(number)
        return cls(digits, exponents)

    def __len__(self) -> int:
        return len(self.digits)

    def texts(self) -> list[str]:
        """Plain decimal texts [n]; `parse` undoes this exactly."""
        pairs = zip(self.digits.tolist(), self.exponents.tolist(), strict=True)
        return [format(Decimal(digits).scaleb(exponent), "f") for digits, exponent in pairs]

    @cached_property
    def floats(self) -> np.ndarray:
        """As floats, off by at most two units in the last place: float64[n], read-only."""
        powers = 10.0 ** np.abs(self.exponents).astype(float)
        floats = np.where(self.exponents < 0, self.digits / powers, self.digits * powers)
        floats.setflags(write=False)
        return floats

    def fraction(self, place: int) -> Fraction:
        """One of the numbers as an exact rational."""
        digits, exponent = int(self.digits[place]), int(self.exponents[place])
        return Fraction(digits * 10 ** max(exponent, 0), 10 ** max(-exponent, 0))

    def on_common_exponent(self) -> tuple[np.ndarray, int]:
        """Python integers N[n] (dtype object) and an exponent e with value[i] = N[i] · 10^e."""
        lowest = int(self.exponents.min(initial=0))
        factors = [10**shift for shift in range(int((self.exponents - lowest).max(initial=0)) + 1)]
        shifts = np.array(factors, dtype=object)[self.exponents - lowest]
        return self.digits.astype(object) * shifts, lowest
