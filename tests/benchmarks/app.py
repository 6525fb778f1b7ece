"""The app in a real browser: from a changed budget to the last byte of the updated page, and bytes.

Server time is counted from the message that the browser sends to the last one that answers it, so
it holds the page's script, all that it computes, and the packing of what is sent. Payload is what
the server sends for a page beyond the app's own program, which is the same for every page.
"""

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlparse

from playwright.sync_api import Page, sync_playwright

import rpexplore as rp
from rpexplore.drafts import Drafts
from rpexplore.request import WorkloadRequest
from rpexplore.scenario import Scenario
from rpexplore.study import Study
from tests.browser.conftest import NAMES, running_app

PAGES = ("schema", "workload", "plan", "fairness", "tradeoffs", "scenarios", "release")
BUDGETS = ("0.11", "0.12", "0.13", "0.14")  # the first one plans; the others only scale
QUIET = 1.5  # seconds without a message after which a page is complete


def browser_path() -> str | None:
    """Where Chromium is; None if there is none."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Traffic:
    """What went between browser and server: moments of messages, and bytes received."""

    def __init__(self, page: Page) -> None:
        self.sent: list[float] = []
        self.received: list[float] = []
        self.bytes = 0
        page.on("websocket", self._listen)
        page.on("response", self._count)

    def _listen(self, socket) -> None:
        socket.on("framesent", lambda _: self.sent.append(time.perf_counter()))
        socket.on("framereceived", self._receive)

    def _receive(self, payload) -> None:
        self.received.append(time.perf_counter())
        self.bytes += len(payload)

    def _count(self, response) -> None:
        if urlparse(response.url).path.startswith("/media"):
            self.bytes += int(response.headers.get("content-length", 0))

    def forget(self) -> None:
        self.sent, self.received, self.bytes = [], [], 0


@contextmanager
def opened(scenario: Scenario) -> Iterator[tuple[Page, Traffic, str]]:
    """A browser on an app with this scenario, what goes between them, and its address."""
    with tempfile.TemporaryDirectory() as home, sync_playwright() as playwright:
        key = Drafts.new_key()
        Drafts(Path(home) / "drafts").save(key, Study((scenario,)).text(), None)
        with running_app(Path(home)) as address:
            browser = playwright.chromium.launch(
                executable_path=browser_path(), args=["--no-sandbox"]
            )
            page = browser.new_page(viewport={"width": 1280, "height": 800})
            page.set_default_timeout(60_000)
            yield page, Traffic(page), f"{address}/{{}}?study={key}"
            browser.close()


def settle(page: Page, traffic: Traffic) -> float:
    """Wait until the server is silent; seconds from the first message sent to the last received."""
    deadline = time.perf_counter() + 60
    while time.perf_counter() < deadline:
        page.wait_for_timeout(100)
        if traffic.received and time.perf_counter() - traffic.received[-1] > QUIET:
            break
    return traffic.received[-1] - traffic.sent[0] if traffic.sent else float("nan")


def figures(scenario: Scenario) -> tuple[dict[str, float], dict[str, float]]:
    """(megabytes of each page, seconds of each page after a change of the budget)."""
    megabytes, seconds = {}, {}
    with opened(scenario) as (page, traffic, address):
        for name in PAGES:
            traffic.forget()
            page.goto(address.format(name))
            page.get_by_role("heading", level=1).wait_for()
            settle(page, traffic)
            megabytes[name] = traffic.bytes / 1e6
        page.goto(address.format("plan"))
        settle(page, traffic)
        field = page.get_by_label("ρ", exact=True)
        for budget in BUDGETS:
            field.fill(budget)
            traffic.forget()
            field.press("Enter")
            found = settle(page, traffic)
            seconds["plan"] = min(found, seconds.get("plan", found))
        for name, title in (("fairness", "Fairness"), ("tradeoffs", "Trade-offs")):
            for budget in BUDGETS[:2]:
                field = page.get_by_label("ρ", exact=True)
                field.fill(budget)
                field.press("Enter")
                settle(page, traffic)
                traffic.forget()
                page.get_by_role("link", name=title, exact=True).click()
                page.get_by_role("heading", name=title, exact=True).wait_for()
                found = settle(page, traffic)
                seconds[name] = min(found, seconds.get(name, found))
                page.get_by_role("link", name="Plan", exact=True).click()
                page.get_by_role("heading", name="Plan", exact=True).wait_for()
                settle(page, traffic)
    return megabytes, seconds


def adult() -> Scenario:
    """The 14 attributes of the Adult data, all tables of up to three."""
    sizes = [100, 100, 100, 99, 85, 42, 16, 15, 9, 7, 6, 5, 2, 2]
    domain = rp.Domain.from_sizes({f"a{place:02}": size for place, size in enumerate(sizes)})
    return Scenario(domain, WorkloadRequest(order=3))


def hundred() -> Scenario:
    """A hundred attributes of mixed sizes, all 166,751 tables of up to three."""
    domain = rp.Domain.from_sizes({f"a{place:02}": 2 + place % 20 for place in range(100)})
    return Scenario(domain, WorkloadRequest(order=3))
