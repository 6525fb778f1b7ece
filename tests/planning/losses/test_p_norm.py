"""Convex losses: their values, what CVXPY is given, and the bounds that they put on themselves."""

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rpexplore as rp
from rpexplore.common.conic import smallest_value
from rpexplore.errors import WorkloadError
from rpexplore.planning.losses.base import MaxVariance, SumOfVariances
from rpexplore.planning.losses.p_norm import (
    INSIDE_TARGET,
    MeanAndMax,
    PNorm,
    SquaredExcess,
    TailMean,
)
from tests.support.strategies import workloads

LOSSES = [
    PNorm(1),
    PNorm(2),
    PNorm(3.7, "target"),
    PNorm(60),
    MeanAndMax(0.3),
    MeanAndMax(0.95, "target"),
    TailMean(0.05),
    TailMean(0.37),
    TailMean(0.5, "target"),
    TailMean(1),
    SquaredExcess(),
]


@st.composite
def cases(draw):
    """A loss, a workload with targets, and any variances and dual weights, some of these 0."""
    workload = draw(workloads(with_targets=True))
    numbers = st.floats(-3, 3).map(lambda power: 10**power)
    length = {"min_size": len(workload), "max_size": len(workload)}
    variances = draw(st.lists(numbers, **length))
    dual = draw(st.lists(numbers | st.just(0.0), **length).filter(any))
    return draw(st.sampled_from(LOSSES)), workload, np.array(variances), np.array(dual)


@given(cases())
@settings(deadline=None, max_examples=150)
def test_minorants_hold_at_any_variances(case):
    loss, workload, variances, dual = case
    factor, offset = loss.minorant(dual, workload)
    assert factor > 0
    bound = factor * np.sum(dual * variances) - offset
    value = loss.value(variances, workload)
    assert bound <= value + 1e-12 * (value + abs(offset) + factor * np.sum(dual * variances))
    if loss.is_homogeneous:
        assert offset == 0
        assert loss.value(3 * variances, workload) == pytest.approx(3 * value, rel=1e-12)


@given(cases())
@settings(deadline=None, max_examples=60)
def test_minorants_are_as_tight_as_can_be(case):
    """CVXPY's smallest loss, where the weighted sum of variances is 1, is what they say there."""
    loss, workload, _, dual = case
    weights = loss.table_weights(workload)
    units = 1 / np.sum(dual / weights)  # the weighted variances are about this
    factor, offset = loss.minorant(dual, workload)
    scaled = cp.Variable(len(dual), nonneg=True)
    expression = loss.expression(units * scaled, np.ones(len(dual)))
    scale = loss.value(units / weights, workload)
    enough = (units * dual / weights) @ scaled >= 1
    found = cp.Problem(cp.Minimize(expression / scale), [enough]).solve(solver=cp.CLARABEL)
    assert factor - offset == pytest.approx(found * scale, rel=1e-4)


@given(cases())
@settings(deadline=None, max_examples=60)
def test_expressions_are_the_losses(case):
    loss, workload, variances, _ = case
    weighted = loss.table_weights(workload) * variances
    scale = loss.value(variances, workload)
    # A tail mean is a minimum over a threshold, so it must be solved for.
    one_by_one = loss.expression(cp.Constant(weighted), np.ones(len(weighted)))
    found = smallest_value(cp.Problem(cp.Minimize(one_by_one / scale)), within=1e-5)
    assert found == pytest.approx(1, rel=1e-5)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_merged_tables_count_as_often_as_there_are(loss):
    x, counts = np.array([0.3, 1.7, 4.0]), np.array([2.0, 1, 3])
    merged = loss.expression(cp.Constant(x), counts)
    single = loss.expression(cp.Constant(np.repeat(x, counts.astype(int))), np.ones(6))
    found = [cp.Problem(cp.Minimize(each)).solve(solver=cp.CLARABEL) for each in (merged, single)]
    assert found[0] == pytest.approx(found[1], rel=1e-6)


@pytest.fixture
def workload():
    domain = rp.Domain.from_sizes({"a": 4, "b": 9})
    return rp.Workload.of(
        domain, [(), "a", "b", ("a", "b")], weights=[1, 2, 3, 4], targets=[1, 2, 10, 0.5]
    )


VARIANCES = np.array([5.0, 7.0, 0.5, 1.0])  # times importance: 5, 14, 1.5, 4
RELATIVE = np.array([5.0, 1.75, 0.005, 4.0])


@pytest.mark.parametrize(
    ("loss", "value"),
    [
        (PNorm(1), 24.5),
        (PNorm(2), np.sqrt(25 + 196 + 2.25 + 16)),
        (PNorm(2, "target"), np.linalg.norm(RELATIVE)),
        (PNorm(1000), 14),
        (MeanAndMax(0.25), 0.75 * 24.5 / 4 + 0.25 * 14),
        (TailMean(0.25), 14),
        (TailMean(0.1), 14),
        (TailMean(0.5), 9.5),
        (TailMean(0.6), (14 + 5 + 0.4 * 4) / 2.4),
        (TailMean(1), 24.5 / 4),
        (TailMean(0.5, "target"), 4.5),
        (SquaredExcess(), (16 + 0.5625 + 9 + INSIDE_TARGET * 10.755) / 4),
    ],
    ids=repr,
)
def test_values(workload, loss, value):
    assert loss.value(VARIANCES, workload) == pytest.approx(value, rel=1e-12)


def test_they_lie_between_the_sum_and_the_largest(workload):
    largest = MaxVariance().value(VARIANCES, workload)
    mean = SumOfVariances().value(VARIANCES, workload) / 4
    for loss in (MeanAndMax(0.5), TailMean(0.6)):
        assert mean < loss.value(VARIANCES, workload) < largest
    for p in (1, 2, 7, 100):
        value = PNorm(p).value(VARIANCES, workload)
        assert largest <= value <= largest * 4 ** (1 / p)


@pytest.mark.parametrize("given", [0.9, -1, np.nan, np.inf, 1001, "2", None, True])
def test_unusable_powers_are_refused(given):
    with pytest.raises(WorkloadError, match=r"p must be a number from 1 to 1000, got "):
        PNorm(given)


@pytest.mark.parametrize("given", [0, 1, -0.5, 2, np.nan, "0.5", None])
def test_unusable_shares_are_refused(given):
    with pytest.raises(WorkloadError, match=r"share must be a number between 0 and 1, got "):
        MeanAndMax(given)


@pytest.mark.parametrize("given", [0, 1.01, -0.5, np.nan, "0.5", None])
def test_unusable_tails_are_refused(given):
    with pytest.raises(WorkloadError, match=r"worst must be a number above 0 and at most 1, got "):
        TailMean(given)


@pytest.mark.parametrize("kind", [PNorm, MeanAndMax, TailMean])
def test_what_they_are_relative_to_is_known(kind, workload):
    with pytest.raises(WorkloadError, match="'importance' or 'target', got 'cells'"):
        kind(relative_to="cells")
    without = workload.with_targets({"a": None})
    for loss in (kind(relative_to="target"), SquaredExcess()):
        with pytest.raises(WorkloadError, match=r"\(a\) has no target; give every table one, or"):
            loss.table_weights(without)
    np.testing.assert_array_equal(kind().table_weights(without), [1, 2, 3, 4])


def test_words_differ():
    assert len({loss.description for loss in LOSSES}) == len(LOSSES)
    kinds = [PNorm(), MeanAndMax(), TailMean(), SquaredExcess()]
    assert len({loss.aim for loss in kinds}) == len(kinds)
    assert TailMean(0.05).aim == "small errors on average in the worst 5 % of tables"
