"""Numbers: exact rationals and decimals, read-only arrays, normal quantiles, conic programs."""

import json
import math
import operator
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, InvalidOperation
from fractions import Fraction
from functools import cached_property
from numbers import Rational
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from rpexplore.errors import BudgetError, ReleaseError, RpexploreError, WorkloadError

if TYPE_CHECKING:
    import cvxpy


# ---- Exact numbers: rationals from what people write and back, and long lists of exact decimals.
#
# Noise scales must be exact (the privacy accounting runs on them) and readable in a file: each is
# digits · 10^exponent with at most 18 digits (`Decimals`), so that the text in a plan file *is* the
# number, and arithmetic on whole lists stays in integers.


Exact: TypeAlias = int | float | str | Decimal | Fraction

_RATIO = re.compile(r"[+-]?[0-9]+/[0-9]+")
_MAX_EXPONENT = 400  # as a Fraction, "1e-999999999" would fill the memory

SIGNIFICANT_DIGITS = 12
_PLAIN_DECIMAL = re.compile(r"([0-9]+)(?:\.([0-9]+))?")
_LARGEST_EXPONENT = 290  # floats hold it with all digits


def exact_fraction(value: Exact, name: str) -> Fraction:
    """The number meant by `value`; a float stands for the decimal it prints as, so 0.1 is 1/10.

    Strings may be "0.5", "1e-9" or "1/3". `name` is what the BudgetError calls the value.
    """
    try:
        if isinstance(value, bool):
            raise ValueError
        if isinstance(value, str) and ("_" in value or not value.strip().isascii()):
            raise ValueError  # Python alone would read "1_5" as 15, and digits of any script
        if isinstance(value, Rational):  # int, Fraction, numpy's integers
            return Fraction(int(value.numerator), int(value.denominator))
        if isinstance(value, str) and _RATIO.fullmatch(value.strip()):
            return Fraction(value.strip())
        # float.__repr__, because numpy's float64 is a float that prints as "np.float64(0.1)"
        decimal = Decimal(float.__repr__(value) if isinstance(value, float) else _plain(value))
        if not decimal.is_finite() or (decimal and abs(decimal.adjusted()) > _MAX_EXPONENT):
            raise ValueError
        return Fraction(decimal) if decimal else Fraction(0)
    except (TypeError, ValueError, ZeroDivisionError, InvalidOperation):
        raise BudgetError(
            f"{name} must be a finite number, got {shown(value)}; write it like 0.5, 1e-9 or 1/3 "
            f"(powers of ten up to {_MAX_EXPONENT})."
        ) from None


def exact_share(value: Exact, name: str) -> Fraction:
    """`exact_fraction`, where a text may also be in per cent: "20%" and "20 %" are 1/5."""
    text = value.strip() if isinstance(value, str) else ""
    if not text.endswith("%"):
        return exact_fraction(value, name)
    return exact_fraction(text.removesuffix("%").strip(), name) / 100


def positive_rational(value: object, name: str, rounding: str) -> Fraction:
    """An int or Fraction above 0 as a Fraction of Python's integers; numpy's would overflow.

    For what must be exact where it comes from. `name` is what the ReleaseError calls the value,
    `rounding` ("upwards") how to convert what is refused.
    """
    if not isinstance(value, int | Fraction):
        raise ReleaseError(
            f"{name} must be a Fraction, so that the privacy cost is exact, got "
            f"{type(value).__name__}; convert it, {rounding}."
        )
    exact = Fraction(int(value.numerator), int(value.denominator))
    if exact <= 0:
        raise ReleaseError(f"{name} must be above 0, got {shown(exact)}; pass a positive number.")
    return exact


def _plain(value: Any) -> Any:
    """A short float of numpy as the text it prints as; anything else as it is."""
    return str(value) if isinstance(value, np.floating) else value


def exact_text(value: Fraction) -> str:
    """A rational as a plain decimal where it is one ("0.125"), else as a ratio ("1/3")."""
    n_twos, n_fives = (value.denominator & -value.denominator).bit_length() - 1, 0
    rest = value.denominator >> n_twos
    while rest % 5 == 0:
        rest, n_fives = rest // 5, n_fives + 1
    # By Decimal: Python does not print integers of more than 4,300 digits.
    if rest > 1:
        return f"{Decimal(value.numerator):f}/{Decimal(value.denominator):f}"
    places = max(n_twos, n_fives)
    digits = f"{Decimal(abs(value.numerator) * 10**places // value.denominator):f}"
    digits = digits.rjust(places + 1, "0")
    whole, decimals = digits[: len(digits) - places], digits[len(digits) - places :]
    return f"{'-' * (value < 0)}{whole}{'.' * (places > 0)}{decimals}"


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


