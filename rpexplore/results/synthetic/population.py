"""Engine "population": records drawn from the pairwise model that fits two-way tables."""

from collections.abc import Callable
from itertools import combinations

import numpy as np

from rpexplore.common.processes import Progress, no_progress, one_thread, part_of_progress
from rpexplore.common.seeded_numbers import SeededNumbers
from rpexplore.common.text import describe_share
from rpexplore.results.synthetic.impossible import Impossible, Indicators
from rpexplore.results.synthetic.targets import PairTargets

# ---- A population of records and the pairwise model that it is drawn from by Gibbs sweeps.
#
# The model is P(x) ∝ ∏ p_j(x_j) ∏ exp θ_jk(x_j, x_k), without what is impossible
# (docs/mathematics.md, synthetic records).


_CHUNK = 4096  # records that a sweep takes at once
# A pair lacking `_SLACK_SHARE` of its records and `_SLACK` more pulls as far as any may: by e.
# Tried from 0.3 and 10 to 0.03 and 1 on census records: smaller is nearer, until it oscillates.
_SLACK_SHARE, _SLACK = 0.05, 2.0
_LOWEST_SHARE = 1e-12  # of records, so that its logarithm is finite
_MOST_TOGETHER = 2_000  # combinations of kinds, a number for each and each record of a chunk


class PairModel:
    """What every record is drawn from, as arrays over all values of all attributes (V of them).

    offsets     int64[d + 1]: where each attribute's values begin
    shares      float32[V, V]: the target of each two values; one-way shares on the diagonal
    measured    bool[V, V]: whether the pair of their attributes has a target
    neighbours  int64[d]: with how many attributes each has one
    potentials  float32[V, V]: θ, symmetric, 0 where nothing is measured
    log_shares  float32[V]: of the one-way shares
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
        self.log_shares = np.log(np.maximum(self.one_way, _LOWEST_SHARE)).astype(np.float32)

    def block(self, attribute: int) -> slice:
        """Where an attribute's values are among all."""
        return slice(int(self.offsets[attribute]), int(self.offsets[attribute + 1]))

    def indicators(self, codes: np.ndarray) -> Indicators:
        return Indicators(codes, self.offsets)

    def weights(
        self, indicators: Indicators, codes: np.ndarray, attribute: int, potentials: np.ndarray
    ) -> np.ndarray:
        """P of each value of an attribute given the others, up to a factor: float32[n, size]."""
        weights = indicators.times(potentials) + self.log_shares[self.block(attribute)]
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
        draw_connected(
            model,
            chunk,
            indicators,
            numbers,
            lambda attribute: model.potentials[:, model.block(attribute)],
        )
        for attribute in range(len(model.sizes)):
            block = model.block(attribute)
            weights = model.weights(indicators, chunk, attribute, model.potentials[:, block])
            cumulative = np.cumsum(weights, axis=1)
            weights /= cumulative[:, -1:]
            frequencies[:, block] += indicators.sums(weights)
            chunk[:, attribute] = _drawn(cumulative, numbers)
            indicators.change(attribute, chunk[:, attribute])
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

        def pulled(
            attribute: int, others: np.float32 = others, counts: np.ndarray = counts
        ) -> np.ndarray:
            block = model.block(attribute)
            goal, scale = wanted[:, block], np.float32(tempering[attribute])
            missing = goal * others - counts[:, block]
            pull = np.clip(missing / ((_SLACK_SHARE * goal + _SLACK) * scale), -1, 1)
            pull[~model.measured[:, block]] = 0
            return model.potentials[:, block] + pull

        draw_connected(model, chunk, indicators, numbers, pulled)
        for attribute in range(len(model.sizes)):
            weights = model.weights(indicators, chunk, attribute, pulled(attribute))
            chunk[:, attribute] = _drawn(np.cumsum(weights, axis=1), numbers)
            indicators.change(attribute, chunk[:, attribute])
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


