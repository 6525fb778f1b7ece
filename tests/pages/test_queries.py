"""Own counts on the page Tables: added, listed, what comes of them, and what they would cost."""

import sys
from functools import wraps

import numpy as np
import pytest

import rpexplore as rp
from pages.components.queries.list import RANGES, TABLES
from pages.components.queries.preset_dialog import QUERIES as QUERIES_OF_PRESET
from pages.components.queries.preset_dialog import TABLES as TABLES_OF_PRESET
from pages.components.shared.session import kept_name
from rpexplore.common.text import rounded
from rpexplore.domain.expected_counts import ExpectedCounts
from rpexplore.errors import PlanError
from rpexplore.planning.counts import QueryPlan
from rpexplore.planning.part_plan import keeping
from rpexplore.planning.verification import verify
from rpexplore.scenarios.scenario import Scenario
from rpexplore.workload.presets import PRESETS, REDISTRICTING
from rpexplore.workload.query_definitions import StatedQueries, stated_from_text
from rpexplore.workload.query_files import stated_from_csv
from tests.pages.conftest import plain
from tests.support.query_lists import marginals

TEXT = "everybody: total ± 50\nold: age >= 8 ± 20\nold women: age >= 8 & sex = 1 @ 8"
VIEW = "queries"
SMALLEST = PRESETS[-1]  # the one that is solved at once


def typed(session, text):
    session.text_area(key="query lines").set_value(text).run()
    assert not session.exception
    return session


def at_budget(session, rho):
    session.scenario = session.scenario.replaced(budget=rp.Budget(rho=rho))
    session.run()


@pytest.fixture
def listed(small) -> Scenario:
    """The three queries alone, at a budget that is enough for them."""
    domain = rp.Domain.from_sizes({"age": 10, "sex": 2})
    return small.replaced(query_list=stated_from_text(domain, TEXT), asks_for_tables=False)


def plan_of(session) -> QueryPlan:
    """The plan that was made last."""
    return session.test.session_state[kept_name(keeping, "Scenario 1")][1]


# ---- the list


def test_a_list_is_typed_and_planned(app, small):
    session = app("queries", small)
    assert not session.metrics()
    typed(session, TEXT)
    # The budget is all theirs when tables are left out.
    session.button(key="remove which").click().run()
    session.open("queries").press("Make it the budget")
    stated = session.scenario.query_list
    # The attributes are those that the lines name.
    assert stated.queries.domain == rp.Domain.from_sizes({"age": 10, "sex": 2})
    assert stated == stated_from_text(stated.queries.domain, TEXT)
    assert session.metrics()["Targets met"] == "3 of 3"
    assert "**Targets.** All 3 targets are met." in plain(session.texts("markdown"))
    plan = plan_of(session)
    assert plan.met.all()
    assert 0.999 < plan.ratio <= 1
    assert verify(plan).holds
    rows = session.dataframe[0].value
    assert rows["query"].tolist() == ["everybody", "old", "old women"]
    assert rows["wanted"].tolist() == ["±50 at 95 %", "±20 at 95 %", "8"]
    assert all(outcome.startswith("met: ") for outcome in rows["outcome"])
    markdown = plain(session.texts("markdown"))
    assert "Proven optimal for this objective" in markdown
    assert "No method with Gaussian noise meets all targets" in markdown
    files = {
        "Count by count": ["own-counts-accuracy.csv"],
        "Baselines": ["budgets-of-baselines.csv"],
        "Privacy profile": ["privacy-profile.csv", "free_counts.csv"],
    }
    for view, names in files.items():
        session.show(VIEW, view)
        labels = [button.label for button in session.get("download_button")]
        assert {f"Download {name}" for name in names} <= {*labels}


