"""Exact numbers: rationals from what people write, and back to text."""

import math
import operator
import re
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from numbers import Rational
from typing import TypeAlias

import numpy as np

from rpexplore.errors import BudgetError

Exact: TypeAlias = int | float | str | Decimal | Fraction

_RATIO = re.compile(r"[+-]?[0-9]+/[0-9]+")
_MAX_EXPONENT = 400  # as a Fraction, "1e-999999999" would fill the memory


def exact_fraction(value: Exact, name: str) -> Fraction:
    """The number meant by `value`; a float stands for the decimal it prints as, so 0.1 is 1/10.

    Strings may be "0.5", "1e-9" or "1/3". `name` is what the BudgetError calls the value.
    """
    try:
        if isinstance(value, bool) or (isinstance(value, str) and "_" in value):
            raise ValueError  # Python alone would read "1_5" as 15
        if isinstance(value, Rational):  # int, Fraction, numpy's integers
            return Fraction(int(value.numerator), int(value.denominator))
        if isinstance(value, str) and _RATIO.fullmatch(value.strip()):
            return Fraction(value.strip())
        # float.__repr__, because numpy's float64 is a float that prints as "np.float64(0.1)"
        decimal = Decimal(float.__repr__(value) if isinstance(value, float) else value)
        if not decimal.is_finite() or (decimal and abs(decimal.adjusted()) > _MAX_EXPONENT):
            raise ValueError
        return Fraction(decimal) if decimal else Fraction(0)
    except (TypeError, ValueError, ZeroDivisionError, InvalidOperation):
        raise BudgetError(
            f"{name} must be a finite number, got {shown(value)}; write it like 0.5, 1e-9 or 1/3 "
            f"(powers of ten up to {_MAX_EXPONENT})."
        ) from None


def exact_text(value: Fraction) -> str:
    """A rational as a plain decimal where it is one ("0.125"), else as a ratio ("1/3")."""
    denominator = value.denominator
    places = 0
    while denominator % 10 == 0:
        denominator //= 10
        places += 1
    for prime in (2, 5):
        while denominator % prime == 0:
            denominator //= prime
            places += 1
    if denominator != 1:
        return f"{value.numerator}/{value.denominator}"
    scaled = value.numerator * 10**places // value.denominator
    whole, fraction = divmod(abs(scaled), 10**places)
    sign = "-" if scaled < 0 else ""
    digits = f"{fraction:0{places}d}".rstrip("0") if places else ""
    return f"{sign}{whole}.{digits}" if digits else f"{sign}{whole}"


def float_at_least(value: Fraction | Decimal) -> float:
    """The least float that is at least `value`, both exactly and as the decimal it prints as."""
    exact, result = type(value), float(value)
    while exact(result) < value or exact(repr(result)) < value:
        result = math.nextafter(result, math.inf)
    return result


def whole_number(value: object) -> int | None:
    """The value as an int if it is a whole number, numpy's included; None for anything else."""
    if isinstance(value, bool | np.bool_):
        return None
    try:
        return operator.index(value)  # pyright: ignore[reportArgumentType] (that is the question)
    except TypeError:
        return None


def shown(value: object) -> str:
    """A refused value for an error message, cut where it is long."""
    try:
        text = str(value)
    except ValueError:  # Python does not print integers of more than 4,300 digits
        return "a number of thousands of digits"
    return text if len(text) <= 40 else f"{text[:37]}..."
