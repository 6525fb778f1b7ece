"""Charts as pictures: drawn by the browser, asked for with the keyboard."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from pages.components.shared.charts import NUMBERS
from tests.browser.conftest import drawn


@pytest.mark.nightly
def test_a_chart_is_downloaded_as_png_and_as_svg(page: Page):
    page.get_by_role("link", name="Compare", exact=True).first.click()
    expect(page.get_by_role("heading", name="Fairness", exact=True)).to_be_visible()
    drawn(page)
    # The last chart of the page, so that it is not just any that is drawn.
    title = page.locator(".js-plotly-plot .xtitle, .js-plotly-plot .ytitle").last.text_content()
    folded = page.get_by_text(NUMBERS).last
    folded.click()
    for name, start in (("PNG", b"\x89PNG"), ("SVG", b"<svg")):
        button = page.get_by_role("button", name=f"Download {name}").last
        button.focus()
        with page.expect_download() as download:
            button.press("Enter")
        assert download.value.suggested_filename.endswith(f".{name.lower()}")
        content = Path(download.value.path()).read_bytes()
        assert content.startswith(start)
    assert title
    assert title in content.decode()
