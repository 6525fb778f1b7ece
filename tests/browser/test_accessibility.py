"""Every page under axe-core, in light and dark: no finding that keeps people out."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from tests.browser.conftest import settled

PAGES = ["schema", "workload", "plan", "fairness", "tradeoffs", "scenarios", "release"]
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
