"""The pictures of README and docs: `python -m tests.browser.pictures [name …]` takes them again.

Each is of one page of a running app on the sample data, as WebP of less than 100 KB. Paths of this
machine are shown as those of an invented person.
"""

import io
import re
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, ViewportSize, expect

from rpexplore.reports.report import find_browser
from rpexplore.scenarios.examples import COUNTRY_KEY, sample_project
from tests.browser.conftest import ROOT, chromium, drawn, enter, running_app, settled
from tests.browser.test_story import fill, go_to, metric, run_release

FOLDER = Path(__file__).parent / "screenshots"
WINDOW: ViewportSize = {"width": 1280, "height": 860}
MOST_BYTES = 100_000
PATIENCE = 180_000  # ms, for a busy machine
HOUSEHOLD = "?project=household"
COUNTRY = f"?project={COUNTRY_KEY}"
SHOWN_PATH = "/survey"

_REPLACE_PATHS = """([paths, shown]) => {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const replaced = text => paths.reduce((left, path) => left.replaceAll(path, shown), text);
  while (walker.nextNode()) {
    const text = walker.currentNode.data;
    if (replaced(text) !== text) walker.currentNode.data = replaced(text);
  }
  for (const field of document.querySelectorAll("input")) {
    if (replaced(field.value) !== field.value) field.value = replaced(field.value);
  }
}"""


def quiet(page: Page) -> None:
    """Wait until nothing is worked out or drawn any more."""
    for _ in range(2):  # what has been worked out draws the page again
        settled(page)
        expect(page.get_by_test_id("stProgress")).to_have_count(0, timeout=PATIENCE)
        expect(page.get_by_text("Working it out")).to_have_count(0, timeout=PATIENCE)
        drawn(page)
        page.wait_for_timeout(1500)


def home(page: Page, _: Path) -> None:
    expect(page.get_by_role("button", name="Census of Orsavia")).to_be_visible()


def data(page: Page, _: Path) -> None:
    expect(metric(page, "Attributes")).to_contain_text("11")


def tables(page: Page, _: Path) -> None:
    expect(page.get_by_text("of people in good cells")).to_be_visible(timeout=PATIENCE)


def plan(page: Page, _: Path) -> None:
    expect(metric(page, "People in good cells")).to_be_visible(timeout=PATIENCE)
    quiet(page)
    page.get_by_test_id("stMain").evaluate("element => element.scrollTo(0, 60)")


def suggestions(page: Page, _: Path) -> None:
    page.get_by_role("combobox", name="Open scenario").click()
    page.get_by_role("option", name=re.compile("^Up to 3-way")).click()
    quiet(page)
    page.get_by_text("3-way", exact=True).click()
    quiet(page)
    page.get_by_text("What would make it good").click()
    expect(page.get_by_role("button", name="Apply").first).to_be_visible(timeout=PATIENCE)
    page.get_by_text("Which tables are good enough").scroll_into_view_if_needed()
    page.get_by_test_id("stMain").evaluate("element => element.scrollTo(0, 430)")


def charts(page: Page, _: Path) -> None:
    expect(page.locator(".js-plotly-plot").first).to_be_visible(timeout=PATIENCE)


def areas(page: Page, folder: Path) -> None:
    charts(page, folder)
    page.get_by_test_id("stMain").evaluate("element => element.scrollTo(0, 400)")


def scenarios(page: Page, _: Path) -> None:
    quiet(page)
    page.get_by_role("heading", name="Side by side").scroll_into_view_if_needed()
    page.get_by_test_id("stMain").evaluate("element => element.scrollTo(0, 240)")


def release(page: Page, folder: Path) -> None:
    released(page, folder / "household", "")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("of people are in good cells", timeout=PATIENCE)


def results(page: Page, folder: Path) -> None:
    released(page, folder / "household", "Up to 2-way, by single years of age")
    attributes = page.get_by_role("combobox", name=re.compile("Attributes of the table"))
    attributes.click()
    for _ in range(2):
        page.keyboard.press("Backspace")
        quiet(page)
    for name in ("settlement", "tenure"):
        attributes.fill(name)
        attributes.press("Enter")
        quiet(page)
    attributes.press("Escape")
    page.get_by_test_id("stMain").evaluate("element => element.scrollTo(0, 290)")


