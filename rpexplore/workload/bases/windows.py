"""Windows: moving sums of an attribute's values."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np

from rpexplore.common.exact_numbers import whole_number
from rpexplore.common.formatting import plural
from rpexplore.domain.attribute import Attribute
from rpexplore.errors import WorkloadError
from rpexplore.workload.bases.base import Basis
from rpexplore.workload.bases.operators import Intervals, Operator
from rpexplore.workload.bases.prefix import Prefix


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
        return Intervals(np.maximum(last - width + 1, 0), last, attribute.size)

    def row_label(self, attribute: Attribute) -> Callable[[int], str]:
        label = attribute.values.range_label
        return lambda row: label(max(row - self.width + 1, 0), row)

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
        if self.width >= attribute.size:
            return Prefix().describe(attribute)
        return f"moving sums of {self.width:,} values" if self.width > 1 else "single values"

    def suffix(self, attribute: Attribute) -> str:
        if self.width >= attribute.size:
            return Prefix().suffix(attribute)
        return f"moving sums of {self.width:,}"

    def limit(self, name: str, up_to: str, letters: Iterator[str]) -> str:
        return f"{name} in the {plural(self.width, 'value')} up to {next(letters)}"
