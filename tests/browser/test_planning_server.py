"""A team's server as it is run: nginx with TLS, a provider of logins, two people."""

import ssl
import sys
import time
from collections.abc import Iterator
from http.client import HTTPSConnection

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect

import rpexplore as rp
from rpexplore.scenarios.project import Project
from rpexplore.scenarios.scenario import Scenario
from rpexplore.scenarios.workload_request import WorkloadRequest
from tests.browser.conftest import PATIENCE, PLANNING_NAME, WINDOW, settled
from tests.support.identity_provider import IdentityProvider, identity_provider
from tests.support.planning_server import PlanningServer, answered, free_port, planning_server
from tests.support.reverse_proxy import needs_nginx, reverse_proxy

pytestmark = needs_nginx
CANARY = "Kanarienvogel"


@pytest.fixture(scope="module")
def provider() -> Iterator[IdentityProvider]:
    with identity_provider() as provider:
        yield provider


@pytest.fixture(scope="module")
def port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def address(port) -> str:
    return f"https://{PLANNING_NAME}:{port}/plan"


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
    ends = [line["event"] for line in server.events]
    assert ends.index("server stopping") > len(ends) - 20
    assert ends.count("session ended") == ends.count("session begun")


@pytest.fixture(scope="module")
def outside(browser: Browser) -> Iterator[BrowserContext]:
    """What sees nginx and the provider, whose certificate nobody else knows."""
    context = browser.new_context(viewport=WINDOW, ignore_https_errors=True)
    context.new_page()  # stays open, and with it the process that has compiled the scripts
    yield context
    context.close()


@pytest.fixture(autouse=True)
def said(shared: PlanningServer) -> Iterator[None]:
    """What the server says during a test is printed when the test fails; an error fails it."""
    before = len(shared.events)
    yield
    events = shared.events[before:]
    sys.stdout.write("\n".join(map(str, events)))
    assert not [line for line in events if line["event"] == "unexpected error"]


@pytest.fixture
def page(outside: BrowserContext, shared: PlanningServer, address: str) -> Iterator[Page]:
    """A browser that was never there, at the login page."""
    outside.clear_cookies()
    page = outside.new_page()
    page.set_default_timeout(PATIENCE * 1000)
    page.goto(f"{address}/")
    yield page
    for opened in outside.pages[1:]:
        opened.close()


def log_in(page: Page, person: str) -> None:
    page.get_by_role("link", name="Log in").click()
    page.get_by_role("link", name=person).click()
    expect(page.get_by_text(f"Logged in as {person.title()} <b>")).to_be_visible()


def set_budget(page: Page, address: str, value: str) -> None:
    page.goto(f"{address}/plan")
    budget(page).fill(value)
    budget(page).press("Enter")
    expect(page.get_by_text("All changes are saved on the server.")).to_be_visible()


