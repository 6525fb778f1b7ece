"""From a codebook to compared scenarios, a report and a finished release, in a real browser."""

import json
import re
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

import rpexplore as rp
from rpexplore.common.installation import sample_data_folder
from rpexplore.planning.table_plan import TablePlan
from rpexplore.releases.ledger.ledger import Ledger
from rpexplore.releases.table_release import TableRelease
from tests.browser.conftest import PATIENCE, settled
from tests.pages.conftest import TITLES

# Where the row above leads to first, for pages that are beside another one.
BY_WAY_OF = {
    "Trade-offs": "Fairness", "Scenarios": "Fairness",
}  # fmt: skip
KEPT = ("age", "sex", "region", "settlement", "tenure")


@pytest.fixture
def codebook(tmp_path) -> Path:
    """A codebook of some of the sample's attributes."""
    codebook = json.loads((sample_data_folder() / "household.json").read_text())
    codebook["fields"] = [field for field in codebook["fields"] if field["name"] in KEPT]
    codebook["impossible"] = [each for each in codebook["impossible"] if each.keys() <= set(KEPT)]
    path = tmp_path / "survey.json"
    path.write_text(json.dumps(codebook))
    return path


@pytest.fixture
def records(tmp_path) -> Path:
    """The sample's records where a ledger may be written beside them."""
    return Path(shutil.copy(sample_data_folder() / "household.csv", tmp_path / "survey.csv"))


def go_to(page: Page, name: str) -> None:
    link = "Compare" if name == "Fairness" else name
    settled(page)  # until when there are no links to count
    if not page.get_by_role("link", name=link, exact=True).count():
        go_to(page, BY_WAY_OF[name])
    page.get_by_role("link", name=link, exact=True).click()
    heading = TITLES["home"] if name == "Home" else name
    expect(page.get_by_role("heading", name=heading, exact=True)).to_be_visible()


def open_part(page: Page, name: str) -> None:
    """Open a part of the Tables page, whose name may have a number behind it."""
    page.get_by_role("button", name=re.compile(f"{name}( \\(.*\\))?$")).first.click()
    settled(page)


def metric(page: Page, label: str) -> Locator:
    called = page.get_by_test_id("stMetricLabel").get_by_text(label, exact=True)
    return page.get_by_test_id("stMetric").filter(has=called)


def fill(page: Page, label: str, text: str) -> None:
    field = page.get_by_label(label, exact=True)
    expect(field).to_be_editable()  # where it is not, this tells what there is instead
    settled(page)  # a run that is under way may draw the field anew, over what is typed
    field.fill(text)
    field.press("Enter")


def name_path(page: Page, path: Path) -> None:
    """Name a file or folder that is not in the list beside it."""
    page.get_by_role("button", name="Another path").first.click()
    fill(page, "Path on this computer", str(path))
    page.keyboard.press("Escape")


def run_release(page: Page, scenario: str) -> None:
    """Press the button of a release and confirm it by the keyboard."""
    page.get_by_role("button", name="Run the release").dblclick()
    dialog = page.get_by_role("dialog")
    name = dialog.get_by_role("textbox")
    name.fill(scenario)
    for _ in range(PATIENCE):  # the second click draws the dialog anew, which may miss a key
        settled(page)
        if not dialog.is_visible():
            break
        name.press("Enter")
        page.wait_for_timeout(1000)


