"""What is kept, and from whom: two browsers, a refresh, a restart of the server."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import running_app, settled, visit
from tests.browser.test_story import go_to


def set_budget(page: Page, value: str) -> None:
    field = page.get_by_label("Privacy budget ρ", exact=True)
    field.fill(value)
    field.press("Enter")
    expect(page.get_by_text("All changes are saved on this computer.")).to_be_visible()
    expect(page.get_by_role("button", name="Undo")).to_be_enabled()
    expect(page).to_have_url(re.compile("project=[0-9a-f]{32}"))  # from now on a saved one


def budget(page: Page):
    return page.get_by_label("Privacy budget ρ", exact=True)


# By day tests/pages/test_home.py finds the projects of all browsers, without one.
@pytest.mark.nightly
@pytest.mark.parametrize("page", ["/plan"], indirect=True)
def test_what_one_browser_saves_another_one_finds(browser, page, server):
    set_budget(page, "0.321")
    of_page = f"/plan?{page.url.partition('?')[2]}"
    with browser.new_context() as other, visit(other, server, of_page) as yours:
        expect(budget(yours)).to_have_value("0.321")
        set_budget(yours, "0.654")
        page.reload()
        expect(budget(page)).to_have_value("0.654")


@pytest.mark.nightly
def test_a_project_outlives_the_server_and_a_forgotten_address(context, tmp_path):
    # As when the browser is refreshed after a restart: any page may be asked for first.
    with running_app(tmp_path) as address, visit(context, address, "/plan") as page:
        settled(page)
        expect(page.get_by_role("heading", name="Plan", exact=True)).to_be_visible()
        expect(page.get_by_text("ε = 2 at δ")).to_be_visible()
        go_to(page, "Tables")
        expect(page.get_by_text("67 noisy measurements")).to_be_visible()
        go_to(page, "Plan")
        set_budget(page, "0.321")
        query = page.url.partition("?")[2]
    with running_app(tmp_path) as address:
        for path in (f"/plan?{query}", "/plan"):
            with visit(context, address, path) as page:
                expect(budget(page)).to_have_value("0.321")


# By day tests/pages/test_app.py looks at the address of every page, without a browser.
@pytest.mark.nightly
@pytest.mark.parametrize("page", ["/plan"], indirect=True)
def test_the_address_holds_nothing_of_the_codebook(page):
    set_budget(page, "0.321")
    for name in ("Data", "Tables", "Fairness", "Trade-offs", "Scenarios"):
        go_to(page, name)
        expect(page.get_by_test_id("stStatusWidget")).to_have_count(0)
        assert "project=" in page.url
        assert not any(word in page.url for word in ("age", "sex", "region", "tenure"))
