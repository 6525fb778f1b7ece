"""Attribute: a named column with finitely many values.

The values come from public knowledge, in one of four kinds:

- `Categories`: an ordered list of values, each with an optional label to show;
- `Integers`: whole numbers from a minimum to a maximum, grouped by a step;
- `Bins`: intervals of real numbers between given edges;
- `Dates`: days from a first to a last one, grouped by a step (month, 5 years) or by edges.

Numbers and dates may have cells for missing values behind them, which no range and no cumulative
sum holds.

Their labels are made when asked for, so an attribute of a million values costs nothing to hold.
Labels of one kind are distinct: those of values, of ranges, and of all up to one.

Values may lie in groups (districts in regions), which hierarchies count.

Texts are kept in the Unicode form NFC, whichever one they are given in, as files on some systems
are: an é of one character and an e with an accent behind it are the same.
"""

import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias
from unicodedata import normalize

import numpy as np

from rpexplore.common.numbers import whole_number
from rpexplore.common.text import check_names, is_text
from rpexplore.domain.dates import (
    Reading,
    Step,
    begins_unit,
    day_of_month,
    label_of_days,
    label_up_to,
    reading_of,
    stated_day,
)
from rpexplore.domain.levels import AT, Level, levels_of_groups
from rpexplore.errors import DomainError

MAX_SIZE = 1_000_000
MAX_ATTRIBUTES = 100_000  # of a codebook; each takes about 1 kB of memory

MISSING = "Missing"
"""The group of the values that stand for no answer, in codebooks that say which do."""

NOT_STATED = "not stated"
"""The label of a cell for missing values to which nobody gives another one."""

# Between the parts of a path of groups written as one text.
LEVELS = " > "

# Labels of whole numbers and intervals: "5", "0 to 9", "under 10", "≤ 9".
_NUMBER_LABEL = r"(?:≤ |under )?[-+.0-9e]+(?: to(?: under)? [-+.0-9e]+)?"
# Those of days: "2026-01-31", "2026-Q1", "2020 to 2024", "≤ 2026-01".
_DATE_LABEL = "(?:≤ )?[0-9]{4}[-0-9QW]*(?: to [0-9]{4}[-0-9QW]*)?"


WHOLE_TEXT = "[+-]?[0-9]+([.]0*)?"
"""A whole number as records have it: 3, 03, +3, 3.0."""
NUMBER_TEXT = "[+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)"
"""A number that is written out: 0.5, .50."""
NUMBER_STEPS = (
    ("^[+]", ""),
    ("([.][0-9]*[1-9])0+$", r"\1"),
    ("[.]0*$", ""),
    ("^(-?)0+([0-9.])", r"\1\2"),
    ("^-?0?$", "0"),
)
"""Replacements, one after the other, that give a number its one form: 3, .5. For every engine."""

_SPELLINGS = (("true", "True", "TRUE", "1"), ("false", "False", "FALSE", "0"))


