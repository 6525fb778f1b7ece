"""Levels: groups of an attribute's values that tables have in its place, such as bands of ages.

A codebook states them beside the values, in one of these forms:

    "five-year": 5                          so many numbers together, from multiples of so many on
    "adult": "0-17, 18+"                    bands of numbers
    "continent": {"Europe": ["DE", "FR"]}   values by the name of their group
    "year": "year"                          dates by a longer step
    "school": ["no", "no", "yes", …]        for each value the name of its group

Tables name them behind the attribute: age@five-year. A level is an attribute of its own there, with
a value for each group, whose records are counted by the attribute's values.
"""

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from unicodedata import normalize

from rpexplore.common.numbers import shown, shown_few, shown_value, whole_number
from rpexplore.common.text import check_names, is_text
from rpexplore.domain.categories import Categories
from rpexplore.domain.ordered_values import Bins, Dates, Integers
from rpexplore.errors import DomainError

if TYPE_CHECKING:
    from rpexplore.domain.attribute import Attribute, Values

# Between the parts of a path of groups written as one text.
LEVELS = " > "

AT = "@"
"""Between an attribute and its level, in the name that tables have."""

MOST_LEVELS, MOST_GROUPED = 100, 1_000_000
"""Levels of an attribute; and groups of values, one for each value and level, of a codebook."""


def at_levels(names: Sequence[str], levels: Mapping[str, str]) -> list[str]:
    """Names of attributes, those with a level as tables name them: "age@five-year".

    Raises `DomainError` for a level of an attribute that is not among them.
    """
    if others := [name for name in levels if name not in names]:
        raise DomainError(
            f"A level is stated for {shown(others[0])}, which is not among the attributes of the "
            f"table ({' × '.join(names) or 'total'}); name the attribute, too."
        )
    return [f"{name}{AT}{levels[name]}" if name in levels else name for name in names]


_NUMBER = r"(-?[0-9]++(?:\.[0-9]++)?)"
BAND = re.compile(rf"\s*+{_NUMBER}\s*+(?:(\+)|(?:-|–|to|\.\.)\s*+{_NUMBER})?\s*+")
"""A band of numbers as people write it: its first number, a plus sign or its last number."""


@dataclass(frozen=True)
class Level:
    """Groups of an attribute's values, each value in one of them.

    name    what tables name behind the attribute's name: "five-year"
    groups  for each value the name of the group that it lies in
    """

    name: str
    groups: tuple[str, ...]

    def __post_init__(self) -> None:
        if not is_text(self.name) or not self.name.strip() or AT in self.name:
            raise DomainError(
                f"The name of a level must be a text without {AT!r}, got {shown(self.name)!r}; "
                "rename it."
            )
        object.__setattr__(self, "name", normalize("NFC", self.name.strip()))
        if not isinstance(self.groups, list | tuple):
            raise DomainError(
                f"The level {self.name!r} must name a group for each value, got "
                f"{shown_value(self.groups)}."
            )
        others = () if set(map(type, self.groups)) <= {str} else self.groups
        for group in others or dict.fromkeys(self.groups):  # each once: values may be a million
            if not is_text(group) or not group.strip():
                raise DomainError(
                    f"The groups of level {self.name!r} must be texts that are not empty, got "
                    f"{shown_value(group)}."
                )
        kept = {group: normalize("NFC", group.strip()) for group in dict.fromkeys(self.groups)}
        of_names: dict[str, str] = {}
        for group, name in kept.items():
            if of_names.setdefault(name, group) != group:
                raise DomainError(
                    f"The level {self.name!r} has two groups that are both called {name!r}, but "
                    "for blanks or the way accents are written; rename one of them."
                )
        noun = f"group of level {self.name!r}"
        check_names(of_names, noun, "is there twice", DomainError, are_shown=True)
        object.__setattr__(self, "groups", tuple(kept[group] for group in self.groups))

    @property
    def labels(self) -> tuple[str, ...]:
        """The groups, in the order of their first values."""
        return tuple(dict.fromkeys(self.groups))

    def check(self, name: str, n_values: int) -> None:
        """Raise `DomainError` unless it groups the values of an attribute of this name and size."""
        whose = f"The level {self.name!r} of attribute {name!r}"
        if len(self.groups) != n_values:
            raise DomainError(
                f"{whose} must name a group for each of its {n_values:,} values, got "
                f"{len(self.groups):,}."
            )
        n_groups = len(set(self.groups))
        if n_groups == 1:
            raise DomainError(
                f"{whose} has one group of all values, which is the total; leave it out."
            )
        if n_groups == n_values:
            raise DomainError(
                f"{whose} has a group for every value, which are the values themselves; leave it "
                "out."
            )