def shown_value(value: object) -> str:
    """A refused value for an error message, as a file has it: null, true, 'a text', [1, 2]."""
    if isinstance(value, str):
        return shown(repr(value))
    try:
        return shown(json.dumps(value, ensure_ascii=False))
    except (TypeError, ValueError):  # a value of a program, or an integer of thousands of digits
        return shown(value)


_FEW = 4  # names in a message


def shown_few(texts: Sequence[str]) -> str:
    """Names for a message, quoted: "'a', 'b'", "'a', 'b', 'c', 'd' and 3 more"."""
    listed = ", ".join(repr(shown(text)) for text in texts[:_FEW])
    return f"{listed} and {len(texts) - _FEW:,} more" if len(texts) > _FEW else listed


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
        object.__setattr__(self, "digits", read_only(digits))
        object.__setattr__(self, "exponents", read_only(exponents))

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
        """From plain decimal texts such as "12.5"; `RpexploreError` names the first bad one."""
        digits = np.empty(len(texts), dtype=np.int64)
        exponents = np.empty(len(texts), dtype=np.int64)
        for index, text in enumerate(texts):
            match = _PLAIN_DECIMAL.fullmatch(text) if isinstance(text, str) else None
            if match is None:
                raise RpexploreError(
                    'A number must be a plain decimal text such as "12.5", got '
                    f"{shown_value(text)}."
                )
            whole, fraction = match[1], match[2] or ""
            number = (whole + fraction).rstrip("0")
            exponents[index] = len(whole) - len(number)
            number = number.lstrip("0")
            if not 1 <= len(number) <= 18 or abs(exponents[index]) > _LARGEST_EXPONENT:
                raise RpexploreError(
                    "A number must be positive, with at most 18 significant digits and a size that "
                    f"floats hold, got {shown_value(text)}."
                )
            digits[index] = int(number)
        return cls(digits, exponents)

    @classmethod
    def joined(cls, first: "Decimals", others: "Decimals") -> "Decimals":
        """The numbers of both, one behind the other."""
        return cls(
            np.concatenate([first.digits, others.digits]),
            np.concatenate([first.exponents, others.exponents]),
        )

    def __len__(self) -> int:
        return len(self.digits)

    def __getitem__(self, indices: np.ndarray) -> "Decimals":
        """The numbers at these indices."""
        return Decimals(self.digits[indices], self.exponents[indices])

    def texts(self) -> list[str]:
        """Plain decimal texts [n]; `parse` undoes this exactly."""
        pairs = zip(self.digits.tolist(), self.exponents.tolist(), strict=True)
        return [format(Decimal(digits).scaleb(exponent), "f") for digits, exponent in pairs]

    @cached_property
    def floats(self) -> np.ndarray:
        """As floats, off by at most two units in the last place: float64[n], read-only."""
        powers = 10.0 ** np.abs(self.exponents).astype(float)
        return read_only(np.where(self.exponents < 0, self.digits / powers, self.digits * powers))

    def fraction(self, index: int) -> Fraction:
        """One of the numbers as an exact rational."""
        digits, exponent = int(self.digits[index]), int(self.exponents[index])
        return Fraction(digits * 10 ** max(exponent, 0), 10 ** max(-exponent, 0))

    def on_common_exponent(self) -> tuple[np.ndarray, int]:
        """Python integers N[n] (dtype object) and an exponent e with value[i] = N[i] · 10^e."""
        lowest = int(self.exponents.min(initial=0))
        factors = [10**shift for shift in range(int((self.exponents - lowest).max(initial=0)) + 1)]
        shifts = np.array(factors, dtype=object)[self.exponents - lowest]
        return self.digits.astype(object) * shifts, lowest


def scaled_exp_bracket(y: Fraction, scale: int) -> tuple[int, int]:
    """Integers low <= scale exp(-y) <= high, rarely more than 1 apart; y >= 0, scale >= 1."""
    bits = scale.bit_length()
    if y >= bits:
        return 0, 1  # without computing exp of what may be an enormous number
    precision = bits // 3 + 20  # 10^-precision is far below 1/scale
    down = Context(prec=precision, rounding=ROUND_FLOOR)
    up = Context(prec=precision, rounding=ROUND_CEILING)
    numerator, denominator = Decimal(-y.numerator), Decimal(y.denominator)
    # Context.exp is correctly rounded, to nearest: the true value is within one step.
    low = down.next_minus(down.exp(down.divide(numerator, denominator)))
    high = up.next_plus(up.exp(up.divide(numerator, denominator)))
    return math.floor(Fraction(low) * scale), math.ceil(Fraction(high) * scale)


# ---- Numerics: read-only arrays, the normal quantile, conic programs by Clarabel, through CVXPY.


_TOLERANCE = 1e-10  # that the conic solver is asked for, relative
_AT_ONCE = 1 << 20  # numbers of a slab


