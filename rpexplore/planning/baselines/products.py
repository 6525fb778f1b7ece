"""Product baselines: the same queries of an attribute, whichever tables it is in."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from math import ceil, log

import numpy as np

from rpexplore.common.processes import one_thread
from rpexplore.planning.baselines.baselines import (
    Baseline,
    LogVariances,
    UnsuitableError,
    beta_of,
    moments_of,
    power_of,
)
from rpexplore.planning.losses.losses import Loss
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.mechanism.strategy import Moments
from rpexplore.workload.bases import Basis
from rpexplore.workload.bases.base import Intervals, Operator
from rpexplore.workload.table_text import query_matrix
from rpexplore.workload.workload import Workload

# ---- Attribute strategies: what well-known mechanisms measure of one attribute.
#
# Each is a function from the number of values n, and the Gram matrix WᵀW of what is asked of them,
# to an `AttributeStrategy`.


@dataclass(frozen=True, eq=False)
class AttributeStrategy:
    """Queries A on the n values of an attribute, of full rank.

    inverse  (AᵀA)⁻¹, float64[n, n]
    norms    the largest sum of absolute numbers in a column of A, and of their squares: what a
             record costs with Laplace noise (squared), and with Gaussian noise
    """

    inverse: np.ndarray
    norms: tuple[float, float]

    def covariance(self, norm: int) -> np.ndarray:
        """Of the values' estimates: for noise of variance 1 at a sensitivity of 1 in a norm."""
        return self.inverse * (self.norms[0] ** 2 if norm == 1 else self.norms[1])


Measure = Callable[[int, np.ndarray], AttributeStrategy]


def single_values(size: int, gram: np.ndarray) -> AttributeStrategy:
    """Each value by itself."""
    return AttributeStrategy(np.eye(size), (1.0, 1.0))


def binary_tree(size: int, gram: np.ndarray) -> AttributeStrategy:
    """H2: the total, its halves, their halves and so on (Hay et al. 2010)."""
    return _of_intervals(_tree(size, 2), size)


def wide_tree(size: int, gram: np.ndarray) -> AttributeStrategy:
    """HB: a tree with the branching for which ranges are most accurate (Qardaji et al. 2013).

    Without the total, as they have it.
    """
    return _of_intervals(_tree(size, best_branching(size))[1:], size)


def best_branching(size: int) -> int:
    """The branching b with the smallest (b − 1) h³ − 2 (b + 1) h² / 3, h the height of the tree."""

    def error(branching: int) -> float:
        height = ceil(log(size, branching) - 1e-9)
        return (branching - 1) * height**3 - 2 * (branching + 1) * height**2 / 3

    return min(range(2, max(size, 2) + 1), key=error)


def wavelet(size: int, gram: np.ndarray) -> AttributeStrategy:
    """Privelet: the total, and the difference of halves of every interval (Xiao et al. 2010)."""
    rows = np.zeros((size, size))
    rows[0] = 1.0
    # As a binary tree has them; a difference is 1 on its left half and −1 on its right one.
    halved = [(first, last) for first, last in _tree(size, 2) if last > first]
    for row, (first, last) in enumerate(halved, start=1):
        middle = (first + last + 1) // 2
        rows[row, first:middle] = 1.0
        rows[row, middle : last + 1] = -1.0
    return _of_gram(rows.T @ rows, float(np.max(np.sum(np.abs(rows), axis=0))))


