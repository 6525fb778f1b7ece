"""What a report tells of tables that count other than single values."""

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.analysis.measures import SCHEMES
from rpexplore.domain.expected_counts import ExpectedCounts
from rpexplore.planning.planner import plan_tables
from rpexplore.reports.evidence import aggregations
from rpexplore.reports.report import html, report
from rpexplore.reports.section import Numbers
from rpexplore.reports.tables import accuracies
from rpexplore.scenarios.table_settings import TableSetting
from tests.analysis import bases
from tests.reports.reports import html_of, report_of

SCENARIO = bases.scenario().with_settings([TableSetting(("age",), target=0.01)])


@pytest.fixture(scope="module")
def plan():
    return SCENARIO.table_plan()


@pytest.fixture(scope="module")
def made(plan):
    return report(plan, record_noun="people", expected=ExpectedCounts.of_total(5000))


def section(made, heading):
    return next(each for each in made.sections if each.heading == heading)


def test_it_says_how_each_attribute_is_aggregated_and_measured(plan, made):
    (numbers,) = section(made, "Aggregation").parts
    rows = {row[0]: row[1:] for row in numbers.rows}
    assert rows["age"][0] == "cumulative: up to each value"
    assert rows["age"][2] == "≤ 0 … ≤ 6"
    assert rows["sex"][-1] == "value by value"
    assert rows["income"][1] == "15"
    assert rows["age"][-1].endswith("totals spread by optimised weights")
    even = plan_tables(
        plan.workload, loss=rp.SumOfVariances(), budget=plan.budget, uniform_reference=True
    )
    (part,) = aggregations(even.workload, even.closure.strategies)[0].parts
    assert isinstance(part, Numbers)
    assert [row[-1].endswith("spread evenly") for row in part.rows] == [True, False, True, True]


def test_marginals_have_no_such_section():
    assert "Aggregation" not in [section.heading for section in report_of("up to").sections]
    assert "ResidualPlanner+" not in html_of("up to")
    assert "least accurate cell" not in html_of("up to")


def test_the_label_and_the_checklist_do_not_tell_what_holds_of_marginals_only(made):
    text = html(made)
    assert "ResidualPlanner+, a Gaussian mechanism" in text
    assert "All cells of a table have the same standard error" not in text
    assert "noise of the same size" not in text
    assert "a record changes one cell of each table by one" not in text
    assert "with attributes measured as they are here" in text


def test_accuracy_is_that_of_median_and_extreme_cells(plan, made):
    accuracy = section(made, "Accuracy")
    assert "the least accurate cell of all tables, one of " in " ".join(accuracy.sentences)
    worst = accuracy.parts[1]
    header = [heading for heading, _ in worst.header]
    assert {"standard error σ", "most accurate cell σ", "least accurate cell σ"} <= set(header)
    assert "age (cumulative) × income (ranges)" in [row[0] for row in worst.rows]
    text = " ".join(section(made, "Targets").sentences)
    assert "the least accurate cell of its table meets it" in text
    missed, binding_tables = section(made, "Targets").parts
    assert [row[0] for row in binding_tables.rows] == ["age (cumulative)"]
    assert missed.rows[0][0] == "age (cumulative)"
    assert float(missed.rows[0][2].removeprefix("σ = ")) == pytest.approx(
        plan.largest_standard_errors[plan.workload.position(["age"])], rel=0.01
    )


def test_other_rules_are_planned_on_their_own(plan, made):
    text = " ".join(section(made, "Fairness").sentences)
    assert "measures attributes as is best for its objective" in text
    bare = plan.workload.with_weights({("age",): 3})
    weighed = plan_tables(bare, loss=plan.loss, budget=plan.budget)
    _, *schemes = accuracies(weighed)
    assert [each.name for each in schemes] == list(SCHEMES)
    for scheme in schemes:
        loss = SCHEMES[scheme.name]
        own = plan_tables(plan.workload, loss=loss, budget=plan.budget)
        np.testing.assert_allclose(scheme.standard_errors, own.standard_errors, rtol=1e-3)
    assert "Of each table, the root mean square of its cells is shown" in text
