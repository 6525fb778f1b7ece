"""p-norms: their values, and the bounds that they put on themselves."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rpexplore as rp
from rpexplore.errors import WorkloadError
from rpexplore.planning.losses.losses import MaxVariance, PNorm, SumOfVariances
from tests.support.strategies import workloads

LOSSES = [PNorm(1), PNorm(2), PNorm(3.7, "target"), PNorm(60)]


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
    bound = factor * np.sum(dual * variances)
    value = loss.value(variances, workload)
    assert bound <= value + 1e-12 * (value + bound)
    assert offset == 0
    assert loss.value(3 * variances, workload) == pytest.approx(3 * value, rel=1e-12)


@given(cases())
@settings(deadline=None, max_examples=60)
def test_minorants_are_as_tight_as_can_be(case):
    """Hölder's inequality is an equality where x is the (p − 1)th root of its dual weights."""
    loss, workload, _, dual = case
    weights = loss.table_weights(workload)
    factor, offset = loss.minorant(dual, workload)
    relative = dual / weights / np.max(dual / weights)
    x = (relative == 1).astype(float) if loss.p == 1 else relative ** (1 / (loss.p - 1))
    variances = x / weights / np.sum(dual * x / weights)
    assert offset == 0
    assert loss.value(variances, workload) == pytest.approx(factor, rel=1e-9)


@pytest.fixture
def workload():
    domain = rp.Domain.from_sizes({"a": 4, "b": 9})
    return rp.Workload.of(
        domain, [(), "a", "b", ("a", "b")], weights=[1, 2, 3, 4], targets=[1, 2, 10, 0.5]
    )


VARIANCES = np.array([5.0, 7.0, 0.5, 1.0])  # times weight: 5, 14, 1.5, 4
RELATIVE = np.array([5.0, 1.75, 0.005, 4.0])


@pytest.mark.parametrize(
    ("loss", "value"),
    [
        (PNorm(1), 24.5),
        (PNorm(2), np.sqrt(25 + 196 + 2.25 + 16)),
        (PNorm(2, "target"), np.linalg.norm(RELATIVE)),
        (PNorm(1000), 14),
    ],
    ids=repr,
)
def test_values(workload, loss, value):
    assert loss.value(VARIANCES, workload) == pytest.approx(value, rel=1e-12)


def test_they_lie_between_the_sum_and_the_largest(workload):
    largest = MaxVariance().value(VARIANCES, workload)
    total = SumOfVariances().value(VARIANCES, workload)
    for p in (1, 2, 7, 100):
        value = PNorm(p).value(VARIANCES, workload)
        assert largest <= value <= total
        assert value <= largest * 4 ** (1 / p)


@pytest.mark.parametrize("given", [0.9, -1, np.nan, np.inf, 1001, "2", None, True])
def test_unusable_powers_are_refused(given):
    with pytest.raises(WorkloadError, match=r"p must be a number from 1 to 1000, got "):
        PNorm(given)


def test_what_they_are_relative_to_is_known(workload):
    with pytest.raises(WorkloadError, match="'weight' or 'target', got 'cells'"):
        PNorm(relative_to="cells")
    without = workload.with_targets({"a": None})
    with pytest.raises(WorkloadError, match=r"\(a\) has no target; give every table one, or"):
        PNorm(relative_to="target").table_weights(without)
    np.testing.assert_array_equal(PNorm().table_weights(without), [1, 2, 3, 4])


def test_words_differ():
    assert len({loss.description for loss in LOSSES}) == len(LOSSES)
