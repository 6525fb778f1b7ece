"""Basis: which sums of an attribute's values a table has, and all that is said about them."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal, Self

from rpexplore.common.formatting import plural
from rpexplore.common.json_fields import check_keys
from rpexplore.domain.attribute import Attribute
from rpexplore.errors import WorkloadError
from rpexplore.workload.bases.operators import Operator

# Strategies hold matrices of size × size.
MAX_VALUES = 4_000


@dataclass(frozen=True)
class Basis(ABC):
    """The rows of a matrix W, each a query about one attribute; a plain value without matrices.

    A basis is one class in a file of its own, listed in `BASES`: files, command line, pages and
    reports ask the class, and know no basis by name.
    """

    kind: ClassVar[str]  # in files and on the command line
    title: ClassVar[str]  # on screen
    option_help: ClassVar[str]  # for the command line
    text_forms: ClassVar[tuple[str, ...]]  # as text; what stands behind the colon in capitals
    parameter: ClassVar[Literal["none", "number", "numbers", "file"]] = "none"
    parameter_title: ClassVar[str] = ""

    min_values: ClassVar[int] = 2  # of an attribute for which it says more than single values do
    max_values: ClassVar[int] = MAX_VALUES
    is_identity: ClassVar[bool] = False
    starts_with_total: ClassVar[bool] = False  # the first of several rows sums all values
    ends_with_values: ClassVar[bool] = False  # the last rows are the single values, in order
    follows_order: ClassVar[bool] = True  # rows lie in the order of the values
    counts_records: ClassVar[bool] = True  # every answer is a number of records
    sums_neighbours: ClassVar[bool] = False  # queries are sums of consecutive values
    is_triangle: ClassVar[bool] = False  # rows run over all pairs of a first and a last value

    @property
    def depends_on_order(self) -> bool:
        """Whether the queries depend on the order in which the values stand."""
        return self.sums_neighbours

    @property
    def uses_groups(self) -> bool:
        """Whether the queries depend on the groups of the attribute."""
        return False

    # ---- the matrix

    def check(self, attribute: Attribute) -> None:
        """Raise `WorkloadError` if the basis cannot be that of the attribute."""
        if attribute.size > self.max_values:
            raise WorkloadError(
                f"Attribute {attribute.name!r} must have at most {self.max_values:,} values for "
                f"the basis {self.kind}, got {attribute.size:,}; group its values."
            )

    def n_rows(self, attribute: Attribute) -> int:
        """Number of queries about the attribute, without making them; one a value by default."""
        return attribute.size

    @abstractmethod
    def operator(self, attribute: Attribute) -> Operator:
        """W for the attribute; it depends on the size and, if `uses_groups`, the groups alone."""

    @abstractmethod
    def row_label(self, attribute: Attribute) -> Callable[[int], str]:
        """The function from a row of W to what its query is called; labels are distinct."""

    # ---- files and text

    def json_fields(self) -> dict[str, Any]:
        """JSON content beside the kind; `from_json_fields` undoes it."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in values.items()
        }

    @classmethod
    def from_json_fields(cls, content: Mapping[str, Any]) -> Self:
        """Raises TypeError or `RpexploreError` for anything but `json_fields`."""
        names = [field.name for field in fields(cls)]
        check_keys(content, ["kind", *names], f"the basis {cls.kind}")
        return cls(**{name: content[name] for name in names})

    def parameter_text(self) -> str:
        """The parameter as it is typed, "" without one; `from_parameter` undoes it."""
        return ""

    @classmethod
    def from_parameter(cls, text: str) -> Self:
        """The basis with a typed parameter; `WorkloadError` if it cannot be one."""
        if text.strip():
            raise WorkloadError(
                f"The basis {cls.kind} has no parameter, got {text!r}; leave it out."
            )
        return cls()

    # ---- to choose from

    @classmethod
    def unavailable_reason(cls, attribute: Attribute) -> str:
        """Why the attribute is not offered this basis; "" if it is."""
        if attribute.size < cls.min_values_of(attribute):
            return f"at least {plural(cls.min_values_of(attribute), 'value')} needed"
        if attribute.size > cls.max_values:
            return f"at most {cls.max_values:,} values possible; join some on the Codebook page"
        return ""

    @classmethod
    def min_values_of(cls, attribute: Attribute) -> int:
        """`min_values`, or fewer where the attribute has groups that count."""
        return cls.min_values

    @classmethod
    def default(cls, attribute: Attribute) -> Self | None:
        """The default basis for an attribute; None if it needs a file first."""
        return cls()

    @classmethod
    def parameter_help(cls, attribute: Attribute) -> str:
        """Help for typing the parameter, in one or two sentences."""
        return ""

    # ---- as text

    def describe(self, attribute: Attribute) -> str:
        """The basis for a list: "cumulative: up to each value"."""
        return self.title

    def suffix(self, attribute: Attribute) -> str:
        """What a table's title says about the attribute: "cumulative"; "" for single values."""
        return self.title

    def example_rows(self, attribute: Attribute) -> list[int]:
        """Up to three rows that show what the queries are; those beyond the last are left out."""
        n = attribute.size
        return [n // 4, n // 2, (3 * n) // 4]

    def limit(self, name: str, up_to: str, letters: Iterator[str]) -> str:
        """The condition that a cell sets: "age ≤ a"; "" if cells are `by` something instead."""
        return ""

    def by(self, name: str) -> str:
        """The attribute and basis in a title: "age", "region (with its groups)"."""
        return name
