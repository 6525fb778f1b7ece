"""A population of records and the pairwise model that it is drawn from by Gibbs sweeps.

The model is P(x) ∝ ∏ p_j(x_j) ∏ exp θ_jk(x_j, x_k), without what is impossible
(docs/mathematics.md, synthetic records).
"""

from collections.abc import Callable

import numpy as np

from rpexplore.estimation.seeded_numbers import SeededNumbers
from rpexplore.postprocessing.synthetic.impossible import Impossible
from rpexplore.postprocessing.synthetic.indicators import Indicators
from rpexplore.postprocessing.synthetic.targets import PairTargets

_CHUNK = 4096  # records that a sweep takes at once
# A pair lacking `_SLACK_SHARE` of its records and `_SLACK` more pulls as far as any may: by e.
# Tried from 0.3 and 10 to 0.03 and 1 on census records: smaller is nearer, until it oscillates.
_SLACK_SHARE, _SLACK = 0.05, 2.0
_LOWEST_SHARE = 1e-12  # of records, so that its logarithm is finite


class PairModel:
    """What every record is drawn from, as arrays over all values of all attributes (V of them).

    offsets     int64[d + 1]: where each attribute's values begin
    shares      float32[V, V]: the target of each two values; one-way shares on the diagonal
    measured    bool[V, V]: whether the pair of their attributes has a target
    neighbours  int64[d]: with how many attributes each has one
    potentials  float32[V, V]: θ, symmetric, 0 where nothing is measured
    """

    def __init__(self, targets: PairTargets, impossible: Impossible) -> None:
        self.targets, self.impossible = targets, impossible
        self.sizes = targets.sizes
        self.offsets = np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.int64)
        n_values = int(self.offsets[-1])
        self.shares = np.zeros((n_values, n_values), dtype=np.float32)
        self.measured = np.zeros((n_values, n_values), dtype=bool)
        self.neighbours = np.zeros(len(self.sizes), dtype=np.int64)
        for (i, j), table in targets.pairs.items():
            rows, columns = self.block(i), self.block(j)
            self.shares[rows, columns], self.shares[columns, rows] = table, table.T
            self.measured[rows, columns] = self.measured[columns, rows] = True
            self.neighbours[[i, j]] += 1
        self.one_way = np.concatenate(targets.one_way)
        np.fill_diagonal(self.shares, self.one_way)
        self.potentials = np.zeros((n_values, n_values), dtype=np.float32)
        self._log_shares = np.log(np.maximum(self.one_way, _LOWEST_SHARE)).astype(np.float32)

    def block(self, attribute: int) -> slice:
        """Where an attribute's values are among all."""
        return slice(int(self.offsets[attribute]), int(self.offsets[attribute + 1]))

    def indicators(self, codes: np.ndarray) -> Indicators:
        return Indicators(codes, self.offsets)

    def weights(
        self, indicators: Indicators, codes: np.ndarray, attribute: int, potentials: np.ndarray
    ) -> np.ndarray:
        """P of each value of an attribute given the others, up to a factor: float32[n, size]."""
        weights = indicators.times(potentials) + self._log_shares[self.block(attribute)]
        forbidden = self.impossible.forbidden(codes, attribute)
        if forbidden is not None:
            weights[forbidden] = -np.inf  # never all: the value that the record has is possible
        weights -= weights.max(axis=1, keepdims=True)
        return np.exp(weights, out=weights)


