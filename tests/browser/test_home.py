"""The Home page and the menu of the navigation, by keyboard alone."""

from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import drawn
from tests.browser.test_accessibility import findings

MOST_STOPS = 120  # of the tab key on a page


def tab_to(page: Page, wanted: Locator) -> None:
    """Press the tab key until the focus is there."""
    expect(wanted).to_be_visible()
    for _ in range(MOST_STOPS):
        if wanted.evaluate("element => element === document.activeElement"):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"{wanted} is not reached by keyboard")


def test_an_example_and_the_pages_that_explore_it_open_by_keyboard(page):
    drawn(page)
    tab_to(page, page.get_by_role("button", name="Labour-force survey"))
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Plan", exact=True)).to_be_visible()
    expect(page.get_by_role("combobox", name="Open scenario")).to_have_value("Required by law")
    drawn(page)
    tab_to(page, page.get_by_role("button", name="Explore", exact=True))
    page.keyboard.press("Enter")
    menu = page.get_by_role("menu", name="Explore")
    expect(menu.get_by_role("menuitem")).to_have_text(["Fairness", "Trade-offs", "Scenarios"])
    assert not findings(page)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Trade-offs", exact=True)).to_be_visible()


def test_the_mark_follows_the_scheme(page):
    mark = page.get_by_test_id("stHeaderLogo")
    page.emulate_media(color_scheme="light")
    light = mark.screenshot()
    page.emulate_media(color_scheme="dark")
    expect(page.get_by_test_id("stApp")).to_have_css("color-scheme", "dark")
    assert mark.screenshot() != light
