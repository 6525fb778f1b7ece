"""Residuals measured together: each has its own noise, of its own scale."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rpexplore import Budget, Domain, SumOfVariances, Workload
from rpexplore.data.source import Counts
from rpexplore.planning.planner import plan_tables
from rpexplore.releases.measurement import exact_residual, measure_together
from tests.support.generalised import any_plan, workloads_with_bases


def records_of(domain: Domain, seed: int) -> Counts:
    table = np.random.default_rng(seed).integers(0, 20, domain.sizes)
    return Counts({tuple(range(len(domain.sizes))): table}, int(table.sum()))


@settings(max_examples=40, deadline=None)
@given(workloads_with_bases(max_attributes=3), st.integers(0, 2**32), st.sampled_from([2, 10**6]))
def test_residuals_measured_together_have_the_noise_of_each_and_no_sample_twice(
    workload, seed, at_once
):
    planned, drawn_with = any_plan(workload, seed, rho="1/3"), []
    closure, records = planned.closure, records_of(workload.domain, seed)

    def numbered(size, gamma_squared):
        drawn_with.extend([gamma_squared] * size)
        return np.arange(len(drawn_with) - size, len(drawn_with))

    residuals = np.random.default_rng(seed).permutation(len(closure))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rpexplore.releases.measurement.discrete_gaussian", numbered)
        patch.setattr("rpexplore.releases.measurement._NOISE_AT_ONCE", at_once)
        measured = measure_together(planned, residuals, records)
    start = 0
    for residual in residuals.tolist():
        exact = exact_residual(planned, residual, records).ravel()
        samples = measured[start : start + len(exact)] - exact
        start += len(exact)
        assert samples.tolist() == list(range(samples[0], samples[0] + len(exact)))
        scale = math.prod(
            2 ** closure.strategies[index].bits
            if index in closure.strategies
            else int(closure.sizes[index])
            for index in closure.attributes(residual)
        )
        expected = planned.sigma_squared.fraction(residual) * scale**2
        assert {drawn_with[sample] for sample in samples.tolist()} == {expected}
        for sample in samples.tolist():
            drawn_with[sample] = None
    assert start == len(measured)
    assert set(drawn_with) == {None}


def test_residuals_of_one_form_and_scale_take_one_call_of_the_sampler(monkeypatch):
    workload = Workload.all_up_to(Domain.from_sizes({f"a{i}": 3 for i in range(4)}), 2)
    planned, calls = plan_tables(workload, loss=SumOfVariances(), budget=Budget(rho=1)), []

    def spy(size, gamma_squared):
        calls.append(size)
        return np.zeros(size, dtype=np.int64)

    monkeypatch.setattr("rpexplore.releases.measurement.discrete_gaussian", spy)
    residuals = np.arange(len(planned.closure))
    measure_together(planned, residuals, records_of(planned.workload.domain, 0))
    assert calls == [1, 4 * 3, 6 * 9]