def test_missed_targets_stand_first_and_expected_counts_say_what_errors_are_worth(app, listed):
    listed = listed.replaced(budget=rp.Budget(rho="0.002"), expected=ExpectedCounts.of_total(1000))
    session = app("queries", listed)
    rows = session.dataframe[-1].value  # the budget has published releases beside it
    assert rows["query"].tolist() == ["old", "old women", "everybody"]
    assert all(text.startswith("missed: short by ") for text in rows["outcome"])
    assert rows["ratio"].round(2).is_monotonic_decreasing
    assert rows["expected"].tolist()[-1] == "1,000"
    assert " to " in rows["expected"].tolist()[0]
    of_everybody = rows["standard_error"].tolist()[-1] / 1000
    assert rows["coefficient"].tolist()[-1] == f"{100 * of_everybody:.2g} %"
    assert session.metrics()["Publishable counts"].endswith(" of 3")


def test_adults_in_the_north_by_sex_are_built_from_labels_and_errors_name_the_condition(app):
    people = rp.Domain.from_schema(
        {
            "fields": [
                {"name": "age", "constraints": {"minimum": 0, "maximum": 29}},
                {"name": "sex", "constraints": {"enum": ["Female", "Male"]}},
                {"name": "place", "constraints": {"enum": ["A", "B", "C"]},
                 "levels": {"part": {"North": ["A", "B"], "South": ["C"]}}},
            ]
        }
    )  # fmt: skip
    session = app("queries", Scenario(people))
    session.text_input(key="new count").set_value("adults").run()
    session.selectbox(key="condition on 0").set_value("age").run()
    session.selectbox(key="first values of age in 0").set_value("18").run()
    session.button(key="further condition").click().run()
    session.selectbox(key="condition on 1").set_value("place@part").run()
    session.multiselect(key="values of place@part in 1").set_value(["North"]).run()
    session.multiselect(key="count by").set_value(["sex"]).run()
    # What is typed as well is wrong, and said as long as it is.
    session.text_input(key="typed count").set_value("age < old").run()
    assert "(age < old)" in plain(session.texts("error"))
    assert session.button(key="add built count").disabled
    session.text_input(key="typed count").set_value("age < 25 | age = 29").run()
    assert not session.error
    session.button(key="add built count").click().run()
    queries = session.scenario.query_list.queries
    assert queries.names == ("adults, sex = Female", "adults, sex = Male")
    ages, places = np.arange(30), np.array([True, True, False])
    wanted = (ages >= 18) & ((ages < 25) | (ages == 29))
    women = np.einsum("a,s,p->asp", wanted, [1.0, 0.0], places).ravel()
    assert queries.domain.names == ("age", "sex", "place")
    assert queries.coefficients[0].tolist() == women.tolist()
    assert session.scenario.query_list.targets[0].text == "±20 at 95 %"
    # The fields are ready for the next one, and the line of the list says what there is.
    assert session.text_input(key="new count").value == ""
    assert session.selectbox(key="condition on 0").value is None
    assert "adults, sex = Female · adults, sex = Male" in plain(session.texts("markdown"))


def test_a_count_of_chosen_values_may_add_up_amounts(app):
    people = rp.Domain.from_schema(
        {
            "fields": [
                {"name": "sex", "constraints": {"enum": ["Female", "Male"]}},
                {"name": "income", "type": "number", "bounds": [0, 1000]},
            ]
        }
    )
    session = app("queries", Scenario(people))
    session.text_input(key="new count").set_value("pay of women").run()
    session.selectbox(key="condition on 0").set_value("sex").run()
    session.multiselect(key="values of sex in 0").set_value(["Female"]).run()
    session.text_input(key="typed count").set_value("sum(income)").run()
    assert not session.error
    session.button(key="add built count").click().run()
    stated = session.scenario.query_list
    assert stated.conditions == ('sum(income) where sex == "Female"',)
    assert stated.queries.coefficients.tolist() == [[0, 1000, 0, 0]]
    assert not session.exception


