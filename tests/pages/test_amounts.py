"""Amounts through the pages: chosen for a table, planned, and shown beside counts."""

import rpexplore as rp
from rpexplore.scenarios.scenario import Scenario
from rpexplore.scenarios.workload_request import WorkloadRequest

INCOME = {"name": "income", "type": "number", "bounds": [0, 200000], "unit": "EUR"}
SEXES = {"name": "sex", "constraints": {"enum": ["F", "M"]}}


def test_an_amount_is_chosen_for_a_table_and_planned_on_every_page(app):
    domain = rp.Domain.from_schema({"fields": [INCOME, SEXES]})
    listed = WorkloadRequest("listed", listed=(("sex",),))
    session = app("workload", Scenario(domain, listed))
    session.multiselect(key="picked").set_value(["income", "sex"]).run()
    session.press("Add this table")
    assert session.scenario.workload.tables == [("sex",), ("income", "sex")]
    assert session.planned.workload.has_amounts.tolist() == [False, True]
    titles = session.planned.accuracy()["item"].tolist()
    assert titles == ["sex", "sum of income in EUR by sex"]
    for page in session.pages():
        assert not session.exception, page
        assert not session.error, (page, session.error)