def levels_from_json(stated: Any, values: "Values") -> tuple[Level, ...]:
    """The levels that a codebook states for an attribute with these values.

    Raises `DomainError` for a level that cannot be made of them.
    """
    if not isinstance(stated, dict):
        raise DomainError(
            f'"levels" must be an object of levels by their names, got {shown_value(stated)}.'
        )
    check_number(len(stated), values.size)
    return tuple(Level(name, groups_of(name, said, values)) for name, said in stated.items())


def check_number(n_levels: int, n_values: int) -> None:
    """Raise `DomainError` for more levels of an attribute than there can be."""
    if n_levels > MOST_LEVELS:
        raise DomainError(
            f"An attribute can have {MOST_LEVELS} levels, got {n_levels:,}; leave out those that "
            "no table will have."
        )
    if n_levels * n_values > MOST_GROUPED:
        raise DomainError(
            f"The levels of a codebook can group {MOST_GROUPED:,} values, counted for each level, "
            f"got {n_levels:,} levels of {n_values:,} values; leave out those that no table will "
            "have."
        )


def groups_of(name: str, stated: Any, values: "Values") -> tuple[str, ...]:
    """The group of each value, from one of the forms in which a level can be stated."""
    if isinstance(stated, Mapping):
        return _from_lists(name, stated, values)
    if isinstance(stated, str):
        make = _from_step if isinstance(values, Dates) else _from_bands
        return make(name, stated, values)
    if isinstance(stated, int | float) and not isinstance(stated, bool):
        return _from_width(name, stated, values)
    groups: Any = stated
    return groups  # checked by `Level`


def _from_lists(name: str, stated: Mapping[str, Any], values: "Values") -> tuple[str, ...]:
    texts = (
        values.values if isinstance(values, Categories) else map(values.label, range(values.size))
    )
    places = {text: index for index, text in enumerate(texts)}
    groups: dict[int, str] = {}
    for group, listed in stated.items():
        if not isinstance(listed, list | tuple):
            raise DomainError(
                f"The group {group!r} of level {name!r} must be a list of values, got "
                f"{shown_value(listed)}."
            )
        for value in listed:
            text = str(value)
            if text not in places:
                raise DomainError(
                    f"The level {name!r} has {text!r} in the group {group!r}, which is no value of "
                    "the attribute."
                )
            if places[text] in groups:
                raise DomainError(
                    f"The level {name!r} has the value {text!r} in two groups, "
                    f"{groups[places[text]]!r} and {group!r}; keep it in one."
                )
            groups[places[text]] = group
    if missing := [text for text, place in places.items() if place not in groups]:
        raise DomainError(
            f"The level {name!r} has no group for {shown_few(missing)}; name one for every value."
        )
    return tuple(groups[place] for place in range(len(places)))


def _from_bands(name: str, stated: str, values: Any) -> tuple[str, ...]:
    """The groups of bands such as "0-17, 18-64, 65+"; cells for missing numbers stay themselves."""
    ends = _ends_of_values(name, values)
    bands: list[tuple[float, float, str]] = []
    for text in stated.split(","):
        match = BAND.fullmatch(text)
        if match is None:
            raise DomainError(
                f"The level {name!r} must be bands such as 0-17, 18-64, 65+, got {text.strip()!r}."
            )
        low = float(match[1])
        high = float("inf") if match[2] else float(match[3] if match[3] else match[1])
        bands.append((low, high, text.strip()))
    bands.sort()
    for (_, before, text), (low, _, other) in pairwise(bands):
        if low < before:
            raise DomainError(
                f"The level {name!r} has bands that overlap, {text} and {other}; every value must "
                "lie in one band."
            )
    groups, lows = [], [low for low, *_ in bands]
    for lowest, highest in ends:
        # Bands only touch: a value lies in the last one that begins by then, or in it and others
        # that are one number.
        number = bisect_right(lows, lowest)
        near = bands[max(number - 2, 0) : number]
        holding = [text for low, high, text in near if low <= lowest and highest <= high]
        if len(holding) != 1:
            how = "no band" if not holding else f"two bands, {holding[0]} and {holding[1]}"
            raise DomainError(
                f"The level {name!r} has {_text_of_ends(lowest, highest)} in {how}; every value "
                "must lie in one band, from its first number to its last."
            )
        groups.append(holding[0])
    return _with_missing(name, groups, values)


