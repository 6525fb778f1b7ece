"""The Workload page."""

import pytest

import rpexplore as rp
from rpexplore.scenario import TableSetting, WorkloadRequest


def choose(session, kind):
    session.segmented_control(key="kind").set_value(kind).run()
    return session


@pytest.mark.parametrize(
    ("kind", "key", "value", "tables"),
    [
        ("up_to", "order", 1, "4"),
        ("up_to", "order", 3, "8"),
        ("of_order", "order", 2, "3"),
        ("at_most_cells", "cells", 10, "5"),
    ],
)
def test_quick_builders(app, small, kind, key, value, tables):
    session = choose(app("workload", small), kind)
    session.number_input(key=key).set_value(value).run()
    assert session.metrics()["Tables"] == tables
    assert not session.error


def test_totals(app, small):
    metrics = app("workload", small).metrics()
    # (total), 10 + 2 + 5 and 20 + 50 + 10 cells.
    assert metrics["Cells in all tables"] == "98"
    assert metrics["Cells of the largest table"] == "50"
    assert metrics["Tables to measure"] == "7"


def test_closure_counts_what_the_tables_contain(app, small):
    session = app("workload", small.with_request(kind="of_order"))
    assert session.metrics()["Tables"] == "3"
    assert session.metrics()["Tables to measure"] == "7"


def test_a_list_starts_with_what_was_asked_for_and_is_edited(app, small):
    session = choose(app("workload", small), "listed")
    assert session.text_area(key="listed").value.splitlines()[:3] == ["total", "age", "sex"]
    session.text_area(key="listed").set_value("sex × age\nregion").run()
    assert session.scenario.workload.tables == [("region",), ("age", "sex")]
    session.multiselect(key="picked").set_value(["region", "age"]).run()
    session.press("Add this table")
    assert ("age", "region") in session.scenario.workload.tables


def test_an_unusable_list_stays_to_be_mended(app, small):
    session = choose(app("workload", small), "listed")
    before = session.scenario
    session.text_area(key="listed").set_value("age\nheight").run()
    assert "Line 2" in session.error[0].value
    assert session.scenario == before
    assert session.text_area(key="listed").value == "age\nheight"
    for _ in range(2):  # for as long as it is kept, also on later visits
        assert "still uses the list before this one" in session.error[0].value
        assert len(session.error) == 1
        session.open("plan").open("workload")
    assert session.text_area(key="listed").value == "age\nheight"
    assert session.scenario == before
    session.text_area(key="listed").set_value("age").run()
    assert not session.error
    assert session.text_area(key="listed").value == "age"


def test_the_same_table_twice_is_refused(app, small):
    session = app("workload", small.with_request(kind="listed", listed=(("age",),)))
    session.multiselect(key="picked").set_value(["age"]).run()
    session.press("Add this table")
    assert "twice" in session.error[0].value
    assert session.scenario.workload.tables == [("age",)]


def test_too_much_is_refused_with_its_size(app, wide):
    session = app("workload", wide)
    session.number_input(key="order").set_value(5).run()
    assert "at most 2,000,000" in session.error[0].value.replace("\\", "")
    assert session.number_input(key="order").value == 3
    assert session.metrics()["Tables"] == "166,751"


# ---- importance and targets


def test_importance_and_target_are_typed(app, small):
    session = app("workload", small)
    before = session.data_editor[0].value["standard_error"]
    session.type_in_grid("workload grid", 2, "weight", 5.0)
    session.type_in_grid("workload grid", 2, "target", 3.0)
    assert session.scenario.request.settings == (TableSetting(("sex",), 5.0, 3.0),)
    after = session.data_editor[0].value["standard_error"]
    assert after.iloc[2] < before.iloc[2]
    assert after.iloc[1] > before.iloc[1]


def test_typed_cells_stay_with_their_tables(app, small):
    session = app("workload", small)
    session.type_in_grid("workload grid", 2, "weight", 5.0)
    choose(session, "of_order")
    session.run()
    assert session.scenario.request.settings == (TableSetting(("sex",), 5.0),)
    assert "1 importance or target" in " ".join(session.texts("caption"))


def test_importance_of_zero_is_refused(app, small):
    session = app("workload", small)
    session.type_in_grid("workload grid", 1, "weight", 0.0)
    assert "must be a positive number" in session.error[0].value
    assert session.scenario == small


def test_one_unusable_importance_does_not_hold_up_the_others(app, small):
    session = app("workload", small)
    session.type_in_grid("workload grid", 1, "weight", 0.0)
    session.type_in_grid("workload grid", 2, "weight", 5.0)
    assert session.scenario.request.settings == (TableSetting(("sex",), 5.0),)
    assert len(session.error) == 1
    session.open("schema").open("workload")
    assert "given up" in session.warning[0].value
    assert not session.run().warning


def test_targets_are_set_where_the_plan_waits_for_them(app, small):
    scenario = small.replaced(loss=rp.MaxVariance(relative_to="target"))
    session = app("workload", scenario)
    assert "has no target" in session.error[0].value
    assert session.data_editor[0].value["standard_error"].isna().all()
    session.type_in_grid("workload grid", 1, "target", 7.0)
    session.number_input(key="target of many").set_value(5.0).run()
    session.press("Set for all 7 tables")
    assert not session.error
    assert session.scenario.workload.targets.tolist() == [5.0] * 7
    assert session.data_editor[0].value["standard_error"].notna().all()


def test_many_tables_are_set_at_once_and_forgotten(app, small):
    session = app("workload", small)
    session.multiselect(key="containing").set_value(["sex"]).run()
    assert len(session.data_editor[0].value) == 3
    session.press("Set for")
    assert "Type an importance" in session.info[0].value
    session.number_input(key="weight of many").set_value(2.0).run()
    session.press("Set for all 3 tables with these attributes")
    assert {each.attributes for each in session.scenario.request.settings} == {
        ("sex",),
        ("age", "sex"),
        ("sex", "region"),
    }
    session.press("Forget all")
    assert session.scenario == small


def test_a_filter_without_tables_says_so(app, small):
    session = app("workload", small)
    session.multiselect(key="containing").set_value(["age", "sex", "region"]).run()
    assert "No table" in session.info[0].value


def test_a_long_list_is_cut_visibly(app, wide):
    session = app("workload", wide)
    assert "first 2,000 of 166,751" in session.info[0].value
    assert len(session.data_editor[0].value) == 2000
    assert session.download_button[0].label == "Download tables.csv"
    choose(session, "listed")
    assert len(session.scenario.workload) == 100


def test_one_table(app, small):
    scenario = small.replaced(request=WorkloadRequest("listed", listed=((),)))
    session = app("workload", scenario)
    assert session.metrics()["Tables"] == "1"
