"""Universe: which records are counted, by a condition on their own values. Holds no records.

A record is in the universe whatever the others are, so that adding one changes counts by it alone.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import and_, or_
from typing import Any

import numpy as np

from rpexplore.domain.attribute import Attribute
from rpexplore.domain.categories import Categories
from rpexplore.domain.domain import Domain
from rpexplore.domain.ordered_values import Dates
from rpexplore.errors import DataError

NUMBERS, BOOLEANS, DAYS = "numbers", "yes and no (booleans)", "days"
"""Kinds of columns, by their types. Columns of other types hold texts, which can be anything."""
_TEXTS = {
    NUMBERS: r"\s*[+-]?(\d+[.]?\d*|[.]\d+)([eE][+-]?\d+)?\s*",
    BOOLEANS: "true|false",
    DAYS: r"\d{4,}-\d\d-\d\d.*",
}
"""How values of a kind are written as texts."""


@dataclass(frozen=True)
class Comparison:
    """That a column has one of some values.

    column  its place among those of the universe
    codes   of these values
    """

    column: int
    codes: frozenset[int]


@dataclass(frozen=True)
class Joined:
    """Conditions joined by "and" or "or"; of "not" there is one."""

    operator: str
    parts: tuple["Comparison | Joined", ...]


@dataclass(frozen=True)
class Universe:
    """The records that are counted; `universe_of` makes one from a text.

    text        the condition as it was written
    attributes  the columns that it is about, with values that tell apart what is compared: what
                is in none of these, or missing, fulfils no comparison
    condition   on their codes
    """

    text: str
    attributes: tuple[Attribute, ...]
    condition: Comparison | Joined

    @cached_property
    def domain(self) -> Domain:
        """The columns with these values."""
        return Domain(self.attributes)

    @property
    def columns(self) -> tuple[str, ...]:
        return self.domain.names

    @property
    def sentence(self) -> str:
        """What is counted, for labels."""
        return f"Only records with {self.text} are counted."

    @property
    def meaning(self) -> list[Any]:
        """The condition as plain lists, by the stored values that it means: it may name labels."""
        stored = [attribute.stored_values() for attribute in self.attributes]

        def plain(part: Comparison | Joined) -> list[Any]:
            if isinstance(part, Joined):
                return [part.operator, *map(plain, part.parts)]
            values = [stored[part.column][code] for code in sorted(part.codes)]
            return [self.attributes[part.column].name, values]

        return plain(self.condition)

    def check_kinds(self, kinds: Mapping[str, str]) -> None:
        """Raise `DataError` where a column is compared with what none of its values can be.

        Its negation would silently hold for all records: yes and no are 1 and 0 in some files.

        kinds: NUMBERS, BOOLEANS or DAYS, by the columns that hold these
        """
        for attribute in self.attributes:
            kind, values = kinds.get(attribute.name, ""), attribute.values
            if isinstance(values, Categories):
                compared = "texts" if kind == NUMBERS else "other texts"
                written = re.compile(_TEXTS.get(kind, ".*"), re.DOTALL)
                can_be = any(map(written.fullmatch, values.readings))
            elif isinstance(values, Dates):
                compared, can_be = "days", kind == DAYS or (kind == NUMBERS and values.format != "")
            else:
                compared, can_be = "numbers", kind == NUMBERS
            if kind and not can_be:
                raise DataError(
                    f"The column {attribute.name!r} holds {kind}, and the plan compares it with "
                    f"{compared}, which none of them is (its records are those with {self.text}); "
                    "plan with a comparison as the records have the values, such as = 1 for a "
                    'number, = true for a boolean, >= "2026-01-31" for a day.'
                )

    def where(self, compared: Callable[[Comparison], Any]) -> Any:
        """The condition, of what `compared` makes of a comparison: arrays, columns of an engine."""

        def value(condition: Comparison | Joined) -> Any:
            if isinstance(condition, Comparison):
                return compared(condition)
            parts = map(value, condition.parts)
            if condition.operator == "not":
                return ~next(parts)
            return reduce(and_ if condition.operator == "and" else or_, parts)

        return value(self.condition)

    def holds(self, codes: Sequence[np.ndarray]) -> np.ndarray:
        """Whether each record is in the universe, bool[n].

        codes: of each column int[n], below 0 for what is none of its values
        """
        return self.where(lambda one: np.isin(codes[one.column], list(one.codes)))