def country(page: Page, folder: Path) -> None:
    released(page, folder / "census", sample_project().current.name)
    page.get_by_text("Map", exact=True).click()
    expect(page.get_by_text("of the 2,024 figures")).to_be_visible(timeout=PATIENCE)
    page.get_by_role("combobox", name="Colour by").click()
    page.get_by_role("option", name="CV", exact=True).click()
    quiet(page)
    page.get_by_test_id("stMain").evaluate("element => element.scrollTo(0, 390)")


def released(page: Page, output: Path, scenario: str) -> None:
    """Run the release into a folder, and go to its results; "": only ask whether to run it."""
    quiet(page)
    fill(page, "Folder for the release", str(output))
    fill(page, "Ledger", str(output.with_name(f"{output.name}-{bool(scenario)}.sqlite")))
    quiet(page)
    if not scenario:
        page.get_by_role("button", name="Run the release").click()
        return
    run_release(page, scenario)
    expect(page.get_by_text(re.compile("^Finished"))).to_be_visible(timeout=PATIENCE)
    go_to(page, "Results")
    quiet(page)


def report(page: Page, folder: Path) -> None:
    quiet(page)
    with page.expect_download(timeout=PATIENCE) as download:
        page.get_by_role("button", name="Download report.html").click()
    download.value.save_as(folder / "report.html")
    page.goto((folder / "report.html").as_uri())
    expect(page.locator(".js-plotly-plot").first).to_be_visible()
    page.wait_for_timeout(2500)


# The name of each picture, the page that it is taken on, and what is done there before.
PICTURES: dict[str, tuple[str, Callable[[Page, Path], None]]] = {
    "1-home": ("/", home),
    "2-data": (f"/codebook{HOUSEHOLD}", data),
    "3-tables": (f"/workload{HOUSEHOLD}", tables),
    "4-plan": (f"/plan{HOUSEHOLD}", plan),
    "5-suggestions": (f"/plan{HOUSEHOLD}", suggestions),
    "6-fairness": (f"/fairness{HOUSEHOLD}", charts),
    "7-trade-offs": (f"/tradeoffs{HOUSEHOLD}", charts),
    "8-release": (f"/release{HOUSEHOLD}", release),
    "9-results": (f"/release{HOUSEHOLD}", results),
    "10-country": (f"/release{COUNTRY}", country),
    "scenarios": (f"/scenarios{HOUSEHOLD}", scenarios),
    "areas": (f"/workload{COUNTRY}&part=areas&areas=By+area", areas),
    "report": (f"/release{HOUSEHOLD}", report),
}


def take(browser: Browser, address: str, name: str) -> int:
    """Take a picture; returns how many bytes it has."""
    path, prepare = PICTURES[name]
    with tempfile.TemporaryDirectory() as folder:
        context = browser.new_context(
            viewport=WINDOW, reduced_motion="reduce", accept_downloads=True
        )
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        enter(page, address, path)
        settled(page)
        prepare(page, Path(folder))
        if not page.url.startswith("file:"):  # a report is no page of the app
            quiet(page)
            page.evaluate(_REPLACE_PATHS, [[str(ROOT), folder], SHOWN_PATH])
        page.mouse.move(0, 0)
        page.wait_for_timeout(500)
        with Image.open(io.BytesIO(page.screenshot())) as taken:
            taken.save(FOLDER / f"{name}.webp", quality=85, method=6)
        context.close()
    return (FOLDER / f"{name}.webp").stat().st_size


def main(names: list[str]) -> int:
    """Take the named pictures, or all of them; returns how many could not be taken."""
    path, failed = find_browser(), []
    if path is None:
        sys.exit("No Chromium found; on Debian: apt-get install chromium")
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as app, running_app(Path(app)) as address:
        for name in names or PICTURES:
            with chromium(path) as browser:  # a new one: what failed before is gone
                for _ in range(2):
                    with suppress(Exception):
                        size = take(browser, address, name)
                        remark = " (too many)" if size > MOST_BYTES else ""
                        sys.stdout.write(f"{name}: {size:,} bytes{remark}\n")
                        break
                else:
                    failed.append(name)
                    sys.stdout.write(f"{name}: could not be taken\n")
    return len(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
