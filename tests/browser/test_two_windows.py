"""Two windows of a browser on one run, one of which is loaded anew in mid-run."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from rpexplore.common.installation import sample_data_folder
from rpexplore.releases.ledger.ledger import Ledger
from rpexplore.releases.table_release import TableRelease
from tests.browser.conftest import PATIENCE, settled
from tests.browser.test_story import fill, go_to, metric, name_path

# By day tests/pages/test_release_interrupted.py tries the same without a browser.
pytestmark = pytest.mark.nightly
COPIES = 300  # of the sample, so that a run takes some seconds


@pytest.fixture
def records(tmp_path) -> Path:
    header, *lines = (sample_data_folder() / "household.csv").read_text().splitlines(keepends=True)
    path = tmp_path / "survey.csv"
    with path.open("w") as file:
        file.writelines([header, *("".join(lines) for _ in range(COPIES))])
    return path


def name_records(page: Page, records: Path) -> None:
    page.get_by_text("A file or folder on this computer").click()
    name_path(page, records)
    expect(metric(page, "Spent on these records")).to_be_visible()


def run_button(page: Page) -> Locator:
    return page.get_by_role("button", name="Run the release")


def test_a_run_is_one_in_two_windows_and_after_a_reload(page, records, tmp_path):
    go_to(page, "Release")
    name_records(page, records)
    fill(page, "Folder for the release", str(tmp_path / "release"))
    expect(page.get_by_text(str(tmp_path / "release"))).to_be_visible()
    other = page.context.new_page()
    other.goto(page.url)
    name_records(other, records)
    fill(other, "Folder for the release", str(tmp_path / "another"))
    expect(other.get_by_text(str(tmp_path / "another"))).to_be_visible()
    run_button(page).dblclick()
    name = page.get_by_role("dialog").get_by_role("textbox")
    settled(page)
    name.fill("Scenario 1")
    name.press("Enter")
    expect(page.get_by_text("The run goes on if you look at other pages.")).to_be_visible()
    page.reload()
    run_button(other).click()
    expect(other.get_by_text(re.compile("is in progress"))).to_be_visible()
    name_records(page, records)
    runs = ()
    for _ in range(PATIENCE):
        runs = Ledger.beside(records).account(records).entries
        if runs and runs[0].state == "finished":
            break
        page.wait_for_timeout(1000)
    (run,) = runs
    for window in (page, other):
        window.reload()
        name_records(window, records)
        expect(window.get_by_text("This plan was run on these records before")).to_be_visible()
    assert TableRelease.load(tmp_path / "release").plan.sha256 == run.plan_sha256
    assert not (tmp_path / "another").exists()
