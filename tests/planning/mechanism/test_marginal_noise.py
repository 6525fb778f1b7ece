"""Accuracy of a plan against dense matrices, and the identities of the method."""

from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import norm

import rpexplore as rp
from rpexplore.errors import DomainError, WorkloadError
from rpexplore.planning.planner import plan_tables
from tests.support import generalised, oracles
from tests.support.strategies import domains, losses, workloads

small = domains(max_attributes=3, max_size=4)

# What the strategies might miss: one attribute, sizes 1 and 2, equal sizes, the total alone.
EDGES = [
    ([5], [["a0"]]),
    ([2], [["a0"], []]),
    ([1], [["a0"]]),
    ([3, 2], [[]]),
    ([2, 2, 2], [["a0", "a1", "a2"]]),
    ([3, 1, 3], [["a0", "a1", "a2"], ["a1"], ["a0"]]),
    ([4, 3, 2, 1], [["a0", "a1"], ["a2", "a3"], ["a0", "a2"]]),
]


def workload_of(sizes, tables):
    domain = rp.Domain.from_sizes({f"a{i}": n for i, n in enumerate(sizes)})
    return rp.Workload.of(domain, tables, weights=np.linspace(1, 3, len(tables)).tolist())


def random_query(plan, table, seed):
    pick = np.random.default_rng(seed)
    return {name: pick.normal(size=plan.workload.domain[name].size) for name in table}


def check_against_dense(plan, seed=0):
    """Cost, variance of every cell, covariance of every pair, a product query."""
    diagonal = np.diag(oracles.precision(plan))
    cost = plan.privacy_cost / plan.budget.records_factor
    np.testing.assert_allclose(diagonal, np.full(len(diagonal), cost), rtol=1e-9)
    for row, table in enumerate(plan.workload.tables):
        indices = plan.workload.domain.positions(table)
        covariance = oracles.marginal_covariance(plan, indices)
        np.testing.assert_allclose(np.diag(covariance), plan.mean_variances[row], rtol=1e-8)
        assert plan.largest_variance(table) == pytest.approx(plan.mean_variances[row], rel=1e-12)
        cells = list(product(*(range(plan.workload.domain[name].size) for name in table)))
        named = [dict(zip(table, cell, strict=True)) for cell in cells]
        result = [[plan.covariance(table, one, other) for other in named] for one in named[:5]]
        atol = 1e-8 * plan.mean_variances[row]
        np.testing.assert_allclose(result, covariance[:5], rtol=1e-8, atol=atol)
        query = random_query(plan, table, seed)
        vector = oracles.kron(query[name][:, None] for name in table)[:, 0]
        assert plan.query_variance(table, where=query) == pytest.approx(
            vector @ covariance @ vector, rel=1e-7
        )


@pytest.mark.parametrize(("sizes", "tables"), EDGES)
@pytest.mark.parametrize("loss", [rp.SumOfVariances("cells"), rp.MaxVariance()])
def test_edges_against_dense_matrices(sizes, tables, loss):
    check_against_dense(
        plan_tables(workload_of(sizes, tables), loss=loss, budget=rp.Budget(privacy_cost=0.7))
    )


@given(
    workloads(small, max_tables=4), losses(), st.none() | st.integers(1, 5), st.integers(0, 2**32)
)
@settings(deadline=None, max_examples=40)
def test_random_plans_against_dense_matrices(workload, loss, records, seed):
    budget = rp.Budget(rho=0.5, max_records_per_person=records)
    check_against_dense(plan_tables(workload, loss=loss, budget=budget), seed)


@given(workloads(small, max_tables=3))
@settings(deadline=None, max_examples=25)
def test_marginals_within_a_table_have_a_variance_too(workload):
    plan = plan_tables(workload, loss=rp.SumOfVariances(), budget=rp.Budget(rho=0.5))
    names = workload.domain.names
    for table in workload.tables:
        for subset in oracles.subsets(workload.domain.positions(table)):
            covariance = oracles.marginal_covariance(plan, subset)
            result = plan.largest_variance([names[index] for index in subset])
            assert result == pytest.approx(covariance[0, 0], rel=1e-8)


