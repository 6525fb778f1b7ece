"""What noise could hide, against simulated χ² tests."""

import numpy as np
import pytest
from scipy.stats import chi2

import rpexplore as rp
from rpexplore.analysis.hidden_deviations import could_hide, describe_could_hide
from rpexplore.planning.planner import plan_tables

DOMAIN = rp.Domain.from_sizes({"a": 4, "b": 3, "c": 5, "one": 1})


def test_a_deviation_of_that_size_is_missed_in_one_of_five_releases():
    workload = rp.Workload.all_of_order(DOMAIN, 3) | rp.Workload.all_of_order(DOMAIN, 2)
    plan = plan_tables(workload, loss=rp.SumOfVariances(), budget=rp.Budget(rho="0.1"))
    frame = could_hide(plan).set_index("attributes")
    assert frame["order"].to_dict()["a", "b", "c"] == 3
    assert len(frame) == 3 + 1
    rng = np.random.default_rng(0)
    for names, found in frame.iterrows():
        indices = [DOMAIN.position(name) for name in names]
        sizes = DOMAIN.sizes[indices]
        residual = [tuple(indices) == plan.closure.attributes(r) for r in range(len(plan.closure))]
        sigma = plan.sigma_squared.floats[residual.index(True)] ** 0.5

        def centred(values):
            for axis in range(1, values.ndim):
                values = values - values.mean(axis=axis, keepdims=True)
            return values

        deviation = centred(rng.normal(size=(1, *sizes)))
        deviation *= found["could_hide"] / np.sqrt(np.mean(deviation**2))
        measured = deviation + centred(rng.normal(0, sigma, (20_000, *sizes)))
        statistic = np.sum(measured.reshape(20_000, -1) ** 2, axis=1) / sigma**2
        missed = np.mean(statistic <= chi2.ppf(0.95, np.prod(sizes - 1)))
        assert missed == pytest.approx(0.2, abs=0.012)
    assert "most, ±4.79, in a × b." in describe_could_hide(frame.reset_index())


def test_without_pairs_nothing_is_said():
    workload = rp.Workload.all_of_order(DOMAIN, 1)
    plan = plan_tables(workload, loss=rp.SumOfVariances(), budget=rp.Budget(rho="0.1"))
    assert describe_could_hide(could_hide(plan)) == ""
