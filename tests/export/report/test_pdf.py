"""The report as PDF: complete, without a browser, and without asking anybody for anything."""

import ctypes
import re
import sys
import zlib

import pytest

from rpexplore.errors import ExportError
from rpexplore.export.report import pdf as pdf_module
from rpexplore.export.report.pdf import pdf, what_is_missing
from rpexplore.export.report.report import report, still_html
from tests.export.needs import needs_pdf
from tests.export.report.test_report import Page
from tests.export.scenarios import SCENARIOS


def contents(name: str):
    scenario = SCENARIOS[name]
    return report(scenario.plan(), name=scenario.name, note=scenario.note, counted=scenario.counted)


def inside(file: bytes) -> bytes:
    """All objects of a PDF, unpacked."""
    parts = [file]
    for stream in re.findall(rb"stream\r?\n(.*?)\r?\nendstream", file, re.DOTALL):
        try:
            parts.append(zlib.decompress(stream))
        except zlib.error:
            continue
    return b"\n".join(parts)


@pytest.fixture(scope="module")
def file() -> bytes:
    return pdf(contents("groups"))


@needs_pdf
def test_it_is_a_pdf_of_several_pages_with_title_and_language(file):
    assert file.startswith(b"%PDF-")
    objects = inside(file)
    assert len(re.findall(rb"/Type /Page\b", objects)) >= 5
    assert b"/Title (Scenario 1)" in objects
    assert b"en-GB" in objects


@needs_pdf
def test_charts_have_alternative_texts(file):
    objects = inside(file)
    assert len(re.findall(rb"/S /Figure\b", objects)) >= len(contents("groups").charts)
    assert len(re.findall(rb"/Alt ", objects)) >= len(contents("groups").charts)


@needs_pdf
def test_the_list_of_tables_is_attached(file):
    objects = inside(file)
    assert b"tables.csv" in objects
    assert b"attributes,order,cells,mean_variance" in objects


@needs_pdf
def test_the_same_plan_gives_the_same_file(file):
    assert pdf(contents("groups")) == file


@needs_pdf
def test_it_says_no_time(file):
    objects = inside(file)
    assert not re.search(rb"D:20[2-9]\d", objects)


@needs_pdf
def test_hostile_names_make_a_file_like_any_other():
    assert pdf(contents("hostile")).startswith(b"%PDF-")


@pytest.mark.parametrize("name", ["groups", "hostile"])
def test_its_html_runs_nothing_and_loads_nothing(name):
    made = contents(name)
    page = Page(still_html(made, dict.fromkeys(made.charts, "data:image/svg+xml;base64,AA==")))
    assert not page.all("script")
    assert not page.all("details")
    images = [attrs for attrs, _ in page.all("img")]
    assert [image["alt"] for image in images] == [chart.alt for chart in made.charts]
    for tag, attrs, _ in page.elements:
        assert tag not in ("link", "iframe", "object", "embed", "base", "form")
        for key in ("src", "href"):
            assert attrs.get(key, "#").startswith(("#", "data:"))


@needs_pdf
@pytest.mark.parametrize(
    "address", ["http://example.com/a.png", "file:///etc/hostname", "ftp://a/b"]
)
def test_the_renderer_refuses_every_other_address(address):
    import weasyprint
    from weasyprint.urls import FatalURLFetchingError

    fetcher = pdf_module._only_embedded()
    document = weasyprint.HTML(string=f'<img src="{address}">', url_fetcher=fetcher)
    with pytest.raises(FatalURLFetchingError, match="must hold all it shows"):
        document.write_pdf()


def test_a_missing_library_is_told_with_the_remedy(monkeypatch):
    what_is_missing.cache_clear()
    monkeypatch.setattr(pdf_module, "find_spec", lambda name: None)
    try:
        with pytest.raises(ExportError, match=r'weasyprint, which is not.*"rpexplore\[pdf\]"'):
            pdf(contents("up to"))
    finally:
        what_is_missing.cache_clear()


def test_a_missing_pango_is_told_with_the_remedy(monkeypatch):
    what_is_missing.cache_clear()

    def refuse(*_):
        raise OSError("cannot load library")

    class Unloadable:
        find_spec = staticmethod(lambda name, *_: refuse() if name == "weasyprint" else None)

    monkeypatch.setattr(ctypes, "CDLL", refuse)
    monkeypatch.setattr(sys, "meta_path", [Unloadable, *sys.meta_path])
    for name in [name for name in sys.modules if name.partition(".")[0] == "weasyprint"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(pdf_module, "find_spec", lambda name: name)
    try:
        with pytest.raises(ExportError, match=r"need Pango.*apt-get install libpango"):
            pdf(contents("up to"))
    finally:
        what_is_missing.cache_clear()