@given(workloads(small), st.integers(0, 2**32))
@settings(deadline=None, max_examples=25)
def test_what_a_query_leaves_out_is_summed_over(workload, seed):
    plan = plan_tables(workload, loss=rp.MaxVariance(), budget=rp.Budget(rho=0.5))
    table = workload.tables[-1]
    assume(table)
    query = random_query(plan, table, seed)
    name = table[0]
    part = {other: np.ones(workload.domain[other].size) for other in table[1:]}
    expected = plan.query_variance(table, where=part | {name: query[name]})
    assert plan.query_variance(table, where={name: query[name]}) == pytest.approx(
        expected, rel=1e-12
    )
    assert plan.query_variance(where={name: query[name]}) == pytest.approx(expected, rel=1e-10)
    cell = {other: np.eye(workload.domain[other].size)[-1] for other in table[1:]}
    assert plan.query_variance(*table, where=cell) == pytest.approx(
        plan.largest_variance(table[1:]), rel=1e-10
    ), "a subtotal over a whole attribute is the marginal without it"


def test_subtotals_of_a_million_values_do_not_cancel():
    """All ones but the last: ‖q‖² − (1ᵀq)²/n is small against both."""
    n = 10**6
    plan = plan_tables(
        rp.Workload.of(rp.Domain.from_sizes({"a": n}), ["a"]),
        loss=rp.SumOfVariances(),
        budget=rp.Budget(rho=0.5),
    )
    query = np.ones(n)
    query[-1] = 0
    total, residual = plan.sigma_squared.floats
    expected = residual * (1 - 1 / n) + total * (1 - 1 / n) ** 2
    assert plan.query_variance("a", where={"a": query}) == pytest.approx(expected, rel=1e-9)


# ---- attributes in other bases than single values


def check_asked_against_dense(plan, seed):
    """Cost, cells by bases, single values, their covariances, queries, margins."""
    workload, closure = plan.workload, plan.closure
    noise = plan.sigma_squared.floats
    information = generalised.precision(closure, noise)
    cost = plan.privacy_cost / plan.budget.records_factor
    assert np.diag(information).max() == pytest.approx(cost, rel=1e-9)
    covariance = np.linalg.pinv(information, hermitian=True, rcond=1e-11)
    dense = generalised.all_variances(workload, closure, noise)
    sizes = workload.domain.sizes.tolist()
    for row, table in enumerate(workload.tables):
        scale = dense[row].max()
        result = plan.cell_standard_errors(table) ** 2
        np.testing.assert_allclose(result, dense[row], rtol=1e-7, atol=1e-9 * scale)
        assert plan.mean_variances[row] == pytest.approx(dense[row].mean(), rel=1e-7)
        assert plan.largest_standard_errors[row] ** 2 == pytest.approx(scale, rel=1e-7)
        assert plan.margin_of_error(table) == pytest.approx(norm.isf(0.025) * scale**0.5)
        indices = workload.domain.positions(table)
        marginal = oracles.marginal_matrix(sizes, indices)
        of_values = marginal @ covariance @ marginal.T
        shape = [sizes[index] for index in indices]
        variances = plan.marginal_noise(indices).variances
        np.testing.assert_allclose(variances, np.diag(of_values).reshape(shape), rtol=1e-7)
        if any(index in closure.strategies for index in indices):
            assert plan.largest_variance(table) == pytest.approx(np.diag(of_values).max(), rel=1e-7)
        cells = [dict(zip(table, cell, strict=True)) for cell in np.ndindex(*shape)]
        pairs = [[plan.covariance(table, one, other) for other in cells] for one in cells[:4]]
        atol = 1e-8 * np.diag(of_values).max()
        np.testing.assert_allclose(pairs, of_values[:4], rtol=1e-7, atol=atol)
        query = random_query(plan, table, seed)
        vector = oracles.kron(query[name][:, None] for name in table)[:, 0]
        expected = vector @ of_values @ vector
        assert plan.query_variance(table, where=query) == pytest.approx(expected, rel=1e-6)
        # A row of the table as a query on its values.
        row_query = {
            name: generalised.basis_matrix(
                workload.basis_of(row, index), workload.domain.attributes[index]
            )[-1]
            for name, index in zip(table, indices, strict=True)
        }
        last = dense[row][(-1,) * len(table)]
        result = plan.query_variance(table, where=row_query)
        assert result == pytest.approx(last, rel=1e-6, abs=1e-9 * scale)


