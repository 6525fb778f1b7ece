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
from rpexplore.planning.mechanism.strategy import LARGEST_INVERSE, REFERENCE_BITS, Strategy
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
_CHANGES = 16  # of entries of a row, by which it is put at right angles to z
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
        stacked = np.vstack([np.ones(len(z)), integers / 2.0**bits])
        try:
            inverse = np.linalg.inv(stacked)
        except np.linalg.LinAlgError:
            continue
        if np.max(np.abs(inverse)) * np.max(np.abs(stacked)) < LARGEST_INVERSE:
            spread = float(np.sum(gram * (inverse[:, 1:] @ inverse[:, 1:].T)))
            worth = spread * float(np.max(np.sum(integers**2, axis=0)))
            if worth < best:
                best, found = worth, integers
    if found is None:
        raise ValueError(f"R cannot be rounded to {bits} bits at right angles to z")
    return found


def _rounded_rows(rows: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Integers at right angles to z that are near, int64.

    Rounded entries leave rows · z off by an integer. Changes of entries by 1 put it right: of the
    cheapest ones, those of the least squares together.
    """
    found = np.rint(rows)
    changes, n_changes = np.zeros(rows.shape), _CHANGES
    off = np.flatnonzero(found @ z)
    while len(off):
        changes[off], is_right = _changes(rows[off] - found[off], (found[off] @ z), z, n_changes)
        off, n_changes = off[~is_right], 2 * n_changes
    return (found + changes).astype(np.int64)


def _changes(
    fractions: np.ndarray, off: np.ndarray, z: np.ndarray, n_changes: int
) -> tuple[np.ndarray, np.ndarray]:
    """What is added to rounded rows, of so many changes to choose from; and where these are enough.

    fractions: what rounding took away, float64[n_rows, n]; off: rounded rows · z, float64[n_rows]
    """
    n_rows, n = fractions.shape
    # What the k-th change of an entry in one direction adds to its square: none costs less than the
    # one before, so that they can be chosen as if each were possible without the others.
    most = -(-n_changes // (2 * n))
    signs = np.array([1, -1])[:, None]
    added = 2.0 * np.arange(most) + 1 - 2 * signs * fractions[:, :, None, None]
    added = added.reshape(n_rows, -1)
    cheapest = np.argsort(added, axis=1, kind="stable")[:, :n_changes]
    added = np.take_along_axis(added, cheapest, axis=1)
    entries, sign = cheapest // (2 * most), signs[cheapest // most % 2, 0]
    shifts = sign * z[entries] * np.where(off > 0, -1, 1)[:, None]
    target, margin = np.abs(off).astype(np.int64), int(np.max(np.abs(z)))
    # The least sum of what is added, by row and by the shift so far, from −margin to the target +
    # margin: a shortest path. Rows follow each other, with places between them that none reaches.
    lengths = target + 3 * margin + 1
    starts, each = np.cumsum(lengths) - lengths, np.arange(n_rows)
    unreached = np.repeat(starts, margin) + np.tile(np.arange(margin), n_rows)
    step_costs = np.repeat(added.T, lengths, axis=1)
    step_costs[:, unreached] = np.inf
    come_from = np.arange(np.sum(lengths)) - np.repeat(shifts.T, lengths, axis=1)
    least = np.empty((len(step_costs) + 1, step_costs.shape[1]))
    place = starts + 2 * margin
    least[0] = np.inf
    least[0, place] = 0.0
    for number, step_cost in enumerate(step_costs):
        after = least[number + 1]
        np.take(least[number], come_from[number], mode="wrap", out=after)
        after += step_cost
        np.minimum(after, least[number], out=after)
    place = place + target
    is_right, found = np.isfinite(least[-1, place]), np.zeros((n_rows, n))
    for number in reversed(range(len(step_costs))):
        taken = least[number, place] > least[number + 1, place]
        found[each, entries[:, number]] += np.where(taken, sign[:, number], 0)
        place = place - np.where(taken, shifts[:, number], 0)
    return np.where(is_right[:, None], found, 0), is_right
