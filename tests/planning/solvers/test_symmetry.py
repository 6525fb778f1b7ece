"""Merged tables and residuals: an equitable partition, as coarse as the workload allows."""

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rpexplore as rp
from rpexplore.planning.losses.custom import CustomLoss
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.solvers.conic_program import (
    is_same_when_swapped,
    single_classes,
    symmetric_classes,
)
from tests.published import figures
from tests.support.generalised import any_strategies
from tests.support.oracles import variance_matrix
from tests.support.strategies import domains, workloads, workloads_with_bases


def dense(closure, weights):
    """B with weighted rows, one column at a time."""
    columns = np.eye(len(closure))
    return np.column_stack([weights * closure.variances(column) for column in columns])


small = workloads_with_bases(
    workloads(domains(max_size=3), weights=st.sampled_from([1.0, 2.0]), max_tables=12)
)


@given(small, st.booleans(), st.integers(0, 3))
@settings(deadline=None, max_examples=35)
def test_classes_are_equitable(workload, apart, seed):
    """Averages over classes commute with B, and cost and weighted variances are those of classes.

    With that, the averaged plan of any plan is no worse (see the module).
    """
    closure = Closure.of(workload)
    closure = closure.with_strategies(workload, any_strategies(workload, seed))
    weights = workload.weights
    distinctions = (np.arange(len(workload)) % 2,) if apart else ()
    classes = symmetric_classes(closure, weights, distinctions)
    b = dense(closure, weights)
    for side, axis in ((classes.tables, 0), (classes.residuals, 1)):
        of_other = classes.residuals if axis == 0 else classes.tables
        sums = np.stack(
            [
                np.sum(b if axis == 0 else b.T, axis=1, where=of_other == other)
                for other in range(of_other.max() + 1)
            ],
            axis=1,
        )
        for one in range(side.max() + 1):
            members = sums[side == one]
            np.testing.assert_allclose(members, np.tile(members[0], (len(members), 1)), rtol=1e-9)
    merged = np.random.default_rng(seed).uniform(1, 2, len(classes.costs))
    sigma_squared = merged[classes.residuals]
    np.testing.assert_allclose(
        (classes.matrix @ merged)[classes.tables], weights * closure.variances(sigma_squared)
    )
    cost = np.sum(closure.privacy_cost_factor / sigma_squared)
    assert np.sum(classes.costs / merged) == pytest.approx(cost)
    np.testing.assert_array_equal(classes.table_counts, np.bincount(classes.tables))
    for numbers in distinctions:
        assert all(len(set(numbers[classes.tables == one])) == 1 for one in set(classes.tables))


def test_a_hundred_attributes_of_ten_sizes_are_few_classes():
    domain = rp.Domain.from_sizes({f"a{i}": 2 + 3 * (i % 10) for i in range(100)})
    workload = rp.Workload.all_up_to(domain, 3)
    classes = symmetric_classes(Closure.of(workload), workload.weights)
    sets_of_sizes = 1 + 10 + 55 + 220  # of up to three of ten, repeats allowed
    assert len(classes.table_counts) == len(classes.costs) == sets_of_sizes
    assert np.sum(classes.table_counts) == 166_751


def test_adult_has_as_many_classes_as_sets_of_sizes():
    workload = figures.workload("Adult", "<=3")
    sizes = workload.domain.sizes
    kinds = {tuple(sorted(sizes[row[row >= 0]])) for row in workload.members}
    classes = symmetric_classes(Closure.of(workload), workload.weights)
    assert len(classes.table_counts) == len(kinds)
    assert not classes.are_single


def test_places_in_the_workload_are_seen_not_only_sizes():
    """Two attributes of one size, of which only one is crossed with a third, are not alike."""
    domain = rp.Domain.from_sizes({"a": 3, "b": 3, "c": 3, "d": 3})
    chain = rp.Workload.of(domain, [("a", "b"), ("b", "c"), ("c", "d")])
    tables = symmetric_classes(Closure.of(chain), chain.weights).tables
    assert tables[0] == tables[2] != tables[1]
    ring = chain | rp.Workload.of(domain, [("a", "d")])
    assert len(symmetric_classes(Closure.of(ring), ring.weights).table_counts) == 1


def test_weights_and_distinctions_split():
    domain = rp.Domain.from_sizes({f"a{i}": 5 for i in range(6)})
    workload = rp.Workload.all_of_order(domain, 2)
    closure = Closure.of(workload)
    assert len(symmetric_classes(closure, workload.weights).table_counts) == 1
    some = workload.with_weights({("a0", "a1"): 2})
    # That table, those that share an attribute with it, the others.
    counts = symmetric_classes(closure, some.weights).table_counts
    assert sorted(counts) == [1, 6, 8]
    messages = np.where(some.weights == 2, np.nan, 1.0)
    apart = symmetric_classes(closure, workload.weights, (messages,)).table_counts
    assert sorted(apart) == [1, 6, 8]


def test_single_classes_are_the_problem_itself():
    domain = rp.Domain.from_sizes({"a": 3, "b": 4})
    workload = rp.Workload.all_up_to(domain, 2)
    classes = single_classes(Closure.of(workload), np.array([1.0, 2, 3, 4]))
    b, p = variance_matrix(workload)
    np.testing.assert_allclose(classes.matrix.toarray(), np.diag([1.0, 2, 3, 4]) @ b)
    np.testing.assert_allclose(classes.costs, p)
    assert classes.are_single


def test_swaps_are_tried_within_classes():
    variances = np.ones(6)
    weighted = CustomLoss(lambda V: np.array([1, 2, 1, 2, 1, 2]) @ V, "weighted")
    assert is_same_when_swapped(weighted.function(6), variances, np.array([0, 1, 0, 1, 0, 1]))
    assert not is_same_when_swapped(weighted.function(6), variances, np.array([0, 0, 1, 1, 2, 2]))
    assert not is_same_when_swapped(weighted.function(6), variances, np.zeros(6, dtype=int))
    assert is_same_when_swapped(
        CustomLoss(cp.max, "largest").function(6), variances, np.zeros(6, dtype=int)
    )
    ends = CustomLoss(lambda V: cp.norm(V[:2]) + cp.max(V[2:]), "ends")
    assert is_same_when_swapped(ends.function(6), variances, np.array([0, 0, 1, 1, 1, 1]))
    assert not is_same_when_swapped(ends.function(6), variances, np.array([1, 0, 0, 1, 1, 1]))
