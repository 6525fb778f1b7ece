"""The list of numbers that a run leaves of its rounds: read as it was written, or refused."""

import numpy as np
import pytest

from rpexplore.errors import ReleaseError
from rpexplore.releases.adaptive_rounds import (
    BEGUN,
    MEASURED,
    measured_numbers,
    most_numbers,
    read_outcomes,
    shape_of,
)
from tests.releases.adaptive_run import PLAN


def numbers_of(number: int, *, until: str = "end") -> list[int]:
    """What a round writes that selects as many candidates, from the first on; or its beginning."""
    selected = range(PLAN.rounds[number].n_tables)
    measured = [np.full(shape_of(PLAN, PLAN.candidates[index]), -index - 1) for index in selected]
    numbers = {
        "begun": [BEGUN],
        "selected": [BEGUN, *selected],
        "end": [BEGUN, *selected, *np.concatenate(list(measured_numbers(measured))).tolist()],
    }
    return numbers[until]


def test_rounds_are_read_as_they_were_written():
    numbers = [number for step in range(len(PLAN.rounds)) for number in numbers_of(step)]
    assert len(numbers) <= most_numbers(PLAN)
    outcomes = read_outcomes(PLAN, np.array(numbers))
    assert [outcome.number for outcome in outcomes] == list(range(len(PLAN.rounds)))
    for outcome, step in zip(outcomes, PLAN.rounds, strict=True):
        assert outcome.selected == tuple(range(step.n_tables))
        for index, measured in zip(outcome.selected, outcome.measured, strict=True):
            assert np.array_equal(measured, np.full(measured.shape, -index - 1))


@pytest.mark.parametrize("until", ["begun", "selected"])
def test_what_a_stopped_round_has_lost_is_lost(until):
    stopped = numbers_of(0, until=until)
    for numbers, n_rounds in ((stopped, 1), (stopped + numbers_of(1), 2)):
        outcomes = read_outcomes(PLAN, np.array(numbers))
        assert len(outcomes) == n_rounds
        assert outcomes[0].measured == ()
        assert outcomes[0].selected == (() if until == "begun" else (0,))
        assert all(outcome.measured for outcome in outcomes[1:])


@pytest.mark.parametrize(
    "numbers",
    [
        [0],
        [BEGUN, len(PLAN.candidates)],
        [BEGUN, -7],
        [BEGUN, 0, 5],
        numbers_of(0)[:-1],
        [*numbers_of(0), MEASURED],
        [number for step in range(len(PLAN.rounds)) for number in numbers_of(step)] + [BEGUN],
    ],
)
def test_what_no_run_writes_is_refused(numbers):
    with pytest.raises(ReleaseError, match="not as they were written"):
        read_outcomes(PLAN, np.array(numbers))
