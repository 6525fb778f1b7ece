"""Each query against its target, recomputed from the plan by dense matrices."""

import numpy as np
import pandas as pd
import pytest

import rpexplore as rp
from rpexplore.analysis.queries import (
    CountUsefulness,
    drawn_answers,
    of_queries,
    targets_met,
    with_targets_as_typed,
    with_usefulness,
)
from rpexplore.common.text import rounded
from rpexplore.domain.expected_counts import ExpectedCounts
from rpexplore.domain.public_tables import PublicTable, PublicTables
from rpexplore.planning.counts_planner import query_optimum
from rpexplore.workload.query_definitions import StatedQueries, stated_from_text
from rpexplore.workload.query_list import QueryList
from tests.support.query_lists import query_plan

DOMAIN = rp.Domain.from_sizes({"age": 10, "sex": 2})
TEXT = """everybody: total ± 10
adults: age >= 2 ± 50
women: sex = 1 @ 2 % of 500
old men: age >= 8 & sex = 0 @ 3"""
STATED = stated_from_text(DOMAIN, TEXT)


def test_every_query_has_its_error_and_its_outcome():
    plan = query_plan(STATED.queries, budget=rp.Budget(rho="0.02"))
    frame = of_queries(plan, STATED)
    measured = plan.strategy.integers.astype(float)
    noise = np.linalg.pinv(measured.T @ measured) * float(plan.gamma_squared)
    dense = STATED.queries.coefficients @ noise @ STATED.queries.coefficients.T
    errors = np.sqrt(np.diag(dense))
    assert frame["query"].tolist() == ["everybody", "adults", "women", "old men"]
    assert frame["condition"].tolist() == ["total", "age >= 2", "sex = 1", "age >= 8 & sex = 0"]
    assert frame["wanted"].tolist() == ["±10 at 95 %", "±50 at 95 %", "2 % of 500", "3"]
    assert frame["standard_error"].tolist() == pytest.approx(errors.tolist(), rel=1e-9)
    assert frame["margin_95"].tolist() == pytest.approx((1.959963985 * errors).tolist())
    assert frame["ratio"].tolist() == pytest.approx((errors / STATED.queries.targets).tolist())
    assert frame["share"].sum() == pytest.approx(1)
    outcomes = frame["outcome"].tolist()
    assert [text.partition(" ")[0] for text in outcomes] == [
        "met:" if ratio <= 1 else "short" for ratio in frame["ratio"]
    ]


def test_a_condition_is_found_for_queries_given_by_coefficients():
    rows = np.array([[1.0] * 10 + [0.0] * 10, [0.5] * 20])
    stated = StatedQueries.of(QueryList(DOMAIN, rows, ("young", "half"), np.ones(2)))
    plan = query_plan(stated.queries, budget=rp.Budget(rho=1))
    assert of_queries(plan, stated)["condition"].tolist() == ["age <= 4", ""]


def test_what_is_public_is_counted_and_the_rest_is_drawn():
    codebook = rp.Domain.from_sizes({"region": 3, "age": 10, "sex": 2})
    counts = np.arange(1.0, 31).reshape(3, 10)  # by region and age
    values = (("0", "1", "2"), tuple(map(str, range(10))))
    expected = ExpectedCounts(("region", "age"), values, tuple(1000 * counts.ravel()))
    ages = 1000 * counts.sum(axis=0)
    answers = drawn_answers(STATED.queries, PublicTables(codebook, (PublicTable(expected),)))
    everybody, adults, women, old_men = np.median(answers, axis=0)
    assert np.all(answers[:, 0] == pytest.approx(ages.sum()))
    assert everybody == pytest.approx(ages.sum())
    assert adults == pytest.approx(ages[2:].sum(), rel=0.01)
    assert 0 < women < ages.sum()
    assert 0 < old_men < ages[8:].sum()
    of_women = answers[:, 2] / ages.sum()
    assert np.quantile(of_women, 0.9) - np.quantile(of_women, 0.1) > 0.3  # nothing is known of sex
    older = rp.Domain.from_sizes({"age": 11, "sex": 2})
    assert drawn_answers(STATED.queries, PublicTables(older, (), 1000)) is None


