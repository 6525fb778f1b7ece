"""What a round draws: noise of exactly its cost, on disk before it is used, within the budget."""

from dataclasses import replace
from fractions import Fraction
from math import prod

import numpy as np
import pytest

from rpexplore.data.counts import Counts
from rpexplore.errors import ReleaseError
from rpexplore.releases.adaptive import rounds
from rpexplore.releases.adaptive.estimates import residual_variance
from rpexplore.releases.adaptive.outcomes import BEGUN, MEASURED
from rpexplore.releases.measurement import measure_residual, residual_answers
from tests.releases.adaptive.adaptive_run import PLAN

ALL = (0, 1, 3)
COUNTS = Counts({ALL: np.arange(24).reshape(2, 3, 4)}, 276)
NOTHING = np.zeros(0, dtype=np.int64)


def first() -> list[np.ndarray]:
    return [measure_residual(PLAN.first, at, COUNTS) for at in range(len(PLAN.first.closure))]


@pytest.mark.parametrize("subset", PLAN.candidates)
def test_a_round_costs_what_the_plan_says(subset):
    """ρ = Δ²/(2γ²), Δ by brute force: how far one record moves what is measured."""
    shape = [int(PLAN.domain.sizes[index]) for index in subset]
    moves = set()
    for cell in range(prod(shape)):
        record = np.zeros(prod(shape), dtype=np.int64)
        record[cell] = 1
        moved = residual_answers(record.reshape(shape), subset, PLAN.first.closure)
        moves.add(int(np.sum(moved**2)))
    for number, step in enumerate(PLAN.rounds):
        gamma_squared = rounds.gamma_squared(PLAN, number, subset)
        assert max(moves) / (2 * gamma_squared) == step.measurement_rho
        # What the fit takes the noise for, of the contribution Ξ x / ∏ n_i.
        assert residual_variance(PLAN, number, subset) == gamma_squared / prod(shape) ** 2


def test_each_step_is_written_before_the_next_is_drawn(monkeypatch):
    written: list[list[int]] = []
    seen = []

    def spy(name):
        before = getattr(rounds, name)

        def call(*args):
            seen.append((name, len(written)))
            return before(*args)

        monkeypatch.setattr(rounds, name, call)

    spy("select")
    spy("discrete_gaussian")
    rounds.measure_rounds(
        PLAN,
        COUNTS,
        first(),
        NOTHING,
        lambda pieces: written.append([int(x) for piece in pieces for x in np.ravel(piece)]),
        lambda *_: None,
    )
    steps = iter(seen)
    for number, step in enumerate(PLAN.rounds):
        begun, selected, measured = written[3 * number : 3 * number + 3]
        assert begun == [BEGUN]
        assert len(selected) == step.n_tables
        assert measured[0] == MEASURED
        assert next(steps) == ("select", 3 * number + 1)
        for _ in selected:
            assert next(steps) == ("discrete_gaussian", 3 * number + 2)
    assert next(steps, None) is None


def test_a_round_beyond_the_budget_is_not_begun():
    """Whatever a plan claims: the filter looks before each draw."""
    last = PLAN.rounds[-1]
    more = replace(last, measurement_rho=last.measurement_rho + Fraction(1, 1000))
    plan = replace(PLAN, rounds=(*PLAN.rounds[:-1], more))
    written = []
    with pytest.raises(ReleaseError, match="nothing was drawn"):
        rounds.measure_rounds(
            plan, COUNTS, first(), NOTHING, lambda pieces: written.append(1), lambda *_: None
        )
    assert len(written) == 3 * (len(PLAN.rounds) - 1)
