"""The bound for all Gaussian mechanisms, beside their optimum by dense matrices."""

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.planning.baselines.gaussian_bound import gaussian_bound
from rpexplore.planning.planner import optimum
from tests.support.explicit_optimum import dense_queries, lower_bound


def asked(sizes, bases, order):
    names = [f"a{i}" for i in range(len(sizes))]
    domain = rp.Domain.from_sizes(dict(zip(names, sizes, strict=True)))
    return rp.Workload.all_up_to(domain, order).with_bases(dict(zip(names, bases, strict=True)))


GROUPS = rp.CustomBasis([[1, 1, 0, 0, 0], [0, 1, 1, 1, 0]])  # neither all values nor the total
SEVERAL = asked([6, 3, 4], [rp.Prefix(), rp.Identity(), rp.Hierarchy((2,))], 2).with_bases(
    {"a0": rp.Ranges()}, tables=[("a0", "a1")]
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


def test_there_is_none_where_it_would_take_long():
    tables = asked([100, 100, 2], [rp.Prefix(), rp.Prefix(), rp.Identity()], 2)
    closure = optimum(tables, loss=rp.SumOfVariances()).closure
    assert gaussian_bound(tables, closure, np.ones(len(tables))) is None
