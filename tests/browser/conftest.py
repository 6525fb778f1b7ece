"""A running app, and a real browser that must not ask anybody else for anything."""

import os
import secrets
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal
from urllib.parse import urlparse

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    Page,
    Request,
    ViewportSize,
    WebSocket,
    expect,
    sync_playwright,
)

from pages.components.shared import autosave
from rpexplore.common.installation import TOKEN_PARAMETER, TOKEN_VARIABLE
from rpexplore.reports.report import find_browser

ROOT = Path(__file__).parents[2]
LOCAL = ("data:", "blob:", "file:")  # addresses that no request leaves the machine for
WINDOW: ViewportSize = {"width": 1280, "height": 900}
PLANNING_NAME = "plan.agency.example"  # of a shared server, which for the browser is this machine
TOKEN = secrets.token_hex(16)  # of every app that runs here
LOG = "app.log"  # in the home folder
# In the traceback of what the app raises; the server may complain of browsers that leave as well.
IN_SCRIPT = "exec_func_with_error_handling"
PATIENCE = 30  # seconds, also for a slow machine
expect.set_options(timeout=1000 * PATIENCE)

SAMPLE = f"?{autosave.PARAMETER}={autosave.SAMPLE}"  # a new project, whatever others have saved


@pytest.fixture(scope="session")
def home(tmp_path_factory) -> Path:
    """The home folder of that app; what it says is kept beside its data."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="session")
def server(home) -> Iterator[str]:
    """The address of an app that runs as long as the tests do."""
    with running_app(home) as address:
        yield address


@pytest.fixture(autouse=True)
def said(server: str, home: Path) -> Iterator[None]:
    """What the app says during a test is printed when the test fails; an exception fails it."""
    log = home / LOG
    before = log.stat().st_size
    yield
    text = log.read_bytes()[before:].decode(errors="replace")
    sys.stdout.write(text)
    assert IN_SCRIPT not in text


@contextmanager
def running_app(home: Path) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "streamlit", "run", "app.py", f"--server.port={port}"]
    with (home / LOG).open("wb") as log:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=os.environ | {"RPEXPLORE_HOME": str(home), TOKEN_VARIABLE: TOKEN},
            stdin=subprocess.PIPE,  # the app ends with it
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    address = f"http://127.0.0.1:{port}"
    try:
        _wait_for(process, f"{address}/_stcore/health", home / LOG)
        yield address
    finally:
        process.terminate()
        try:
            process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


def _wait_for(process: subprocess.Popen, health: str, log: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if process.poll() is not None:
            pytest.fail(f"the app did not start:\n{log.read_text()}")
        try:
            with urllib.request.urlopen(health, timeout=1) as answer:
                if answer.status == 200:
                    return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    pytest.fail(f"the app did not answer within {PATIENCE} seconds")


def settled(page: Page) -> None:
    """Wait until the script has run and the text colours of `.streamlit/style.css` are there.

    Streamlit loads each kind of element when it is first drawn; on a busy machine that style may
    come seconds after the text whose colour it sets.
    """
    expect(page.locator('[data-test-script-state="notRunning"]')).to_have_count(1)
    page.wait_for_function(
        "[...document.querySelectorAll('style')].some(e => e.textContent.includes('light-dark('))"
    )


def drawn(page: Page) -> None:
    """Wait until the page has settled and its charts, which draw themselves later, are there."""
    settled(page)
    expect(page.get_by_test_id("stSkeleton")).to_have_count(0)
    page.wait_for_function(
        "[...document.querySelectorAll('[data-testid=stPlotlyChart]')]"
        ".every(chart => chart.querySelector('.main-svg text'))"
    )


def switch_scheme(page: Page, scheme: Literal["light", "dark"]) -> None:
    """Switch an open page to light or dark, and wait until it has followed; charts may be later."""
    page.emulate_media(color_scheme=scheme)
    page.wait_for_function(
        "scheme => getComputedStyle(document.querySelector('[data-testid=stApp]')).colorScheme"
        " === scheme",
        arg=scheme,
    )
    # Colours that fade from one scheme to the other are too faint for both on the way. A transition
    # that has finished stays in the list until the page is next painted, which may be never.
    page.wait_for_function(
        "document.getAnimations()"
        ".every(a => !(a instanceof CSSTransition) || a.playState === 'finished')"
    )


def is_narrow(page: Page) -> bool:
    """Whether nothing is wider than the window."""
    main = page.get_by_test_id("stMain")
    return main.evaluate("element => element.scrollWidth <= element.clientWidth + 1")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The system's Chromium. Without one the tests are skipped, or fail where one is required."""
    path = find_browser()
    if path is None:
        message = "no Chromium found; on Debian: apt-get install chromium"
        if os.environ.get("RPEXPLORE_REQUIRE_BROWSER") == "1":
            pytest.fail(message)
        # A newcomer need not have one; where RPEXPLORE_REQUIRE_BROWSER is set, this fails.
        pytest.skip(message)
    with chromium(path, f"--host-resolver-rules=MAP {PLANNING_NAME} 127.0.0.1") as browser:
        yield browser


