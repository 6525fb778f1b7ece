"""What the rounds of an adaptive run have drawn, as it stands in the list of its measurements.

Behind what the first plan measured, each round has, one whole number after another,

    BEGUN               on disk before anything of the round is drawn
    i_1, i_2, …         the candidates that were selected, in the order in which they were drawn
    MEASURED, m_1, …    their residuals with noise, one after another, row-major

and each of these three is on disk before it is used. What was drawn and is not there was lost when
the run was stopped. It stays charged and is not drawn again: else what a round comes to could
decide whether it is drawn anew.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import prod

import numpy as np

from rpexplore.domain.domain import AttributeIndices
from rpexplore.errors import ReleaseError
from rpexplore.planning.adaptive.adaptive_plan import AdaptivePlan

BEGUN, MEASURED = -1, -2


@dataclass(frozen=True, eq=False)
class RoundOutcome:
    """What one round has drawn.

    number    of the round, from 0
    selected  places among the plan's candidates, in the order drawn; () if they were lost
    measured  of each, int64, one axis an attribute; () if they were lost
    """

    number: int
    selected: tuple[int, ...] = ()
    measured: tuple[np.ndarray, ...] = ()


def most_numbers(plan: AdaptivePlan) -> int:
    """How many numbers all rounds can have at most."""
    largest = max(prod(shape_of(plan, subset)) for subset in plan.candidates)
    return sum(2 + (1 + largest) * each.n_tables for each in plan.rounds)


def shape_of(plan: AdaptivePlan, subset: AttributeIndices) -> tuple[int, ...]:
    """Of the measurement of a residual."""
    return tuple(plan.domain.sizes[list(subset)].tolist())


def read_outcomes(plan: AdaptivePlan, numbers: np.ndarray) -> list[RoundOutcome]:
    """The rounds that were begun, in order. Raises `ReleaseError` for what no run writes.

    numbers: int64[·], all behind what the first plan measured
    """
    outcomes, place = [], 0
    for number, step in enumerate(plan.rounds):
        if place == len(numbers):
            break
        if numbers[place] != BEGUN:
            raise _not_written()
        place += 1
        selected = numbers[place : place + step.n_tables].tolist()
        if not selected or selected[0] == BEGUN:
            outcomes.append(RoundOutcome(number))
            continue
        if len(set(selected)) < step.n_tables or not all(
            0 <= index < len(plan.candidates) for index in selected
        ):
            raise _not_written()
        place += step.n_tables
        if place == len(numbers) or numbers[place] == BEGUN:
            outcomes.append(RoundOutcome(number, tuple(selected)))
            continue
        if numbers[place] != MEASURED:
            raise _not_written()
        place += 1
        measured = []
        for index in selected:
            shape = shape_of(plan, plan.candidates[index])
            cells = numbers[place : place + prod(shape)]
            if len(cells) < prod(shape):
                raise _not_written()
            measured.append(cells.reshape(shape))
            place += prod(shape)
        outcomes.append(RoundOutcome(number, tuple(selected), tuple(measured)))
    if place < len(numbers):
        raise _not_written()
    return outcomes


def measured_numbers(measured: Iterable[np.ndarray]) -> Iterator[np.ndarray]:
    """The numbers that stand for what a round measured."""
    yield np.array([MEASURED], dtype=np.int64)
    for cells in measured:
        yield cells.reshape(-1)


def _not_written() -> ReleaseError:
    return ReleaseError(
        "The measurements of the run are not as they were written; what it was charged stays "
        "charged. Restore the folder, or run the plan again into another one."
    )