def draw_connected(
    model: PairModel,
    codes: np.ndarray,
    indicators: Indicators,
    numbers: SeededNumbers,
    potentials: Callable[[int], np.ndarray],
) -> None:
    """Draw all attributes that impossible combinations connect together, in `codes` itself.

    One by one they would stay for ever on one side of what is impossible: a record with a = 0 and
    c = 0 never gets a = 1 and c = 1, if those between them are impossible. The kinds of their
    values are drawn together, each attribute's weights without the potentials among them; then
    values of these kinds, which are taken by the rule of Metropolis and Hastings for these
    potentials (docs/mathematics.md §14.2).

    potentials: of the values of an attribute, float32[V, size]
    """
    rows = np.arange(len(codes))
    for connected, possible in model.impossible.connected:
        if len(possible) > _MOST_TOGETHER:
            continue
        of_attributes = [potentials(attribute) for attribute in connected]
        old = codes[:, connected].astype(np.int64)
        starts, weights = model.offsets[list(connected)], []
        together = np.ones((len(codes), len(possible)))
        for axis, attribute in enumerate(connected):
            own = indicators.times(of_attributes[axis]).astype(float)
            own += model.log_shares[model.block(attribute)]
            for other, start in enumerate(starts):
                if other != axis:
                    own -= of_attributes[axis][start + old[:, other]]
            weights.append(np.exp(own - own.max(axis=1, keepdims=True)))
            kinds = model.impossible.kinds[attribute]
            by_kind = weights[axis] @ (kinds[:, np.newaxis] == np.arange(kinds.max() + 1))
            together *= by_kind[:, possible[:, axis]]
        new = old.copy()
        chosen = possible[_drawn(np.cumsum(together, axis=1), numbers)]
        for axis, attribute in enumerate(connected):
            of_kind = model.impossible.kinds[attribute] == chosen[:, axis, np.newaxis]
            new[:, axis] = _drawn(np.cumsum(weights[axis] * of_kind, axis=1), numbers)
        gain = np.zeros(len(codes))
        for first, second in combinations(range(len(connected)), 2):
            table = of_attributes[second]
            gain += table[starts[first] + new[:, first], new[:, second]]
            gain -= table[starts[first] + old[:, first], old[:, second]]
        taken = numbers.uniforms(len(codes)) < np.exp(np.minimum(gain, 0))
        taken &= np.all([one[rows, new[:, axis]] > 0 for axis, one in enumerate(weights)], axis=0)
        taken &= together.sum(axis=1) > 0
        for axis, attribute in enumerate(connected):
            codes[:, attribute] = np.where(taken, new[:, axis], old[:, axis])
            indicators.change(attribute, codes[:, attribute])


def _drawn(cumulative: np.ndarray, numbers: SeededNumbers) -> np.ndarray:
    """A value for each record; cumulative: [n, values], sums of weights."""
    # Below the last sum by at least one step of rounding: what has no weight is never drawn.
    thresholds = numbers.uniforms(len(cumulative)) * cumulative[:, -1]
    values = (cumulative <= thresholds[:, np.newaxis]).sum(axis=1)
    return np.minimum(values, cumulative.shape[1] - 1)


# ---- Engine "population": records drawn from the pairwise model that fits two-way tables.
#
# θ_jk += η log(target / current), with the current tables estimated on a population of records that
# is swept once a round: the maximum-entropy distribution with the targets' two-way tables, by
# stochastic approximation with persistent chains. No limit of model size. An eighth of the records
# is fitted first; the whole starts as copies of these, so that few rounds of it are needed.


