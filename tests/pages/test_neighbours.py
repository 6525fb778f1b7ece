"""Who is protected, on the Data page and beside the budget of the Plan page."""

import hashlib
import json

import pytest

from rpexplore.domain.area_codebook import AreaCodebook
from rpexplore.privacy.budget import Budget
from rpexplore.releases.finished_release import Release
from rpexplore.scenarios.area_study import AreaStudy
from tests.pages.conftest import confirmed_run, finish, plain, set_up


def test_the_data_page_chooses_and_shows_what_neighbours_are(app, small):
    session = app("codebook")
    assert "neighbours add or remove it" in plain(session.texts("caption"))
    session.radio(key="neighbours").set_value("replace").run()
    assert session.scenario.budget.replaces
    assert "The number of records is public" in plain(session.texts("caption"))
    session.radio(key="protected").set_value("A person").run()
    session.number_input(key="records per person").set_value(2).run()
    budget = session.scenario.budget
    assert (budget.max_records_per_person, budget.neighbours) == (2, "replace")
    session.radio(key="neighbours").set_value("add-remove").run()
    assert not session.scenario.budget.replaces


def test_exact_totals_are_typed_where_neighbours_replace(app, small):
    session = app("codebook", small)
    session.radio(key="neighbours").set_value("replace").run()
    session.text_input(key="exact totals").set_value("region; sex, age").run()
    assert session.scenario.budget.exact == (("age", "sex"), ("region",))
    assert "age × sex and region are released as they are" in plain(session.texts("caption"))
    session.text_input(key="exact totals").set_value("height").run()
    assert "height" in plain(session.texts("error"))
    assert session.scenario.budget.exact == (("age", "sex"), ("region",))
    session.text_input(key="exact totals").set_value("area@region").run()
    assert "the plan has none; give the areas" in plain(session.texts("error"))
    session.open("plan")
    assert not session.exception
    assert "The totals of age × sex and region" in session.scenario.plan().guarantee
    session.open("codebook").radio(key="neighbours").set_value("add-remove").run()
    assert session.scenario.budget.exact == ()


def test_exact_totals_of_areas_alone_have_attributes_of_their_codebook(app, small):
    towns = b"town\nN|1\nN|2\nS|1\n"
    home = {"path": "towns.csv", "separator": "|", "levels": ["region", "town"]}
    home["sha256"] = hashlib.sha256(towns).hexdigest()
    height = {"name": "height", "constraints": {"enum": ["tall", "small"]}}
    content = json.dumps({"fields": [{"name": "home", "areas": home}, height]}).encode()
    book = AreaCodebook.from_files(content, "book.json", {"towns.csv": towns})
    budget = Budget(rho=1, neighbours="replace")
    study = AreaStudy.of("book.json", book)
    session = app("codebook", small.replaced(areas=study, asks_for_tables=False, budget=budget))
    session.text_input(key="exact totals").set_value("area@region; height").run()
    assert session.scenario.budget.exact == (("area@region",), ("height",))


def test_the_plan_page_plans_for_them(app, small):
    budget = Budget(rho="0.1", neighbours="replace")
    session = app("plan")
    session.scenario = small.replaced(budget=budget)
    session.run()
    assert not session.exception
    made = session.scenario.plan()
    assert "replacing it by any other" in made.guarantee


def test_a_panel_is_chosen_on_the_data_page(app, small):
    session = app("codebook")
    name = session.scenario.domain.names[0]
    session.radio(key="protected").set_value("A person").run()
    session.number_input(key="records per person").set_value(2).run()
    session.selectbox(key="period").set_value(name).run()
    assert session.scenario.budget == Budget(
        **dict(session.scenario.budget.stated), max_records_per_person=2, period=name
    )
    session.radio(key="protected").set_value("A record").run()
    assert session.scenario.budget.period is None
    assert not session.exception


@pytest.mark.nightly
def test_distinct_households_are_counted_from_the_page_data_to_the_release(app, small, tmp_path):
    session = app("codebook", small.replaced(budget=Budget(rho="1e6")))
    session.text_input(key="count distinct").set_value("hh_id").run()
    assert "does not say what is counted" in plain(session.texts("error"))
    session.text_input(key="unit noun").set_value("household").run()
    session.text_input(key="count distinct").set_value("hh_id").run()
    assert session.scenario.budget == Budget(rho="1e6", distinct="hh_id", unit_noun="household")
    assert "counted once by the column 'hh_id'" in plain(session.texts("caption"))
    people = ["hh_id,age,sex,region"] + [f"{number // 3},1,0,1" for number in range(300)]
    (tmp_path / "people.csv").write_text("\n".join(people))
    session.open("release")
    set_up(session, tmp_path / "people.csv", tmp_path / "out")
    assert "each value of the column hh_id once" in plain(session.texts("markdown"))
    finish(confirmed_run(session))
    assert round(Release.load(tmp_path / "out").answer().value) == 100
    session.open("codebook").text_input(key="count distinct").set_value("").run()
    assert session.scenario.budget == Budget(rho="1e6", unit_noun="household")
    assert session.text_input(key="count distinct").value == ""
