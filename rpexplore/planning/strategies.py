"""Strategy search: what to measure of attributes in other bases than single values."""

import contextlib
import hashlib
import io
import os
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from rpexplore.common.files import home_folder, write_whole
from rpexplore.common.numbers import distinct_rows
from rpexplore.common.processes import Share, no_share
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.mechanism.strategy import LEAST_MOMENT, measured_attributes
from rpexplore.planning.solvers.coarser_values import MANY
from rpexplore.planning.solvers.strategy_matrix import StrategySolution, best_matrix, best_reference
from rpexplore.workload.bases.base import Matrix
from rpexplore.workload.table_text import query_matrix
from rpexplore.workload.workload import Workload

# For fixed weights on the cells, the smallest sum of variances at privacy cost 1 is (Σ_{A'} √(p
# v))² (RP+ Lemma 2) with p = ∏ β_i and v a sum over tables of products of the attributes' τ and η.
# Attributes are improved in turn, each by `best_reference`, which sees the sum over residuals
# without the attribute exactly (docs/mathematics.md §5.3). Every step lowers the sum.


# Tolerances of an attribute's search: at the start and in the first sweep where references are
# improved, then (rounding to integers costs twenty times as much), and where they are kept.
_FIRST, ROUGH, FINE, EXACT = 0.01, 1e-4, 1e-6, 1e-7
_LEAST_SHARE = 1e-12  # of a table in the weights that are looked for
_ROUNDING = 1e-12  # of `StrategySearch.value`, relative
_ALIKE = 1e-6  # attributes whose problems agree so far (relative) are solved once
# What queries that do not tell the total of an attribute are taken to ask of it (mean square of a
# query, relative), so that a search for z does not end where noise on the total has no limit.
_ASKED_OF_TOTAL = 1e-6
_NO_TOTAL = 1e-9  # relative: a smaller zᵀGz is none
# The search where queries leave directions open and there are more values than this: many end
# without weight there, which takes thousands of steps. It ends sooner, at a cost of some per cent.
_MANY_OPEN = 200
_OPEN: dict[str, Any] = {"tolerance": 2e-4, "limit": 150}


@dataclass(frozen=True, eq=False)
class Problem:
    """What is to be minimised in one attribute: t(z) + total(η), η_a = zᵀ grams[a] z.

    gram   of t: the bases' weighted grams added up so that t is now the sum over residuals with
           the attribute
    grams  of each of its bases
    """

    gram: np.ndarray
    grams: list[np.ndarray]
    costs: np.ndarray  # p of the residuals without the attribute that its tables contain
    rest: np.ndarray  # their v from tables without the attribute
    slopes: np.ndarray  # [n_residuals, n_bases]: what v grows by with η

    def total(self, etas: np.ndarray) -> tuple[float, np.ndarray]:
        """Sum over the residuals without the attribute, and its gradient in η."""
        roots = np.sqrt(self.costs * (self.rest + self.slopes @ etas))
        return float(roots.sum()), (self.costs / roots / 2) @ self.slopes

    def worth(self, root: float, reference: np.ndarray) -> tuple[float, float, np.ndarray]:
        """The sum, for a root t and a reference distribution z, and its slopes in them."""
        products = np.array([gram @ reference for gram in self.grams])
        total, slopes = self.total(products @ reference)
        return root + total, 1.0, 2 * slopes @ products


@dataclass(frozen=True, eq=False)
class DistinctValues:
    """The values of an attribute that some query tells apart: columns that are equal are one.

    kinds  int64[n]: the column that each value has, by order of the first ones
    first  int64[m]: the first value of each
    """

    kinds: np.ndarray
    first: np.ndarray

    @classmethod
    def of(cls, matrices: Sequence[np.ndarray]) -> "DistinctValues":
        """Of the matrices of all bases, float64[·, n] each."""
        first, kinds = distinct_rows([*np.vstack(matrices)])
        return cls(kinds, first)

    def integers(self, matrix: np.ndarray) -> np.ndarray:
        """The integer matrix R of all n values, from that of the m distinct ones.

        Below it the difference of each value from the last one of its column, once: next to nothing
        beside what R costs, and it makes R invertible. No query depends on it.
        """
        order = np.argsort(self.kinds, kind="stable")
        alike = np.flatnonzero(np.diff(self.kinds[order]) == 0)
        differences = np.zeros((len(alike), len(self.kinds)), dtype=np.int64)
        differences[np.arange(len(alike)), order[alike]] = 1
        differences[np.arange(len(alike)), order[alike + 1]] = -1
        return np.vstack([matrix[:, self.kinds], differences])


