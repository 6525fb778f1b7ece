"""The report in a real browser: it draws its charts, asks nobody, and keeps nobody out."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from tests.export.reports import html_of


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("report")


@pytest.fixture
def opened(browser: Browser, folder: Path, request) -> Iterator[Page]:
    """The report, open; at the end nothing may have been asked of anybody, or gone wrong."""
    name, scheme = getattr(request, "param", ("groups", "light"))
    report = folder / f"{name}.html"
    report.write_text(html_of(name), encoding="utf-8")
    context = browser.new_context(viewport={"width": 1000, "height": 900}, color_scheme=scheme)
    page = context.new_page()
    asked: list[str] = []
    told: list[str] = []
    page.on("request", lambda each: asked.append(each.url))
    page.on("console", lambda each: told.append(each.text))
    page.on("pageerror", lambda each: told.append(str(each)))
    page.on("dialog", lambda each: told.append(each.message))
    page.goto(report.as_uri())
    expect(page.locator(".main-svg").first).to_be_visible()
    yield page
    context.close()
    assert asked == [report.as_uri()]
    assert not told


@pytest.mark.parametrize("opened", [("groups", "light"), ("hostile", "light")], indirect=True)
def test_every_chart_is_drawn_within_its_column(opened):
    charts = opened.locator("[data-chart]")
    assert charts.count() >= 4
    for chart in charts.all():
        expect(chart.locator(".main-svg").first).to_be_visible()
    assert opened.evaluate("document.documentElement.scrollWidth") <= 1000


@pytest.mark.parametrize("opened", [("groups", "light"), ("groups", "dark")], indirect=True)
def test_charts_have_the_colours_of_the_page(opened):
    text = opened.locator(".chart text").first
    colours = text.evaluate(
        "node => [getComputedStyle(node).fill, getComputedStyle(document.body).color]"
    )
    assert colours[0] == colours[1]


@pytest.mark.parametrize("opened", [("hostile", "light"), ("groups", "dark")], indirect=True)
def test_no_serious_accessibility_finding(opened):
    for details in opened.locator("details").all():
        details.evaluate("node => { node.open = true }")
    serious = [
        f"{each['id']}: {node['target']}"
        for each in Axe().run(opened).response["violations"]
        if each["impact"] in ("serious", "critical")
        for node in each["nodes"]
    ]
    assert not serious, "\n".join(serious)


@pytest.mark.parametrize("opened", [("hostile", "light")], indirect=True)
def test_it_fits_a_telephone(opened):
    opened.set_viewport_size({"width": 390, "height": 800})
    opened.wait_for_timeout(500)
    assert opened.evaluate("document.documentElement.scrollWidth") <= 390


def test_it_prints_with_everything_open(opened):
    opened.emulate_media(media="print")
    opened.evaluate("dispatchEvent(new Event('beforeprint'))")
    closed = "[...document.querySelectorAll('details')].filter(each => !each.open).length"
    assert opened.evaluate(closed) == 0
    for selector in ("summary", ".on-screen"):
        for interactive in opened.locator(selector).all():
            expect(interactive).to_be_hidden()
    for sentence in opened.locator(".on-paper").all():
        expect(sentence).to_be_visible()
    opened.evaluate("dispatchEvent(new Event('afterprint'))")
    assert opened.evaluate(closed) > 0


@pytest.mark.parametrize("opened", [("groups", "dark")], indirect=True)
def test_charts_are_printed_dark_on_white_also_from_a_dark_screen(opened):
    # Browsers announce the print before they change the media.
    opened.evaluate("dispatchEvent(new Event('beforeprint'))")
    text = opened.locator(".chart text").first
    assert text.evaluate("node => getComputedStyle(node).fill") == "rgb(27, 31, 36)"
    opened.evaluate("dispatchEvent(new Event('afterprint'))")
    assert text.evaluate("node => getComputedStyle(node).fill") == "rgb(230, 233, 238)"


def test_the_list_of_tables_can_be_downloaded(opened):
    with opened.expect_download() as download:
        opened.get_by_role("link", name="Download tables.csv").click()
    assert download.value.suggested_filename == "tables.csv"
    text = Path(download.value.path()).read_text("utf-8")
    assert text.startswith("attributes,order,cells,")
