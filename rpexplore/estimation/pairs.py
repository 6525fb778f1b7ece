"""Smooth tables of pairs: one factor model, and what each pair's own residual says beyond it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from rpexplore.common.processes import Progress
from rpexplore.domain.domain import AttributeIndices
from rpexplore.estimation.agreement import fitted
from rpexplore.estimation.one_way import (
    OneWay,
    kept_share,
    learned_weights,
    log_evidence,
    posterior_weights,
    shrunk,
)
from rpexplore.estimation.table_map import MeasuredResiduals

# ---- One factor model for all pairs: what all measured pairs say together about each of them.
#
# The deviation of a pair from independence, as a share of the records, is
#
#     sqrt(p_a p_b) u_ja · u_kb + noise,     u_ja in K dimensions for value a of attribute j,
#
# factor analysis of the Burt matrix without its diagonal blocks. One set of factors serves all
# attributes, so the noise of a pair is averaged over all others. A priori a factor's values are
# independent of each other, or smooth along the values. Fitted by variational inference, one
# attribute after another, each step exact (docs/mathematics.md §13.2).


_FACTORS = 40
_SWEEPS = 60
_FIRST_SWEEPS = 2  # before the priors are learned
_SWEEPS_PER_CHOICE = 3  # of the order of the values
_SMALLEST_SHARE = 1e-4  # of the records with a value, in the weights of the model
_FIRST_PRIOR, _SMALLEST_PRIOR, _LARGEST_PRIOR = 0.1, 1e-9, 50.0  # variances of a factor
_FEWEST_PARAMETERS = 1e-3  # of an attribute's values, that a factor's prior is learned from

# Priors that are smooth along the values; beyond so many they take too long (n³).
_FEWEST_VALUES, _MOST_VALUES = 4, 500
_LENGTHS = (1 / 6, 1.0)  # of correlation, as shares of the values
_SMOOTH_SHARES = (0.3, 0.7, 0.9, 0.97)
_SCALINGS = np.array([0.3, 0.6, 1.0, 1.7, 3.0])  # of the prior variances, tried with each of them
_MORE_EVIDENCE = 1.0  # in nats, that another prior must have to be taken
_MOST_DENSE = 2000  # values of all attributes whose matrix is decomposed as a whole
_LARGEST_PRECISION = 1e11  # N²/σ² of a pair; from 1e13 on, the sweeps may overflow
_NEARLY_ALL = 1 - 1e-6  # of its noise, that one attribute's factors repeat in a direction
_LARGEST_LEVERAGE = 0.98  # beyond it a pair's residual is next to nothing, and tells as little


@dataclass(frozen=True)
class Prior:
    """sqrt(p) R sqrt(p) by its eigenvalues and eigenvectors, None for those of the identity."""

    eigenvalues: np.ndarray
    vectors: np.ndarray | None

    def turned(self, values: np.ndarray) -> np.ndarray:
        return values if self.vectors is None else self.vectors.T @ values

    def cell_variances(self, variances: np.ndarray) -> np.ndarray:
        return variances if self.vectors is None else self.vectors**2 @ variances


@dataclass
class AttributeFactors:
    """The part of one attribute in the model, with its current posterior.

    roots       sqrt(p), float64[n]
    others      positions of the attributes that it is measured with
    rows        their rows among those of all attributes
    residuals   measured deviations times their precision, float64[n, len(rows)]
    precisions  N²/σ² of each of the others
    variances   float64[K], of each factor a priori
    directions  float64[K, K]; spread: float64[n, K], so that the covariance of u_a is
                Σ_f spread[a, f] directions[:, f] directions[:, f]ᵀ
    """

    roots: np.ndarray
    own_rows: slice
    others: np.ndarray
    rows: np.ndarray
    residuals: np.ndarray
    precisions: np.ndarray
    priors: list[Prior]
    variances: np.ndarray
    chosen: int = 0
    directions: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    spread: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))

    def update(self, sweep: int, means: np.ndarray, moments: np.ndarray, own: int) -> None:
        """Take the posterior given all others; then the prior that it speaks for.

        Changes itself, and its rows of `means` and `moments`, in place.

        means: sqrt(p) E[u], float64[all values, K]; moments: Σ_a p_a E[u uᵀ], float64[d, K, K]
        """
        n = len(self.roots)
        information = np.tensordot(self.precisions, moments[self.others], axes=1)
        pull = self.residuals @ means[self.rows]
        scale = np.sqrt(self.variances)
        levels, vectors = np.linalg.eigh(scale[:, None] * information * scale)
        levels = np.maximum(levels, 0.0)
        turned_pull = (pull * scale) @ vectors
        prior = self.priors[self.chosen]
        eigenvalues = prior.eigenvalues[:, None]
        spread = eigenvalues / (1 + eigenvalues * levels)
        along = prior.turned(turned_pull) * spread
        mean = (along if prior.vectors is None else prior.vectors @ along) @ vectors.T
        means[self.own_rows] = mean * scale
        second = mean.T @ mean + (vectors * spread.sum(axis=0)) @ vectors.T
        moments[own] = scale[:, None] * second * scale
        self.directions = scale[:, None] * vectors
        self.spread = prior.cell_variances(spread) / self.roots[:, None] ** 2
        if sweep < _FIRST_SWEEPS:
            return
        # MacKay's update: EM creeps, and can stay with factors that are nothing.
        squares = (1 / prior.eigenvalues) @ (along @ vectors.T) ** 2
        undetermined = (1 / prior.eigenvalues) @ (spread @ (vectors**2).T)
        determined = np.maximum(n - undetermined, _FEWEST_PARAMETERS * n)
        self.variances = np.clip(
            self.variances * squares / determined, _SMALLEST_PRIOR, _LARGEST_PRIOR
        )
        if len(self.priors) > 1 and sweep % _SWEEPS_PER_CHOICE == _SWEEPS_PER_CHOICE - 1:
            # The prior of most evidence, each with the best scaling of its variances.
            evidence = np.array(
                [_log_evidence(prior, turned_pull, levels) for prior in self.priors]
            )
            best = evidence.max(axis=1)
            choice = int(np.argmax(best))
            if choice != self.chosen and best[choice] > best[self.chosen] + _MORE_EVIDENCE:
                self.chosen = choice
                scaling = _SCALINGS[int(np.argmax(evidence[choice]))]
                self.variances = self.variances * scaling


def _log_evidence(prior: Prior, turned_pull: np.ndarray, levels: np.ndarray) -> list[float]:
    """Of a prior with its variances times each of `_SCALINGS`, given all other attributes."""
    squares = prior.turned(turned_pull) ** 2
    result = []
    for scaling in _SCALINGS:
        spectrum = scaling * prior.eigenvalues[:, None]
        grown = 1 + spectrum * levels
        result.append(0.5 * float(np.sum(squares * spectrum / grown - np.log(grown))))
    return result


@dataclass(frozen=True)
class FactorModel:
    """The fitted model, by attribute.

    total       number of records
    loadings    E[u], float64[n, K]
    directions  of the covariance of u, float64[K, K]; spread: along each, float64[n, K]
    """

    total: float
    shares: Mapping[int, np.ndarray]
    loadings: Mapping[int, np.ndarray]
    directions: Mapping[int, np.ndarray]
    spread: Mapping[int, np.ndarray]

    def deviation(self, j: int, k: int) -> np.ndarray:
        """Expected counts of the pair beyond independence, float64[n_j, n_k]."""
        roots = np.sqrt(np.outer(self.shares[j], self.shares[k]))
        return self.total * roots * (self.loadings[j] @ self.loadings[k].T)

    def variance(self, j: int, k: int) -> np.ndarray:
        """Of each cell of `deviation`, as the model has it."""
        along_j = (self.loadings[k] @ self.directions[j]) ** 2 @ self.spread[j].T
        along_k = (self.loadings[j] @ self.directions[k]) ** 2 @ self.spread[k].T
        overlap = (self.directions[j].T @ self.directions[k]) ** 2
        both = self.spread[j] @ overlap @ self.spread[k].T
        shares = np.outer(self.shares[j], self.shares[k])
        return self.total**2 * shares * (along_j.T + along_k + both)

    def leverage(self, j: int, k: int, noise: float) -> float:
        """Share of the pair's own noise that its `deviation` repeats, below 1.

        The mean eigenvalue of the deviation's derivative by what was measured of the pair, u_j and
        u_k being fitted to it together and all else held. noise: σ², alike in all cells
        """
        of_j, of_k = self._odds(j, k, noise), self._odds(k, j, noise)
        odds = of_j[:, None] + of_k
        return min(float((odds / (1 + odds)).mean()), _LARGEST_LEVERAGE)

    def _odds(self, j: int, k: int, noise: float) -> np.ndarray:
        """h/(1 − h) of what u_j alone would repeat, along n_k − 1 directions of the pair's rows.

        Ridge regression of each row on the loadings of k; its prior differs by row, so the mean.
        """
        root, spread = np.sqrt(self.shares[k]), self.shares[j] @ self.spread[j]
        along = root[:, None] * (self.loadings[k] @ self.directions[j])
        along = (along - along.mean(axis=0)) * np.sqrt(spread / len(self.shares[j]))
        values = np.linalg.svd(along, compute_uv=False)[: len(root) - 1]
        repeated = np.zeros(len(root) - 1)
        repeated[: len(values)] = np.minimum(self.total**2 / noise * values**2, _NEARLY_ALL)
        return repeated / (1 - repeated)


def factor_model(
    measured: MeasuredResiduals, low: OneWay, on_progress: Progress
) -> FactorModel | None:
    """The model of all measured pairs; None if there are none."""
    attributes, means = _start(measured, low)
    if not attributes:
        return None
    parts = list(attributes.values())
    moments = np.array([means[part.own_rows].T @ means[part.own_rows] for part in parts])
    for sweep in range(_SWEEPS):
        on_progress("Fitting all pairs together", sweep / _SWEEPS)
        for own, part in enumerate(parts):
            part.update(sweep, means, moments, own)
    return FactorModel(
        measured.total,
        {index: low.tables[index] / measured.total for index in attributes},
        {index: means[part.own_rows] / part.roots[:, None] for index, part in attributes.items()},
        {index: part.directions for index, part in attributes.items()},
        {index: part.spread for index, part in attributes.items()},
    )


def _start(
    measured: MeasuredResiduals, low: OneWay
) -> tuple[dict[int, AttributeFactors], np.ndarray]:
    """All attributes that are in a pair, and sqrt(p) E[u] to begin with."""
    total, pairs = measured.total, measured.of_order(2)
    indices = sorted({index for pair in pairs for index in pair})
    if not pairs:
        return {}, np.zeros((0, 0))
    ends = np.cumsum([int(measured.sizes[index]) for index in indices])
    own_rows = {
        index: slice(int(end) - int(measured.sizes[index]), int(end))
        for index, end in zip(indices, ends, strict=True)
    }
    blocks: dict[int, dict[int, np.ndarray]] = {index: {} for index in indices}
    precisions: dict[int, dict[int, float]] = {index: {} for index in indices}
    for j, k in pairs:
        independent = np.outer(low.tables[j], low.tables[k]) / total
        precision = min(total**2 / measured.even_variance((j, k)), _LARGEST_PRECISION)
        block = measured.beyond((j, k), independent) * (precision / total)
        blocks[j][k], blocks[k][j] = block, block.T
        precisions[j][k] = precisions[k][j] = precision
    attributes, n_factors = {}, min(_FACTORS, int(ends[-1]))
    for index in indices:
        share = np.maximum(low.tables[index] / total, _SMALLEST_SHARE)
        others = sorted(blocks[index])
        attributes[index] = AttributeFactors(
            roots=np.sqrt(share),
            own_rows=own_rows[index],
            others=np.array([indices.index(other) for other in others]),
            rows=np.concatenate(
                [np.arange(own_rows[other].start, own_rows[other].stop) for other in others]
            ),
            residuals=np.hstack([blocks[index].pop(other) for other in others]),
            precisions=np.array([precisions[index][other] for other in others]),
            priors=_priors(share),
            variances=np.full(n_factors, _FIRST_PRIOR),
        )
    return attributes, _leading_vectors(list(attributes.values()), int(ends[-1]), n_factors)


def _priors(share: np.ndarray) -> list[Prior]:
    """Values independent of each other; or neighbours alike, over short and long distances."""
    n = len(share)
    priors = [Prior(share, None)]
    if not _FEWEST_VALUES <= n <= _MOST_VALUES:
        return priors
    distances = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    for length in _LENGTHS:
        kernel = np.exp(-distances / (length * n))
        for smooth in _SMOOTH_SHARES:
            covariance = smooth * n * np.outer(share, share) * kernel
            covariance[np.diag_indices(n)] += (1 - smooth) * share
            eigenvalues, vectors = np.linalg.eigh(covariance)
            priors.append(Prior(np.maximum(eigenvalues, 1e-12), vectors))
    return priors


def _leading_vectors(parts: list[AttributeFactors], n_rows: int, n_factors: int) -> np.ndarray:
    """sqrt(p) E[u] to begin with: of the precision-weighted matrix of all pairs."""
    roots = np.concatenate([part.roots for part in parts])
    means = [part.precisions.sum() / max(len(parts) - 1, 1) for part in parts]
    weights = np.concatenate(
        [np.full(len(part.roots), mean) for part, mean in zip(parts, means, strict=True)]
    )
    scale = roots / np.sqrt(weights)

    def product(values: np.ndarray) -> np.ndarray:
        scaled = values * (scale if values.ndim == 1 else scale[:, None])
        rows = [part.residuals @ scaled[part.rows] for part in parts]
        result = np.concatenate(rows)
        return result * (scale if values.ndim == 1 else scale[:, None])

    if n_rows <= _MOST_DENSE or n_factors >= n_rows:
        eigenvalues, vectors = np.linalg.eigh(product(np.eye(n_rows)))
    else:
        # Here, as `rpexplore --help` would load it for nothing.
        from scipy.sparse.linalg import LinearOperator, eigsh

        shape = (n_rows, n_rows)
        matrix = LinearOperator(shape, matvec=product, dtype=np.float64)  # pyright: ignore[reportCallIssue]
        eigenvalues, vectors = eigsh(matrix, n_factors, which="LA", v0=np.ones(n_rows))
    order = np.argsort(-eigenvalues)[:n_factors]
    strength = np.sqrt(np.maximum(eigenvalues[order], 1e-9))
    start = vectors[:, order] * strength / (weights**0.25)[:, None]
    return roots[:, None] * np.clip(start, -1, 1)


# ---- Smooth tables of pairs: the factor model, and what each pair's own residual says beyond it.


_LOWEST = 0.02  # of independence, that the factor model may go down to
_ROUNDS_OF_MODEL, _ROUNDS = 10, 30  # of proportional fitting to the one-way tables


@dataclass(frozen=True)
class Pairs:
    """The tables of all pairs.

    tables   float64, above 0; they add up to the one-way tables
    weights  of `SCALES`, for each pair
    kept     share of the residual beyond the model that was kept, on average over records
    """

    model: FactorModel | None
    tables: dict[AttributeIndices, np.ndarray]
    weights: dict[AttributeIndices, np.ndarray]
    kept: dict[AttributeIndices, float]


def smooth_pairs(measured: MeasuredResiduals, low: OneWay, on_progress: Progress) -> Pairs:
    """The tables of all measured pairs."""
    model = factor_model(measured, low, on_progress)
    if model is None:
        return Pairs(None, {}, {}, {})
    baselines = {pair: _baseline(low, model, *pair) for pair in measured.of_order(2)}
    evidence = {
        pair: _evidence(measured, model, pair, baseline) for pair, baseline in baselines.items()
    }
    learned = learned_weights(list(evidence.values()))
    tables, weights, kept = {}, {}, {}
    for pair, baseline in baselines.items():
        variance = measured.cell_variance(pair)
        weights[pair] = posterior_weights(evidence[pair], learned)
        share = kept_share(baseline, variance, weights[pair])
        table = shrunk(baseline, share, measured.beyond(pair, baseline), variance)
        kept[pair] = float(np.sum(share * baseline) / baseline.sum())
        tables[pair] = fitted(table, _margins(low, *pair), _ROUNDS)
    return Pairs(model, tables, weights, kept)


def _evidence(
    measured: MeasuredResiduals, model: FactorModel, pair: AttributeIndices, baseline: np.ndarray
) -> np.ndarray:
    """Of each of `SCALES`, for what a pair shows beyond a baseline without its own noise.

    A baseline that repeats a share h of the pair's residual leaves 1 − h of it, of noise and
    deviation alike: taken as it is, it would look like less than noise.
    """
    j, k = pair
    left = 1 - model.leverage(j, k, measured.even_variance(pair))
    return log_evidence(
        baseline,
        measured.beyond(pair, baseline) / left,
        measured.cell_variance(pair),
        measured.degrees_of_freedom_per_cell(pair),
    )


def _baseline(low: OneWay, model: FactorModel, j: int, k: int) -> np.ndarray:
    independent = np.outer(low.tables[j], low.tables[k]) / model.total
    table = np.maximum(independent + model.deviation(j, k), _LOWEST * independent)
    return fitted(table, _margins(low, j, k), _ROUNDS_OF_MODEL)


def _margins(low: OneWay, j: int, k: int) -> list[np.ndarray]:
    return [low.tables[k], low.tables[j]]