def greedy_tree(size: int, gram: np.ndarray) -> AttributeStrategy:
    """GreedyH: a binary tree, with weights found from the leaves upwards (Li et al. 2014).

    For Laplace noise. As in its authors' program, whose figures are the published ones: the rows of
    the Gram matrix count as queries, and what is asked across the parts of an interval of depth k
    counts for 2^(−k/2).
    """
    asked = gram @ gram

    def within(first: int, stop: int, depth: int) -> tuple[float, np.ndarray]:
        """The error, and (AᵀA)⁻¹, of the best tree of an interval at a sensitivity of 1."""
        if stop - first == 1:
            return asked[first, first], np.ones((1, 1))
        middle = (first + stop) // 2
        left, right = within(first, middle, depth + 1), within(middle, stop, depth + 1)
        half, size = middle - first, stop - first
        inverse = np.zeros((size, size))
        inverse[:half, :half], inverse[half:, half:] = left[1], right[1]
        sums = inverse.sum(axis=1)
        weighted = asked[first:stop, first:stop] * np.outer(sums, sums)
        inside = np.sum(weighted[:half, :half]) + np.sum(weighted[half:, half:])
        decay = 2 ** (-depth / 2)
        across = (np.sum(weighted) - inside) * decay + inside
        share = np.arange(100, 0, -1) / 100  # of the budget for the parts
        own = (1 - share) ** 2
        errors = left[0] + right[0] - across * own * decay / (share**2 + own * decay * np.sum(sums))
        best = int(np.argmin(errors / share**2))
        kept, given = share[best] ** 2, own[best]
        updated = inverse - np.outer(sums, sums) * given / (kept + given * np.sum(sums))
        return float(errors[best] / kept), updated / kept

    inverse = within(0, size, 0)[1]
    return AttributeStrategy(inverse, (1.0, float("nan")))


