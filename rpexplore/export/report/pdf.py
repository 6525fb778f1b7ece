"""The report as PDF: the same template, with drawn charts, rendered by WeasyPrint.

Both libraries are optional (`rpexplore[pdf]`); neither needs a browser. Nothing is fetched from
anywhere: the document holds all it shows, and the renderer is given nothing else.
"""

import base64
import contextlib
import ctypes
import importlib
from datetime import UTC, datetime
from functools import cache
from importlib.util import find_spec
from typing import Any

from rpexplore.errors import ExportError
from rpexplore.export.report.report import MOST_ROWS_STILL, Report, still_html

_MOMENT = datetime(1980, 1, 1, tzinfo=UTC)  # of attached files: the same plan, the same report

REMEDY = 'pip install "rpexplore[pdf]" (in a checkout: .venv/bin/pip install ".[pdf]")'


@cache
def what_is_missing() -> str:
    """Why no PDF can be made here, as a sentence with the remedy; "" if one can."""
    for library in ("weasyprint", "matplotlib"):
        if find_spec(library) is None:
            return f"PDF reports need {library}, which is not installed: {REMEDY}"
    if not _has_pango():
        return (
            "PDF reports need Pango, a library of the operating system that is not installed: on "
            "Debian and Ubuntu, apt-get install libpango-1.0-0 libpangoft2-1.0-0 "
            "libharfbuzz-subset0; on macOS, brew install pango"
        )
    return ""


def _has_pango() -> bool:
    """Whether WeasyPrint will find Pango; asked in the usual places first, which takes no time."""
    for name in ("libpango-1.0.so.0", "libpango-1.0.0.dylib", "libpango-1.0-0.dll"):
        with contextlib.suppress(OSError):
            ctypes.CDLL(name)
            return True
    try:
        importlib.import_module("weasyprint")
    except OSError:
        return False
    return True


def pdf(made: Report) -> bytes:
    """The report as a PDF file, with its list of tables attached.

    Raises `ExportError` if a library is missing.
    """
    missing = what_is_missing()
    if missing:
        raise ExportError(f"{missing}.")
    import weasyprint

    from rpexplore.export.report.static_charts import svg

    images = {chart: _data_uri(svg(chart.figure)) for chart in made.charts}
    document = weasyprint.HTML(
        string=still_html(made, images), base_url=None, url_fetcher=_only_embedded()
    )
    attachments = [
        weasyprint.Attachment(
            string=file.text,
            name=file.name,
            description=file.sentence,
            created=_MOMENT,
            modified=_MOMENT,
            url_fetcher=_only_embedded(),
        )
        for file in made.attachments(MOST_ROWS_STILL)
    ]
    file = document.write_pdf(
        attachments=attachments, pdf_variant="pdf/ua-1", pdf_identifier=made.sha256.encode()
    )
    assert file is not None  # without a target, it is returned
    return file


def _only_embedded() -> Any:
    """A fetcher that knows data: addresses only, and fails loudly on any other."""
    from weasyprint.urls import FatalURLFetchingError, URLFetcher

    class OnlyEmbedded(URLFetcher):
        def fetch(self, url: str, headers: Any = None) -> Any:
            if not url.startswith("data:"):
                raise FatalURLFetchingError(
                    f"The report must hold all it shows, but asks for {url}"
                )
            return super().fetch(url, headers)

    return OnlyEmbedded(allowed_protocols=["data"])


def _data_uri(svg_text: str) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(svg_text.encode()).decode()
