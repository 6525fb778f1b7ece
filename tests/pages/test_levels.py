"""Tables at levels of attributes, through the pages: picked, planned, compared, released."""

import rpexplore as rp
from rpexplore.scenarios.scenario import Scenario
from rpexplore.scenarios.workload_request import WorkloadRequest

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
