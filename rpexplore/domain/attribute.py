"""Attribute: a named column with finitely many values.

The values come from public knowledge, in one of five kinds:

- `Categories`: an ordered list of values, each with an optional label to show;
- `Integers`: whole numbers from a minimum to a maximum, grouped by a step;
- `Bins`: intervals of real numbers between given edges;
- `Dates`: days from a first to a last one, grouped by a step (month, 5 years) or by edges;
- `Amounts`: numbers between public limits, of which tables have the sums.

Values may lie in groups (districts in regions), which hierarchies count.

Texts are kept in the Unicode form NFC, whichever one they are given in, as files on some systems
are: an é of one character and an e with an accent behind it are the same.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias
from unicodedata import normalize

from rpexplore.common.numbers import shown_few
from rpexplore.common.text import check_direction, check_names, is_text
from rpexplore.domain.amounts import Amounts
from rpexplore.domain.categories import Categories
from rpexplore.domain.levels import AT, LEVELS, Level, levels_of_groups
from rpexplore.domain.ordered_values import Bins, Dates, Integers
from rpexplore.errors import DomainError

MAX_SIZE = 1_000_000
MAX_ATTRIBUTES = 100_000  # of a codebook; each takes about 1 kB of memory

MISSING = "Missing"
"""The group of the values that stand for no answer, in codebooks that say which do."""

Values: TypeAlias = Categories | Integers | Bins | Dates | Amounts


@dataclass(frozen=True)
class Attribute:
    """A named column and its values.

    groups  for each value the path of groups it lies in, coarsest first: ("South", "East"); a
            group is known by its whole path. An empty path: in no group. (): there are no groups.
    levels  groupings that tables can have in place of the values
    of      where this is itself a level, as tables have it: of which attribute
    values_of
            then the values of that attribute
    index_of_values
            and for each of them which of these it is counted in

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
    values_of: Values | None = None
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
        check_direction(self.name, "The attribute name", DomainError)
        check_direction(self.label, f"The label of attribute {self.name!r},", DomainError)
        object.__setattr__(self, "name", normalize("NFC", self.name))
        object.__setattr__(self, "label", normalize("NFC", self.label))
        if not isinstance(self.values, Values):
            raise DomainError(
                f"The values of attribute {self.name!r} must be Categories, Integers, Bins, Dates "
                f"or Amounts, got {type(self.values).__name__}."
            )
        if not 1 <= self.size <= MAX_SIZE:
            remedy = "group them into fewer" if self.size else "list them"
            raise DomainError(
                f"Attribute {self.name!r} must have 1 to {MAX_SIZE:,} values, got {self.size:,}; "
                f"{remedy}."
            )
        if isinstance(self.values, Amounts) and (self.groups or self.levels):
            raise DomainError(
                f"Attribute {self.name!r} has amounts, which are summed and have no groups or "
                "levels; leave these out, or give it bins."
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
            are_shown=True,
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
        paths = tuple(tuple(normalize("NFC", name.strip()) for name in path) for path in groups)
        names = dict.fromkeys(name for path in paths for name in path)
        noun = f"group of attribute {self.name!r}"
        check_names(names, noun, "is there twice", DomainError, are_shown=True)
        return paths

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

    def level(self, name: str) -> Level:
        """One of `all_levels` by its name; raises `DomainError` for what is none."""
        levels = {level.name: level for level in self.all_levels}
        if (level := levels.get(name.strip())) is None:
            raise DomainError(
                f"The attribute {self.name!r} has no level {name.strip()!r}; it has "
                f"{shown_few(list(levels)) or 'none'}."
            )
        return level

    def at_level(self, level: Level) -> "Attribute":
        """The attribute that tables have at one of its levels: a value for each group."""
        labels = level.labels
        places = {label: index for index, label in enumerate(labels)}
        return Attribute(
            f"{self.name}{AT}{level.name}",
            Categories(labels),
            f"{self.label} ({level.name})" if self.label else "",
            of=self.name,
            values_of=self.values,
            index_of_values=tuple(places[group] for group in level.groups),
        )

    @property
    def as_counted(self) -> "Attribute":
        """Its name and values with how records write them, without all that is only shown."""
        values = self.values
        return Attribute(
            self.name, replace(values, labels=()) if isinstance(values, Categories) else values
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
