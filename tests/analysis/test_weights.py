"""Weighted counts in figures and sentences: in weighted records, 40 times those of counts."""

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.analysis import what_if
from rpexplore.analysis.accuracy import headline
from rpexplore.analysis.explanation import explanation
from rpexplore.analysis.measures import Accuracy
from rpexplore.analysis.scenario_comparison import outcomes
from rpexplore.planning.planner import optimum
from rpexplore.scenarios.scenario import Scenario
from rpexplore.scenarios.workload_changes import ADD, WorkloadChange, changed_workload
from rpexplore.scenarios.workload_request import WorkloadRequest

CODEBOOK = {
    "fields": [
        {"name": "region", "constraints": {"enum": ["N", "S", "W"]}},
        {"name": "sex", "constraints": {"enum": ["F", "M"]}},
        {"name": "income", "type": "number", "bounds": [0, 1000]},
        {"name": "w", "type": "number", "bounds": [0, 40], "weights": True},
    ]
}
DOMAIN = rp.Domain.from_schema(CODEBOOK)


def scenario(**more):
    return Scenario(DOMAIN, WorkloadRequest("listed", listed=(("region",), ("sex",)), **more))


COUNTS, WEIGHTED = scenario(), scenario(weighted_by="w")


def test_figures_of_weighted_counts_are_40_times_those_of_counts():
    plans = [one.table_plan() for one in (COUNTS, WEIGHTED)]
    counts, weighted = (headline(plan) for plan in plans)
    assert weighted.largest_error == pytest.approx(40 * counts.largest_error, rel=1e-6)
    assert weighted.least_accurate_table == f"weighted count (w) by {counts.least_accurate_table}"
    words = explanation(plans[1], 0).describe("people")[0]
    assert " weighted people (95 % margin" in words
    # Largest over smallest, without a unit.
    compared = outcomes([COUNTS, WEIGHTED], plans).loc["Largest ÷ smallest σ of a cell"]
    assert not compared["differs"]


def test_errors_of_what_is_added_are_in_weighted_records():
    change = WorkloadChange(ADD, ("region", "sex"), 2)
    errors = []
    for one in (COUNTS, WEIGHTED):
        before, after = (
            optimum(workload, loss=one.loss)
            for workload in (one.workload, changed_workload(one, change))
        )
        errors.append(what_if.accuracy_changes(before, after, change).after)
    np.testing.assert_allclose(errors[1], 40 * errors[0], rtol=1e-6)


def test_weighted_counts_are_told_where_the_others_are_sums():
    listed = (("region",), ("sex", "income"))
    asked = WorkloadRequest("listed", listed=listed, weighted_by="w", unweighted=listed[1:])
    plan = Scenario(DOMAIN, asked).table_plan()
    own = plan.workload.position(("region", "w"))
    assert headline(plan).largest_error == plan.largest_standard_errors[own]
    accuracy = Accuracy.of_plan("plan", plan)
    assert accuracy.having.tolist() == [own]
    assert "1 table of sums of amounts is left out" in accuracy.cell_text
