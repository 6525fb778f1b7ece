"""The Data page."""

import json

import pytest

import rpexplore as rp
from rpexplore.scenarios.codebook_import import lines_of
from rpexplore.scenarios.examples import EXAMPLES
from rpexplore.scenarios.table_settings import TableSetting
from tests.pages.conftest import plain

CSV = b"attribute,value,label\nsex,F,Female\nsex,M,Male\nregion,N,\nregion,S,\n"


def upload(session, name, content):
    session.segmented_control(key="codebook source").set_value("A file").run()
    session.file_uploader(key="codebook").upload(name, content).run()
    return session


def test_a_codebook_is_loaded_and_an_unusable_one_leaves_it(app, small):
    session = app("codebook")
    # The sample's income has intervals, which CSV cannot say.
    as_json, as_csv = session.download_button
    assert (as_json.disabled, as_csv.disabled) == (False, True)
    assert "income groups numbers" in plain(session.texts("caption"))
    upload(session, "codebook.csv", CSV)
    assert [button.disabled for button in session.download_button] == [False, False]
    assert session.scenario.domain.names == ("sex", "region")
    assert session.scenario.domain["sex"].labels() == ["Female", "Male"]
    assert not session.error
    assert session.metrics()["Combinations of all attributes"] == "4"
    assert session.scenario.record_noun == "records"  # no longer the people of the sample
    assert "Loaded codebook.csv (CSV codebook): 2 attributes, 4 values" in session.success[
        0
    ].value.replace("\\", "")
    assert not session.run().success
    assert session.scenario.survey == ""
    session.session_state["typed list"] = "sex × refused"  # on Tables, to be mended there
    session.text_input(key="survey").set_value("Panel *2026*").run()
    assert session.scenario.survey == "Panel *2026*"
    assert session.session_state["typed list"] == "sex × refused"
    assert "**Panel *2026***" in plain(session.texts("markdown"))
    session.button(key="Undo step").click().run()
    assert session.scenario.survey == ""
    session.button(key="Redo step").click().run()
    before = session.scenario
    session.file_uploader(key="codebook").upload("c.csv", CSV + b"sex,F,\n").run()
    assert "listed twice" in session.error[0].value
    assert len(session.error) == 1
    assert session.scenario == before
    # Settings that do not fit the new codebook are named once.
    session.scenario = small.with_settings(
        [TableSetting(("age", "sex"), 2.0), TableSetting(("sex",), 3.0)]
    )
    upload(session.run(), "again.csv", CSV)
    assert "age × sex" in plain(session.texts("warning"))
    assert session.scenario.request.settings == ()
    assert not session.run().warning
    # Impossible combinations: refused lines stay to be mended, and an edit drops what has gone.
    lines = "impossible combinations"
    session.text_area(key=lines).set_value("sex=X region=N").run()
    assert "'sex' must be named by one of them" in plain(session.texts("error"))
    assert session.text_area(key=lines).value == "sex=X region=N"
    assert session.scenario.domain.impossible == ()
    session.text_area(key=lines).set_value("sex=F region=N\n\nregion=S").run()
    assert not session.error
    assert lines_of(session.scenario.domain) == "sex=F region=N\nregion=S"
    as_json, as_csv = session.download_button
    assert (as_json.disabled, as_csv.disabled) == (False, True)
    assert "no place for impossible combinations" in plain(session.texts("caption"))
    session.type_in_grid("codebook grid", 0, "remove", True)
    assert "1 impossible combination: sex=F region=N" in plain(session.texts("warning"))
    assert session.text_area(key=lines).value == "region=S"


