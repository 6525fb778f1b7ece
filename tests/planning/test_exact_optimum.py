"""Plans for prefix sums and ranges against the exact optimum of all Gaussian mechanisms."""

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.planning.planner import plan_tables
from tests.support.explicit_optimum import dense_queries, lower_bound

NIGHT = pytest.mark.nightly
# By day two and three attributes of different sizes; by night larger ones, and equal sizes.
SIZES = {(3, 9): (), (3, 4, 5): (), **dict.fromkeys([(8, 8), (10, 5), (4, 5, 6), (6, 6, 6)], NIGHT)}
CASES = [
    pytest.param(
        *(sizes, basis, k),
        id=f"{basis.kind} {'×'.join(map(str, sizes))} {k}-way",
        marks=marks,
    )
    for sizes, marks in SIZES.items()
    for basis in (rp.Prefix(), rp.Ranges())
    for k in range(1, len(sizes) + 1)
]


def with_basis(sizes, basis, k):
    names = [f"a{i}" for i in range(len(sizes))]
    domain = rp.Domain.from_sizes(dict(zip(names, sizes, strict=True)))
    return rp.Workload.all_of_order(domain, k).with_bases(dict.fromkeys(names, basis))


@pytest.mark.by_day(5)
@pytest.mark.parametrize(("sizes", "basis", "k"), CASES)
def test_close_to_the_exact_optimum(sizes, basis, k):
    """As root mean squared errors: within 0.6 %, and the same where one table has everything."""
    workload = with_basis(sizes, basis, k)
    loss = rp.SumOfVariances("cells")
    plan = plan_tables(workload, loss=loss, budget=rp.Budget(privacy_cost=1))
    queries, _ = dense_queries(workload)
    exact = lower_bound(queries.T @ queries)
    ratio = np.sqrt(plan.loss_value / exact)
    assert 1 - 1e-6 <= ratio <= (1.001 if k == len(sizes) else 1.006)


def test_the_judge_agrees_with_the_published_optimum():
    """FFU Table 2 is for equal variances; here the sum, for two cells and their sum (n = 2)."""
    queries = np.array([[1.0, 0], [1, 1]])
    # By symmetry of the two cells' weights: X = [[1, t], [t, 1]], tr(V X⁻¹) least over t.
    t = np.linspace(-0.99, 0.99, 200_001)
    values = (3 - 2 * t) / (1 - t * t)
    assert lower_bound(queries.T @ queries, 1e-9) == pytest.approx(values.min(), rel=1e-6)
