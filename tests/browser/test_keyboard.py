"""The whole way from Home to a release, by keyboard alone."""

import shutil
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from rpexplore.common.installation import sample_data_folder
from rpexplore.releases.ledger.ledger import Ledger
from tests.browser.conftest import PATIENCE, drawn, settled
from tests.browser.test_accessibility import findings
from tests.browser.test_story import metric

MOST_STOPS = 120  # of the tab key on a page


def tab_to(page: Page, wanted: Locator) -> None:
    """Press the tab key until the focus is there."""
    expect(wanted).to_be_visible()
    for _ in range(MOST_STOPS):
        if wanted.evaluate("element => element === document.activeElement"):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"{wanted} is not reached by keyboard")


def press(page: Page, wanted: Locator) -> None:
    tab_to(page, wanted)
    page.keyboard.press("Enter")


def type_into(page: Page, label: str, text: str) -> None:
    tab_to(page, page.get_by_label(label, exact=True))
    page.keyboard.type(text)
    page.keyboard.press("Enter")


# By day tests/pages/test_release.py goes this way.
@pytest.mark.nightly
def test_from_an_example_to_a_release(page: Page, tmp_path: Path):
    records = Path(shutil.copy(sample_data_folder() / "household.csv", tmp_path / "survey.csv"))
    drawn(page)
    press(page, page.get_by_role("button", name="Open the household survey"))
    expect(page.get_by_role("heading", name="Plan", exact=True)).to_be_visible()
    drawn(page)
    share = metric(page, "People in good cells")
    before = share.inner_text()
    tab_to(page, page.get_by_role("slider").first)
    page.keyboard.press("ArrowLeft")
    expect(share).not_to_have_text(before)
    drawn(page)

    press(page, page.get_by_role("link", name="Compare", exact=True))
    expect(page.get_by_role("heading", name="Fairness", exact=True)).to_be_visible()
    drawn(page)
    press(page, page.get_by_role("link", name="Trade-offs", exact=True))
    expect(page.get_by_role("heading", name="Trade-offs", exact=True)).to_be_visible()
    drawn(page)

    press(page, page.get_by_role("link", name="Release", exact=True))
    expect(page.get_by_role("heading", name="Release", exact=True)).to_be_visible()
    settled(page)
    tab_to(page, page.get_by_role("radio", name="The sample data"))
    page.keyboard.press("ArrowDown")
    press(page, page.get_by_role("button", name="Another path"))
    type_into(page, "Path on this computer", str(records))
    page.keyboard.press("Escape")
    expect(page.get_by_text(str(tmp_path / "rpexplore-ledger.sqlite"))).to_be_visible()
    settled(page)
    type_into(page, "Folder for the release", str(tmp_path / "release"))
    expect(page.get_by_text(f"{tmp_path / 'release'} (a new folder")).to_be_visible()
    settled(page)

    dialog = page.get_by_role("dialog", name="Run the release?")
    run = page.get_by_role("button", name="Run the release")
    press(page, run)
    expect(dialog).to_contain_text("ρ = 0 spent before")
    assert not findings(page, also_dark=False)
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    assert Ledger.beside(records).account(records).entries == ()

    scenario = page.get_by_role("combobox", name="Open scenario").input_value()
    press(page, run)
    name = dialog.get_by_role("textbox")
    expect(name).to_have_value("")
    settled(page)
    tab_to(page, name)
    page.keyboard.type("Another")
    page.keyboard.press("Enter")
    expect(dialog).to_contain_text(f"the name of the scenario is {scenario}")
    press(page, dialog.get_by_role("button", name="Cancel"))
    expect(dialog).to_have_count(0)

    press(page, run)
    expect(name).to_have_value("")
    settled(page)
    tab_to(page, name)
    page.keyboard.type(scenario)
    page.keyboard.press("Enter")
    finished = page.get_by_text("Finished: 67 noisy tables.")
    expect(finished).to_be_visible(timeout=3000 * PATIENCE)
    assert len(Ledger.beside(records).account(records).entries) == 1
