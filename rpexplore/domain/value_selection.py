"""Selections: the values of an attribute that a text names: "F", "18..24", "South", "North,South".

A value is named as it is stored or by its label, a group of values by its name or its path.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias
from unicodedata import normalize

from rpexplore.common.exact_numbers import shown_few
from rpexplore.domain.attribute import LEVELS, Attribute, Bins, Categories, Integers
from rpexplore.errors import DomainError

if TYPE_CHECKING:
    from rpexplore.domain.domain import Domain

RANGE = ".."

# One text, or several of which each names some values: "0..17", ["North", "East"], 30.
Selection: TypeAlias = str | int | Sequence[str | int]


def product_query(domain: "Domain", selections: Mapping[str, Selection]) -> dict[str, list[float]]:
    """The query that counts records whose values all lie in the selections, by attribute name.

    Example:
        >>> import rpexplore as rp
        >>> domain = rp.Domain((rp.Attribute("age", rp.Integers(0, 4)),))
        >>> product_query(domain, {"age": "1..3"})
        {'age': [0.0, 1.0, 1.0, 1.0, 0.0]}
    """
    return {name: coefficients(domain[name], chosen) for name, chosen in selections.items()}


def coefficients(attribute: Attribute, selection: Selection) -> list[float]:
    """1.0 for each selected value and 0.0 for others, [size]; raises as `selected_values`."""
    listed = [selection] if isinstance(selection, str | int) else selection
    if not listed:
        raise DomainError(
            f"The selected values of attribute {attribute.name!r} must be at least one, got none; "
            "name one, or leave the attribute out for all of them."
        )
    selected = {index for text in listed for index in selected_values(attribute, str(text))}
    return [float(index in selected) for index in range(attribute.size)]


def selected_values(attribute: Attribute, text: str) -> tuple[int, ...]:
    """The indices of the values that a text names, ascending.

    A value is named as it is stored or by its label; a group of values by its name, or its path
    ("South > East"). "18..24" are all values from one to the other, both included ("..24", "65..":
    from the first, to the last), where numbers must be where values begin and end. Several of
    these may stand side by side, separated by commas.

    Raises `DomainError` for a text that names none.
    """
    text = normalize("NFC", text)
    indices = _indices(attribute, text.strip())
    if indices is not None:
        return tuple(sorted(set(indices)))
    selected: set[int] = set()
    for part in text.split(","):
        indices = _indices(attribute, part.strip())
        if indices is None:
            labels = attribute.labels()
            is_numeric = not isinstance(attribute.values, Categories)
            ends = ", from where a value begins to where one ends" if is_numeric else ""
            groups = ", a group" if attribute.groups else ""
            raise DomainError(
                f"The values of attribute {attribute.name!r} must be named by one of them{groups} "
                f"or a range such as {labels[0]}{RANGE}{labels[-1]}{ends}, got {text!r}; its "
                f"values are {shown_few(labels)}."
            )
        selected.update(indices)
    return tuple(sorted(selected))


@lru_cache(maxsize=64)
def values_by_name(attribute: Attribute) -> Mapping[str, Sequence[int]]:
    """The indices of the values that each name stands for.

    What is stored goes first, then labels, then groups by their path, then groups by their name
    where only one group has it.
    """
    by_path: dict[tuple[str, ...], list[int]] = {}
    for index, path in enumerate(attribute.groups):
        for depth in range(1, len(path) + 1):
            by_path.setdefault(path[:depth], []).append(index)
    group_names = [path[-1] for path in by_path]
    names = {path[-1]: indices for path, indices in by_path.items()}
    names = {name: indices for name, indices in names.items() if group_names.count(name) == 1}
    names |= {LEVELS.join(path): indices for path, indices in by_path.items()}
    return names | {name: [index] for name, index in index_by_value(attribute).items()}


@lru_cache(maxsize=64)
def index_by_value(attribute: Attribute) -> Mapping[str, int]:
    """The index of the value that is stored like this, or else has this label."""
    by_label = {label: index for index, label in enumerate(attribute.labels())}
    return by_label | {value: index for index, value in enumerate(attribute.stored_values())}


def _indices(attribute: Attribute, text: str) -> Sequence[int] | None:
    """The values that a text without commas between its parts names: by a name, or as a range."""
    named = values_by_name(attribute)
    if text in named:
        return named[text]
    starts, ends = _starts_and_ends(attribute)
    split = text.find(RANGE)
    while split >= 0:  # labels may hold dots
        left, right = text[:split].strip(), text[split + len(RANGE) :].strip()
        first = _end_of_range(attribute, left, starts) if left else 0
        last = _end_of_range(attribute, right, ends) if right else attribute.size - 1
        if (left or right) and first is not None and last is not None and first <= last:
            return range(first, last + 1)
        split = text.find(RANGE, split + 1)
    return None


def _end_of_range(attribute: Attribute, text: str, numbers: Mapping[float, int]) -> int | None:
    """The index of the value at an end of a range, named by itself or by a number."""
    value = index_by_value(attribute).get(text)
    if value is not None:
        return value
    try:
        return numbers.get(float(text))
    except ValueError:
        return None


@lru_cache(maxsize=64)
def _starts_and_ends(attribute: Attribute) -> tuple[Mapping[float, int], Mapping[float, int]]:
    """{number: index of the value that begins with it}, and {… ends with it}; {} for categories."""
    values = attribute.values
    if isinstance(values, Integers):
        lows = range(values.minimum, values.maximum + 1, values.step)
        highs = [*(low - 1 for low in lows[1:]), values.maximum]
    elif isinstance(values, Bins):
        lows, highs = zip(*pairwise(values.edges), strict=True)
    else:
        return {}, {}
    return (
        {low: index for index, low in enumerate(lows)},
        {high: index for index, high in enumerate(highs)},
    )