def test_what_cannot_be_read_names_its_line_and_is_kept_to_be_mended(app, listed):
    line, message = "x: age > 3 ± many", "Line 4: The target must be written like"
    session = app("queries", listed)
    typed(session, f"{TEXT}\n{line}")
    errors = plain(session.texts("error"))
    assert message in errors
    assert "the list before it stays in effect" in errors
    assert session.text_area(key="query lines").value == f"{TEXT}\n{line}"
    assert session.scenario == listed
    assert session.metrics()["Targets met"] == "3 of 3"
    session.open("plan").open("queries")
    assert message in plain(session.texts("error"))
    typed(session, f"{TEXT}\nx: age > 3 ± 5")
    assert not session.error
    assert len(session.scenario.query_list) == 4
    # An undo forgets lines that could not be read, too.
    typed(session, "all: total ±")
    assert session.error
    session.press("Undo")
    assert not session.error
    assert session.scenario == listed
    assert session.text_area(key="query lines").value.startswith("everybody: total ±50 at 95 %")


def test_a_first_list_has_the_usual_target_and_is_none_while_it_cannot_be_read(app, small):
    session = typed(app("queries", small), "sex = 1 ± 3\nx: age = old ± 5")
    assert "Line 2: At character 7" in plain(session.texts("error"))
    assert "There is no list until this is mended" in plain(session.texts("error"))
    assert session.scenario == small
    typed(session, "± 5")
    assert "None of the lines names an attribute" in plain(session.texts("error"))
    typed(session, "")
    assert session.text_area(key="query lines").value == ""
    assert not session.error
    session.text_input(key="query target").set_value("5 % of 100").run()
    typed(session, "age > 3")
    assert session.scenario.query_list.targets[0].text == "5 % of 100"
    session.text_input(key="query target").set_value("a lot").run()
    assert "must be like" in plain(session.texts("error"))
    typed(session, "age > 3\nage > 4 ± 3\nage > 5")
    assert "Line 1: The count needs a target" in plain(session.texts("error"))


# ---- presets, builders and files


@pytest.mark.nightly
def test_a_preset_replaces_the_list_and_undo_brings_it_back(app, listed):
    session = app("queries", listed)
    session.press("From a preset")
    session.selectbox(key="query preset").set_value(SMALLEST.title).run()
    session.press("Use attributes of its own")
    assert "Undo brings your list back" in plain(session.texts("success"))
    assert session.scenario.query_list == StatedQueries.of(SMALLEST.queries())
    session.press("Make it the budget")
    assert session.metrics()["Targets met"] == "65 of 65"
    assert "The codebook has no attribute 'value'" in plain(session.texts("info"))
    # What it is about cannot be chosen from the codebook.
    session.press("Undo").press("Undo")
    assert session.scenario == listed
    # Or it is put behind the list, without the total, which is there already.
    session.press("From a preset")
    session.selectbox(key="query preset").set_value(SMALLEST.title).run()
    assert "with their own targets: a standard error of 1" in plain(session.texts("markdown"))
    session.press("Add them to my list")
    assert "Added 10 own counts of" in plain(session.texts("success"))
    queries = session.scenario.query_list.queries
    assert queries.domain.names == ("age", "sex")
    assert queries.names[3:] == tuple(f"age {age}" for age in range(10))
    assert queries.targets.tolist()[3:] == [1.0] * 10


def role_box(role):
    return f"attribute of {role} in {REDISTRICTING.title}, {QUERIES_OF_PRESET}"


@pytest.mark.nightly
def test_a_preset_is_fitted_in_a_dialog_to_the_codebook(app):
    people = rp.Domain(
        (
            rp.Attribute("sex", rp.Categories(("f", "m"))),
            rp.Attribute("years", rp.Categories(("0-17", "18+"))),
            rp.Attribute("race", rp.Categories(("White", "Black", "Blended"))),
            rp.Attribute("region", rp.Categories(("North", "South"))),
        )
    )
    session = app("queries", Scenario(people)).press("From a preset")
    boxes = {box.key: box for box in session.selectbox}
    guessed = {
        role: boxes[role_box(role)].value
        for role in ("race", "voting_age", "hispanic", "geography")
    }
    assert guessed == {
        "race": "race", "voting_age": "years", "hispanic": "", "geography": "region",
    }  # fmt: skip
    assert "1 not recognised" in [box.label for box in session.expander]
    # An impossible match is refused, and says so.
    geography = session.selectbox(key=role_box("geography"))
    geography.set_value("race").run()
    assert "'race' is the attribute of Race already" in plain(session.texts("error"))
    assert session.button_of("Start from these").disabled
    geography = session.selectbox(key=role_box("geography"))
    geography.set_value("").run()
    session.selectbox(key="Blended of race in race").set_value("Two or more races").run()
    session.press("Start from these counts")
    assert not session.exception
    queries = session.scenario.query_list.queries
    assert queries.domain.names == ("years", "race")
    assert queries.names[:3] == ("P1 Total", "P1 White alone", "P1 Black or African American alone")
    assert "P3 Population of two or more races" in queries.names
    assert session.metrics()["Targets met"] == f"{len(queries)} of {len(queries)}"
    # The same as tables: race × region is there already.
    session.press("From a preset")
    session.radio(key="preset kind").set_value(TABLES_OF_PRESET).run()
    session.press("Add the tables")
    assert session.scenario.request.more[0].listed == (("years", "race", "region"),)
    assert "Added 1 table" in plain(session.texts("success"))


