"""Whole numbers, intervals and dates: values of an attribute that lie in an order.

Behind them there may be cells for missing values, which no range and no cumulative sum holds. Their
labels are made when asked for, so an attribute of a million values costs nothing to hold. Labels of
one kind are distinct: those of values, of ranges, and of all up to one.
"""

import re
import sys
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING
from unicodedata import normalize

import numpy as np

from rpexplore.common.numbers import shown_value, whole_number
from rpexplore.common.text import is_text
from rpexplore.domain.dates import (
    Reading,
    Step,
    begins_unit,
    day_of_month,
    label_of_days,
    label_up_to,
    reading_of,
    stated_day,
    unit_label,
)
from rpexplore.errors import DomainError

NOT_STATED = "not stated"
"""The label of a cell for missing values to which nobody gives another one."""

_MOST_PERIODS = 600  # that texts of records are compared with; each is a case for an engine

# Labels of whole numbers and intervals: "5", "0 to 9", "under 10", "≤ 9".
_NUMBER_LABEL = r"(?:≤ |under )?[-+.0-9e]+(?: to(?: under)? [-+.0-9e]+)?"
# Those of days: "2026-01-31", "2026-Q1", "2020 to 2024", "≤ 2026-01".
_DATE_LABEL = "(?:≤ )?[0-9]{4}[-0-9QW]*(?: to [0-9]{4}[-0-9QW]*)?"


class Numbers(ABC):
    """Numbers, intervals or days, in their order, and behind them the cells for missing values.

    missing  (value, label) of what stands for no answer in the records: ("-9", "refused"). The
             value "" is an empty cell. Values with one label share a cell.
    recode   (text in the records, number or day that it is counted as): ("85+", "85"). A label of
             a value stands for its first number or day. Amounts have none.
    """

    missing: tuple[tuple[str, str], ...]
    recode: tuple[tuple[str, str], ...] = ()
    _own_labels = _NUMBER_LABEL  # which no cell for missing values may have
    _noun = "numbers"

    @property
    @abstractmethod
    def n_ordered(self) -> int:
        """How many values ranges and cumulative sums go over: all but the missing ones."""

    @abstractmethod
    def _numbers_label(self, first: int, last: int) -> str: ...

    @abstractmethod
    def _up_to_label(self, last: int) -> str: ...

    @property
    def size(self) -> int:
        return self.n_ordered + len(self.missing_labels)

    @cached_property
    def missing_labels(self) -> tuple[str, ...]:
        """The labels of the cells for missing values."""
        return tuple(dict.fromkeys(label for _, label in self.missing))

    @cached_property
    def missing_codes(self) -> dict[str, int]:
        """The index of the cell that each missing value is counted in."""
        return {
            value: self.n_ordered + self.missing_labels.index(label)
            for value, label in self.missing
        }

    @cached_property
    def codes_of_texts(self) -> dict[str, int]:
        """The index of each text that is told before numbers are: missing ones, and recoded."""
        return self.missing_codes

    @abstractmethod
    def holds(self, text: str) -> bool:
        """Whether a text in the records would be read as one of the numbers."""

    def label(self, index: int) -> str:
        return self.range_label(index, index)

    def range_label(self, first: int, last: int) -> str:
        """The label of the values first … last (indices, both included) together."""
        n = self.n_ordered
        numbers = [self._numbers_label(first, min(last, n - 1))] if first < n else []
        return " or ".join(
            [*numbers, *self.missing_labels[max(first - n, 0) : max(last + 1 - n, 0)]]
        )

    def up_to_label(self, last: int) -> str:
        """The label of all numbers up to this one; a missing value stands for itself."""
        return self._up_to_label(last) if last < self.n_ordered else self.label(last)

    def _check_missing(self) -> None:
        if not isinstance(self.missing, list | tuple):
            raise DomainError(
                f"The missing values must be a list of values and labels, got {self.missing!r}."
            )
        missing, seen = [], set()
        for pair in self.missing:
            if not isinstance(pair, list | tuple) or len(pair) != 2 or not all(map(is_text, pair)):
                raise DomainError(
                    "A missing value must be a pair of texts, the value and its label, got "
                    f"{pair!r}."
                )
            value, label = (normalize("NFC", text.strip()) for text in pair)
            if not label or re.fullmatch(self._own_labels, label):
                raise DomainError(
                    f"The label of the missing value {value!r} must tell it from the {self._noun}, "
                    f"got {label!r}; write for example {NOT_STATED!r}."
                )
            key = self._missing_key(value)
            if key in seen:
                raise DomainError(f"The missing value {value!r} is listed twice; keep one of them.")
            seen.add(key)
            missing.append((value, label))
        object.__setattr__(self, "missing", tuple(missing))

    def _missing_key(self, value: str) -> object:
        """What a missing value is in the records, however it is written."""
        return value if number_of(value) is None else Decimal(value)


