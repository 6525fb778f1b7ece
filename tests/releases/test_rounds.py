"""What a round draws: noise of exactly its cost, on disk before it is used, within the budget."""

from contextlib import nullcontext
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product
from math import prod

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.data.source import Counts
from rpexplore.errors import ReleaseError
from rpexplore.planning.adaptive import adaptive_plan
from rpexplore.planning.planner import plan_tables
from rpexplore.releases import adaptive_rounds
from rpexplore.releases.adaptive_rounds import BEGUN, LARGEST_TOTAL, MEASURED, residual_variance
from rpexplore.releases.measurement import measure_residual, residual_answers
from rpexplore.releases.noise.exponential_mechanism import epsilon_of_rho
from tests.releases.adaptive_run import PLAN

ALL = (0, 1, 3)
COUNTS = Counts({ALL: np.arange(24).reshape(2, 3, 4)}, 276)
PLAIN = [(name,) for name in "abcde"]
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
        gamma_squared = adaptive_rounds.gamma_squared(PLAN, number, subset)
        assert max(moves) / (2 * gamma_squared) == step.measurement_rho
        # What the fit takes the noise for, of the contribution Ξ x / ∏ n_i.
        assert residual_variance(PLAN, number, subset) == gamma_squared / prod(shape) ** 2


@pytest.mark.parametrize("most", [2, 3])
def test_no_records_of_a_person_in_a_panel_cost_a_round_more_than_it_says(most):
    """Of up to `most` records in different periods; nor does one record more than is booked."""
    budget = rp.Budget(rho="0.5", max_records_per_person=most, period="quarter")
    domain = rp.Domain.from_sizes({"quarter": 3, "a": 2, "b": 3})
    plan = adaptive_plan(rp.Workload.all_of_order(domain, 3), budget=budget, expected_records=5000)
    assert rp.verify(plan).holds
    cells = list(product(range(3), range(2), range(3)))
    patterns = [
        records
        for count in range(1, most + 1)
        for records in combinations(cells, count)
        if len({quarter for quarter, *_ in records}) == count
    ]
    of_one, of_rounds = [], []
    for subset in plan.candidates:
        moved = {}
        for records in patterns:
            counts = np.zeros(domain.sizes, dtype=np.int64)
            np.add.at(counts, tuple(np.array(records).T), 1)
            margin = counts.sum(axis=tuple({0, 1, 2} - {*subset}))
            answers = residual_answers(margin, subset, plan.first.closure)
            moved[records] = int(np.sum(answers**2))
        gamma_squared = adaptive_rounds.gamma_squared(plan, 0, subset)
        of_rounds.append(max(moved.values()) / (2 * gamma_squared))
        of_one.append(max(moved[one,] for one in cells) / (2 * gamma_squared))
    step = plan.rounds[0]
    assert max(of_rounds) == most**2 * step.measurement_rho
    rounds_rho = sum(
        one.n_tables
        * (one.selection_rho + one.measurement_rho * max(of_one) / step.measurement_rho)
        for one in plan.rounds
    )
    assert plan.record_rho == plan.first.record_rho + rounds_rho
    # By the period noise is smaller than for people with any records.
    of_any = rp.Budget(rho="0.5", max_records_per_person=most)
    beside = adaptive_plan(plan.workload, budget=of_any, expected_records=5000)
    assert residual_variance(plan, 0, (0, 1)) < residual_variance(beside, 0, (0, 1))


