"""Targets met or not, in words that agree with the numbers they round."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rpexplore as rp
from rpexplore.analysis import accuracy, targets_met
from rpexplore.common.text import rounded
from rpexplore.planning.part_plan import Z_95
from rpexplore.planning.planner import plan_tables
from rpexplore.scenarios.scenario import Scenario
from rpexplore.scenarios.table_settings import GroupSetting, TableSetting
from rpexplore.workload.targets import MET_FACTOR, Target
from tests.support.strategies import workloads

DOMAIN = rp.Domain.from_sizes({"age": 10, "sex": 2, "region": 5})


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("20", 18, "met: σ = 18"),
        ("20", 23.2, "short by 3.2"),
        ("±50", 38 / Z_95, "met: ±38"),
        ("±50", 62 / Z_95, "short by 12"),
        ("±1000 at 95 %", 4000 / Z_95, "short by 3,000"),
        ("5 % of 1000", 39, "met: 3.9 %"),
        ("5 % of 1000", 62, "short by 1.2 points"),
        ("5 % of 1000", 60, "short by 1 point"),
        ("37.76", 37.7599, "met: σ = 37.76"),  # and not 37.8, which would be above
        ("50", 50.00001, "short by 0.00001"),
        ("20", 20, "met: σ = 20"),
        ("20", 20 * (1 + 1e-12), "met: σ = 20"),
    ],
)
def test_outcomes(text, error, message):
    assert targets_met.describe_outcome(Target.parse(text), error) == message


UNITS = st.sampled_from(["{}", "±{}", "±{} at 99 %", "{} % of 1234"])


@given(UNITS, st.decimals("0.01", "99999", places=2), st.floats(0.5, 2))
def test_what_is_met_never_reads_as_if_it_were_not(unit, value, times):
    target = Target.parse(unit.format(value))
    error = times * target.standard_error
    shown = targets_met.describe_now(target, error)
    number = float(re.sub(r"[^0-9.e-]", "", shown))
    assert number == pytest.approx(target.in_unit(error), rel=0.011)  # rounded to 3 digits
    met = times <= MET_FACTOR
    assert (number <= float(value)) == met
    assert targets_met.describe_outcome(target, error).startswith("met: " if met else "short by ")


def scenario():
    return (
        Scenario(DOMAIN)
        .with_group(GroupSetting(("age",), target="±50 required"))
        .with_settings(
            [TableSetting((), target="0.1 % of 100"), TableSetting(("sex",), target="12.50")]
        )
    )


def test_tables_with_targets_are_told_as_typed_the_furthest_off_first():
    current = scenario()
    plan = current.table_plan()
    result = targets_met.of_targets(plan, current.request)
    assert result["table"].tolist()[0] == "(total)"
    assert sorted(result["wanted"]) == ["0.1 % of 100", *["±50 at 95 %"] * 3, "σ = 12.50"]
    by_table = result.set_index("table")
    assert by_table["required"].to_dict() == {
        "(total)": "in proportion",
        "sex": "in proportion",
        **dict.fromkeys(("age", "age × sex", "age × region"), "required"),
    }
    ratios = plan.largest_standard_errors / plan.workload.targets
    assert result["ratio"].tolist() == sorted(ratios[~np.isnan(ratios)], reverse=True)
    assert result["ratio"].tolist() == ratios[result.index].tolist()
    for row in result.to_dict("records"):
        assert row["outcome"].startswith("met: " if row["ratio"] <= 1 else "short by ")
    assert len(targets_met.of_targets(plan, current.request, most=2)) == 2


def test_without_a_scenario_targets_are_standard_errors():
    plan = scenario().table_plan()
    result = targets_met.of_targets(plan)
    assert result.index.tolist() == targets_met.of_targets(plan, scenario().request).index.tolist()
    wanted = [Target.parse(text).standard_error for text in result["wanted"]]
    assert wanted == plan.workload.targets[result.index].tolist()
    assert result["outcome"].str.contains("%|±").sum() == 0
    # Nor are they those of a request for something else.
    other = Scenario(DOMAIN).with_group(GroupSetting((), target="±70")).request
    assert targets_met.of_targets(plan, other).equals(result)


def test_the_list_of_tables_has_the_words_instead_of_the_numbers():
    current = scenario()
    plan = current.table_plan()
    numbers = accuracy.of_tables(plan, ["age"])
    sentence = targets_met.of_tables(plan, ["age"], current.request)
    same = ["item", "cells", "standard_error", "margin_95", "weight"]
    assert sentence[same].equals(numbers[same].reset_index(drop=True))
    assert list(sentence) == ["item", "order", *same[1:], "wanted", "required", "outcome"]
    every = targets_met.of_tables(plan, request=current.request).set_index("item")
    met = accuracy.of_tables(plan).set_index("item")["met"]
    assert every["outcome"].str.startswith("met: ").equals(met.eq(True))
    assert every.loc["region", ["wanted", "required", "outcome"]].tolist() == ["", "", ""]


def test_the_least_accurate_cell_is_what_counts():
    current = Scenario(DOMAIN).with_basis("age", rp.Prefix())
    plan = current.table_plan()
    row = plan.workload.tables.index(("age",))
    median, largest = plan.standard_errors[row], plan.largest_standard_errors[row]
    between = float(median + largest) / 2
    assert median < between < largest
    plan = current.with_settings([TableSetting(("age",), target=between)]).table_plan()
    (outcome,) = targets_met.of_targets(plan)["outcome"]
    assert outcome == f"short by {rounded(float(largest) - between)}"
    assert targets_met.target_counts(plan).met == 0


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({("age",): 1e4}, "The one target is met."),
        ({("age",): rp.Target(1e4, required=True)}, "The one required target is met."),
        (
            {("age",): 0.1, (): rp.Target(1e4, required=True)},
            "1 of 2 targets is met; required: 1 of 1.",
        ),
        (
            {
                ("age",): rp.Target(0.1, required=True),
                (): rp.Target(1e4, required=True),
                ("sex",): 1e4,
            },
            "2 of 3 targets are met; required: 1 of 2. This objective does not put "
            "required targets first.",
        ),
    ],
)
def test_counts_in_a_sentence(wanted, message):
    workload = rp.Workload.all_up_to(DOMAIN, 1).with_targets(wanted)
    plan = plan_tables(workload, loss=rp.SumOfVariances(), budget=rp.Budget(rho="0.1"))
    assert targets_met.target_counts(plan).text == message


@given(workloads(with_targets=True))
def test_counts_are_those_of_the_tables(workload):
    required = dict.fromkeys(workload.tables[::2], True)
    plan = plan_tables(
        workload.with_required(required), loss=rp.SumOfVariances(), budget=rp.Budget(rho="0.1")
    )
    message, counts = targets_met.of_targets(plan), targets_met.target_counts(plan)
    met = message["outcome"].str.startswith("met")
    assert (counts.targets, counts.met) == (len(workload), met.sum())
    is_must = message["required"] == "required"
    assert (counts.required, counts.required_met) == (len(required), (met & is_must).sum())
