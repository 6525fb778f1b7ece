"""Comparisons: the values of one attribute that are equal to a text, at least 18, below 500, …

A value is named by what is stored or by its label, a group of values by its name. Whole numbers
and intervals have an order, and so have categories that are all numbers; no others. A comparison
that holds for a part of an interval, or of a group of whole numbers, is refused: nothing is known
of the parts.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from decimal import Decimal, InvalidOperation
from difflib import get_close_matches
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from rpexplore.common.exact_numbers import shown
from rpexplore.domain.attribute import Attribute, Bins, Categories, Integers
from rpexplore.domain.value_selection import values_by_name
from rpexplore.errors import WorkloadError

Value: TypeAlias = str | Decimal  # a text in quotation marks, or a number

EQUAL, UNEQUAL = "==", "!="
ORDERED = ("<", "<=", ">", ">=")
# The same comparison with its sides exchanged: 18 <= age is age >= 18.
MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", EQUAL: EQUAL, UNEQUAL: UNEQUAL}

_MOST_SHOWN = 4


def values_where(attribute: Attribute, operator: str, value: Value) -> np.ndarray:
    """Whether each value of the attribute compares so with `value`, bool[size].

    operator: EQUAL, UNEQUAL or one of ORDERED

    Raises `WorkloadError` for a value that the attribute does not have, an order that it does not
    have, and for an interval or a group of numbers of which the comparison holds for a part.
    """
    if operator in ORDERED:
        return _ordered(attribute, operator, value)
    among = values_among(attribute, [value])
    return among if operator == EQUAL else ~among


def values_among(attribute: Attribute, values: Iterable[Value]) -> np.ndarray:
    """Whether each value of the attribute is one of these, bool[size]; raises as above."""
    among = np.zeros(attribute.size, dtype=bool)
    for value in values:
        among[_places(attribute, value)] = True
    return among


def quoted(text: str) -> str:
    """The text in double quotation marks, doubled inside."""
    return '"' + text.replace('"', '""') + '"'


def value_names(attribute: Attribute) -> list[str]:
    """A text for each value that names it, and it alone: its label, else what is stored."""
    named = values_by_name(attribute)
    labels, stored = attribute.labels(), attribute.stored_values()
    return [
        label if named[label] == [place] else stored[place] for place, label in enumerate(labels)
    ]


def _places(attribute: Attribute, value: Value) -> Sequence[int]:
    """The values that are equal to a text or a number."""
    named = values_by_name(attribute)
    if isinstance(value, str):
        found = named.get(value, named.get(value.strip()))
        if found is None:
            raise _unknown(attribute, repr(shown(value)), value)
        return found
    if isinstance(attribute.values, Categories):
        return _numbered_categories(attribute, value)
    lows, highs, _ = bounds(attribute)
    place = bisect_right(lows, value) - 1
    if place >= 0 and value <= highs[place]:  # where an interval is open, the next one begins
        if lows[place] < highs[place]:
            raise _cut(attribute, place, EQUAL, value)
        return [place]
    raise WorkloadError(
        f"The attribute {attribute.name!r} has no value {shown(value)}; its values are "
        f"{_listed(attribute.labels(), quote=False)}."
    )


def _numbered_categories(attribute: Attribute, value: Decimal) -> Sequence[int]:
    """The category that is this number: written like it, or else of its size ("01" for 1)."""
    assert isinstance(attribute.values, Categories)
    if str(value) in (named := values_by_name(attribute)):
        return named[str(value)]
    found = _numbered(attribute).get(value, [])
    if not found:
        raise _unknown(attribute, shown(value), shown(value))
    if len(found) > 1:
        texts = [attribute.values.values[place] for place in found]
        raise WorkloadError(
            f"The number {shown(value)} could be {_listed(texts)} of attribute "
            f"{attribute.name!r}; write the value as a text in quotation marks."
        )
    return found


@lru_cache(maxsize=64)
def _numbered(attribute: Attribute) -> dict[Decimal, list[int]]:
    """The places of the categories that a number may mean: what is stored goes before labels."""
    assert isinstance(attribute.values, Categories)
    by_label: dict[Decimal, list[int]] = {}
    by_value: dict[Decimal, list[int]] = {}
    for found, texts in ((by_label, attribute.values.labels), (by_value, attribute.values.values)):
        for place, text in enumerate(texts):
            if (number := _number(text)) is not None:
                found.setdefault(number, []).append(place)
    return by_label | by_value


def _ordered(attribute: Attribute, operator: str, value: Value) -> np.ndarray:
    in_categories = isinstance(attribute.values, Categories)
    numbers = _numbers_of_categories(attribute) if in_categories else []
    if isinstance(value, str):
        remedy = "leave out the quotation marks" if _number(value) is not None else "write a number"
        raise WorkloadError(
            f"The attribute {attribute.name!r} must be compared by {operator} with a number, got "
            f"the text {shown(value)!r}; {remedy}."
        )
    # > holds where <= does not, and >= where < does not.
    strictly = operator in ("<", ">=")
    if in_categories:
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
        lows = [values.minimum + place * values.step for place in range(size)]
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
    if usable:
        why = "its values are stored as other numbers than their labels show"
    else:
        other = values.labels[labels.index(None)]
        why = f"its value {shown(other)!r} is not a number"
    example = ", ".join(map(quoted, value_names(attribute)[:2]))
    raise WorkloadError(
        f"The attribute {attribute.name!r} has no order, since {why}; list the values, such as "
        f"in ({example})."
    )


def _cut(attribute: Attribute, place: int, operator: str, value: Decimal) -> WorkloadError:
    """The refusal of a comparison that cuts through a value, with those that do not."""
    lows, highs, closed = bounds(attribute)
    label = attribute.values.label(place)
    low, high = plain(lows[place]), plain(highs[place])
    last = place == attribute.size - 1
    upto = ("<=", ">") if closed[place] else ("<", ">=")
    if operator in ("<", "<="):
        remedies = [f"< {low}"] * (place > 0) + [f"{upto[0]} {high}"]
    elif operator in (">", ">="):
        remedies = [f">= {low}"] + [f"{upto[1]} {high}"] * (not last)
    else:
        remedies = [f"{EQUAL} {quoted(label)}"]
    reach = f"from {low} to {high}" if closed[place] else f"from {low} to under {high}"
    return WorkloadError(
        f"{operator} {shown(value)} cuts through the value {label!r} of attribute "
        f"{attribute.name!r}, which reaches {reach} and is counted as a whole; write "
        f"{' or '.join(remedies)}."
    )


def _unknown(attribute: Attribute, got: str, text: str) -> WorkloadError:
    names = [*values_by_name(attribute)]
    alike = {name.casefold(): name for name in names}.get(text.strip().casefold())
    close = [alike] if alike is not None else get_close_matches(text, names, n=1)
    meant = f"did you mean {shown(close[0])!r}?" if close else ""
    known = f"its values are {_listed(attribute.labels())}."
    return WorkloadError(f"The attribute {attribute.name!r} has no value {got}; {meant or known}")


def _listed(labels: Sequence[str], *, quote: bool = True) -> str:
    """ "'a', 'b' and 'c'" or "'a', 'b', … and 'z'"."""
    if len(labels) > _MOST_SHOWN:
        labels = [*labels[: _MOST_SHOWN - 2], "…", labels[-1]]
    texts = [repr(shown(label)) if quote and label != "…" else shown(label) for label in labels]
    return " and ".join(filter(None, [", ".join(texts[:-1]), texts[-1]]))


def _number(text: str) -> Decimal | None:
    """The finite number that a text is, None for anything else."""
    try:
        number = Decimal(text.strip()) if "_" not in text else Decimal("NaN")
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def plain(number: Decimal) -> str:
    """A number as it is typed: "18", "0.5"; "1E-30" where that would be very long."""
    return f"{number:f}".removesuffix(".0") if abs(number.adjusted()) < 20 else str(number)
