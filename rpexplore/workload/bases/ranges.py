"""Ranges: sums of all runs of consecutive values."""

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from rpexplore.domain.attribute import Attribute
from rpexplore.workload.bases.base import Basis
from rpexplore.workload.bases.operators import Intervals, Operator


@dataclass(frozen=True)
class Ranges(Basis):
    """Every range of consecutive values: n (n + 1) / 2 queries about n values.

    Rows go from value 0 to 0, 1, …, then from value 1 to 1, 2, …

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
        return attribute.size * (attribute.size + 1) // 2

    def operator(self, attribute: Attribute) -> Operator:
        return Intervals(*np.triu_indices(attribute.size), attribute.size)

    def row_label(self, attribute: Attribute) -> Callable[[int], str]:
        starts = [_first_row(attribute, first) for first in range(attribute.size)]

        def label(row: int) -> str:
            first = bisect_right(starts, row) - 1
            return attribute.values.range_label(first, first + row - starts[first])

        return label

    def describe(self, attribute: Attribute) -> str:
        return "ranges: every range of values"

    def example_rows(self, attribute: Attribute) -> list[int]:
        n = attribute.size
        pairs = ((n // 4, n // 2), (0, n // 3), (n // 2, n - 1))
        return [_first_row(attribute, first) + last - first for first, last in pairs]

    def limit(self, name: str, up_to: str, letters: Iterator[str]) -> str:
        return f"{name} from {next(letters)} to {next(letters)}"


def _first_row(attribute: Attribute, first: int) -> int:
    """The row of the range that holds one value, this one."""
    return first * attribute.size - first * (first - 1) // 2
