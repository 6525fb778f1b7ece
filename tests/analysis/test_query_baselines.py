"""Baselines for query lists: against dense definitions, and never better than the optimum."""

import numpy as np
import pytest
from hypothesis import given, settings

import rpexplore as rp
from rpexplore.analysis.queries import budgets_needed, describe_budgets, query_baselines
from rpexplore.planning.counts_planner import query_optimum
from tests.planning.test_counts_plan import query_lists
from tests.support.query_lists import (
    age_pyramid,
    identity_and_sum,
    marginals,
    prefix,
    query_list,
    ranges,
)

METHODS = ["optimal plan", "input perturbation", "hierarchy", "sum of variances"]


@given(query_lists())
@settings(deadline=None, max_examples=15)
def test_the_optimum_is_the_cheapest(queries):
    optimum = query_optimum(queries)
    frame = query_baselines(optimum)
    assert frame["baseline"].tolist() == METHODS
    assert frame.loc[0, ["largest_ratio", "saved"]].tolist() == [1, 0]
    assert np.all(frame["privacy_cost"] >= optimum.lower_bound * (1 - 1e-9))
    np.testing.assert_allclose(frame["largest_ratio"], frame["privacy_cost"] / optimum.cost)
    np.testing.assert_allclose(frame["saved"], 1 - 1 / frame["largest_ratio"], atol=1e-12)
    assert np.all(frame["mean_ratio"] <= frame["largest_ratio"] * (1 + 1e-12))
    # Nothing has a smaller mean than what makes the sum smallest (rounding aside).
    assert np.all(frame["mean_ratio"] >= frame["mean_ratio"][3] * (1 - 1e-3))


def test_input_perturbation_and_hierarchy_by_their_definitions():
    rng = np.random.default_rng(1)
    rows = np.hstack([ranges(5, 9, rng), np.zeros((9, 1))])
    queries = query_list(rows, rng.uniform(1, 3, 9))
    counted = rows.any(axis=0)
    assert counted.sum() == 5
    frame = query_baselines(query_optimum(queries)).set_index("baseline")
    cells = np.max(np.sum(rows**2, axis=1) / queries.targets**2)
    assert frame.loc["input perturbation", "privacy_cost"] == pytest.approx(cells)
    # 5 cells: 3 and 2, then 2, 1, 1, 1, then 1, 1.
    tree = [[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [0, 0, 0, 1, 1], [1, 1, 0, 0, 0], *np.eye(5).tolist()]
    gram = np.array(tree).T @ tree
    variances = np.diag(rows[:, :5] @ np.linalg.inv(gram) @ rows[:, :5].T)
    needed = np.max(variances / queries.targets**2) * np.max(np.diag(gram))
    assert frame.loc["hierarchy", "privacy_cost"] == pytest.approx(needed)
    assert frame.loc["hierarchy", "measured"] == 9
    assert frame.loc["input perturbation", "measured"] == 5


def test_known_figures():
    """Identity and sum: 2n/(n+1) against n for counting cells and adding them up."""
    frame = query_baselines(query_optimum(query_list(identity_and_sum(8)))).set_index("baseline")
    assert frame.loc["input perturbation", "privacy_cost"] == pytest.approx(8)
    assert frame.loc["optimal plan", "privacy_cost"] == pytest.approx(16 / 9, rel=2e-4)
    prefixes = query_baselines(query_optimum(query_list(prefix(64)))).set_index("baseline")
    assert prefixes.loc["input perturbation", "privacy_cost"] == pytest.approx(64)
    assert prefixes.loc["hierarchy", "saved"] > 0.1


@pytest.mark.parametrize(
    ("rows", "targets", "sizes"),
    [
        pytest.param(marginals((2, 2, 12), 3), 1.0, (2, 2, 12), id="PL 94-171"),
        pytest.param(*age_pyramid(30), (2, 30), id="age pyramid"),
        pytest.param(ranges(50, 80, np.random.default_rng(0)), 1.0, (50,), id="ranges"),
        pytest.param(marginals((2, 4, 6), 2), 1.0, (2, 4, 6), id="marginals"),
    ],
)
def test_what_agencies_publish(rows, targets, sizes):
    frame = query_baselines(query_optimum(query_list(rows, targets, sizes)))
    assert frame["saved"][1:].min() > 0.1


@pytest.fixture(scope="module")
def optimum():
    return query_optimum(query_list(identity_and_sum(16)))


@pytest.fixture(scope="module")
def baselines(optimum):
    return query_baselines(optimum)


@pytest.mark.parametrize("records", [None, 3])
def test_the_budgets_are_those_of_the_privacy_unit(optimum, baselines, records):
    reference_budget = rp.Budget(rho=1, max_records_per_person=records)
    rho = budgets_needed(baselines, reference_budget).set_index("baseline")["rho"]
    factor = 1 if records is None else records**2
    # Every cell with variance 1/16, for the sum: cost 16, and 2n/(n + 1) for the optimum.
    assert rho["input perturbation"] == pytest.approx(16 / 2 * factor)
    assert rho["optimal plan"] == pytest.approx(32 / 17 / 2 * factor, rel=1e-3)
    enough = rp.Budget(rho=rho["optimal plan"] * 1.0001, max_records_per_person=records)
    assert optimum.at(enough).met.all()


def test_the_cheapest_baseline_is_the_first(baselines):
    frame = budgets_needed(baselines, rp.Budget(rho=1))
    assert frame["rho"].is_monotonic_increasing
    assert frame["title"].iloc[0] == "this plan"
    assert list(frame.index) == [0, 1, 2, 3]


def test_a_baseline_that_is_as_good_stands_behind_the_plan():
    optimum = query_optimum(query_list(np.eye(3)))
    frame = budgets_needed(query_baselines(optimum), rp.Budget(rho=1))
    assert frame["title"].iloc[0] == "this plan"
    assert "noise in every cell needs as much" in describe_budgets(frame)


def test_the_sentence_names_every_baseline_with_its_factor(baselines):
    sentence = describe_budgets(budgets_needed(baselines, rp.Budget(rho=1)))
    assert sentence.startswith("To meet all targets this plan needs ρ = 0.94")
    assert "noise in every cell needs 8.5 times as much" in sentence  # 16 over 32/17
    assert sentence.count("times as much") == 3
