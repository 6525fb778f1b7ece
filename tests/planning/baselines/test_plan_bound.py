"""The bound for all Gaussian mechanisms that a plan gives, beside dense matrices."""

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.planning.baselines.plan_bound import plan_bound
from rpexplore.planning.baselines.residual_bound import residual_bound
from rpexplore.planning.planner import optimum
from tests.planning.baselines.test_gaussian_bound import GROUPS, LARGE, SEVERAL, asked
from tests.planning.test_levels import random_family
from tests.support.explicit_optimum import dense_queries, lower_bound


@pytest.mark.parametrize(
    ("tables", "within"),
    [
        (asked([8, 8], [rp.Prefix(), rp.Prefix()], 1), 0.06),
        (asked([6, 5, 3], [rp.Prefix(), rp.Ranges(), rp.Identity()], 2), 0.03),
        (asked([6, 1, 4], [rp.Prefix(), rp.Prefix(), rp.Identity()], 3), 0.01),
        (asked([5, 4, 3], [GROUPS, rp.Identity(), rp.Prefix()], 2), 0.1),
        (SEVERAL, 0.11),  # ranges, prefix sums and hierarchies by turns: weaker
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


def test_it_is_stated_where_the_other_bound_would_take_long():
    whole = rp.plan(LARGE, loss=rp.SumOfVariances(), budget=rp.Budget(privacy_cost=1))
    plan = whole.part("tables")
    weights = plan.loss.table_weights(LARGE)
    bound = plan_bound(LARGE, plan.closure, plan.sigma_squared.floats, weights)
    assert bound is not None
    assert rp.compare(whole).least_share == pytest.approx(bound / plan.loss_value, rel=1e-9)
    assert 0.8 < bound / plan.loss_value < 1


def test_both_ways_of_adding_up_agree():
    """Where all residuals are measured alike, sums over triples of residuals are the other ones."""
    weights = np.random.default_rng(3).uniform(0.2, 3, len(SEVERAL))
    by_residual = optimum(SEVERAL, loss=rp.SumOfVariances()).closure
    assert by_residual.residual_moments
    strategies = by_residual.without_own_matrices
    alike = optimum(SEVERAL, loss=rp.SumOfVariances(), strategies=strategies)
    noise = np.exp(np.random.default_rng(2).normal(size=len(alike.closure)))
    bounds = [
        bound(SEVERAL, alike.closure, noise, weights) for bound in (plan_bound, residual_bound)
    ]
    assert bounds[0] == pytest.approx(bounds[1], rel=1e-3)