@contextmanager
def chromium(path: Path, *more: str) -> Iterator[Browser]:
    """The Chromium at this path, started without a window."""
    # Pages of a context share one process, which has Streamlit's scripts compiled already.
    args = ["--renderer-process-limit=1", *more]
    if os.geteuid() == 0:  # in containers, where Chromium's own sandbox does not work
        args.append("--no-sandbox")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, headless=True, args=args)
        yield browser
        browser.close()


# What moves is painted again and again, by the processor: a tenth of the time of a test.
STILL = """
const still = new CSSStyleSheet();
still.replaceSync(
  "*, ::before, ::after { animation: none !important; transition: none !important }"
);
document.adoptedStyleSheets = [still];
"""


@pytest.fixture(scope="session")
def context(browser: Browser) -> Iterator[BrowserContext]:
    """What the pages of tests share, so that Streamlit's scripts are compiled only once."""
    context = browser.new_context(viewport=WINDOW, reduced_motion="reduce")
    context.add_init_script(STILL)
    context.new_page()  # stays open, and with it the process of all pages
    yield context
    context.close()


def enter(page: Page, address: str, path: str = "/") -> None:
    """Open the app with its token, as `rpexplore app` does; from then on the browser may use it."""
    page.goto(f"{address}{path}{'&' if '?' in path else '?'}{TOKEN_PARAMETER}={TOKEN}")
    page.wait_for_function("!location.search.includes('token')")


@contextmanager
def visit(context: BrowserContext, server: str, path: str = "/" + SAMPLE) -> Iterator[Page]:
    """A page without cookies; at the end no request may have left the machine."""
    context.clear_cookies()
    requested: list[str] = []

    def listen(request: Request | WebSocket) -> None:
        requested.append(request.url)

    context.on("request", listen)
    before = list(context.pages)
    page = context.new_page()
    page.on("websocket", listen)
    page.set_default_timeout(PATIENCE * 1000)
    try:
        enter(page, server, path)
        yield page
        page.evaluate("localStorage.clear()")
    finally:
        context.remove_listener("request", listen)
        for opened in context.pages:
            if opened not in before:
                opened.close()
    hosts = {urlparse(url).hostname for url in requested if not url.startswith(LOCAL)}
    assert hosts == {"127.0.0.1"}, [url for url in requested if "127.0.0.1" not in url]


@pytest.fixture
def page(request: pytest.FixtureRequest, context: BrowserContext, server: str) -> Iterator[Page]:
    """A new session, open on the first page or on that of the parameter."""
    with visit(context, server, getattr(request, "param", "/") + SAMPLE) as page:
        yield page


@pytest.fixture(scope="module")
def visitor(context: BrowserContext, server: str) -> Iterator[Page]:
    """One page of the browser for all tests of a module."""
    with visit(context, server) as page:
        yield page
