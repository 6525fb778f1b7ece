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
from rpexplore.planning.solvers.strategy_matrix import best_matrix
from rpexplore.planning.solvers.strategy_rounding import bits_for, turned
from rpexplore.workload.table_text import query_matrix
from rpexplore.workload.workload import Workload

_LEAST_GAIN = 1e-3  # of the sum of variances: for less, plans are not made longer
_MOST_VALUES = 64  # of an attribute
_MOST_NUMBERS = 400_000  # in all matrices
_MOST_INCIDENCES = 50_000
_MOST_SWEEPS = 8
_STILL = 0.03  # an attribute whose bases' shares in its gram moved by less is not searched again
_TOLERANCE = 1e-4  # of an attribute's search: rounding costs more
_STEPS_A_VALUE = 16  # of 2^−b for an even share: far finer than what is lost by them
_FEWEST_TURNS, _TURNS_OF_VALUES = 2, 64  # rotated matrices that are rounded as well; times values
_MOST_CHANGED = 0.25, 4.0  # squares of columns, by what the rows before have added
_NOTHING = 1e-300  # that is divided by


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
    grams       of the mean square of a query in an attribute's bases, float64[n_bases, n, n]
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
        if closure.trees or closure.has_own_costs or workload.has_levels or workload.amounts:
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
        grams = {
            number: np.array(
                [
                    query_matrix(basis, domain.attributes[number]).mean_gram
                    for basis in workload.bases[number]
                ]
            )
            for number in attributes
        }
        measured = np.isin(workload.members, list(closure.strategies))
        bits = int(bits_for(int(np.max(np.sum(measured, axis=1)))))
        having = sparse.csc_array(closure.incidence)
        return cls(workload, closure, table_weights, attributes, residuals, grams, bits, having)

    def strategies(self) -> dict[int, Strategy]:
        """Those of the attributes, with their matrices by residual."""
        of_residuals = self._of_residuals()
        found = {}
        for attribute, z in self.attributes.items():
            matrix = self.closure.strategies[attribute].matrix
            matrix = matrix - np.outer(matrix @ z / np.sum(z), np.ones(len(z)))
            gram = np.sum(self.grams[attribute], axis=0)
            own = of_residuals[attribute]
            matrices, grams = zip((matrix, gram), *own.values(), strict=True)
            first, *others = _rounded(np.array(matrices), z, self.bits, np.array(grams))
            strategies = {
                inside: Strategy(integers, self.bits)
                for inside, integers in zip(own, others, strict=True)
            }
            found[attribute] = Strategy(first, self.bits, of_residuals=strategies)
        return found

    def _of_residuals(self) -> dict[int, dict[tuple[int, ...], tuple[np.ndarray, np.ndarray]]]:
        """By attribute and residual R, and the gram of which v is the τ with the others held.

        v is a sum over the tables with the residual of products of one τ an attribute: with all but
        one held, that of a single gram.
        """
        found: dict[int, dict[tuple[int, ...], tuple[np.ndarray, np.ndarray]]] = {
            attribute: {} for attribute in self.attributes
        }
        spread = np.array([basis.spread_sum for basis in self.closure.moments]) / self._n_rows
        traces = {number: np.trace(grams, axis1=1, axis2=2) for number, grams in self.grams.items()}
        # A search begins at the attribute's λ of the residual before: two thirds of the steps.
        value_weights: dict[int, np.ndarray] = {}
        for residual in self.residuals:
            inside = self.closure.attributes(residual)
            weights, places = self._tables_of(residual)
            taus = spread[places]  # [n_tables, n_inside]
            # Of the bases in the gram's trace, at an attribute's latest search.
            shares: dict[int, np.ndarray] = {}
            for _ in range(_MOST_SWEEPS):
                is_still = True
                for axis, number in enumerate(inside):
                    if number not in self.attributes:
                        continue
                    bases = places[:, axis] - self.workload.places_of_bases(number)[0]
                    others = weights * np.prod(np.delete(taus, axis, axis=1), axis=1)
                    now = traces[number] * np.bincount(bases, others, len(traces[number]))
                    now /= np.sum(now)
                    if number in shares and np.max(np.abs(now - shares[number])) < _STILL:
                        continue
                    is_still, shares[number] = False, now
                    z, grams = self.attributes[number], self.grams[number]
                    gram = np.tensordot(now / traces[number], grams, 1)
                    solution = best_matrix(
                        gram,
                        z / np.sum(z),
                        value_weights=value_weights.get(number),
                        tolerance=_TOLERANCE,
                        ends_early=True,
                    )
                    value_weights[number] = solution.value_weights
                    found[number][inside] = solution.matrix, gram
                    of_bases = grams.reshape(len(grams), -1) @ solution.covariance.ravel()
                    taus[:, axis] = of_bases[bases]
                if is_still:
                    break
        return found

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


