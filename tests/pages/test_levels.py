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


def test_a_table_at_a_level_is_picked_and_planned_on_every_page(app):
    domain = rp.Domain.from_schema({"fields": [AGES, SEXES]})
    listed = WorkloadRequest("listed", listed=(("sex", "age@five"),))
    session = app("workload", Scenario(domain, listed))
    session.multiselect(key="picked").set_value(["age@adult"]).run()
    session.press("Add this table")
    assert session.scenario.workload.tables == [("age@adult",), ("sex", "age@five")]
    assert session.planned.closure.trees
    for page in session.pages():
        assert not session.exception, page
        assert not session.error, (page, session.error)
