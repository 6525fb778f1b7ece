"""Engine "population": records drawn from the pairwise model that fits two-way tables.

θ_jk += η log(target / current), with the current tables estimated on a population of records that
is swept once a round: the maximum-entropy distribution with the targets' two-way tables, by
stochastic approximation with persistent chains. No limit of model size. An eighth of the records is
fitted first; the whole starts as copies of these, so that few rounds of it are needed.
"""

import numpy as np

from rpexplore.common.concurrency import Progress, no_progress, one_thread, part_of_progress
from rpexplore.common.formatting import describe_share
from rpexplore.estimation.seeded_numbers import SeededNumbers
from rpexplore.postprocessing.synthetic.impossible import Impossible
from rpexplore.postprocessing.synthetic.population import (
    PairModel,
    misfit,
    sweep,
    sweep_with_feedback,
)
from rpexplore.postprocessing.synthetic.targets import PairTargets
from rpexplore.postprocessing.synthetic.tree_start import UNIFORM_SHARE, tree_start

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
