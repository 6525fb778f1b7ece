"""The page for readers in a real browser: it asks nobody, is searched, and keeps nobody out."""

from pathlib import Path

import pandas as pd
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, expect

import rpexplore as rp
from rpexplore.planning.planner import plan_tables
from rpexplore.releases.release import release
from rpexplore.results.formats.export import Export
from rpexplore.results.formats.readers_page import readers_page

CODE = '<img src="http://evil.example/a" onerror="alert(1)">'


def written(folder: Path) -> Path:
    domain = rp.Domain(
        (
            rp.Attribute("age", rp.Integers(0, 5)),
            rp.Attribute(CODE, rp.Categories(("a", "b", "c"), ("Alps", CODE, "Coast"))),
        )
    )
    rows = pd.DataFrame({"age": [i % 6 for i in range(300)], CODE: "a"})
    rows.to_csv(folder / "records.csv", index=False)
    plan = plan_tables(
        rp.Workload.all_up_to(domain, 2), loss=rp.SumOfVariances(), budget=rp.Budget(rho=1)
    )
    release(plan, folder / "records.csv", folder / "release")
    path = folder / "tables.html"
    path.write_text(readers_page(Export(folder / "release")), encoding="utf-8")
    return path


def test_the_page_asks_nobody_and_is_found_through_and_read_by_all(browser: Browser, tmp_path):
    path = written(tmp_path)
    context = browser.new_context(viewport={"width": 420, "height": 900})
    page = context.new_page()
    requests: list[str] = []
    messages: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.on("console", lambda message: messages.append(message.text))
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.on("dialog", lambda dialog: messages.append(dialog.message))
    page.goto(path.as_uri())
    for width, scheme in ((420, "light"), (1440, "dark")):
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        found = Axe().run(page).response["violations"]
        assert [(one["id"], one["nodes"][0]["target"]) for one in found] == []
    expect(page.locator("article:visible")).to_have_count(4)
    page.get_by_label("Search").fill("coast AGE")
    expect(page.locator("article:visible")).to_have_count(1)
    expect(page.get_by_role("status")).to_have_text("1 of 4 tables")
    page.emulate_media(media="print")
    expect(page.get_by_label("Search")).to_be_hidden()
    context.close()
    assert requests == [path.as_uri()]
    assert not messages
