"""The bound for all Gaussian mechanisms that a plan gives, beside dense matrices."""

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.planning.baselines import residual_bound as by_residual
from rpexplore.planning.baselines.plan_bound import plan_bound
from rpexplore.planning.baselines.residual_bound import _Traces, residual_bound
from rpexplore.planning.planner import optimum
from tests.planning.baselines.test_gaussian_bound import GROUPS, LARGE, SEVERAL, asked
from tests.planning.test_levels import random_family
from tests.support.explicit_optimum import dense_queries, lower_bound
from tests.support.oracles import kron


@pytest.mark.parametrize(
    ("tables", "within"),
    [
        (asked([8, 8], [rp.Prefix(), rp.Prefix()], 1), 0.06),
        (asked([6, 5, 3], [rp.Prefix(), rp.Ranges(), rp.Identity()], 2), 0.03),
        (asked([6, 1, 4], [rp.Prefix(), rp.Prefix(), rp.Identity()], 3), 0.01),
        (asked([5, 4, 3], [GROUPS, rp.Identity(), rp.Prefix()], 2), 0.1),
        (SEVERAL, 0.02),  # ranges and prefix sums by turns
        (random_family(9), 0.01),  # at several levels
        (random_family(16), 0.02),
    ],
)
def test_the_bound_is_below_the_optimum_and_near_it(tables, within):
    rng = np.random.default_rng(1)
    for weights in (np.ones(len(tables)), rng.uniform(0.2, 3, len(tables))):
        weighted = tables.with_weights(dict(zip(tables.tables, weights.tolist(), strict=True)))
        solved = optimum(weighted, loss=rp.SumOfVariances())
        sigma_squared = solved.solution.sigma_squared
        bound = plan_bound(tables, solved.closure, sigma_squared, weights)
        queries, of_tables = dense_queries(tables)
        of_queries = (weights / tables.cells)[of_tables]
        exact = lower_bound((queries * of_queries[:, None]).T @ queries, 1e-3)
        assert bound is not None
        assert exact * (1 - within) <= bound <= exact * (1 + 1e-3)


def test_no_plan_however_bad_has_a_bound_above_the_optimum():
    """The bound holds for any noise, also if that is far from the best."""
    tables = asked([6, 5, 3], [rp.Prefix(), rp.Ranges(), rp.Identity()], 2)
    solved, weights = optimum(tables, loss=rp.SumOfVariances()), np.ones(len(tables))
    best = plan_bound(tables, solved.closure, solved.solution.sigma_squared, weights)
    noise = np.exp(np.random.default_rng(2).normal(size=len(solved.closure)))
    assert plan_bound(tables, solved.closure, noise, weights) < 0.9 * best


def test_it_is_stated_where_the_other_bound_would_take_long(monkeypatch):
    monkeypatch.setattr(by_residual, "_MOST_WORK", 0)  # nor is there time for the search
    whole = rp.plan(LARGE, loss=rp.SumOfVariances(), budget=rp.Budget(privacy_cost=1))
    plan = whole.part("tables")
    weights = plan.loss.table_weights(LARGE)
    bound = plan_bound(LARGE, plan.closure, plan.sigma_squared.floats, weights)
    assert bound is not None
    assert rp.compare(whole).least_share == pytest.approx(bound / plan.loss_value, rel=1e-9)
    assert 0.8 < bound / plan.loss_value < 1


def mixed(seed, sizes):
    """All tables of up to two or three attributes, bases drawn for every table, with weights."""
    rng = np.random.default_rng(seed)
    names = [f"a{i}" for i in range(len(sizes))]
    domain = rp.Domain.from_sizes(dict(zip(names, sizes, strict=True)))
    tables = rp.Workload.all_up_to(domain, int(rng.integers(2, 4)))
    bases = [rp.Identity(), rp.Prefix(), rp.Ranges(), rp.Hierarchy((2,)), rp.Windows(3)]
    for table in tables.tables:
        for name in table:
            tables = tables.with_bases({name: bases[int(rng.integers(5))]}, tables=[table])
    weights = rng.uniform(0.3, 3, len(tables)).tolist()
    return tables.with_weights(dict(zip(tables.tables, weights, strict=True)))


