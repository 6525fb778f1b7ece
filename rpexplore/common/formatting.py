"""Numbers as people read them: rounded to what matters, with thousands separators. And paths."""

import math
from collections.abc import Iterable, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from pathlib import Path

_MODES = {"nearest": ROUND_HALF_EVEN, "up": ROUND_CEILING, "down": ROUND_FLOOR}
_SCALES = [(10**12, "trillion"), (10**9, "billion"), (10**6, "million")]
_BYTES = [(10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB")]
_TIMES = [(86400, "day"), (3600, "hour"), (60, "minute"), (1, "second")]


def rounded(
    value: float | Fraction, digits: int = 2, mode: str = "nearest", *, zeros: bool = False
) -> str:
    """A number with so many significant digits: "24", "1,300", "0.035", "1.2e-7".

    mode: "nearest", or "up" or "down" for bounds that must stay bounds. zeros: "14.0" stays so.
    """
    if isinstance(value, float) and not math.isfinite(value):
        return "∞" if value > 0 else "unknown"
    exact = Fraction(value)
    context = Context(prec=digits, rounding=_MODES[mode])
    short = context.divide(Decimal(exact.numerator), Decimal(exact.denominator))
    if short == 0:
        return "0"
    if not -6 <= short.adjusted() < 15:
        return f"{short.normalize():.{digits - 1}e}".replace("e+", "e")
    # Whole parts stay whole: 1,298 to two digits is 1,300, not 1.3E+3.
    if zeros:
        return f"{short:,.{max(digits - 1 - short.adjusted(), 0)}f}"
    text = f"{short:,f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def describe_numbers(values: Iterable[float]) -> list[str]:
    """Numbers of a column, four significant digits each."""
    return [rounded(value, 4, zeros=True) for value in values]


def describe_share(share: float, digits: int = 2) -> str:
    """A share as a percentage: "24 %", "0.0006 %", "99.7 %"; "100 %" and "0 %" only where exact."""
    for more in range(digits, 5):
        text = rounded(100 * share, more)
        if share == 1 or text != "100":
            return f"{text} %"
    return "over 99.99 %"


def small(value: Fraction) -> str:
    """A small probability, rounded up to six digits: "1e-9", "0.001"."""
    up = Context(prec=6, rounding=ROUND_CEILING)
    short = up.divide(Decimal(value.numerator), Decimal(value.denominator))
    return f"{float(short):.6g}".replace("e-0", "e-")


def describe_count(count: int) -> str:
    """A whole number for a sentence: "67", "166,751", "about 3.4 trillion", "about 10^23"."""
    if count < 10**6:
        return f"{count:,}"
    if count >= 10**15:
        return f"about 10^{len(str(count)) - 1}"
    scale, name = next((scale, name) for scale, name in _SCALES if count >= scale)
    return f"about {rounded(Fraction(count, scale), 2)} {name}"


def capitalised(text: str) -> str:
    """A text with a capital in front, for a label or a sentence."""
    return text[:1].upper() + text[1:]


def plural(count: int, noun: str) -> str:
    """ "1 table", "67 tables", "1,200 queries", with thousands separators."""
    if count == 1:
        return f"1 {noun}"
    return f"{count:,} {noun[:-1]}ies" if noun.endswith("ry") else f"{count:,} {noun}s"


def data_size(n_bytes: float) -> str:
    """A rough amount of data: "12 MB", "0.52 GB"."""
    scale, name = next((unit for unit in _BYTES if n_bytes >= unit[0]), _BYTES[-1])
    return f"{rounded(n_bytes / scale)} {name}"


def duration(seconds: float) -> str:
    """A rough time: "1 second", "7 minutes", "2 days"."""
    scale, name = next((unit for unit in _TIMES if seconds >= 1.5 * unit[0]), _TIMES[-1])
    return plural(max(round(seconds / scale), 1), name)


def text_of_path(path: str | Path) -> str:
    """A path as text that any file can hold; file names need not be valid UTF-8."""
    return str(path).encode("utf-8", "backslashreplace").decode()


def joined(parts: Sequence[str], last: str = " and ") -> str:
    """ "a, b and c"; "" of nothing."""
    return last.join(filter(None, [", ".join(parts[:-1]), *parts[-1:]]))
