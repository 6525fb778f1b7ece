"""Strategy: what is measured of an attribute that some table has in other than single values.

Of an attribute's counts x the total 1ᵀx and R x are measured, with R of n − 1 rows and [1ᵀ; R]
invertible; with [z, D] its inverse, queries W are answered as ν·1ᵀx + V·R x, ν = W z and V = W D
(docs/mathematics.md §4.1). The reference distribution z says how the total is spread where nothing
else is known. R is an integer matrix over a power of two: its sensitivity is exact, and the noise
it is measured with is discrete (docs/mathematics.md §7.3).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from math import prod

import numpy as np

from rpexplore.common.numbers import read_only
from rpexplore.common.processes import one_thread
from rpexplore.errors import PlanError
from rpexplore.workload.bases import Basis
from rpexplore.workload.table_text import QueryMatrix, query_matrix
from rpexplore.workload.workload import Workload

MOST_BITS = 20
# Of the computed inverse times [1ᵀ; R] from the identity: answers are unbiased to as many digits.
INVERSE_TOLERANCE = 1e-8
# Of the largest number in the inverse times that in R, so that decoding keeps its digits.
LARGEST_INVERSE = 1e7
# Where residuals have matrices of their own, reference distributions are multiples of 2 to minus
# this, so that all rows are at right angles to one in integers (docs/mathematics.md §5.8).
REFERENCE_BITS = 12
# What one moment of a basis, τ or η, is taken to be at least, of the other one: where queries ask
# nothing of a residual, such as a total that none tells, noise on it would have no limit.
LEAST_MOMENT = 1e-18
_AT_ONCE = 1 << 22  # numbers worked on together


@dataclass(frozen=True, eq=False)
class Strategy:
    """R = integers / 2^bits, int64[n − 1, n].

    range_in_steps  what the counts of tables with the attribute are multiplied by: of amounts the
                    range in their smallest steps, else 1
    product_units   of weights: by the attribute of amounts, how many products of steps are one
                    where both are counted (`Amounts.product_unit`)
    of_residuals    by the attributes of a residual: what is measured of this one there, if not R.
                    All have the same bits and exactly the same reference distribution

    Raises `PlanError` unless [1ᵀ; R] is invertible, and well enough to compute with.
    """

    integers: np.ndarray
    bits: int
    range_in_steps: int = 1
    product_units: Mapping[int, int] = field(default_factory=dict)
    of_residuals: Mapping[tuple[int, ...], "Strategy"] = field(default_factory=dict)

    def __post_init__(self) -> None:
        given = np.asarray(self.integers)
        if given.ndim != 2 or given.shape[0] != given.shape[1] - 1 or given.shape[1] < 2:
            raise PlanError(
                f"A strategy for n values must have n − 1 rows of n, got the shape {given.shape}."
            )
        are_integers = np.issubdtype(given.dtype, np.integer) and type(self.bits) is int
        # Not by absolute values: that of the least 64-bit integer is itself.
        if (
            not are_integers
            or not 0 <= self.bits <= MOST_BITS
            or np.any((given < -(2**MOST_BITS)) | (given > 2**MOST_BITS))
        ):
            raise PlanError(
                f"A strategy's numbers must be integers within ±2^{MOST_BITS}, over a power of "
                "two of at most that."
            )
        object.__setattr__(self, "integers", read_only(np.ascontiguousarray(given, dtype=np.int64)))
        _ = self._inverse
        if self.of_residuals:
            self._refuse_other_references()

    def _refuse_other_references(self) -> None:
        """Raise `PlanError` unless all residuals have R z = 0 for one z, exactly."""
        z = np.rint(self.reference * 2**REFERENCE_BITS).astype(np.int64)
        for own in (self, *self.of_residuals.values()):
            if own.size != self.size or own.bits != self.bits or np.any(own.integers @ z):
                raise PlanError(
                    "The matrices that residuals have of their own must have the size, the bits "
                    "and the reference distribution of their attribute's strategy, and that must "
                    f"be a multiple of 2^−{REFERENCE_BITS}."
                )

    def within(self, residual: Sequence[int]) -> "Strategy":
        """What is measured of the attribute in the residual of these attributes, ascending."""
        return self.of_residuals.get(tuple(residual), self)

    def is_like(self, other: "Strategy") -> bool:
        """Whether both measure the same, in all residuals with matrices of their own too."""
        return all(
            np.array_equal(self.within(residual).matrix, other.within(residual).matrix)
            for residual in ((), *self.of_residuals, *other.of_residuals)
        )

    @property
    def size(self) -> int:
        """Number of values of the attribute, n."""
        return self.integers.shape[1]

    def scale_in(self, residual: Sequence[int]) -> int:
        """What the integers measured in the residual of these attributes are larger by than R x."""
        return 2**self.bits * self.steps_in(residual)

    def steps_in(self, residual: Sequence[int]) -> int:
        """What the counts of the residual of these attributes are multiplied by for this one."""
        return self.range_in_steps // prod(self.product_units.get(one, 1) for one in residual)

    @cached_property
    def squared_sensitivity(self) -> int:
        """Largest squared column norm of the integer matrix: exact."""
        # At most n · 2^40, so that 64 bits hold it for every size there can be.
        return int(np.max(np.sum(self.integers * self.integers, axis=0)))

    @property
    def cost_factor(self) -> Fraction:
        """β: largest squared column norm of R, exact."""
        return Fraction(self.squared_sensitivity, 4**self.bits)

    @cached_property
    def squared_diameter(self) -> int:
        """Largest squared distance of two columns of the integer matrix: exact."""
        products = self.integers.T @ self.integers
        squares = np.diag(products)
        return int(np.max(squares[:, None] + squares - 2 * products))

    @cached_property
    def opposed(self) -> Fraction:
        """At least the largest −⟨a, b⟩ / (‖a‖ ‖b‖) of two columns of R, and at least 0; at most 1.

        Of integers, so that rounding is far below what is added.
        """
        columns = self.integers / np.sqrt(np.maximum(np.sum(self.integers**2, axis=0), 1))
        largest = max(float(-np.min(columns.T @ columns)), 0.0)
        return min(Fraction(largest) + Fraction(1, 2**32), Fraction(1))

    @cached_property
    def matrix(self) -> np.ndarray:
        """R, float64[n − 1, n], exact."""
        return self.integers / float(2**self.bits)

    @cached_property
    def _inverse(self) -> np.ndarray:
        """[z, D], float64[n, n]."""
        n = self.size
        stacked = np.vstack([np.ones(n), self.matrix])
        try:
            with one_thread():
                inverse = np.linalg.inv(stacked)
        except np.linalg.LinAlgError:
            inverse = np.full((n, n), np.inf)
        with np.errstate(invalid="ignore", over="ignore"):
            off = np.max(np.abs(inverse @ stacked - np.eye(n)))
        exactness = np.max(np.abs(inverse)) * np.max(np.abs(stacked))
        if not (off < INVERSE_TOLERANCE and exactness < LARGEST_INVERSE):
            raise PlanError(
                "A strategy must tell all values of its attribute apart: with a row of ones its "
                "matrix must be invertible, and well enough to compute with."
            )
        return read_only(inverse)

    @property
    def reference(self) -> np.ndarray:
        """z, the reference distribution: float64[n], sum 1."""
        return self._inverse[:, 0]

    @property
    def decoding(self) -> np.ndarray:
        """D, float64[n, n − 1]."""
        return self._inverse[:, 1:]

    @cached_property
    def decoded_covariance(self) -> np.ndarray:
        """D Dᵀ, float64[n, n]: covariance of the decoded values for noise of variance 1 on R x."""
        with one_thread():
            return self.decoding @ self.decoding.T

    def moments(self, matrix: QueryMatrix) -> "Moments":
        """T and N of queries on the attribute."""
        # From V itself: squares of D's products would lose half of their digits where they cancel.
        spread = np.zeros(matrix.n_rows)
        step = max(_AT_ONCE // matrix.n_rows, 1)
        with one_thread():
            for start in range(0, self.size - 1, step):
                spread += np.sum(matrix.of(self.decoding[:, start : start + step], 0) ** 2, axis=1)
        total = matrix.of(self.reference, 0) ** 2
        return Moments.at_least(spread, total)

    @property
    def value_moments(self) -> "Moments":
        """T and N of the attribute's single values."""
        return Moments.of(np.diag(self.decoded_covariance), self.reference**2)


