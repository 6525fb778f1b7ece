"""Comparisons of an attribute's values with a text or a number, and the ages that texts name."""

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from datetime import date
from decimal import Decimal, InvalidOperation
from difflib import get_close_matches
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from rpexplore.common.numbers import shown
from rpexplore.common.text import joined
from rpexplore.domain.attribute import Attribute
from rpexplore.domain.categories import Categories
from rpexplore.domain.dates import stated_day
from rpexplore.domain.levels import Level
from rpexplore.domain.ordered_values import Bins, Dates, Integers
from rpexplore.domain.values import selected_values, values_by_name
from rpexplore.errors import DomainError, WorkloadError
from rpexplore.workload.table_text import in_quotes

# ---- Comparisons: the values of one attribute that are equal to a text, at least 18, below 500, …
#
# A value is named by what is stored or by its label, a group of values by its name. Whole numbers,
# intervals and dates have an order, and so have categories that are all numbers; no others. A
# comparison that holds for a part of an interval, or of a group of whole numbers or days, is
# refused: nothing is known of the parts. Days are texts such as "2026-01-31", and compared as
# ordinals; "2026-01" stands for all its days.


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


def groups_where(attribute: Attribute, level: Level, operator: str, value: Value) -> np.ndarray:
    """Whether each value of the attribute is in a group of a level that compares like this.

    A group is named as the level has it, or by its range of values: "65-69" for "65 to 69". Where
    the groups are ranges of values that have an order, they have it too: `age@five-year >= 65-69`;
    a number is compared with the values themselves then.

    Args:
        operator: EQUAL, UNEQUAL or one of ORDERED

    Returns:
        bool[size], by the attribute's values.

    Raises:
        WorkloadError: For a group that the level does not have, an order that groups do not have,
            and a number that cuts through a group.
    """
    at_level = attribute.at_level(level)
    groups = np.array(at_level.index_of_values)
    if isinstance(value, str) and value.strip() not in values_by_name(at_level):
        value = _group_of_values(attribute, level, value)
    are_numbers = isinstance(value, Decimal) and None not in map(_number, level.labels)
    if operator not in ORDERED or are_numbers:
        return values_where(at_level, operator, value)[groups]
    if isinstance(value, Decimal):
        holds = values_where(attribute, operator, value)
        partly = np.isin(groups, groups[holds]) & ~holds
        if partly.any():
            raise WorkloadError(
                f"{operator} {shown(value)} holds for a part of the group "
                f"{level.groups[int(np.argmax(partly))]!r} of {at_level.name!r}; compare with a "
                f"group, or compare the values: {attribute.name} {operator} {shown(value)}."
            )
        return holds
    is_ordered = np.arange(attribute.size) < attribute.n_ordered
    order = np.flatnonzero(is_ordered)
    has_order = not isinstance(attribute.values, Categories)
    if not has_order and all(_number(text) is not None for text in attribute.stored_values()):
        has_order = True
        order = np.argsort(np.array(numbers_of_categories(attribute)), kind="stable")
    runs = 1 + np.count_nonzero(np.diff(groups[order]))
    ranks = np.full(attribute.size, -1)
    ranks[order] = np.concatenate([[0], np.cumsum(np.diff(groups[order]) != 0)])
    at = ranks[values_where(at_level, EQUAL, value)[groups]]
    mixed = set(groups[~is_ordered].tolist()) & set(groups[order].tolist())
    if not has_order or runs != len(set(groups[order].tolist())) or mixed or at[0] < 0:
        texts = [*map(in_quotes, level.labels[:3]), *(["…"] if len(level.labels) > 3 else [])]
        raise WorkloadError(
            f"The groups of {at_level.name!r} have no order in which {shown(value)!r} could be "
            f"compared by {operator}; name the groups, as in ({', '.join(texts)})."
        )
    below = ranks < at[0] if operator in ("<", ">=") else ranks <= at[0]
    return below & (ranks >= 0) if operator in ("<", "<=") else ~below & (ranks >= 0)


def _group_of_values(attribute: Attribute, level: Level, text: str) -> str:
    """The name of the group that holds just the values of a text such as 65-69; else the text."""
    try:
        named = set(selected_values(attribute, text))
    except DomainError:
        return text
    group = level.groups[min(named)]
    return group if named == {i for i, of in enumerate(level.groups) if of == group} else text


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
        if indices is None and isinstance(attribute.values, Dates):
            low, high = (_ordinal(attribute, EQUAL, value, is_last=last) for last in (False, True))
            is_from, is_to = _ordered(attribute, ">=", value), _ordered(attribute, "<=", value)
            indices = np.flatnonzero(is_from & is_to).tolist()
            if low > high or not indices:
                raise _unknown(attribute, repr(shown(value)), value)
        if indices is None:
            raise _unknown(attribute, repr(shown(value)), value)
        return indices
    if isinstance(attribute.values, Categories):
        return _equal_categories(attribute, attribute.values, value)
    if isinstance(attribute.values, Dates):
        return _equal_values(attribute, shown(value))  # a year
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
    numbers = numbers_of_categories(attribute) if isinstance(values, Categories) else None
    if isinstance(values, Dates):
        value = _ordinal(attribute, operator, value, is_last=operator in ("<=", ">"))
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
    # What is missing is neither below a number nor above it.
    is_ordered = np.arange(attribute.size) < attribute.n_ordered
    return below if operator in ("<", "<=") else ~below & is_ordered


