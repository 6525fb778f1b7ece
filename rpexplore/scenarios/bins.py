"""The bins of a numeric attribute: equal ones, own edges, neighbours merged, one split."""

import math
import re
from collections.abc import Sequence
from fractions import Fraction

import pandas as pd

from rpexplore.common.json_fields import refusing
from rpexplore.common.numbers import shown
from rpexplore.common.text import plural, with_decimal_point
from rpexplore.domain.attribute import MAX_SIZE
from rpexplore.domain.ordered_values import Bins, Dates, Integers
from rpexplore.errors import DomainError

Numeric = Integers | Bins


def limits(values: Numeric) -> tuple[float, float, float]:
    """Lowest value, highest value and width of the first bin."""
    if isinstance(values, Integers):
        return values.minimum, values.maximum, values.step
    first, second, *_ = values.edges
    return first, values.edges[-1], second - first


def equal_bins(lowest: float, highest: float, width: float, *, whole: bool) -> Numeric:
    """Bins of one width; the last one is shorter where the width does not divide the range.

    whole: of whole numbers from lowest to highest, both included.

    Raises `DomainError` for limits or a width that make no bins.
    """
    for noun, value in (("lowest value", lowest), ("highest value", highest), ("width", width)):
        if not math.isfinite(value):
            raise DomainError(f"The {noun} must be a finite number, got {value:g}.")
        if whole and not float(value).is_integer():
            raise DomainError(f"The {noun} of whole numbers must be whole, got {value:g}.")
    if width <= 0:
        raise DomainError(f"The width must be above 0, got {width:g}.")
    if whole:
        return Integers(int(lowest), int(highest), int(width))
    if highest <= lowest:
        raise DomainError(
            f"The highest value must be above the lowest, got {lowest:g} … {highest:g}."
        )
    # A float stands for the decimal it prints as, so that the edges are 0.1, 0.2, 0.3.
    start, end, step = (Fraction(repr(float(limit))) for limit in (lowest, highest, width))
    count = math.ceil((end - start) / step)
    if count > MAX_SIZE:
        raise DomainError(
            f"These would be {count:,} bins, and an attribute has at most {MAX_SIZE:,}; make them "
            "wider."
        )
    return Bins((*(float(start + index * step) for index in range(count)), float(end)))


def bins_from_text(text: str) -> Bins:
    """Bins from typed edges, separated by commas, semicolons, blanks or lines.

    Beside semicolons a comma is a decimal one: "0; 0,5; 1".
    """
    separators = r"[;\s]+" if ";" in text else r"[,\s]+"
    return bins_of_texts([part for part in re.split(separators, text) if part])


def bins_of_texts(edges: Sequence[str]) -> Bins:
    """Bins from the texts of their edges; raises `DomainError` naming one that is no number."""
    numbers = []
    for text in edges:
        with refusing(DomainError, "An edge cannot be used"):
            text = with_decimal_point(text)
        try:
            numbers.append(float(text))
        except ValueError:
            raise DomainError(f"An edge must be a number, got {shown(text)!r}.") from None
    return Bins(tuple(numbers))


def dates_from_text(text: str, form: str = "") -> Dates:
    """Dates from typed edges, separated by commas, semicolons, blanks or lines."""
    edges = tuple(part for part in re.split(r"[,;\s]+", text) if part)
    return Dates(edges=edges, format=form)


def edge_texts(bins: Bins) -> list[str]:
    """The edges as people write them; `bins_of_texts` undoes it exactly."""
    return [f"{edge:g}" if float(f"{edge:g}") == edge else repr(edge) for edge in bins.edges]


def as_bins(values: Numeric) -> Bins:
    """The same values as intervals, which need not all be of one width."""
    if isinstance(values, Bins):
        return values
    starts = [float(start) for start in range(values.minimum, values.maximum + 1, values.step)]
    # The last interval includes its right edge, and an interval needs two edges.
    last = float(values.maximum) if values.maximum > starts[-1] else values.maximum + 1.0
    return Bins((*starts, last), values.missing, values.recode, are_whole=True)


def merged(values: Numeric, first: int, last: int) -> Bins:
    """The bins in which those from number `first` to number `last` (from 1) have become one."""
    edges = as_bins(values).edges
    _check_number(first, values)
    _check_number(last, values)
    if not first < last:
        raise DomainError(f"Name two different bins, the lower one first, got {first} and {last}.")
    joined = edges[:first] + edges[last:]
    if isinstance(values, Integers) and joined[-2] < values.maximum:
        joined = (*joined[:-1], values.maximum)  # no longer an interval for one number alone
    return Bins(joined, values.missing, values.recode, _are_whole(values))


def split(values: Numeric, number: int, at: float) -> Bins:
    """The bins in which that of this number (from 1) ends at `at`, and another one begins there."""
    edges = as_bins(values).edges
    _check_number(number, values)
    left, right = edges[number - 1], edges[number]
    if isinstance(values, Integers):
        if values.label(number - 1) == f"{left:g}":
            raise DomainError(f"Bin {number} is the single number {left:g} and cannot be split.")
        if not float(at).is_integer():
            raise DomainError(f"Whole numbers are split at a whole number, got {at:g}.")
    if not left < at < right:
        raise DomainError(f"Bin {number} can be split between {left:g} and {right:g}, got {at:g}.")
    edges = (*edges[:number], float(at), *edges[number:])
    are_whole = _are_whole(values) and float(at).is_integer()
    return Bins(edges, values.missing, values.recode, are_whole)


def widened(values: Numeric | Dates | None, changed: Numeric | Dates) -> str:
    """What else would be a value now, in a sentence; "" if nothing would."""
    if not (isinstance(values, Integers) and isinstance(changed, Bins)):
        return ""
    highest = changed.edges[-1]
    if highest != values.maximum + 1:
        return ""
    return f"An interval needs two edges; the last one would also take {highest:g}."


def middle(values: Numeric, number: int) -> float:
    """The middle of a bin, whole where its edges are."""
    left, right = as_bins(values).edges[number - 1 : number + 1]
    half = (left + right) / 2
    whole = math.ceil(half)
    return float(whole) if left.is_integer() and right.is_integer() and whole < right else half


def numbered(values: Numeric | Dates, most: int) -> pd.DataFrame:
    """The first bins: number (from 1) and label."""
    labels = [values.label(index) for index in range(values.size)[:most]]
    return pd.DataFrame({"bin": range(1, len(labels) + 1), "label": labels})


def describe(values: Numeric | Dates) -> str:
    """ "20 bins: 0 to 4, 5 to 9, …, 95 to 99."""
    size = values.size
    shown = [values.label(index) for index in range(size if size <= 4 else 2)]
    more = ["…", values.label(size - 1)] if size > 4 else []
    return f"{plural(size, 'bin')}: {', '.join([*shown, *more])}."


def _are_whole(values: Numeric) -> bool:
    return isinstance(values, Integers) or values.are_whole


def _check_number(number: int, values: Numeric) -> None:
    if not 1 <= number <= values.size:
        raise DomainError(f"The bins have the numbers 1 to {values.size:,}, got {number:,}.")
