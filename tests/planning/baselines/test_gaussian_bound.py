"""The bound for all Gaussian mechanisms, beside their optimum by dense matrices."""

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.planning.baselines.gaussian_bound import gaussian_bound
from rpexplore.planning.planner import optimum
from tests.planning.test_levels import random_family
from tests.support.explicit_optimum import dense_queries, lower_bound

MODULE = "rpexplore.planning.baselines.gaussian_bound"


def asked(sizes, bases, order):
    names = [f"a{i}" for i in range(len(sizes))]
    domain = rp.Domain.from_sizes(dict(zip(names, sizes, strict=True)))
    return rp.Workload.all_up_to(domain, order).with_bases(dict(zip(names, bases, strict=True)))


GROUPS = rp.CustomBasis([[1, 1, 0, 0, 0], [0, 1, 1, 1, 0]])  # neither all values nor the total
SEVERAL = asked([6, 3, 4], [rp.Prefix(), rp.Identity(), rp.Hierarchy((2,))], 2).with_bases(
    {"a0": rp.Ranges()}, tables=[("a0", "a1")]
)

# Its pairs have 9,801 coordinates that no directions can be cut off: two bases an attribute.
LARGE = (
    asked([100, 100, 2], [rp.Prefix(), rp.Prefix(), rp.Identity()], 2)
    .with_bases({"a0": rp.Ranges()}, tables=[("a0",)])
    .with_bases({"a1": rp.Ranges()}, tables=[("a1",)])
)


@pytest.mark.by_day(2)
@pytest.mark.parametrize(
    ("tables", "within"),
    [
        (asked([8, 8], [rp.Prefix(), rp.Prefix()], 1), 0.01),
        (asked([6, 5, 4, 3], [rp.Prefix(), rp.Ranges(), rp.Identity(), rp.Windows(2)], 2), 0.01),
        (asked([6, 1, 4], [rp.Prefix(), rp.Prefix(), rp.Identity()], 3), 0.001),
        (asked([5, 4, 3], [GROUPS, rp.Identity(), rp.Prefix()], 2), 0.01),
        (SEVERAL, 0.01),
    ],
)
def test_the_bound_is_below_the_optimum_and_near_it(tables, within):
    rng = np.random.default_rng(1)
    for weights in (np.ones(len(tables)), rng.uniform(0, 3, len(tables))):
        weighted = tables.with_weights(dict(zip(tables.tables, weights.tolist(), strict=True)))
        solved = optimum(weighted, loss=rp.SumOfVariances())
        bound = gaussian_bound(tables, solved.closure, weights)
        queries, of_tables = dense_queries(tables)
        of_queries = (weights / tables.cells)[of_tables]
        exact = lower_bound((queries * of_queries[:, None]).T @ queries, 1e-4)
        assert bound is not None
        assert exact * (1 - within) <= bound <= exact * (1 + 1e-4)


@pytest.mark.parametrize("joined", [0, 1, 2])
def test_what_is_lost_by_cutting_directions_is_taken_off(joined, monkeypatch):
    """With fewer directions joined it is lower, and it is a bound whatever is cut."""
    monkeypatch.setattr(f"{MODULE}._MOST_WORK_OF_BLOCKS", 0)
    monkeypatch.setattr(f"{MODULE}._JOINED", (joined,))
    tables = asked([8, 7, 4], [rp.Prefix(), rp.Ranges(), rp.Identity()], 3)
    closure, weights = optimum(tables, loss=rp.SumOfVariances()).closure, np.ones(len(tables))
    queries, of_tables = dense_queries(tables)
    exact = lower_bound((queries / tables.cells[of_tables, None]).T @ queries, 1e-3)
    bound = gaussian_bound(tables, closure, weights)
    assert bound is not None
    assert exact * [0.8, 0.95, 0.98][joined] < bound < exact * [0.95, 0.99, 0.9995][joined]


def test_tables_at_several_levels_have_a_bound():
    for seed in (9, 16):
        tables = random_family(seed)
        weights = np.random.default_rng(seed).uniform(0.3, 3, len(tables))
        closure = optimum(tables, loss=rp.SumOfVariances()).closure
        queries, of_tables = dense_queries(tables)
        of_queries = (weights / tables.cells)[of_tables]
        exact = lower_bound((queries * of_queries[:, None]).T @ queries, 1e-4)
        bound = gaussian_bound(tables, closure, weights)
        assert bound is not None
        assert 0.99 * exact < bound <= exact * (1 + 1e-4)


def test_there_is_none_where_it_would_take_long():
    closure = optimum(LARGE, loss=rp.SumOfVariances()).closure
    assert gaussian_bound(LARGE, closure, np.ones(len(LARGE))) is None


def test_large_plans_are_proven_within_a_hundredth():
    """All pairs of five attributes, three of them cumulative: 756,000 cells."""
    bases = [rp.Prefix(), rp.Prefix(), rp.Prefix(), rp.Identity(), rp.Identity()]
    tables = asked([40, 35, 30, 9, 2], bases, 2)
    plan = rp.plan(tables, loss=rp.SumOfVariances(), budget=rp.Budget(privacy_cost=1))
    compared = rp.compare(plan)
    assert 0.995 < compared.least_share < 1
    assert "does better by more than 0.5 %" in compared.bound_sentence