def _ordinal(attribute: Attribute, operator: str, value: Value, *, is_last: bool) -> Decimal:
    """A day that values are compared with, as a number; a year may be a number itself."""
    text = value if isinstance(value, str) else shown(value)
    try:
        return Decimal(stated_day(text, is_last=is_last).toordinal())
    except DomainError:
        raise WorkloadError(
            f"The attribute {attribute.name!r} must be compared by {operator} with a day in "
            f'quotation marks, such as "{attribute.values.label(0)[:10]}", got {shown(value)!r}.'
        ) from None


@lru_cache(maxsize=64)
def bounds(attribute: Attribute) -> tuple[list[Decimal], list[Decimal], list[bool]]:
    """The least and the largest number of each value, and whether the largest belongs to it.

    For whole numbers, intervals, and days as ordinals.
    """
    values, size = attribute.values, attribute.n_ordered
    if isinstance(values, Integers):
        lows = [values.minimum + index * values.step for index in range(size)]
        highs = [*(low - 1 for low in lows[1:]), values.maximum]
        return [*map(Decimal, lows)], [*map(Decimal, highs)], [True] * size
    if isinstance(values, Dates):
        lows = [*map(Decimal, values.starts)]
        highs = [*(low - 1 for low in lows[1:]), Decimal(values.last.toordinal())]
        return lows, highs, [True] * size
    assert isinstance(values, Bins)
    # The decimals that the edges print as are what people mean by them.
    edges = [Decimal(repr(edge)) for edge in values.edges]
    return edges[:-1], edges[1:], [*[False] * (size - 1), True]


