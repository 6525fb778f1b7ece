"""A team's server as it is run: nginx with TLS, a provider of logins, two people."""

import os
import ssl
import time
from collections.abc import Iterator
from http.client import HTTPSConnection

import pytest
from playwright.sync_api import Browser, Page, expect

from rpexplore.export.report.pdf import find_browser
from tests.browser.conftest import PATIENCE, WINDOW, chromium
from tests.support.identity_provider import IdentityProvider, identity_provider
from tests.support.planning_server import PlanningServer, answered, free_port, planning_server
from tests.support.reverse_proxy import needs_nginx, reverse_proxy

pytestmark = needs_nginx
NAME = "plan.agency.example"


@pytest.fixture(scope="module")
def provider() -> Iterator[IdentityProvider]:
    with identity_provider() as provider:
        yield provider


@pytest.fixture(scope="module")
def port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def address(port) -> str:
    return f"https://{NAME}:{port}/plan"


@pytest.fixture(scope="module")
def shared(
    tmp_path_factory, provider: IdentityProvider, port: int, address: str
) -> Iterator[PlanningServer]:
    folder = tmp_path_factory.mktemp("shared")
    login, inner = folder / "login.toml", free_port()
    login.touch(0o600)
    login.write_text(provider.login_file(), "utf-8")
    options = ("--address", address, "--login", str(login))
    with (
        reverse_proxy(folder, port=port, behind=inner),
        planning_server(folder, *options, port=inner, ready="/plan/ready") as server,
    ):
        yield server
    assert server.process.returncode == 0
    assert server.events[-1]["event"] == "server stopping"


@pytest.fixture(scope="module")
def outside() -> Iterator[Browser]:
    """A browser to which the server's name is this machine."""
    path = find_browser()
    if path is None:
        assert os.environ.get("RPEXPLORE_REQUIRE_BROWSER") != "1"
        pytest.skip("no Chromium found; on Debian: apt-get install chromium")
    with chromium(path, f"--host-resolver-rules=MAP {NAME} 127.0.0.1") as browser:
        yield browser


@pytest.fixture(autouse=True)
def said() -> None:
    """In place of what the app of the other tests says."""


def opened(outside: Browser, address: str) -> Page:
    """A browser that was never there, at the login page."""
    page = outside.new_context(viewport=WINDOW, ignore_https_errors=True).new_page()
    page.set_default_timeout(PATIENCE * 1000)
    page.goto(f"{address}/")
    return page


def log_in(page: Page, person: str) -> None:
    page.get_by_role("link", name="Log in").click()
    page.get_by_role("link", name=person).click()
    expect(page.get_by_text(f"Logged in as {person.title()} <b>")).to_be_visible()


def set_budget(page: Page, address: str, value: str) -> None:
    page.goto(f"{address}/plan")
    field = page.get_by_label("ρ", exact=True)
    field.fill(value)
    field.press("Enter")
    expect(page.get_by_text("All changes are saved on the server.")).to_be_visible()


def answer(port: int, path: str, **headers: str) -> tuple[int, str]:
    """What the proxy answers from the server, to a request as a browser would not send it."""
    trusting = ssl._create_unverified_context()
    connection = HTTPSConnection("127.0.0.1", port, timeout=PATIENCE, context=trusting)
    sent = {"Host": f"{NAME}:{port}"} | {n.replace("_", "-"): v for n, v in headers.items()}
    connection.request("GET", path, headers=sent)
    answered = connection.getresponse()
    return answered.status, answered.read().decode(errors="replace")


