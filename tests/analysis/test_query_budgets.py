"""The smallest budget of a query list: enough, and hardly less is not."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rpexplore as rp
from rpexplore.analysis.query_budgets import rho_below_no_queries_are_met, smallest_query_budget
from rpexplore.errors import BudgetError
from rpexplore.queries.planner import query_optimum
from tests.queries.test_plan import query_lists
from tests.support.query_lists import prefix, query_list

PRESENT = [
    rp.Budget(rho="0.1"),
    rp.Budget(rho="1/3", max_records_per_person=3),
    rp.Budget(epsilon=1, delta="1e-9"),
    rp.Budget(mu="0.5", max_records_per_person=2),
]


@given(query_lists(), st.sampled_from(PRESENT))
@settings(deadline=None, max_examples=21)
def test_all_targets_are_met_and_with_less_they_are_not(queries, present):
    optimum = query_optimum(queries)
    found = smallest_query_budget(optimum, present)
    person = present.max_records_per_person
    for enough in (found.budget, rp.Budget(rho=found.rho, max_records_per_person=person)):
        plan = optimum.at(enough)
        assert plan.met.all()
        assert plan.ratio <= 1
        # Within the digits that people type, and the budget's own rounding.
        assert plan.ratio > 1 - 1e-3
    assert found.budget.unit == present.unit
    less = rp.Budget(
        rho=Fraction(found.needed) * Fraction(9999, 10000), max_records_per_person=person
    )
    assert not optimum.at(less).met.all()
    least = rho_below_no_queries_are_met(optimum, present)
    assert least <= found.needed * (1 + 1e-9)
    assert found.needed <= least * (1 + 1.3e-3)


def test_a_person_with_several_records_needs_as_many_times_more_squared():
    optimum = query_optimum(query_list(prefix(4)))
    one, three = (
        smallest_query_budget(optimum, rp.Budget(rho=1, max_records_per_person=records))
        for records in (None, 3)
    )
    assert three.needed == pytest.approx(9 * one.needed, rel=1e-12)
    assert one.needed == pytest.approx(1.7591 / 2, rel=1e-3), "FFU Table 2"


def test_targets_out_of_reach_are_named():
    queries = query_list(1e6 * np.eye(2), [1e-9, 1])
    optimum = query_optimum(queries)
    present = rp.Budget(rho=1, max_records_per_person=10**40)
    with pytest.raises(BudgetError, match="The target 1e-09 of the query 'query 1' would take"):
        smallest_query_budget(optimum, present)