class Groups(Numbers):
    """Integers, bins or dates: each number or day lies in one of the values, or in none."""

    @abstractmethod
    def _index_of(self, text: str) -> int:
        """The index of the value that a number or day in the records is in; −1: in none."""

    @abstractmethod
    def _first_of(self, index: int) -> str:
        """The first number or day of a value, as text."""

    @cached_property
    def codes_of_texts(self) -> dict[str, int]:
        return self.missing_codes | {text: self._index_of(number) for text, number in self.recode}

    def holds(self, text: str) -> bool:
        return self._index_of(text) >= 0

    def _check_recode(self) -> None:
        if not isinstance(self.recode, list | tuple):
            raise DomainError(
                "The recode must be a list of pairs of texts, such as (('90+', '90'),), got "
                f"{shown_value(self.recode)}."
            )
        labels = (
            {self.label(index): index for index in range(self.n_ordered)} if self.recode else {}
        )
        recode, seen = [], {self._missing_key(value) for value, _ in self.missing}
        for pair in self.recode:
            if not isinstance(pair, list | tuple) or len(pair) != 2 or not all(map(is_text, pair)):
                raise DomainError(
                    "A recode must be a pair of texts, what the records have and what it is "
                    f"counted as, such as ('90+', '90'), got {shown_value(pair)}."
                )
            text, target = (normalize("NFC", part.strip()) for part in pair)
            if not text:
                raise DomainError(
                    "An empty value cannot be recoded to a number; give it a cell of its own, by "
                    "missingValues."
                )
            if target in labels:
                target = self._first_of(labels[target])
            if self._index_of(target) < 0:
                raise DomainError(
                    f"It recodes {text!r} to {target!r}, which is none of its {self._noun}; name "
                    f"one from {self.label(0)} to {self.label(self.n_ordered - 1)}."
                )
            key = self._missing_key(text)
            if key in seen:
                raise DomainError(f"It says twice what {text!r} is counted as; keep one of them.")
            seen.add(key)
            recode.append((text, target))
        object.__setattr__(self, "recode", tuple(recode))


