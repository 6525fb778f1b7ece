"""Names that are code, on every page, in the report and in all downloads, in a real browser."""

import csv
import io
import zipfile
from pathlib import Path

import pytest
from playwright.sync_api import Dialog, Page, expect

import rpexplore as rp
from rpexplore.domain.expected_counts import ExpectedCounts
from rpexplore.scenarios.project import Project
from rpexplore.scenarios.scenario import Scenario
from rpexplore.scenarios.table_settings import GroupSetting
from rpexplore.scenarios.workload_request import WorkloadRequest
from rpexplore.workload.query_definitions import stated_from_text
from tests.browser.conftest import drawn, is_narrow, settled
from tests.browser.test_story import fill, go_to, name_path, open_part, run_release

IMAGE = '<img src="http://evil.example/a" onerror="alert(1)">'
SCRIPT = "</script><script>alert(2)</script>"
LINK = "![a](http://evil.example/b) [c](javascript:alert(3))"
LATEX = r"$\href{javascript:alert(4)}{x}$ :material/home: :red[y]"
FORMULA = '=HYPERLINK("http://evil.example/c";"d")'
NAMES = (IMAGE, SCRIPT, LINK, LATEX)
LINES = ("Own counts", "Areas")  # of the page Tables
PAGES = (
    "Home",
    "Data",
    "Tables",
    "Plan",
    "Fairness",
    "Trade-offs",
    "Scenarios",
    "Own counts",
    "Areas",
    "Release",
    "Results",
)


@pytest.fixture
def project(tmp_path) -> Path:
    """A project with code in every text that a person can choose."""
    labels = (FORMULA, f"@{IMAGE}", f"+{LINK}")
    values = ("a", "b", "c")
    attributes = [
        rp.Attribute(name, rp.Categories(values, labels), label=name + SCRIPT) for name in NAMES
    ]
    domain = rp.Domain(tuple(attributes))
    queries = (name.replace('"', "'") for name in (FORMULA, IMAGE, LINK, "**b**"))
    lines = "\n".join(f'"{name}": total ± 3' for name in queries)
    about = rp.Domain((attributes[0],))
    scenario = Scenario(
        domain,
        WorkloadRequest(order=2),
        record_noun=IMAGE[:40],
        name=SCRIPT,
        note=IMAGE + LINK,
        expected=ExpectedCounts.of_total(1e6),
        query_list=stated_from_text(about, lines),
    ).with_group(GroupSetting((NAMES[0],), target=rp.Target(4)))
    path = tmp_path / "project.json"
    path.write_text(Project((scenario, scenario.replaced(name=LINK))).text(), "utf-8")
    return path


@pytest.fixture
def records(tmp_path) -> Path:
    """Records in a folder, and with a name, that are code as well."""
    folder = tmp_path / "<img src=x onerror=alert(5)> $x$"
    folder.mkdir()
    path = folder / "**b** `c` [d](javascript:alert(6)).csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(NAMES)
        writer.writerows([["a", "b", "c", "a"], ["b", "b", "a", "c"]] * 20)
    return path


def check(page: Page) -> None:
    """Nothing of it is an element, and nothing wider than the window."""
    assert is_narrow(page)
    injected = "img[src*=evil], a[href*=evil], a[href^=javascript], img[src=x]"
    assert page.locator(injected).count() == 0


def _watch(page: Page, problems: list[str]) -> None:
    def dismiss(dialog: Dialog) -> None:
        problems.append(dialog.message)
        dialog.dismiss()

    page.on("dialog", dismiss)
    page.on("pageerror", lambda error: problems.append(str(error)))


# By day test_report.py opens such a report, and tests/pages/test_app.py such pages without one.
@pytest.mark.nightly
def test_names_that_are_code_stay_text_everywhere(page, server, project, records, tmp_path):
    problems: list[str] = []
    _watch(page, problems)
    settled(page)
    page.get_by_role("button", name="Import a project file").click()
    page.locator("input[type=file]").first.set_input_files(project)
    expect(page.get_by_text("All changes are saved").first).to_be_visible()
    go_to(page, "Scenarios")
    expect(page.get_by_role("combobox", name="Open scenario")).to_have_value(SCRIPT)
    for name in PAGES:
        go_to(page, name if name not in LINES else "Tables")
        if name in LINES:
            open_part(page, name)
        drawn(page)
        check(page)
        tabs = page.get_by_role("tab")
        if name != "Own counts":
            assert (tabs.count() > 3) == (name in ("Fairness", "Trade-offs", "Scenarios"))
        for index in range(tabs.count()):
            tabs.nth(index).click()
            drawn(page)
            check(page)

    # Release: records, ledger and output with such names.
    go_to(page, "Release")
    page.get_by_text("A file or folder on this computer").click()
    name_path(page, records)
    ledger = records.parent / f"{LATEX.replace('/', '')}.sqlite"
    fill(page, "Ledger", str(ledger))
    output = tmp_path / "=1+1 <b>release</b>"
    fill(page, "Folder for the release", str(output))
    expect(page.get_by_text(str(output)).first).to_be_visible()
    check(page)
    page.get_by_role("button", name="Run the release").click()
    expect(page.get_by_role("dialog")).to_contain_text(SCRIPT)
    check(page)
    page.keyboard.press("Escape")
    run_release(page, SCRIPT)
    expect(page.get_by_text("Finished: 11 noisy tables")).to_be_visible()
    settled(page)
    check(page)
    go_to(page, "Results")
    attributes = page.get_by_role("combobox", name="Attributes of the table")
    attributes.fill("onerror")
    attributes.press("Enter")
    drawn(page)
    page.locator("h1").click()  # closes the list, which hides the rest of the page
    expect(page.locator(".crosstab thead")).to_contain_text(IMAGE)  # the name of the attribute
    expect(page.locator(".crosstab tbody")).to_contain_text(f"@{IMAGE}")
    check(page)

    # The downloads, and the report in a page of its own.
    go_to(page, "Release")
    page.get_by_role("button", name="Prepare another release").click()
    expect(page.get_by_role("button", name="Run the release")).to_be_visible()
    everything = page.get_by_role("button", name="Download plan and report (.zip)")
    expect(everything).to_have_count(1)  # not also that of the finished release
    settled(page)
    with page.expect_download() as download:
        everything.click()
    with zipfile.ZipFile(io.BytesIO(Path(download.value.path()).read_bytes())) as archive:
        archive.extractall(tmp_path / "bundle")
    requested_urls: list[str] = []
    report = page.context.new_page()
    _watch(report, problems)
    report.on("request", lambda request: requested_urls.append(request.url))
    report.goto((tmp_path / "bundle" / "report.html").as_uri())
    expect(report.locator(".js-plotly-plot .main-svg").first).to_be_visible()
    assert report.locator("img[src*=evil], a[href*=evil], a[href^=javascript]").count() == 0
    assert all(url.startswith(("file:", "data:", "blob:")) for url in requested_urls)
    script = (tmp_path / "bundle" / "plan.py").read_text("utf-8")
    compile(script, "plan.py", "exec")
    assert not problems