# By day test_keyboard.py goes from Home to a release, and tests/pages through what is between.
@pytest.mark.nightly
def test_from_a_codebook_to_a_finished_release(page, codebook, records, tmp_path):
    # Codebook: a new session has that of the sample; another one replaces it.
    go_to(page, "Data")
    expect(metric(page, "Attributes")).to_contain_text("11")
    page.get_by_role("radio", name="A file", exact=True).click()
    uploader = page.get_by_role("region", name=re.compile("^Drop a codebook"))
    uploader.locator("input[type=file]").set_input_files(codebook)
    expect(metric(page, "Attributes")).to_contain_text("5")
    counted = "What the records are, such as people or households"
    # Until this is drawn, the field shows the people of the codebook before.
    expect(page.get_by_label(counted, exact=True)).to_have_value("records")
    fill(page, counted, "people")

    # Workload: all tables up to three attributes, those with age three times as important.
    go_to(page, "Tables")
    fill(page, "Attributes in a table, at most", "3")
    expect(page.get_by_text("26 noisy measurements")).to_be_visible()
    open_part(page, "Weights and targets of single tables")
    option = page.get_by_role("option", name="age", exact=True)
    for _ in range(20):  # until the list stays open: a redrawn page closes it
        page.get_by_label("Only tables with all of these attributes").click()
        page.wait_for_timeout(500)
        if option.is_visible():
            break
    option.click()
    page.keyboard.press("Escape")
    fill(page, "Weight for these", "3")
    page.get_by_role("button", name=re.compile("Set for all 11 tables")).click()
    expect(page.get_by_role("button", name="Remove all weights and targets")).to_be_enabled()

    # Plan: a typed budget; the plan is there.
    go_to(page, "Plan")
    expect(page.get_by_text("ε = 2 at δ")).to_be_visible()
    fill(page, "Privacy budget ρ", "0.5")
    expect(page.get_by_text(re.compile(r"ε = 4\.[89]\d* at δ"))).to_be_visible()
    expect(page.get_by_text("Proven optimal for this objective")).to_be_visible()
    fill(page, "Expected number of people in all", "50000")
    expect(metric(page, "People in good cells")).to_be_visible()
    page.get_by_role("button", name=re.compile("^age × sex: ")).click()
    expect(page.get_by_role("region", name="Typical counts")).to_contain_text("Female")

    # Fairness and trade-offs of it.
    go_to(page, "Fairness")
    expect(page.locator(".js-plotly-plot").first).to_be_visible()
    go_to(page, "Trade-offs")
    expect(page.locator(".js-plotly-plot").first).to_be_visible()

    # Scenarios: a copy with another objective, compared with the first.
    go_to(page, "Scenarios")
    opened = page.get_by_role("combobox", name="Open scenario")
    fill(page, "Name of the open scenario", "As agreed")
    expect(opened).to_have_value("As agreed")
    page.get_by_role("button", name="Duplicate").click()
    expect(opened).to_have_value("As agreed (2)")
    fill(page, "Name of the open scenario", "Small largest error")
    expect(opened).to_have_value("Small largest error")
    go_to(page, "Plan")
    page.get_by_role("combobox", name="Objective").click()
    page.get_by_role("option", name="Minimise the largest error", exact=True).click()
    expect(page.get_by_text(re.compile("^At most ±"))).to_be_visible()
    go_to(page, "Scenarios")
    expect(page.get_by_text("Over the 26 tables that all of them have")).to_be_visible()
    expect(page.locator(".js-plotly-plot").first).to_be_visible()
    page.get_by_role("heading", name="Side by side").scroll_into_view_if_needed()

    # A refresh loses nothing.
    page.reload()
    expect(opened).to_have_value("Small largest error")
    page.locator("button:enabled", has_text=re.compile("^Open$")).first.click()
    expect(opened).to_have_value("As agreed")

    # Export: the plan is what it says, the report opens by itself.
    go_to(page, "Release")
    with page.expect_download() as download:
        page.get_by_role("button", name="Download plan.json").click()
    download.value.save_as(tmp_path / "plan.json")
    plan = TablePlan.load(tmp_path / "plan.json")
    assert rp.verify(plan).holds
    assert plan.workload.domain.names == KEPT
    assert len(plan.workload) == 26
    assert set(plan.workload.weights[: 1 + 5].tolist()) == {1.0, 3.0}
    assert plan.budget == rp.Budget(rho="0.5")
    with page.expect_download() as download:
        page.get_by_role("button", name="Download report.html").click()
    download.value.save_as(tmp_path / "report.html")
    report = page.context.new_page()
    report.goto((tmp_path / "report.html").as_uri())
    expect(report.get_by_text(plan.sha256).first).to_be_attached()
    expect(report.locator(".js-plotly-plot").first).to_be_visible()
    report.close()

    # Release: on a copy of the sample, once.
    page.get_by_text("A file or folder on this computer").click()
    name_path(page, records)
    folder = page.get_by_label("Folder for the release", exact=True)
    expect(folder).to_have_value(re.compile("releases/survey-"))
    expect(metric(page, "Spent on these records")).to_contain_text("ρ = 0")
    fill(page, "Folder for the release", str(tmp_path / "release"))
    expect(page.get_by_text(str(tmp_path / "release"))).to_be_visible()
    run_release(page, "As agreed")
    expect(page.get_by_text("Finished: 26 noisy tables.")).to_be_visible()
    page.get_by_role("link", name="Look at the results").click()
    expect(page.locator(".crosstab").first).to_be_visible()

    release = TableRelease.load(tmp_path / "release")  # checks every file against its hash
    assert release.plan.sha256 == plan.sha256
    assert len(release.table(["age", "sex"])) == 200
    (run,) = Ledger.beside(records).account(records).entries
    assert run.state == "finished"
    assert run.plan_sha256 == plan.sha256


@pytest.mark.nightly
def test_areas_are_found_again_after_a_reload(page):
    go_to(page, "Tables")
    open_part(page, "Areas")
    page.get_by_role("button", name="Open the sample country").click()
    expect(metric(page, "Areas")).to_contain_text("24,939")
    page.get_by_role("tab", name="By area", exact=True).click()
    expect(page.get_by_text("The least accurate areas of a level")).to_be_visible()
    page.get_by_role("tab", name="Map", exact=True).click()
    expect(page.get_by_text("All 2,024 areas of the level")).to_be_visible()
    page.reload()
    page.get_by_role("tab", name="Levels", exact=True).click()
    expect(metric(page, "Areas")).to_contain_text("24,939")


# By day tests/pages type into grids, as the browser would report it.
@pytest.mark.nightly
def test_a_grid_cell_is_typed(page):
    """The editors draw on a canvas that only a real browser has."""
    go_to(page, "Data")
    expect(metric(page, "Attributes")).to_contain_text("11")
    grid = page.get_by_test_id("stDataFrame").first
    expect(grid.locator("canvas").first).to_be_visible()
    field = page.locator(".gdg-input")
    for _ in range(20):  # until the grid listens
        grid.click(position={"x": 60, "y": 52})  # the name of the first attribute
        page.keyboard.press("Enter")
        page.wait_for_timeout(250)
        if field.is_visible():
            break
    field.fill("years")
    field.press("Enter")
    page.get_by_text("Values and labels of one attribute").click()
    expect(page.get_by_role("combobox", name=re.compile("Attribute"))).to_have_value("years")
