"""The browser that some tests need."""

import os

import pytest

from rpexplore.reports.report import find_browser

# On a newcomer's machine these tests are skipped; .ci/run requires the browser it has installed.
needs_browser = pytest.mark.skipif(
    find_browser() is None and os.environ.get("RPEXPLORE_REQUIRE_BROWSER") != "1",
    reason="no browser found; on Debian: apt-get install chromium",
)