@given(
    generalised.workloads_with_bases(max_attributes=3, max_cells=60),
    st.sampled_from([rp.SumOfVariances("cells"), rp.MaxVariance()]),
    st.integers(0, 2**32),
)
@settings(deadline=None, max_examples=50)
def test_plans_of_any_bases_against_dense_matrices(workload, loss, seed):
    check_asked_against_dense(generalised.any_plan(workload, seed, loss=loss), seed)


@given(generalised.workloads_with_bases(max_attributes=3, max_cells=60), st.integers(0, 2**32))
@settings(deadline=None, max_examples=30)
def test_marginals_within_tables_of_any_bases(workload, seed):
    plan = generalised.any_plan(workload, seed)
    noise = plan.sigma_squared.floats
    covariance = generalised.cell_covariance(plan.closure, noise)
    sizes = workload.domain.sizes.tolist()
    for table in workload.tables:
        for subset in oracles.subsets(workload.domain.positions(table)):
            marginal = oracles.marginal_matrix(sizes, subset)
            dense = np.diag(marginal @ covariance @ marginal.T)
            result = plan.marginal_noise(subset).variances
            np.testing.assert_allclose(result.ravel(), dense, rtol=1e-7)


def test_a_query_without_noise_has_no_negative_variance():
    """The total, which residuals have no part in: their share must not round to below zero."""
    n = 60
    workload = rp.Workload.of(rp.Domain.from_sizes({"a": n}), ["a"]).with_bases({"a": rp.Ranges()})
    plan = generalised.any_plan(workload, 1)
    everyone, nobody = {"a": np.ones(n)}, {"a": np.zeros(n)}
    total = plan.sigma_squared.floats[0]
    assert plan.query_variance("a", where=everyone) == pytest.approx(total, rel=1e-12)
    assert plan.query_variance("a", where=everyone) >= total * (1 - 1e-15)
    assert plan.query_variance("a", where=nobody) == 0


# ---- identities of the method (RP)


@pytest.mark.parametrize("n", [2, 3, 7])
def test_sub_matrix(n):
    matrix = oracles.sub(n)
    np.testing.assert_allclose(matrix @ np.ones(n), 0, atol=1e-15)
    inverse = np.vstack([np.ones((1, n - 1)), np.ones((n - 1, n - 1)) - n * np.eye(n - 1)]) / n
    np.testing.assert_allclose(np.linalg.pinv(matrix), inverse, atol=1e-14)


@pytest.mark.parametrize("sizes", [(3, 2, 4), (2, 2), (5,)])
def test_residuals_are_orthogonal_and_give_every_marginal(sizes):
    everything = oracles.subsets(range(len(sizes)))
    matrices = {subset: oracles.residual_matrix(sizes, subset) for subset in everything}
    for one in everything:
        for other in everything:
            if one != other:
                np.testing.assert_allclose(matrices[one] @ matrices[other].T, 0, atol=1e-13)
    assert sum(len(matrix) for matrix in matrices.values()) == np.prod(sizes)
    for table in everything:
        rebuilt = np.zeros((1, 1))
        for subset in oracles.subsets(table):
            factors = [
                np.linalg.pinv(oracles.sub(n)) if i in subset else np.full((n, 1), 1 / n)
                for i, n in enumerate(sizes)
                if i in table
            ]
            rebuilt = rebuilt + oracles.kron(factors) @ matrices[subset]
        np.testing.assert_allclose(rebuilt, oracles.marginal_matrix(sizes, table), atol=1e-12)


