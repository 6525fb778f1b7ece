"""Survey weights of a scenario: kept in files, and in what is added to its tables."""

import rpexplore as rp
from rpexplore.scenarios.scenario import Scenario
from rpexplore.scenarios.workload_changes import (
    ADD,
    WorkloadChange,
    changed_scenario,
    changed_workload,
)
from rpexplore.scenarios.workload_request import WorkloadRequest

REGIONS = {"name": "region", "constraints": {"enum": ["N", "S"]}}
SEXES = {"name": "sex", "constraints": {"enum": ["F", "M"]}}
WEIGHT = {"name": "w", "type": "number", "bounds": [0, 40], "weights": True}


def test_a_scenario_file_keeps_weights():
    domain = rp.Domain.from_schema({"fields": [REGIONS, SEXES, WEIGHT]})
    request = WorkloadRequest(order=2, weighted_by="w", unweighted=(("sex",),))
    scenario = Scenario(domain, request)
    assert Scenario.parse(scenario.text()).request == request
    assert request.text == "All tables up to 2-way, weighted by w"
    assert "weighted_by" not in Scenario(domain, WorkloadRequest()).text()
    # A request that is read off a plan gives the same tables, though amounts are in no kind.
    again = WorkloadRequest.of(scenario.workload)
    assert again.workload(domain).has_tables_of(scenario.workload)


def test_added_tables_are_weighted_as_the_others_are():
    domain = rp.Domain.from_schema({"fields": [REGIONS, SEXES, WEIGHT]})
    request = WorkloadRequest("listed", listed=(("sex",),), weighted_by="w")
    scenario = Scenario(domain, request)
    change = WorkloadChange(ADD, (), 1)
    added = changed_workload(scenario, change)
    assert added.tables == [("region", "w"), ("sex", "w")]
    assert changed_scenario(scenario, change, added).workload.tables == added.tables
