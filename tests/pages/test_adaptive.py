"""Adaptive releases in the app: planned, rehearsed, run once, and looked at."""

from fractions import Fraction
from math import ceil, inf, isnan

import pytest

import rpexplore as rp
from pages.components.results.browser import VIEWS
from pages.components.results.source import FOLDER
from rpexplore.analysis.adaptive import NOTHING_PROMISED, measured_when, when_to_choose
from rpexplore.common.text import rounded
from rpexplore.domain.expected_counts import ExpectedCounts
from rpexplore.planning.adaptive import adaptive_plan
from rpexplore.releases.adaptive_release import AdaptiveRelease
from rpexplore.releases.ledger.ledger import Ledger
from rpexplore.results.combination import load_measured
from rpexplore.results.formats.listed_columns import columns_of
from rpexplore.results.synthetic.records_folder import synthesize
from rpexplore.scenarios.scenario import Scenario
from rpexplore.scenarios.workload_request import WorkloadRequest
from tests.pages.conftest import finish, open_dialog, plain, set_up
from tests.pages.test_results import look
from tests.releases.adaptive_run import DOMAIN, WORKLOAD, write_records

EXPECTED = 5_000


@pytest.fixture
def scenario() -> Scenario:
    expected = ExpectedCounts.of_total(EXPECTED)
    return Scenario(DOMAIN, WorkloadRequest(order=2), expected=expected, record_noun="people")


@pytest.fixture
def people(tmp_path):
    path = tmp_path / "data" / "people.csv"
    path.parent.mkdir()
    write_records(path)
    return path


@pytest.mark.nightly
def test_an_adaptive_plan_is_run_once_and_its_tables_are_looked_at(app, scenario, people, tmp_path):
    session = set_up(app("release", scenario), people, tmp_path / "out")
    session.radio(key="plan to run").set_value("adaptive").run()
    assert session.query_params["plan"] == "adaptive"  # so it survives a reload
    plan = adaptive_plan(scenario.workload, budget=scenario.budget, expected_records=EXPECTED)
    session.press("Dry run")
    assert "nothing was spent" in plain(session.texts("success"))
    facts = plain(open_dialog(session).texts("markdown"))
    assert f"Accuracy:** {NOTHING_PROMISED}" in facts
    assert f"Release:** {plan.full_contents}, into" in facts
    session = finish(session.press("Spend"))
    assert "biased" in plain(session.texts("warning"))
    done = AdaptiveRelease.load(tmp_path / "out")
    assert done.plan.sha256 == plan.sha256
    spent = Ledger.beside(people).account(people).spent_record_rho
    assert spent == plan.record_rho <= Fraction("0.1")
    session.open("results")
    look(session, ["sex", "age"], "List")
    assert f"Adaptive release:** {done.label}" in plain(session.texts("warning"))
    bounds = dict(zip(done.table_names, done.bounds["error_bound_95"], strict=True))
    assert bounds["sex", "age"] > 0
    stated = rounded(ceil(bounds["sex", "age"]), 3, "up")
    share = rounded(100 * bounds["sex", "age"] / done.table("sex", "age")["value"].sum(), 2, "up")
    assert (
        f"All errors of this table together are at most {stated} people, {share} % of all, with "
        "95 %." in plain(session.texts("markdown"))
    )
    listed, by_table, selected = (box.value for box in session.dataframe)
    assert listed["value"].tolist() == done.table("sex", "age")["value"].tolist()
    assert "standard_error" not in listed
    headings = {name: column.heading for name, column in columns_of(listed).items()}
    assert headings["value"] == "estimated count (biased)"
    assert headings["lower_95"] == "95 % interval from (if the model holds)"
    said = dict(zip(done.table_names, done.describe_bounds("people"), strict=True))
    smallest_first = sorted(bounds, key=lambda at: inf if isnan(bounds[at]) else bounds[at])
    assert by_table["bound"].tolist() == [said[table] for table in smallest_first]
    assert len(selected) == len(done.selections)
    session.checkbox(key="leave cells empty").check().run()
    for view in VIEWS.keys() - {"Map"}:
        look(session, ["sex", "age"], view)
    downloads = [button.label for button in session.get("download_button")]
    assert "Download all tables as an Excel workbook" in downloads
    assert "made of releases whose plan is not adaptive" in plain(session.texts("info"))
    assert "Of sums of these estimates no error is known" in plain(session.texts("caption"))
    records = synthesize(load_measured(tmp_path / "out"), tmp_path / "synthetic", rows=50)
    session.radio(key="results from").set_value(FOLDER).run()
    session.text_input(key="results folder").set_value(str(records.folder)).run()
    for _ in range(100):
        if session.warning and "no row is a person" in plain(session.texts("warning")):
            break
        session.run()
    said = plain(session.texts("markdown")) + plain(session.texts("caption"))
    assert "may not be among the released ones" in said
    assert "exact error" not in said


@pytest.mark.nightly
def test_the_plan_page_offers_rehearses_and_hands_over_an_adaptive_plan(app, scenario):
    session = app("plan", scenario).unfold("adaptive plan")
    said = plain(session.texts("markdown"))
    plan = adaptive_plan(scenario.workload, budget=scenario.budget, expected_records=EXPECTED)
    assert all(sentence in said for sentence in when_to_choose(None))
    frames = [box.value for box in session.dataframe]
    (steps,) = [frame for frame in frames if "selection_rho" in frame]
    assert steps["measured"].tolist() == measured_when(plan)["measured"].tolist()
    session.press("Simulate the adaptive plan")
    for _ in range(100):
        if "Simulated once on made-up people" in plain(session.texts("markdown")):
            break
        session.run()
    else:
        raise AssertionError("the rehearsal did not end")
    (rehearsed,) = [box.value for box in session.dataframe if {"order", "fixed"} <= {*box.value}]
    assert rehearsed["order"].tolist() == [1, 2]
    # Without expected counts it asks for their number, as elsewhere.
    session.scenario = scenario.replaced(expected=None)
    session.unfold("adaptive plan")
    assert "Type above how many" in plain(session.texts("info"))
    session.text_input(key="expected total").set_value("5000").run()
    assert not session.exception
    assert any("selection_rho" in box.value for box in session.dataframe)


def test_a_plan_file_is_run_instead_and_another_kind_of_file_refused(app, scenario, people):
    session = set_up(app("release", scenario), people)
    session.radio(key="plan to run").set_value("adaptive").run()
    own = adaptive_plan(scenario.workload, budget=scenario.budget, expected_records=EXPECTED)
    other = adaptive_plan(WORKLOAD, budget=rp.Budget(rho="0.3"), expected_records=9_000)
    box = session.file_uploader(key="uploaded adaptive plan")
    box.upload("bad.json", session.planned.text.encode()).run()
    assert "bad.json plans 11 noisy tables; a plan of adaptive tables is needed" in plain(
        session.texts("error")
    )
    assert own.full_contents in plain(session.texts("markdown"))
    box = session.file_uploader(key="uploaded adaptive plan")
    box.upload("other.json", other.text.encode()).run()
    assert other.sha256 in plain(session.texts("markdown"))
    assert f"The plan: {other.full_contents}" in plain(session.texts("markdown"))
    assert "spend ρ = 0.3" in session.button_of("Run the release").label
    session.press("Back to the plan of the scenario")
    assert f"The plan: {own.full_contents}" in plain(session.texts("markdown"))
