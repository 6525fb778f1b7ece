"""Categories: the values of an attribute that are listed, and how records may write them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from rpexplore.common.text import check_names
from rpexplore.domain.dates import reading_of
from rpexplore.errors import DomainError

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
        labels = check_names(self.labels, "label", repeated, DomainError, are_shown=True)
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

    def reading(self, text: str) -> int | None:
        """The index of the value that a text of records stands for; None if it is none."""
        return self.readings.get(self.form(text))

    def read_otherwise(self, other: "Categories") -> str | None:
        """A text that is listed or usual for one of two lists of the same values, and that stands
        for another value in the other one; None if there is none."""
        for own, others in ((self, other), (other, self)):
            for text, index in own.texts.items():
                if others.reading(text) not in (None, index):
                    return text
        return None

    def with_spellings_of(self, other: "Categories") -> "Categories":
        """The same values, which records may also write as `other` says; both must agree."""
        if not other.spellings:
            return self
        both = zip(self.spellings or [()] * self.size, other.spellings, strict=True)
        spellings = tuple(tuple(dict.fromkeys((*mine, *theirs))) for mine, theirs in both)
        return replace(self, spellings=spellings)

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


def _form(text: str, pattern: str) -> str:
    """The one form of a number that is written like this pattern; any other text as it is."""
    if re.fullmatch(pattern, text):
        for step, replacement in NUMBER_STEPS:
            text = re.sub(step, replacement, text)
    return text