def test_two_people_work_and_see_nothing_of_each_other(outside, shared, address):
    ada = opened(outside, address)
    expect(ada.get_by_text("Log in")).to_be_visible()
    assert ada.locator("script").count() == 0  # nothing of the app
    log_in(ada, "ada")
    set_budget(ada, address, "0.321")
    of_ada = ada.url
    assert "project=" in of_ada

    # Ben has Ada's address, and her browser's script-readable cookies.
    ben = opened(outside, address)
    log_in(ben, "ben")
    ben.goto(of_ada)
    expect(ben.get_by_label("ρ", exact=True)).to_have_value("0.1")
    set_budget(ben, address, "0.654")

    # Ada on another machine finds her project, without its address.
    elsewhere = opened(outside, address)
    log_in(elsewhere, "ada")
    elsewhere.goto(f"{address}/plan")
    expect(elsewhere.get_by_label("ρ", exact=True)).to_have_value("0.321")

    # A login that has ended opens nothing, though its cookie was kept.
    second = ada.context.new_page()
    second.goto(f"{address}/plan")
    expect(second.get_by_label("ρ", exact=True)).to_be_visible()
    kept = ada.context.cookies()
    ada.get_by_role("button", name="Log out").click()
    expect(ada.get_by_role("link", name="Log in")).to_be_visible()
    second.get_by_label("ρ", exact=True).fill("0.999")
    second.get_by_label("ρ", exact=True).press("Enter")
    second.wait_for_timeout(500)
    ada.context.add_cookies(kept)
    ada.goto(of_ada)
    expect(ada.get_by_role("link", name="Log in")).to_be_visible()
    texts = [path.read_text("utf-8") for path in shared.home.rglob("*.json")]
    assert not any("0.999" in text for text in texts)
    assert len(list((shared.home / "accounts").iterdir())) == 2

    # The same browser, another person.
    ada.context.clear_cookies()
    ada.goto(f"{address}/")
    log_in(ada, "ben")
    ada.goto(of_ada)
    expect(ada.get_by_label("ρ", exact=True)).to_have_value("0.654")


def test_cookies_are_for_this_address_alone(outside, shared, address):
    page = opened(outside, address)
    log_in(page, "ada")
    cookies = page.context.cookies(f"{address}/")
    names = {cookie.get("name") for cookie in cookies}
    assert names >= {"_streamlit_user", "_streamlit_xsrf"}
    for cookie in cookies:
        assert cookie.get("secure"), cookie
        assert cookie.get("path") == "/plan", cookie
        assert cookie.get("sameSite") in ("Lax", "Strict"), cookie
        assert cookie.get("httpOnly") or cookie.get("name") == "_streamlit_xsrf", cookie
        assert cookie.get("expires", 0) < time.time() + 12.1 * 3600, cookie


def test_an_old_login_is_none(outside, shared, provider, address, monkeypatch):
    monkeypatch.setattr(provider, "seconds_ago", 12 * 3600)
    page = opened(outside, address)
    page.get_by_role("link", name="Log in").click()
    page.get_by_role("link", name="ada").click()
    expect(page.get_by_role("link", name="Log in")).to_be_visible()


def test_only_the_public_address_is_served(shared, port, address):
    origin = address.removesuffix("/plan")
    assert answer(port, "/plan/")[0] == 403  # the login page
    assert answer(port, "/plan/", Host="127.0.0.1")[0] == 421
    assert answer(port, "/plan/", Host="example.org", X_Forwarded_Host=f"{NAME}:{port}")[0] == 421
    assert answer(port, "/plan/", Origin="https://example.org")[0] == 403
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec_WebSocket_Version": "13"}
    upgrade |= {"Sec_WebSocket_Key": "dGhlIHNhbXBsZSBub25jZQ=="}
    for forged in (
        {"Origin": origin},  # nobody is logged in
        {"Origin": "https://example.org"},
        {},
        {"Origin": origin, "Cookie": "_streamlit_user=forged"},
    ):
        assert answer(port, "/plan/_stcore/stream", **upgrade, **forged)[0] == 403
    assert answer(port, "/plan/_stcore/metrics")[0] == 404
    assert answer(port, "/elsewhere")[0] == 404
    assert answer(port, "/plan/ready") == (200, "ready")
    assert answer(port, "/plan/_stcore/health") == (200, "ok")
    assert answered(f"http://127.0.0.1:{shared.port}/_stcore/health") == 421