@dataclass(frozen=True, eq=False)
class Moments:
    """Of each query r on an attribute: how noise on its residual and on the total gets in.

    spread      float64[n_rows]: T(r) = ‖row r of V‖²
    total       float64[n_rows]: N(r) = ν(r)²
    spread_sum  τ = Σ_r T(r)
    total_sum   η = Σ_r N(r)
    asks_spread, asks_total
                whether T and N are more than the `LEAST_MOMENT` that they are taken to be
    """

    spread: np.ndarray
    total: np.ndarray
    spread_sum: float
    total_sum: float
    asks_spread: bool = True
    asks_total: bool = True

    @cached_property
    def least_accurate_rows(self) -> np.ndarray:
        """Rows that can be the least accurate, whatever the noise: int64[m]."""
        return hull(self.total, self.spread, largest=True)

    @cached_property
    def most_accurate_rows(self) -> np.ndarray:
        """Rows that can be the most accurate, whatever the noise: int64[m]."""
        return hull(self.total, self.spread, largest=False)

    @classmethod
    def of(cls, spread: np.ndarray, total: np.ndarray) -> "Moments":
        return cls(spread, total, float(np.sum(spread)), float(np.sum(total)))

    @classmethod
    def at_least(cls, spread: np.ndarray, total: np.ndarray) -> "Moments":
        """Those of queries that may ask for nothing of one of them, which is `LEAST_MOMENT`."""
        spread_sum, total_sum = float(np.sum(spread)), float(np.sum(total))
        if total_sum < LEAST_MOMENT * spread_sum:
            total = total + LEAST_MOMENT * spread_sum / len(total)
            return replace(cls.of(spread, total), asks_total=False)
        if spread_sum < LEAST_MOMENT * total_sum:
            spread = spread + LEAST_MOMENT * total_sum / len(spread)
            return replace(cls.of(spread, total), asks_spread=False)
        return cls.of(spread, total)

    @classmethod
    def of_even_values(cls, queries: QueryMatrix) -> "Moments":
        """Those of queries about values that are measured as in RP."""
        sums = queries.of(np.ones(queries.n_values), 0)
        squares = queries.operator.row_quadratics(np.eye(queries.n_values))
        spread = np.maximum(squares - sums**2 / queries.n_values, 0.0)
        return cls.at_least(spread, (sums / queries.n_values) ** 2)

    @classmethod
    def of_single_values(cls, size: int) -> "Moments":
        """Those of all n single values, measured as in RP; costs nothing to hold."""
        spread, total = np.broadcast_to((size - 1) / size, size), np.broadcast_to(1 / size**2, size)
        return cls(spread, total, size - 1.0, 1 / size)