AGES = [[first <= age <= last for age in range(10)] for last in range(10) for first in range(10)]
MANY = {
    TABLES: marginals([10, 2], 2),
    RANGES: np.kron(np.array(AGES, dtype=float), np.eye(2)),
}


def add_queries(session, kind, choices):
    session.show("queries to add", kind)
    for key, value in choices.items():
        widgets = (*session.selectbox, *session.multiselect, *session.number_input)
        next(widget for widget in widgets if widget.key == key).set_value(value).run()
    return session.press("Add to the list")


@pytest.mark.nightly
def test_many_queries_are_added_at_once(app, listed):
    lone = stated_from_text(listed.query_list.queries.domain, "mine: age = 3 & sex = 0 ± 5")
    session = app("queries", listed.replaced(query_list=lone)).unfold("query files")
    for kind, choices in (
        (TABLES, {"queries up to 2": 2}),
        (RANGES, {"queries along": "age", "queries by other than age": ["sex"]}),
    ):
        add_queries(session, kind, choices)
        stated = session.scenario.query_list
        wanted = {row.tobytes() for row in (*MANY[kind], *lone.queries.coefficients) if row.any()}
        assert {row.tobytes() for row in stated.queries.coefficients} == wanted
        assert len(stated) == len(wanted)
        assert stated.queries.names[0] == "mine"
        assert {target.text for target in stated.targets[1:]} == {"±20 at 95 %"}
        assert f"Added {len(stated) - 1} own counts" in plain(session.texts("success"))
        session.press("Undo")
        assert len(session.scenario.query_list) == 1


def upload(session, csv):
    uploader = next(field for field in session.file_uploader if field.key.startswith("query file"))
    uploader.upload("mine.csv", csv).run()


def test_a_list_comes_from_a_file_and_goes_into_one(app, listed):
    session = app("queries", listed)
    session.unfold("query files")
    upload(session, b"name,condition,target\r\nx,age <,4\r\n")
    assert "mine.csv, line 2: " in plain(session.texts("error"))
    assert session.scenario == listed
    csv = b"name,condition,target\r\nyoung,age < 3,4\r\nwomen,sex = 1,\r\n"
    upload(session, csv)
    stated = session.scenario.query_list
    assert "Read mine.csv: 2 own counts. Undo brings the list before it back." in plain(
        session.texts("success")
    )
    assert stated == stated_from_csv(
        stated.queries.domain, csv.replace(b"1,\r", b"1,\xc2\xb120\r"), "x"
    )
    labels = [button.label for button in session.get("download_button")]
    for what in ("with conditions", "with numbers for cells", "template"):
        assert any(what in label for label in labels)


# ---- the codebook, and what is kept


def test_a_change_of_the_codebook_is_shown_and_the_list_can_be_read_again(app, listed):
    wider = rp.Domain.from_sizes({"age": 12, "sex": 2, "region": 5})
    session = app("queries", listed.with_domain(wider)[0])
    assert "In the codebook 'age' has values that are new: '10', '11'" in plain(
        session.texts("info")
    )
    assert session.metrics()["Targets met"] == "3 of 3"
    session.press("Read it with the codebook's values")
    stated = session.scenario.query_list
    assert stated.queries.domain["age"].size == 12
    assert stated.conditions == listed.query_list.conditions
    assert not session.info


