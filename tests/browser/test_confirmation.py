"""The dialog before a run, by the keyboard and for those who do not see it."""

import shutil
from pathlib import Path

from playwright.sync_api import Page, expect

from rpexplore.common.webapp_files import sample_data_folder
from rpexplore.releases.ledger import Ledger
from tests.browser.conftest import PATIENCE, settled
from tests.browser.test_accessibility import findings
from tests.browser.test_story import fill, go_to, name_path


def test_a_run_is_confirmed_by_keyboard_and_escape_spends_nothing(page: Page, tmp_path: Path):
    records = Path(shutil.copy(sample_data_folder() / "household.csv", tmp_path / "survey.csv"))
    go_to(page, "Release")
    page.get_by_text("A file or folder on this computer").click()
    name_path(page, records)
    expect(page.get_by_text(str(tmp_path / "rpexplore-ledger.sqlite"))).to_be_visible()
    fill(page, "Folder for the release", str(tmp_path / "release"))
    expect(page.get_by_text(f"{tmp_path / 'release'} (a new folder")).to_be_visible()
    settled(page)
    button = page.get_by_role("button", name="Run the release")
    dialog = page.get_by_role("dialog", name="Run the release?")

    button.focus()
    page.keyboard.press("Enter")
    expect(dialog).to_contain_text("ρ = 0 spent before, ρ = 0.1 after")
    assert not findings(page)
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)

    button.press("Enter")
    name = dialog.get_by_role("textbox")
    expect(name).to_be_visible()
    settled(page)
    for _ in range(2):  # past the cross to the name
        page.keyboard.press("Tab")
    expect(name).to_be_focused()
    page.keyboard.type("Another")
    page.keyboard.press("Enter")
    expect(dialog).to_contain_text("the name of the scenario is Scenario 1")
    for _ in range(2):
        page.keyboard.press("Tab")
    expect(dialog.get_by_role("button", name="Cancel")).to_be_focused()
    page.keyboard.press("Enter")
    expect(dialog).to_have_count(0)
    assert Ledger.beside(records).account(records).entries == ()

    button.press("Enter")
    expect(name).to_have_value("")
    settled(page)
    name.press_sequentially("Scenario 1")
    page.keyboard.press("Enter")
    finished = page.get_by_text("Finished: 67 noisy tables.")
    expect(finished).to_be_visible(timeout=3000 * PATIENCE)
    assert len(Ledger.beside(records).account(records).entries) == 1
