"""Age cumulative and region in a hierarchy, from the Tables page to the release."""

import re
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from rpexplore.common.installation import sample_data_folder
from rpexplore.releases.table_release import TableRelease
from rpexplore.workload.bases import Hierarchy, Prefix
from tests.browser.conftest import settled
from tests.browser.test_accessibility import findings
from tests.browser.test_story import fill, go_to, metric, name_path, open_part, run_release

# tests/pages/test_bases.py goes this way without a browser; test_story.py in one, without bases.
pytestmark = pytest.mark.nightly


def pick(page: Page, label: str, option: str) -> None:
    """Choose an option of a select box, or one more of a multiselect."""
    settled(page)
    box = page.get_by_role("combobox", name=re.compile(f"{label}$")).first
    box.click()
    box.fill(option)
    page.get_by_role("option", name=option, exact=True).click()


def aggregate(page: Page, attribute: str, basis: str) -> None:
    pick(page, "Change the aggregation of", attribute)
    pick(page, f"Aggregation of {attribute}", basis)


@pytest.fixture
def records(tmp_path) -> Path:
    return Path(shutil.copy(sample_data_folder() / "household.csv", tmp_path / "survey.csv"))


def test_from_cumulative_and_hierarchy_to_a_release(page, records, tmp_path):
    go_to(page, "Tables")
    open_part(page, "Aggregation")
    aggregate(page, "age", "cumulative")
    expect(page.get_by_text("100 queries, such as")).to_be_visible()
    aggregate(page, "region", "hierarchy")
    expect(page.get_by_text("17 queries, such as “all”, “North”")).to_be_visible()
    expect(page.get_by_text("at most 1,700 in one")).to_be_visible()

    go_to(page, "Plan")
    expect(page.get_by_text("Proven optimal for what is measured")).to_be_visible()
    page.get_by_role("button", name="Options").click()
    optimised = page.get_by_role("switch", name=re.compile("Optimise the reference distribution"))
    expect(optimised).to_be_checked()
    page.keyboard.press("Escape")
    fill(page, "Privacy budget ρ", "0.5")
    expect(page.get_by_text("ε = 4.89 at δ")).to_be_visible()

    go_to(page, "Fairness")
    expect(page.locator(".js-plotly-plot").first).to_be_visible()

    go_to(page, "Release")
    page.get_by_text("A file or folder on this computer").click()
    name_path(page, records)
    expect(metric(page, "Spent on these records")).to_contain_text("ρ = 0")
    # The sample's spending looks the same; another name for the folder shows the file was taken.
    folder = page.get_by_label("Folder for the release", exact=True)
    expect(folder).to_have_value(re.compile("releases/survey-"))
    fill(page, "Folder for the release", str(tmp_path / "release"))
    expect(page.get_by_text(str(tmp_path / "release"))).to_be_visible()
    run_release(page, "Scenario 1")
    expect(page.get_by_text("Finished: 67 noisy tables.")).to_be_visible()
    page.get_by_role("link", name="Look at the results").click()

    looked_at = page.get_by_role("combobox", name=re.compile("Attributes of the table"))
    settled(page)
    looked_at.click()
    for _ in range(2):
        page.keyboard.press("Backspace")
        page.wait_for_timeout(500)
        settled(page)
    page.keyboard.press("Escape")
    for name in ("age", "region"):
        pick(page, "Attributes of the table", name)
        page.keyboard.press("Escape")
    settled(page)
    page.get_by_text("List", exact=True).click()
    expect(page.get_by_text("(the most accurate cell) to ±")).to_be_visible()
    pick(page, "age from", "18")
    expect(page.get_by_text("people with age 18 to 99")).to_be_visible()
    pick(page, "age to", "24")
    subtotal = page.get_by_text(re.compile(r"People with age 18 to 24: [\d,]+ ±"))
    expect(subtotal).to_be_visible()

    release = TableRelease.load(tmp_path / "release")
    workload = release.plan.workload
    assert workload.bases[workload.domain.position("age")] == (Prefix(),)
    assert workload.bases[workload.domain.position("region")] == (Hierarchy(),)
    vectors = {"age": [float(18 <= age <= 24) for age in range(100)], "region": [1.0] * 12}
    value = release.answer(where=vectors).value
    assert f"{value:,.0f} ±" in subtotal.inner_text()


def test_no_serious_finding_where_attributes_have_other_bases(page):
    go_to(page, "Data")
    page.get_by_text("Values and labels of one attribute").click()
    expect(page.get_by_text("Groups within groups are written")).to_be_visible()
    assert not findings(page)
    go_to(page, "Tables")
    open_part(page, "Aggregation")
    aggregate(page, "age", "cumulative")
    aggregate(page, "education", "own matrix")
    page.get_by_text("Another aggregation in some tables").first.click()
    expect(
        page.get_by_role("combobox", name=re.compile("Aggregation of age there"))
    ).to_be_visible()
    assert not findings(page)
    go_to(page, "Plan")
    expect(page.get_by_role("region", name="Typical counts")).to_be_visible()
    assert not findings(page)


def test_it_fits_a_narrow_screen(page):
    go_to(page, "Tables")
    open_part(page, "Aggregation")
    aggregate(page, "age", "moving sums")
    page.set_viewport_size({"width": 400, "height": 800})
    expect(page.get_by_label("How many values are summed", exact=True)).to_be_visible()
    main = page.get_by_test_id("stMain")
    assert main.evaluate("element => element.scrollWidth <= element.clientWidth + 1")
