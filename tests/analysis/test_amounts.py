"""Sums of amounts beside counts: said in their own unit, and compared with no counts."""

import pytest

import rpexplore as rp
from rpexplore.analysis.accuracy import headline
from rpexplore.analysis.explanation import explanation
from rpexplore.analysis.measures import Accuracy
from rpexplore.analysis.published_lines import published_lines
from rpexplore.planning.planner import plan_tables
from rpexplore.scenarios.scenario import Scenario
from rpexplore.scenarios.workload_request import TableLine, WorkloadRequest

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


def test_a_line_of_all_tables_names_amounts_where_its_tables_have_them():
    by_income = TableLine("up_to", order=2, containing=("income",))
    lines = published_lines(Scenario(DOMAIN, WorkloadRequest("up_to", order=2, more=(by_income,))))
    assert [line.about for line in lines] == ["region", "region, income; each with income"]
    assert [line.size for line in lines] == ["2 tables", "2 tables"]
