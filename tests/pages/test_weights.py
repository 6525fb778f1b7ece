"""Survey weights through the pages: a column is named, its limit changed, and all is planned."""

import pandas as pd
import pytest

import rpexplore as rp
from rpexplore.scenarios.area_study import AreaStudy
from rpexplore.scenarios.scenario import Scenario
from rpexplore.scenarios.workload_request import WorkloadRequest
from tests.pages.conftest import plain
from tests.pages.test_whole_plan_sections import settled

REGIONS = {"name": "region", "constraints": {"enum": ["N", "S"]}}
SEXES = {"name": "sex", "constraints": {"enum": ["F", "M"]}}
WEIGHT = {"name": "w", "type": "number", "bounds": [0, 40], "weights": True}


def test_a_column_of_weights_is_named_on_the_page_tables_and_planned(app):
    domain = rp.Domain.from_schema({"fields": [REGIONS, SEXES]})
    session = app("workload", Scenario(domain, WorkloadRequest(order=1)))
    session.text_input(key="weight column").set_value("w").run()
    session.text_input(key="largest new weight").set_value("40").run()
    session.press("Weight all tables")
    assert session.scenario.domain["w"].values == rp.Amounts(0, 40, 3, are_weights=True)
    assert session.scenario.workload.tables == [("w",), ("region", "w"), ("sex", "w")]
    session.text_input(key="largest weight").set_value("25.5").run()
    assert session.scenario.domain["w"].values.maximum == 25.5
    assert "those above 25.5 as 25.5" in plain(session.texts("caption"))
    session.multiselect(key="unweighted").set_value([("sex",)]).run()
    assert session.planned.workload.tables == [("sex",), ("w",), ("region", "w")]
    titles = session.planned.accuracy()["item"].tolist()
    assert titles == ["sex", "weighted count (w)", "weighted count (w) by region"]


def test_weights_of_the_codebook_are_chosen_and_dropped_with_a_sentence(app):
    domain = rp.Domain.from_schema({"fields": [REGIONS, SEXES, WEIGHT]})
    session = app("workload", Scenario(domain, WorkloadRequest(order=1)))
    assert not session.scenario.workload.is_weighted.any()
    session.selectbox(key="weighted by").set_value("w").run()
    assert session.scenario.workload.is_weighted.all()
    session = app("codebook", session.scenario)
    session.type_in_grid("codebook grid", 2, "kind", "amounts")
    assert session.scenario.request.weighted_by == ""
    warnings = " ".join(one.value for one in session.warning)
    assert "no longer weighted by" in warnings
    session.type_in_grid("codebook grid", 2, "kind", "weights")
    assert session.scenario.domain["w"].values == rp.Amounts(0, 40, 3, are_weights=True)


@pytest.mark.nightly
def test_weighted_counts_of_a_release_are_shown(app, tmp_path):
    domain = rp.Domain.from_schema({"fields": [WEIGHT, SEXES]})
    records = pd.DataFrame({"w": [1.5, 99.0] * 500, "sex": ["F", "M"] * 500})
    workload = rp.Workload.all_up_to(domain, 1).weighted_by("w")
    plan = rp.plan(workload, loss=rp.SumOfVariances(), budget=rp.Budget(rho=50))
    done = rp.release(plan, records, tmp_path / "out", name="made up", ledger=tmp_path / "ledger")
    session = app("results")
    for _ in session.views_of_results(done.folder, ["w", "sex"]):
        assert "Weights below 0 count as 0, those above 40 as 40" in plain(session.texts("caption"))


@pytest.mark.nightly
def test_areas_beside_weighted_tables_and_sums_in_areas_are_planned(app):
    tree = rp.AreaTree.from_columns({"region": [*"NNS"], "town": [*"121"]})
    income = {"name": "income", "type": "number", "bounds": [0, 1000], "decimals": 0}
    domain = rp.Domain.from_schema({"fields": [SEXES, income]})
    study = AreaStudy.of("areas.json", rp.AreaCodebook("home", tree, domain))
    weighted = rp.Domain.from_schema({"fields": [SEXES, WEIGHT]})
    request = WorkloadRequest(order=1, weighted_by="w")
    scenario = Scenario(weighted, request, areas=study, expected=rp.ExpectedCounts.of_total(1000))
    session = app("areas", scenario).show("areas", "Tables")
    session.multiselect(key="levels of table").set_value(["town"]).run()
    session.multiselect(key="table on levels").set_value(["sex", "income"]).run()
    session.button(key="Add this table").click().run()
    assert ("sex", "income") in session.scenario.areas.tables["town"].tables
    said = "Sums and weighted counts cannot be forecast"
    settled(session.show("areas", "Plan"), lambda one: said in plain(one.texts("caption")))
    for page in ("plan", "tradeoffs", "fairness", "scenarios", "release"):
        settled(session.open(page), lambda one: all(b.label != "Cancel" for b in one.button))
        assert not session.error, page
        assert page != "plan" or "Their margins of error" in plain(session.texts("caption"))
