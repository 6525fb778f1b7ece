"""The report in a real browser: it draws its charts, asks nobody, and keeps nobody out."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, ViewportSize, expect

from tests.reports.reports import html_of

WINDOW: ViewportSize = {"width": 1000, "height": 900}
COLOURS = {"light": "rgb(27, 31, 36)", "dark": "rgb(230, 233, 238)"}  # of all text


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("report")


nightly = partial(pytest.param, marks=pytest.mark.nightly)


@pytest.fixture(scope="module", params=["hostile", nightly("groups")])
def report(browser: Browser, folder: Path, request) -> Iterator[Page]:
    """A report, open; at the end nothing may have been asked of anybody, or gone wrong."""
    path = folder / f"{request.param}.html"
    path.write_text(html_of(request.param), encoding="utf-8")
    context = browser.new_context(viewport=WINDOW, color_scheme="light")
    page = context.new_page()
    requests: list[str] = []
    messages: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.on("console", lambda message: messages.append(message.text))
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.on("dialog", lambda dialog: messages.append(dialog.message))
    page.goto(path.as_uri())
    expect(page.locator(".main-svg").first).to_be_visible()
    yield page
    context.close()
    assert requests == [path.as_uri()]
    assert not messages


@pytest.fixture
def opened(report: Page) -> Iterator[Page]:
    """The report as it opens, whatever a test before did to it."""
    yield report
    report.evaluate("document.querySelectorAll('details').forEach(box => { box.open = false })")
    report.set_viewport_size(WINDOW)
    report.emulate_media(media="screen", color_scheme="light")


def test_every_chart_is_drawn_within_its_column(opened):
    charts = opened.locator("[data-chart]")
    assert charts.count() >= 4
    for chart in charts.all():
        expect(chart.locator(".main-svg").first).to_be_visible()
    assert opened.evaluate("document.documentElement.scrollWidth") <= WINDOW["width"]


@pytest.mark.nightly
def test_charts_have_the_colours_of_the_page(opened):
    for scheme, colour in COLOURS.items():
        opened.emulate_media(color_scheme=scheme)
        expect(opened.locator("body")).to_have_css("color", colour)
        expect(opened.locator(".chart text").first).to_have_css("fill", colour)


@pytest.mark.parametrize(
    ("report", "scheme"),
    [
        nightly("hostile", "light"),
        nightly("hostile", "dark"),
        nightly("groups", "light"),
        nightly("groups", "dark"),
    ],
    indirect=["report"],
)
def test_no_serious_accessibility_finding(opened, scheme):
    for details in opened.locator("details").all():
        details.evaluate("node => { node.open = true }")
    opened.emulate_media(color_scheme=scheme)
    expect(opened.locator(".chart text").first).to_have_css("fill", COLOURS[scheme])
    serious = [
        f"{violation['id']}: {node['target']}"
        for violation in Axe().run(opened).response["violations"]
        if violation["impact"] in ("serious", "critical")
        for node in violation["nodes"]
    ]
    assert not serious, "\n".join(serious)


@pytest.mark.nightly
def test_it_fits_a_telephone(opened):
    opened.set_viewport_size({"width": 390, "height": 800})
    # Charts are drawn anew in their narrower columns.
    # By a loop: the page's policy forbids what Playwright's own wait evaluates in it.
    for _ in range(100):
        if opened.evaluate("() => document.documentElement.scrollWidth") <= 390:
            break
        opened.wait_for_timeout(100)
    else:
        raise AssertionError("the report stays wider than a telephone")


def test_it_prints_with_everything_open(opened):
    opened.emulate_media(media="print")
    opened.evaluate("dispatchEvent(new Event('beforeprint'))")
    closed = "[...document.querySelectorAll('details')].filter(box => !box.open).length"
    assert opened.evaluate(closed) == 0
    for selector in ("summary", ".on-screen"):
        for interactive in opened.locator(selector).all():
            expect(interactive).to_be_hidden()
    for sentence in opened.locator(".on-paper").all():
        expect(sentence).to_be_visible()
    opened.evaluate("dispatchEvent(new Event('afterprint'))")
    assert opened.evaluate(closed) > 0


@pytest.mark.nightly
def test_charts_are_printed_dark_on_white_also_from_a_dark_screen(opened):
    text = opened.locator(".chart text").first
    opened.emulate_media(color_scheme="dark")
    expect(text).to_have_css("fill", COLOURS["dark"])
    # Browsers announce the print before they change the media.
    opened.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert text.evaluate("node => getComputedStyle(node).fill") == COLOURS["light"]
    opened.evaluate("dispatchEvent(new Event('afterprint'))")
    assert text.evaluate("node => getComputedStyle(node).fill") == COLOURS["dark"]


@pytest.mark.nightly
def test_the_list_of_tables_can_be_downloaded(opened):
    with opened.expect_download() as download:
        opened.get_by_role("link", name="Download tables.csv").click()
    assert download.value.suggested_filename == "tables.csv"
    text = Path(download.value.path()).read_text("utf-8")
    assert text.startswith("item,attributes,cells,")
