"""Budget: given in one way, exact, and told as it is."""

import json
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings

from rpexplore import Budget
from rpexplore.errors import BudgetError
from rpexplore.privacy import conversions as privacy
from tests.support.strategies import budgets


@pytest.mark.parametrize(
    ("given_as", "cost"),
    [
        ({"privacy_cost": 1}, 1),
        ({"privacy_cost": 0.1}, Fraction(1, 10)),
        ({"privacy_cost": np.float64(0.1)}, Fraction(1, 10)),
        ({"privacy_cost": np.int64(3)}, 3),
        ({"privacy_cost": "1/3"}, Fraction(1, 3)),
        ({"privacy_cost": " 1e-9 "}, Fraction(1, 10**9)),
        ({"privacy_cost": Decimal("0.30")}, Fraction(3, 10)),
        ({"rho": 0.1}, Fraction(1, 5)),
        ({"rho": Fraction(1, 7)}, Fraction(2, 7)),
        ({"mu": "0.3"}, Fraction(9, 100)),
    ],
)
def test_cost_is_exact(given_as, cost):
    budget = Budget(**given_as)
    assert budget.privacy_cost == cost
    assert budget.rho == Fraction(cost) / 2
    assert budget.record_privacy_cost == cost


def test_epsilon_and_delta_become_the_largest_rho():
    budget = Budget(epsilon=1, delta=1e-6)
    assert privacy.epsilon_from_rho(budget.rho, "1e-6") <= 1
    assert privacy.epsilon_from_rho(budget.rho * Fraction(10**6 + 1, 10**6), "1e-6") > 1
    # docs/mathematics.md §2.2: rho = 0.5 at delta = 1e-6 gives epsilon = 5.2215.
    assert float(Budget(epsilon=5.2215, delta=1e-6).rho) == pytest.approx(0.5, rel=1e-4)


def test_people_with_several_records():
    budget = Budget(rho=1, max_records_per_person=3)
    assert budget.privacy_cost == 2
    assert budget.records_factor == 9
    assert budget.record_privacy_cost == Fraction(2, 9)
    assert budget.unit == "one person with at most 3 records"
    assert Budget(rho=1, max_records_per_person=1).unit == "one person with at most 1 record"
    assert Budget(rho=1).unit == "one record"


def test_the_word_for_who_is_protected():
    budget = Budget(rho=1, max_records_per_person=3, unit_noun="family")
    assert budget.unit == "one family with at most 3 records"
    assert (budget.noun, budget.nouns) == ("family", "families")
    assert budget.privacy_cost == Budget(rho=1, max_records_per_person=3).privacy_cost
    assert Budget(rho=1, unit_noun="enterprise").unit == "one enterprise, which is one record"
    assert budget.of_unit(mu=1).unit == budget.unit
    assert Budget.from_json(budget.to_json()) == budget
    # The usual words are not stated, so that a plan has one text.
    person = Budget(rho=1, max_records_per_person=3, unit_noun="person")
    assert person == Budget(rho=1, max_records_per_person=3)
    assert person.nouns == "people"
    assert Budget(rho=1, unit_noun="record") == Budget(rho=1)
    with pytest.raises(BudgetError, match="must be left out where it is the usual word"):
        Budget.from_json({**person.to_json(), "unit_noun": "person"})


@given(budgets())
@settings(deadline=None, max_examples=60)
def test_round_trip_is_exact(budget):
    again = Budget.from_json(json.loads(json.dumps(budget.to_json())))
    assert again == budget
    assert again.to_json() == budget.to_json()