def test_missed_targets_are_first_and_coefficients_beside_them():
    plan = query_plan(STATED.queries, budget=rp.Budget(rho="0.02"))
    frame, answers = of_queries(plan, STATED), np.tile([100.0, 0.0, 50.0, 2.0], (5, 1))
    answers[-1, 2] = 60
    shown = with_usefulness(frame, answers)
    missed = [name for name, ratio in zip(frame["query"], frame["ratio"], strict=True) if ratio > 1]
    assert len(missed) > 0
    assert set(shown["query"][: len(missed)]) == set(missed)
    assert [text.startswith("missed: ") for text in shown["outcome"]] == [
        name in missed for name in shown["query"]
    ]
    by_name, errors = shown.set_index("query"), frame.set_index("query")["standard_error"]
    assert by_name.loc["women", "expected"] == "50 (50 to 60)"
    assert by_name.loc["women", "coefficient"].startswith(f"{100 * errors['women'] / 50:.2g} % (")
    assert by_name.loc["adults", "coefficient"] == "none"
    public = PublicTables(DOMAIN, (), 1000)
    answers[2:, 2] = 60
    useful = CountUsefulness.of_answers(plan, answers, public, errors["women"] / 55)
    few, more = (np.count_nonzero(errors <= errors["women"] / 55 * row) for row in answers[[0, 2]])
    assert (useful.publishable.low, useful.publishable.median) == (
        pytest.approx(few, abs=0.3),
        more,
    )
    assert few + 1 == more


@pytest.mark.parametrize("rho", ["0.001", "5"])
def test_the_factor_is_what_the_targets_can_be_multiplied_by(rho):
    budget = rp.Budget(rho=rho)
    plan = query_plan(STATED.queries, budget=budget)
    met, text = targets_met(plan, STATED)
    factor = np.max(plan.standard_errors / plan.targets)
    for times, all_met in ((1.001, True), (0.999, False)):
        wanted = STATED.queries.targets * factor * times
        queries = QueryList(DOMAIN, STATED.queries.coefficients, STATED.queries.names, wanted)
        assert query_plan(queries, budget=budget).met.all() == all_met
    assert (met == 4) == (factor <= 1)
    if factor > 1:
        assert f"targets {rounded(factor, 3, 'up')} times as wide" in text


def test_what_is_missing_is_told_with_what_would_do():
    optimum = query_optimum(STATED.queries)
    met, text = targets_met(optimum.at(rp.Budget(privacy_cost=optimum.cost / 4)), STATED)
    assert text.startswith(f"{met} of 4 targets")
    assert "takes 4.01 times the budget, or targets 2.01 times as wide." in text
    assert "Furthest off is old men: σ = 6.01 for a target of σ = 3." in text


def test_what_is_beyond_is_told():
    optimum = query_optimum(STATED.queries)
    assert targets_met(optimum.at(rp.Budget(privacy_cost=optimum.cost * 4)), STATED) == (
        4,
        "All 4 targets are met. With this budget every target could be 1.99 times as narrow.",
    )
    enough = optimum.at(rp.Budget(privacy_cost=optimum.cost * 1.001))
    assert targets_met(enough, STATED) == (4, "All 4 targets are met.")


def test_one_query_is_told_in_grammar():
    stated = stated_from_text(DOMAIN, "everybody: total ± 10")
    plan = query_plan(stated.queries, budget=rp.Budget(rho="0.001"))
    assert targets_met(plan, stated) == (
        0,
        "The one target is not met. Furthest off is everybody: ±43.9 for a target of ±10 at 95 %. "
        "Meeting all takes 19.3 times the budget, or targets 4.39 times as wide.",
    )


def test_released_counts_have_their_targets_as_typed():
    stated = stated_from_text(DOMAIN, "a: total ± 20\nb: total @ 10\nc: total ± 20")
    errors = stated.queries.targets
    answers = pd.DataFrame({"name": ["a", "b", "c"], "target": [*errors[:2], 1.23456], "met": True})
    table = with_targets_as_typed(answers, stated)
    assert table.columns.tolist() == ["name", "wanted", "met"]
    assert table["wanted"].tolist() == ["±20 at 95 %", "σ = 10", "σ = 1.23"]
    # Of another list, and without one, it is known as a standard error only.
    assert with_targets_as_typed(answers, None)["wanted"][0] == "σ = 10.2"
