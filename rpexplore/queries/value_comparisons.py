"""Comparisons: the values of one attribute that are equal to a text, at least 18, below 500, …

A value is named by what is stored or by its label, a group of values by its name. Whole numbers
and intervals have an order, and so have categories that are all numbers; no others. A comparison
that holds for a part of an interval, or of a group of whole numbers, is refused: nothing is known
of the parts.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from difflib import get_close_matches
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from rpexplore.common.exact_numbers import shown
from rpexplore.common.formatting import joined
from rpexplore.domain.attribute import Attribute, Bins, Categories, Integers
from rpexplore.domain.value_selection import values_by_name
from rpexplore.errors import WorkloadError
from rpexplore.workload.table_text import in_quotes

Value: TypeAlias = str | Decimal  # a text in quotation marks, or a number

EQUAL, UNEQUAL = "==", "!="
ORDERED = ("<", "<=", ">", ">=")
# The same comparison with its sides exchanged: 18 <= age is age >= 18.
MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", EQUAL: EQUAL, UNEQUAL: UNEQUAL}


def values_where(attribute: Attribute, operator: str, value: Value) -> np.ndarray:
    """Whether each value of the attribute compares like this with `value`, bool[size].

    operator: EQUAL, UNEQUAL or one of ORDERED

    Raises `WorkloadError` for a value that the attribute does not have, an order that it does not
    have, and for an interval or a group of numbers of which the comparison holds for a part.
    """
    if operator in ORDERED:
        return _ordered(attribute, operator, value)
    equal = np.zeros(attribute.size, dtype=bool)
    equal[_equal_values(attribute, value)] = True
    return equal if operator == EQUAL else ~equal


def value_names(attribute: Attribute) -> list[str]:
    """A text for each value that names it, and it alone: its label, else what is stored."""
    names = values_by_name(attribute)
    labels, stored = attribute.labels(), attribute.stored_values()
    return [
        label if names[label] == [index] else stored[index] for index, label in enumerate(labels)
    ]


def _equal_values(attribute: Attribute, value: Value) -> Sequence[int]:
    """The indices of the values that are equal to a text or a number."""
    if isinstance(value, str):
        names = values_by_name(attribute)
        indices = names.get(value, names.get(value.strip()))
        if indices is None:
            raise _unknown(attribute, repr(shown(value)), value)
        return indices
    if isinstance(attribute.values, Categories):
        return _equal_categories(attribute, attribute.values, value)
    lows, highs, _ = bounds(attribute)
    index = bisect_right(lows, value) - 1
    if index < 0 or value > highs[index]:  # where an interval is open, the next one begins
        raise WorkloadError(
            f"The attribute {attribute.name!r} has no value {shown(value)}; its values are "
            f"{_listed(attribute.labels())}."
        )
    if lows[index] < highs[index]:
        raise _cut(attribute, index, EQUAL, value)
    return [index]


def _equal_categories(attribute: Attribute, values: Categories, value: Decimal) -> Sequence[int]:
    """The category that is this number: written like it, or else of its size ("01" for 1)."""
    if str(value) in (names := values_by_name(attribute)):
        return names[str(value)]
    indices = _categories_by_number(values).get(value, [])
    if not indices:
        raise _unknown(attribute, shown(value), shown(value))
    if len(indices) > 1:
        raise WorkloadError(
            f"The number {shown(value)} could be "
            f"{_listed([repr(values.values[index]) for index in indices])} of attribute "
            f"{attribute.name!r}; write the value as a text in quotation marks."
        )
    return indices


@lru_cache(maxsize=64)
def _categories_by_number(values: Categories) -> dict[Decimal, list[int]]:
    """The categories that a number may mean: what is stored goes before labels."""
    by_label: dict[Decimal, list[int]] = {}
    by_value: dict[Decimal, list[int]] = {}
    for indices, texts in ((by_label, values.labels), (by_value, values.values)):
        for index, text in enumerate(texts):
            if (number := _number(text)) is not None:
                indices.setdefault(number, []).append(index)
    return by_label | by_value


def _ordered(attribute: Attribute, operator: str, value: Value) -> np.ndarray:
    values = attribute.values
    numbers = _numbers_of_categories(attribute) if isinstance(values, Categories) else None
    if isinstance(value, str):
        remedy = "leave out the quotation marks" if _number(value) is not None else "write a number"
        raise WorkloadError(
            f"The attribute {attribute.name!r} must be compared by {operator} with a number, got "
            f"the text {shown(value)!r}; {remedy}."
        )
    # > holds where <= does not, and >= where < does not.
    strictly = operator in ("<", ">=")
    if numbers is not None:
        below = np.array([number < value if strictly else number <= value for number in numbers])
    else:
        lows, highs, closed = bounds(attribute)
        count = bisect_left(lows, value) if strictly else bisect_right(lows, value)
        # These values begin where the comparison holds; only the last may end where it does not.
        last = count - 1
        if count and (highs[last] > value or (highs[last] == value and strictly and closed[last])):
            raise _cut(attribute, last, operator, value)
        below = np.arange(attribute.size) < count
    return below if operator in ("<", "<=") else ~below


@lru_cache(maxsize=64)
def bounds(attribute: Attribute) -> tuple[list[Decimal], list[Decimal], list[bool]]:
    """The least and the largest number of each value, and whether the largest belongs to it.

    For whole numbers and intervals.
    """
    values, size = attribute.values, attribute.size
    if isinstance(values, Integers):
        lows = [values.minimum + index * values.step for index in range(size)]
        highs = [*(low - 1 for low in lows[1:]), values.maximum]
        return [*map(Decimal, lows)], [*map(Decimal, highs)], [True] * size
    assert isinstance(values, Bins)
    # The decimals that the edges print as are what people mean by them.
    edges = [Decimal(repr(edge)) for edge in values.edges]
    return edges[:-1], edges[1:], [*[False] * (size - 1), True]


@lru_cache(maxsize=64)
def _numbers_of_categories(attribute: Attribute) -> list[Decimal]:
    """The categories as numbers; refused where they are none, or their labels are other ones."""
    values = attribute.values
    assert isinstance(values, Categories)
    stored, labels = [*map(_number, values.values)], [*map(_number, values.labels)]
    usable = [
        [number for number in numbers if number is not None]
        for numbers in (stored, labels)
        if None not in numbers
    ]
    if len(usable) == 1 or (usable and stored == labels):
        return usable[0]
    reason = "its values are stored as other numbers than their labels show"
    if not usable:
        reason = f"its value {shown(values.labels[labels.index(None)])!r} is not a number"
    example = ", ".join(map(in_quotes, value_names(attribute)[:2]))
    raise WorkloadError(
        f"The attribute {attribute.name!r} has no order, since {reason}; list the values, such as "
        f"in ({example})."
    )


def _cut(attribute: Attribute, index: int, operator: str, value: Decimal) -> WorkloadError:
    """The refusal of a comparison that cuts through a value, with those that do not."""
    lows, highs, closed = bounds(attribute)
    label = attribute.values.label(index)
    low, high = decimal_text(lows[index]), decimal_text(highs[index])
    if operator == EQUAL:
        remedies = [f"{EQUAL} {in_quotes(label)}"]
    elif operator in ("<", "<="):
        remedies = [f"{'<=' if closed[index] else '<'} {high}"]
        if index > 0:
            remedies.insert(0, f"< {low}")
    else:
        remedies = [f">= {low}"]
        if index < attribute.size - 1:
            remedies.append(f"{'>' if closed[index] else '>='} {high}")
    end = high if closed[index] else f"under {high}"
    return WorkloadError(
        f"{operator} {shown(value)} cuts through the value {label!r} of attribute "
        f"{attribute.name!r}, which reaches from {low} to {end} and is counted as a whole; write "
        f"{' or '.join(remedies)}."
    )


def _unknown(attribute: Attribute, got: str, text: str) -> WorkloadError:
    by_folded = {name.casefold(): name for name in values_by_name(attribute)}
    close = get_close_matches(text.strip().casefold(), by_folded, n=1)
    advice = f"its values are {_listed([*map(repr, map(shown, attribute.labels()))])}."
    if close:
        advice = f"did you mean {shown(by_folded[close[0]])!r}?"
    return WorkloadError(f"The attribute {attribute.name!r} has no value {got}; {advice}")


def _listed(texts: Sequence[str]) -> str:
    """ "a, b and c" or "a, b, … and z"."""
    return joined(texts if len(texts) <= 4 else [*texts[:2], "…", texts[-1]])


def _number(text: str) -> Decimal | None:
    """The finite number that a text is, None for anything else."""
    try:
        number = Decimal(text.strip()) if "_" not in text else Decimal("NaN")
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def decimal_text(number: Decimal) -> str:
    """A number as it is typed: "18", "0.5"; "1E-30" where that would be very long."""
    return f"{number:f}".removesuffix(".0") if abs(number.adjusted()) < 20 else str(number)
