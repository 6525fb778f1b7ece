"""Engine "population": records drawn from the pairwise model that fits two-way tables.

θ_jk += η log(target / current), with the current tables estimated on a population of records that
is swept once a round: the maximum-entropy distribution with the targets' two-way tables, by
stochastic approximation with persistent chains. No limit of model size.
"""

import numpy as np

from rpexplore.common.concurrency import Progress, no_progress, one_thread
from rpexplore.common.formatting import describe_share
from rpexplore.postprocessing.seeded_numbers import SeededNumbers
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
ROUNDS = 30
_STEP, _STEPS_OF_ALL = 0.3, 2.1  # η of a pair; of all pairs of an attribute together
_DECAY = 15  # rounds until η is half of that
_LARGEST_CHANGE = 2.0  # of the logarithm, in one round
_FITTED = 0.85  # share of the work


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
    codes = tree_start(model, fitting_records(n_records, len(model.sizes)), numbers)
    _fit(model, codes, numbers, on_progress)
    repeats = -(-n_records // len(codes))
    codes = np.concatenate([codes[numbers.permutation(len(codes))] for _ in range(repeats)])
    codes = np.ascontiguousarray(codes[:n_records])
    if repeats > 1:
        on_progress("Drawing the records", _FITTED)
        sweep(model, codes, numbers)  # copies go apart
    sweep_with_feedback(
        model,
        codes,
        numbers,
        on_share=lambda share: on_progress("Drawing the records", 0.9 + 0.1 * share),
    )
    return codes


def fitting_records(n_records: int, n_attributes: int) -> int:
    """How many records the model is fitted with."""
    most = max(_MOST, _MOST_NUMBERS // max(n_attributes, 1))
    return min(max(n_records, _FEWEST), most)


def _fit(
    model: PairModel, codes: np.ndarray, numbers: SeededNumbers, on_progress: Progress
) -> None:
    """Set the model's potentials, and bring the records to where they belong."""
    if not model.targets.pairs:
        return
    steps = np.minimum(_STEP, _STEPS_OF_ALL / np.maximum(model.neighbours, 1))
    step_of_value = np.repeat(steps, model.sizes).astype(np.float32)
    smallest = np.float32(1 / len(codes))
    doing = "Fitting the records"
    for turn in range(ROUNDS):
        on_progress(doing, _FITTED * turn / ROUNDS)
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
        doing = f"Fitting the records: {share} of them in other cells of two-way tables"
