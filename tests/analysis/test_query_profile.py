"""Who has unused budget, and what it is good for."""

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.analysis.query_profile import profile_in_words, profile_of_cells
from rpexplore.analysis.spare_cells import spare_cells
from rpexplore.queries.definitions import stated_from_text
from rpexplore.queries.planner import query_optimum
from rpexplore.queries.query_list import QueryList

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


def test_the_words_say_who_is_better_protected():
    plan = plan_of(SPARING)
    words = profile_in_words(plan, "people")
    assert words.startswith("Records in 18 of 20 cells use less of the budget")
    error = spare_cells(plan)["standard_error"].max()
    assert f"with a standard error of {error:.3g} people" in words


def test_the_words_say_where_nothing_is_left():
    queries = QueryList(DOMAIN, np.eye(20), tuple(map(str, range(20))), np.ones(20))
    assert "nothing left over" in profile_in_words(plan_of(queries), "people")


def test_one_spare_cell_is_not_told_of_as_several():
    domain = rp.Domain.from_sizes({"x": 3})
    queries = QueryList(domain, np.eye(3), ("a", "b", "c"), np.array([1.0, 1.0, 5.0]))
    plan = plan_of(queries)
    words = profile_in_words(plan, "people")
    assert words.startswith("Records in 1 of 3 cells use less")
    assert "All of these" not in words
    assert f"least in 2, with {100 * plan.profile[2]:.2g} %" in words


@pytest.mark.parametrize("times", [0.5, 1, 3])
def test_free_counts_can_be_added_to_the_list_as_the_page_says(times):
    """With these errors as targets, the same budget meets what it met before."""
    plan = plan_of(SPARING, times)
    free = spare_cells(plan)
    rows = np.eye(20)[np.flatnonzero(plan.spare)]
    longer = QueryList(
        DOMAIN,
        np.vstack([SPARING.coefficients, rows]),
        (*SPARING.names, *free["cell"]),
        np.concatenate([np.maximum(SPARING.targets, plan.standard_errors), free["standard_error"]]),
    )
    again = query_optimum(longer)
    assert again.cost <= float(plan.exact_privacy_cost) * (1 + 1e-3)
