"""The choice of weights for smooth tables, against its own simulations."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import rpexplore as rp
from rpexplore.analysis.adaptive import smooth_alternative
from rpexplore.domain.levels import Level
from rpexplore.errors import WorkloadError
from rpexplore.planning.adaptive import adaptive_plan
from rpexplore.planning.mixed_weights import NOT_SIMULATED
from rpexplore.planning.planner import plan_tables
from rpexplore.results import smooth_choice
from rpexplore.results.rehearsal import POPULATIONS, rehearse_adaptive
from rpexplore.results.smooth_choice import (
    NEARLY_BY_PAIRS,
    SHARES,
    SmoothChoice,
    choose_smooth_weights,
)
from rpexplore.workload.smooth_weights import SmoothWeights

DOMAIN = rp.Domain.from_sizes({"a": 6, "b": 3, "c": 5, "d": 4})
BUDGET, EXPECTED = rp.Budget(epsilon="1", delta="1e-9"), rp.ExpectedCounts.of_total(5_000)


def test_the_largest_loss_of_the_choice_is_about_the_least():
    choice = choose_smooth_weights(rp.Workload.all_up_to(DOMAIN, 3), BUDGET, EXPECTED)
    assert choice.frame is not None
    assert choice.frame["share"].tolist() == list(SHARES)
    losses = choice.frame[list(POPULATIONS)].to_numpy()
    at_worst = (losses / losses.min(axis=0)).max(axis=1)
    near = [
        share
        for share, loss in zip(SHARES, at_worst, strict=True)
        if share < 1 and loss <= 1.01 * min(at_worst[1:])
    ]
    assert choice.share == max(near)
    # Sums of two attributes are harder to guess than what pairs tell.
    assert np.all(losses[:, 1] > losses[:, 0])
    assert f"{choice.share * 100:.0f} % by pairs" in choice.describe()
    # Of the adaptive plan, whose selections are random, beside them.
    assert choice.adaptive is not None
    assert choice.adaptive.keys() == set(POPULATIONS)
    assert choice.to_facts()["adaptive"] == choice.adaptive


def test_tables_at_a_level_of_each_attribute_are_weighted_without_a_simulation():
    ten = Level("ten", tuple(str(age // 10) for age in range(100)))
    age = rp.Attribute("age", rp.Integers(0, 99), levels=(ten,))
    domain = rp.Domain((age, *DOMAIN))
    choice = choose_smooth_weights(
        rp.Workload.of(domain, [("age@ten", "a", "b")]), BUDGET, EXPECTED
    )
    assert choice.frame is None
    assert choice.share == NOT_SIMULATED


def test_an_adaptive_plan_is_named_where_it_loses_less_at_worst():
    frame = pd.DataFrame({"share": SHARES, POPULATIONS[0]: 0.1, POPULATIONS[1]: 0.2})
    weights = SmoothWeights(0.1, 5_000)
    better = SmoothChoice(weights, 1.0, frame, dict(zip(POPULATIONS, (0.1, 0.15), strict=True)))
    assert better.prefers_adaptive
    assert "An adaptive plan is off by 10 % and 15 %, which is better" in better.describe()
    about = SmoothChoice(weights, 1.0, frame, dict(zip(POPULATIONS, (0.11, 0.2), strict=True)))
    assert not about.prefers_adaptive
    assert "which is not clearly better" in about.describe()
    assert not SmoothChoice(weights, 1.0, frame).prefers_adaptive


@pytest.mark.parametrize(
    # The weights' errors are 0.1 and 0.2, and a gain is what is beyond 1 %.
    "drawn",
    [
        [0.18],  # ln(0.2/0.18) − ln 1.01 = 0.095 is beyond 0.06
        [0.215],  # and ln(0.2/0.215) − ln 1.01 = −0.082 as well
        [0.19, 0.21],  # 0.041 is not
    ],
)
def test_an_adaptive_plan_is_simulated_again_where_chance_could_decide(drawn, monkeypatch):
    fixed = [0.1] * len(SHARES) + [0.2] * len(SHARES)
    errors = iter(fixed + [error for joint in [*drawn, 0.9] for error in (0.1, joint)])
    monkeypatch.setattr(smooth_choice, "_adaptive", lambda *_: object())
    monkeypatch.setattr(smooth_choice, "adaptive_fit", lambda *_: None)
    monkeypatch.setattr(smooth_choice, "_smooth", lambda *_: None)
    monkeypatch.setattr(smooth_choice, "_error", lambda *_: next(errors))
    choice = choose_smooth_weights(rp.Workload.all_up_to(DOMAIN, 3), BUDGET, EXPECTED)
    assert choice.adaptive is not None
    assert choice.adaptive[POPULATIONS[1]] == pytest.approx(np.mean(drawn))
    assert list(errors) == [0.1, 0.9]  # of one more simulation


def test_an_adaptive_plan_is_simulated_where_three_attributes_depend_jointly_as_well():
    domain = rp.Domain.from_sizes({"a": 3, "b": 3, "c": 3})
    plan = adaptive_plan(
        rp.Workload.all_of_order(domain, 3), budget=BUDGET, expected_records=int(EXPECTED.total)
    )
    found = rehearse_adaptive(plan, smooth_alternative(plan), EXPECTED)
    rows = found.frame[found.frame["order"] == 3]
    assert rows["population"].tolist() == list(POPULATIONS)
    errors = rows[["adaptive", "fixed"]]
    assert np.all((errors > 0) & (errors < 0.5))
    # The first is what is said of it, and a plan that is better in one population alone loses no
    # less at worst.
    better = replace(found, frame=rows.assign(adaptive=[0.1, 0.1], fixed=[0.1, 0.2]))
    assert "10 % beside 10 % where pairs tell all and 10 % beside 20 %" in better.describe("people")
    assert "the adaptive plan is better" in better.describe("people")
    either = replace(found, frame=rows.assign(adaptive=[0.2, 0.1], fixed=[0.1, 0.2]))
    assert "is not clearly better" in either.describe("people")


def test_a_population_without_any_error_does_not_decide(monkeypatch):
    """Errors of 0 have no ratio."""
    errors = iter([0.0] * len(SHARES) + list(range(len(SHARES), 0, -1)))
    monkeypatch.setattr(smooth_choice, "_adaptive", lambda *_: None)
    monkeypatch.setattr(smooth_choice, "_smooth", lambda *_: None)
    monkeypatch.setattr(smooth_choice, "_error", lambda *_: next(errors))
    choice = choose_smooth_weights(rp.Workload.all_up_to(DOMAIN, 3), BUDGET, EXPECTED)
    assert choice.share == SHARES[-1]


@pytest.mark.parametrize(("half", "chosen"), [(0.102, 0.5), (0.104, NEARLY_BY_PAIRS)])
def test_a_tenth_by_cell_is_mixed_into_weights_by_pairs_that_are_clearly_better(
    half, chosen, monkeypatch
):
    """By pairs alone next to nothing of a table of three is measured, and nothing shows errors."""
    errors = iter([*[0.1, *[half] * (len(SHARES) - 1)] * 2, 0.11, 0.13])
    monkeypatch.setattr(smooth_choice, "_adaptive", lambda *_: None)
    monkeypatch.setattr(smooth_choice, "_smooth", lambda *_: None)
    monkeypatch.setattr(smooth_choice, "_error", lambda *_: next(errors))
    workload = rp.Workload.all_up_to(DOMAIN, 3)
    choice = choose_smooth_weights(workload, BUDGET, EXPECTED)
    assert choice.share == chosen
    assert choice.frame is not None
    if chosen == 0.5:
        assert list(errors) == [0.11, 0.13]
        return
    # The tenth is one of the losses that each of both weights has alone.
    half_of_each = smooth_choice.mixed_smooth_weights(
        SmoothWeights(choice.weights.rho, 5_000), workload, BUDGET, (0.5,)
    )
    assert choice.weights.by_cell == pytest.approx(half_of_each[0.5].by_cell / 9, rel=0.01)
    assert choice.frame.iloc[-1].tolist() == [NEARLY_BY_PAIRS, 0.11, 0.13]
    assert "90 % by pairs and the rest by cell, as by pairs alone" in choice.describe()
    assert "off by 11 % where pairs tell all (best weights 10 %)" in choice.describe()


def test_an_error_that_is_small_by_chance_does_not_decide(monkeypatch):
    """Simulated errors of hospital stays, ε = 1: the mean of six draws has 0.0667 for θ = 0.25."""
    without_joint = [0.0409, 0.0413, 0.0417, 0.0435, 0.0453]
    errors = iter([*without_joint, 0.0824, 0.0689, 0.0649, 0.0683, 0.0689])
    monkeypatch.setattr(smooth_choice, "_adaptive", lambda *_: None)
    monkeypatch.setattr(smooth_choice, "_smooth", lambda *_: None)
    monkeypatch.setattr(smooth_choice, "_error", lambda *_: next(errors))
    choice = choose_smooth_weights(rp.Workload.all_up_to(DOMAIN, 3), BUDGET, EXPECTED)
    assert choice.share == 0.5
    assert choice.frame is not None
    assert choice.frame[POPULATIONS[1]].to_list()[2] == pytest.approx(0.0667, rel=0.01)


def test_errors_that_follow_a_parabola_stay():
    odds = np.log([0.5 / 0.5, 0.25 / 0.75, 0.1 / 0.9, 0.03 / 0.97])
    errors = np.exp(np.column_stack([-3 + 0.02 * odds + 0.01 * odds**2, -2 - 0.05 * odds]))
    np.testing.assert_allclose(smooth_choice._evened_out(errors), errors, rtol=1e-9)


def test_a_part_of_the_attributes_is_simulated_with_the_noise_of_all(monkeypatch):
    """Fewer tables by themselves would have more of the budget each."""
    workload = rp.Workload.all_up_to(DOMAIN, 3)
    smooth_residuals, measured = smooth_choice.smooth_residuals, []
    monkeypatch.setattr(smooth_choice, "_MOST_ATTRIBUTES", 3)
    monkeypatch.setattr(smooth_choice, "_adaptive", lambda *_: None)
    monkeypatch.setattr(
        smooth_choice,
        "smooth_residuals",
        lambda residuals: measured.append(residuals) or smooth_residuals(residuals),
    )
    choice = choose_smooth_weights(workload, BUDGET, EXPECTED)
    variances = measured[SHARES.index(choice.share)].variances
    assert len(variances) == 2**3
    weighted = replace(choice.weights.weighted(workload), weights=choice.weights.weights(workload))
    plan = plan_tables(weighted, loss=rp.SumOfVariances(), budget=BUDGET)
    assert (
        variances.items()
        <= {
            plan.closure.attributes(residual): float(variance)
            for residual, variance in enumerate(plan.sigma_squared.floats)
        }.items()
    )


def test_an_adaptive_plan_of_a_part_has_its_share_of_the_budget():
    all_of_it = rp.Budget(rho="0.01")
    workload = SmoothWeights(0.01, 5_000).weighted(rp.Workload.all_up_to(DOMAIN, 3))
    plan = plan_tables(workload, loss=rp.SumOfVariances(), budget=all_of_it)
    whole = smooth_choice._adaptive(workload, plan, all_of_it, EXPECTED)
    part = rp.Workload.of(DOMAIN, [(), ("a",), ("b",), ("a", "b")])
    of_part = smooth_choice._adaptive(part, plan, all_of_it, EXPECTED)
    assert whole is not None
    assert of_part is not None
    assert whole.budget == all_of_it
    costs = {(): 1, (0,): 5 / 6, (1,): 2 / 3, (0, 1): 5 / 6 * 2 / 3}
    spent = sum(
        costs.get(plan.closure.attributes(residual), 0) / (2 * variance)
        for residual, variance in enumerate(plan.sigma_squared.floats)
    )
    assert float(of_part.budget.rho) == pytest.approx(spent, rel=1e-4)


def test_half_a_mixture_shares_the_loss_of_both_weights_evenly():
    workload = SmoothWeights(float(BUDGET.rho), 3e6).weighted(rp.Workload.all_up_to(DOMAIN, 3))
    many = rp.ExpectedCounts.of_total(3e6)  # more records than are simulated
    choice = choose_smooth_weights(workload, BUDGET, many)
    assert (choice.share, choice.frame) == (NOT_SIMULATED, None)
    by_pairs, cells = workload.weights, np.asarray(workload.counted_cells, dtype=float)

    def least_loss(weights):
        of_weights = rp.Workload.of(DOMAIN, workload.tables, weights=weights.tolist())
        return plan_tables(of_weights, loss=rp.SumOfVariances(), budget=BUDGET).loss_value

    by_cell = choice.weights.weights(workload) - by_pairs
    assert least_loss(by_cell) == pytest.approx(least_loss(by_pairs), rel=0.02)
    np.testing.assert_allclose(by_cell / cells, choice.weights.by_cell, rtol=0.02)


def test_without_tables_of_three_weights_by_pairs_stand():
    choice = choose_smooth_weights(rp.Workload.all_up_to(DOMAIN, 2), BUDGET, EXPECTED)
    assert choice.weights == SmoothWeights(float(BUDGET.rho), 5_000)
    assert choice.describe() == ""


def test_weights_with_a_share_by_cell_are_read_as_they_were_written():
    weights = SmoothWeights(0.1, 5_000, by_cell=0.25)
    assert SmoothWeights.from_json(weights.to_json()) == weights
    assert "by_cell" not in SmoothWeights(0.1, 5_000).to_json()
    with pytest.raises(WorkloadError, match="0 or a positive number, got -1"):
        SmoothWeights(0.1, 5_000, by_cell=-1)
