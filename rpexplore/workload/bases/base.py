"""Basis: which sums of an attribute's values a table has, and its matrix W, computed with."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np

from rpexplore.common.json_fields import check_keys
from rpexplore.common.numbers import read_only
from rpexplore.common.text import plural
from rpexplore.domain.amounts import Amounts
from rpexplore.domain.attribute import Attribute
from rpexplore.errors import WorkloadError

if TYPE_CHECKING:
    from scipy import sparse


# ---- Operators: matrices W of query bases that compute without holding W (RP+ §7).
#
# Only bases given as a matrix are held as one: all 500,500 ranges of 1,000 values cost little more
# than the values themselves.


class Operator(ABC):
    """A matrix W [n_rows, n_values]: one row a query, one column a value of the attribute."""

    n_values: int
    n_rows: int

    @cached_property
    def gram(self) -> np.ndarray:
        """WᵀW, float64[n_values, n_values], read-only; not for identities of very many values."""
        return read_only(self.weighted_gram(np.ones(self.n_rows)))

    @abstractmethod
    def weighted_gram(self, weights: np.ndarray) -> np.ndarray:
        """Wᵀ diag(weights) W, float64[n_values, n_values]."""

    @abstractmethod
    def row_quadratics(self, matrix: np.ndarray) -> np.ndarray:
        """diag(W M Wᵀ), float64[n_rows], of a symmetric matrix M [n_values, n_values]."""

    @abstractmethod
    def of(self, x: np.ndarray, axis: int) -> np.ndarray:
        """W applied along an axis of float64[…, n_values, …]: float64[…, n_rows, …]."""


class SingleValues(Operator):
    """The identity matrix."""

    def __init__(self, n_values: int) -> None:
        self.n_values = self.n_rows = n_values

    def weighted_gram(self, weights: np.ndarray) -> np.ndarray:
        return np.diag(weights)

    def row_quadratics(self, matrix: np.ndarray) -> np.ndarray:
        return np.diag(matrix).copy()

    def of(self, x: np.ndarray, axis: int) -> np.ndarray:
        return x


class Intervals(Operator):
    """Sums of consecutive values: row r sums the values first[r] … last[r]; all rows differ."""

    def __init__(self, first: np.ndarray, last: np.ndarray, n_values: int) -> None:
        self.first, self.last = first, last  # int64[n_rows] each
        self.n_values, self.n_rows = n_values, len(first)

    def weighted_gram(self, weights: np.ndarray) -> np.ndarray:
        n = self.n_values
        # Entry (i, j), i ≤ j, is the weight of all rows from at most i to at least j.
        of_pair = np.zeros((n, n))
        of_pair[self.first, self.last] = weights
        upper = np.triu(of_pair.cumsum(axis=0)[:, ::-1].cumsum(axis=1)[:, ::-1])
        return upper + np.triu(upper, 1).T

    def row_quadratics(self, matrix: np.ndarray) -> np.ndarray:
        sums = np.zeros((self.n_values + 1, self.n_values + 1))
        sums[1:, 1:] = matrix.cumsum(axis=0).cumsum(axis=1)
        start, stop = self.first, self.last + 1
        squares = np.diag(sums)
        return squares[stop] + squares[start] - 2 * sums[start, stop]

    def of(self, x: np.ndarray, axis: int) -> np.ndarray:
        zero = np.zeros_like(x.take([0], axis))
        sums = np.concatenate([zero, x.cumsum(axis)], axis)
        return sums.take(self.last + 1, axis) - sums.take(self.first, axis)


class Matrix(Operator):
    """A matrix that is held, dense or sparse, [n_rows, n_values]."""

    def __init__(self, matrix: "np.ndarray | sparse.csr_array") -> None:
        self._matrix = matrix
        shape: Any = matrix.shape
        self.n_rows, self.n_values = shape

    @classmethod
    def of_sets(cls, sets: Sequence[Sequence[int]], n_values: int) -> "Matrix":
        """One row for each set of values: 1 where a value is in the set, sparse."""
        from scipy import sparse  # heavy, and the command line's help needs no matrix

        starts = np.cumsum([0, *map(len, sets)])
        columns = np.fromiter((value for values in sets for value in values), np.int64)
        ones = np.ones(len(columns))
        return cls(sparse.csr_array((ones, columns, starts), shape=(len(sets), n_values)))

    def weighted_gram(self, weights: np.ndarray) -> np.ndarray:
        gram = self._matrix.T @ (self._matrix * weights[:, None])
        return gram if isinstance(gram, np.ndarray) else gram.toarray()

    def row_quadratics(self, matrix: np.ndarray) -> np.ndarray:
        return np.asarray((self._matrix * (self._matrix @ matrix)).sum(axis=1))

    def of(self, x: np.ndarray, axis: int) -> np.ndarray:
        first = np.moveaxis(x, axis, 0)
        answers = self._matrix @ first.reshape(self.n_values, -1)
        return np.moveaxis(answers.reshape(self.n_rows, *first.shape[1:]), 0, axis)


# ---- Basis: which sums of an attribute's values a table has, and all that is said about them.


# Strategies hold matrices of size × size.
MAX_VALUES = 4_096


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
    determines_values: ClassVar[bool] = True  # the answers tell the count of every value
    follows_order: ClassVar[bool] = True  # rows lie in the order of the values
    counts_records: ClassVar[bool] = True  # every answer is a number of records
    sums_neighbours: ClassVar[bool] = False  # queries are sums of consecutive values
    of_amounts: ClassVar[bool] = False  # has sums of amounts, and is what their attributes have
    of_weights: ClassVar[bool] = False  # of amounts that are survey weights
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
        values = attribute.values
        if isinstance(values, Amounts) and not self.of_amounts:
            sums = "weighted counts" if values.are_weights else "sums and counts"
            raise WorkloadError(
                f"The attribute {attribute.name!r} has {values.noun}, and tables have its {sums}, "
                f"got the basis {self.kind}; leave the basis out, or give the attribute bins."
            )
        if self.of_amounts and not isinstance(values, Amounts):
            raise WorkloadError(
                f"The basis {self.kind} is for amounts, and the values of {attribute.name!r} are "
                'none; give it "bounds" in the codebook, or another basis.'
            )
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
        """W for the attribute; it depends on the size and, if `uses_groups`, the groups alone.

        If it `depends_on_order`, also on how many of the values are missing ones, which stand by
        themselves.
        """

    def row_units(self, attribute: Attribute) -> np.ndarray:
        """What each answer is multiplied by, to be in the unit of results: float64[n_rows]."""
        return np.ones(self.n_rows(attribute))

    @abstractmethod
    def row_label(self, attribute: Attribute) -> Callable[[int], str]:
        """The function from a row of W to what its query is called; labels are distinct."""

    def parents(self, attribute: Attribute) -> Sequence[int | None]:
        """For each row the row of the smallest group that it lies in; () without such groups."""
        return ()

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
        if isinstance(attribute.values, Amounts) != cls.of_amounts:
            return "for amounts" if cls.of_amounts else "amounts are summed"
        if attribute.n_ordered < cls.min_values_of(attribute):
            return f"at least {plural(cls.min_values_of(attribute), 'value')} needed"
        if attribute.size > cls.max_values:
            return f"at most {cls.max_values:,} values possible; join some on the Data page"
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


@lru_cache(maxsize=16)
def leave_values_open(bases: tuple[Basis, ...], attribute: Attribute) -> bool:
    """Whether all answers of some bases together do not tell the count of every value."""
    if any(basis.determines_values for basis in bases):
        return False
    values = np.eye(attribute.size)
    rows = np.concatenate([basis.operator(attribute).of(values, 0) for basis in bases])
    rows = rows / np.abs(rows).max(axis=1, keepdims=True)
    squares = np.linalg.eigvalsh(rows.T @ rows)
    if squares[0] > 1e-8 * squares[-1]:  # surely of full rank, and quicker to find out
        return False
    sizes = np.linalg.svd(rows, compute_uv=False)
    tolerance = 16 * max(rows.shape) * np.finfo(np.float64).eps
    return bool(np.count_nonzero(sizes > sizes[0] * tolerance) < attribute.size)
