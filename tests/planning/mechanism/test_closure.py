"""Closure: every subset once, and the variance map, against the definitions."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rpexplore import CustomBasis, Domain, Workload
from rpexplore.errors import PlanError
from rpexplore.planning.mechanism import subsets as subsets_module
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.mechanism.strategy import Strategy
from tests.support.generalised import (
    all_variances,
    any_strategies,
    measured_closure,
    measured_matrix,
    precision,
    workloads_with_bases,
)
from tests.support.oracles import closure_of, subsets, variance_matrix
from tests.support.strategies import domains, workloads

wide = domains(max_attributes=9, max_size=3)
seldom = settings(deadline=None, max_examples=60)


def sets(closure):
    return [closure.attributes(index) for index in range(len(closure))]


@given(workloads() | workloads(wide, max_tables=12))
@seldom
def test_residuals_are_all_subsets_in_order(workload):
    closure = Closure.of(workload)
    assert sets(closure) == closure_of(workload)
    sizes = workload.domain.sizes
    for table, members in enumerate(workload.members.tolist()):
        kept = [index for index in members if index >= 0 and sizes[index] > 1]
        within = closure.subsets(table).tolist()
        assert within == sorted(within)
        assert [closure.attributes(index) for index in within] == sorted(
            subsets(kept), key=lambda subset: (len(subset), subset)
        )


@given(workloads() | workloads(wide, max_tables=12))
@seldom
def test_find_is_the_inverse_of_attributes(workload):
    closure = Closure.of(workload)
    held = {attributes: index for index, attributes in enumerate(sets(closure))}
    d = len(workload.domain)
    for order in range(d + 1):
        for attributes in combinations(range(d), order):
            assert closure.find(attributes) == held.get(attributes)


@given(workloads(), st.integers(0, 2**32))
@seldom
def test_variance_map_against_the_formulas(workload, seed):
    closure = Closure.of(workload)
    b, p = variance_matrix(workload)
    np.testing.assert_allclose(closure.privacy_cost_factor, p, rtol=1e-14)
    sigma_squared = np.random.default_rng(seed).uniform(0.1, 10, len(p))
    np.testing.assert_allclose(closure.variances(sigma_squared), b @ sigma_squared, rtol=1e-13)
    weights = np.random.default_rng(seed).uniform(0.1, 10, len(b))
    np.testing.assert_allclose(closure.residual_weights(weights), b.T @ weights, rtol=1e-13)


def test_one_large_table_of_many_attributes():
    domain = Domain.from_sizes({f"a{i}": 2 + i % 3 for i in range(80)})
    chosen = range(3, 80, 7)  # 11 of them
    names = [domain.names[index] for index in chosen] + ["a79"]
    closure = Closure.of(Workload.of(domain, [names, (), "a0"]))
    indices = sorted([*chosen, 79])
    expected = sorted({*subsets(indices), (0,)}, key=lambda subset: (len(subset), subset))
    assert len(indices) == 12
    assert sets(closure) == expected
    assert closure.find(indices) == len(closure) - 1
    assert closure.find([0]) == 1
    assert closure.find([0, 3]) is None
    assert closure.find(range(80)) is None


def test_thousands_of_attributes_take_the_sorting_branch(monkeypatch):
    """Keys that no table of all possible keys could hold: both branches must agree."""
    d, seen = 3_000, []
    real = subsets_module._unique

    def unique(keys, bound):
        seen.append(bound > 16 * sum(key.size for key in keys) + 1_000_000)
        return real(keys, bound)

    monkeypatch.setattr(subsets_module, "_unique", unique)
    domain = Domain.from_sizes({f"a{i}": 2 for i in range(d)})
    pick = np.random.default_rng(0)
    rows = [sorted(pick.choice(d, 4, replace=False).tolist()) for _ in range(200)]
    workload = Workload.of(domain, [[domain.names[index] for index in row] for row in rows])
    closure = Closure.of(workload)
    assert True in seen
    assert False in seen
    expected = sorted({s for row in rows for s in subsets(row)}, key=lambda s: (len(s), s))
    assert sets(closure) == expected
    assert [closure.find(s) for s in expected] == list(range(len(expected)))


@pytest.mark.parametrize("bound", [10, 10**15])
def test_both_ways_to_distinct_keys(bound):
    keys = [np.array([[3, 1], [7, 3]]), np.array([[1], [9]])]
    distinct, indices = subsets_module._unique(keys, bound)
    assert distinct.tolist() == [1, 3, 7, 9]
    assert [index.tolist() for index in indices] == [[[1, 0], [2, 1]], [[0], [3]]]


def test_single_valued_attributes_carry_no_residual():
    domain = Domain.from_sizes({"one": 1, "a": 3, "uno": 1})
    workload = Workload.of(domain, [(), "one", ("one", "a", "uno"), ("one", "uno")])
    closure = Closure.of(workload)
    assert sets(closure) == [(), (1,)]
    assert [closure.subsets(t).tolist() for t in range(4)] == [[0], [0], [0], [0, 1]]


def test_exact_product():
    domain = Domain.from_sizes({"a": 999_983, "b": 2, "c": 10**6})
    closure = Closure.of(Workload.of(domain, [domain.names]))
    sizes = domain.sizes.tolist()
    expected = [int(np.prod([sizes[i] for i in s], dtype=object)) for s in sets(closure)]
    assert closure.exact_product(sizes, np.arange(len(closure))).tolist() == expected


def test_arrays_are_read_only():
    closure = Closure.of(Workload.all_up_to(Domain.from_sizes({"a": 2, "b": 3}), 2))
    with pytest.raises(ValueError, match="read-only"):
        closure.members[0] = 0


@pytest.mark.parametrize("order", [26, 40, 1100])
def test_too_many_subsets_are_refused(order):
    domain = Domain.from_sizes({f"a{i}": 2 for i in range(order)})
    with pytest.raises(PlanError, match=rf"subsets.* {order} attributes.* at most 60,000,000"):
        Closure.of(Workload.of(domain, [domain.names]))


# ---- attributes in other bases than single values


@given(workloads_with_bases(), st.integers(0, 2**32))
@seldom
def test_measured_by_strategies_against_dense_matrices(workload, seed):
    """Cost of each residual and of all together, and the mean variance of each table's cells."""
    closure, sigma_squared = measured_closure(workload, seed)
    largest = []
    for residual in range(len(closure)):
        matrix, noise = measured_matrix(closure, closure.attributes(residual))
        diagonal = np.diag(matrix.T @ np.linalg.solve(noise, matrix))
        largest.append(diagonal.max())
    np.testing.assert_allclose(closure.privacy_cost_factor, largest, rtol=1e-12)
    # One value of each attribute has the largest column norm in every residual at once.
    diagonal = np.diag(precision(closure, sigma_squared))
    cost = np.sum(closure.privacy_cost_factor / sigma_squared)
    assert diagonal.max() == pytest.approx(cost, rel=1e-10)
    dense = [table.mean() for table in all_variances(workload, closure, sigma_squared)]
    np.testing.assert_allclose(closure.variances(sigma_squared), dense, rtol=1e-8)
    weights = np.random.default_rng(seed).uniform(0.1, 10, len(workload))
    assert closure.residual_weights(weights) @ sigma_squared == pytest.approx(
        weights @ closure.variances(sigma_squared), rel=1e-12
    )