# ---- the budget


def test_the_smallest_budget_is_applied_and_with_another_all_targets_share_a_factor(app, listed):
    session = app("queries", listed)
    assert "The smallest budget that meets all targets is " in plain(session.texts("markdown"))
    session.press("Make it the budget")
    smallest = plan_of(session)
    assert session.scenario.budget == smallest.budget
    assert smallest.met.all()
    assert 0.999 < smallest.ratio <= 1
    assert "is the smallest budget that meets all targets" in plain(session.texts("markdown"))
    button = next(button for button in session.button if button.label.startswith("Make it"))
    assert button.disabled
    session = app("queries", listed.replaced(budget=rp.Budget(rho="0.001")))
    plan = plan_of(session)
    assert plan.budget == rp.Budget(rho="0.001")
    warned = plain(session.texts("markdown"))
    assert f"{rounded(plan.ratio**0.5, 3, 'up')} times as wide" in warned
    at_budget(session, "1")
    assert session.scenario.budget == rp.Budget(rho=1)
    assert "times as narrow" in plain(session.texts("markdown"))


def test_a_list_is_solved_once_whatever_the_budget_and_after_an_undo(app, listed, monkeypatch):
    session = app("queries", listed)
    earlier = plan_of(session)
    typed(session, "everybody: total ± 9")
    later = plan_of(session)

    def refuse(*_, **__):
        raise AssertionError("solved once more")

    monkeypatch.setattr(sys.modules["rpexplore.serving.planning_tasks"], "query_optimum", refuse)
    session.press("Undo")
    assert plan_of(session).queries is earlier.queries
    session.press("Redo")
    assert plan_of(session).queries is later.queries
    results = sys.modules["pages.components.queries.results"]
    monkeypatch.setattr(results, "query_baselines", wraps(results.query_baselines)(refuse))
    for rho in ("0.2", "0.5"):
        at_budget(session, rho)
        assert plan_of(session).budget == rp.Budget(rho=rho)
    session.open("plan").open("queries")
    assert session.metrics()["Targets met"] == "1 of 1"
    assert not session.error


def test_the_objective_is_chosen_and_targets_out_of_reach_are_told(app, listed):
    session = app("queries", listed)
    session.selectbox(key="objective of counts").set_value("targets-then-sum").run()
    plan = plan_of(session)
    assert (plan.objective.option, plan.met.all()) == ("targets-then-sum", True)
    assert "With another objective you see the smallest budget" in plain(session.texts("caption"))
    at_budget(session, "0.0001")
    assert "cannot all be met at this budget" in plain(session.texts("error"))
    session.selectbox(key="objective of counts").set_value("sum").run()
    assert plan_of(session).objective.option == "sum"
    assert not session.error


def test_free_counts_are_chosen_by_name(app, listed):
    session = app("queries", listed)
    before = plan_of(session)
    session.multiselect(key="free counts").set_value(["everybody"]).run()
    plan = plan_of(session)
    assert plan.free_counts == ("everybody",)
    assert plan.rho == before.rho
    assert "everybody takes only what the others leave" in plain(session.texts("markdown"))
    typed(session, "all: total ± 50\nold: age >= 8 ± 20")
    assert plan_of(session).free_counts == ()
    assert not session.error


def test_without_a_plan_the_page_says_why(app, listed, monkeypatch):
    session = app("queries", listed.replaced(budget=rp.Budget(rho="1e-40")))
    too_large = "There is no plan: The noise at this budget is too large"
    assert too_large in plain(session.texts("error"))
    assert not session.metrics()

    def refuse(*_, **__):
        raise PlanError("These counts cannot be measured.")

    monkeypatch.setattr(sys.modules["rpexplore.serving.planning_tasks"], "query_optimum", refuse)
    session = app("queries", listed)
    assert "There is no plan: These counts cannot be measured." in plain(session.texts("error"))
