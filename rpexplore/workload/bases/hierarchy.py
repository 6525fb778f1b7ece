"""Hierarchy: a tree of the total, groups of values, and the single values."""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Self

from rpexplore.common.numbers import shown, whole_number
from rpexplore.common.text import joined
from rpexplore.domain.attribute import Attribute
from rpexplore.domain.levels import LEVELS
from rpexplore.errors import WorkloadError
from rpexplore.workload.bases.base import Basis, Matrix, Operator


@dataclass(frozen=True)
class Hierarchy(Basis):
    """Every node of a tree: the total, groups from coarse to fine, the single values.

    Args:
        widths: How many consecutive values the groups hold, each a multiple of the next smaller
            one; the last group may hold fewer. (): the groups of the attribute.

    Raises:
        WorkloadError: If the widths are no such numbers.

    Example:
        >>> import rpexplore as rp
        >>> age = rp.Attribute("age", rp.Integers(0, 99))
        >>> rp.Hierarchy((5, 20)).n_rows(age)  # 1 + 5 + 20 + 100
        126
    """

    widths: tuple[int, ...] = ()

    kind = "hierarchy"
    title = "hierarchy"
    option_help = (
        "hierarchy (the groups of its values), hierarchy:5,20 (groups of 5 and of 20 values)"
    )
    text_forms = ("hierarchy", "hierarchy:WIDTH,WIDTH")
    parameter = "numbers"
    parameter_title = "Values in a group, such as 5, 10"
    min_values = 3
    starts_with_total = True
    ends_with_values = True
    follows_order = False

    def __post_init__(self) -> None:
        if not isinstance(self.widths, list | tuple):
            raise WorkloadError(f"The widths of groups must be a list, got {self.widths!r}.")
        for width in self.widths:
            if (whole_number(width) or 0) < 2:
                raise WorkloadError(
                    f"The width of groups must be a whole number of at least 2, got {width!r}."
                )
        widths = sorted(map(int, self.widths))
        for smaller, larger in pairwise(widths):
            if larger == smaller or larger % smaller:
                raise WorkloadError(
                    "Each width of groups must be a multiple of the next smaller one, so that "
                    f"groups lie within groups, got {smaller:,} and {larger:,}; try "
                    f"{smaller * max(round(larger / smaller), 2):,}."
                )
        object.__setattr__(self, "widths", tuple(widths))

    @property
    def depends_on_order(self) -> bool:
        return bool(self.widths)

    @property
    def uses_groups(self) -> bool:
        return not self.widths

    def check(self, attribute: Attribute) -> None:
        """Raise `WorkloadError` if the attribute has no groups, or fewer values than a width."""
        super().check(attribute)
        if attribute.size == 1:
            return
        if not self.widths and not attribute.groups:
            raise WorkloadError(
                f"Attribute {attribute.name!r} must have groups for the basis hierarchy, and has "
                "none; name the groups of its values in the schema (in a codebook the column "
                "group), or give widths of groups of consecutive values."
            )
        if self.widths and self.widths[-1] >= attribute.n_ordered:
            raise WorkloadError(
                f"The width of groups must be below the {attribute.n_ordered:,} values of "
                f"attribute {attribute.name!r}, got {self.widths[-1]:,}; choose a smaller width."
            )

    def n_rows(self, attribute: Attribute) -> int:
        return attribute.size + (attribute.size > 1) + len(self.groups(attribute))

    def operator(self, attribute: Attribute) -> Operator:
        n = attribute.size
        total = [tuple(range(n))] if n > 1 else []
        groups = [members for members, _ in self.groups(attribute)]
        nodes = [*total, *groups, *((value,) for value in range(n))]
        return Matrix.of_sets(nodes, n)

    def row_label(self, attribute: Attribute) -> Callable[[int], str]:
        values = attribute.labels()
        if len(values) == 1:
            return values.__getitem__
        paths = [
            path or (attribute.values.range_label(members[0], members[-1]),)
            for members, path in self.groups(attribute)
        ]
        used = set(values)
        names = [path[-1] for path in paths]
        ambiguous = {name for name, count in Counter(names).items() if count > 1} | used | {"all"}
        labels = [path[-1] if path[-1] not in ambiguous else LEVELS.join(path) for path in paths]
        # Groups that keep their names come first, so that no other one takes them.
        used.update(
            label for label, name in zip(labels, names, strict=True) if name not in ambiguous
        )
        unique = [_unused("all", used)]
        for label, name in zip(labels, names, strict=True):
            unique.append(label if name not in ambiguous else _unused(label, used))
        return [*unique, *values].__getitem__

    def groups(self, attribute: Attribute) -> list[tuple[tuple[int, ...], tuple[str, ...]]]:
        """Indices of the values, and path, of all groups, the coarsest first; no path by width.

        Without the total. A named group is there even if it has the same values as a coarser one,
        or a single value: so a level is complete. By width these would be called alike, and are
        left out.
        """
        self.check(attribute)
        n, n_ordered = attribute.size, attribute.n_ordered
        by_width = dict.fromkeys(
            tuple(range(start, min(start + width, n_ordered)))
            for width in reversed(self.widths)
            for start in range(0, n_ordered, width)
        )
        groups = [(members, ()) for members in by_width if len(members) > 1]
        paths = () if self.widths else attribute.groups
        for depth in range(1, max(map(len, paths), default=0) + 1):
            members: dict[tuple[str, ...], list[int]] = {}
            for value, path in enumerate(paths):
                if len(path) >= depth:
                    members.setdefault(path[:depth], []).append(value)
            groups += [(tuple(values), path) for path, values in members.items()]
        return [(values, path) for values, path in groups if len(values) < n]

    def parents(self, attribute: Attribute) -> list[int | None]:
        """For each row the row of the smallest group that it lies in; None for the total."""
        if attribute.size == 1:
            return [None]
        parents: list[int | None] = [None]
        smallest = [0] * attribute.size  # row so far, for each value
        for row, (members, _) in enumerate(self.groups(attribute), start=1):
            parents.append(smallest[members[0]])
            for value in members:
                smallest[value] = row
        return [*parents, *smallest]

    def levels(self, attribute: Attribute) -> dict[str, range]:
        """{name: its rows} of the levels of the tree, from the total to the single values."""
        self.check(attribute)
        if attribute.size == 1:
            return {"single values": range(1)}
        levels, row = {"total": range(1)}, 1
        groups = self.groups(attribute)
        names = [self._level_name(members, path, attribute) for members, path in groups]
        for name, count in Counter(names).items():
            levels[name] = range(row, row + count)
            row += count
        return levels | {"single values": range(row, row + attribute.size)}

    def _level_name(
        self, members: tuple[int, ...], path: tuple[str, ...], attribute: Attribute
    ) -> str:
        """ "groups of 5"; "groups", or "groups, level 2" where groups have groups."""
        if path:
            deepest = max(map(len, attribute.groups))
            return f"groups, level {len(path)}" if deepest > 1 else "groups"
        start = members[0]
        width = max(
            width
            for width in self.widths
            if start % width == 0 and len(members) == min(width, attribute.n_ordered - start)
        )
        return f"groups of {width:,}"

    def parameter_text(self) -> str:
        return ",".join(map(str, self.widths))

    @classmethod
    def from_parameter(cls, text: str) -> Self:
        parts = [part for part in re.split(r"[\s,;]+", text) if part]
        wrong = next((part for part in parts if not part.isdecimal() or len(part) > 18), None)
        if wrong is not None:
            raise WorkloadError(
                "The widths of groups must be whole numbers separated by commas, got "
                f"{shown(wrong)!r}; type for example 5, 10."
            )
        return cls(tuple(int(part) for part in parts))

    @classmethod
    def min_values_of(cls, attribute: Attribute) -> int:
        return 2 if attribute.groups else cls.min_values

    @classmethod
    def default(cls, attribute: Attribute) -> Self:
        if attribute.groups:
            return cls()
        return cls((next((width for width in (10, 5) if 3 * width <= attribute.n_ordered), 2),))

    @classmethod
    def parameter_help(cls, attribute: Attribute) -> str:
        rest = "For groups of your own, give the values groups on the Data page."
        if attribute.groups:
            rest = "Empty: the groups that the values have on the Data page."
        return f"Numbers of consecutive values; several give groups within groups. {rest}"

    def describe(self, attribute: Attribute) -> str:
        if not self.widths:
            return "hierarchy: groups and single values"
        return f"hierarchy: groups of {self._listed_widths} values, and single values"

    def suffix(self, attribute: Attribute) -> str:
        return f"hierarchy of {self._listed_widths}" if self.widths else self.title

    def example_rows(self, attribute: Attribute) -> list[int]:
        n_groups = self.n_rows(attribute) - attribute.size
        return [0, min(1, n_groups), n_groups]

    def by(self, name: str) -> str:
        if not self.widths:
            return f"{name} (with its groups)"
        return f"{name} (single values and groups of {self._listed_widths})"

    @property
    def _listed_widths(self) -> str:
        return joined([f"{width:,}" for width in self.widths])


def _unused(label: str, used: set[str]) -> str:
    """The label, with "(all)" added as often as it takes; it is used then."""
    while label in used:
        label += " (all)"
    used.add(label)
    return label
