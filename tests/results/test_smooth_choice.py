"""The choice of weights for smooth tables, against its own rehearsals."""

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.errors import WorkloadError
from rpexplore.planning.planner import plan_tables
from rpexplore.results.smooth_choice import NOT_REHEARSED, SHARES, WORLDS, choose_smooth_weights
from rpexplore.workload.smooth_weights import SmoothWeights

DOMAIN = rp.Domain.from_sizes({"a": 6, "b": 3, "c": 5, "d": 4})
BUDGET, EXPECTED = rp.Budget(epsilon="1", delta="1e-9"), rp.ExpectedCounts.of_total(5_000)


def test_the_largest_loss_of_the_choice_is_about_the_least():
    choice = choose_smooth_weights(rp.Workload.all_up_to(DOMAIN, 3), BUDGET, EXPECTED)
    assert choice.frame is not None
    assert choice.frame["share"].tolist() == list(SHARES)
    losses = choice.frame[list(WORLDS)].to_numpy()
    at_worst = (losses / losses.min(axis=0)).max(axis=1)
    near = [
        share for share, loss in zip(SHARES, at_worst, strict=True) if loss <= 1.03 * min(at_worst)
    ]
    assert choice.share == max(near)
    # Sums of two attributes are harder to guess than what pairs tell.
    assert np.all(losses[:, 1] > losses[:, 0])
    assert f"{choice.share * 100:.0f} % by the rule" in choice.describe()


def test_half_a_mixture_shares_the_loss_of_both_weights_evenly():
    workload = SmoothWeights(float(BUDGET.rho), 3e6).weighted(rp.Workload.all_up_to(DOMAIN, 3))
    many = rp.ExpectedCounts.of_total(3e6)  # more records than are rehearsed
    choice = choose_smooth_weights(workload, BUDGET, many)
    assert (choice.share, choice.frame) == (NOT_REHEARSED, None)
    rule, cells = workload.weights, np.asarray(workload.counted_cells, dtype=float)

    def least_loss(weights):
        of_weights = rp.Workload.of(DOMAIN, workload.tables, weights=weights.tolist())
        return plan_tables(of_weights, loss=rp.SumOfVariances(), budget=BUDGET).loss_value

    by_cell = choice.weights.weights(workload) - rule
    assert least_loss(by_cell) == pytest.approx(least_loss(rule), rel=0.02)
    np.testing.assert_allclose(by_cell / cells, choice.weights.by_cell, rtol=0.02)


def test_without_tables_of_three_the_rule_stands():
    choice = choose_smooth_weights(rp.Workload.all_up_to(DOMAIN, 2), BUDGET, EXPECTED)
    assert choice.weights == SmoothWeights(float(BUDGET.rho), 5_000)
    assert choice.describe() == ""


def test_weights_with_a_share_by_cell_are_read_as_they_were_written():
    weights = SmoothWeights(0.1, 5_000, by_cell=0.25)
    assert SmoothWeights.from_json(weights.to_json()) == weights
    assert "by_cell" not in SmoothWeights(0.1, 5_000).to_json()
    with pytest.raises(WorkloadError, match="0 or a positive number, got -1"):
        SmoothWeights(0.1, 5_000, by_cell=-1)
