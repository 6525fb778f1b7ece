"""Published releases beside a budget: the facts, and what they are put beside."""

import math
from fractions import Fraction

import pandas as pd
import pytest

from rpexplore import Budget
from rpexplore.privacy.conversions import epsilon_from_rho
from rpexplore.privacy.deployments import (
    NOT_STATED,
    deployments_beside,
    deployments_near,
    describe_context,
)

PERSONS = "2020 Census redistricting data, persons"


def deployments() -> pd.DataFrame:
    """All of them, whichever budget they are put beside."""
    return deployments_near(Budget(rho=1), None)


def row_of(product: str) -> dict:
    (row,) = deployments().query("product == @product").to_dict("records")
    return row


def test_the_2020_redistricting_data_are_there_as_published():
    persons = row_of(PERSONS)
    assert (persons["stated"], persons["rho"]) == ("ρ = 2.56", 2.56)
    assert persons["privacy_unit"] == "a person"
    assert persons["neighbours"] == "change one"
    assert persons["derivation"] == "as stated"
    assert (persons["curators"], persons["year"]) == ("U.S. Census Bureau", 2021)
    units = row_of("2020 Census redistricting data, housing units")
    assert (units["stated"], units["neighbours"]) == ("ρ = 0.07", "change one")


def test_other_kinds_of_promises_are_put_at_a_rho():
    pure = row_of("Lookup Hints")
    assert (pure["stated"], pure["rho"]) == ("ε = 8", 32.0)  # 8²/2
    vaccine = row_of("Vaccine Search Insights")
    assert vaccine["stated"] == "ε = 2.19 at δ = 1e-5"
    # The largest ρ that implies it: a little more implies a larger ε.
    rho = Fraction(vaccine["rho"])
    assert epsilon_from_rho(rho * (1 - Fraction(1, 10**9)), "1e-5") <= 2.19
    assert epsilon_from_rho(rho * (1 + Fraction(1, 10**6)), "1e-5") > 2.19


def test_every_release_has_a_unit_a_source_and_a_budget():
    frame = deployments()
    assert len(frame) == 31
    assert (frame["rho"] > 0).all()
    assert (frame[["product", "curators", "privacy_unit", "stated", "source"]] != "").all(axis=None)
    assert not frame["product"].duplicated().any()
    assert set(frame["neighbours"]) == {"change one", NOT_STATED}
    assert frame["year"].between(2015, 2026).all()


def test_the_nearest_are_those_of_the_smallest_factor():
    budget = Budget(rho="2.5")
    near, frame = deployments_near(budget, 4), deployments()
    assert near["rho"].is_monotonic_increasing
    factor = {row["product"]: abs(math.log(row["rho"] / 2.5)) for row in frame.to_dict("records")}
    first = sorted(factor.values())[:4]
    assert sorted(factor[product] for product in near["product"]) == pytest.approx(first)
    persons = near.query("product == @PERSONS")
    assert persons["ratio"].tolist() == [pytest.approx(2.56 / 2.5)]


def test_the_budget_stands_among_its_neighbours_in_the_order_of_rho():
    budget = Budget(rho="2.5")
    beside = deployments_beside(budget, 4)
    names = [name for name, _ in beside]
    assert names[2] == "This plan"  # 2 and 2.32 before it, 2.515 and 2.56 behind
    assert names[4] == PERSONS
    facts = dict(beside)
    assert facts["This plan"] == "ρ = 2.5 for one record, neighbours: add or remove one"
    exact = dict(deployments_beside(Budget(rho="2.5", exact=["state"]), 4))["This plan"]
    assert exact == "ρ = 2.5 for one record, neighbours: change one within exact totals"
    assert (
        facts[PERSONS] == "U.S. Census Bureau, 2021: ρ = 2.56 for a person, neighbours: change one"
    )
    assert len(beside) == 5
    apple = dict(deployments_beside(Budget(rho=32), 10))["Lookup Hints"]
    assert "ε = 8 for a user (put at ρ = 32), neighbours: not stated" in apple


def test_the_context_says_what_is_comparable():
    sentences = describe_context(Budget(rho="2.5", max_records_per_person=3))
    text = " ".join(sentences)
    below = int((deployments()["rho"] < 2.5).sum())
    assert f"Of 31 published releases, {below} lie below ρ = 2.5." in text
    assert "protects one person with at most 3 records, by adding or removing it" in text
    assert "at most four times its ρ, 10." in text  # group privacy: 2² · 2.5
    assert "redistricting data, persons (U.S. Census Bureau, 2021) with ρ = 2.56" in text
    assert sentences[-1].startswith("Source: OpenDP deployments registry")
