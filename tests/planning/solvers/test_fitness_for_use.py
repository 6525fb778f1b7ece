"""Fitness for use: against CVXPY, closed forms and marginals, with a certificate that is honest."""

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rpexplore as rp
from rpexplore.planning.planner import plan_tables
from rpexplore.planning.solvers import queries as queries_solver
from rpexplore.planning.solvers.queries import (
    FactoredQueries,
    QueryRoot,
    cost_bound,
    decoding,
    fitness_for_use,
)
from rpexplore.planning.solvers.solution import share_done
from tests.support.oracles import marginal_matrix
from tests.support.query_lists import (
    age_pyramid,
    binary_hierarchy,
    identity_and_sum,
    marginals,
    prefix,
    ranges,
)


def least_cost_by_cvxpy(queries, targets) -> float:
    """min max diag X with w X⁺ wᵀ ≤ target², as a semidefinite programme."""
    n = queries.shape[1]
    covered, cost = cp.Variable((n, n), PSD=True), cp.Variable()
    constraints = [cp.diag(covered) <= cost]
    for query, target in zip(queries / targets[:, None], targets, strict=True):
        assert target > 0
        column = query[:, None]
        constraints.append(cp.bmat([[covered, column], [column.T, np.eye(1)]]) >> 0)
    problem = cp.Problem(cp.Minimize(cost), constraints)
    problem.solve(solver=cp.CLARABEL)
    return float(cost.value)


def random_queries(seed):
    """Small lists of any kind: dependent rows and columns, cells not asked, targets far apart."""
    rng = np.random.default_rng(seed)
    n, count = int(rng.integers(1, 7)), int(rng.integers(1, 9))
    queries = rng.integers(-2, 3, (count, n)).astype(float)
    if seed % 3 == 0:
        queries = ranges(n, count, rng)
    if seed % 4 == 0:
        queries[:, 0] = queries[:, -1]
    queries[~queries.any(axis=1), -1] = 1
    return queries, 10 ** rng.uniform(-1, 1, count)


def dense_variances(matrix, queries):
    """w (RᵀR)⁺ wᵀ, from the definition."""
    return np.einsum("ij,jk,ik->i", queries, np.linalg.pinv(matrix.T @ matrix), queries)


@pytest.mark.by_day(6)
@pytest.mark.parametrize("seed", range(24))
def test_equals_the_semidefinite_optimum(seed):
    queries, targets = random_queries(seed)
    fitness = fitness_for_use(queries, targets, 1e-6)
    optimum = least_cost_by_cvxpy(queries, targets)
    assert fitness.gap <= 1.1e-6
    assert fitness.cost == pytest.approx(optimum, rel=2e-5)
    assert fitness.lower_bound <= optimum * (1 + 2e-5)


@pytest.mark.by_day(6)
@pytest.mark.parametrize("seed", range(24))
def test_variances_and_cost_follow_from_the_matrix(seed):
    queries, targets = random_queries(seed)
    fitness = fitness_for_use(queries, targets)
    matrix = fitness.matrix
    assert len(matrix) == np.linalg.matrix_rank(queries)
    assert np.max(np.sum(matrix**2, axis=0)) == pytest.approx(1, rel=1e-12)
    np.testing.assert_allclose(fitness.variances, dense_variances(matrix, queries), rtol=1e-6)
    assert fitness.cost == pytest.approx(np.max(fitness.variances / targets**2), rel=1e-12)
    touched = queries.any(axis=0)
    assert not matrix[:, ~touched].any(), "nothing is measured of what is not asked"
    assert not fitness.cell_weights[~touched].any()
    for weights in (fitness.shadow_prices, fitness.cell_weights):
        assert np.sum(weights) == pytest.approx(1, rel=1e-12)
        assert np.all(weights >= 0)


@given(st.integers(0, 10**6))
@settings(deadline=None, max_examples=40)
def test_any_weights_give_a_bound(seed):
    """Below the cost of any measurement whatever."""
    rng = np.random.default_rng(seed)
    queries, targets = random_queries(seed % 1000)
    count, n = queries.shape
    prices, weights = rng.exponential(size=count) ** 3, rng.exponential(size=n) ** 3
    bound = cost_bound(queries, targets, prices, weights)
    assert bound == pytest.approx(cost_bound(queries, targets, 7 * prices, 3 * weights), rel=1e-12)
    assert bound <= fitness_for_use(queries, targets).cost
    measured = rng.normal(size=(n, n))
    largest = np.max(np.sum(measured**2, axis=0))
    cost = largest * np.max(dense_variances(measured, queries) / targets**2)
    assert bound <= cost * (1 + 1e-9)


