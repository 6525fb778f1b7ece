"""The baselines that there are."""

from dataclasses import dataclass
from itertools import product

import numpy as np

from rpexplore.planning.baselines import products as strategies
from rpexplore.planning.baselines.baselines import (
    Baseline,
    LogVariances,
    OneByOne,
    OneByOneLaplace,
    SameNoise,
    UnsuitableError,
    power_of,
)
from rpexplore.planning.baselines.products import BestProduct, Product, p_identity
from rpexplore.planning.losses.losses import Loss, p_norm
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.workload.workload import Workload

# ---- Baselines that measure marginals, or their Fourier coefficients; for tables of single
# values.


MOST_ATTRIBUTES = 15  # of which all marginals are weighed
_MOST_ROUNDS, _GAP, _MOST_GAP = 1000, 1e-3, 2e-2
_ROUNDS_OF_LAPLACE = 300
_FEW = 4  # attributes of which all choices are started from
_MOST_TABLES = 5_000
_CANDIDATES = 60  # marginals that may be merged, in pairs
_AT_ONCE = 1 << 22  # numbers worked on together
_MOST_COMPARED = 2 * 10**10  # attributes of pairs of tables; some seconds


@dataclass(frozen=True)
class Fourier(Baseline):
    """The same noise in every Fourier coefficient that some table needs (Barak et al. 2007).

    A record adds a number of absolute value 1 to each of them; a table of n cells has the mean of
    n of them, over n, as its variance.
    """

    def variances(self, workload: Workload, closure: Closure, loss: Loss) -> LogVariances:
        _refuse_other_bases(workload)
        n_coefficients = np.sum(closure.pairs / closure.residual_cells)
        logs = np.log(n_coefficients) - np.log(workload.counted_cells)
        return LogVariances(logs, logs)


@dataclass(frozen=True)
class BestMarginals(Baseline):
    """All marginals with the best precision each (OPT_M of HDMM), the tables by least squares.

    A marginal B measured with precision θ_B measures residual S ⊆ B with θ_B / ∏_{i∈B∖S} n_i. The
    loss is convex in θ; at a cost of Σ θ = 1 it is found as precisions of areas are
    (docs/mathematics.md §15.4).

    norm  2 for Gaussian noise; 1 for Laplace noise, as if its variance were 1 at ε = 1. A marginal
          of scale φ then has precision φ² at a cost of Σ φ = 1, which is not convex: what the same
          steps find, from all marginals and from those of `DataCube` on, is the best of those
          seen, with no proof
    """

    norm: int = 2

    def variances(self, workload: Workload, closure: Closure, loss: Loss) -> LogVariances:
        _refuse_other_bases(workload)
        used = [index for index in workload.used if closure.sizes[index] > 1]
        if len(used) > MOST_ATTRIBUTES:
            raise UnsuitableError(f"only for at most {MOST_ATTRIBUTES} attributes.")
        bits = np.zeros(len(closure.sizes) + 1, dtype=np.int64)
        bits[used] = 1 << np.arange(len(used))
        residuals = np.sum(bits[closure.members], axis=1)
        sizes = closure.sizes[used].astype(float)
        weights, power = loss.table_weights(workload), power_of(loss)
        even = np.full(1 << len(used), 1.0 / (1 << len(used)))
        if self.norm == 2:
            logs, _ = self._from(even, residuals, sizes, workload, closure, loss)
            return LogVariances(logs, logs)
        starts = [even**2]
        if power == 1 and len(workload) <= _MOST_TABLES:
            for chosen in marginals_of_cube(workload, closure, loss, self.norm):
                few = np.zeros(len(even))
                few[chosen @ bits[:-1]] = 1 / len(chosen) ** 2
                starts.append(few)
        found = [self._from(start, residuals, sizes, workload, closure, loss) for start in starts]
        # All of it for one marginal, that of all attributes, is an optimum of its own, which steps
        # from others do not come to.
        alone = np.sum(np.log(sizes)) - np.log(workload.counted_cells)
        found.append((alone, p_norm(weights * np.exp(alone), power)))
        logs, _ = min(found, key=lambda one: one[1])
        return LogVariances(logs, logs)

    def _from(
        self,
        precisions: np.ndarray,
        residuals: np.ndarray,
        sizes: np.ndarray,
        workload: Workload,
        closure: Closure,
        loss: Loss,
    ) -> tuple[np.ndarray, float]:
        """Logarithms of the variances that steps from these precisions come to, and their loss.

        precisions  of all marginals, by the bits of their attributes, float64[2^d]
        residuals   of the closure, by the same bits
        sizes       of these attributes
        """
        weights, power = loss.table_weights(workload), power_of(loss)
        prices = np.ones(len(workload))
        exponent = 0.5 if np.isinf(power) else 1 / (1 + power)
        logs, gap, least = np.zeros(len(workload)), np.inf, np.inf
        for _ in range(_MOST_ROUNDS if self.norm == 2 else _ROUNDS_OF_LAPLACE):
            # Σ_{B⊇S} of_marginals[B] / ∏_{i∈B∖S} n_i for all S, by the bits of the sets.
            sums = precisions.copy()
            for bit, size in enumerate(sizes):
                pairs = sums.reshape(-1, 2, 1 << bit)
                pairs[:, 0] += pairs[:, 1] / size
            sigma_squared = 1 / sums[residuals]
            variances = closure.variances(sigma_squared)
            weighted = weights * variances
            reached = p_norm(weighted, power)
            if self.norm == 2 or reached < least:
                logs, least = np.log(variances), reached
            if np.isinf(power):
                prices = np.maximum(prices * weighted / np.sum(prices * weighted), 1e-12)
            else:  # the gradient of the norm
                prices = (weighted / reached) ** (power - 1)
            of_residuals = closure.residual_weights(weights * prices)
            slopes = np.zeros(len(precisions))
            slopes[residuals] = of_residuals * sigma_squared**2
            # Σ_{S⊆B} slopes[S] / ∏_{i∈B∖S} n_i for all B: the transpose.
            gradient = slopes.copy()
            for bit, size in enumerate(sizes):
                pairs = gradient.reshape(-1, 2, 1 << bit)
                pairs[:, 1] += pairs[:, 0] / size
            value = float(np.sum(of_residuals * sigma_squared))
            if self.norm == 1:
                scales = np.sqrt(precisions)
                scales = scales * np.maximum(precisions * gradient / value, 1e-300) ** exponent
                precisions = (scales / np.sum(scales)) ** 2
                continue
            gap = reached * np.max(gradient) / value**2 - 1
            if gap <= _GAP:
                break
            precisions = precisions * (gradient / value) ** exponent
            precisions /= np.sum(precisions)
        if self.norm == 2 and gap > _MOST_GAP:
            raise UnsuitableError("only where they are found in a moment, which they are not here.")
        return logs, float(least)


