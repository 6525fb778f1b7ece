"""Selections: which values of an attribute a text names: "F", "18..24", "South", "North,South"."""

from itertools import pairwise

from rpexplore.domain.attribute import LEVELS, Attribute, Bins, Categories, Integers
from rpexplore.errors import DomainError

RANGE = ".."
_MOST_SHOWN = 4


def selected(attribute: Attribute, text: str) -> tuple[int, ...]:
    """The places of the values that a text names, ascending.

    A value is named as it is stored or by its label; a group of values by its name, or its path
    ("South > East"). "18..24" are all values from one to the other, both included ("..24", "65..":
    from the first, to the last), where numbers must be where values begin and end. Several of
    these may stand side by side, separated by commas.

    Raises `DomainError` for a text that names none.
    """
    names = _Names(attribute)
    found = names.places(text.strip())
    if found is None:
        parts = [names.places(part.strip()) for part in text.split(",")]
        if None in parts:
            raise DomainError(names.refusal(text))
        found = tuple(place for part in parts if part is not None for place in part)
    return tuple(sorted(set(found)))


def chosen(attribute: Attribute, text: str) -> list[float]:
    """The values that a text names as a question: 1.0 for each of them, 0.0 for others, [size]."""
    places = set(selected(attribute, text))
    return [float(place in places) for place in range(attribute.size)]


class _Names:
    """What the values of an attribute, and the groups of them, are called."""

    def __init__(self, attribute: Attribute) -> None:
        self.attribute, values = attribute, attribute.values
        self.labels = attribute.labels()
        self.place_of = {label: place for place, label in enumerate(self.labels)}
        if isinstance(values, Categories):  # what is stored goes first
            self.place_of |= {value: place for place, value in enumerate(values.values)}
        self.starts: dict[float, int] = {}
        self.ends: dict[float, int] = {}
        if isinstance(values, Integers):
            edges = [values.minimum + place * values.step for place in range(values.size)]
            self.starts = {edge: place for place, edge in enumerate(edges)}
            self.ends = {edge - 1: place for place, edge in enumerate(edges[1:])}
            self.ends[values.maximum] = values.size - 1
        elif isinstance(values, Bins):
            self.starts = {left: place for place, (left, _) in enumerate(pairwise(values.edges))}
            self.ends = {right: place for place, (_, right) in enumerate(pairwise(values.edges))}

    def places(self, text: str) -> tuple[int, ...] | None:
        """What a text without commas between its parts names."""
        if text in self.place_of:
            return (self.place_of[text],)
        return self._group(text) or self._range(text)

    def _group(self, text: str) -> tuple[int, ...] | None:
        """The values of a group by its path, or by its name where only one group has it."""
        paths = {
            path[:depth] for path in self.attribute.groups for depth in range(1, len(path) + 1)
        }
        named = [path for path in paths if LEVELS.join(path) == text]
        named = named or [path for path in paths if path[-1] == text]
        if len(named) != 1:
            return None
        (path,) = named
        groups = enumerate(self.attribute.groups)
        return tuple(place for place, each in groups if each[: len(path)] == path)

    def _range(self, text: str) -> tuple[int, ...] | None:
        start = text.find(RANGE)
        while start >= 0:  # labels may hold dots
            left, right = text[:start].strip(), text[start + len(RANGE) :].strip()
            first = self._end(left, self.starts) if left else 0
            last = self._end(right, self.ends) if right else len(self.labels) - 1
            if (left or right) and first is not None and last is not None and first <= last:
                return tuple(range(first, last + 1))
            start = text.find(RANGE, start + 1)
        return None

    def _end(self, text: str, of_numbers: dict[float, int]) -> int | None:
        if text in self.place_of:
            return self.place_of[text]
        try:
            return of_numbers.get(float(text))
        except ValueError:
            return None

    def refusal(self, text: str) -> str:
        more = "…" if len(self.labels) > _MOST_SHOWN else ""
        known = ", ".join([*map(repr, self.labels[:_MOST_SHOWN]), *([more] if more else [])])
        ends = ", from where a value begins to where one ends" if self.starts else ""
        groups = ", a group" if self.attribute.groups else ""
        return (
            f"The values of attribute {self.attribute.name!r} must be named by one of them{groups} "
            f"or a range such as {self.labels[0]}{RANGE}{self.labels[-1]}{ends}, got {text!r}; its "
            f"values are {known}."
        )
