"""What is handed out is made by another thread of the server, which knows no session."""

import json
import zipfile

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import SAMPLE


def taken(page, label, path):
    """The file behind a button."""
    button = page.get_by_role("button", name=label)
    expect(button).to_be_enabled()
    with page.expect_download() as download:
        button.click()
    download.value.save_as(path)
    return path


@pytest.mark.nightly
@pytest.mark.parametrize("page", ["/scenarios"], indirect=True)
def test_the_project_and_the_bundle_can_be_taken(page, server, tmp_path):
    project = taken(page, "Save project.json", tmp_path / "project.json")
    assert json.loads(project.read_text())["format"] == "rpexplore-project"
    page.goto(f"{server}/release{SAMPLE}")
    bundle = taken(page, "Download plan and report (.zip)", tmp_path / "bundle.zip")
    with zipfile.ZipFile(bundle) as archive:
        assert {"plan.json", "report.html", "plan.py"} <= set(archive.namelist())
