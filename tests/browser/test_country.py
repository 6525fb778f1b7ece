"""The sample country in a real browser: its map before a release and after it."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from rpexplore.scenarios.examples import sample_project
from tests.browser.conftest import drawn, settled
from tests.browser.test_story import fill, go_to, metric, open_part, run_release

SCENARIO = sample_project().current.name


def point_at_shapes(page: Page) -> str:
    """The text beside the pointer where the map first has one."""
    chart = page.locator(".js-plotly-plot .nsewdrag").last
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    assert box is not None
    texts = page.locator(".hoverlayer .hovertext")
    for down in range(3, 8):
        for across in range(3, 8):
            page.mouse.move(box["x"] + box["width"] * across / 10,
                            box["y"] + box["height"] * down / 10, steps=3)  # fmt: skip
            page.wait_for_timeout(100)
            if texts.count():
                return texts.first.text_content() or ""
    return ""


@pytest.mark.nightly
def test_the_country_is_planned_released_and_seen_on_maps(page: Page, tmp_path: Path):
    go_to(page, "Tables")
    open_part(page, "Areas")
    page.get_by_role("button", name="Open the sample country").click()
    expect(metric(page, "Areas")).to_contain_text("24,939")
    page.get_by_role("tab", name="Map", exact=True).click()
    expect(page.get_by_text("All 2,024 areas of the level")).to_be_visible()
    drawn(page)
    assert re.search(r"[A-Z][a-z]+.*σ", point_at_shapes(page))

    go_to(page, "Release")
    fill(page, "Folder for the release", str(tmp_path / "census"))
    fill(page, "Ledger", str(tmp_path / "ledger.sqlite"))
    expect(page.get_by_text(str(tmp_path / "census")).first).to_be_visible()
    run_release(page, SCENARIO)
    expect(page.get_by_text(re.compile("^Finished: 83,448 noisy tables"))).to_be_visible()

    go_to(page, "Results")
    settled(page)
    page.get_by_text("Map", exact=True).click()
    expect(page.get_by_text("of the 2,024 figures on the map are publishable")).to_be_visible()
    drawn(page)
    assert re.search(r"\([A-Z]\d+\).*CV.*publishable", point_at_shapes(page))
