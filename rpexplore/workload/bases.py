"""Query bases: the ways in which an attribute can be asked (docs/mathematics.md §4.1).

A basis says which sums of an attribute's values a table answers: each value, all values up to each
one, every range, … It is a plain value without matrices; `query_matrix` computes with it.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, TypeAlias

from rpexplore.common.exact_numbers import whole_number
from rpexplore.domain.attribute import Attribute
from rpexplore.errors import WorkloadError
from rpexplore.workload.custom_basis import CustomBasis

# Strategies hold matrices of size × size.
MAX_VALUES = 4_000


@dataclass(frozen=True)
class _Computed:
    """What the bases that follow from the number of values have in common."""

    kind: ClassVar[str]
    is_identity: ClassVar[bool] = False

    def check(self, attribute: Attribute) -> None:
        """Raise `WorkloadError` if the attribute cannot be asked this way."""
        if attribute.size > MAX_VALUES:
            raise WorkloadError(
                f"Attribute {attribute.name!r} must have at most {MAX_VALUES:,} values to be asked "
                f"other than by each value, got {attribute.size:,}; group its values."
            )


@dataclass(frozen=True)
class Identity(_Computed):
    """Each value by itself."""

    kind = "identity"
    is_identity = True

    def check(self, attribute: Attribute) -> None:
        """Any attribute can be asked this way."""

    def n_rows(self, attribute: Attribute) -> int:
        return attribute.size

    def words(self, attribute: Attribute) -> str:
        return "each value"


@dataclass(frozen=True)
class Prefix(_Computed):
    """All values up to each one."""

    kind = "prefix"

    def n_rows(self, attribute: Attribute) -> int:
        return attribute.size

    def words(self, attribute: Attribute) -> str:
        return "cumulative: up to each value"


@dataclass(frozen=True)
class Ranges(_Computed):
    """Every range of consecutive values: n(n+1)/2 questions."""

    kind = "ranges"

    def n_rows(self, attribute: Attribute) -> int:
        return attribute.size * (attribute.size + 1) // 2

    def words(self, attribute: Attribute) -> str:
        return "every range of values"


@dataclass(frozen=True)
class Windows(_Computed):
    """Rolling sums: each value with the width − 1 values before it, fewer at the start."""

    width: int
    kind = "windows"

    def __post_init__(self) -> None:
        width = whole_number(self.width)
        if width is None or width < 1:
            raise WorkloadError(
                f"The width of rolling sums must be a whole number of at least 1, got "
                f"{self.width!r}."
            )
        object.__setattr__(self, "width", width)

    def n_rows(self, attribute: Attribute) -> int:
        return attribute.size

    def words(self, attribute: Attribute) -> str:
        if self.width >= attribute.size:
            return Prefix().words(attribute)
        return f"rolling sums of {self.width:,} values" if self.width > 1 else "each value"


@dataclass(frozen=True)
class Hierarchy(_Computed):
    """Every node of a tree: the total, groups of values, the single values.

    widths  how many consecutive values the groups hold, each a multiple of the next smaller one;
            the last group may hold fewer. (): the groups of the attribute.
    """

    widths: tuple[int, ...] = ()
    kind = "hierarchy"

    def __post_init__(self) -> None:
        if not isinstance(self.widths, list | tuple):
            raise WorkloadError(f"The widths of groups must be a list, got {self.widths!r}.")
        widths = []
        for given in self.widths:
            width = whole_number(given)
            if width is None or width < 2:
                raise WorkloadError(
                    f"The width of groups must be a whole number of at least 2, got {given!r}."
                )
            widths.append(width)
        widths.sort()
        for smaller, larger in pairwise(widths):
            if larger == smaller or larger % smaller:
                raise WorkloadError(
                    "Each width of groups must be a multiple of the next smaller one, so that "
                    f"groups lie within groups, got {smaller:,} and {larger:,}; try "
                    f"{smaller * max(round(larger / smaller), 2):,}."
                )
        object.__setattr__(self, "widths", tuple(widths))

    def check(self, attribute: Attribute) -> None:
        """Raise `WorkloadError` if the attribute has no groups, or fewer values than a width."""
        super().check(attribute)
        if attribute.size == 1:
            return
        if not self.widths and not attribute.groups:
            raise WorkloadError(
                f"Attribute {attribute.name!r} must have groups to be asked by them, and has none; "
                "name the groups of its values in the schema (in a codebook the column group), or "
                "give widths of groups of consecutive values."
            )
        if self.widths and self.widths[-1] >= attribute.size:
            raise WorkloadError(
                f"The width of groups must be below the {attribute.size:,} values of attribute "
                f"{attribute.name!r}, got {self.widths[-1]:,}; choose a smaller width."
            )

    def n_rows(self, attribute: Attribute) -> int:
        return attribute.size + (attribute.size > 1) + len(self.groups(attribute))

    def words(self, attribute: Attribute) -> str:
        if not self.widths:
            return "groups and single values"
        widths = " and ".join(f"{width:,}" for width in self.widths)
        return f"groups of {widths} values, and single values"

    def groups(self, attribute: Attribute) -> dict[tuple[int, ...], tuple[str, ...]]:
        """{places of the values: path} of all groups, the coarsest first, without the total, single
        values, and groups of the same values as a coarser one. Groups by width have no path."""
        self.check(attribute)
        n = attribute.size
        groups: dict[tuple[int, ...], tuple[str, ...]] = {}
        for width in reversed(self.widths):
            for start in range(0, n, width):
                groups.setdefault(tuple(range(start, min(start + width, n))), ())
        paths = () if self.widths else attribute.groups
        for depth in range(1, max(map(len, paths), default=0) + 1):
            members: dict[tuple[str, ...], list[int]] = {}
            for value, path in enumerate(paths):
                if len(path) >= depth:
                    members.setdefault(path[:depth], []).append(value)
            for path, values in members.items():
                groups.setdefault(tuple(values), path)
        return {values: path for values, path in groups.items() if 1 < len(values) < n}


Basis: TypeAlias = Identity | Prefix | Ranges | Windows | Hierarchy | CustomBasis


def to_json(basis: Basis) -> dict[str, Any]:
    """The basis as JSON content; `from_json` undoes it exactly."""
    content: dict[str, Any] = {"kind": basis.kind}
    match basis:
        case Windows():
            content["width"] = basis.width
        case Hierarchy():
            content["widths"] = list(basis.widths)
        case CustomBasis():
            rows = [[int(x) if x.is_integer() else x for x in row] for row in basis.rows]
            content |= {"name": basis.name, "labels": list(basis.labels), "rows": rows}
    return content


def from_json(content: dict[str, Any]) -> Basis:
    """The basis of JSON content; KeyError, TypeError or `WorkloadError` for anything else."""
    match content["kind"]:
        case "identity":
            return Identity()
        case "prefix":
            return Prefix()
        case "ranges":
            return Ranges()
        case "windows":
            return Windows(content["width"])
        case "hierarchy":
            return Hierarchy(content["widths"])
        case "custom":
            return CustomBasis(content["rows"], content["labels"], content["name"])
    raise WorkloadError(
        "The basis of an attribute must be identity, prefix, ranges, windows, hierarchy or custom, "
        f"got {content['kind']!r}."
    )
