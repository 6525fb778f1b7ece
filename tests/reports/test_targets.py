"""What a report tells about targets, in numbers one and many."""

import pytest

import rpexplore as rp
from rpexplore.planning.planner import plan_tables
from rpexplore.reports.bundle import contents_of
from rpexplore.reports.report import html, report
from rpexplore.reports.tables import targets
from rpexplore.scenarios.scenario import Scenario
from rpexplore.scenarios.table_settings import GroupSetting, TableSetting
from rpexplore.scenarios.workload_request import WorkloadRequest

DOMAIN = rp.Domain.from_sizes({"age": 10, "sex": 2})
TABLES = rp.Workload.all_up_to(DOMAIN, 1)


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({("age",): 1e4}, ["The one target is met.", "would be enough for the target."]),
        (
            {("age",): 0.1},
            ["The one target is not met.", "To meet the target with", "itself may"],
        ),
        ({("age",): 1e-60}, ["must be a standard error of 1e-40"]),
        ({("age",): 1e-155}, ["must be a standard error of 1e-40"]),
        ({("age",): 1e4, (): 1e4}, ["Both targets are met.", "enough for all targets."]),
        ({("age",): 0.1, (): 1e4}, ["1 of 2 targets is met.", "To meet all targets"]),
        ({("age",): 0.1, (): 0.1, ("sex",): 1e4}, ["1 of 3 targets is met."]),
        ({("age",): 0.1, (): 1e4, ("sex",): 1e4}, ["2 of 3 targets are met.", "targets themselv"]),
        ({("age",): 1e4, (): 1e4, ("sex",): 1e4}, ["All 3 targets are met."]),
    ],
)
def test_sentences_agree_in_number(wanted, message):
    workload = TABLES.with_targets(wanted)
    plan = plan_tables(workload, loss=rp.SumOfVariances(), budget=rp.Budget(rho="0.1"))
    text = " ".join(targets(plan).sentences)
    for part in message:
        assert part in text


WITH_TARGETS = Scenario(DOMAIN).with_settings(
    [
        TableSetting((), target="±0.5 required"),
        TableSetting(("age",), target="50 % of 1000"),
        TableSetting(("sex",), target="12.50 required"),
    ]
)


def test_targets_are_shown_as_typed_and_whether_required():
    section = targets(WITH_TARGETS.table_plan(), WITH_TARGETS.request)
    assert section.sentences[0].startswith(
        "2 of 3 targets are met; required: 1 of 2. This objective does"
    )
    assert "Required targets are met first" in section.sentences[1]
    listed, *_ = section.parts
    assert [heading for heading, _ in listed.header] == [
        "table",
        "target",
        "required",
        "in the plan",
        "met or short by",
        "times the target",
    ]
    by_table = {row[0]: row[1:] for row in listed.rows}
    assert next(iter(by_table)) == "(total)"
    assert by_table["(total)"][:2] == ["±0.5 at 95 %", "required"]
    assert by_table["(total)"][3].startswith("short by ")
    assert by_table["age"][:2] == ["50 % of 1000", "in proportion"]
    assert by_table["age"][3] == f"met: {by_table['age'][2]}"
    assert by_table["sex"][:2] == ["σ = 12.50", "required"]


def test_without_a_scenario_targets_are_standard_errors():
    listed, *_ = targets(WITH_TARGETS.table_plan()).parts
    total = rp.Target.parse("±0.5").standard_error
    assert {row[0]: row[1] for row in listed.rows} == {
        "(total)": f"σ = {total!r}",
        "age": "σ = 500",
        "sex": "σ = 12.5",
    }


def test_a_long_list_is_cut_visibly():
    domain = rp.Domain.from_sizes({f"a{i}": 2 for i in range(30)})
    scenario = Scenario(domain, WorkloadRequest(order=1)).with_group(GroupSetting((), target=5))
    listed, *_ = targets(scenario.table_plan(), scenario.request).parts
    assert len(listed.rows) == 20
    assert "And 11 more; tables.csv has all." in listed.note
    assert "required" not in [heading for heading, _ in listed.header]


def test_a_report_on_a_scenario_has_its_targets_as_typed():
    assert "±0.5 at 95 %" in html(contents_of(WITH_TARGETS.table_plan(), WITH_TARGETS))
    assert "±0.5 at 95 %" not in html(report(WITH_TARGETS.table_plan()))


def test_why_the_budget_is_as_large_as_it_is():
    domain = rp.Domain.from_sizes({"age": 10, "sex": 2, "region": 5})
    wanted = rp.Workload.all_up_to(domain, 2).with_targets(
        {("age", "sex"): rp.Target("3", required=True), ("region",): 500}
    )
    plan = plan_tables(wanted, loss=rp.SumWithinTargets(), budget=rp.Budget(rho="0.1"))
    section = targets(plan)
    message = " ".join(section.sentences)
    assert "takes ρ = 0.055556" in message
    assert "With the same objective" not in message  # another budget would have another plan
    _, binding_tables = section.parts
    assert binding_tables.frame["table"].tolist() == ["age × sex"]
    assert [row[3] for row in binding_tables.rows] == ["100 %"]
    plan = plan_tables(wanted, loss=rp.SumOfVariances(), budget=rp.Budget(rho="0.1"))
    message = " ".join(targets(plan).sentences)
    assert "The 2 targets take ρ =" in message
    assert "the same objective" in message


def test_a_report_states_the_rules_of_the_plan():
    scenario = Scenario(
        DOMAIN, rules=(rp.Rule("0.2", "0.9"), rp.Rule("0.1", 1, certainty="surely"))
    )
    text = html(contents_of(scenario.table_plan(), scenario))
    assert "CV of at most 20 % for 90 % of people in each table. Whether" in text
    assert "in each table, surely. Whether a table meets it depends on its counts, and" in text