@dataclass(frozen=True)
class Categories:
    """An ordered list of values as they stand in the records, and what to call them.

    A record has a value if it is written like it, or in a way that can mean no other value of the
    list: 01 for 1, True or 1 for true, 2026-01-31 00:00:00 for 2026-01-31 (`readings`).

    spellings    for each value the other texts that stand for it in records; none if left out
    are_numbers  whether values are compared as numbers: 0.50 is 0.5, which codes need not be

    Example:
        >>> Categories(("m", "f"), ("male", "female")).label(1)
        'female'
    """

    values: tuple[str, ...]
    labels: tuple[str, ...] = ()
    spellings: tuple[tuple[str, ...], ...] = ()
    are_numbers: bool = False

    def __post_init__(self) -> None:
        for name in ("values", "labels"):
            listed = getattr(self, name)
            if isinstance(listed, str):
                raise DomainError(f"The {name} must be a list of texts, got the text {listed!r}.")
            object.__setattr__(self, name, tuple(listed))
        if not self.labels:
            object.__setattr__(self, "labels", self.values)
        if len(self.labels) != len(self.values):
            raise DomainError(
                f"There are {len(self.values)} categories but {len(self.labels)} labels; give "
                "each category one label, or none at all."
            )
        repeated = "is listed twice; keep one of them"
        values = check_names(self.values, "category", repeated, DomainError)
        repeated = "stands for two categories; give each its own label"
        labels = check_names(self.labels, "label", repeated, DomainError)
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "labels", labels)
        object.__setattr__(self, "spellings", self._checked_spellings())
        if self.are_numbers:
            forms: dict[str, str] = {}
            for text in (*self.values, *(text for listed in self.spellings for text in listed)):
                other = forms.setdefault(_form(text, NUMBER_TEXT), text)
                if other != text:
                    raise DomainError(
                        f"The categories {other!r} and {text!r} are one number; keep one of them."
                    )

    def _checked_spellings(self) -> tuple[tuple[str, ...], ...]:
        """The spellings in one Unicode form; () if no value has any."""
        listed = [() if isinstance(texts, str) else tuple(texts) for texts in self.spellings]
        if (listed and len(listed) != self.size) or list(map(tuple, self.spellings)) != listed:
            raise DomainError(
                f"The spellings must be a list of texts for each of the {self.size:,} categories, "
                f"got {self.spellings!r}; an empty list stands for none."
            )
        if not any(listed):
            return ()
        repeated = "is listed twice, as a category or a spelling; keep one of them"
        texts = [*self.values, *(text for texts in listed for text in texts)]
        rest = iter(check_names(texts, "spelling", repeated, DomainError)[self.size :])
        return tuple(tuple(next(rest) for _ in texts) for texts in listed)

    @property
    def size(self) -> int:
        return len(self.values)

    @cached_property
    def readings(self) -> Mapping[str, int]:
        """The index of the value that each text of records stands for.

        Of numbers that are compared as such (`numbers`) the text is their one form.
        """
        return self._comparison[1]

    @cached_property
    def texts(self) -> Mapping[str, int]:
        """The index of the value that each text stands for that is listed or usual, as it is."""
        return self._comparison[2]

    @cached_property
    def numbers(self) -> str:
        """A regular expression of the texts that are compared as numbers; "" if none are."""
        return self._comparison[0]

    def form(self, text: str) -> str:
        """A text of records as `readings` has it."""
        return _form(text, self.numbers) if self.numbers else text

    @cached_property
    def _comparison(self) -> tuple[str, Mapping[str, int], Mapping[str, int]]:
        texts = {value: index for index, value in enumerate(self.values)}
        for index, listed in enumerate(self.spellings):
            texts |= dict.fromkeys(listed, index)
        for index, value in enumerate(self.values):
            # A day, which files also write as its midnight.
            if len(value) == 10 and reading_of("").ordinal(value):
                for midnight in (f"{value} 00:00:00", f"{value}T00:00:00"):
                    texts.setdefault(midnight, index)
        pattern = NUMBER_TEXT if self.are_numbers else WHOLE_TEXT
        if not self.are_numbers and not self.spellings:
            texts |= self._yes_and_no()
        forms: dict[str, int] = {}
        for text, index in texts.items():
            if forms.setdefault(_form(text, pattern), index) != index:
                return "", texts, texts  # 1 and 01 are two values: every text is itself
        has_numbers = any(re.fullmatch(pattern, text) for text in texts)
        return (pattern, forms, texts) if has_numbers else ("", texts, texts)

    def _yes_and_no(self) -> dict[str, int]:
        """The usual spellings of two values that are true and false; {} for others.

        Not those of 1 and 0 beside other numbers, which are codes.
        """
        pair = [[value for value in self.values if value in listed] for listed in _SPELLINGS]
        if [len(found) for found in pair] != [1, 1]:
            return {}
        true, false = pair[0][0], pair[1][0]
        others = [value for value in self.values if value not in (true, false)]
        if {true, false} & {"1", "0"} and any(re.fullmatch(WHOLE_TEXT, text) for text in others):
            return {}
        return {
            text: self.values.index(found[0])
            for found, listed in zip(pair, _SPELLINGS, strict=True)
            for text in listed
        }

    @property
    def n_ordered(self) -> int:
        """How many values ranges and cumulative sums go over: all."""
        return self.size

    def label(self, index: int) -> str:
        return self.labels[index]

    def range_label(self, first: int, last: int) -> str:
        """The label of the values first … last (indices, both included) together."""
        if first == last:
            return self.labels[first]
        return f"{self.labels[first]}{self._joint}{self.labels[last]}"

    def up_to_label(self, last: int) -> str:
        """The label of all values up to this one."""
        return f"up to {self.labels[last]}"

    @cached_property
    def _joint(self) -> str:
        """ " to ", or a text that no label holds, so that no two ranges have the same label."""
        joint, dashes = " to ", 0
        while any(joint in f" {label} " for label in self.labels):
            dashes += 1
            joint = f" {'–' * dashes} "
        return joint


