"""A point of a curve that is clicked is filled in, and taken by a button."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import drawn, settled

# By day tests/pages/test_tradeoffs.py takes a plan of the frontier.
pytestmark = [
    pytest.mark.nightly,
    pytest.mark.parametrize("page", ["/tradeoffs"], indirect=True),
]


@pytest.fixture
def tradeoffs(page: Page) -> Page:
    drawn(page)
    return page


def click_point(page: Page, trace: int, point: int) -> None:
    """Click the middle of a mark, as the chart has drawn it."""
    chart = page.locator(".js-plotly-plot").first
    chart.scroll_into_view_if_needed()
    marks = chart.locator(".scatterlayer .trace").nth(trace).locator(".points path")
    box = marks.nth(point).bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.wait_for_timeout(300)  # for Plotly to notice what is pointed at
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)


def test_a_budget_is_taken_from_its_curve(tradeoffs):
    wanted = tradeoffs.get_by_role("textbox", name="Wanted standard error in ")
    expect(wanted).to_have_value("")
    click_point(tradeoffs, 1, 16)
    expect(wanted).not_to_have_value("")
    take = tradeoffs.get_by_role("button", name="Use this budget: ρ = ")
    budget = take.inner_text().removeprefix("Use this budget: ")
    take.click()
    expect(tradeoffs.get_by_text("Applied: the budget is now")).to_be_visible()
    expect(tradeoffs.get_by_text(f"At the current budget, {budget}")).to_be_visible()
    tradeoffs.get_by_role("button", name="Undo").click()
    expect(tradeoffs.get_by_text("At the current budget, ρ = 0.1,")).to_be_visible()


def test_a_plan_is_taken_from_the_frontier(tradeoffs):
    tradeoffs.get_by_role("tab", name="Average vs worst case").click()
    settled(tradeoffs)
    expect(tradeoffs.get_by_text("Each mark is a plan")).to_be_visible()
    drawn(tradeoffs)
    chosen = tradeoffs.get_by_role("combobox", name="A plan of the curve")
    before = chosen.input_value()
    click_point(tradeoffs, 0, 8)
    expect(chosen).not_to_have_value(before)