@lru_cache(maxsize=64)
def numbers_of_categories(attribute: Attribute) -> list[Decimal]:
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
    low, high = limit_text(attribute, lows[index]), limit_text(attribute, highs[index])
    if operator == EQUAL:
        remedies = [f"{EQUAL} {in_quotes(label)}"]
    elif operator in ("<", "<="):
        remedies = [f"{'<=' if closed[index] else '<'} {high}"]
        if index > 0:
            remedies.insert(0, f"< {low}")
    else:
        remedies = [f">= {low}"]
        if index < attribute.n_ordered - 1:
            remedies.append(f"{'>' if closed[index] else '>='} {high}")
    end = high if closed[index] else f"under {high}"
    got = limit_text(attribute, value) if isinstance(attribute.values, Dates) else shown(value)
    return WorkloadError(
        f"{operator} {got} cuts through the value {label!r} of attribute "
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


def limit_text(attribute: Attribute, number: Decimal) -> str:
    """An end of a value, as of `bounds`, as conditions have it: 18, or "2026-01-31"."""
    if isinstance(attribute.values, Dates):
        return in_quotes(date.fromordinal(int(number)).isoformat())
    return decimal_text(number)


# ---- Ages that the texts of categories name, such as "18 and over".
#
# What is not surely understood names none: a wrong age would count people in the wrong category.


_NONE = (0, -1)

# Signs of comparison, by the one that they are replaced by.
_SIGNS = (
    ("[<‹＜]=|=[<‹＜]|[⩽≦]", "≤"),
    ("[>›＞]=|=[>›＞]|[⩾≧]", "≥"),
    ("[‹＜]", "<"),
    ("[›＞]", ">"),
)
# Words by an age, in the order in which they are replaced by < ≤ ≥ >.
_UNDER = "(?:under|below|before|less|fewer|lower|younger|<)"
_OVER = "(?:over|above|after|more|greater|higher|older|beyond|exceeding|>)"
_JOINED = r"(?:\band\b|\bor\b|&)\W*"  # "18 and over", yet not "18 and under 65"
_WORDS = (
    (r"^(?:older|younger) (?!than|age)[a-z]+", ""),  # "older adults 65-74" bounds nothing
    (r"\b(?:lt|u) ?(?=\d)", "<"),  # as in the codes Y_LT15 and U18
    (r"\ble ?(?=\d)", "≤"),
    (r"\bge ?(?=\d)", "≥"),
    (r"\bgt ?(?=\d)", ">"),
    (rf"\bnot?\s+{_OVER}|{_UNDER}(?: than)? or equal", "≤"),
    (rf"\bnot?\s+{_UNDER}|{_OVER}(?: than)? or equal", "≥"),
    (r"(?<=\d) up ?to (?=\d)", " to "),
    (rf"up ?to|at most|maximum|{_JOINED}{_UNDER}(?!.*\d)", "≤"),
    (r"from(?= (?:the )?(?:ages? )?(?:of )?\d)", "≥"),
    (rf"\+|plus|at least|minimum|{_JOINED}{_OVER}(?!.*\d)", "≥"),
    (r"(?<![a-z])(?:up|upwards?|onwards?)(?![a-z])", "≥"),
    (_UNDER, "<"),
    (_OVER, ">"),
)
_AGE = r"\d{1,3}"
_COMPARED = re.compile(rf"({_AGE}) ?([<≤≥>]) ?(?=[a-z])")  # 17 < age
_TURNED = str.maketrans("<≤≥>", ">≥≤<")
_INTERVAL = re.compile(rf"\[ ?({_AGE}) ?[,;] ?({_AGE}|\+?inf\w*|\+?∞)? ?([\])\[])")
_NO_AGES = re.compile(r"\d[.,]\d|\d{4}|[<≤≥>]$")  # or a sign that bounds nothing
# Words that turn an age into another, or leave open whether it is one of those that are meant.
_UNCLEAR = re.compile(
    r"\b(?:not?|non|except\w*|exclu\w*|without|minus|until|till|since|born|birth|months?|weeks?"
    r"|days?)\b"
)
_FILLERS = frozenset(
    [
        "age",
        "aged",
        "ages",
        "exactly",
        "group",
        "of",
        "old",
        "than",
        "y",
        "year",
        "years",
        "yr",
        "yrs",
    ]
)
_OF_LISTS = frozenset(["and", "but", "or", ",", ";", "/", "&"])
_OF_RANGES = frozenset(["t", "through", "thru", "to", *"-‐‑‒–—―−~"])
_BOUNDED = frozenset(["and", "but", "t", "through", "thru", "to", "&"])  # "18 and under 65"


def ages_of(text: str) -> tuple[int, float]:
    """The first and the last age that a text names: (15, 24) of "15 to 24"; (0, −1) of none.

    A bound before its age leaves it out ("over 17"), one behind it does not ("18 and over").

    Example:
        >>> ages_of("Under 18 years"), ages_of("75+"), ages_of("[15, 25)"), ages_of("until 18")
        ((0, 17), (75, inf), (15, 24), (0, -1))
    """
    text = re.sub(r"(?<=\d)_(?=\d)", "-", text.casefold())
    text = re.sub(r"[\s_]+", " ", text).strip()
    if interval := _INTERVAL.fullmatch(text):
        first, last, bracket = interval.groups()
        if last is None or not last.isdigit():
            return int(first), math.inf
        return _range(int(first), int(last) - (bracket != "]"))
    for pattern, sign in _SIGNS:
        text = re.sub(pattern, sign, text)
    text = _COMPARED.sub(lambda found: f"{found[2].translate(_TURNED)}{found[1]} ", text)
    if _NO_AGES.search(text):
        return _NONE
    for pattern, sign in _WORDS:
        text = re.sub(pattern, sign, text)
    if _UNCLEAR.search(text):
        return _NONE
    parts = re.split(_AGE, text)
    match [int(age) for age in re.findall(_AGE, text)]:
        case [first, last]:
            return _ages_between(first, last, *parts)
        case [age]:
            return _ages_from(age, *parts)
    return _NONE


def _range(first: int, last: int) -> tuple[int, float]:
    return (first, last) if first <= last else _NONE


def _ages_between(
    first: int, last: int, before: str, between: str, behind: str
) -> tuple[int, float]:
    """The ages of two numbers, with what stands before, between and behind them."""
    is_bounded = bool(_signs(before))
    if len(_signs(between)) > 1:  # the first sign is of the first age: "18 and over, under 65"
        between, is_bounded = re.sub("^[^<≤≥>]*[≥>]", "", between), True
    lower, upper = _signs(before)[-1:], _signs(between)
    words = set(re.findall(r"[^\W\d]+|[^\w\s().<≤≥>]", between)) - _FILLERS
    is_list = "or" in words or bool(words & _OF_LISTS and not upper and "between" not in before)
    # The first number may be a code, as in "1 Under 18" and "1 - under 18"; not so in "18-<65".
    is_joined = first == 0 or is_bounded or words & _BOUNDED or between[:-1] in _OF_RANGES
    if (
        lower not in ("", "≥", ">")
        or upper not in ("", "≤", "<")
        or _signs(behind) not in ("", "≤")
        or words - _OF_LISTS - _OF_RANGES
        or not (is_joined if upper else words)
        or (is_list and (upper or last != first + 1))  # "17 or 18" is a range, "90 and 95" is none
    ):
        return _NONE
    return _range(first + (lower == ">"), last - (upper == "<"))


def _ages_from(age: int, before: str, behind: str) -> tuple[int, float]:
    """The ages of one number, with what stands before and behind it."""
    signs = _signs(before + behind)
    if set(signs) & set("<≤") and set(signs) & set("≥>"):
        return _NONE
    if not signs:
        words = {*re.findall(r"[^\W\d]+|[^\w\s().:=]", before + behind)} - _FILLERS
        return _NONE if words else (age, age)
    bound = _signs(behind)[-1:]
    sign = bound if bound in ("≤", "≥") else _signs(before)[-1:]
    if not sign:  # "1 younger people", where the number may be a code
        return _NONE
    if sign in ("≥", ">"):
        return age + (sign == ">"), math.inf
    return 0, age - (sign == "<")


def _signs(text: str) -> str:
    return re.sub("[^<≤≥>]", "", text)
