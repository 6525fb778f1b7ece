"""Query plans: within the budget exactly, as accurate as they say, as good as anything can be."""

import json
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rpexplore as rp
from rpexplore.errors import PlanError
from rpexplore.planning import counts_planner
from rpexplore.planning.counts import LARGEST_GAMMA_SQUARED, QueryPlan
from rpexplore.planning.counts_planner import query_optimum
from rpexplore.planning.solvers.solution import share_done
from rpexplore.planning.verification import verify
from rpexplore.privacy import conversions as privacy
from rpexplore.releases.noise.discrete_gaussian import LARGEST_GAMMA, discrete_gaussian
from rpexplore.workload.query_list import QueryList
from tests.support.plan_texts import flat, laid_out
from tests.support.query_lists import (
    identity_and_sum,
    marginals,
    prefix,
    query_list,
    query_plan,
    ranges,
)
from tests.support.strategies import budgets


@st.composite
def query_lists(draw):
    """Small lists of any kind, with targets of any size."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    n, count = int(np.prod(sizes)), draw(st.integers(1, 10))
    match draw(st.sampled_from(["ranges", "any", "marginals"])):
        case "ranges":
            rows = ranges(n, count, rng)
        case "any":
            rows = np.round(rng.normal(size=(count, n)), draw(st.integers(1, 6)))
            rows[~rows.any(axis=1)] = 1
        case _:
            rows = marginals(sizes, draw(st.integers(0, 2)))
    return query_list(rows, 10 ** rng.uniform(-1, 2, len(rows)), sizes)


@given(query_lists(), budgets(least=1e-9, most=1e9))
@settings(deadline=None, max_examples=80)
def test_plans_hold_what_they_claim(queries, budget):
    plan = query_plan(queries, budget=budget)
    squares = max(sum(int(entry) ** 2 for entry in column) for column in plan.strategy.integers.T)
    factor = (budget.max_records_per_person or 1) ** 2
    exact = Fraction(squares) / plan.gamma_squared * factor
    assert (
        exact == plan.exact_privacy_cost <= plan.budget.privacy_cost <= budget.largest.privacy_cost
    )
    allowed = max(plan.budget.privacy_cost, budget.privacy_cost)
    assert exact >= allowed * (1 - Fraction(1, 10**11)), "nothing is left unused"
    gram = plan.strategy.integers.T.astype(float) @ plan.strategy.integers
    dense = np.diag(
        queries.coefficients @ np.linalg.pinv(gram, rcond=1e-14) @ queries.coefficients.T
    )
    if len(plan.strategy.integers) == np.linalg.matrix_rank(queries.coefficients):
        np.testing.assert_allclose(plan.variances, dense * float(plan.gamma_squared), rtol=1e-5)
    assert plan.certificate.gap <= 1.3e-3
    for held in (plan, QueryPlan.parse(plan.text)):
        verification = verify(held)
        assert verification.holds, str(verification)
        assert [check.name for check in verification.checks] == [
            *(["privacy"] if budget.stated_epsilon is not None else []),
            "privacy cost",
            "variances",
            "optimality",
        ]
        assert budget.unit in verification.guarantee


@given(query_lists(), st.sampled_from(["0.001", "1/3", "70"]), st.sampled_from([None, 3]))
@settings(deadline=None, max_examples=20)
def test_the_plan_at_a_budget_is_the_plan_of_that_budget(queries, rho, person):
    budget = rp.Budget(rho=rho, max_records_per_person=person)
    solved = query_optimum(queries)
    plan = solved.at(budget)
    assert plan.text == query_plan(queries, budget=budget).text
    record_cost = float(budget.record_privacy_cost)
    np.testing.assert_allclose(plan.variances, solved.variances / record_cost, rtol=1e-11)
    assert plan.ratio == pytest.approx(solved.cost / record_cost, rel=1e-11)


@pytest.fixture(scope="module")
def plan():
    queries = QueryList(
        rp.Domain.from_sizes({"sex": 2, "age": 4}),
        np.vstack([identity_and_sum(8), [[1, 1, 0, 0, 1, 1, 0, 0]]]),
        (*"abcdefgh", "everybody", "young"),
        np.array([2.0] * 8 + [3, 3]),
    )
    return query_plan(queries, budget=rp.Budget(rho="0.25", max_records_per_person=2))


def test_what_follows_from_it(plan):
    assert plan.targets.tolist() == [2.0] * 8 + [3, 3]
    np.testing.assert_allclose(plan.standard_errors**2, plan.variances)
    np.testing.assert_allclose(plan.variance_ratios, plan.variances / plan.targets**2)
    assert plan.ratio == max(plan.variance_ratios)
    assert plan.met.tolist() == (plan.variance_ratios <= 1).tolist()
    np.testing.assert_allclose(
        plan.accuracy()["margin_95"], 1.959964 * plan.standard_errors, rtol=1e-6
    )
    assert Fraction("0.24999") < plan.rho <= Fraction("0.25")
    assert plan.record_rho == plan.rho / 4
    assert plan.privacy_cost == pytest.approx(0.5)
    assert plan.epsilon("1e-6") <= privacy.epsilon_from_rho(plan.rho, "1e-6")
    assert plan.epsilon_texts[0].endswith("at δ = 1e-6")
    assert plan.strategy.profile.max() == 1
    assert "% above the smallest possible within this budget." in plan.proven


def test_the_summary_tells_what_matters(plan):
    text = str(plan)
    for message in (
        "Plan for 10 own counts over 8 cells (8 numbers to measure)",
        "one person with at most 2 records",
        "0.25-zCDP",
        "of 10 met; furthest off: ",
        "cells with unused budget",
    ):
        assert message in text
    assert repr(plan) == "<QueryPlan for 10 own counts, ρ = 0.25>"
    one = query_plan(query_list([[1]]), budget=rp.Budget(rho=1))
    assert "Plan for 1 own count over 1 cell (1 number to measure)" in str(one)
    assert "1 of 1 met; tightest: " in str(one)


def test_a_stated_delta_is_told_first():
    budget = rp.Budget(epsilon=1, delta="1e-8")
    plan = query_plan(query_list(prefix(3)), budget=budget)
    assert plan.epsilon_texts[0].endswith("at δ = 1e-8")
    assert plan.epsilon("1e-8") <= 1


def test_released_answers_spread_as_the_plan_says():
    """By drawing the noise 4,000 times: a standard error 5 % off would be told."""
    queries = query_list(marginals((2, 3), 1), 1.0, (2, 3))
    plan = query_plan(queries, budget=rp.Budget(rho=2))
    counts, draws = np.array([5, 0, 12, 7, 1, 3]), 4_000
    k = len(plan.strategy.integers)
    noise = discrete_gaussian(draws * k, plan.gamma_squared).reshape(draws, k)
    answers = (plan.strategy.integers @ counts + noise) @ plan.strategy.decoding.T
    errors = answers - queries.coefficients @ counts
    assert np.all(np.abs(errors.mean(axis=0)) < 5 * plan.standard_errors / np.sqrt(draws))
    # The logarithm of a standard error's estimate has a standard deviation of about 1/√(2 draws).
    off = np.log(errors.std(axis=0) / plan.standard_errors)
    assert np.all(np.abs(off) < 5 / np.sqrt(2 * draws))


def test_a_larger_scale_than_can_be_drawn_is_refused():
    assert LARGEST_GAMMA_SQUARED == LARGEST_GAMMA**2
    solved = query_optimum(query_list(prefix(3)))
    with pytest.raises(PlanError, match=r"too large for 64-bit integers .* use a larger budget"):
        solved.at(rp.Budget(privacy_cost="1e-23"))
    assert solved.at(rp.Budget(privacy_cost="1e-20")).gamma_squared < LARGEST_GAMMA_SQUARED


@pytest.mark.parametrize("cost", ["1e-60", "1e-100"])
def test_a_budget_of_next_to_nothing_is_refused(cost):
    with pytest.raises(PlanError, match="use a larger budget"):
        query_plan(query_list([[1, 2]]), budget=rp.Budget(privacy_cost=cost))


def test_a_budget_of_all_but_everything_can_be_planned_with():
    plan = query_plan(query_list([[1, 2]]), budget=rp.Budget(privacy_cost="9e99"))
    assert verify(QueryPlan.parse(plan.text)).holds


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda queries: rp.plan(queries, budget=1), "must be one of the library's"),
        (lambda queries: query_optimum(queries, tolerance=0), "tolerance must be 1e-06 to 1"),
        (lambda queries: query_optimum(queries, tolerance=1), "tolerance must be"),
        (lambda queries: query_optimum(queries.coefficients), "QueryList, got ndarray"),
    ],
)
def test_other_refusals(call, message):
    with pytest.raises(PlanError, match=message):
        call(query_list(prefix(3)))


def test_what_integers_cannot_measure_is_refused(monkeypatch):
    monkeypatch.setattr(counts_planner, "integer_measurement", lambda *_: None)
    with pytest.raises(PlanError, match="cannot be measured in whole numbers"):
        query_optimum(query_list(prefix(3)))


def test_the_search_can_be_followed_and_stopped():
    shares = []
    solved = query_optimum(query_list(prefix(8)), on_progress=lambda _, share: shares.append(share))
    assert shares[-1] >= share_done(1e-4)
    assert solved.cost <= solved.lower_bound * (1 + 3e-4)

    class Stopped(Exception):
        pass

    def stop(doing, share):
        raise Stopped

    with pytest.raises(Stopped):
        query_optimum(query_list(prefix(8)), on_progress=stop)


def test_arrays_of_a_plan_cannot_be_changed(plan):
    for held in (plan, QueryPlan.parse(plan.text)):
        for array in (
            held.variances,
            held.standard_errors,
            held.cell_weights,
            held.certificate.shadow_prices,
            held.strategy.integers,
            held.strategy.profile,
        ):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 0


# ---- verification finds what has been tampered with


def failed(content) -> set[str] | None:
    """Names of the checks a plan file's content fails; None if reading already refuses it."""
    try:
        read = QueryPlan.parse(laid_out(content), canonical=False)
    except PlanError:
        return None
    verification = verify(read)
    assert verification.holds or "does not hold what it claims" in str(verification)
    return {check.name for check in verification.checks if not check.holds}