# Records that the model is fitted with: as many as are wanted, within these bounds.
_FEWEST, _MOST, _MOST_NUMBERS = 5_000, 20_000, 750_000
_PART = 8  # one of so many of these records is fitted first
# Of that part, and of all. On census records twice as many, or a larger part, came no nearer.
_ROUNDS_OF_PART, _ROUNDS = 30, 6
_STEP, _STEPS_OF_ALL = 0.3, 2.1  # η of a pair; of all pairs of an attribute together
_DECAY = 15  # rounds until η is half of that
_LARGEST_CHANGE = 2.0  # of the logarithm, in one round
_PART_FITTED, _FITTED, _SWEPT = 0.3, 0.7, 0.8  # shares of the work


@one_thread()
def population_records(
    targets: PairTargets,
    n_records: int,
    seed: bytes,
    impossible: Impossible,
    on_progress: Progress = no_progress,
) -> np.ndarray:
    """Records whose two-way tables are near the targets, int16[n_records, d].

    A function of its arguments alone. No record is impossible. Raises `ReleaseError` if all are.
    """
    numbers = SeededNumbers(seed)
    model = PairModel(targets.without(impossible), impossible)
    n_part, n_fitted = fitting_records(n_records, len(model.sizes))
    codes = tree_start(model, n_part, numbers)
    first, then = range(_ROUNDS_OF_PART), range(_ROUNDS_OF_PART, _ROUNDS_OF_PART + _ROUNDS)
    _fit(model, codes, numbers, first, part_of_progress(on_progress, 0.0, _PART_FITTED))
    codes = _copies(codes, n_fitted, numbers)
    _fit(model, codes, numbers, then, part_of_progress(on_progress, _PART_FITTED, _FITTED))
    codes = _copies(codes, n_records, numbers)
    doing = "Drawing the records"
    if n_records > n_fitted:  # copies go apart
        on_swept = part_of_progress(on_progress, _FITTED, _SWEPT)
        sweep(model, codes, numbers, on_share=lambda share: on_swept(doing, share))
    on_drawn = part_of_progress(on_progress, _SWEPT, 1.0)
    sweep_with_feedback(model, codes, numbers, on_share=lambda share: on_drawn(doing, share))
    return codes


