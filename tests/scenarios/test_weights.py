"""Survey weights of a scenario: kept in files, and in what is added to its tables."""

import runpy

import pytest

import rpexplore as rp
from rpexplore.errors import WorkloadError
from rpexplore.reports.script import python_script
from rpexplore.scenarios.area_study import AreaStudy
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


def with_areas(*fields, unweighted=(), **request):
    """Weighted tables beside areas with these other attributes."""
    tree = rp.AreaTree.from_columns({"region": [*"NNS"], "town": [*"121"]})
    book = rp.AreaCodebook("home", tree, rp.Domain.from_schema({"fields": [SEXES, *fields]}))
    study = AreaStudy.of("areas.json", book).with_targets({("town", ()): 5.0})
    request = WorkloadRequest(order=1, weighted_by="w", unweighted=unweighted, **request)
    domain = rp.Domain.from_schema({"fields": [SEXES, WEIGHT]})
    return Scenario(domain, request, areas=study), book


@pytest.mark.parametrize("fields", [[], [WEIGHT]])
@pytest.mark.parametrize("unweighted", [(), ((),)])
def test_tables_in_areas_are_weighted_with_the_tables(fields, unweighted, monkeypatch, tmp_path):
    scenario, book = with_areas(*fields, unweighted=unweighted)
    plan = scenario.plan()
    total = ("w",) if not unweighted else ()
    for part in ("tables", "areas"):
        workload = plan.part(part).workload
        tables = workload.tables if part == "tables" else workload.tables.tables
        assert tables == [total, ("sex", "w")]
    assert plan.part("areas").workload.workloads[2].targets[0] == 5
    # What is asked for stays as it was, and the script asks for the same.
    assert scenario.areas.rows == [(), ("sex",)]
    monkeypatch.setattr(rp.AreaCodebook, "load", lambda path: book)
    (tmp_path / "plan.py").write_text(python_script(plan, scenario))
    script = runpy.run_path(str(tmp_path / "plan.py"))
    assert script["plan"]().text == plan.text


def test_weights_that_areas_have_with_another_limit_are_refused():
    with pytest.raises(WorkloadError, match="codebook of areas has with other values"):
        with_areas(WEIGHT | {"bounds": [0, 30]})[0].plan()
    labels = {"name": "w", "constraints": {"enum": ["low", "high"]}}
    with pytest.raises(WorkloadError, match=r"with other values \(no weights\)"):
        with_areas(labels)[0].plan()
    alone = with_areas(WEIGHT | {"bounds": [0, 30]})[0].replaced(asks_for_tables=False)
    assert alone.plan().part("areas").workload.tables.tables == [(), ("sex",)]
