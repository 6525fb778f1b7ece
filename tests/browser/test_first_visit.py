"""The first visit to Plan: how much is loaded over a slow line, and how much there is to read."""

import time

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import TOKEN, TOKEN_PARAMETER, drawn, enter
from tests.browser.test_story import metric

SPEED, LATENCY = 1.5e6 / 8, 150  # bytes a second, ms
MOST_BYTES = 2_000_000
SECONDS = 60  # 15 on a machine that does nothing else
ADDRESS = "/plan?project=household"


@pytest.mark.nightly
def test_the_answer_comes_soon_over_a_slow_line(browser: Browser, server: str):
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    page.set_default_timeout(1000 * SECONDS)
    devtools, sizes = context.new_cdp_session(page), []
    devtools.send("Network.enable")
    devtools.send(
        "Network.emulateNetworkConditions",
        {"offline": False, "latency": LATENCY, "downloadThroughput": SPEED,
         "uploadThroughput": SPEED},
    )  # fmt: skip
    devtools.on("Network.loadingFinished", lambda one: sizes.append(one["encodedDataLength"]))
    devtools.on(
        "Network.webSocketFrameReceived",
        lambda one: sizes.append(3 / 4 * len(one["response"]["payloadData"])),  # of base64
    )
    begun = time.monotonic()
    page.goto(f"{server}{ADDRESS}&{TOKEN_PARAMETER}={TOKEN}", wait_until="commit")
    expect(metric(page, "People in good cells")).to_contain_text("93 %", timeout=1000 * SECONDS)
    assert time.monotonic() - begun < SECONDS
    assert 500_000 < sum(sizes) < MOST_BYTES
    context.close()


@pytest.mark.nightly
def test_the_plan_is_short(browser: Browser, server: str):
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    enter(page, server, ADDRESS)
    expect(metric(page, "People in good cells")).to_contain_text("93 %", timeout=1000 * SECONDS)
    drawn(page)
    main = page.get_by_test_id("stMain")
    # All that is written, figures and the names of icons among it.
    assert 200 < len(main.inner_text().split()) <= 350
    assert main.evaluate("element => element.scrollHeight") <= 1600
    context.close()