def answer(port: int, path: str, **headers: str) -> tuple[int, str]:
    """What the proxy answers from the server, to a request as a browser would not send it."""
    trusting = ssl._create_unverified_context()
    connection = HTTPSConnection("127.0.0.1", port, timeout=PATIENCE, context=trusting)
    host = {"Host": f"{PLANNING_NAME}:{port}"}
    sent = host | {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request("GET", path, headers=sent)
    answered = connection.getresponse()
    return answered.status, answered.read().decode(errors="replace")


def budget(page: Page) -> Locator:
    return page.get_by_label("Privacy budget ρ", exact=True)


# By day tests/pages/test_accounts.py tries every way from one account into another's, without one.
@pytest.mark.nightly
def test_two_people_work_and_see_nothing_of_each_other(page, shared, address):
    expect(page.get_by_text("Log in")).to_be_visible()
    assert page.locator("script").count() == 0  # nothing of the app
    log_in(page, "ada")
    set_budget(page, address, "0.321")
    of_ada, kept = page.url, page.context.cookies()
    assert "project=" in of_ada

    # Ben has the address of Ada's project, and a window that she has left open.
    left_open = page.context.new_page()
    left_open.goto(of_ada)
    expect(budget(left_open)).to_have_value("0.321")
    settled(left_open)
    page.get_by_role("link", name="Log out").click()
    expect(page.get_by_role("link", name="Log in")).to_be_visible()
    # By keys, which wait for nothing: where the page still ran, its fields are disabled by now.
    budget(left_open).focus()
    for keys in ("ControlOrMeta+A", *"0.999", "Enter"):
        left_open.keyboard.press(keys)
    log_in(page, "ben")
    page.goto(of_ada)
    expect(budget(page)).to_have_value("0.1")
    set_budget(page, address, "0.654")
    of_ben = page.url

    # Nor does her cookie open anything, now that she has logged out.
    page.context.clear_cookies()
    page.context.add_cookies(kept)  # pyright: ignore[reportArgumentType]
    page.goto(of_ada)
    expect(page.get_by_role("link", name="Log in")).to_be_visible()

    # Ada finds her project on any machine, without its address.
    log_in(page, "ada")
    page.goto(f"{address}/plan")
    expect(budget(page)).to_have_value("0.321")
    page.goto(of_ben)
    expect(budget(page)).to_have_value("0.321")
    texts = [path.read_text("utf-8") for path in shared.home.rglob("*.json")]
    assert len(texts) == 2
    assert not any("0.999" in text for text in texts)
    assert len(list((shared.home / "accounts").iterdir())) == 2


# By day tests/pages/test_login.py and test_public_guard.py look at cookies and logins.
@pytest.mark.nightly
def test_cookies_are_for_this_address_alone(page, address):
    log_in(page, "ada")
    cookies = page.context.cookies(f"{address}/")
    names = {cookie.get("name") for cookie in cookies}
    assert names >= {"rpexplore-login", "_streamlit_xsrf"}
    for cookie in cookies:
        assert cookie.get("secure"), cookie
        assert cookie.get("path") == "/plan", cookie
        assert cookie.get("sameSite") in ("Lax", "Strict"), cookie
        assert cookie.get("httpOnly") or cookie.get("name") == "_streamlit_xsrf", cookie
        assert cookie.get("expires", 0) < time.time() + 12.1 * 3600, cookie


@pytest.mark.nightly
def test_an_old_login_is_none(page, provider, monkeypatch):
    monkeypatch.setattr(provider, "seconds_ago", 12 * 3600)
    page.get_by_role("link", name="Log in").click()
    page.get_by_role("link", name="ada").click()
    expect(page.get_by_role("link", name="Log in")).to_be_visible()


# By day tests/pages/test_public_guard.py asks the same of the guard itself.
@pytest.mark.nightly
def test_only_the_public_address_is_served(shared, port, address):
    origin = address.removesuffix("/plan")
    assert answer(port, "/plan/")[0] == 403  # the login page
    assert answer(port, "/plan/", Host="127.0.0.1")[0] == 421
    forged = {"Host": "example.org", "X_Forwarded_Host": f"{PLANNING_NAME}:{port}"}
    assert answer(port, "/plan/", **forged)[0] == 421
    assert answer(port, "/plan/", Origin="https://example.org")[0] == 403
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec_WebSocket_Version": "13"}
    upgrade |= {"Sec_WebSocket_Key": "dGhlIHNhbXBsZSBub25jZQ=="}
    for forged in (
        {"Origin": origin},  # nobody is logged in
        {"Origin": "https://example.org"},
        {},
        {"Origin": origin, "Cookie": "rpexplore-login=forged"},
    ):
        assert answer(port, "/plan/_stcore/stream", **upgrade, **forged)[0] == 403
    assert answer(port, "/plan/_stcore/metrics")[0] == 404
    assert answer(port, "/elsewhere")[0] == 404
    assert answer(port, "/plan/ready") == (200, "ready")
    assert answer(port, "/plan/_stcore/health") == (200, "ok")
    assert answered(f"http://127.0.0.1:{shared.port}/_stcore/health") == 421


# By day tests/common/test_event_log.py says what a line may hold.
@pytest.mark.nightly
@pytest.mark.parametrize(
    "pages",
    [
        ("queries",),
        ("codebook", "workload", "plan", "areas", "fairness", "tradeoffs", "scenarios"),
    ],
    ids=["one", "all"],
)
def test_the_log_tells_nothing_of_whom_or_what(pages, page, shared, port, address, tmp_path):
    scenario = Scenario(
        rp.Domain.from_sizes({CANARY: 3, f"{CANARY}2": 2}),
        WorkloadRequest(order=2),
        name=CANARY,
        survey=CANARY,
    )
    (tmp_path / f"{CANARY}.json").write_text(Project((scenario,)).text(), "utf-8")
    (tmp_path / f"{CANARY}2.json").write_text(f"{CANARY}: broken", "utf-8")
    log_in(page, "ada")
    broken, good = f"{CANARY}2.json", f"{CANARY}.json"
    for file, said in ((broken, "Nothing was opened"), (good, "All changes are saved")):
        page.goto(f"{address}/")  # each in a new box
        settled(page)
        page.get_by_role("button", name="Import a project file").click()
        page.locator("input[type=file]").first.set_input_files(tmp_path / file)
        expect(page.get_by_text(said).first).to_be_visible()
    for name in pages:
        page.goto(f"{address}/{name}?{CANARY}={CANARY}#{CANARY}")
        settled(page)
        for field in page.locator(
            "textarea:visible, [data-testid=stTextInput] input:visible"
        ).all()[:3]:
            field.fill(f"{CANARY}: {CANARY} >= 3 ± 50")
            field.press("Control+Enter")
            settled(page)
    keys = {page.url.partition("project=")[2]}
    page.goto(f"{address}/")
    page.get_by_role("link", name="Log out").click()
    expect(page.get_by_role("link", name="Log in")).to_be_visible()
    for headers in ({"Host": CANARY}, {"Origin": f"https://{CANARY}"}, {"Cookie": CANARY}):
        answer(port, f"/plan/{CANARY}?{CANARY}=1", **headers)
    answer(port, f"/plan/oauth2callback?error={CANARY}&error_description={CANARY}&state={CANARY}")
    answer(port, f"/plan/auth/login?provider={CANARY}")

    log = shared.said + (shared.stderr.parent / "nginx.log").read_text("utf-8")
    accounts = [folder.name for folder in (shared.home / "accounts").iterdir()]
    login = (shared.stderr.parent / "login.toml").read_text("utf-8").split('"')[1::2]
    for secret in (CANARY, "ada", "team@", "subject of", *keys, *accounts, *login):
        assert len(secret) > 2
        assert secret.lower() not in log.lower(), secret
    happened = {line["event"] for line in shared.events}
    assert {"session begun", "logged in", "logged out", "page run", "plan solved"} <= happened
    assert {line["page"] for line in shared.events if "page" in line} >= {"Home", "Plan"}