def sweep(
    model: PairModel,
    codes: np.ndarray,
    numbers: SeededNumbers,
    on_share: Callable[[float], None] = lambda share: None,
) -> np.ndarray:
    """Draw each attribute of every record anew given its others, in `codes` itself.

    Returns the model's two-way shares as estimated on the way (Rao-Blackwell: from probabilities
    instead of what was drawn), float32[V, V], symmetric.
    """
    frequencies = np.zeros_like(model.potentials)
    for start in range(0, len(codes), _CHUNK):
        on_share(start / len(codes))
        chunk = codes[start : start + _CHUNK]
        indicators = model.indicators(chunk)
        for attribute in range(len(model.sizes)):
            block = model.block(attribute)
            weights = model.weights(indicators, chunk, attribute, model.potentials[:, block])
            cumulative = np.cumsum(weights, axis=1)
            weights /= cumulative[:, -1:]
            frequencies[:, block] += indicators.sums(weights)
            _draw(chunk, attribute, cumulative, indicators, numbers)
    frequencies += frequencies.T.copy()
    frequencies /= 2 * len(codes)
    return frequencies


def sweep_with_feedback(
    model: PairModel,
    codes: np.ndarray,
    numbers: SeededNumbers,
    on_share: Callable[[float], None],
) -> None:
    """A sweep in which records are drawn towards what their own tables lack (as in herding).

    Without it, the records' tables are as far from the model's as independent draws are. Each chunk
    is drawn given the counts of all other records.
    """
    n = len(codes)
    chunk_size = sweep_chunk_size(n, len(model.one_way))
    counts = pair_counts(model, codes)
    wanted = model.shares * np.float32(n)
    # Many pairs pull at once: of 14 each may pull as far as was tried, of more less.
    tempering = np.maximum(1.0, model.neighbours / 14)
    for start in range(0, n, chunk_size):
        on_share(start / n)
        chunk = codes[start : start + chunk_size]
        indicators = model.indicators(chunk)
        counts -= indicators.pair_counts()
        others = np.float32(1 - len(chunk) / n)
        for attribute in range(len(model.sizes)):
            block = model.block(attribute)
            goal, scale = wanted[:, block], np.float32(tempering[attribute])
            missing = goal * others - counts[:, block]
            pull = np.clip(missing / ((_SLACK_SHARE * goal + _SLACK) * scale), -1, 1)
            pull[~model.measured[:, block]] = 0
            weights = model.weights(indicators, chunk, attribute, model.potentials[:, block] + pull)
            cumulative = np.cumsum(weights, axis=1)
            _draw(chunk, attribute, cumulative, indicators, numbers)
        counts += indicators.pair_counts()


def sweep_chunk_size(n_records: int, n_values: int) -> int:
    """How many records a sweep with feedback takes at once.

    Few, as each chunk answers to what those before have left; more where V² is what costs.
    """
    return min(max(n_records // 500, n_values // 20, 1), _CHUNK)


def pair_counts(model: PairModel, codes: np.ndarray) -> np.ndarray:
    """How many records have each two values, float32[V, V] (exact up to 2²⁴ records a cell)."""
    counts = np.zeros_like(model.potentials)
    for start in range(0, len(codes), _CHUNK):
        counts += model.indicators(codes[start : start + _CHUNK]).pair_counts()
    return counts


def misfit(model: PairModel, frequencies: np.ndarray) -> float:
    """Half of Σ|share − target| over a two-way table (total variation), mean over the tables."""
    if not model.targets.pairs:
        return 0.0
    differences = sum(
        float(np.abs(frequencies[rows] - model.shares[rows]).sum(where=model.measured[rows]))
        for rows in map(model.block, range(len(model.sizes)))
    )
    # Each pair stands in two blocks, and half of its differences count.
    return differences / (4 * len(model.targets.pairs))


def _draw(
    codes: np.ndarray,
    attribute: int,
    cumulative: np.ndarray,
    indicators: Indicators,
    numbers: SeededNumbers,
) -> None:
    """Draw an attribute of each record; cumulative: float32[n, size], sums of weights."""
    # Below the last sum by at least one step of rounding: what has no weight is never drawn.
    thresholds = numbers.uniforms(len(codes)) * cumulative[:, -1]
    values = (cumulative <= thresholds[:, np.newaxis]).sum(axis=1)
    codes[:, attribute] = values
    indicators.change(attribute, values)
