"""What only some machines have."""

import os

import pytest

from rpexplore.export.report.pdf import what_is_missing

# On a newcomer's machine PDFs may have to wait for Pango; .ci/run requires what it has installed.
needs_pdf = pytest.mark.skipif(
    bool(what_is_missing()) and os.environ.get("RPEXPLORE_REQUIRE_BROWSER") != "1",
    reason=what_is_missing() or "PDFs can be made",
)