def _without_total(grams: Sequence[np.ndarray]) -> np.ndarray | None:
    """A z of sum 1 of which no query asks: float64[n], the shortest; None if there is none."""
    gram = np.sum(grams, axis=0)
    squares, vectors = np.linalg.eigh(gram)
    unasked = vectors[:, squares <= _NO_TOTAL * squares[-1]]
    z = unasked @ np.sum(unasked, axis=0)  # the ones, as far as no query asks of them
    total = float(np.sum(z))
    return z / total if total > len(z) * _NO_TOTAL else None


def _leave_much_open(grams: Sequence[np.ndarray]) -> bool:
    if len(grams[0]) <= _MANY_OPEN:
        return False
    squares = np.linalg.eigvalsh(np.sum(grams, axis=0))
    return bool(squares[0] <= _NO_TOTAL * squares[-1])


@dataclass(eq=False)
class StrategySearch:
    """What is measured of each attribute, and what follows from it.

    Bases are known by their index in `workload.attribute_bases`. Values that no query tells apart
    are one value here (docs/mathematics.md §5.7).

    table_weights    float64[n_tables]: on the mean variance of each table's cells, by row_weights
    keep_references  improve only the matrices, not the reference distributions
    measuring        attribute index -> what is measured of it now
    """

    workload: Workload
    closure: Closure
    table_weights: np.ndarray
    keep_references: bool
    measuring: dict[int, StrategySolution] = field(default_factory=dict)
    _known_terms: tuple[np.ndarray, np.ndarray] | None = None

    def __post_init__(self) -> None:
        workload, closure = self.workload, self.closure
        self.attributes = measured_attributes(workload)
        self.row_weights = [np.broadcast_to(1 / rows, rows) for rows in workload.n_queries]
        self.bases_of: dict[int, list[int]] = {attribute: [] for attribute in self.attributes}
        self.queries = {}
        for index, (attribute, basis) in enumerate(workload.attribute_bases):
            if attribute in self.bases_of:
                self.bases_of[attribute].append(index)
            if attribute in self.bases_of or not basis.is_identity:
                self.queries[index] = query_matrix(basis, workload.domain.attributes[attribute])
        self.distinct = self._distinct_values()
        # Attributes with the same queries share their gram, and what follows from it.
        of_operators = {
            queries.operator: queries.operator.gram / queries.n_rows
            for queries in self.queries.values()
        }
        self.grams = {
            basis: of_operators[queries.operator] for basis, queries in self.queries.items()
        }
        # Of attributes whose total no query tells: a reference distribution of which none asks.
        self.unasked_totals = {
            attribute: z
            for attribute, bases in self.bases_of.items()
            if not any(basis.determines_values for basis in workload.bases[attribute])
            and (z := _without_total([self.grams[basis] for basis in bases])) is not None
        }
        # Bases that do not tell it, though others of the attribute may: η of them can be 0.
        self.without_total = {
            basis
            for attribute, bases in self.bases_of.items()
            for basis in bases
            if attribute in self.unasked_totals
            or (
                not workload.attribute_bases[basis][1].determines_values
                and len(bases) > 1
                and _without_total([self.grams[basis]]) is not None
            )
        }
        # Attributes of many values with directions that no query asks about.
        self.open = {
            attribute
            for attribute, bases in self.bases_of.items()
            if not any(basis.determines_values for basis in workload.bases[attribute])
            and _leave_much_open([self.grams[basis] for basis in bases])
        }
        costs = (closure.sizes - 1) / closure.sizes
        costs[self.attributes] = 1.0  # β of a `StrategySolution`
        self.costs = np.prod(np.append(costs, 1.0)[closure.members], axis=1)
        # τ and η of each basis, by rows' weight.
        self.spread = np.zeros(len(workload.attribute_bases))
        self.total = np.ones(len(workload.attribute_bases))
        for index, (attribute, basis) in enumerate(workload.attribute_bases):
            n = int(closure.sizes[attribute])
            if attribute not in self.bases_of:
                self.spread[index] = (n - 1) / n
                self.total[index] = 1 / n**2
            if n == 1 and not basis.is_identity:
                self.total[index] = float(self.grams[index][0, 0])
        self.groups = list(closure.by_order(workload, np.arange(len(workload))))
        self.tables = np.concatenate(
            [np.repeat(chosen, columns.shape[1]) for chosen, columns, _ in self.groups]
        )
        self.columns = np.concatenate([columns.ravel() for _, columns, _ in self.groups])
        self.inside, self.outside = self._columns_by_basis()
        # Attribute -> residuals with it, and those without it that its tables contain.
        self._residuals = {}
        for attribute, bases in self.bases_of.items():
            beside = np.concatenate([self.columns[self.outside[basis]] for basis in bases])
            inside = np.flatnonzero(np.any(closure.members == attribute, axis=1))
            self._residuals[attribute] = inside, np.unique(beside)

    def _distinct_values(self) -> dict[int, DistinctValues]:
        """Those of attributes of which some columns are equal in all their own matrices.

        The queries become those of the distinct values.
        """
        found: dict[int, DistinctValues] = {}
        for attribute, bases in self.bases_of.items():
            if any(basis.determines_values for basis in self.workload.bases[attribute]):
                continue
            size = int(self.closure.sizes[attribute])
            matrices = [self.queries[basis].of(np.eye(size), 0) for basis in bases]
            values = DistinctValues.of(matrices)
            if len(values.first) < len(values.kinds):
                found[attribute] = values
                for basis, matrix in zip(bases, matrices, strict=True):
                    operator = Matrix(matrix[:, values.first])
                    self.queries[basis] = replace(self.queries[basis], operator=operator)
        return found

    def _columns_by_basis(self) -> tuple[dict[int, np.ndarray], dict[int, np.ndarray]]:
        """Basis -> where in `columns` its tables are: with its attribute, and without it."""
        parts: tuple[dict[int, list[np.ndarray]], ...] = ({}, {})
        begin = 0
        for chosen, columns, axes in self.groups:
            k = axes.shape[1]
            at = begin + np.arange(columns.size).reshape(columns.shape)
            begin += columns.size
            bases = np.take_along_axis(self.workload.attribute_basis_index[chosen], axes, 1)
            subsets = np.arange(2**k)
            for axis in range(k):
                has = (subsets >> (k - 1 - axis)) & 1 == 1
                order = np.argsort(bases[:, axis], kind="stable")
                used, first = np.unique(bases[order, axis], return_index=True)
                stops = [*first[1:].tolist(), len(order)]
                for basis, start, stop in zip(used.tolist(), first.tolist(), stops, strict=True):
                    rows = order[start:stop]
                    for part, mask in zip(parts, (has, ~has), strict=True):
                        part.setdefault(basis, []).append(at[rows][:, mask].ravel())
        inside, outside = (
            {basis: np.concatenate(listed) for basis, listed in part.items()} for part in parts
        )
        return inside, outside

    def start(self, references: Mapping[int, np.ndarray], on_share: Share = no_share) -> None:
        """Begin with the best matrices for these or uniform references, for all bases together.

        Where references are improved it is a beginning only, and nearly the best ones will do.
        """
        uniform: dict[bytes, StrategySolution] = {}
        alike: dict[int, list[int]] = {}  # attributes by the one solution that they have
        for done, attribute in enumerate(self.attributes):
            on_part = self._part(on_share, done, done + 1)
            gram = np.sum([self.grams[basis] for basis in self.bases_of[attribute]], axis=0)
            reference = references.get(attribute)
            if reference is not None and attribute in self.distinct:
                reference = np.bincount(self.distinct[attribute].kinds, reference)
            if len(gram) == 1:  # all values are one: the total says everything
                one = np.ones(1)
                nothing = np.empty((0, 1))
                solution = StrategySolution(nothing, np.zeros((1, 1)), one, one, 0.0, gram)
            elif reference is not None:
                solution = best_matrix(
                    gram, reference, **self._exactness(attribute), on_share=on_part
                )
            elif attribute in self.open:
                solution = best_matrix(gram, **_OPEN, on_share=on_part)
            elif (key := gram.tobytes()) in uniform:
                solution = uniform[key]
            elif self._is_fine(attribute):
                # The search does not begin there: any that is not far off will do.
                solution = uniform[key] = StrategySolution.of_single_values(gram)
            elif not self.keep_references:
                solution = uniform[key] = best_matrix(gram, tolerance=_FIRST, on_share=on_part)
            else:
                solution = uniform[key] = best_uniform_matrix(gram, on_part)
            self.measuring[attribute] = solution
            alike.setdefault(id(solution), []).append(attribute)
        for attributes in alike.values():
            self._take(attributes, self.measuring[attributes[0]])

    def sweep(self, on_share: Share = no_share, *, tolerance: float = EXACT) -> None:
        """Improve every attribute once; those whose problems are alike together.

        tolerance: of each attribute's search, as of `best_matrix`
        """
        waiting = self._signatures()
        while waiting:
            attribute, signature = next(iter(waiting.items()))
            alike = [attribute for attribute in waiting if waiting[attribute] == signature]
            before = self.value()
            done = len(self.attributes) - len(waiting)
            on_part = self._part(on_share, done, done + len(alike))
            solution = self._improved(attribute, on_part, tolerance)
            kept = {attribute: self.measuring[attribute] for attribute in alike}
            self._take(alike, solution)
            if len(alike) > 1 and self.value() > before * (1 + _ROUNDING):
                for attribute in alike[1:]:
                    self._take([attribute], kept[attribute])
                alike = alike[:1]
            for attribute in alike:
                del waiting[attribute]

    def _is_fine(self, attribute: int) -> bool:
        """Whether problems with fewer values point to what is best of this attribute's.

        Own matrices have no order of values, and weights of rows need not go evenly with it.
        """
        bases = self.bases_of[attribute]
        if self.keep_references or attribute in self.open or len(self.grams[bases[0]]) < MANY:
            return False
        are_even = all(self.row_weights[basis].strides == (0,) for basis in bases)
        own = self.workload.attribute_bases
        return are_even and all(own[basis][1].parameter != "file" for basis in bases)

    @property
    def is_alone(self) -> bool:
        """Whether a single attribute of very many values, in one basis, is improved.

        Its problem does not depend on what is measured of it now: one sweep finds what there is.
        """
        if len(self.attributes) != 1 or len(self.bases_of[self.attributes[0]]) != 1:
            return False
        return self._is_fine(self.attributes[0])

    def _exactness(self, attribute: int, tolerance: float = EXACT) -> dict[str, Any]:
        if attribute not in self.open:
            return {"tolerance": max(tolerance, ROUGH) if self._is_fine(attribute) else tolerance}
        return {**_OPEN, "tolerance": max(_OPEN["tolerance"], tolerance)}

    def _part(self, on_share: Share, done: int, then: int) -> Share:
        """Where to report the share of what leads from so many attributes done to so many."""
        return lambda share: on_share((done + share * (then - done)) / len(self.attributes))

    # ---- one attribute

    def _take(self, attributes: Sequence[int], solution: StrategySolution) -> None:
        """Measure some attributes, all of one size, like this."""
        moments: dict[int, tuple[float, float]] = {}  # by gram
        for attribute in attributes:
            self.measuring[attribute] = solution
            for basis in self.bases_of[attribute]:
                gram = self.grams[basis]
                if id(gram) not in moments:
                    spread = float(np.sum(gram * solution.covariance))
                    total = float(solution.reference @ gram @ solution.reference)
                    least = LEAST_MOMENT * total, LEAST_MOMENT * spread
                    moments[id(gram)] = max(spread, least[0]), max(total, least[1])
                self.spread[basis], self.total[basis] = moments[id(gram)]
        self._known_terms = None

    def _improved(self, attribute: int, on_share: Share, tolerance: float) -> StrategySolution:
        exactness = self._exactness(attribute, tolerance)
        problem, present = self.problem(attribute), self.measuring[attribute]
        if len(problem.gram) == 1:
            return present
        # By now the bases have other weights than when it was solved.
        start = replace(present, root=float(np.sqrt(np.sum(problem.gram * present.covariance))))
        if self.keep_references:
            weights = start.value_weights
            return best_matrix(
                problem.gram,
                start.reference,
                value_weights=weights,
                **exactness,
                on_share=on_share,
            )
        solution = best_reference(
            problem.gram,
            problem.grams,
            problem.total,
            start=start,
            **exactness,
            from_coarser=self._is_fine(attribute),
            on_share=on_share,
        )
        if attribute not in self.unasked_totals:
            return solution
        # Where no query needs the total, the search meets a kink: what is best there is known.
        without = best_matrix(problem.gram, self.unasked_totals[attribute], **exactness)
        return min((solution, without), key=lambda one: problem.worth(one.root, one.reference)[0])

    def _signatures(self) -> dict[int, tuple]:
        """Attribute index -> what is equal for attributes with the same bases and weight.

        The weight is known by `problem`'s slopes and the trace of its gram, over its total.
        """
        terms, weights = self._terms()
        roots = np.sqrt(self.costs * weights)
        pulls = terms * (roots / weights)[self.columns]
        signatures = {}
        for attribute in self.attributes:
            bases = self.bases_of[attribute]
            within, beside = self._residuals[attribute]
            total = np.sum(roots[beside])
            trace = np.sum(roots[within]) * sum(
                np.sum(pulls[self.inside[basis]]) / self.spread[basis] * np.trace(self.grams[basis])
                for basis in bases
            )
            slopes = [np.sum(pulls[self.outside[basis]]) / self.total[basis] for basis in bases]
            figures = np.array([*(slopes / total), trace / total**2])
            rounded = np.round(np.log(np.maximum(figures, 1e-300)) / _ALIKE)
            described = self.workload.domain.attributes[attribute]
            signatures[attribute] = (
                self.workload.bases[attribute],
                described.size,
                described.groups,
                tuple(rounded),
                tuple(map(self._rounded_weights, bases)),
            )
        return signatures

    def _rounded_weights(self, basis: int) -> bytes | None:
        """Those of a basis' rows; None if all are the same."""
        weights = self.row_weights[basis]
        if weights.strides == (0,):
            return None
        return np.round(weights / np.max(weights) / _ALIKE).tobytes()

    def problem(self, attribute: int) -> Problem:
        terms, weights = self._terms()
        roots = np.sqrt(self.costs * weights)
        n, count = len(self.measuring[attribute].reference), len(self.closure)
        gram, slopes = np.zeros((n, n)), []
        for basis in self.bases_of[attribute]:
            with_it, without = self.inside[basis], self.outside[basis]
            columns = self.columns[with_it]
            shares = float((roots[columns] / weights[columns]) @ terms[with_it])
            gram = gram + shares / self.spread[basis] * self.grams[basis]
            added = np.bincount(self.columns[without], terms[without], count)
            slopes.append(added / self.total[basis])
        slopes = np.stack(slopes, axis=1)
        held = np.any(slopes > 0, axis=1)
        rest = np.maximum(weights[held] - slopes[held] @ self.total[self.bases_of[attribute]], 0.0)
        gram = gram * float(np.sum(roots[self._residuals[attribute][0]]))
        grams = [
            self.grams[basis]
            + (basis in self.without_total) * _ASKED_OF_TOTAL * np.trace(self.grams[basis]) / n
            for basis in self.bases_of[attribute]
        ]
        return Problem(gram, grams, self.costs[held], rest, slopes[held])

    # ---- all of them together

    def _terms(self) -> tuple[np.ndarray, np.ndarray]:
        """What each (table, residual within it) adds to the residual's v, and every v."""
        if self._known_terms is None:
            parts, pairs = [], np.column_stack([self.total, self.spread])
            for chosen, _, axes in self.groups:
                bases = self.workload.attribute_basis_index[chosen]
                factors = (self.table_weights[chosen] * self._of_single_values(bases))[:, None]
                for basis in np.take_along_axis(bases, axes, 1).T:
                    pair = pairs[basis]
                    factors = (factors[:, :, None] * pair[:, None, :]).reshape(len(chosen), -1)
                parts.append(factors.ravel())
            terms = np.concatenate(parts)
            self._known_terms = terms, np.bincount(self.columns, terms, len(self.closure))
        return self._known_terms

    def _of_single_values(self, bases: np.ndarray) -> np.ndarray:
        """∏ η over the attributes with a single value."""
        if not np.any(self.closure.sizes == 1):
            return np.ones(len(bases))
        attributes = np.array([index for index, _ in self.workload.attribute_bases] or [0])
        single = (bases >= 0) & (self.closure.sizes[attributes[bases]] == 1)
        return np.prod(np.where(single, self.total[bases], 1.0), axis=1)

    def value(self) -> float:
        """Σ√(p v): the square root of the smallest weighted sum of variances at privacy cost 1."""
        return float(np.sum(np.sqrt(self.costs * self._terms()[1])))

    def least_value(self) -> float:
        """Below it is no `value`, whatever is measured, with these reference distributions."""
        for attribute in self.attributes:
            z = self.measuring[attribute].reference
            for basis in self.bases_of[attribute]:
                # Without the least that moments are taken to be: a bound has to hold.
                gram = self.grams[basis]
                self.total[basis] = float(z @ gram @ z)
                bound = (
                    best_matrix(gram, z, **self._exactness(attribute)).lower_bound
                    if len(gram) > 1
                    else 0.0
                )
                self.spread[basis] = bound**2
        self._known_terms = None
        return self.value()

    # ---- the largest variance

    def reweigh(self, loss_weights: np.ndarray) -> None:
        """More weight where the variance is above the mean: `table_weights` are loss_weights times
        weights on the tables of sum 1.
        """
        terms, weights = self._terms()
        sigma_squared = np.sqrt(self.costs / weights) * self.value()
        shares = terms * sigma_squared[self.columns]
        of_tables = np.bincount(self.tables, shares, len(self.workload))
        total = float(np.sum(of_tables))
        for attribute in self.attributes:
            covariance = self.measuring[attribute].covariance
            reference = self.measuring[attribute].reference
            for basis in self.bases_of[attribute]:
                spread = float(np.sum(shares[self.inside[basis]])) / self.spread[basis]
                level = float(np.sum(shares[self.outside[basis]])) / self.total[basis]
                queries = self.queries[basis]
                variances = spread * np.maximum(queries.operator.row_quadratics(covariance), 0.0)
                variances += level * queries.of(reference, 0) ** 2
                weighed = self.row_weights[basis] * variances
                if np.sum(weighed) > 0:  # not if its tables no longer weigh anything
                    self.row_weights[basis] = weighed / np.sum(weighed)
                self.grams[basis] = queries.operator.weighted_gram(self.row_weights[basis])
        # None so small that nothing can be computed with it.
        shares = np.maximum(of_tables / total, _LEAST_SHARE)
        self.table_weights = shares / np.sum(shares) * loss_weights
        for attribute in self.attributes:
            self._take([attribute], self.measuring[attribute])