@given(workloads_with_bases(), st.integers(0, 2**32))
@seldom
def test_measuring_again_forgets_the_strategies_before(workload, seed):
    plain = Closure.of(workload)
    strategies = any_strategies(workload, seed)
    again = plain.with_strategies(workload, any_strategies(workload, seed + 9)).with_strategies(
        workload, strategies
    )
    once = plain.with_strategies(workload, strategies)
    for name in ("pairs", "inverse_totals", "cells", "privacy_cost_factor"):
        np.testing.assert_array_equal(getattr(again, name), getattr(once, name))
    np.testing.assert_array_equal(again.incidence.toarray(), once.incidence.toarray())
    assert plain.strategies == {}
    assert plain.moments == ()
    np.testing.assert_array_equal(plain.incidence.data, 1)


@given(workloads(), st.integers(0, 2**32))
@seldom
def test_single_values_need_no_strategies(workload, seed):
    """A strategy that is ResidualPlanner's own matrix gives its variances."""
    domain, first = workload.domain, workload.domain.names[0]
    other_bases = workload.with_bases(
        {first: CustomBasis(tuple(map(tuple, np.eye(domain[first].size).tolist())))}
    )
    n = domain[first].size
    strategies = {}
    if n > 1 and any(first in table for table in workload.tables):
        # Any factor X = RᵀR of I − 11ᵀ/n does; this one is in integers up to scale for n = 2 only.
        rows = np.linalg.eigh(np.eye(n) - 1 / n)[1][:, 1:].T
        strategies = {0: Strategy(np.round(rows * 2**20).astype(np.int64), 20)}
    closure = Closure.of(other_bases).with_strategies(other_bases, strategies)
    plain = Closure.of(workload)
    scales = np.random.default_rng(seed).uniform(0.1, 10, len(plain))
    np.testing.assert_allclose(closure.variances(scales), plain.variances(scales), rtol=1e-4)
    np.testing.assert_allclose(closure.privacy_cost_factor, plain.privacy_cost_factor, rtol=1e-4)