@pytest.mark.parametrize(("seed", "sizes"), [(1, (5, 4, 3)), (2, (6, 4, 4))])
def test_mixed_bases_are_proven_within_three_percent(seed, sizes):
    """Whether or not the plan has strategies by residual, from which the search starts."""
    tables = mixed(seed, sizes)
    queries, of_tables = dense_queries(tables)
    of_queries = (tables.weights / tables.cells)[of_tables]
    exact = lower_bound((queries * of_queries[:, None]).T @ queries, 1e-3)
    own = optimum(tables, loss=rp.SumOfVariances())
    alike = optimum(tables, loss=rp.SumOfVariances(), strategies=own.closure.without_own_matrices)
    for plan in (own, alike):
        sigma_squared = plan.solution.sigma_squared
        bound = plan_bound(tables, plan.closure, sigma_squared, tables.weights)
        assert bound is not None
        assert exact * 0.97 < bound <= exact * (1 + 1e-3)


def dense_log_bound(tables, axes, point, insides):
    """The formula on all cells, with what each attribute has in each residual."""
    cells = np.zeros([int(np.prod(tables.domain.sizes))] * 2)
    for log, (residual, inside) in zip(point.logs, enumerate(insides), strict=True):
        factors = []
        for attribute, (axis, of_axis) in enumerate(zip(axes, point.factors, strict=True)):
            n, w = int(tables.domain.sizes[attribute]), of_axis[residual]
            if axis.is_even:  # the mean, and one direction for all others
                even = np.full((n, n), 1 / n)
                alike = np.eye(n) - even if attribute in inside else even
                factors.append(float(np.sum(w**2)) * alike)
            else:
                factors.append(w @ w.T)
        cells += np.exp(log) * kron(factors)
    of_values = [
        np.full(n, 1 / n) if axis.is_even else weights
        for n, axis, weights in zip(tables.domain.sizes, axes, point.weights, strict=True)
    ]
    weights = kron([one[:, None] for one in of_values]).ravel()
    queries, of_tables = dense_queries(tables)
    gram = (queries * (tables.weights / tables.cells)[of_tables, None]).T @ queries
    squared = gram @ (cells / weights) @ cells @ gram
    return 3 * np.log(np.sum(gram * cells)) - np.log(np.sum(squared * cells))


def test_traces_and_slopes_are_those_of_dense_matrices(monkeypatch):
    """Anywhere in the search, also far from a plan: an attribute of single values among three."""
    tables, rng, caught = SEVERAL, np.random.default_rng(4), []
    monkeypatch.setattr(
        _Traces, "highest", lambda traces, logs, n_steps: caught.append((traces, logs)) or 1.0
    )
    plan = optimum(tables, loss=rp.SumOfVariances())
    residual_bound(tables, plan.closure, plan.solution.sigma_squared, tables.weights)
    traces, logs = caught[0]
    insides = [plan.closure.attributes(residual) for residual in range(len(plan.closure))]
    assert [axis.is_even for axis in traces.axes] == [False, True, False]

    along = traces.along(logs)

    def shapes():
        yield logs.shape
        for axis, of_axis in zip(traces.axes, along, strict=True):
            for move, w in zip(of_axis, axis.factors, strict=True):
                yield (move.shape[1] * w.shape[1],)
        for axis in traces.axes:
            yield axis.weights.shape

    moves = [0.3 * rng.normal(size=shape) for shape in shapes()]
    still = [axis.is_even for axis in traces.axes]
    for place, is_still in enumerate(still):
        if is_still:
            moves[place - len(still)] *= 0
    point = traces._moved_by(logs, along, moves)
    value, slopes = traces.log_bound(point)
    assert value == pytest.approx(dense_log_bound(tables, traces.axes, point, insides), abs=1e-9)
    assert np.log(traces.bound(point)) == pytest.approx(value, abs=1e-6)
    assert traces.bound(point) < np.exp(value)

    step = 1e-5
    ahead, back = (
        traces._moved_by(logs, along, [m * (1 + s) for m in moves]) for s in (step, -step)
    )
    change = sum(
        float(np.sum(slope * (one - other)))
        for of_one, of_other, of_axis in zip(
            ahead.factors, back.factors, slopes.factors, strict=True
        )
        for one, other, slope in zip(of_one, of_other, of_axis, strict=True)
    )
    change += float(slopes.logs @ (ahead.logs - back.logs))
    for one, other, slope in zip(ahead.weights, back.weights, slopes.weights, strict=True):
        change += float(slope @ np.log(one / other))
    expected = traces.log_bound(ahead)[0] - traces.log_bound(back)[0]
    assert change == pytest.approx(expected, rel=1e-6)