@dataclass(frozen=True)
class LaplaceProduct(Baseline):
    """With Laplace noise, each attribute's values and their total, and all combinations of these.

    HDMM's OPT_⊗ for marginals: of attribute i [I; ϑ1ᵀ]/(1 + ϑ), for which a cell has the variance
    (1 + ϑ)² (1 − ϑ²/(1 + nϑ²)) and the total (1 + ϑ)² n/(1 + nϑ²). The ϑ are looked for from some
    starts, without proof. As if the noise's variance were 1 at ε = 1.
    """

    def variances(self, workload: Workload, closure: Closure, loss: Loss) -> LogVariances:
        from scipy.optimize import minimize  # heavy

        _refuse_other_bases(workload)
        used = np.array([index for index in workload.used if closure.sizes[index] > 1], dtype=int)
        sizes = closure.sizes[used].astype(float)
        has = np.any(workload.members[:, :, None] == used, axis=1).astype(float)
        with np.errstate(divide="ignore"):
            log_weights = np.log(loss.table_weights(workload))
        power = power_of(loss)
        if np.isinf(power):
            raise UnsuitableError("only for the average error, or between it and the largest.")

        def factors(log_theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            """log of the variance of each attribute's total, and of a cell's over it."""
            theta = np.exp(log_theta)
            total = 2 * np.log1p(theta) + np.log(sizes) - np.log1p(sizes * theta**2)
            return total, np.log1p((sizes - 1) * theta**2) - np.log(sizes)

        def logs_of(log_theta: np.ndarray) -> np.ndarray:
            total, cell = factors(log_theta)
            return np.sum(total) + has @ cell

        def value(log_theta: np.ndarray) -> tuple[float, np.ndarray]:
            """The log of the loss, and its gradient in log ϑ."""
            weighted = power * (log_weights + logs_of(log_theta))
            highest = np.max(weighted)
            parts = np.exp(weighted - highest)
            theta = np.exp(log_theta)
            squares = theta**2
            of_total = 2 * theta / (1 + theta) - 2 * sizes * squares / (1 + sizes * squares)
            of_cell = 2 * (sizes - 1) * squares / (1 + (sizes - 1) * squares)
            gradient = of_total + (parts @ has) / np.sum(parts) * of_cell
            return float(highest + np.log(np.sum(parts))) / power, gradient

        if len(used) > MOST_ATTRIBUTES or len(workload) > _MOST_TABLES:
            raise UnsuitableError("only where they are found in a moment, which they are not here.")
        tried = [np.full(len(used), -np.inf)]  # no totals
        # Not convex: it is better to have totals of some attributes only, or of all.
        starts = [np.full(len(used), start) for start in (-1.0, 1.0)]
        if len(used) <= _FEW:
            starts += list(map(np.array, product((-4.0, 0.5), repeat=len(used))))
        else:
            starts += [np.where(np.eye(len(used))[one] > 0, 0.5, -4.0) for one in range(len(used))]
        for start in starts if len(used) else ():
            bounds = [(-20.0, 10.0)] * len(used)
            found = minimize(value, start, method="L-BFGS-B", bounds=bounds, jac=True)
            tried.append(found.x)
        logs = logs_of(min(tried, key=lambda log_theta: value(log_theta)[0]))
        return LogVariances(logs, logs)


@dataclass(frozen=True)
class DataCube(Baseline):
    """Some marginals with the same noise, and all tables from these by least squares.

    After Ding et al. (2011), who also choose few marginals greedily. Here, for the loss: from all
    tables that are asked for, or from the largest of them, on, two are replaced by the marginal of
    the attributes of both as long as that is better where each table is summed from the smallest
    that holds it.

    norm  2 for Gaussian noise; 1 for Laplace noise, as if its variance were 1 at ε = 1: the number
          of marginals counts by its square
    """

    norm: int = 2

    def variances(self, workload: Workload, closure: Closure, loss: Loss) -> LogVariances:
        _refuse_other_bases(workload)
        if power_of(loss) != 1:
            raise UnsuitableError("only for the average error, for which it is chosen.")
        if len(workload) ** 2 * len(closure.sizes) > _MOST_COMPARED:
            raise UnsuitableError("only where they are found in a moment, which they are not here.")
        exponent = 2 if self.norm == 1 else 1
        found = [
            exponent * np.log(len(chosen)) + np.log(least_squares_of(chosen, closure))
            for chosen in marginals_of_cube(workload, closure, loss, self.norm)
        ]
        logs = min(found, key=lambda logs: loss.value(np.exp(logs), workload))
        return LogVariances(logs, logs)


def least_squares_of(marginals: np.ndarray, closure: Closure) -> np.ndarray:
    """Mean variances of tables by least squares from marginals, bool[n, d], with noise of 1 each.

    float64[n_tables]; every table must be within a marginal
    """
    log_sizes = np.log(closure.sizes.astype(float))
    has = np.zeros((len(closure), len(log_sizes) + 1), dtype=bool)
    np.put_along_axis(has, closure.members.astype(np.int64), True, axis=1)
    has, precisions = has[:, :-1], np.zeros(len(closure))
    outside, log_cells = (~marginals).T.astype(np.float32), marginals @ log_sizes
    step = max(_AT_ONCE // max(len(marginals), 1), 1)
    for start in range(0, len(closure), step):
        some = has[start : start + step]
        over = np.exp((some @ log_sizes)[:, None] - log_cells)  # cells of S over those of B ⊇ S
        is_within = some.astype(np.float32) @ outside == 0
        precisions[start : start + step] = np.sum(np.where(is_within, over, 0.0), axis=1)
    return closure.variances(1 / precisions)


def marginals_of_cube(
    workload: Workload, closure: Closure, loss: Loss, norm: int
) -> list[np.ndarray]:
    """The two choices of marginals that `DataCube` compares, bool[n, d] each, smallest first."""
    log_sizes, has = np.log(closure.sizes.astype(float)), _memberships(workload, closure)
    over_cells = loss.table_weights(workload) * np.exp(-(has @ log_sizes))
    found = []
    for marginals, of_table in (_largest(has), (has, np.arange(len(has)))):
        chosen = _merged(marginals, of_table, log_sizes, over_cells, 2 if norm == 1 else 1)
        found.append(chosen[np.argsort(chosen @ log_sizes, kind="stable")])
    return found


def _memberships(workload: Workload, closure: Closure) -> np.ndarray:
    """Whether each table has each attribute, bool[n_tables, d]."""
    has = np.zeros((len(workload), len(closure.sizes) + 1), dtype=bool)
    np.put_along_axis(has, workload.members.astype(np.int64), True, axis=1)
    return has[:, :-1]


def _merged(
    chosen: np.ndarray,
    of_table: np.ndarray,
    log_sizes: np.ndarray,
    weights: np.ndarray,
    exponent: int,
) -> np.ndarray:
    """Marginals, bool[n, d], with some of them replaced by that of the attributes of both.

    What a marginal adds to the loss is its number of cells times a factor: the sum of weight over
    cells of the tables that are computed from it.

    of_table  which of them each table is computed from
    weights   of the tables, over their cells
    exponent  of the number of marginals in their noise
    """
    factors = np.bincount(of_table, weights, len(chosen))
    while len(chosen) > 1:
        parts = np.exp(chosen @ log_sizes) * factors
        smallest = np.argsort(parts, kind="stable")[:_CANDIDATES]
        some, own = chosen[smallest], factors[smallest]
        unions = some[:, None] | some[None]
        added = np.exp(unions @ log_sizes) * (own[:, None] + own[None])
        added -= parts[smallest][:, None] + parts[smallest][None]
        np.fill_diagonal(added, np.inf)
        first, second = np.unravel_index(int(np.argmin(added)), added.shape)
        total = float(np.sum(parts))
        fewer = (1 - 1 / len(chosen)) ** exponent
        if fewer * (total + added[first, second]) >= total:
            break
        union = unions[first, second]
        replaced = np.all(chosen == union, axis=1)
        replaced[smallest[[first, second]]] = True
        chosen, factors = (
            np.vstack([chosen[~replaced], union]),
            np.append(factors[~replaced], np.sum(factors[replaced])),
        )
    return chosen


def _largest(has: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The tables that are in no other one, and for each table one of those that it is in."""
    orders = np.sum(has, axis=1)
    kept = np.zeros(0, dtype=np.int64)
    of_table = np.zeros(len(has), dtype=np.int64)
    for order in np.unique(orders)[::-1].tolist():
        tables = np.flatnonzero(orders == order)
        first = _first_with(has[tables], has[kept])
        is_within = first < len(kept)
        of_table[tables] = first
        of_table[tables[~is_within]] = len(kept) + np.arange(np.count_nonzero(~is_within))
        kept = np.append(kept, tables[~is_within])
    return has[kept], of_table


def _first_with(tables: np.ndarray, marginals: np.ndarray) -> np.ndarray:
    """For each table the first of some marginals that has all its attributes; their number: none.

    bool[n, d] and bool[m, d], to int64[n]
    """
    first = np.full(len(tables), len(marginals))
    outside = (~marginals).T.astype(np.float32)
    step = max(_AT_ONCE // max(len(marginals), 1), 1)
    for start in range(0, len(tables) if len(marginals) else 0, step):
        rows = tables[start : start + step].astype(np.float32)
        is_within = rows @ outside == 0
        found = np.where(np.any(is_within, axis=1), np.argmax(is_within, axis=1), len(marginals))
        first[start : start + step] = found
    return first


def _refuse_other_bases(workload: Workload) -> None:
    if not workload.is_marginals:
        raise UnsuitableError("only for tables of single values.")


# ---- The baselines that there are.


_HDMM = "{} of HDMM, McKenna et al. 2018"

# At the same privacy cost, with Gaussian noise.
BASELINES: tuple[Baseline, ...] = (
    Product(
        "cells",
        "noise in every cell",
        "Dwork et al. 2006",
        strategies.single_values,
        is_general=True,
    ),
    SameNoise("tables", "the same noise in every table", "Dwork et al. 2006"),
    OneByOne("one-by-one", "every table planned by itself", _HDMM.format("OPT_+")),
    Product("h2", "binary hierarchies", "H2, Hay et al. 2010", strategies.binary_tree),
    Product("hb", "hierarchies of the best width", "HB, Qardaji et al. 2013", strategies.wide_tree),
    Product("wavelets", "wavelets", "Privelet, Xiao et al. 2010", strategies.wavelet),
    Fourier("fourier", "Fourier coefficients", "Barak et al. 2007"),
    DataCube("data-cube", "a choice of marginals", "DataCube, Ding et al. 2011"),
    BestProduct("product", "the best product", _HDMM.format("OPT_⊗")),
    BestMarginals("marginals", "the best marginals", _HDMM.format("OPT_M")),
)

# With Laplace noise, at ε = 1 and up to a factor of two.
LAPLACE_BASELINES: tuple[Baseline, ...] = (
    SameNoise("tables", "the same noise in every table", "Dwork et al. 2006", norm=1),
    OneByOneLaplace("one-by-one", "every table by itself", _HDMM.format("OPT_+")),
    DataCube("data-cube", "a choice of marginals", "DataCube, Ding et al. 2011", norm=1),
    LaplaceProduct("totals", "the best product of totals and cells", _HDMM.format("OPT_⊗")),
    BestMarginals("marginals", "the best marginals found", _HDMM.format("OPT_M"), norm=1),
    *(
        Product(name, title, source, measure, norm=1, is_general=name == "cells")
        for name, title, source, measure in (
            ("cells", "noise in every cell", "Dwork et al. 2006", strategies.single_values),
            ("h2", "binary hierarchies", "H2, Hay et al. 2010", strategies.binary_tree),
            (
                "hb",
                "hierarchies of the best width",
                "HB, Qardaji et al. 2013",
                strategies.wide_tree,
            ),
            ("wavelets", "wavelets", "Privelet, Xiao et al. 2010", strategies.wavelet),
            ("greedy", "weighted hierarchies", "GreedyH, Li et al. 2014", strategies.greedy_tree),
            ("product", "the best product found", _HDMM.format("OPT_⊗"), p_identity),
        )
    ),
)