def _rounded(matrices: np.ndarray, z: np.ndarray, bits: int, grams: np.ndarray) -> np.ndarray:
    """R·2^bits in integers at right angles to z in integers, int64[n_matrices, n − 1, n].

    The best of rotated copies of each, which are equally good before they are rounded.

    matrices: float64[n_matrices, n − 1, n]; grams: what they are for, float64[n_matrices, n, n]
    """
    n_turns = max(_FEWEST_TURNS, _TURNS_OF_VALUES // len(z))
    longest = np.sqrt(np.max(np.sum(matrices**2, axis=1), axis=1))
    copies, of_matrices = [], []
    for number, matrix in enumerate(matrices / longest[:, None, None]):
        copies.extend(turned(matrix, bits, n_turns))
        of_matrices.extend([number] * (len(copies) - len(of_matrices)))
    integers = _rounded_rows(np.array(copies) * 2.0**bits, z)
    ones = np.ones((len(copies), 1, len(z)))
    stacked = np.concatenate([ones, integers / 2.0**bits], axis=1)
    worth = np.full(len(copies), np.inf)
    regular = np.flatnonzero(np.linalg.slogdet(stacked).sign)
    inverses = np.linalg.inv(stacked[regular])
    numbers = np.max(np.abs(inverses), axis=(1, 2)) * np.max(np.abs(stacked[regular]), axis=(1, 2))
    decodings = inverses[:, :, 1:]
    products = grams[np.array(of_matrices)[regular]] @ decodings
    costs = np.max(np.sum(integers[regular] ** 2, axis=1), axis=1)
    spreads = np.sum(products * decodings, axis=(1, 2))
    worth[regular] = np.where(numbers < LARGEST_INVERSE, spreads * costs, np.inf)
    best = [
        min(np.flatnonzero(np.equal(of_matrices, number)), key=worth.__getitem__)
        for number in range(len(matrices))
    ]
    if not np.all(np.isfinite(worth[best])):
        raise ValueError(f"R cannot be rounded to {bits} bits at right angles to z")
    return integers[best].astype(np.int64)


def _rounded_rows(matrices: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Whole numbers at right angles to z, near matrices: float64, shaped alike, rows in any order.

    Columns stay as long as they were, as the longest one sets the privacy cost: the longest rows
    are rounded first, and what that adds to a column's square is taken away from the other ones.
    """
    lattice = _Lattice.of(z)
    order = np.argsort(-np.sum(matrices**2, axis=2), axis=1, kind="stable")
    rest = np.take_along_axis(matrices, order[:, :, None], axis=1)
    squares, found = np.sum(matrices**2, axis=1), []
    while n_rows := rest.shape[1]:
        found.append(lattice.near(rest[:, : (n_rows + 1) // 2]))
        rest = rest[:, (n_rows + 1) // 2 :]
        squares -= np.sum(found[-1] ** 2, axis=1)
        of_rest = np.maximum(np.sum(rest**2, axis=1), _NOTHING)
        rest = rest * np.sqrt(np.clip(squares / of_rest, *_MOST_CHANGED))[:, None]
    return np.concatenate(found, axis=1)


@dataclass(frozen=True, eq=False)
class _Lattice:
    """All whole numbers at right angles to z: sums of multiples of the rows of a short basis.

    basis     int64[n − 1, n]
    rotation  and what it turns the basis into, a triangle: its decomposition QR
    """

    basis: np.ndarray
    rotation: np.ndarray
    triangle: np.ndarray

    @classmethod
    def of(cls, z: np.ndarray) -> "_Lattice":
        # Euclid's algorithm on z: of the two largest values, the second is taken from the first,
        # with the vectors whose products with z they are, until all but one are 0.
        values = np.abs(z)
        vectors = np.diag(np.where(z < 0, -1, 1))
        while np.count_nonzero(values) > 1:
            first, second = np.argsort(-values, kind="stable")[:2]
            times = values[first] // values[second]
            values[first] -= times * values[second]
            vectors[first] -= times * vectors[second]
        basis = vectors[np.argsort(values, kind="stable")[:-1]]
        # Shorter: of all vectors the one that loses most by a multiple of another one.
        gram = basis @ basis.T
        while True:
            squares = np.diag(gram)
            times = np.rint(gram / squares).astype(np.int64)
            np.fill_diagonal(times, 0)
            lost = times * (2 * gram - times * squares)
            one, other = np.unravel_index(np.argmax(lost), lost.shape)
            if lost[one, other] <= 0:
                break
            basis[one] -= times[one, other] * basis[other]
            gram[one] = gram[:, one] = basis @ basis[one]
        basis = basis[np.argsort(squares, kind="stable")]
        return cls(basis, *np.linalg.qr(basis.T.astype(float)))

    def near(self, vectors: np.ndarray) -> np.ndarray:
        """Those near some vectors: float64, shaped alike, n last (Babai 1986, nearest plane)."""
        rest = self.rotation.T @ vectors.reshape(-1, vectors.shape[-1]).T
        for place in reversed(range(len(rest))):
            times = np.rint(rest[place] / self.triangle[place, place])
            rest[:place] -= np.outer(self.triangle[:place, place], times)
            rest[place] = times
        return (rest.T @ self.basis).reshape(vectors.shape)