def number_of(text: str) -> float | None:
    """The finite number that a text writes; None for any other text."""
    if not re.fullmatch(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", text):
        return None
    number = float(text)
    return number if abs(number) <= sys.float_info.max else None


@dataclass(frozen=True)
class Integers(Groups):
    """Whole numbers `minimum … maximum` (both included) in groups of `step`.

    Group j holds minimum + j·step … minimum + (j+1)·step − 1; the last one ends at the maximum.

    Example:
        >>> Integers(0, 99, step=10).size
        10
        >>> Integers(0, 99, missing=(("-9", "refused"),)).label(100)
        'refused'
    """

    minimum: int
    maximum: int
    step: int = 1
    missing: tuple[tuple[str, str], ...] = ()
    recode: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        for name in ("minimum", "maximum", "step"):
            value = whole_number(getattr(self, name))
            if value is None:
                raise DomainError(
                    f"The {name} must be a whole number, got {getattr(self, name)!r}."
                )
            object.__setattr__(self, name, value)
            if abs(value) > 2**53:
                raise DomainError(f"The {name} must lie within ±2^53, got {value}.")
        if self.step < 1:
            raise DomainError(f"The step must be at least 1, got {self.step}.")
        if self.maximum < self.minimum:
            raise DomainError(
                f"The maximum must not be below the minimum, got {self.minimum} … {self.maximum}."
            )
        self._check_missing()
        self._check_recode()

    @property
    def n_ordered(self) -> int:
        return (self.maximum - self.minimum) // self.step + 1

    def _index_of(self, text: str) -> int:
        number = number_of(text.strip())
        if number is None or not self.minimum <= number <= self.maximum:
            return -1
        return (int(number) - self.minimum) // self.step

    def _first_of(self, index: int) -> str:
        return str(self.minimum + index * self.step)

    def _numbers_label(self, first: int, last: int) -> str:
        lowest, highest = self.minimum + first * self.step, self._highest(last)
        return str(lowest) if lowest == highest else f"{lowest} to {highest}"

    def _up_to_label(self, last: int) -> str:
        return f"≤ {self._highest(last)}"

    def _highest(self, index: int) -> int:
        return min(self.minimum + (index + 1) * self.step - 1, self.maximum)


@dataclass(frozen=True)
class Bins(Groups):
    """Intervals edge[i] ≤ x < edge[i+1]; the last one includes its right edge.

    are_whole  whether all numbers are whole, so that 0..14 names what is from 0 to under 15

    Example:
        >>> Bins((0, 10.5, 20)).size
        2
    """

    edges: tuple[float, ...]
    missing: tuple[tuple[str, str], ...] = ()
    recode: tuple[tuple[str, str], ...] = ()
    are_whole: bool = False

    def __post_init__(self) -> None:
        edges = tuple(float(e) if isinstance(e, np.floating) else e for e in self.edges)
        for edge in edges:
            if whole_number(edge) is None and not isinstance(edge, float):
                raise DomainError(f"A bin edge must be a number, got {edge!r}.")
            if not abs(edge) <= sys.float_info.max:  # NaN is not
                got = f"{edge:g}" if isinstance(edge, float) else "a longer whole number"
                raise DomainError(f"A bin edge must be finite, got {got}.")
        if len(edges) < 2:
            raise DomainError(f"Bins need at least two edges, got {len(edges)}.")
        for left, right in pairwise(edges):
            if not float(left) < float(right):
                raise DomainError(
                    f"Bin edges must increase, got {_number(left)} before {_number(right)}."
                )
        object.__setattr__(self, "edges", tuple(float(edge) for edge in edges))
        if self.are_whole and not all(map(float.is_integer, self.edges)):
            edge = next(edge for edge in self.edges if not edge.is_integer())
            raise DomainError(
                f"Bins of whole numbers must have whole edges, got {_number(edge)}; round it, or "
                "make them bins of any numbers."
            )
        self._check_missing()
        self._check_recode()

    @property
    def n_ordered(self) -> int:
        return len(self.edges) - 1

    def _index_of(self, text: str) -> int:
        number = number_of(text.strip())
        if number is None or not self.edges[0] <= number <= self.edges[-1]:
            return -1
        return min(bisect_right(self.edges, number), self.n_ordered) - 1

    def _first_of(self, index: int) -> str:
        return _number(self.edges[index])

    @property
    def ends(self) -> list[tuple[float, float]]:
        """The first number of each interval, and the last: its right edge, or 1 less of whole
        numbers, but for the last interval."""
        highs = [edge - self.are_whole for edge in self.edges[1:-1]]
        return list(zip(self.edges[:-1], [*highs, self.edges[-1]], strict=True))

    def _numbers_label(self, first: int, last: int) -> str:
        joint = "to" if last == self.n_ordered - 1 else "to under"
        return f"{_number(self.edges[first])} {joint} {_number(self.edges[last + 1])}"

    def _up_to_label(self, last: int) -> str:
        below = "≤" if last == self.n_ordered - 1 else "under"
        return f"{below} {_number(self.edges[last + 1])}"


@dataclass(frozen=True)
class Dates(Groups):
    """Days `first … last` (both included), grouped by a step, or by `edges` instead.

    first, last  days: `datetime.date`, or texts such as "2026-01-31"; "2026" is its first day for
                 the first one, and its last day for the last one
    step         "day", "week", "month", "quarter", "year", or several of them: "5 years"
    edges        the first days of groups of one's own, and the last day of all
    format       how records that are texts write a day: "%d/%m/%Y"; as 2026-01-31 if left out

    Example:
        >>> Dates("2026-01-01", "2026-12-31", "quarter").label(0)
        '2026-Q1'
        >>> Dates(edges=("2026-01-01", "2026-03-15", "2026-12-31")).label(0)
        '2026-01-01 to 2026-03-14'
    """

    first: date = None  # pyright: ignore[reportAssignmentType]
    last: date = None  # pyright: ignore[reportAssignmentType]
    step: str = ""
    edges: tuple[date, ...] = ()
    format: str = ""
    missing: tuple[tuple[str, str], ...] = ()
    recode: tuple[tuple[str, str], ...] = ()
    _own_labels = _DATE_LABEL
    _noun = "dates"

    if TYPE_CHECKING:  # texts are days from then on

        def __init__(
            self,
            first: date | str | None = None,
            last: date | str | None = None,
            step: str = "",
            edges: Sequence[date | str] = (),
            format: str = "",
            missing: Sequence[tuple[str, str]] = (),
            recode: Sequence[tuple[str, str]] = (),
        ) -> None: ...

    def __post_init__(self) -> None:
        if self.edges:
            if not isinstance(self.edges, list | tuple) or len(self.edges) < 2:
                raise DomainError(f"Dates need at least two edges, got {self.edges!r}.")
            edges = tuple(map(stated_day, self.edges))
            for left, right in pairwise(edges):
                if not left < right:
                    raise DomainError(f"Edges must increase, got {left} before {right}.")
            if (
                self.step
                or self.first not in (None, edges[0])
                or self.last not in (None, edges[-1])
            ):
                raise DomainError(
                    "Dates have edges, or a first day, a last day and a step; leave out the others."
                )
            first, last, step = edges[0], edges[-1], ""
        else:
            if self.first is None or self.last is None:
                raise DomainError("Dates need a first and a last day, or edges; state them.")
            edges, step = (), str(Step.parse(self.step or "day"))
            first, last = stated_day(self.first), stated_day(self.last, is_last=True)
        if last < first:
            raise DomainError(f"The last day must not be before the first, got {first} … {last}.")
        names = ("first", "last", "step", "edges")
        for name, value in zip(names, (first, last, step, edges), strict=True):
            object.__setattr__(self, name, value)
        if not isinstance(self.format, str):
            raise DomainError(f"The format of dates must be a text, got {self.format!r}.")
        reading = self.reading
        unit = "month" if reading.month else "year"
        bounds = () if reading.day else (*self.starts[1:], *self._ends)
        if not all(begins_unit(day, unit) for day in bounds):
            raise DomainError(
                f"The format {self.format!r} says a {unit} alone, and its days would be in more "
                f"than one group; group whole {unit}s, or write days in full."
            )
        self._check_missing()
        self._check_recode()

    @property
    def _ends(self) -> tuple[int, int]:
        """The first day, and the one behind the last."""
        return self.first.toordinal(), self.last.toordinal() + 1

    @cached_property
    def reading(self) -> Reading:
        """How texts of the records write a day."""
        return reading_of(self.format)

    @cached_property
    def steps(self) -> Step | None:
        """How days are grouped; None by edges."""
        return Step.parse(self.step) if self.step else None

    @cached_property
    def starts(self) -> Sequence[int]:
        """The first day of each group, as an ordinal."""
        first, last = (day.toordinal() for day in (self.first, self.last))
        if self.steps is None:
            return [edge.toordinal() for edge in self.edges[:-1]]
        origin, width = self.steps.origin(self.first), self.steps.width
        if not self.steps.months:
            return [first, *range(origin + width, last + 1, width)]
        months = range(origin + width, self.steps.number(self.last) + 1, width)
        return [first, *map(day_of_month, months)]

    @cached_property
    def written_periods(self) -> dict[str, int]:
        """What records may write for a whole period instead of a day in it, and its group.

        2026-Q1 or 2026Q1, 2026-W05, 2026-05 and 2026, for steps of such units; of no more than
        600 of them, and of none where a format says how days are written.
        """
        if self.steps is None or self.steps.unit == "day" or self.format:
            return {}
        units = Dates(self.first, self.last, self.steps.unit)
        if units.n_ordered > _MOST_PERIODS:
            return {}
        periods: dict[str, int] = {}
        for start, behind in pairwise([*units.starts, self._ends[1]]):
            if begins_unit(start, self.steps.unit) and begins_unit(behind, self.steps.unit):
                label = unit_label(start, self.steps.unit)
                group = bisect_right(self.starts, start) - 1
                periods |= dict.fromkeys((label, label.replace("-", "")), group)
        return periods

    @property
    def n_ordered(self) -> int:
        if self.steps is None:
            return len(self.edges) - 1
        behind = self.steps.number(self.last) - self.steps.origin(self.first)
        return behind // self.steps.width + 1

    def holds(self, text: str) -> bool:
        return self._group_of(self.reading.ordinal(text)) >= 0

    def _index_of(self, text: str) -> int:
        return self._group_of(self.missing_day(text))

    def _group_of(self, day: int | None) -> int:
        if day is None or not self._ends[0] <= day < self._ends[1]:
            return -1
        return bisect_right(self.starts, day) - 1

    def _first_of(self, index: int) -> str:
        return date.fromordinal(self.starts[index]).isoformat()

    def missing_day(self, value: str) -> int | None:
        """The day that a missing value writes, as an ordinal; None if it writes none."""
        day = self.reading.ordinal(value)
        return reading_of("").ordinal(value) if day is None else day

    def days_of(self, first: int, last: int) -> tuple[date, date]:
        """The first and the last day of the groups first … last (indices, both included)."""
        end = self.starts[last + 1] if last + 1 < self.n_ordered else self._ends[1]
        return date.fromordinal(self.starts[first]), date.fromordinal(end - 1)

    def _numbers_label(self, first: int, last: int) -> str:
        start, end = (day.toordinal() for day in self.days_of(first, last))
        return label_of_days(start, end, self._unit)

    def _up_to_label(self, last: int) -> str:
        return label_up_to(self.days_of(last, last)[1].toordinal(), self._unit)

    @property
    def _unit(self) -> str:
        return self.steps.unit if self.steps else "day"

    def _missing_key(self, value: str) -> object:
        day = self.missing_day(value)
        return super()._missing_key(value) if day is None else date.fromordinal(day)


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(value)
