"""Losses: what each weighs, and what is refused."""

import numpy as np
import pytest

from rpexplore import Domain, MaxVariance, SumOfVariances, Workload
from rpexplore.analysis.measures import SCHEMES
from rpexplore.errors import WorkloadError
from rpexplore.planning.losses.losses import WEIGHTINGS, describe_weighting


@pytest.fixture
def workload():
    domain = Domain.from_sizes({"a": 4, "b": 9})
    return Workload.of(domain, [(), "a", ("a", "b")], weights=[1, 2, 3], targets=[1, 2, 10])


@pytest.mark.parametrize(
    ("loss", "weights"),
    [
        (SumOfVariances(), [1, 2, 3]),
        (SumOfVariances("equal"), [1, 2, 3]),
        (SumOfVariances("cells"), [1, 8, 108]),
        (SumOfVariances(weighting="sqrt"), [1, 4, 18]),
        (MaxVariance(), [1, 2, 3]),
        (MaxVariance(relative_to="target"), [1, 0.25, 0.01]),
    ],
)
def test_weights_and_value(workload, loss, weights):
    np.testing.assert_allclose(loss.table_weights(workload), weights, rtol=1e-15)
    variances = np.array([5.0, 7.0, 0.5])
    terms = np.array(weights) * variances
    expected = terms.max() if isinstance(loss, MaxVariance) else terms.sum()
    assert loss.value(variances, workload) == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize("value", ["cell", "", None, 3, ["cells"]])
def test_unknown_options_are_named(value):
    with pytest.raises(WorkloadError, match=r"one of equal, cells, sqrt, got "):
        SumOfVariances(value)
    with pytest.raises(WorkloadError, match=r"'weight' or 'target', got "):
        MaxVariance(value)


def test_missing_target_is_named(workload):
    with pytest.raises(WorkloadError, match=r"\(a\) has no target"):
        MaxVariance("target").table_weights(workload.with_targets({"a": None}))


def test_descriptions_differ():
    losses = [SumOfVariances("equal"), SumOfVariances("cells"), SumOfVariances("sqrt")]
    losses += [MaxVariance(), MaxVariance("target")]
    assert len({loss.description for loss in losses}) == 5


def test_titles_name_the_weighting():
    losses = [SumOfVariances(weighting) for weighting in WEIGHTINGS]
    for loss in losses:
        assert WEIGHTINGS[loss.weighting] in loss.title
        assert describe_weighting(loss.weighting) in loss.description
        assert describe_weighting(loss.weighting).startswith(WEIGHTINGS[loss.weighting])
        assert WEIGHTINGS[loss.weighting].capitalize() in SCHEMES
    titles = {loss.title for loss in [*losses, MaxVariance(), MaxVariance("target")]}
    assert len(titles) == 5
    assert all(loss.title.startswith(loss.objective) for loss in losses)
