"""The app in a real browser: from its start to the first page, and what a slider takes.

Cases of `tests.benchmarks.run`. Times are by the clock, from the start of the server's process or
the press of a key to the page on the screen; they hold the browser's own work, of which loading and
running Streamlit's front end is about a second.
"""

import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser

from rpexplore.reports.report import find_browser
from rpexplore.scenarios.autosave import Autosaves
from rpexplore.scenarios.project import Project
from tests.benchmarks.app import hundred
from tests.benchmarks.measure import REPEATS, Row
from tests.browser.conftest import chromium, drawn, enter, running_app, settled

STEPS = 8


@contextmanager
def browser() -> Iterator[Browser]:
    path = find_browser()
    assert path, "asked for without a Chromium"
    with chromium(path) as started:
        yield started


def cold_start() -> list[Row]:
    seconds = []
    with browser() as chrome, tempfile.TemporaryDirectory() as home:
        for _ in range(REPEATS):
            page = chrome.new_context().new_page()
            start = time.perf_counter()
            with running_app(Path(home)) as address:
                enter(page, address)
                page.get_by_role("heading", name="Will your tables be good enough").wait_for()
                seconds.append(time.perf_counter() - start)
    return [("app: from its start to the first page, s", min(seconds), "<=", 2)]


def slider_of_hundred() -> list[Row]:
    with browser() as chrome, tempfile.TemporaryDirectory() as home:
        folder, key = Path(home) / "autosaves", Autosaves.new_key()
        Autosaves(folder).save(key, Project((hundred(),)).text(), None)
        with running_app(Path(home)) as address:
            context = chrome.new_context(viewport={"width": 1440, "height": 900})
            page = context.new_page()
            enter(page, address, f"/plan?project={key}")
            drawn(page)
            slider, seconds = page.get_by_role("slider"), []
            for _ in range(STEPS):
                start = time.perf_counter()
                slider.press("ArrowRight")
                page.locator('[data-test-script-state="running"]').wait_for(state="attached")
                settled(page)
                seconds.append(time.perf_counter() - start)
                drawn(page)
    median = statistics.median(seconds)
    return [("slider at 166,751 tables: from key to complete page, median, s", median, "<=", 0.8)]


CASES = (cold_start, slider_of_hundred)
