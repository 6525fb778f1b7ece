"""Query strategy: what is measured for a list of linear queries (docs/mathematics.md §7.5, §8)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

import numpy as np

from rpexplore.common.numbers import read_only
from rpexplore.common.processes import one_thread
from rpexplore.errors import PlanError
from rpexplore.planning.counts_moves import (
    KeptByCounts,
    are_known,
    combination,
    moves_of,
)
from rpexplore.planning.solvers.queries import decoding
from rpexplore.planning.solvers.query_rounding import MOST_ENTRY_BITS, MOST_ROWS
from rpexplore.workload.query_list import QueryList

# Measured is R x, x the counts of the cells and R an integer matrix, with independent noise of one
# variance γ². The answers are W x = D (R x), so that query i has the variance γ² ‖D_i‖².


# D R may be off W by so much, relative to the largest coefficient of a query; answers are then
# unbiased to as many digits.
DECODING_TOLERANCE = 1e-9
# … and by no more than this share of any coefficient: none may be left out as if it were rounding.
_OF_EACH = 1e-3
# Cells that use less than this share of the budget have some to spare; above it is rounding.
_SPARE_BELOW = 0.999
_DEPENDENT = 1e-11  # relative size of singular values that are rounding


@dataclass(frozen=True, eq=False)
class QueryStrategy:
    """R for a list of queries: integers, int64[k, n_cells], k the rank of the queries.

    Where the list is about atoms, these are the cells here.

    free, free_rows   places of the counts that the unused budget is for, ascending, and how many of
                      the last rows are measured for them alone
    kept              what neighbours keep, where totals are exact

    Raises `PlanError` unless R determines all answers, and well enough to compute with; without the
    rows of free counts it must determine all others.
    """

    queries: QueryList
    integers: np.ndarray
    free: tuple[int, ...] = ()
    free_rows: int = 0
    kept: KeptByCounts | None = None

    def __post_init__(self) -> None:
        given, n_cells = np.asarray(self.integers), self.queries.n_cells
        most_rows = min(n_cells * (2 if self.free else 1), MOST_ROWS)
        if given.ndim != 2 or given.shape[1] != n_cells or not 1 <= len(given) <= most_rows:
            raise PlanError(
                f"A strategy for {n_cells:,} cells must have 1 to {most_rows:,} rows of "
                f"{n_cells:,} numbers, got the shape {given.shape}."
            )
        most = 2**MOST_ENTRY_BITS
        if not np.issubdtype(given.dtype, np.integer) or np.any((given < -most) | (given > most)):
            raise PlanError(
                f"A strategy's numbers must be integers within ±2^{MOST_ENTRY_BITS}, got "
                "something else; make the plan again."
            )
        object.__setattr__(self, "integers", read_only(np.ascontiguousarray(given, dtype=np.int64)))
        places = self.free
        is_ascending = all(before < after for before, after in pairwise((-1, *places)))
        if (
            not is_ascending
            or len(places) >= len(self.queries)
            or max(places, default=0) >= len(self.queries)
        ):
            raise PlanError(
                "Free counts must be some of the own counts, not all, in their order, got the "
                f"places {places}."
            )
        if not 0 <= self.free_rows < len(given) or (self.free_rows and not places):
            raise PlanError(
                f"Some of the {len(given):,} rows of the strategy, not all, can be for free counts "
                f"alone, got {self.free_rows:,}."
            )
        _ = self.decoding, self.charged.decoding

    @cached_property
    def is_charged(self) -> np.ndarray:
        """Whether a count is none of the free ones, bool[n_queries], read-only."""
        return read_only(~np.isin(np.arange(len(self.queries)), self.free))

    @cached_property
    def charged(self) -> "QueryStrategy":
        """What is measured for the counts that are not free, by itself."""
        if not self.free:
            return self
        rows = self.integers[: len(self.integers) - self.free_rows]
        return QueryStrategy(without(self.queries, self.free), rows)

    def decoded(self, coefficients: np.ndarray) -> np.ndarray:
        """The shortest rows that R makes these of, as nearly as it can, float64[n, k]."""
        matrix = self.integers.astype(float)
        if self.free_rows:  # these may depend on the others
            return np.linalg.lstsq(matrix.T, coefficients.T, rcond=_DEPENDENT)[0].T
        return decoding(matrix, coefficients)

    @cached_property
    def column_squares(self) -> np.ndarray:
        """Squared norm of each column of R, exact: int64[n_cells], read-only."""
        return read_only(np.sum(self.integers * self.integers, axis=0))

    @property
    def squared_sensitivity(self) -> int:
        """The largest change of R x by one record, as a squared norm: exact."""
        return int(np.max(self.column_squares))

    @cached_property
    def replaced_squares(self) -> np.ndarray:
        """Squared norm of the largest change of R x where a record of each cell is replaced.

        Around exact totals: of the changes that keep them and have a record in the cell. Exact:
        Python's integers, which do not overflow, object[n_cells]
        """
        if self.kept is not None:
            noisy = self.integers[~self.is_same]
            moves = moves_of(self.queries, self.kept, noisy)
            largest = np.zeros(int(moves.kind_of.max()) + 1, dtype=object)
            squares = moves.squares(noisy)
            for kinds in moves.kinds.T:
                np.maximum.at(largest, kinds, squares)
            return largest[moves.kind_of]
        columns, kind_of = np.unique(self.integers, axis=1, return_inverse=True)
        columns = columns.astype(object)
        products = columns.T @ columns
        squares = np.diag(products)
        return np.max(squares[:, None] + squares - 2 * products, axis=1)[kind_of.ravel()]

    @property
    def squared_diameter(self) -> int:
        """The largest change of R x between neighbours that replace records, as a squared norm.

        Exact.
        """
        return int(np.max(self.replaced_squares))

    @cached_property
    def decoding(self) -> np.ndarray:
        """D, float64[n_queries, k], read-only."""
        matrix, coefficients = self.integers.astype(float), self.queries.coefficients
        try:
            with np.errstate(all="ignore"), one_thread():
                decoded = self.decoded(coefficients)
                difference = np.abs(decoded @ matrix - coefficients)
                left_out = difference > _OF_EACH * np.abs(coefficients)
                dropped = np.any(left_out & (coefficients != 0), axis=1)
                off = np.where(dropped, np.inf, np.max(difference, axis=1))
        except np.linalg.LinAlgError:
            decoded, off = coefficients, np.full(len(self.queries), np.inf)
        largest = np.max(np.abs(coefficients), axis=1)
        if not np.all(off <= DECODING_TOLERANCE * largest):  # NaN is not
            query = self.queries.names[int(np.argmax(np.nan_to_num(off / largest, nan=np.inf)))]
            raise PlanError(
                f"A strategy must determine all own counts, but does not determine {query!r} well "
                "enough to compute with; make the plan again, or bring the sizes of the "
                "coefficients closer together."
            )
        return read_only(decoded)

    @cached_property
    def variance_factors(self) -> np.ndarray:
        """‖D_i‖²: variance of each query's answer over γ², float64[n_queries], read-only."""
        return read_only(np.sum(self.decoding**2, axis=1))

    @cached_property
    def is_same(self) -> np.ndarray:
        """Which rows of R are public where records are replaced, bool[k], read-only.

        Multiples of the number of records, or what exact totals tell.
        """
        if self.kept is not None:
            is_known = are_known(self.queries, self.kept, self.integers)
            return read_only(is_known & np.any(self.integers, axis=1))
        return read_only((np.ptp(self.integers, axis=1) == 0) & (self.integers[:, 0] != 0))

    @cached_property
    def public_combinations(self) -> dict[int, list[Fraction]]:
        """Place of a query that follows from what is public -> what it is of these rows, exact."""
        rows = self.integers[self.is_same]
        if self.kept is None:  # which are multiples of one
            rows = rows[:1]
            places = np.flatnonzero(np.ptp(self.queries.integers, axis=1) == 0)
        else:
            places = np.flatnonzero(are_known(self.queries, self.kept, self.queries.integers))
        found: dict[int, list[Fraction]] = {}
        for place in places.tolist() if len(rows) else ():
            if (terms := combination(rows, self.queries.integers[place])) is not None:
                scale = Fraction(1, int(self.queries.denominators[place]))
                found[place] = [scale * term for term in terms]
        return found

    @cached_property
    def are_public(self) -> np.ndarray:
        """Which queries follow from public rows, bool[n_queries]."""
        return read_only(np.isin(np.arange(len(self.queries)), list(self.public_combinations)))

    def public_answers(self, measured: np.ndarray) -> dict[int, float]:
        """Place -> the answer of each query that is public, from R x: exact, then rounded once."""
        numbers = measured[self.is_same].tolist()
        return {
            place: float(sum(term * number for term, number in zip(terms, numbers, strict=False)))
            for place, terms in self.public_combinations.items()
        }

    @cached_property
    def replaced_factors(self) -> np.ndarray:
        """`variance_factors` where some rows are public, and measured without noise."""
        noisy = np.where(self.is_same, 0.0, self.decoding)
        return read_only(np.where(self.are_public, 0.0, np.sum(noisy**2, axis=1)))

    @cached_property
    def profile(self) -> np.ndarray:
        """Share of the privacy cost that records of each cell use, float64[n_cells], read-only."""
        return read_only(self.column_squares / self.squared_sensitivity)

    @cached_property
    def replaced_profile(self) -> np.ndarray:
        """Share of the privacy cost that records of each cell use if replaced by the dearest.

        float64[n_cells], read-only
        """
        return read_only((self.replaced_squares / self.squared_diameter).astype(float))

    @cached_property
    def spare(self) -> np.ndarray:
        """Whether records of the cell leave some of the budget unused, bool[n_cells], read-only."""
        return read_only(self.profile < _SPARE_BELOW)


def without(queries: QueryList, places: Sequence[int]) -> QueryList:
    """The list without the counts at these places."""
    kept = [place for place in range(len(queries)) if place not in places]
    return replace(
        queries,
        coefficients=queries.coefficients[kept],
        names=tuple(queries.names[place] for place in kept),
        targets=queries.targets[kept],
    )