def test_each_step_is_drawn_as_the_plan_says_and_written_before_the_next(monkeypatch):
    """Of exact counts nothing but what `select` and `discrete_gaussian` give is written."""
    half = replace(
        PLAN.rounds[0],
        n_tables=2,
        selection_rho=PLAN.rounds[0].selection_rho / 2,
        measurement_rho=PLAN.rounds[0].measurement_rho / 2,
    )
    plan = replace(PLAN, rounds=(half, *PLAN.rounds[1:]))
    written: list[list[int]] = []
    selected, noise = [], []

    def selecting(scored, epsilon, largest_change, k):
        assert written[-1] == [BEGUN]
        step, distances = plan.rounds[len(selected)], []
        for subset, estimate in zip(plan.candidates, estimates[-1][0], strict=True):
            distances.append(int(np.abs(COUNTS.counts(subset) - np.rint(estimate)).sum()))
        assert scored.tolist() == (np.array(distances) - estimates[-1][1]).tolist()
        assert (epsilon, largest_change, k) == (
            epsilon_of_rho(step.selection_rho),
            1,
            step.n_tables,
        )
        places = len(selected) + np.arange(k)
        selected.append((places % len(plan.candidates)).tolist())
        return selected[-1]

    def drawing(size, gamma_squared):
        assert written[-1] == selected[-1]
        noise.append((size, gamma_squared))
        return np.full(size, 1000 * len(noise))

    fitted, estimates = adaptive_rounds.fitted_candidates, []

    def fitting(*args):
        assert not written or written[-1][0] == MEASURED
        estimates.append(fitted(*args))
        return estimates[-1]

    before = first()
    monkeypatch.setattr(adaptive_rounds, "select", selecting)
    monkeypatch.setattr(adaptive_rounds, "discrete_gaussian", drawing)
    monkeypatch.setattr(adaptive_rounds, "fitted_candidates", fitting)
    adaptive_rounds.measure_rounds(
        plan,
        COUNTS,
        before,
        NOTHING,
        lambda pieces: written.append([int(x) for piece in pieces for x in np.ravel(piece)]),
        lambda *_: None,
    )
    drawn = iter(enumerate(noise, 1))
    for number in range(len(plan.rounds)):
        begun, chosen, (mark, *measured) = written[3 * number : 3 * number + 3]
        assert (begun, chosen, mark) == ([BEGUN], selected[number], MEASURED)
        for index in chosen:
            subset = plan.candidates[index]
            at, of_draw = next(drawn)
            exact = residual_answers(COUNTS.counts(subset), subset, PLAN.first.closure)
            assert of_draw == (exact.size, adaptive_rounds.gamma_squared(plan, number, subset))
            own, measured = measured[: exact.size], measured[exact.size :]
            assert own == (exact.ravel() + 1000 * at).tolist()
        assert measured == []
    assert len(written) == 3 * len(plan.rounds)
    assert next(drawn, None) is None


def test_what_would_stop_a_round_is_refused_before_the_first():
    of_two = rp.Domain.from_sizes({"a": 2, "b": 2, "c": 3, "d": 2, "e": 5})
    # Of (a, b, c) and (d, e), 12 and 10 cells, a record moves the smaller one further: 24 < 40.
    tables = rp.Workload.of(of_two, [("a", "b", "c"), ("d", "e")])
    plan = adaptive_plan(tables, budget=rp.Budget(rho=1), expected_records=100)
    for numerator, is_refused in ((24, True), (41, False)):
        step = replace(plan.rounds[0], measurement_rho=Fraction(numerator, 2**105))
        with nullcontext() if not is_refused else pytest.raises(ReleaseError, match=r"d × e"):
            adaptive_rounds.check_measurable(replace(plan, rounds=(step,)))
    first_plan = plan_tables(
        rp.Workload.of(of_two, PLAIN), loss=rp.SumOfVariances(), budget=rp.Budget(rho="1e-27")
    )
    with pytest.raises(ReleaseError, match="noise that the budget needs on the number of records"):
        adaptive_rounds.check_measurable(replace(plan, first=first_plan))
    counts = Counts({}, LARGEST_TOTAL // 2 - 1)
    adaptive_rounds.check_countable(plan, counts)
    with pytest.raises(ReleaseError, match="too many records"):
        adaptive_rounds.check_countable(plan, replace(counts, n_records=LARGEST_TOTAL // 2))


def test_a_round_beyond_the_budget_is_not_begun():
    """Whatever a plan claims: the filter looks before each draw."""
    last = PLAN.rounds[-1]
    more = replace(last, measurement_rho=last.measurement_rho + Fraction(1, 1000))
    plan = replace(PLAN, rounds=(*PLAN.rounds[:-1], more))
    written = []
    with pytest.raises(ReleaseError, match="nothing was drawn"):
        adaptive_rounds.measure_rounds(
            plan, COUNTS, first(), NOTHING, lambda pieces: written.append(1), lambda *_: None
        )
    assert len(written) == 3 * (len(PLAN.rounds) - 1)