# ---- Strategies of earlier searches, by what they are for: in the process and on disk.
#
# They follow from sizes, bases and workloads alone, never from records. A cache only saves time:
# whatever is wrong with its folder, the strategy is then searched for again.


MOST_BYTES = 200_000_000  # on disk; and as many in the process
_KEY = "key"  # the name in a file under which the key itself is kept


class StrategyCache:
    """Arrays by key. Any number of threads and processes may use the same folder at once.

    folder: where they are kept for the next process; None: in this process only. most_bytes: of
    files in the folder and, separately, of arrays; those unused for longest give way.
    """

    def __init__(self, folder: Path | None, most_bytes: int = MOST_BYTES) -> None:
        self.folder, self.most_bytes = folder, most_bytes
        self._arrays: OrderedDict[str, dict[str, np.ndarray]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: str) -> dict[str, np.ndarray] | None:
        """The arrays put under a key, read-only; None if there are none (any more)."""
        with self._lock:
            arrays = self._arrays.get(key) or self._read(key)
            if arrays is None:
                return None
            self._keep(key, arrays)
            return dict(arrays)

    def put(self, key: str, arrays: Mapping[str, np.ndarray]) -> None:
        """Keep arrays (numbers only) under a key, in the place of those there were."""
        if _KEY in arrays:
            raise ValueError(f'no array may be called "{_KEY}"')
        copies = {name: np.array(array) for name, array in arrays.items()}
        with self._lock:
            self._keep(key, copies)
            if self.folder is not None:
                with contextlib.suppress(OSError):
                    self._write(self.folder, key, copies)

    def _keep(self, key: str, arrays: dict[str, np.ndarray]) -> None:
        for array in arrays.values():
            array.setflags(write=False)
        self._arrays[key] = arrays
        self._arrays.move_to_end(key)
        kept = self._arrays
        while sum(one.nbytes for own in kept.values() for one in own.values()) > self.most_bytes:
            self._arrays.popitem(last=False)

    def _read(self, key: str) -> dict[str, np.ndarray] | None:
        if self.folder is None:
            return None
        path = self.folder / _file_name(key)
        try:
            with np.load(path, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            if arrays.pop(_KEY).tobytes() != key.encode():
                return None
        except Exception:  # what a damaged archive raises is anybody's guess
            return None
        with contextlib.suppress(OSError):
            os.utime(path)  # so that it is not the next to be removed
        return arrays

    def _write(self, folder: Path, key: str, arrays: dict[str, np.ndarray]) -> None:
        content = io.BytesIO()
        named = {_KEY: np.frombuffer(key.encode(), np.uint8), **arrays}
        np.savez(content, allow_pickle=False, **named)
        if content.tell() > self.most_bytes:
            return
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(folder / _file_name(key), content.getvalue(), mode=0o600)
        self._trim(folder)

    def _trim(self, folder: Path) -> None:
        """Remove the files unused for longest, parts of interrupted ones among them."""
        files = []
        for path in folder.iterdir():
            with contextlib.suppress(FileNotFoundError):  # another process trims as well
                status = path.stat()
                files.append((status.st_mtime_ns, status.st_size, path))
        total = sum(size for _, size, _ in files)
        for _, size, path in sorted(files):
            if total <= self.most_bytes:
                break
            path.unlink(missing_ok=True)
            total -= size


def _file_name(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest() + ".npz"


@cache
def user_cache() -> StrategyCache:
    """The cache in the user's folder; in this process only if RPEXPLORE_NO_CACHE is 1.

    Raises `RpexploreError` for a folder that is not the user's own.
    """
    off = os.environ.get("RPEXPLORE_NO_CACHE") == "1"
    return StrategyCache(None if off else home_folder() / "strategies")


def best_uniform_matrix(gram: np.ndarray, on_share: Share = no_share) -> StrategySolution:
    """The best matrix for a uniform reference, started from the dual weights of an earlier search.

    They are no more than a start: what follows from them is certified anew. on_share: as of
    `best_matrix`.
    """
    key = f"even {hashlib.sha256((gram / np.trace(gram)).tobytes()).hexdigest()}"
    weights = (user_cache().get(key) or {}).get("value_weights", np.empty(0))
    usable = weights.shape == (len(gram),) and np.all(weights > 0) and np.isclose(weights.sum(), 1)
    solution = best_matrix(gram, value_weights=weights if usable else None, on_share=on_share)
    if not usable:
        user_cache().put(key, {"value_weights": solution.value_weights})
    return solution
