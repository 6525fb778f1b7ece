"""One budget in every unit."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rpexplore as rp
from rpexplore.analysis import budget_units as budgets
from rpexplore.common.text import rounded
from rpexplore.errors import BudgetError
from rpexplore.planning.planner import plan_tables
from rpexplore.privacy import conversions as privacy


def test_a_budget_shows_as_it_was_stated():
    assert budgets.text_in_unit(rp.Budget(rho="1/3"), "rho") == "1/3"
    assert budgets.text_in_unit(rp.Budget(mu="0.123456789"), "mu") == "0.123456789"
    stated = rp.Budget(epsilon="0.7", delta="1e-9")
    assert budgets.text_in_unit(stated, "epsilon", "1e-9") == "0.7"
    assert (budgets.stated_unit(stated), budgets.stated_delta(stated)) == ("epsilon", "1e-9")
    assert budgets.stated_unit(rp.Budget(privacy_cost=1)) == "rho"
    assert budgets.stated_text(stated) == "ε = 0.7"
    assert budgets.stated_text(rp.Budget(privacy_cost=1)) == "ρ = 0.5"


def test_published_conversion():
    # docs/mathematics.md §2.2: rho = 0.5, delta = 1e-6 gives epsilon = 5.2215.
    frame = budgets.equivalents(rp.Budget(rho="0.5")).set_index("measure")
    assert frame.loc["ε at δ = 1e-6", "value"] == "5.222"
    assert frame.loc["μ", "value"] == "1"
    assert frame.loc["ρ", "value"] == "0.5"


@given(st.sampled_from(budgets.UNITS), st.integers(1, 5000))
def test_adopting_a_number_shown_in_another_unit_never_spends_more(unit, thousandths):
    budget = rp.Budget(rho=Fraction(thousandths, 1000), max_records_per_person=2)
    shown = budgets.text_in_unit(budget, unit, "1e-6")
    adopted = budgets.with_value(budget, unit, shown, "1e-6")
    # The most that a plan can cost there, whatever its noise.
    assert budget.rho * Fraction(99, 100) <= adopted.largest.rho <= budget.rho
    assert adopted.max_records_per_person == 2


@pytest.mark.parametrize(("before", "unit"), [("rho", "epsilon"), ("epsilon", "rho")])
@pytest.mark.parametrize("typed", ["0.2", "1.455", "3,5", "7"])
def test_a_limit_restated_in_another_unit_allows_no_more_and_hardly_less(typed, before, unit):
    restated = budgets.restated_limit(typed, before, unit, "1e-6")
    limit, allowed = (
        budgets.limit_in_rho(text, stated, "1e-6")
        for text, stated in ((typed, before), (restated, unit))
    )
    assert limit * (1 - Fraction(1, 10**6)) <= allowed <= limit


def test_another_unit_to_protect_keeps_the_numbers():
    person = budgets.with_privacy_unit(rp.Budget(epsilon=1, delta="1e-6"), 4)
    assert person == rp.Budget(epsilon=1, delta="1e-6", max_records_per_person=4)
    assert budgets.with_privacy_unit(person, None) == rp.Budget(epsilon=1, delta="1e-6")


@pytest.mark.parametrize("value", ["0", "-1", "", "much"])
def test_values_that_are_none_are_refused(value):
    with pytest.raises(BudgetError):
        budgets.with_value(rp.Budget(rho=1), "rho", value)


@pytest.mark.parametrize("unit", budgets.UNITS)
def test_slider_holds_the_current_value_in_order(unit):
    stops = budgets.slider_stops(unit, "0.123")
    values = [float(stop) for stop in stops]
    assert "0.123" in stops
    assert values == sorted(set(values))
    assert len(budgets.slider_stops(unit, "0.1")) == len(stops) - 1


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("0.1", "0.1"),
        ("1e-9", "1e-9"),
        ("0.00000125", "1.25e-6"),
        ("1/3", "1/3"),
        ("12", "12"),
        ("0", "0"),
    ],
)
def test_plain_numbers_are_typed_as_people_do(value, text):
    assert budgets.typed_text(Fraction(value)) == text
    assert Fraction(text) == Fraction(value)


def test_a_budget_in_words():
    # docs/mathematics.md §2.2: rho = 0.5, delta = 1e-6 gives epsilon = 5.2215.
    record = budgets.describe_guess(rp.Budget(rho="0.5"))
    assert record.startswith("ε = 5.23 at δ = 1e-6, ρ = 0.5. A guess at who")
    assert "in the data is right at most **78\u00a0%** of the time" in record
    person = budgets.describe_guess(rp.Budget(epsilon=1, delta="1e-9", max_records_per_person=3))
    # μ² of continuous noise is 0.0331148 there, and 2ρ of zCDP 0.0299461.
    rho = "ρ = 0.01498 to 0.01656, as the noise of the plan allows, "
    assert person.startswith(f"ε = 1 at δ = 1e-9, {rho}")
    # Of the larger one: a plan can have it.
    most = privacy.max_correct_guesses(Fraction("0.01655741525"))
    assert f"**{rounded(100 * most, 2, 'up')}\u00a0%**" in person
    assert "for one person with at most 3 records. " in person
    assert "whether a person is in the data" in budgets.right_guesses(
        rp.Budget(epsilon=1, delta="1e-9", max_records_per_person=3)
    )


def test_budget_warnings():
    assert budgets.budget_warnings(rp.Budget(rho="0.5")) == []
    assert budgets.budget_warnings(rp.Budget(epsilon=10, delta="1e-6")) == []
    (high,) = budgets.budget_warnings(rp.Budget(epsilon="10.1", delta="1e-6"))
    assert high.endswith("ε above 10 promises little.")
    (loose,) = budgets.budget_warnings(rp.Budget(epsilon=1, delta="0.01"))
    assert "far below one in the number of records" in loose


def test_a_delta_that_is_large_for_the_expected_number_of_records():
    expected = rp.ExpectedCounts.of_total(100_000)
    (loose,) = budgets.budget_warnings(rp.Budget(epsilon=1, delta="0.05"), expected)
    # 0.05 · 100,000 = 5,000
    assert loose.startswith(
        "δ = 0.05 is not below 1/100,000, one over the expected number of recor"
    )
    assert "publishing 5,000 of them as they are" in loose
    assert budgets.budget_warnings(rp.Budget(epsilon=1, delta="1e-5"), expected)
    assert not budgets.budget_warnings(rp.Budget(epsilon=1, delta="9e-6"), expected)
    # Two in a thousand is little for three hundred records, and said to be if nothing is expected.
    few = rp.ExpectedCounts.of_total(300)
    assert not budgets.budget_warnings(rp.Budget(epsilon=1, delta="0.002"), few)
    assert not budgets.budget_warnings(rp.Budget(rho=1), expected)


def test_what_was_stated_leads():
    tables = rp.Workload.of(rp.Domain.from_sizes({"sex": 2}), [["sex"]])
    by_epsilon, by_rho = (
        plan_tables(tables, loss=rp.SumOfVariances(), budget=budget).alone
        for budget in (rp.Budget(epsilon=1, delta="1e-5"), rp.Budget(rho="0.1"))
    )
    first, others = budgets.privacy_as_stated(by_epsilon)
    assert first == "ε = 1 at δ = 1e-5"
    assert others.startswith("ρ = ")
    assert "1e-5" not in others
    first, others = budgets.privacy_as_stated(by_rho)
    assert first == "ρ = 0.1"
    assert others.startswith("ε = ")