def fitting_records(n_records: int, n_attributes: int) -> tuple[int, int]:
    """How many records the model is fitted with: those of the part, and all."""
    most = max(_MOST, _MOST_NUMBERS // max(n_attributes, 1))
    n_fitted = min(max(n_records, _FEWEST), most)
    return max(n_fitted // _PART, _FEWEST), n_fitted


def records_swept(n_records: int, n_attributes: int) -> int:
    """About how many records are drawn anew in all sweeps together, for what these take."""
    n_part, n_fitted = fitting_records(n_records, n_attributes)
    return _ROUNDS_OF_PART * n_part + _ROUNDS * n_fitted + 3 * n_records


def _copies(codes: np.ndarray, n_records: int, numbers: SeededNumbers) -> np.ndarray:
    """So many records: each as often as any other, give or take one, in an arbitrary order."""
    repeats = -(-n_records // len(codes))
    copies = np.concatenate([codes[numbers.permutation(len(codes))] for _ in range(repeats)])
    return np.ascontiguousarray(copies[:n_records])


def _fit(
    model: PairModel,
    codes: np.ndarray,
    numbers: SeededNumbers,
    rounds: range,
    on_progress: Progress,
) -> None:
    """Set the model's potentials, and bring the records to where they belong.

    rounds: their numbers since the potentials were set to begin with
    """
    if not model.targets.pairs:
        return
    steps = np.minimum(_STEP, _STEPS_OF_ALL / np.maximum(model.neighbours, 1))
    step_of_value = np.repeat(steps, model.sizes).astype(np.float32)
    smallest = np.float32(1 / len(codes))
    doing = "Fitting the records"
    for turn in rounds:
        on_progress(doing, (turn - rounds.start) / len(rounds))
        current = sweep(model, codes, numbers)
        for attribute in range(len(model.sizes)):
            rows = model.block(attribute)
            wanted = (1 - UNIFORM_SHARE) * model.shares[rows]
            wanted += UNIFORM_SHARE * np.outer(model.one_way[rows], model.one_way)
            change = np.log((wanted + smallest) / (current[rows] + smallest))
            np.clip(change, -_LARGEST_CHANGE, _LARGEST_CHANGE, out=change)
            change *= np.minimum(steps[attribute], step_of_value) / (1 + turn / _DECAY)
            change[~model.measured[rows]] = 0
            model.potentials[rows] += change
        share = describe_share(misfit(model, current))
        doing = f"Fitting the records: {share} still in wrong cells of two-way tables"


# ---- Where the fit begins: the tree of pairs that says most, drawn without chance where it can
# be.


UNIFORM_SHARE = 0.002  # of independent draws in all targets, so that no potential is without end


def tree_start(model: PairModel, n_records: int, numbers: SeededNumbers) -> np.ndarray:
    """Records of the maximum spanning tree by mutual information (Chow and Liu), int16[n, d].

    Sets the potentials of its pairs. Started from independent attributes, the fit would oscillate.
    What is impossible is replaced by copies of records that are possible.
    """
    codes = np.zeros((n_records, len(model.sizes)), dtype=np.int16)
    for child, parent in spanning_tree(model.targets):
        if parent is None:
            draw_systematically(codes, child, model.targets.one_way[child], numbers)
            continue
        rows, columns = model.block(parent), model.block(child)
        table = model.shares[rows, columns]
        independent = np.outer(table.sum(axis=1), table.sum(axis=0))
        mixed = (1 - UNIFORM_SHARE) * table + UNIFORM_SHARE * independent
        ratio = np.divide(mixed, independent, out=np.ones_like(mixed), where=independent > 0)
        model.potentials[rows, columns] = np.log(ratio)
        model.potentials[columns, rows] = np.log(ratio).T
        for value in range(model.sizes[parent]):
            chosen = np.flatnonzero(codes[:, parent] == value)
            if len(chosen):
                shares = mixed[value] if mixed[value].sum() > 0 else independent.sum(axis=0)
                draw_systematically(codes, child, shares, numbers, chosen)
    met = model.impossible.are_met(codes)
    if met.all():
        codes[:] = model.impossible.possible_record()
    elif met.any():
        possible = np.flatnonzero(~met)
        taken = (numbers.uniforms(int(met.sum())) * len(possible)).astype(np.int64)
        codes[met] = codes[possible[np.minimum(taken, len(possible) - 1)]]
    return codes


def draw_systematically(
    codes: np.ndarray,
    attribute: int,
    shares: np.ndarray,
    numbers: SeededNumbers,
    chosen: np.ndarray | slice = slice(None),
) -> None:
    """Draw an attribute of some records: each value as often as its share says, within one."""
    cumulative = np.cumsum(shares)
    points = numbers.systematic(len(codes[chosen, attribute])) * cumulative[-1]
    values = np.searchsorted(cumulative, points, side="right")
    # The last value with a share: a point may be rounded up to the end.
    last = np.flatnonzero(shares > 0)[-1]
    codes[chosen, attribute] = np.minimum(values, last)


def spanning_tree(targets: PairTargets) -> list[tuple[int, int | None]]:
    """(attribute, the one it is drawn given), in this order; several roots if pairs are missing.

    Of the largest mutual information (Chow and Liu 1968).
    """
    d = len(targets.sizes)
    information = targets.mutual_information()
    best, parent = np.full(d, -1.0), np.full(d, -1)
    is_left, order = np.ones(d, dtype=bool), []
    totals = information.sum(axis=1)
    while is_left.any():
        left = np.flatnonzero(is_left)
        child = int(left[np.argmax(best[left])])
        if best[child] < 0:
            child = int(left[np.argmax(totals[left])])
        order.append((child, None if best[child] < 0 else int(parent[child])))
        is_left[child] = False
        nearer = is_left & (information[child] > best)
        best[nearer], parent[nearer] = information[child][nearer], child
    return order