def _from_step(name: str, stated: str, values: Any) -> tuple[str, ...]:
    """The groups of dates by a longer step, such as months by the year."""
    groups = type(values)(values.first, values.last, stated)
    splits = set(groups.starts[1:]) - set(values.starts)
    if splits:
        raise DomainError(
            f"The level {name!r} by {stated} would split {len(splits):,} of the groups of days; "
            "take a step that whole ones lie in."
        )
    places = [bisect_right(groups.starts, start) - 1 for start in values.starts]
    return _with_missing(name, [groups.label(place) for place in places], values)


def _from_width(name: str, stated: float, values: Any) -> tuple[str, ...]:
    """The groups of so many numbers together, which begin at multiples of so many."""
    is_whole = isinstance(stated, float) and stated.is_integer()
    width = int(stated) if is_whole else whole_number(stated)
    if width is None or width < 2:
        raise DomainError(
            f"The width of level {name!r} must be a whole number of at least 2, got {stated!r}."
        )
    ends = _ends_of_values(name, values)
    members: dict[float, list[tuple[float, float]]] = {}
    for lowest, highest in ends:
        following = (lowest // width + 1) * width
        # A bin ends where the next one begins.
        if highest > following or (highest == following and not isinstance(values, Bins)):
            raise DomainError(
                f"The level {name!r} of width {width} would split the value "
                f"{_text_of_ends(lowest, highest)}; take a multiple of the values' own width."
            )
        members.setdefault(lowest // width, []).append((lowest, highest))
    labels = {place: _text_of_ends(own[0][0], own[-1][1]) for place, own in members.items()}
    return _with_missing(name, [labels[lowest // width] for lowest, _ in ends], values)


def _text_of_ends(lowest: float, highest: float) -> str:
    """Numbers from one to another, all of their digits: "1000000 to 1000001"."""
    first, last = f"{lowest:.15g}", f"{highest:.15g}"
    return first if first == last else f"{first} to {last}"


def _with_missing(name: str, groups: list[str], values: Any) -> tuple[str, ...]:
    """The groups of numbers or dates, and behind them cells for missing ones, each its own."""
    for label in values.missing_labels:
        if normalize("NFC", label.strip()) in groups:
            raise DomainError(
                f"The level {name!r} has a group that is called {label!r}, as a cell for missing "
                "values is; give one of the two another name."
            )
    return (*groups, *values.missing_labels)


def _ends_of_values(name: str, values: "Values") -> list[tuple[float, float]]:
    """The lowest and the highest number of each value, of whole numbers and bins."""
    if isinstance(values, Integers):
        firsts = range(values.minimum, values.maximum + 1, values.step)
        return [(first, min(first + values.step - 1, values.maximum)) for first in firsts]
    if isinstance(values, Bins):
        return values.ends
    raise DomainError(
        f"The level {name!r} states numbers, and the values are none; list the values of each "
        "group."
    )


def levels_of_groups(attribute: "Attribute") -> tuple[Level, ...]:
    """A level for each depth of the attribute's groups; none unless every value lies as deep."""
    depths = set(map(len, attribute.groups))
    if len(depths) != 1:
        return ()
    (depth,) = depths
    names = ["groups"] if depth == 1 else [f"groups {number + 1}" for number in range(depth)]
    made = [
        Level(name, tuple(LEVELS.join(path[: number + 1]) for path in attribute.groups))
        for number, name in enumerate(names)
    ]
    return tuple(level for level in made if 1 < len(level.labels) < attribute.size)
