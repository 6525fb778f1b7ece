"""Bases of runs of values: single values, prefixes, ranges and windows."""

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np

from rpexplore.common.numbers import whole_number
from rpexplore.common.text import plural
from rpexplore.domain.attribute import MAX_SIZE, Attribute
from rpexplore.errors import WorkloadError
from rpexplore.workload.bases.base import Basis, Intervals, Operator, SingleValues

# ---- Identity: the single values of an attribute.


@dataclass(frozen=True)
class Identity(Basis):
    """Each value by itself: n queries about n values. The basis of marginals.

    Example:
        >>> import rpexplore as rp
        >>> rp.Identity().n_rows(rp.Attribute("age", rp.Integers(0, 99)))
        100
    """

    kind = "identity"
    title = "single values"
    option_help = "identity (single values)"
    text_forms = ("identity",)
    min_values = 1
    max_values = MAX_SIZE
    is_identity = True
    ends_with_values = True

    def operator(self, attribute: Attribute) -> Operator:
        return SingleValues(attribute.size)

    def row_label(self, attribute: Attribute) -> Callable[[int], str]:
        return attribute.values.label

    def suffix(self, attribute: Attribute) -> str:
        return ""


# ---- Prefix: cumulative sums of an attribute's values.


@dataclass(frozen=True)
class Prefix(Basis):
    """Cumulative: all values up to each one, n queries about n values.

    Example:
        >>> import rpexplore as rp
        >>> age = rp.Attribute("age", rp.Integers(0, 99))
        >>> [rp.Prefix().row_label(age)(row) for row in (0, 17, 99)]
        ['≤ 0', '≤ 17', '≤ 99']
    """

    kind = "prefix"
    title = "cumulative"
    option_help = "prefix (cumulative: all up to each value)"
    text_forms = ("prefix",)
    sums_neighbours = True

    def operator(self, attribute: Attribute) -> Operator:
        last = np.arange(attribute.size)
        first = np.where(last < attribute.n_ordered, 0, last)  # a missing value stands for itself
        return Intervals(first, last, attribute.size)

    def row_label(self, attribute: Attribute) -> Callable[[int], str]:
        return attribute.values.up_to_label

    def describe(self, attribute: Attribute) -> str:
        return "cumulative: up to each value"

    def limit(self, name: str, up_to: str, letters: Iterator[str]) -> str:
        return f"{name}{up_to}{next(letters)}"


# ---- Ranges: sums of all runs of consecutive values.


@dataclass(frozen=True)
class Ranges(Basis):
    """Every range of consecutive values: n (n + 1) / 2 queries about n values.

    Rows go from value 0 to 0, 1, …, then from value 1 to 1, 2, … Missing values of numbers come
    last, each by itself.

    Example:
        >>> import rpexplore as rp
        >>> rp.Ranges().n_rows(rp.Attribute("age", rp.Integers(0, 99)))
        5050
    """

    kind = "ranges"
    title = "ranges"
    option_help = "ranges (every range of values)"
    text_forms = ("ranges",)
    sums_neighbours = True
    is_triangle = True

    def n_rows(self, attribute: Attribute) -> int:
        return _first_row(attribute, attribute.n_ordered) + attribute.size - attribute.n_ordered

    def operator(self, attribute: Attribute) -> Operator:
        first, last = np.triu_indices(attribute.n_ordered)
        missing = np.arange(attribute.n_ordered, attribute.size)
        first, last = np.append(first, missing), np.append(last, missing)
        return Intervals(first, last, attribute.size)

    def row_label(self, attribute: Attribute) -> Callable[[int], str]:
        n = attribute.n_ordered
        starts = [_first_row(attribute, first) for first in range(n)]
        n_ranges = _first_row(attribute, n)

        def label(row: int) -> str:
            if row >= n_ranges:
                return attribute.values.label(n + row - n_ranges)
            first = bisect_right(starts, row) - 1
            return attribute.values.range_label(first, first + row - starts[first])

        return label

    def describe(self, attribute: Attribute) -> str:
        return "ranges: every range of values"

    def example_rows(self, attribute: Attribute) -> list[int]:
        n = attribute.n_ordered
        pairs = ((n // 4, n // 2), (0, n // 3), (n // 2, n - 1))
        return [_first_row(attribute, first) + last - first for first, last in pairs]

    def limit(self, name: str, up_to: str, letters: Iterator[str]) -> str:
        return f"{name} from {next(letters)} to {next(letters)}"


def _first_row(attribute: Attribute, first: int) -> int:
    """The row of the range that holds one value, this one."""
    return first * attribute.n_ordered - first * (first - 1) // 2


# ---- Windows: moving sums of an attribute's values.


@dataclass(frozen=True)
class Windows(Basis):
    """Moving sums: each value with the `width` − 1 values before it, fewer at the start.

    Raises `WorkloadError` for a width that is no whole number of at least 1.

    Example:
        >>> import rpexplore as rp
        >>> age = rp.Attribute("age", rp.Integers(0, 99))
        >>> [rp.Windows(5).row_label(age)(row) for row in (0, 2, 10)]
        ['0', '0 to 2', '6 to 10']
    """

    width: int

    kind = "windows"
    title = "moving sums"
    option_help = "windows:5 (moving sums of 5 values)"
    text_forms = ("windows:WIDTH",)
    parameter = "number"
    parameter_title = "How many values are summed"
    min_values = 3
    sums_neighbours = True

    def __post_init__(self) -> None:
        width = whole_number(self.width)
        if width is None or width < 1:
            raise WorkloadError(
                f"The width of moving sums must be a whole number of at least 1, got "
                f"{self.width!r}."
            )
        object.__setattr__(self, "width", width)

    def operator(self, attribute: Attribute) -> Operator:
        last = np.arange(attribute.size)
        width = min(self.width, attribute.size)  # any larger one need not fit into 64 bits
        first = np.maximum(last - width + 1, 0)
        first = np.where(last < attribute.n_ordered, first, last)
        return Intervals(first, last, attribute.size)

    def row_label(self, attribute: Attribute) -> Callable[[int], str]:
        def label(row: int) -> str:
            first = max(row - self.width + 1, 0) if row < attribute.n_ordered else row
            return attribute.values.range_label(first, row)

        return label

    def parameter_text(self) -> str:
        return str(self.width)

    @classmethod
    def from_parameter(cls, text: str) -> Self:
        if not text.strip().isdecimal():
            raise WorkloadError(
                f"The width of moving sums must be a whole number of at least 1, got {text!r}; "
                "write for example 5."
            )
        return cls(int(text))

    @classmethod
    def default(cls, attribute: Attribute) -> Self:
        return cls(min(5, attribute.size - 1))

    def describe(self, attribute: Attribute) -> str:
        if self.width >= attribute.n_ordered:
            return Prefix().describe(attribute)
        return f"moving sums of {self.width:,} values" if self.width > 1 else "single values"

    def suffix(self, attribute: Attribute) -> str:
        if self.width >= attribute.n_ordered:
            return Prefix().suffix(attribute)
        return f"moving sums of {self.width:,}"

    def limit(self, name: str, up_to: str, letters: Iterator[str]) -> str:
        return f"{name} in the {plural(self.width, 'value')} up to {next(letters)}"
