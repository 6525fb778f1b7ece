"""Prefix: cumulative sums of an attribute's values."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from rpexplore.domain.attribute import Attribute
from rpexplore.workload.bases.base import Basis
from rpexplore.workload.bases.operators import Intervals, Operator


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
        return Intervals(np.zeros_like(last), last, attribute.size)

    def row_label(self, attribute: Attribute) -> Callable[[int], str]:
        return attribute.values.up_to_label

    def describe(self, attribute: Attribute) -> str:
        return "cumulative: up to each value"

    def limit(self, name: str, up_to: str, letters: Iterator[str]) -> str:
        return f"{name}{up_to}{next(letters)}"