@pytest.mark.parametrize(
    ("given_as", "message"),
    [
        ({}, r"got nothing"),
        ({"rho": 1, "mu": 1}, r"got rho and mu"),
        ({"privacy_cost": 1, "rho": 0.5}, r"got privacy_cost and rho"),
        ({"epsilon": 1}, r"got epsilon\."),
        ({"delta": 1e-6}, r"got delta\."),
        ({"epsilon": 1, "delta": 1e-6, "rho": 1}, r"got rho and epsilon and delta"),
        ({"rho": 0}, r"rho must be positive, got 0"),
        ({"mu": -0.5}, r"mu must be positive, got -0.5"),
        ({"privacy_cost": "-1/3"}, r"privacy_cost must be positive, got -1/3"),
        ({"epsilon": 0, "delta": 1e-6}, r"epsilon must be positive, got 0"),
        ({"epsilon": 1, "delta": 0}, r"delta must be above 0, got 0: no Gaussian noise"),
        ({"epsilon": 1, "delta": 1}, r"delta must be .* below 1.* got 1"),
        ({"epsilon": 1, "delta": 1.5}, r"delta must be .* below 1.* got 1.5"),
        ({"rho": float("nan")}, r"rho must be a finite number, got nan"),
        ({"rho": float("inf")}, r"rho must be a finite number, got inf"),
        ({"rho": True}, r"rho must be a finite number, got True"),
        ({"rho": "much"}, r"rho must be a finite number, got much"),
        ({"rho": "1_5"}, r"rho must be a finite number, got 1_5"),
        ({"rho": "1/0"}, r"rho must be a finite number, got 1/0"),
        ({"rho": [1]}, r"rho must be a finite number, got \[1\]"),
        ({"rho": "1e100"}, r"rho must be .* below 5e99"),
        ({"rho": "1e-400"}, r"rho = 1e-400 is a privacy cost below 1e-100 for one record"),
        ({"rho": 1e-310}, r"rho = 1e-310 is .* cannot be planned with; use a larger budget"),
        ({"rho": 1, "max_records_per_person": 10**51}, r"rho = 1 is .* cannot be planned with"),
        ({"rho": "9.9e99"}, r"rho must be .* below 5e99"),
        ({"epsilon": "9.9e99", "delta": "1e-6"}, r"rho must be .* below 5e99"),
        ({"rho": 1, "max_records_per_person": 0}, r"at least 1, got 0"),
        ({"rho": 1, "max_records_per_person": -2}, r"at least 1, got -2"),
        ({"rho": 1, "max_records_per_person": 2.0}, r"whole number .* got 2.0"),
        ({"rho": 1, "max_records_per_person": True}, r"whole number .* got True"),
        ({"rho": 1, "max_records_per_person": "2"}, r"whole number .* got '2'"),
        ({"rho": 1, "unit_noun": ""}, r"must be a noun in the singular"),
        ({"rho": 1, "unit_noun": "a\nb"}, r"must be a noun"),
        ({"rho": 1, "unit_noun": "household" * 5}, r"at most 40 letters"),
        ({"rho": 1, "unit_noun": "<b>"}, r"must be a noun"),
    ],
)
def test_refused(given_as, message):
    with pytest.raises(BudgetError, match=message):
        Budget(**given_as)


@pytest.mark.parametrize(
    "change",
    [
        {"stated": {}},
        {"stated": {"rho": "1", "mu": "1"}},
        {"stated": {"sigma": "1"}},
        {"stated": None},
        {"stated": {"rho": "1", "max_records_per_person": 2}},
        {"privacy_cost": "2.000000000000001"},
        {"privacy_cost": "-5"},
        {"privacy_cost": None},
        {"privacy_cost": 2},
        {"max_records_per_person": "1"},
        {"max_records_per_person": 0.5},
    ],
)
def test_inconsistent_json_is_refused(change):
    honest = Budget(rho=1).to_json()
    assert Budget.from_json(honest) == Budget(rho=1)
    with pytest.raises(BudgetError):
        Budget.from_json(honest | change)
    for key in honest:
        with pytest.raises(BudgetError, match="exactly stated, privacy_cost, max_records"):
            Budget.from_json({k: v for k, v in honest.items() if k != key})


def test_stated_privacy_cost_is_never_dropped_for_a_higher_one():
    written = Budget(rho=1).to_json() | {"privacy_cost": "1.9"}
    try:
        budget = Budget.from_json(written)
    except BudgetError:
        return
    assert budget.privacy_cost == Fraction(19, 10)
    assert budget.to_json() == written


def test_an_amount_has_its_epsilon_rounded_against_us():
    budget = Budget(epsilon=1, delta="1e-6")
    assert budget.amount_text(budget.rho) == "ρ = 0.02436 (ε = 1 at δ = 1e-6)"
    # What may be spent is rounded down, but to the ε whose budget it is: ρ(ε = 1) fits.
    assert budget.amount_text(budget.rho, "down") == "ρ = 0.02435 (ε = 1 at δ = 1e-6)"
    assert budget.epsilon_text(budget.rho * Fraction(999, 1000), "down") == "ε = 0.999 at δ = 1e-6"
    assert budget.epsilon_text(budget.rho * Fraction(999, 1000)) == "ε = 1 at δ = 1e-6"
    assert budget.amount_text(Fraction(0)) == "ρ = 0"
    assert Budget(rho=1).epsilon_text(Fraction(1, 10**12), "down") == "ε = 0 at δ = 1e-6"