def scaled(*path, factor):
    def change(content):
        for key in path[:-1]:
            content = content[key]
        value = content[path[-1]]
        content[path[-1]] = value * factor

    return change


def gamma(factor):
    def change(content):
        content["gamma_squared"] = str(int(Fraction(content["gamma_squared"]) * factor))

    return change


def bound(factor):
    def change(content):
        certificate = content["certificate"]
        certificate["lower_bound"] *= factor
        ratio = certificate["largest_ratio"] / certificate["lower_bound"] - 1
        certificate["gap"] = max(ratio, 0.0)

    return change


def all_variances(content):
    for query in content["queries"]:
        query["variance"] *= 0.99
    certificate = content["certificate"]
    certificate["largest_ratio"] *= 0.99
    certificate["gap"] = max(certificate["largest_ratio"] / certificate["lower_bound"] - 1, 0.0)


@pytest.mark.parametrize(
    ("change", "result"),
    [
        (gamma(Fraction(99, 100)), {"privacy cost", "variances"}),
        (gamma(2), {"variances"}),
        (lambda content: content.update(privacy_cost="0.4"), {"privacy cost"}),
        (lambda content: content.update(privacy_cost="0.51"), {"privacy cost"}),
        (lambda content: content["budget"].update(max_records_per_person=3), {"privacy cost"}),
        (scaled("queries", 0, "variance", factor=9), {"variances", "optimality"}),
        (scaled("queries", 0, "variance", factor=1 - 1e-6), {"variances"}),
        (scaled("queries", 0, "target", factor=0.5), {"optimality"}),
        (all_variances, {"variances"}),
        (bound(1 + 1e-3), {"optimality"}),
        (bound(0.9), set()),  # proves less, and says so
        (scaled("queries", 9, "shadow_price", factor=1.5), {"optimality"}),
        (scaled("certificate", "cell_weights", 0, factor=1.5), {"optimality"}),
        (lambda content: content["strategy"].insert(0, [2**26] * 8), None),
        (lambda content: content["strategy"][0].__setitem__(0, 2**20), {"privacy cost"}),
        (scaled("certificate", "gap", factor=2), None),
        (lambda content: content["strategy"].pop(), None),
    ],
)
def test_tampering_is_found(plan, change, result):
    content = flat(json.loads(plan.text))
    change(content)
    outcome = failed(content)
    if result is None or outcome is None:
        assert outcome is result
    elif result:
        assert result <= outcome
    else:
        assert not outcome


def test_honest_content_passes(plan):
    assert failed(flat(json.loads(plan.text))) == set()
