"""Losses within limits: what counts, what is allowed, and how they are bounded from below."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rpexplore as rp
from rpexplore.errors import WorkloadError
from rpexplore.planning.losses.losses import WEIGHTINGS, describe_weighting
from rpexplore.planning.planner import plan_tables
from tests.support.capped_optimum import workloads_with_required

LOSSES = [
    *(rp.SumWithinTargets(weighting) for weighting in WEIGHTINGS),
    rp.MaxWithinTargets(),
    *(rp.SumWithBoundedMax(weighting, 0.25) for weighting in WEIGHTINGS),
]


@pytest.fixture
def workload():
    domain = rp.Domain.from_sizes({"a": 4, "b": 9})
    return rp.Workload.of(
        domain,
        [(), "a", ("a", "b")],
        weights=[1, 2, 3],
        targets=[1, 2, 10],
        required=[False, True, False],
    )


@pytest.mark.parametrize(
    ("loss", "weights"),
    [
        (rp.SumWithinTargets(), [1, 0, 3]),
        (rp.SumWithinTargets("cells"), [1, 0, 108]),
        (rp.SumWithinTargets("sqrt"), [1, 0, 18]),
        (rp.MaxWithinTargets(), [1, 0, 0.01]),
        (rp.SumWithBoundedMax(), [1, 2, 3]),
        (rp.SumWithBoundedMax("cells"), [1, 8, 108]),
    ],
)
def test_what_counts_and_how_much(workload, loss, weights):
    np.testing.assert_allclose(loss.table_weights(workload), weights, rtol=1e-15)
    variances = np.array([5.0, 7.0, 0.5])
    terms = np.array(weights) * variances
    expected = terms.max() if loss == rp.MaxWithinTargets() else terms.sum()
    assert loss.value(variances, workload) == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize(
    ("loss", "weights"),
    [
        (rp.SumWithinTargets(), [1, 2, 3]),
        (rp.MaxWithinTargets(), [1, 0.25, 0.01]),
    ],
)
def test_where_every_target_is_required_all_count(workload, loss, weights):
    everything = replace(workload, required=np.ones(3, dtype=bool))
    np.testing.assert_allclose(loss.table_weights(everything), weights, rtol=1e-15)
    np.testing.assert_allclose(loss.caps(everything), [1, 4, 100])


def test_what_is_allowed(workload):
    for loss in (rp.SumWithinTargets(), rp.MaxWithinTargets()):
        np.testing.assert_array_equal(loss.caps(workload), [np.inf, 4, np.inf])
    loss = rp.SumWithBoundedMax(slack=0.5)
    assert loss.limit(8.0) == pytest.approx(8 * 1.5**2)
    np.testing.assert_allclose(loss.caps(workload, 18.0), [18, 9, 6])


def test_without_required_targets_it_is_refused(workload):
    none = replace(workload, required=np.zeros(3, dtype=bool))
    for loss in (rp.SumWithinTargets(), rp.MaxWithinTargets()):
        with pytest.raises(WorkloadError, match=r"No target is marked required; mark those"):
            loss.caps(none)
        with pytest.raises(WorkloadError, match="No target is marked required"):
            plan_tables(none, loss=loss, budget=rp.Budget(rho=1))


def test_a_missing_target_is_named(workload):
    without = workload.with_targets({("a", "b"): None})
    with pytest.raises(WorkloadError, match=r"\(a × b\) has no target; give every"):
        rp.MaxWithinTargets().table_weights(without)
    # The average of the others needs none.
    np.testing.assert_array_equal(rp.SumWithinTargets().table_weights(without), [1, 0, 3])


@pytest.mark.parametrize("slack", [0, 9e-7, 1.1e6, -1, np.inf, np.nan])
def test_a_slack_out_of_range_is_refused(slack):
    with pytest.raises(WorkloadError, match=r"slack must be from 1e-06 to 1e\+06 .*MaxVariance"):
        rp.SumWithBoundedMax(slack=slack)


@pytest.mark.parametrize("slack", [True, "0.1", None])
def test_a_slack_that_is_no_number_is_refused(slack):
    with pytest.raises(WorkloadError, match="slack must be a number, got"):
        rp.SumWithBoundedMax(slack=slack)


@pytest.mark.parametrize("of_kind", [rp.SumWithinTargets, rp.SumWithBoundedMax])
def test_unknown_weightings_are_named(of_kind):
    with pytest.raises(WorkloadError, match=r"one of equal, cells, sqrt, got 'cell'"):
        of_kind("cell")


def test_descriptions_and_titles_tell_them_apart():
    assert len({loss.description for loss in LOSSES}) == len(LOSSES)
    titles = {loss.title for loss in [*LOSSES, *(rp.SumOfVariances(each) for each in WEIGHTINGS)]}
    assert len(titles) == len(LOSSES) + len(WEIGHTINGS)
    assert all(loss.title.startswith(loss.objective) for loss in LOSSES)
    for loss in LOSSES:
        if not isinstance(loss, rp.MaxWithinTargets):
            assert WEIGHTINGS[loss.weighting] in loss.title
            assert describe_weighting(loss.weighting) in loss.description
    assert "25 %" in rp.SumWithBoundedMax("equal", 0.25).description


@given(workloads_with_required(powers=2.0), st.sampled_from(LOSSES), st.integers(0, 2**32))
def test_the_minorant_is_below_the_loss_wherever_the_limits_are_kept(workload, loss, seed):
    rng = np.random.default_rng(seed)
    weights = loss.table_weights(workload)
    limit = 3.0
    bounded = isinstance(loss, rp.SumWithBoundedMax)
    caps = loss.caps(workload, limit)
    prices = rng.uniform(0, 2, len(workload)) / np.where(np.isfinite(caps), caps, np.inf)
    if isinstance(loss, rp.MaxWithinTargets):
        shares = rng.uniform(0.1, 1, len(workload))
        dual = np.where(weights > 0, shares * weights, prices)
    else:
        dual = weights + prices
    factor, offset = loss.minorant_of_plan(dual, workload, limit, np.ones(len(workload)))
    if isinstance(loss, rp.MaxWithinTargets) and np.all(workload.required):
        assert offset == 0
    within = np.where(np.isfinite(caps), caps, 1.0)
    for _ in range(5):
        variances = within * rng.uniform(0, 1, len(workload))
        value = loss.value(variances, workload)
        bound = factor * (dual @ variances) - offset
        assert bound <= value * (1 + 1e-12) + 1e-12 * (factor * (dual @ variances))
    # It is the loss itself where the caps are just kept and, of a maximum, all ratios are equal.
    if bounded or isinstance(loss, rp.SumWithinTargets):
        at = within
    else:
        at = np.where(weights > 0, 1 / np.where(weights > 0, weights, 1), within)
    value, bound = loss.value(at, workload), factor * (dual @ at) - offset
    assert bound == pytest.approx(value, rel=1e-9, abs=1e-9 * factor * float(dual @ at))


def test_without_its_limit_a_bounded_average_is_bounded_as_a_sum(workload):
    loss = rp.SumWithBoundedMax("cells")
    dual = np.array([2.0, 8.0, 300.0])
    factor, offset = loss.minorant(dual, workload)
    assert offset == 0
    assert np.all(factor * dual <= loss.table_weights(workload) * (1 + 1e-15))


@pytest.mark.parametrize(
    ("loss", "homogeneous", "least_accurate"),
    [
        (rp.SumWithinTargets(), False, False),
        (rp.MaxWithinTargets(), False, True),
        (rp.SumWithBoundedMax(), True, False),
    ],
)
def test_what_the_planner_needs_to_know(loss, homogeneous, least_accurate):
    assert loss.is_homogeneous == homogeneous
    assert loss.looks_at_least_accurate_cells == least_accurate
