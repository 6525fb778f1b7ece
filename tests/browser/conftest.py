"""A running app, and a real browser that must not ask anybody else for anything."""

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlparse

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from rpexplore.export.report.pdf import find_browser

ROOT = Path(__file__).parents[2]
LOCAL = ("data:", "blob:", "file:")  # addresses that no request leaves the machine for
PATIENCE = 30  # seconds, also for a slow machine
expect.set_options(timeout=1000 * PATIENCE)


@pytest.fixture(scope="session")
def server(tmp_path_factory) -> Iterator[str]:
    """The address of an app that runs as long as the tests do."""
    with running_app(tmp_path_factory.mktemp("home")) as address:
        yield address


@pytest.fixture
def new_server(tmp_path) -> Iterator[str]:
    """The address of an app that nobody has visited yet."""
    with running_app(tmp_path / "home") as address:
        yield address


@contextmanager
def running_app(home: Path) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "streamlit", "run", "app.py", f"--server.port={port}"]
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=os.environ | {"RPEXPLORE_HOME": str(home)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    address = f"http://127.0.0.1:{port}"
    try:
        _wait_for(process, f"{address}/_stcore/health")
        yield address
    finally:
        process.terminate()
        try:
            process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


def _wait_for(process: subprocess.Popen, health: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if process.poll() is not None:
            pytest.fail(f"the app did not start:\n{process.communicate()[0]}")
        try:
            with urllib.request.urlopen(health, timeout=1) as answer:
                if answer.status == 200:
                    return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    pytest.fail(f"the app did not answer within {PATIENCE} seconds")


def settled(page: Page) -> None:
    """Wait until the script has run and the text colours of `pages._style` are there.

    Streamlit loads each kind of element when it is first drawn; on a busy machine that style may
    come seconds after the text whose colour it sets.
    """
    expect(page.locator('[data-test-script-state="notRunning"]')).to_have_count(1)
    page.wait_for_function(
        "[...document.querySelectorAll('style')].some(e => e.textContent.includes('light-dark('))"
    )


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The system's Chromium. Without one the tests are skipped, or fail where one is required."""
    path = find_browser()
    if path is None:
        message = "no Chromium found; on Debian: apt-get install chromium"
        if os.environ.get("RPEXPLORE_REQUIRE_BROWSER") == "1":
            pytest.fail(message)
        pytest.skip(message)  # on a newcomer's machine; .ci/run requires the browser
    # Chromium's own sandbox does not work for root, as whom tests often run in containers.
    args = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, headless=True, args=args)
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Browser, server: str) -> Iterator[Page]:
    """A new session, open on the first page; at the end no request may have left the machine."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    asked: list[str] = []
    context.on("request", lambda request: asked.append(request.url))
    page = context.new_page()
    page.on("websocket", lambda socket: asked.append(socket.url))
    page.set_default_timeout(PATIENCE * 1000)
    page.goto(server)
    yield page
    context.close()
    hosts = {urlparse(url).hostname for url in asked if not url.startswith(LOCAL)}
    assert hosts == {"127.0.0.1"}, [url for url in asked if "127.0.0.1" not in url]
