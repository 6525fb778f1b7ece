"""Strategies by residual: what is measured of attributes that tables have in several bases.

One matrix R for all residuals of an attribute is a compromise between the bases of all tables. Of a
residual only the tables matter that contain it, so that each can have matrices of its own. They
keep the attribute's reference distribution z, so that all else stays as it is: tables are sums over
their subsets, without bias, and costs and variances products, with the residual's own β and τ
(docs/mathematics.md §5.8).

For given z the residuals have nothing to do with each other: the sum of variances is (Σ √(p v))²,
and each √(p v) is made smallest by itself, attribute by attribute.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from rpexplore.common.processes import one_thread
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.mechanism.strategy import REFERENCE_BITS, Strategy
from rpexplore.planning.mechanism.variances import MOST_OWN_CELLS
from rpexplore.planning.solvers.solution import dual_bound
from rpexplore.planning.solvers.strategy_matrix import StrategySolution, best_matrix
from rpexplore.planning.solvers.strategy_rounding import bits_for, turned
from rpexplore.workload.table_text import query_matrix
from rpexplore.workload.workload import Workload

_LEAST_GAIN = 1e-3  # of the sum of variances: for less, plans are not made longer
_MOST_VALUES = 64  # of an attribute
_MOST_NUMBERS = 400_000  # in all matrices
_MOST_INCIDENCES = 50_000
_MOST_SWEEPS = 8
_STILL = 1e-5  # a sweep that lowers a residual's v by less (relative) is the last one
_TOLERANCE = 1e-5  # of an attribute's search: rounding costs more
_STEPS_A_VALUE = 16  # of 2^−b for an even share: far finer than what is lost by them
_TURNS = 2  # rotated matrices that are rounded as well, where there are few bits


def with_residual_strategies(
    workload: Workload, closure: Closure, table_weights: np.ndarray
) -> Closure:
    """The closure with matrices by residual for a weighted sum of variances, if that gains enough.

    Args:
        closure: With strategies, where neighbours add or remove a record.
        table_weights: float64[n_tables], on the mean variance of each table's cells.
    """
    search = _Search.of(workload, closure, table_weights)
    if search is None:
        return closure
    with one_thread(with_scipy=True):
        found = closure.with_strategies(workload, {**closure.strategies, **search.strategies()})

    def value(closure: Closure) -> float:
        weights = closure.residual_weights(table_weights)
        return dual_bound(closure.privacy_cost_factor, weights, 1.0)

    return found if value(found) < value(closure) * (1 - _LEAST_GAIN) else closure


@dataclass(frozen=True, eq=False)
class _Search:
    """What each residual needs.

    attributes  with several bases, whose matrices are looked for, and their z in steps of 2^−b
    residuals   that have one of them, and only tables of few enough cells
    grams       by place in `workload.attribute_bases`, of the mean square of a query
    bits        of all matrices
    having      the incidence by residual: which tables have each
    """

    workload: Workload
    closure: Closure
    table_weights: np.ndarray
    attributes: Mapping[int, np.ndarray]
    residuals: Sequence[int]
    grams: Mapping[int, np.ndarray]
    bits: int
    having: sparse.csc_array

    @classmethod
    def of(
        cls, workload: Workload, closure: Closure, table_weights: np.ndarray
    ) -> "_Search | None":
        """None where there is nothing to gain, or too much to look for."""
        domain = workload.domain
        if closure.trees or closure.has_own_costs or workload.has_levels or domain.amounts:
            return None
        attributes = {}
        for number, bases in enumerate(workload.bases):
            n = int(domain.sizes[number])
            # Others have directions, or a total, that no query asks about.
            tells_all = any(basis.determines_values for basis in bases)
            if len(bases) > 1 and tells_all and 2 < n <= _MOST_VALUES:
                attributes[number] = _in_steps(closure.strategies[number].reference)
        if not attributes or closure.incidence.nnz > _MOST_INCIDENCES:
            return None
        large = closure.incidence.T @ (
            np.maximum(workload.cells, workload.counted_cells) > MOST_OWN_CELLS
        )
        residuals, n_numbers = [], 0
        for residual in np.flatnonzero(large == 0).tolist():
            own = [number for number in closure.attributes(residual) if number in attributes]
            n_numbers += sum(int(domain.sizes[number]) ** 2 for number in own)
            if own:
                residuals.append(residual)
        if not residuals or n_numbers > _MOST_NUMBERS:
            return None
        grams = {}
        for place, (attribute, basis) in enumerate(workload.attribute_bases):
            if attribute in attributes:
                queries = query_matrix(basis, domain.attributes[attribute])
                grams[place] = queries.operator.gram / queries.n_rows
        measured = np.isin(workload.members, list(closure.strategies))
        bits = int(bits_for(int(np.max(np.sum(measured, axis=1)))))
        having = sparse.csc_array(closure.incidence)
        return cls(workload, closure, table_weights, attributes, residuals, grams, bits, having)

    def strategies(self) -> dict[int, Strategy]:
        """Those of the attributes, with their matrices by residual."""
        own: dict[int, dict[tuple[int, ...], Strategy]] = {one: {} for one in self.attributes}
        for residual in self.residuals:
            inside = self.closure.attributes(residual)
            for attribute, matrix in self._of_residual(residual).items():
                own[attribute][inside] = Strategy(matrix, self.bits)
        found = {}
        for attribute, of_residuals in own.items():
            z, matrix = self.attributes[attribute], self.closure.strategies[attribute].matrix
            matrix = matrix - np.outer(matrix @ z / np.sum(z), np.ones(len(z)))
            gram = sum(self.grams[place] for place in self._places(attribute))
            integers = _rounded(matrix, z, self.bits, np.asarray(gram))
            found[attribute] = Strategy(integers, self.bits, of_residuals=of_residuals)
        return found

    def _places(self, attribute: int) -> list[int]:
        bases = self.workload.attribute_bases
        return [place for place, (number, _) in enumerate(bases) if number == attribute]

    def _of_residual(self, residual: int) -> dict[int, np.ndarray]:
        """The integer matrix of each attribute of a residual that has one of its own.

        v is a sum over the tables with the residual of products of one τ an attribute: with all but
        one held, that of a single gram.
        """
        inside = self.closure.attributes(residual)
        weights, places = self._tables_of(residual)
        spread = np.array([basis.spread_sum for basis in self.closure.moments])
        taus = spread[places] / self._n_rows[places]  # [n_tables, n_inside]
        own = [axis for axis, number in enumerate(inside) if number in self.attributes]
        solutions: dict[int, StrategySolution] = {}
        before = math.inf
        for _ in range(_MOST_SWEEPS):
            for axis in own:
                z = self.attributes[inside[axis]] / np.sum(self.attributes[inside[axis]])
                gram = self._gram(axis, weights, places, taus)
                known = solutions.get(axis)
                start = None if known is None else known.value_weights
                solutions[axis] = best_matrix(gram, z, value_weights=start, tolerance=_TOLERANCE)
                covariance = solutions[axis].covariance
                for place in np.unique(places[:, axis]).tolist():
                    tau = float(np.sum(self.grams[place] * covariance))
                    taus[places[:, axis] == place, axis] = tau
            now = float(weights @ np.prod(taus, axis=1))
            if len(own) == 1 or now > before * (1 - _STILL):
                break
            before = now
        return {
            inside[axis]: _rounded(
                solutions[axis].matrix,
                self.attributes[inside[axis]],
                self.bits,
                self._gram(axis, weights, places, taus),
            )
            for axis in own
        }

    def _gram(
        self, axis: int, weights: np.ndarray, places: np.ndarray, taus: np.ndarray
    ) -> np.ndarray:
        """The gram of which v is the τ, with the other attributes held: float64[n, n]."""
        shares = weights * np.prod(np.delete(taus, axis, axis=1), axis=1)
        of_places = np.bincount(places[:, axis], shares)
        return sum(
            (of_places[place] * self.grams[place] for place in np.unique(places[:, axis]).tolist()),
            np.zeros(()),
        )

    @property
    def _n_rows(self) -> np.ndarray:
        return np.array(self.workload.n_queries, dtype=float)

    def _tables_of(self, residual: int) -> tuple[np.ndarray, np.ndarray]:
        """Of the tables with a residual: weight · ∏ η of the other attributes, and their bases.

        float64[n_tables], and int64[n_tables, n_inside]: places in `workload.attribute_bases`
        """
        closure, workload = self.closure, self.workload
        start, stop = self.having.indptr[residual : residual + 2]
        tables = self.having.indices[start:stop]
        tables = tables[self.table_weights[tables] > 0]
        inside = closure.attributes(residual)
        members, bases = workload.members[tables], workload.attribute_basis_index[tables]
        total = np.array([basis.total_sum for basis in closure.moments]) / self._n_rows
        outside = (members >= 0) & ~np.isin(members, inside)
        etas = np.prod(np.where(outside, total[bases], 1.0), axis=1)
        columns = [np.max(np.where(members == number, bases, -1), axis=1) for number in inside]
        return self.table_weights[tables] * etas, np.stack(columns, axis=1)


def _in_steps(reference: np.ndarray) -> np.ndarray:
    """z in steps: int64[n], whose sum is a power of two of at most 2^`REFERENCE_BITS`.

    Sums of the first so many values are off by at most half a step.
    """
    bits = min(math.ceil(math.log2(_STEPS_A_VALUE * len(reference))), REFERENCE_BITS)
    return np.diff(np.rint(np.cumsum(reference) * 2**bits), prepend=0).astype(np.int64)


# ---- Rounding to integers with R z = 0 exactly.


def _rounded(matrix: np.ndarray, z: np.ndarray, bits: int, gram: np.ndarray) -> np.ndarray:
    """R·2^bits in integers at right angles to z in integers, int64[n − 1, n].

    The best of a few rotated copies, which are equally good before they are rounded.
    """
    matrix = matrix / np.sqrt(np.max(np.sum(matrix**2, axis=0)))
    best, found = math.inf, None
    for copy in turned(matrix, bits, _TURNS):
        integers = _rounded_rows(copy * 2.0**bits, z)
        stacked = np.vstack([np.ones(len(z)), integers])
        if np.linalg.matrix_rank(stacked) == len(z):
            decoding = np.linalg.inv(stacked)[:, 1:]
            spread = float(np.sum(gram * (decoding @ decoding.T)))
            worth = spread * float(np.max(np.sum(integers**2, axis=0)))
            if worth < best:
                best, found = worth, integers
    if found is None:
        raise ValueError(f"R cannot be rounded to {bits} bits at right angles to z")
    return found


def _rounded_rows(rows: np.ndarray, z: np.ndarray) -> np.ndarray:
    """The nearest integers at right angles to z, int64: of each entry a few that are near.

    Rounded entries leave rows · z off by an integer. Of all changes by up to so many that put it
    right, those of the least squares are found by going through the entries once, with the least
    sum of squares so far for every number by which rows · z is off (a shortest path).
    """
    most = 1
    while True:
        found = _with_changes(rows, z, most)
        if found is not None:
            return found
        most *= 2


def _with_changes(rows: np.ndarray, z: np.ndarray, most: int) -> np.ndarray | None:
    """`_rounded_rows` with entries changed by at most so many; None where that is not enough."""
    nearest = np.rint(rows)
    off = (nearest @ z).astype(np.int64)
    beyond = int(np.max(np.abs(off)) + most * np.max(np.abs(z)))
    changes = np.arange(-most, most + 1)
    squares = ((nearest - rows)[:, :, None] + changes) ** 2
    each, width = np.arange(len(rows)), 2 * beyond + 1
    # By number of entries gone through, row and place. Which change led to a place is not noted:
    # it is worked out again on the way back, for one place a row.
    least = np.empty((len(z) + 1, len(rows), width))
    least[0] = np.inf
    least[0, each, off + beyond] = 0.0
    through = np.empty((len(rows), width))
    for entry, step in enumerate(z.tolist()):
        np.add(least[entry], squares[:, entry, most, None], out=least[entry + 1])
        for number in np.flatnonzero(changes).tolist():
            shift = int(changes[number]) * step  # from place s to s + shift
            after = least[entry + 1, :, max(shift, 0) : min(shift, 0) + width]
            before = least[entry, :, max(-shift, 0) : min(-shift, 0) + width]
            sums = through[:, : before.shape[1]]
            np.add(before, squares[:, entry, number, None], out=sums)
            np.minimum(after, sums, out=after)
    if not np.all(np.isfinite(least[-1, :, beyond])):
        return None
    found, place = nearest.astype(np.int64), np.full(len(rows), beyond)
    for entry in reversed(range(len(z))):
        places = place[:, None] - changes * int(z[entry])
        is_there = (places >= 0) & (places < width)
        known = least[entry, each[:, None], np.where(is_there, places, 0)]
        number = np.argmin(np.where(is_there, known + squares[:, entry], np.inf), axis=1)
        found[:, entry] += changes[number]
        place = places[each, number]
    return found
