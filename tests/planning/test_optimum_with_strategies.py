"""Plans with the strategies of another plan."""

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.planning.planner import optimum, optimum_with_strategies_of
from tests.analysis.bases import MARGINALS, SCENARIO


@pytest.fixture(scope="module")
def solved():
    return optimum(SCENARIO.workload, loss=SCENARIO.loss)


@pytest.mark.parametrize("loss", [rp.SumOfVariances("cells"), rp.MaxVariance()], ids=repr)
def test_other_losses_are_solved_with_the_same_strategies(solved, loss):
    other = optimum_with_strategies_of(solved, solved.workload, loss)
    assert other.closure.strategies == solved.closure.strategies
    again = optimum(solved.workload, loss=loss, strategies=solved.closure.strategies)
    np.testing.assert_allclose(other.mean_variances, again.mean_variances, rtol=1e-5)
    assert loss.value(other.table_variances.of_loss(loss), other.workload) <= (
        1 + 1e-6
    ) * loss.value(solved.table_variances.of_loss(loss), solved.workload)


def test_what_is_newly_asked_is_searched_for():
    before = optimum(MARGINALS.workload, loss=rp.SumOfVariances())
    after = optimum_with_strategies_of(before, SCENARIO.workload, rp.SumOfVariances())
    assert sorted(after.closure.strategies) == [0, 2, 3]