def read_only(array: np.ndarray) -> np.ndarray:
    """The array itself, which can no longer be written to."""
    array.setflags(write=False)
    return array


def scattered_bits(values: np.ndarray) -> np.ndarray:
    """64-bit whole numbers scattered over all of these, one to one, uint64 (SplitMix64)."""
    mixed = values.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def distinct_rows(columns: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """First position of each distinct row of columns, in order, and each row's index among them.

    Floats are the same if their bits are, so 0 and −0 are two; but all NaN are one.
    """
    bits = [
        np.where(np.isnan(column), np.nan, column).view(np.int64)
        if column.dtype == float
        else column.astype(np.int64)
        for column in columns
    ]
    keys = np.zeros(len(bits[0]), dtype=np.uint64)
    for column in bits:
        keys = scattered_bits(keys + column.view(np.uint64))
    first, of_rows = _distinct(keys)
    if any(np.any(column[first][of_rows] != column) for column in bits):
        # Two rows with one key, as somebody could make them.
        rows = np.column_stack(bits).view(f"V{8 * len(bits)}").ravel().tolist()
        numbers = {row: number for number, row in enumerate(dict.fromkeys(rows))}
        return _distinct(np.array([numbers[row] for row in rows]))
    return first, of_rows


def _distinct(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`distinct_rows` of one column."""
    if not len(keys):
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    order = np.argsort(keys)  # a stable one would take five times as long
    is_new = np.append(True, np.diff(keys[order]) != 0)
    first = np.minimum.reduceat(order, np.flatnonzero(is_new))
    by_first = np.argsort(first)
    numbers = np.empty(len(first), dtype=np.int64)
    numbers[by_first] = np.arange(len(first))
    of_rows = np.empty(len(keys), dtype=np.int64)
    of_rows[order] = numbers[np.cumsum(is_new) - 1]
    return first[by_first], of_rows


def normal_quantile(confidence: float) -> float:
    """z with P(|N(0,1)| ≤ z) = confidence; `WorkloadError` unless 0 < confidence < 1."""
    if not 0 < confidence < 1:
        raise WorkloadError(
            f"The confidence must lie between 0 and 1, got {confidence}; 0.95 is usual."
        )
    # Here, as `rpexplore --help` would load it for nothing.
    from scipy.special import ndtri

    return float(-ndtri((1 - confidence) / 2))


def smallest_value(problem: "cvxpy.Problem", *, within: float) -> float | None:
    """The optimal value of a problem, found to a relative accuracy of `within` at least.

    None if the solver did not get there. The values of the variables and of the constraints' dual
    variables are then in the problem. Its numbers should be near 1.
    """
    import cvxpy
    from cvxpy.error import DCPError

    names = ("tol_gap_abs", "tol_gap_rel", "tol_feas")
    reduced: dict[str, Any] = {f"reduced_{name}": within for name in names}
    with warnings.catch_warnings():
        # "The solution may be inaccurate": by no more than `within`, or it is not taken.
        warnings.simplefilter("ignore", UserWarning)
        # Asked for too much it may lose its way; asked for enough, it stops before.
        for tolerance in (min(_TOLERANCE, within), within):
            options = dict.fromkeys(names, tolerance) | reduced
            try:
                value = problem.solve(solver=cvxpy.CLARABEL, **options)
            except (DCPError, cvxpy.SolverError, ValueError):
                continue
            if problem.status in (cvxpy.OPTIMAL, cvxpy.OPTIMAL_INACCURATE):
                return float(value)  # pyright: ignore[reportArgumentType]
    return None


def matrix_along(matrix: np.ndarray, values: np.ndarray, axis: int) -> np.ndarray:
    """matrix · values along an axis, which then has an entry for each row of the matrix."""
    axis %= values.ndim

    def apply(part: np.ndarray) -> np.ndarray:
        return np.moveaxis(np.tensordot(matrix, part, (1, axis)), 0, axis)

    return in_slabs(apply, values, axis)


def in_slabs(
    apply: Callable[[np.ndarray], np.ndarray], values: np.ndarray, axis: int
) -> np.ndarray:
    """Apply a function to an array along an axis, slab by slab of another axis.

    So it takes no more memory than the result and little beside. The function may change the length
    of the axis.
    """
    axis %= values.ndim
    other = 0 if axis else values.ndim - 1
    step = max(1, _AT_ONCE * values.shape[other] // max(values.size, 1))
    if axis == other or step >= values.shape[other]:
        return apply(values)
    result = np.empty(0)
    for start in range(0, values.shape[other], step):
        slab = (*(slice(None),) * other, slice(start, start + step))
        part = apply(values[slab])
        if not start:
            shape = list(values.shape)
            shape[axis] = part.shape[axis]
            result = np.empty(shape, part.dtype)
        result[slab] = part
    return result
