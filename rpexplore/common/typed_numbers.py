"""Numbers as people type them, maybe with a decimal comma."""

import re

from rpexplore.common.exact_numbers import exact_fraction, shown
from rpexplore.errors import BudgetError, RpexploreError

_DECIMAL_COMMA = re.compile(r"([+-]?[0-9]*),([0-9]+)((?:[eE][+-]?[0-9]+)?)")


def with_decimal_point(typed: str) -> str:
    """A typed number with a decimal comma as one with a point: "1,5" is "1.5".

    Other texts stay as they are. Raises `BudgetError` for one such as "1,500", which may be either.
    """
    match = _DECIMAL_COMMA.fullmatch(typed.strip())
    if match is None:
        return typed
    whole, decimals, exponent = match.groups()
    if len(decimals) == 3 and re.fullmatch("[+-]?[1-9][0-9]{0,2}", whole):
        raise BudgetError(
            f"The number {typed.strip()} may mean {whole}{decimals} or {whole}.{decimals}; write "
            "it without a comma."
        )
    return f"{whole}.{decimals}{exponent}"


def number_of(
    typed: str,
    name: str = "This field",
    *,
    least: float | None = None,
    most: float | None = None,
) -> float | None:
    """The number that was typed; None for a blank text, `RpexploreError` for what is no number."""
    if not typed.strip():
        return None
    try:
        number = float(exact_fraction(with_decimal_point(typed), name))
    except OverflowError:
        raise RpexploreError(f"{name} must be at most 1e308, got {shown(typed)}.") from None
    if least is not None and number < least:
        raise RpexploreError(f"{name} must be at least {number_text(least)}, got {shown(typed)}.")
    if most is not None and number > most:
        raise RpexploreError(f"{name} must be at most {number_text(most)}, got {shown(typed)}.")
    return number


def needed_number_of(typed: str, name: str, **limits: float) -> float:
    """`number_of` a text that may not be blank."""
    number = number_of(typed, name, **limits)
    if number is None:
        raise RpexploreError(f"{name} must be a number; type one, such as 2 or 0.5.")
    return number


def number_text(number: float | None) -> str:
    """The text that `number_of` reads as this number."""
    return "" if number is None else repr(float(number)).removesuffix(".0")
