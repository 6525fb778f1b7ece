"""Sums of amounts beside counts: said in their own unit, and compared with no counts."""

import pytest

import rpexplore as rp
from rpexplore.analysis.accuracy import headline
from rpexplore.analysis.explanation import explanation
from rpexplore.analysis.measures import Accuracy
from rpexplore.planning.planner import plan_tables

INCOME = rp.Attribute("income", rp.Amounts(0, 200_000, unit="EUR"))
DOMAIN = rp.Domain((rp.Attribute("region", rp.Integers(0, 2)), INCOME))


def test_what_is_said_of_sums_is_in_their_unit_and_not_compared_with_counts():
    workload = rp.Workload.of(DOMAIN, [("region", "income"), ("region",)])
    plan = plan_tables(workload, loss=rp.SumOfVariances(), budget=rp.Budget(rho="0.1"))
    own, other = (workload.position(table) for table in (("region", "income"), ("region",)))
    explained = explanation(plan, own)
    assert explained.standard_error == pytest.approx(plan.standard_errors[own])
    assert " EUR (95 % margin" in explained.describe("people")[0]
    top = headline(plan)
    assert top.largest_error == plan.largest_standard_errors[other]
    assert top.least_accurate_table == "region"
    accuracy = Accuracy.of_plan("plan", plan)
    assert accuracy.having.tolist() == [other]
    assert "1 table of sums of amounts is left out" in accuracy.cell_text