@pytest.mark.parametrize("sizes", [(3, 2, 4), (2, 2), (5,)])
def test_privacy_cost_of_a_base_mechanism(sizes):
    for subset in oracles.subsets(range(len(sizes))):
        matrix = oracles.residual_matrix(sizes, subset)
        cost = matrix.T @ np.linalg.solve(oracles.residual_covariance(sizes, subset), matrix)
        expected = np.prod([(sizes[i] - 1) / sizes[i] for i in subset])
        np.testing.assert_allclose(np.diag(cost), expected, rtol=1e-12)


# ---- intervals and refusals


@pytest.fixture
def plan():
    domain = rp.Domain.from_sizes({"a": 3, "b": 4, "c": 2})
    workload = rp.Workload.of(domain, [("a", "b"), "c"])
    return plan_tables(workload, loss=rp.SumOfVariances(), budget=rp.Budget(rho=0.5))


def test_margin_of_error(plan):
    error = np.sqrt(plan.largest_variance(("a", "b")))
    assert plan.margin_of_error(("a", "b")) == pytest.approx(1.959963984540054 * error, rel=1e-12)
    for confidence in (1e-6, 0.5, 0.9, 0.99, 1 - 1e-12):
        expected = norm.isf((1 - confidence) / 2) * error
        assert plan.margin_of_error("a", "b", confidence=confidence) == pytest.approx(
            expected, rel=1e-9
        )


@pytest.mark.parametrize("confidence", [0, 1, -0.1, 95, float("nan")])
def test_unusable_confidence(plan, confidence):
    with pytest.raises(WorkloadError, match=f"between 0 and 1, got {confidence}"):
        plan.margin_of_error("a", confidence=confidence)


def test_marginal_that_no_table_contains(plan):
    with pytest.raises(WorkloadError, match="no table with these attributes together"):
        plan.largest_variance(("a", "c"))
    with pytest.raises(DomainError, match="no attribute 'z'"):
        plan.largest_variance(("a", "z"))


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"c": [1, 0]}, r"table \(a × b\) does not have the attribute 'c'"),
        ({"a": [1, 0]}, r"'a' must be 3 finite numbers.* got the shape \(2,\)"),
        ({"a": 1}, r"'a' must be 3 finite numbers.* got the shape \(\)"),
        ({"a": [1, 0, float("nan")]}, r"'a' must be 3 finite numbers"),
        ({"a": ["x", 0, 0]}, r"'a' must be 3 finite numbers"),
    ],
)
def test_unusable_query(plan, query, message):
    with pytest.raises(WorkloadError, match=message):
        plan.query_variance(("a", "b"), where=query)


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ({"a": 0}, r"which value of 'b'"),
        ({"a": 3, "b": 0}, r"index of 'a' must be a whole number from 0 to 2, got 3"),
        ({"a": -1, "b": 0}, r"index of 'a' must be a whole number from 0 to 2, got -1"),
        ({"a": 1.0, "b": 0}, r"index of 'a' must be a whole number from 0 to 2, got 1.0"),
        ({"a": True, "b": 0}, r"index of 'a' must be a whole number from 0 to 2, got True"),
        ({"a": 0, "b": 0, "c": 0}, r"'c' is not in the table"),
    ],
)
def test_unusable_cell(plan, cell, message):
    for left, right in ((cell, {"a": 0, "b": 0}), ({"a": 0, "b": 0}, cell)):
        with pytest.raises(WorkloadError, match=message):
            plan.covariance(("a", "b"), left, right)
