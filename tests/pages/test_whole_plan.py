"""Tables and own counts of one scenario: one plan, on every page."""

from dataclasses import replace
from fractions import Fraction

import rpexplore as rp
from rpexplore.common.text import rounded
from rpexplore.privacy.conversions import rho_text
from rpexplore.releases.finished_release import Release
from rpexplore.releases.ledger.ledger import Ledger
from rpexplore.scenarios.scenario import Scenario
from rpexplore.workload.query_definitions import StatedQueries
from tests.pages.conftest import confirmed_run, finish, set_up

COUNTS = StatedQueries.of(rp.QueryList(rp.Domain.from_sizes({"sex": 2}), [[0, 1]], ("women",), [5]))
BOTH = Scenario(rp.Domain.from_sizes({"age": 3, "sex": 2}), query_list=COUNTS)


def test_pages_show_the_parts_of_one_plan_and_release_runs_all_of_it(app):
    whole = BOTH.plan()

    session = app("plan", BOTH)
    assert session.metrics()["Privacy of the whole plan"] == "ρ = 0.1"
    sections = next(frame.value for frame in session.dataframe if "Part" in frame.value)
    assert sections["Part"].tolist() == ["Tables", "Own counts"]

    session.open("queries")
    assert session.metrics()["Privacy"] == rho_text(whole.part("counts").rho, 3)  # rounded up

    session.open("release")
    assert any(whole.full_contents in text for text in session.texts("markdown"))


def test_a_share_is_of_what_the_whole_plan_costs(app):
    scenario = replace(BOTH, budget=rp.Budget(epsilon=1, delta="1e-6"))  # at more than its ρ
    share = rounded(100 * scenario.plan().shares["counts"], 3)
    captions = app("queries", scenario).texts("caption")
    assert any(f"Own counts have {share} % of the budget" in text for text in captions)


def test_shares_are_stated_on_the_plan_page(app):
    session = app("plan", BOTH)
    session.text_input(key="share of tables").set_value("25")
    session.text_input(key="share of counts").set_value("75")
    session.press("Use these shares")

    assert not session.exception
    shares = session.scenario.stated_shares
    assert shares == {"tables": Fraction(1, 4), "counts": Fraction(3, 4)}


def test_all_of_it_is_released_into_one_folder_and_booked_once(app, tmp_path):
    records, output = tmp_path / "survey.csv", tmp_path / "out"
    records.write_text("sex,age\n" + "1,2\n" * 30 + "0,1\n" * 70)
    session = set_up(app("release", BOTH), records, output)
    finish(confirmed_run(session))

    assert not session.exception
    done = Release.load(output)
    assert [part.kind for part in done.plan.parts] == ["tables", "counts"]
    assert done.plan.full_contents == BOTH.plan().full_contents
    assert len(done.table("age", "sex")) == 6
    assert len(done.part("counts").answers) == 1
    (entry,) = Ledger.beside(records).account(records).entries
    assert (entry.state, entry.record_rho) == ("finished", done.plan.record_rho)
    assert done.plan.record_rho == BOTH.plan().record_rho <= Fraction("0.1")


def test_tables_are_left_out_on_the_plan_page_and_come_back(app):
    session = app("plan", BOTH)
    session.checkbox(key="asks for tables").uncheck().run()
    assert not session.exception
    assert session.scenario.kinds == ("counts",)
    assert session.scenario.plan().part("counts").budget == BOTH.budget
    session.checkbox(key="asks for tables").check().run()
    assert session.scenario == BOTH


def test_compare_looks_at_the_part_that_is_chosen_and_never_at_tables_that_are_not_asked_for(app):
    whole = BOTH.plan()
    session = app("fairness", BOTH)
    assert session.metrics()["Least accurate table"]
    session.segmented_control(key="part compared").set_value("counts").run()
    (frame,) = [frame.value for frame in session.dataframe]
    assert frame["standard_error"].tolist() == whole.part("counts").standard_errors.tolist()

    session.open("tradeoffs")
    session.segmented_control(key="part compared").set_value("counts").run()
    assert "women" in session.get("plotly_chart")[0].proto.alt
    session.text_input(key="wanted standard_error").set_value("1").run()
    (use,) = [button for button in session.button if button.label.startswith("Use this budget")]
    use.click().run()
    assert not session.exception
    assert session.scenario.plan().part("counts").standard_errors[0] <= 1

    session = app("fairness", BOTH.replaced(asks_for_tables=False))
    assert not session.metrics()
    assert not session.texts("info")
    assert not session.exception