@pytest.mark.parametrize("n", [2**power for power in range(1, 9)])
def test_identity_and_sum_has_a_closed_form(n):
    fitness = fitness_for_use(identity_and_sum(n), np.ones(n + 1), 1e-6)
    assert fitness.lower_bound <= 2 * n / (n + 1) * (1 + 1e-12)
    assert fitness.cost == pytest.approx(2 * n / (n + 1), rel=2e-6)


def test_the_root_is_the_one_of_the_definition():
    """T, X and q of docs/mathematics.md §8, with dense roots, for weights not optimal."""
    rng = np.random.default_rng(5)
    queries, targets = marginals((2, 3), 1), rng.uniform(1, 3, 6)
    factored = FactoredQueries.of(queries, targets)
    dense = factored.answers @ factored.cells
    np.testing.assert_allclose(dense, queries / targets[:, None], atol=1e-14)
    at = QueryRoot(factored, rng.normal(size=12))
    halves, scaled = np.sqrt(at.weights[:6]), queries / targets[:, None]
    inner = halves[:, None] * (scaled.T * at.weights[6:]) @ scaled * halves
    squares, vectors = np.linalg.eigh(inner)
    root = (vectors * np.sqrt(np.maximum(squares, 0))) @ vectors.T
    covered = root / np.outer(halves, halves)
    assert at.root == pytest.approx(np.trace(root), rel=1e-6)
    np.testing.assert_allclose(at.strategy.T @ at.strategy, covered, rtol=1e-4, atol=1e-5)
    variances = np.diag(scaled @ np.linalg.pinv(covered, rcond=1e-5, hermitian=True) @ scaled.T)
    ratios = np.concatenate([np.diag(covered), variances]) / at.root
    np.testing.assert_allclose(at.ratios, ratios, rtol=1e-4)


@pytest.mark.parametrize("seed", range(3))
def test_slopes_and_curvature_of_the_root(seed):
    """By finite differences along random directions, in double precision and in single."""
    rng = np.random.default_rng(seed)
    queries = ranges(7, 9, rng)
    factored = FactoredQueries.of(queries, rng.uniform(1, 3, 9))
    count = factored.n_cells + 9
    logs, step = 0.5 * rng.normal(size=count), 1e-4
    at = QueryRoot(factored, logs)
    product = at.curvature(np.arange(count))
    curvature = np.column_stack([product(unit) for unit in np.eye(count)])
    np.testing.assert_allclose(curvature, curvature.T, atol=1e-15)
    np.testing.assert_allclose(np.diag(curvature), at.curvature_diagonal(), rtol=1e-12)
    assert np.linalg.eigvalsh(curvature).min() > -1e-12
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(queries_solver, "_MANY", 0)
        some = np.array([1, 8, 11])
        rough = np.column_stack([at.curvature(some)(unit) for unit in np.eye(3)])
    np.testing.assert_allclose(rough, curvature[np.ix_(some, some)], atol=1e-6)
    for _ in range(5):
        # Directions that keep both sums, to first order and to second.
        direction = rng.normal(size=count)
        for part in (slice(0, factored.n_cells), slice(factored.n_cells, count)):
            weights = at.weights[part]
            direction[part] -= weights @ direction[part]
        values = []
        for sign in (1, 0, -1):
            moved = at.state + sign * step * direction
            sums = [np.log(np.exp(part).sum()) for part in np.split(moved, [factored.n_cells])]
            # The root is homogeneous of degree ½ in each kind of weights.
            values.append(QueryRoot(factored, moved).root * np.exp(sum(sums) / 2))
        slope = (values[0] - values[2]) / (2 * step)
        assert slope == pytest.approx(at.root * at.shares @ direction / 2, rel=1e-5, abs=1e-7)
        second = (values[0] - 2 * values[1] + values[2]) / step**2
        curved = at.shares @ direction**2 - direction @ curvature @ direction
        scale = at.root * at.shares @ direction**2
        assert second == pytest.approx(at.root * curved / 2, abs=1e-5 * scale)


@pytest.mark.by_day(1)
@pytest.mark.parametrize("seed", range(3))
def test_shadow_prices_are_elasticities(seed):
    rng = np.random.default_rng(seed)
    queries, targets, step = ranges(6, 8, rng), rng.uniform(1, 2, 8), 0.01
    prices = fitness_for_use(queries, targets, 1e-6).shadow_prices
    for query in range(len(queries)):
        bounds = []
        for sign in (1, -1):
            moved = targets.copy()
            moved[query] *= np.exp(-sign * step / 2)  # the target variance by a step
            bounds.append(fitness_for_use(queries, moved, 1e-6).cost)
        slope = np.log(bounds[0] / bounds[1]) / (2 * step)
        assert slope == pytest.approx(prices[query], abs=5e-3)


