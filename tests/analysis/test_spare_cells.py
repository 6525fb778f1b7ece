"""Free extra queries: what they give, and that they really are free."""

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.analysis.spare_cells import free_standard_error, spare_cells
from rpexplore.errors import WorkloadError
from rpexplore.queries.planner import query_plan
from tests.support.query_lists import query_list

# The third cell is asked for less accurately than the others, and the fourth not at all.
ROWS = [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]]


@pytest.fixture(scope="module")
def plan():
    budget = rp.Budget(privacy_cost=4, max_records_per_person=2)
    return query_plan(query_list(ROWS, [1, 1, 2]), budget=budget)


def test_what_counting_spare_cells_gives(plan):
    """Of privacy cost 1 for a record the first two cells use all, the third about a quarter."""
    np.testing.assert_allclose(plan.profile, [1, 1, 0.25, 0], rtol=1e-3, atol=0.03)
    used = plan.profile[2]
    found = spare_cells(plan)
    assert found["cell"].tolist() == ["2", "3"]
    np.testing.assert_allclose(found["profile"], [used, 0])
    np.testing.assert_allclose(found["spare_cost"], [1 - used, 1], rtol=1e-9)
    np.testing.assert_allclose(found["standard_error"], [1 / np.sqrt(1 - used), 1], rtol=1e-9)
    present = [1 / np.sqrt(used), np.nan]
    np.testing.assert_allclose(found["present_standard_error"], present, rtol=1e-6)
    np.testing.assert_allclose(found["combined_standard_error"], [1, 1], rtol=1e-6)


def test_together_they_cost_no_record_more(plan):
    """The privacy cost matrix of plan and extra counts, from the definition."""
    found = spare_cells(plan)
    places = np.flatnonzero(plan.spare)
    integers = plan.strategy.integers.astype(float)
    cost = integers.T @ integers / float(plan.gamma_squared)
    before = np.max(np.diag(cost))
    extra = cost.copy()
    extra[places, places] += 1 / found["standard_error"] ** 2
    np.testing.assert_allclose(np.diag(extra), before, rtol=1e-9)
    together = np.isin(np.arange(4), places).astype(float)
    extra = cost + np.outer(together, together) / free_standard_error(plan, places) ** 2
    assert np.max(np.diag(extra)) == pytest.approx(before, rel=1e-9)


def test_combining_is_least_squares(plan):
    found = spare_cells(plan)
    integers = plan.strategy.integers.astype(float)
    information = integers.T @ integers / float(plan.gamma_squared)
    information[2, 2] += 1 / found["standard_error"][0] ** 2
    variance = np.linalg.inv(information[:3, :3])[2, 2]
    assert found["combined_standard_error"][0] ** 2 == pytest.approx(variance, rel=1e-3)


def test_only_cells_with_unused_budget(plan):
    assert free_standard_error(plan, [3]) == pytest.approx(1, rel=1e-9)
    with pytest.raises(WorkloadError, match="the cell '0' has none"):
        free_standard_error(plan, [0, 2])
    with pytest.raises(WorkloadError, match="got none"):
        free_standard_error(plan, [])


def test_where_all_is_used_there_is_nothing():
    plan = query_plan(query_list(np.eye(3)), budget=rp.Budget(rho=1))
    found = spare_cells(plan)
    assert len(found) == 0
    assert list(found) == [
        "cell",
        "profile",
        "spare_cost",
        "standard_error",
        "present_standard_error",
        "combined_standard_error",
    ]
