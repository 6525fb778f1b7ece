"""Budgets of plainer ways, for people."""

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.analysis.query_baselines import query_baselines
from rpexplore.analysis.query_comparison import budgets_in_words, budgets_needed
from rpexplore.queries.planner import query_optimum
from tests.support.query_lists import identity_and_sum, query_list


@pytest.fixture(scope="module")
def optimum():
    return query_optimum(query_list(identity_and_sum(16)))


@pytest.fixture(scope="module")
def baselines(optimum):
    return query_baselines(optimum)


@pytest.mark.parametrize("records", [None, 3])
def test_the_budgets_are_those_of_the_privacy_unit(optimum, baselines, records):
    like = rp.Budget(rho=1, max_records_per_person=records)
    rho = budgets_needed(baselines, like).set_index("way")["rho"]
    factor = 1 if records is None else records**2
    # Every cell with variance 1/16, for the sum: cost 16, and 2n/(n + 1) for the optimum.
    assert rho["input perturbation"] == pytest.approx(16 / 2 * factor)
    assert rho["optimal plan"] == pytest.approx(32 / 17 / 2 * factor, rel=1e-3)
    enough = rp.Budget(rho=rho["optimal plan"] * 1.0001, max_records_per_person=records)
    assert optimum.at(enough).met.all()


def test_the_cheapest_way_is_the_first(baselines):
    frame = budgets_needed(baselines, rp.Budget(rho=1))
    assert frame["rho"].is_monotonic_increasing
    assert frame["title"].iloc[0] == "this plan"
    assert list(frame.index) == [0, 1, 2, 3]


def test_a_way_that_is_as_good_stands_behind_the_plan():
    optimum = query_optimum(query_list(np.eye(3)))
    frame = budgets_needed(query_baselines(optimum), rp.Budget(rho=1))
    assert frame["title"].iloc[0] == "this plan"
    assert "noise on every cell needs as much" in budgets_in_words(frame)


def test_the_words_name_every_way_with_its_factor(baselines):
    words = budgets_in_words(budgets_needed(baselines, rp.Budget(rho=1)))
    assert words.startswith("To meet all targets this plan needs ρ = 0.94")
    assert "noise on every cell needs 8.5 times as much" in words  # 16 over 32/17
    assert words.count("times as much") == 3