@pytest.mark.nightly
def test_a_codebook_is_typed_or_comes_from_a_plan_and_an_unusable_one_leaves_it(app, small):
    scenario = small.with_settings([TableSetting(("sex",), 2.0, 9.0)]).replaced(
        loss=rp.MaxVariance(), budget=rp.Budget(rho="0.3", max_records_per_person=2)
    )
    session = app("codebook")
    session.segmented_control(key="codebook source").set_value("Typed in").run()
    session.text_area(key="typed").set_value("age 0..99\nsex: F, M").run()
    session.press("Use this codebook")
    assert session.scenario.domain.names == ("age", "sex")
    session.text_area(key="typed").set_value("age").run()
    session.press("Use this codebook")
    assert "Line 1" in session.error[0].value
    assert session.text_area(key="typed").value == "age"
    assert session.scenario.domain.names == ("age", "sex")
    upload(session, "plan.json", scenario.table_plan().text.encode())
    assert session.scenario == scenario.replaced(record_noun="records")
    assert "3 attributes, 7 tables" in plain(session.texts("success"))
    before = session.scenario
    upload(session, "project.json", session.project.text().encode())
    assert "of the kind rpexplore-project" in plain(session.texts("error"))
    assert session.scenario == before


def test_the_counts_of_an_example_stay_with_its_codebook(app):
    session = app("codebook")
    household = session.scenario.domain
    counts = session.scenario.expected
    assert counts is not None
    upload(session, "same.json", household.text("same.json").encode())
    assert session.scenario.expected == counts
    # One's own codebook may have the same attributes: the counts are of other people all the same.
    own = rp.Domain(household.attributes[:3])
    upload(session, "own.json", own.text("own.json").encode())
    assert session.scenario.domain == own
    assert session.scenario.expected is None
    assert "expected counts" not in plain(session.texts("warning"))


def test_what_a_codebook_leaves_out_is_named(app, small):
    fields = [
        {"name": "sex", "type": "boolean", "groups": [["a"], ["b"]]},
        {"name": "weight", "type": "number"},
    ]
    session = upload(app("codebook", small), "s.json", json.dumps({"fields": fields}).encode())
    assert session.scenario.domain.names == ("sex",)
    said = plain(session.texts("success"))
    assert "Loaded s.json (Table Schema): 1 attribute, 2 values, 1 attribute with levels." in said
    assert "no values for them: weight (type number)" in plain(session.texts("warning"))


def test_of_a_data_package_with_several_tables_one_is_chosen(app, small):
    fields = {name: [{"name": name, "type": "boolean"}] for name in ("people", "homes")}
    resources = [{"name": name, "schema": {"fields": one}} for name, one in fields.items()]
    package = json.dumps({"resources": resources}).encode()
    session = upload(app("codebook", small), "datapackage.json", package)
    assert session.scenario == small
    session.selectbox(key="package table").set_value("homes").run()
    session.press("Use this codebook")
    assert session.scenario.domain.names == ("homes",)


def test_a_dropped_data_file_offers_its_columns_and_changes_nothing(app, small):
    session = upload(app("codebook", small), "survey.csv", b"id,sex,income\n1,SECRET,2\n")
    assert session.scenario == small
    assert session.multiselect(key="columns to take").options == ["id", "sex", "income"]
    assert "SECRET" not in str(session.main)
    assert "what to take" not in [radio.key for radio in session.radio]  # its records are not here
    session.multiselect(key="columns to take").set_value(["sex"]).run()
    session.press("Add these")
    assert session.scenario == small  # has one of that name, with values
    session.press("Replace the codebook")
    assert session.scenario.domain.names == ("sex",)
    assert "No values yet: sex" in plain(session.texts("warning"))


def test_every_example_has_a_codebook_with_its_expected_counts(app, small):
    session = app("codebook", small)
    session.segmented_control(key="codebook source").set_value("An example").run()
    assert session.radio(key="codebook of example").options == [one.title for one in EXAMPLES]
    session.radio(key="codebook of example").set_value("Health register").run()
    session.press("Use the codebook")
    (register,) = [one for one in EXAMPLES if one.title == "Health register"]
    scenario = session.scenario
    assert (scenario.domain, scenario.expected) == (register.domain, register.expected)
    assert scenario.record_noun == "stays"
    assert scenario.name == small.name
    assert "Loaded the health register: 8 attributes" in plain(session.texts("success"))


def test_what_is_counted(app, small):
    session = app("codebook", small)
    session.text_input(key="record_noun").set_value("visits").run()
    session.open("plan")
    assert session.metrics()["95 % margin of error, median table"].endswith(" visits")
    session.open("codebook").text_input(key="record_noun").set_value(" ").run()
    assert session.scenario.record_noun == "records"