def moments_of_bases(workload: Workload, strategies: Mapping[int, Strategy]) -> list["Moments"]:
    """T and N of each of `workload.attribute_bases`; attributes that are alike share theirs."""
    known: dict[tuple, Moments] = {}
    of_bases = []
    for index, basis in workload.attribute_bases:
        strategy = strategies.get(index)
        if strategy is None:
            of_bases.append(moments(workload, index, basis, strategies))
            continue
        queries = query_matrix(basis, workload.domain.attributes[index])
        key = id(strategy), queries.operator
        if key not in known:
            known[key] = strategy.moments(queries)
        of_bases.append(known[key])
    return of_bases


def moments(
    workload: Workload, attribute_index: int, basis: Basis, strategies: Mapping[int, Strategy]
) -> Moments:
    """T and N of the queries of a basis of an attribute."""
    attribute = workload.domain.attributes[attribute_index]
    strategy = strategies.get(attribute_index)
    if strategy is not None:
        return strategy.moments(query_matrix(basis, attribute))
    if basis.is_identity:
        return Moments.of_single_values(attribute.size)
    if attribute.size > 1:
        raise PlanError(
            f"The attribute {attribute.name!r} has another basis than single values and no "
            "strategy; make the plan again."
        )
    total = query_matrix(basis, attribute).of(np.ones(1), 0) ** 2
    return Moments.of(np.zeros_like(total), total)


def measured_attributes(workload: Workload) -> list[int]:
    """Indices of the attributes that need a strategy, ascending.

    Of those that tables have at several levels, blocks are measured instead.
    """
    return [
        attribute
        for attribute, bases in enumerate(workload.bases)
        if workload.domain.sizes[attribute] > 1
        and not all(basis.is_identity for basis in bases)
        and attribute not in workload.at_several_levels
    ]


def hull(x: np.ndarray, y: np.ndarray, *, largest: bool) -> np.ndarray:
    """Indices of points at which some a·x + b·y, a, b ≥ 0, is largest (or smallest), int64[m].

    The vertices of that side of the convex hull, by descending (ascending) x.
    """
    if x.strides == y.strides == (0,):  # all alike, however many
        return np.zeros(1, dtype=np.int64)
    if not largest:
        x, y = -x, -y
    order = np.lexsort((-y, -x))  # by descending x, then y
    # Only points with a larger y than all of larger x are on this side.
    highest = np.maximum.accumulate(y[order])
    rising = np.append(True, y[order][1:] > highest[:-1])
    kept: list[int] = []
    for point in order[rising].tolist():
        while len(kept) >= 2 and _is_within(x, y, kept[-2], kept[-1], point):
            kept.pop()
        kept.append(point)
    return np.array(kept, dtype=np.int64)


def _is_within(x: np.ndarray, y: np.ndarray, first: int, middle: int, last: int) -> bool:
    """Whether the middle one of three points by descending x is not beyond the others' line."""
    across = (x[middle] - x[first]) * (y[last] - y[first])
    along = (y[middle] - y[first]) * (x[last] - x[first])
    return along >= across
