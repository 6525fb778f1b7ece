"""Who has unused budget, and what it is good for."""

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.analysis.queries import describe_profile, profile_of_cells, spare_cells
from rpexplore.planning.counts_planner import query_optimum
from rpexplore.workload.query_definitions import stated_from_text
from rpexplore.workload.query_list import QueryList
from tests.support.query_lists import query_list, query_plan

DOMAIN = rp.Domain.from_sizes({"age": 10, "sex": 2})
SPARING = stated_from_text(DOMAIN, "all: total @ 20\nold men: age >= 8 & sex = 0 @ 5").queries


def plan_of(queries, times=1.0):
    optimum = query_optimum(queries)
    return optimum.at(rp.Budget(privacy_cost=optimum.cost * times * 1.0001))


def test_every_cell_has_its_share():
    plan = plan_of(SPARING)
    frame = profile_of_cells(plan)
    squares = np.sum(plan.strategy.integers.astype(float) ** 2, axis=0)
    assert frame["share"].tolist() == pytest.approx((squares / squares.max()).tolist())
    assert frame["cell"].tolist()[:2] == ["0, 0", "0, 1"]
    assert frame.loc[~frame["spare"], "cell"].tolist() == ["8, 0", "9, 0"]


def test_the_sentence_says_who_is_better_protected():
    plan = plan_of(SPARING)
    sentence = describe_profile(plan, "people")
    assert sentence.startswith("Records in 18 of 20 cells use less of the budget")
    error = spare_cells(plan)["standard_error"].max()
    assert f"with a standard error of {error:.3g} people" in sentence


def test_the_sentence_says_where_nothing_is_left():
    queries = QueryList(DOMAIN, np.eye(20), tuple(map(str, range(20))), np.ones(20))
    assert "nothing left over" in describe_profile(plan_of(queries), "people")


def test_one_spare_cell_is_not_told_of_as_several():
    domain = rp.Domain.from_sizes({"x": 3})
    queries = QueryList(domain, np.eye(3), ("a", "b", "c"), np.array([1.0, 1.0, 5.0]))
    plan = plan_of(queries)
    sentence = describe_profile(plan, "people")
    assert sentence.startswith("Records in 1 of 3 cells use less")
    assert "All of these" not in sentence
    assert f"least in 2, with {100 * plan.strategy.profile[2]:.2g} %" in sentence


@pytest.mark.parametrize("times", [0.5, 1, 3])
def test_free_counts_can_be_added_to_the_list_as_the_page_says(times):
    """With these errors as targets, the same budget meets what it met before."""
    plan = plan_of(SPARING, times)
    free = spare_cells(plan)
    rows = np.eye(20)[np.flatnonzero(plan.strategy.spare)]
    longer = QueryList(
        DOMAIN,
        np.vstack([SPARING.coefficients, rows]),
        (*SPARING.names, *free["cell"]),
        np.concatenate([np.maximum(SPARING.targets, plan.standard_errors), free["standard_error"]]),
    )
    again = query_optimum(longer)
    assert again.cost <= float(plan.exact_privacy_cost) * (1 + 1e-3)


# The third cell is asked for less accurately than the others, and the fourth not at all.
ROWS = [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]]


@pytest.fixture(scope="module")
def plan():
    budget = rp.Budget(privacy_cost=4, max_records_per_person=2)
    return query_plan(query_list(ROWS, [1, 1, 2]), budget=budget)


def test_what_counting_spare_cells_gives(plan):
    """Of privacy cost 1 for a record the first two cells use all, the third about a quarter."""
    np.testing.assert_allclose(plan.strategy.profile, [1, 1, 0.25, 0], rtol=1e-3, atol=0.03)
    used = plan.strategy.profile[2]
    frame = spare_cells(plan)
    assert frame["cell"].tolist() == ["2", "3"]
    np.testing.assert_allclose(frame["profile"], [used, 0])
    np.testing.assert_allclose(frame["spare_cost"], [1 - used, 1], rtol=1e-9)
    np.testing.assert_allclose(frame["standard_error"], [1 / np.sqrt(1 - used), 1], rtol=1e-9)
    present = [1 / np.sqrt(used), np.nan]
    np.testing.assert_allclose(frame["present_standard_error"], present, rtol=1e-6)
    np.testing.assert_allclose(frame["combined_standard_error"], [1, 1], rtol=1e-6)


def test_together_they_cost_no_record_more(plan):
    """The privacy cost matrix of plan and extra counts, from the definition."""
    frame = spare_cells(plan)
    cells = np.flatnonzero(plan.strategy.spare)
    integers = plan.strategy.integers.astype(float)
    cost = integers.T @ integers / float(plan.gamma_squared)
    before = np.max(np.diag(cost))
    extra = cost.copy()
    extra[cells, cells] += 1 / frame["standard_error"] ** 2
    np.testing.assert_allclose(np.diag(extra), before, rtol=1e-9)
    together = np.isin(np.arange(4), cells).astype(float)
    # One query for all of them can have the error of the cell with the least cost left.
    extra = cost + np.outer(together, together) / frame["standard_error"].max() ** 2
    assert np.max(np.diag(extra)) == pytest.approx(before, rel=1e-9)


def test_combining_is_least_squares(plan):
    frame = spare_cells(plan)
    integers = plan.strategy.integers.astype(float)
    information = integers.T @ integers / float(plan.gamma_squared)
    information[2, 2] += 1 / frame["standard_error"][0] ** 2
    variance = np.linalg.inv(information[:3, :3])[2, 2]
    assert frame["combined_standard_error"][0] ** 2 == pytest.approx(variance, rel=1e-3)


def test_where_all_is_used_there_is_nothing():
    plan = query_plan(query_list(np.eye(3)), budget=rp.Budget(rho=1))
    frame = spare_cells(plan)
    assert len(frame) == 0
    assert list(frame) == [
        "cell",
        "profile",
        "spare_cost",
        "standard_error",
        "present_standard_error",
        "combined_standard_error",
    ]
