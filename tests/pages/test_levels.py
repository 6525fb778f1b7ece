"""Tables at levels of attributes, through the pages: picked, planned, compared, released."""

import pandas as pd

import rpexplore as rp
from rpexplore.scenarios.scenario import Scenario
from rpexplore.scenarios.workload_request import WorkloadRequest
from tests.pages.conftest import plain
from tests.pages.test_results import opened, opened_when_made

AGES = {
    "name": "age",
    "constraints": {"minimum": 0, "maximum": 29},
    "levels": {"five": 5, "adult": "0-17, 18+"},
}
SEXES = {"name": "sex", "constraints": {"enum": ["F", "M"]}}


def test_a_table_at_a_level_is_picked_and_planned(app):
    domain = rp.Domain.from_schema({"fields": [AGES, SEXES]})
    listed = WorkloadRequest("listed", listed=(("sex", "age@five"),))
    session = app("workload", Scenario(domain, listed))
    session.multiselect(key="attributes of One table").set_value(["age@adult"]).run()
    session.button(key="add One table").click().run()
    assert session.scenario.workload.tables == [("age@adult",), ("sex", "age@five")]
    assert session.planned.closure.trees
    # What was picked is gone when it is added, else the next table would have it as well.
    picked = session.multiselect(key="attributes of One table")
    assert not picked.value
    picked.set_value(["age@adult", "age@five"]).run()
    session.button(key="add One table").click().run()
    assert any("at two levels" in one.value for one in session.error)
    assert session.multiselect(key="attributes of One table").value == ["age@adult", "age@five"]


def test_levels_are_typed_on_the_codebook_page_and_tables_of_a_level_that_goes_are_told(app):
    domain = rp.Domain.from_schema({"fields": [{**AGES, "levels": {}}, SEXES]})
    session = app("codebook", Scenario(domain))
    typed = next(box for box in session.text_area if box.label.startswith("Levels"))
    typed.set_value("five: 5\nadult: 0-17, 18+").run()
    session.press("Use these levels")
    levels = session.scenario.domain["age"].levels
    assert [level.name for level in levels] == ["five", "adult"]

    listed = WorkloadRequest("listed", listed=(("sex", "age@five"), ("sex", "age@adult")))
    session = app("codebook", Scenario(session.scenario.domain, listed))
    typed = next(box for box in session.text_area if box.label.startswith("Levels"))
    typed.set_value("adult: 0-17, 18+").run()
    session.press("Use these levels")
    assert session.scenario.workload.tables == [("sex", "age@adult")]
    assert any("Dropped" in one.value and "five" in one.value for one in session.warning)


def test_only_what_goes_with_levels_is_offered(app):
    """Else the steps would be refused when they are taken."""
    domain = rp.Domain.from_schema({"fields": [AGES, SEXES]})
    listed = WorkloadRequest("listed", listed=(("sex", "age@five"), ("age@adult",)))
    session = app("plan", Scenario(domain, listed))
    offered = {"Model-based estimates", "Adaptive plan (biased)"}
    assert not offered & {box.label for box in session.expander}
    session.open("workload").show("workload", "weights")
    assert all(button.label != "Weights for smooth tables" for button in session.button)
    session.open("release")
    assert all(choice.label != "Plan to run" for choice in session.radio)
    session = app("plan", Scenario(domain, WorkloadRequest("listed", listed=(("sex", "age"),))))
    assert offered <= {box.label for box in session.expander}
    session.open("workload").show("workload", "weights")
    session.press("Weights for smooth tables")
    assert not session.exception
    assert "type the expected number above" in plain(session.texts("caption"))
    session.open("release")
    assert any(choice.label == "Plan to run" for choice in session.radio)


def test_tables_at_levels_become_whole_tables_and_records(app, tmp_path):
    domain = rp.Domain.from_schema({"fields": [AGES, SEXES]})
    workload = rp.Workload.of(domain, [("sex", "age@five"), ("age@adult",)])
    plan = rp.plan(workload, loss=rp.SumOfVariances(), budget=rp.Budget(rho=1))
    people = pd.DataFrame({"age": [*range(30)] * 10, "sex": ["F", "M", "M"] * 100})
    release = tmp_path / "release"
    rp.release(plan, people, release, name="people", ledger=tmp_path / "ledger.sqlite")
    session = opened(app, release)
    # The scenario has age, and says what is counted, also at levels.
    assert session.text_input(key="question").label == "How many people have …"
    assert session.radio(key="counts to make").options == ["Nonnegative"]
    assert all(box.key != "synthetic rows" for box in session.number_input)
    session.press("Make the processed tables")
    opened_when_made(session)
    assert session.success, plain(session.texts("error"))
    session = opened(app, release)
    session.press("Make the records")
    opened_when_made(session)
    assert session.success, plain(session.texts("error"))
    assert "drawn from whole counts" in plain(session.texts("markdown"))
