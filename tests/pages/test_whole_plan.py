"""Tables and own counts of one scenario: one plan, on every page."""

from fractions import Fraction
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

import rpexplore as rp
from rpexplore.privacy.conversions import rho_text
from rpexplore.queries.definitions import StatedQueries
from rpexplore.scenarios.project import Project
from rpexplore.scenarios.scenario import Scenario

APP = Path(__file__).parents[2] / "app.py"
COUNTS = StatedQueries.of(rp.QueryList(rp.Domain.from_sizes({"sex": 2}), [[0, 1]], ("women",), [5]))
BOTH = Scenario(rp.Domain.from_sizes({"age": 3, "sex": 2}), query_list=COUNTS)


@pytest.fixture
def app() -> AppTest:
    opened = AppTest.from_file(str(APP), default_timeout=30).run()
    opened.session_state["project"] = Project((BOTH,))
    return opened


def test_pages_show_the_parts_of_one_plan_and_release_runs_all_of_it(app: AppTest):
    whole = BOTH.plan()

    app.switch_page("pages/plan.py").run()
    assert not app.exception
    assert app.metric[0].value == "ρ = 0.1"
    sections = next(frame.value for frame in app.dataframe if "Section" in frame.value)
    assert sections["Section"].tolist() == ["Tables", "Own counts"]

    app.switch_page("pages/queries.py").run()
    privacy = next(metric.value for metric in app.metric if metric.label == "Privacy")
    assert privacy == rho_text(whole.part("counts").rho, 3)  # rounded up

    app.switch_page("pages/release.py").run()
    assert any(whole.full_contents in markdown.value for markdown in app.markdown)


def test_shares_are_stated_on_the_plan_page(app: AppTest):
    app.switch_page("pages/plan.py").run()
    app.text_input("share of tables").set_value("25")
    app.text_input("share of counts").set_value("75")
    next(button for button in app.button if button.label == "Use these shares").click().run()

    assert not app.exception
    shares = app.session_state["project"].current.stated_shares
    assert shares == {"tables": Fraction(1, 4), "counts": Fraction(3, 4)}
