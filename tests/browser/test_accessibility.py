"""Every page under axe-core, in light and dark: no finding that keeps people out."""

from pathlib import Path

import pandas as pd
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

import rpexplore as rp
from rpexplore.postprocessing.processed_folder import processed
from rpexplore.releases.table_release import release
from tests.browser.conftest import settled

PAGES = [
    "schema", "workload", "plan", "fairness", "tradeoffs", "scenarios", "queries", "release",
    "released",
]  # fmt: skip
SERIOUS = ("serious", "critical")


def findings(page) -> list[str]:
    """What axe-core finds that is serious or critical: rule, and where."""
    results = Axe().run(page).response
    return [
        f"{each['id']} ({each['impact']}): {node['target']} {node.get('failureSummary', '')}"
        for each in results["violations"]
        if each["impact"] in SERIOUS
        for node in each["nodes"]
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_no_serious_finding(page, server, name, scheme):
    page.emulate_media(color_scheme=scheme)
    page.goto(f"{server}/{name}")
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    settled(page)
    page.wait_for_timeout(1500)  # charts draw themselves after the script has ended
    found = findings(page)
    assert not found, "\n".join(found)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_serious_finding_on_a_planned_list_of_queries(page, server, scheme):
    page.emulate_media(color_scheme=scheme)
    page.goto(f"{server}/queries")
    lines = page.get_by_label("One query a line, as name: condition ± margin")
    lines.fill("everybody: total ± 50\nold women: age >= 80 & sex = Female ± 20")
    lines.press("Control+Enter")
    expect(page.get_by_text("must be a value here")).to_be_visible()
    settled(page)
    assert not findings(page)
    lines.fill('everybody: total ± 50\nold women: age >= 80 & sex = "Female" ± 20')
    lines.press("Control+Enter")
    expect(page.locator(".js-plotly-plot")).to_have_count(2)
    settled(page)
    page.wait_for_timeout(1500)  # charts draw themselves after the script has ended
    found = findings(page)
    assert not found, "\n".join(found)


@pytest.fixture(scope="module")
def released(tmp_path_factory) -> Path:
    """The folder of a release of two attributes, with processed tables beside it."""
    folder = tmp_path_factory.mktemp("results")
    domain = rp.Domain.from_sizes({"age": 12, "region": 4})
    rows = pd.DataFrame({"age": [i % 7 for i in range(300)], "region": 1})
    rows.to_csv(folder / "records.csv", index=False)
    workload = rp.Workload.of(domain, [["age", "region"]])
    plan = rp.plan(workload, loss=rp.SumOfVariances(), budget=rp.Budget(rho=1))
    done = release(plan, folder / "records.csv", folder / "release")
    processed(done, folder / "processed", nonnegative=True, rounded=True)
    return folder


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["release", "processed"])
def test_no_serious_finding_on_any_view_of_results(page, server, released, name, scheme):
    page.emulate_media(color_scheme=scheme)
    page.goto(f"{server}/results")
    field = page.get_by_label("Folder with the tables", exact=True)
    field.fill(str(released / name))
    field.press("Enter")
    expect(page.get_by_test_id("stDataFrame")).to_be_visible()
    for view in ("Grid", "Bars", "Heat map"):
        page.get_by_text(view, exact=True).click()
        expect(page.locator(".js-plotly-plot")).to_have_count(int(view != "Grid"))
        settled(page)
        page.wait_for_timeout(1500)  # charts draw themselves after the script has ended
        found = findings(page)
        assert not found, "\n".join([view, *found])