class Numbers(ABC):
    """Numbers, intervals or days, in their order, and behind them the cells for missing values.

    missing  (value, label) of what stands for no answer in the records: ("-9", "refused"). The
             value "" is an empty cell. Values with one label share a cell.
    """

    missing: tuple[tuple[str, str], ...]
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


def number_of(text: str) -> float | None:
    """The finite number that a text writes; None for any other text."""
    if not re.fullmatch(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", text):
        return None
    number = float(text)
    return number if abs(number) <= sys.float_info.max else None


@dataclass(frozen=True)
class Integers(Numbers):
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

    @property
    def n_ordered(self) -> int:
        return (self.maximum - self.minimum) // self.step + 1

    def holds(self, text: str) -> bool:
        number = number_of(text.strip())
        return number is not None and self.minimum <= number <= self.maximum

    def _numbers_label(self, first: int, last: int) -> str:
        lowest, highest = self.minimum + first * self.step, self._highest(last)
        return str(lowest) if lowest == highest else f"{lowest} to {highest}"

    def _up_to_label(self, last: int) -> str:
        return f"≤ {self._highest(last)}"

    def _highest(self, index: int) -> int:
        return min(self.minimum + (index + 1) * self.step - 1, self.maximum)


@dataclass(frozen=True)
class Bins(Numbers):
    """Intervals edge[i] ≤ x < edge[i+1]; the last one includes its right edge.

    Example:
        >>> Bins((0, 10.5, 20)).size
        2
    """

    edges: tuple[float, ...]
    missing: tuple[tuple[str, str], ...] = ()

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
        self._check_missing()

    @property
    def n_ordered(self) -> int:
        return len(self.edges) - 1

    def holds(self, text: str) -> bool:
        number = number_of(text.strip())
        return number is not None and self.edges[0] <= number <= self.edges[-1]

    def _numbers_label(self, first: int, last: int) -> str:
        joint = "to" if last == self.n_ordered - 1 else "to under"
        return f"{_number(self.edges[first])} {joint} {_number(self.edges[last + 1])}"

    def _up_to_label(self, last: int) -> str:
        below = "≤" if last == self.n_ordered - 1 else "under"
        return f"{below} {_number(self.edges[last + 1])}"


@dataclass(frozen=True)
class Dates(Numbers):
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

    @property
    def n_ordered(self) -> int:
        if self.steps is None:
            return len(self.edges) - 1
        behind = self.steps.number(self.last) - self.steps.origin(self.first)
        return behind // self.steps.width + 1

    def holds(self, text: str) -> bool:
        day = self.reading.ordinal(text)
        return day is not None and self._ends[0] <= day < self._ends[1]

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


Values: TypeAlias = Categories | Integers | Bins | Dates


@dataclass(frozen=True)
class Attribute:
    """A named column and its values.

    groups  for each value the path of groups it lies in, coarsest first: ("South", "East"); a
            group is known by its whole path. An empty path: in no group. (): there are no groups.
    levels  groupings that tables can have in place of the values
    of      where this is itself a level, as tables have it: of which attribute
    index_of_values
            then for each value of that attribute which of these it is counted in

    Raises `DomainError` when the name is empty, the number of values is not 1 … 10^6, or there is
    not one path for each value.

    Example:
        >>> Attribute("age", Integers(0, 99)).size
        100
    """

    name: str
    values: Values
    label: str = ""
    groups: tuple[tuple[str, ...], ...] = ()
    levels: tuple[Level, ...] = ()
    of: str = ""
    index_of_values: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise DomainError(f"An attribute needs a name, got {self.name!r}.")
        if not is_text(self.name) or any(ord(character) < 32 for character in self.name):
            raise DomainError(
                f"The attribute name {self.name!r} holds a control character or one that UTF-8 "
                "cannot write; rename it."
            )
        if not is_text(self.label):
            raise DomainError(
                f"The label of attribute {self.name!r} must be a text, got {self.label!r}."
            )
        object.__setattr__(self, "name", normalize("NFC", self.name))
        object.__setattr__(self, "label", normalize("NFC", self.label))
        if not isinstance(self.values, Values):
            raise DomainError(
                f"The values of attribute {self.name!r} must be Categories, Integers, Bins "
                f"or Dates, got {type(self.values).__name__}."
            )
        if not 1 <= self.size <= MAX_SIZE:
            remedy = "group them into fewer" if self.size else "list them"
            raise DomainError(
                f"Attribute {self.name!r} must have 1 to {MAX_SIZE:,} values, got {self.size:,}; "
                f"{remedy}."
            )
        object.__setattr__(self, "groups", self._checked_groups(self.groups))
        object.__setattr__(self, "levels", tuple(self.levels))
        for level in self.levels:
            level.check(self.name, self.size)
        check_names(
            [level.name for level in self.levels],
            "level",
            f"is there twice for attribute {self.name!r}; rename one of them",
            DomainError,
        )

    def _checked_groups(self, groups: Any) -> tuple[tuple[str, ...], ...]:
        """The paths without blanks around names, which no record has to match; () for none."""
        whose = f"The groups of attribute {self.name!r}"
        if not isinstance(groups, list | tuple):
            raise DomainError(f"{whose} must be a list of paths, got {groups!r}.")
        if groups and len(groups) != self.size:
            raise DomainError(
                f"{whose} must be one path for each of its {self.size:,} values, got "
                f"{len(groups):,}; an empty path stands for no group."
            )
        for path in groups:
            if not isinstance(path, list | tuple):
                raise DomainError(
                    f"{whose} must be lists of names, coarsest first, got {path!r}; write a single "
                    "group as a list of one."
                )
            for name in path:
                if not is_text(name) or not name.strip():
                    raise DomainError(f"{whose} must be texts that are not empty, got {name!r}.")
                if LEVELS in f" {name.strip()} ":
                    raise DomainError(
                        f"{whose} must not hold {LEVELS!r}, which stands between the levels of a "
                        f"path, got {name!r}; rename it."
                    )
        if not any(groups):
            return ()
        return tuple(tuple(normalize("NFC", name.strip()) for name in path) for path in groups)

    @property
    def size(self) -> int:
        """Number of values."""
        return self.values.size

    @cached_property
    def all_levels(self) -> tuple[Level, ...]:
        """Its levels, and those of its groups that have no level of the same name."""
        named = {level.name for level in self.levels}
        return self.levels + tuple(
            level for level in levels_of_groups(self) if level.name not in named
        )

    def at_level(self, level: Level) -> "Attribute":
        """The attribute that tables have at one of its levels: a value for each group."""
        labels = level.labels
        places = {label: index for index, label in enumerate(labels)}
        return Attribute(
            f"{self.name}{AT}{level.name}",
            Categories(labels),
            f"{self.label} ({level.name})" if self.label else "",
            of=self.name,
            index_of_values=tuple(places[group] for group in level.groups),
        )

    @property
    def n_ordered(self) -> int:
        """Number of values that ranges and cumulative sums go over: no cells of missing numbers."""
        return self.values.n_ordered

    @property
    def title(self) -> str:
        """The attribute's label on screen, or else its name."""
        return self.label or self.name

    def labels(self, most: int | None = None) -> list[str]:
        """The labels of the first values, or of all, in order."""
        return [self.values.label(index) for index in range(self.size)[:most]]

    def stored_values(self, most: int | None = None) -> list[str]:
        """The first values, or all, as they stand in records; those of numbers by their labels."""
        if isinstance(self.values, Categories):
            return list(self.values.values[:most])
        return self.labels(most)


def _form(text: str, pattern: str) -> str:
    """The one form of a number that is written like this pattern; any other text as it is."""
    if re.fullmatch(pattern, text):
        for step, replacement in NUMBER_STEPS:
            text = re.sub(step, replacement, text)
    return text


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(value)
