"""Average against worst case: certified, convex, dominated by nothing, and plans one can have."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rpexplore as rp
from rpexplore.analysis import frontier as trade
from rpexplore.analysis.frontier import frontier
from rpexplore.analysis.measures import STANDARD_ERROR, VARIANCE
from rpexplore.common.text import rounded
from rpexplore.errors import WorkloadError
from rpexplore.planning.planner import optimum, optimum_with_strategies_of
from rpexplore.scenarios.scenario import Scenario
from rpexplore.scenarios.table_settings import TableSetting
from rpexplore.scenarios.workload_request import WorkloadRequest
from tests.support.oracles import random_workload
from tests.support.strategies import workloads

BUDGET = rp.Budget(rho="0.1", max_records_per_person=2)


def ends_of(workload, weighting="cells", relative_to="weight"):
    best_average = optimum(workload, loss=rp.SumOfVariances(weighting))
    return best_average, optimum(workload, loss=rp.MaxVariance(relative_to))


@pytest.mark.parametrize("relative_to", ["weight", "target"])
@pytest.mark.parametrize("seed", range(6))
def test_points_are_certified_and_trade_one_for_the_other(seed, relative_to):
    ends = ends_of(random_workload(seed), relative_to=relative_to)
    result = trade.frontier(*ends)
    points = result.points
    assert (points[0].worst_weight, points[-1].worst_weight) == (0, 1)
    assert all(0 <= point.gap <= 1e-6 for point in points)
    for left, right in itertools.pairwise(points):
        assert left.worst_weight < right.worst_weight
        assert left.total <= right.total * (1 + 1e-6)
        assert left.largest >= right.largest * (1 - 1e-6)
    assert points[0].total == pytest.approx(ends[0].solution.lower_bound, rel=1e-9)
    assert points[-1].largest == pytest.approx(ends[1].solution.lower_bound, rel=1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_the_frontier_is_convex_and_no_two_points_are_far_apart(seed):
    result = trade.frontier(*ends_of(random_workload(seed)))
    if result.is_a_point:
        return
    x = np.array([point.total for point in result.points])
    y = np.array([point.largest for point in result.points])
    x, y = (x - x[0]) / (x[-1] - x[0]), (y - y[-1]) / (y[0] - y[-1])
    slopes = np.diff(y) / np.diff(x)
    assert np.all(np.diff(slopes) >= -1e-3 * np.abs(slopes[1:]))
    # A point lies below the chord of its neighbours, and not far: the curve is known in between.
    for i in range(1, len(x) - 1):
        chord = np.interp(x[i], x[[i - 1, i + 1]], y[[i - 1, i + 1]])
        assert y[i] <= chord + 1e-4
    if len(result.points) == trade.MOST_POINTS:
        assert np.max(np.hypot(np.diff(x), np.diff(y))) < 0.6


@given(workloads(), st.integers(0, 2**32), st.floats(0, 1))
@settings(deadline=None, max_examples=30)
def test_no_noise_scales_are_better_than_a_point_at_both(workload, seed, mixed):
    best_average, best_worst = ends_of(workload)
    result = trade.frontier(best_average, best_worst)
    closure = best_average.closure
    other = np.random.default_rng(seed).lognormal(0, 0.5, len(closure))
    # Near the optima, where they would be hardest to dominate
    other *= best_average.solution.sigma_squared**mixed * best_worst.solution.sigma_squared ** (
        1 - mixed
    )
    other *= np.sum(closure.privacy_cost_factor / other)  # at privacy cost 1
    variances = closure.variances(other)
    total = result.average_loss.value(variances, workload)
    largest = result.worst_loss.value(variances, workload)
    unit = result.points[0].total, result.points[-1].largest
    for point in result.points:
        value = (1 - point.worst_weight) * total / unit[0] + point.worst_weight * largest / unit[1]
        own = (1 - point.worst_weight) * point.total / unit[
            0
        ] + point.worst_weight * point.largest / unit[1]
        assert value >= own * (1 - 2e-6)


def test_one_plan_may_be_the_best_at_both():
    domain = rp.Domain.from_sizes({f"a{i}": 10 for i in range(6)})
    result = trade.frontier(*ends_of(rp.Workload.all_of_order(domain, 2), "equal"))
    assert result.is_a_point
    assert len(result.points) == 2
    frame = trade.points_at(result, BUDGET)
    sentence = trade.describe_frontier(result, frame, "people")
    assert sentence.startswith("There is next to nothing to trade")
    single = rp.Workload.of(domain, ["a0"])
    assert trade.frontier(*ends_of(single)).is_a_point


@pytest.fixture(scope="module")
def scenario():
    domain = rp.Domain.from_sizes({"age": 20, "sex": 2, "region": 5, "income": 9})
    return Scenario(domain, WorkloadRequest(order=2), budget=BUDGET, record_noun="people")


@pytest.fixture(scope="module")
def ends(scenario):
    return ends_of(scenario.workload)


@pytest.fixture(scope="module")
def result(ends):
    return trade.frontier(*ends)


def test_standard_errors_at_a_budget_are_those_of_plans(scenario, ends, result):
    frame, cells = trade.points_at(result, BUDGET), scenario.workload.cells
    for solved, row in zip(ends, (0, -1), strict=True):
        plan = solved.at(BUDGET)
        mean = math.sqrt(np.average(plan.mean_variances, weights=cells))
        assert frame["average"].iloc[row] == pytest.approx(mean, rel=1e-9)
        assert frame["largest"].iloc[row] == pytest.approx(plan.standard_errors.max(), rel=1e-9)
        present = result.errors(*result.values(solved.table_variances), BUDGET)
        assert present == pytest.approx((mean, plan.standard_errors.max()), rel=1e-9)
    assert frame[["given_up", "gained"]].iloc[0].tolist() == [0, 0]
    last = frame.iloc[-1]
    assert last["given_up"] == pytest.approx(100 * (last["average"] / frame["average"][0] - 1))
    assert last["gained"] == pytest.approx(100 * (1 - last["largest"] / frame["largest"][0]))


def test_in_words(result):
    frame = trade.points_at(result, BUDGET)
    row = frame.iloc[trade.bend(frame)]
    assert 0 < trade.bend(frame) < len(frame) - 1
    assert row["gained"] > 0.5 * frame["gained"].max()
    assert row["given_up"] < 0.5 * frame["given_up"].max()
    sentence = trade.describe_frontier(result, frame, "people")
    given_up, gained = (rounded(row[name], 2) for name in ("given_up", "gained"))
    exchange = f"{given_up} % larger makes the worst case {gained} % smaller"
    assert f"an average standard error {exchange}" in sentence
    assert sentence.count("an average standard error ") == 2
    assert "all the way" in sentence
    assert sentence.startswith("The best average, ")
    assert trade.describe_marks(result).endswith("budget; none is better at both.")


@pytest.mark.parametrize("place", [0, 2, 5, -1])
def test_a_plan_of_the_frontier_can_be_had_as_a_scenario(scenario, result, place):
    point = result.points[place]
    made = trade.scenario_between(scenario, result, point.worst_weight)
    assert made.budget == scenario.budget
    plan = made.table_plan()
    variances = plan.mean_variances * float(BUDGET.record_privacy_cost)
    assert result.average_loss.value(variances, scenario.workload) == pytest.approx(
        point.total, rel=1e-4
    )
    assert result.worst_loss.value(variances, scenario.workload) == pytest.approx(
        point.largest, rel=1e-3
    )
    assert plan.certificate.gap < 1e-6


def test_targets_stay_when_a_plan_of_the_frontier_is_taken(scenario):
    targets = np.array([5.0, *[np.nan] * (len(scenario.workload) - 2), 7.0])
    tables = {
        table: None if math.isnan(target) else target
        for table, target in zip(scenario.workload.tables, targets.tolist(), strict=True)
    }
    aiming = Scenario(
        scenario.domain, WorkloadRequest.of(scenario.workload.with_targets(tables)), budget=BUDGET
    )
    result = trade.frontier(*ends_of(aiming.workload))
    made = trade.scenario_between(aiming, result, result.points[3].worst_weight)
    np.testing.assert_array_equal(made.workload.targets, targets)


def test_too_many_tables_cannot_be_listed():
    domain = rp.Domain.from_sizes({f"a{i}": 2 for i in range(23)})
    scenario = Scenario(domain, WorkloadRequest(order=3))
    result = trade.frontier(*ends_of(scenario.workload), most_points=3)
    with pytest.raises(WorkloadError, match="2,048 tables one by one"):
        trade.scenario_between(scenario, result, 0.5)
    assert trade.scenario_between(scenario, result, 1.0).loss == rp.MaxVariance()


def test_it_tells_how_far_it_is_and_can_be_stopped(ends):
    text = []
    trade.frontier(*ends, on_progress=lambda doing, share: text.append((share, doing)))
    shares = [share for share, _ in text]
    assert shares == sorted(shares)
    assert 0 < shares[0] < shares[-1] < 1
    assert text[0][1] == "Plan 3 of up to 11"

    def stop(doing, share):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        trade.frontier(*ends, on_progress=stop)


def test_what_the_worst_case_is_called(result, scenario):
    assert trade.worst_case(result) == "largest standard error"
    assert trade.worst_case(result, VARIANCE) == "largest variance"
    weighted = scenario.with_settings([TableSetting(("age",), weight=3.0)]).workload
    average = replace(result.best_average, workload=weighted)
    assert "weighted" in trade.worst_case(replace(result, best_average=average))
    assert "target" in trade.worst_case(replace(result, worst_loss=rp.MaxVariance("target")))


def test_variances_are_traded_like_their_roots(result):
    errors = trade.points_at(result, BUDGET, STANDARD_ERROR)
    variances = trade.points_at(result, BUDGET, VARIANCE)
    for name in ("average", "largest"):
        assert variances[name].tolist() == pytest.approx((errors[name] ** 2).tolist())
    last = variances.iloc[-1]
    assert last["given_up"] == pytest.approx(100 * (last["average"] / variances["average"][0] - 1))
    sentence = trade.describe_frontier(result, variances, "people", VARIANCE)
    assert " people², comes with a largest variance of " in sentence


# ---- tables whose cells are not equally accurate


def test_the_frontier_between_plans_that_measure_alike(unequal_optimum):
    ends = (
        optimum_with_strategies_of(unequal_optimum, unequal_optimum.workload, loss)
        for loss in (rp.SumOfVariances("cells"), rp.MaxVariance())
    )
    result = frontier(*ends, most_points=5)
    assert result.has_fixed_strategies
    points = result.points
    assert all(point.gap <= 2e-6 for point in points)
    totals, largest = ([getattr(point, name) for point in points] for name in ("total", "largest"))
    assert totals == sorted(totals)
    assert largest == sorted(largest, reverse=True)