def _tree(size: int, branching: int) -> list[tuple[int, int]]:
    """First and last value of every interval of a tree, from the top."""
    intervals, level = [], [(0, size)]
    while level:
        intervals += [(first, stop - 1) for first, stop in level]
        below = []
        for first, stop in level:
            if stop - first > 1:
                parts = min(branching, stop - first)
                cuts = [first + (stop - first) * part // parts for part in range(parts + 1)]
                below += pairwise(cuts)
        level = below
    return intervals


def _of_intervals(intervals: list[tuple[int, int]], size: int) -> AttributeStrategy:
    first, last = np.array(intervals).T
    gram = Intervals(first, last, size).gram
    return _of_gram(gram, float(np.max(np.diag(gram))))


def _of_gram(gram: np.ndarray, largest_sum: float) -> AttributeStrategy:
    return AttributeStrategy(np.linalg.inv(gram), (largest_sum, float(np.max(np.diag(gram)))))


# ---- Product baselines: the same queries of an attribute, whichever tables it is in.
#
# All combinations of the attributes' queries are measured, with independent noise, and all tables
# are computed from them by least squares. So all there is to know of an attribute is the variance
# of its total and of its queries, and those of a table are their products.


MOST_VALUES = 4096  # of an attribute: its matrix is inverted


@dataclass(frozen=True)
class Product(Baseline):
    """Some queries of each attribute, and their combinations.

    measure     what is measured of an attribute that some table has in other than single values
    norm        2 for Gaussian noise, 1 for Laplace noise
    is_general  whether it is of use for tables of single values only
    """

    measure: Measure
    norm: int = 2
    is_general: bool = False

    def variances(self, workload: Workload, closure: Closure, loss: Loss) -> LogVariances:
        """As at privacy cost 1; with Laplace noise as if its variance were 1 at ε = 1."""
        if workload.is_marginals and not self.is_general:
            raise UnsuitableError("only for attributes in ranges, prefix sums or groups.")
        sizes, moments = workload.domain.sizes, _Moments(workload, self)
        totals = np.log(np.append(sizes.astype(float), 1.0))
        logs = np.zeros((2, len(workload.attribute_bases) + 1))
        for index, (attribute, basis) in enumerate(workload.attribute_bases):
            if not basis.is_identity or not moments.is_plain(attribute):
                totals[attribute], logs[:, index] = moments.of(attribute, basis)
        return product_variances(workload, totals, logs)


def product_variances(workload: Workload, totals: np.ndarray, logs: np.ndarray) -> LogVariances:
    """From logarithms of the variance of each attribute's total and queries.

    totals  float64[d + 1], 0 at the end
    logs    float64[2, n_attribute_bases + 1], of the mean of the queries of each of
            `workload.attribute_bases` and of the least accurate one; 0 at the end
    """
    total = float(np.sum(totals[list(workload.used)]))
    without = total - np.sum(totals[workload.members], axis=1)
    mean, largest = (without + np.sum(of[workload.attribute_basis_index], axis=1) for of in logs)
    return LogVariances(mean, largest)


class _Moments:
    """Variances of attributes' totals and queries; attributes that are alike share them."""

    def __init__(self, workload: Workload, product: Product) -> None:
        self._workload, self._product = workload, product
        self._covariances: dict[tuple, np.ndarray] = {}
        self._known: dict[tuple, tuple[float, tuple[float, float]]] = {}

    def is_plain(self, attribute: int) -> bool:
        """Whether all tables have its single values, each of which is measured."""
        return all(basis.is_identity for basis in self._workload.bases[attribute])

    def of(self, attribute: int, basis: Basis) -> tuple[float, tuple[float, float]]:
        """Logarithms of the variance of the total, of the mean query and the least accurate."""
        groups = self._workload.domain.attributes[attribute].groups
        size = int(self._workload.domain.sizes[attribute])
        key = (size, groups, tuple(self._workload.bases[attribute]))
        if size > MOST_VALUES:
            raise UnsuitableError(f"only for attributes of at most {MOST_VALUES:,} values.")
        if (*key, basis) not in self._known:
            if key not in self._covariances:
                self._covariances[key] = self._covariance(attribute)
            covariance = self._covariances[key]
            rows = self._queries(attribute, basis).row_quadratics(covariance)
            variances = np.sum(covariance), np.mean(rows), np.max(rows)
            total, mean, largest = np.log(np.maximum(variances, 1e-300)).tolist()
            self._known[(*key, basis)] = total, (mean, largest)
        return self._known[(*key, basis)]

    def _queries(self, attribute: int, basis: Basis):
        return query_matrix(basis, self._workload.domain.attributes[attribute]).operator

    @one_thread()
    def _covariance(self, attribute: int) -> np.ndarray:
        queries = [self._queries(attribute, basis) for basis in self._workload.bases[attribute]]
        gram = sum((each.gram / each.n_rows for each in queries), np.zeros(()))
        size = int(self._workload.domain.sizes[attribute])
        measure = self._product.measure if size > 1 else single_values
        strategy = measure(size, gram)
        return strategy.covariance(self._product.norm)


# ---- Lower bound: the error that no Gaussian mechanism can go below, whatever it measures.


@dataclass(frozen=True)
class SingularValues(Baseline):
    """The bound of each table by itself: (Σ singular values)² / values / rows (Li, Miklau 2013).

    Holds for all Gaussian mechanisms, as none can have a table more accurate than one that is made
    for it alone. For several tables it is far below what can be reached.
    """

    def variances(self, workload: Workload, closure: Closure, loss: Loss) -> LogVariances:
        logs = np.zeros((2, len(workload.attribute_bases) + 1))
        for index, (attribute, basis) in enumerate(workload.attribute_bases):
            if not basis.is_identity:
                queries = query_matrix(basis, workload.domain.attributes[attribute]).operator
                variance = _sum_of_singular_values(queries) ** 2 / queries.n_values / queries.n_rows
                logs[:, index] = np.log(variance * (1 - 1e-9))  # rounding
        return product_variances(workload, np.zeros(len(workload.domain) + 1), logs)


@lru_cache(maxsize=4)  # every yardstick is held against the bound
@one_thread()
def _sum_of_singular_values(queries: Operator) -> float:
    squares = np.linalg.eigvalsh(queries.gram)
    return float(np.sum(np.sqrt(np.maximum(squares, 0.0))))


# ---- Best product: of all mechanisms that measure all combinations of attributes' queries the
# best.
#
# With the strategies of the plan, attribute i has its total and its residual measured, at variances
# 1 and s_i. All combinations cost ∏ (1 + β_i/s_i) at a variance of 1, and a table A has there the
# variance ∏_{i∈A} (η_i + τ_i s_i). Logarithms of both are convex in log s, so that the search finds
# the best.


# Powers whose norms stand in, one after another, for the largest variance.
_POWERS = (1.0, 8.0, 64.0, 512.0)


@dataclass(frozen=True)
class BestProduct(Baseline):
    """HDMM's product strategy, in the family of the plan: the best of that form."""

    def variances(self, workload: Workload, closure: Closure, loss: Loss) -> LogVariances:
        from scipy.optimize import minimize  # heavy

        search, norm = _Search(workload, closure, loss), power_of(loss)
        start = search.start
        powers = _POWERS if np.isinf(norm) else (norm,)
        if start.size == 0:  # nothing to search, which SciPy 1.14 refuses
            powers = ()
        for power in powers:
            found = minimize(search.value, start, args=(power,), jac=True, method="L-BFGS-B")
            start = found.x
        mean = search.variances(start, largest=False)[0]
        return LogVariances(mean, np.maximum(mean, search.variances(start, largest=True)[0]))


class _Search:
    """log s of the attributes that are used and have several values, float64[n]."""

    def __init__(self, workload: Workload, closure: Closure, loss: Loss) -> None:
        self._largest = loss.looks_at_least_accurate_cells
        with np.errstate(divide="ignore"):
            self._log_weights = np.log(loss.table_weights(workload))
        self._attributes = [index for index in workload.used if closure.sizes[index] > 1]
        self._betas = np.array([beta_of(closure, index) for index in self._attributes])
        position = {attribute: row for row, attribute in enumerate(self._attributes)}
        self._moments: Sequence[Moments] = [
            moments_of(workload, closure, index) for index in range(len(workload.attribute_bases))
        ]
        # Of each basis the place of its attribute; behind, and for single values, one more.
        places = [position.get(index, len(position)) for index, _ in workload.attribute_bases]
        self._places = np.array([*places, len(position)])
        self._columns = workload.attribute_basis_index

    @property
    def start(self) -> np.ndarray:
        return np.zeros(len(self._attributes))

    def value(self, log_s: np.ndarray, power: float) -> tuple[float, np.ndarray]:
        """Logarithm of the power's norm of weighted variances at cost 1, and its gradient."""
        logs, slopes = self.variances(log_s, largest=self._largest)
        weighted = power * (self._log_weights + logs)
        highest = np.max(weighted)
        shares = np.exp(weighted - highest)
        total = float(np.sum(shares))
        value = float((highest + np.log(total)) / power)
        # d log(norm) / d log s: by the tables' shares of it, through each basis that they use; and
        # the cost's part, log(1 + β / s).
        in_bases = np.zeros(len(slopes))
        np.add.at(
            in_bases, self._columns, np.broadcast_to((shares / total)[:, None], self._columns.shape)
        )
        of_places = np.bincount(self._places, in_bases * slopes, len(log_s) + 1)[: len(log_s)]
        ratio = self._betas * np.exp(-log_s)
        return value, of_places - ratio / (1 + ratio)

    def variances(self, log_s: np.ndarray, *, largest: bool) -> tuple[np.ndarray, np.ndarray]:
        """Logarithms of the tables' variances at cost 1, and the slopes of those of the bases."""
        s = np.exp(np.append(log_s, -np.inf))[self._places[:-1]]
        logs, slopes = np.zeros(len(s) + 1), np.zeros(len(s) + 1)
        for index, moments in enumerate(self._moments):
            if largest:
                rows = moments.least_accurate_rows
                of_rows = moments.total[rows] + moments.spread[rows] * s[index]
                row = rows[int(np.argmax(of_rows))]
                eta, tau = moments.total[row], moments.spread[row]
            else:
                n_rows = len(moments.total)
                eta, tau = moments.total_sum / n_rows, moments.spread_sum / n_rows
            logs[index] = np.log(eta + tau * s[index])
            slopes[index] = tau * s[index] / (eta + tau * s[index])
        cost = float(np.sum(np.log1p(self._betas * np.exp(-log_s))))
        return cost + np.sum(logs[self._columns], axis=1), slopes


# ---- p-identity strategies: each value, and a few weighted sums of values (McKenna et al. 2018).
#
# A = [I; Θ] D with Θ ≥ 0 of p rows, and D the diagonal for which every column has the norm 1. So
# the sensitivity is 1 whatever Θ is, and the error is smooth in Θ. It is not convex: of some starts
# the best is taken, the same in every run; of many values the first.


BOUND_TOLERANCE = 1e-6  # relative, by which rounding may put an error below its bound
_IRRATIONAL = tuple(np.sqrt((2.0, 3.0, 5.0)))
_MOST_STEPS = 200
# Number in Θ of a search that starts again: of larger ones digits had cancelled until the error
# came out below what there can be.
_LARGEST_SUM = 1e4
_FEW_VALUES = 128  # for which all starts are tried
_MOST_VALUES = 256


def p_identity(size: int, gram: np.ndarray) -> AttributeStrategy:
    """The best found for Laplace noise, with a sixteenth as many rows as values (HDMM's OPT_0)."""
    from scipy.optimize import minimize  # heavy

    if size > _MOST_VALUES:
        raise UnsuitableError(f"only for attributes of at most {_MOST_VALUES} values.")
    n_rows = max(size // 16, 1)
    # No strategy is below it: columns whose absolute numbers add up to 1 have a norm of at most 1.
    least = np.sum(np.sqrt(np.maximum(np.linalg.eigvalsh(gram), 0.0))) ** 2 / size
    best, smallest = None, np.inf
    for irrational in _IRRATIONAL[: None if size <= _FEW_VALUES else 1]:
        # Spread evenly over 0 to 1, and without a pattern that the search could keep.
        given = (np.arange(1, n_rows * size + 1) * irrational) % 1.0
        for most in (None, _LARGEST_SUM):
            found = minimize(
                _error, given, args=(gram,), jac=True, method="L-BFGS-B",
                bounds=[(0.0, most)] * given.size, options={"maxiter": _MOST_STEPS},
            )  # fmt: skip
            sums = found.x.reshape(n_rows, size)
            scale = 1 + np.sum(sums, axis=0)
            inner = np.linalg.inv(np.eye(n_rows) + sums @ sums.T)
            inverse = (np.eye(size) - sums.T @ inner @ sums) * np.outer(scale, scale)
            error = float(np.sum(gram * inverse))
            if error >= least * (1 - BOUND_TOLERANCE):
                if error < smallest:
                    best, smallest = inverse, error
                break
    if best is None:
        raise UnsuitableError("only where its errors can be computed.")
    return AttributeStrategy(best, (1.0, float("nan")))


def _error(theta: np.ndarray, gram: np.ndarray) -> tuple[float, np.ndarray]:
    """tr(G (AᵀA)⁻¹) and its gradient in Θ.

    (AᵀA)⁻¹ = S (I + ΘᵀΘ)⁻¹ S with S = diag(1 + Σ rows of Θ); by Woodbury's formula all products
    are of p rows.
    """
    size = len(gram)
    sums = theta.reshape(-1, size)
    scale = 1 + np.sum(sums, axis=0)
    scaled = gram * np.outer(scale, scale)
    inner = np.linalg.solve(np.eye(len(sums)) + sums @ sums.T, sums)  # (I + ΘΘᵀ)⁻¹ Θ
    right = scaled - (scaled @ sums.T) @ inner  # S G S (I + ΘᵀΘ)⁻¹
    inverse_right = right - inner.T @ (sums @ right)
    error = float(np.trace(right))
    # In S: G ∘ (I + ΘᵀΘ)⁻¹ S is what is left of one factor; in Θ: −2 Θ M⁻¹ SGS M⁻¹.
    inverse = np.eye(size) - sums.T @ inner
    of_scale = 2 * (gram * inverse) @ scale
    gradient = of_scale[None] - 2 * sums @ inverse_right
    return error, gradient.ravel()
