"""The mark of the product."""

import pytest
from playwright.sync_api import expect


@pytest.mark.nightly
def test_the_mark_follows_the_scheme(page):
    mark = page.get_by_test_id("stHeaderLogo")
    page.emulate_media(color_scheme="light")
    light = mark.screenshot()
    page.emulate_media(color_scheme="dark")
    expect(page.get_by_test_id("stApp")).to_have_css("color-scheme", "dark")
    assert mark.screenshot() != light