@pytest.mark.parametrize("sizes", [(3, 4), (2, 3, 4), (5, 1, 3)])
@pytest.mark.parametrize("order", [1, 2])
def test_marginals_cost_what_residual_planner_does(sizes, order):
    """With one target in each table its plan is the best there is."""
    domain = rp.Domain.from_sizes({f"a{index}": size for index, size in enumerate(sizes)})
    workload = rp.Workload.all_up_to(domain, order)
    rng = np.random.default_rng(order)
    workload = rp.Workload.of(
        domain, workload.tables, targets=rng.uniform(1, 4, len(workload)).tolist()
    )
    plan = plan_tables(workload, loss=rp.MaxVariance("target"), budget=rp.Budget(privacy_cost=1))
    subsets = [workload.attribute_indices(table) for table in range(len(workload))]
    queries = [marginal_matrix(sizes, kept) for kept in subsets]
    targets = np.repeat(workload.targets, [len(matrix) for matrix in queries])
    fitness = fitness_for_use(np.vstack(queries), targets)
    assert fitness.gap <= 1e-4
    assert fitness.lower_bound <= plan.loss_value * (1 + 1e-9)
    assert fitness.cost >= plan.certificate.lower_bound * (1 - 1e-9)
    assert fitness.cost == pytest.approx(plan.loss_value, rel=1e-4)


def demanding():
    rng = np.random.default_rng(0)
    pyramid, pyramid_targets = age_pyramid(40)
    yield "ranges", ranges(64, 130, rng), rng.uniform(1, 5, 130)
    yield "few ranges", ranges(64, 20, rng), rng.uniform(1, 5, 20)
    yield "hierarchy", binary_hierarchy(64), rng.uniform(1, 10, 127)
    yield "age pyramid", pyramid, pyramid_targets
    yield "PL 94-171", marginals((2, 2, 20), 3), np.ones(189)
    for sizes in ((2, 2, 2), (2, 5, 8), (6, 5, 4)):
        queries = marginals(sizes, 2)
        yield f"marginals {sizes}", queries, np.ones(len(queries))
        yield f"marginals {sizes}, targets of all sizes", queries, rng.uniform(1, 20, len(queries))
    yield "targets far apart", ranges(32, 90, rng), 10 ** rng.uniform(-4, 4, 90)
    yield "coefficients far apart", 10 ** rng.uniform(-3, 3, (20, 12)), np.ones(20)


@pytest.mark.by_day(7)
@pytest.mark.parametrize(
    ("queries", "targets"), [pytest.param(*case, id=name) for name, *case in demanding()]
)
def test_the_gap_closes(queries, targets):
    fitness = fitness_for_use(queries, targets)
    assert fitness.gap <= 1.5e-4
    decoded = decoding(fitness.matrix, queries)
    largest = np.abs(queries).max(axis=1, keepdims=True)
    np.testing.assert_allclose(decoded @ fitness.matrix / largest, queries / largest, atol=1e-9)


@pytest.mark.parametrize("worse", [2.0, 5.0])
def test_budget_that_the_targets_do_not_need_is_left_unused(worse):
    """A cell wanted less accurately: its count needs 1/worse² of the budget."""
    fitness = fitness_for_use(np.eye(3), np.array([1.0, 1.0, worse]))
    assert fitness.gap <= 1e-4
    profile = np.sum(fitness.matrix**2, axis=0)
    np.testing.assert_allclose(profile[:2], 1, rtol=1e-3)
    assert worse**-2 * (1 - 1e-3) <= profile[2] <= worse**-2 + 0.03


def test_targets_scale_the_cost():
    queries, targets = ranges(8, 12, np.random.default_rng(0)), np.linspace(1, 2, 12)
    ones, tens = (fitness_for_use(queries, targets * factor) for factor in (1, 10))
    assert tens.cost == pytest.approx(ones.cost / 100, rel=1e-9)


def test_one_cell_and_one_query():
    fitness = fitness_for_use(np.array([[-3.0]]), np.array([2.0]))
    assert fitness.cost == pytest.approx(9 / 4, rel=1e-12)
    assert fitness.gap <= 1e-12


def test_it_tells_how_far_it_is_and_can_be_stopped():
    queries, targets = marginals((2, 3, 4), 2), np.random.default_rng(0).uniform(1, 20, 36)
    shares = []
    fitness = fitness_for_use(queries, targets, on_progress=lambda _, share: shares.append(share))
    assert len(shares) > 24, "Newton's method was needed"
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(share_done(fitness.gap), rel=1e-3)

    class Stopped(Exception):
        pass

    def stop(doing, share):
        raise Stopped

    with pytest.raises(Stopped):
        fitness_for_use(queries, targets, on_progress=stop)


def test_a_gap_that_stays_is_stated():
    """Nothing can come nearer than rounding: the best is returned with what is proven."""
    fitness = fitness_for_use(prefix(8), np.ones(8), 1e-15)
    assert 0 < fitness.gap < 1e-5
