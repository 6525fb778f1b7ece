"""What is kept, and from whom: two browsers, a refresh, a restart of the server."""

from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import PATIENCE, enter, running_app, settled
from tests.browser.test_story import go_to, metric


def set_budget(page: Page, value: str) -> None:
    field = page.get_by_label("ρ", exact=True)
    field.fill(value)
    field.press("Enter")
    expect(page.get_by_text("All changes are saved on this computer.")).to_be_visible()
    expect(page.get_by_role("button", name="Undo")).to_be_enabled()


def opened(browser: Browser, server: str, path: str = "/plan") -> Page:
    """A page of a browser that has not been here, with the token of the app."""
    page = browser.new_context().new_page()
    page.set_default_timeout(PATIENCE * 1000)
    enter(page, server)
    page.goto(f"{server}{path}")
    return page


def budget(page: Page):
    return page.get_by_label("ρ", exact=True)


def test_two_browsers_do_not_see_each_other(browser, server):
    mine, yours = (opened(browser, server) for _ in range(2))
    set_budget(mine, "0.321")
    yours.reload()
    expect(budget(yours)).to_have_value("0.1")
    set_budget(yours, "0.654")
    mine.reload()
    expect(budget(mine)).to_have_value("0.321")
    for page in (mine, yours):
        page.context.close()


def test_a_project_outlives_the_server_and_a_forgotten_address(browser, tmp_path):
    with running_app(tmp_path) as address:
        # As when the browser is refreshed after a restart: any page may be asked for first.
        page = opened(browser, address)
        settled(page)
        expect(page.get_by_role("heading", name="Plan", exact=True)).to_be_visible()
        expect(page.get_by_text("ε = 2.15 at δ")).to_be_visible()
        go_to(page, "Tables")
        expect(metric(page, "Tables")).to_contain_text("67")
        go_to(page, "Plan")
        set_budget(page, "0.321")
        query = page.url.partition("?")[2]
        cookies = page.context.cookies()
        page.context.close()
    with running_app(tmp_path) as address:
        # Another browser may use the app, but the address alone shows it nobody else's project.
        page = opened(browser, address, f"/plan?{query}")
        expect(budget(page)).to_have_value("0.1")
        page.context.close()
        # The same browser, asked for the app alone: its cookie tells.
        context = browser.new_context()
        context.add_cookies(cookies)
        page = context.new_page()
        page.set_default_timeout(PATIENCE * 1000)
        enter(page, address)
        page.goto(f"{address}/plan")
        expect(budget(page)).to_have_value("0.321")
        context.close()


def test_the_address_holds_nothing_of_the_codebook(page, server):
    page.goto(f"{server}/plan")
    set_budget(page, "0.321")
    for name in ("Codebook", "Tables", "Fairness", "Trade-offs", "Scenarios"):
        go_to(page, name)
        expect(page.get_by_test_id("stStatusWidget")).to_have_count(0)
        assert "project=" in page.url
        assert not any(word in page.url for word in ("age", "sex", "region", "tenure"))
