"""The report as PDF: complete, printed by a browser of this machine that can ask nobody."""

import re
import stat
import zlib
from pathlib import Path

import pytest

from rpexplore.errors import ExportError
from rpexplore.reports import report as pdf_module
from rpexplore.reports.report import Report, find_browser, pdf
from tests.reports.reports import report_of
from tests.support.browser import needs_browser


@pytest.fixture(scope="module")
def report() -> Report:
    """Of a scenario whose names would break out of many a format."""
    return report_of("hostile")


@pytest.fixture(scope="module")
def file(report) -> bytes:
    return pdf(report)


def unpacked(file: bytes) -> bytes:
    """All objects of a PDF, its compressed streams unpacked."""
    parts = [file]
    for stream in re.findall(rb"stream\r?\n(.*?)\r?\nendstream", file, re.DOTALL):
        try:
            parts.append(zlib.decompress(stream))
        except zlib.error:
            continue
    return b"\n".join(parts)


@needs_browser
def test_it_is_a_pdf_of_several_a4_pages_with_title_and_language(file):
    assert file.startswith(b"%PDF-")
    assert len(re.findall(rb"/Type /Page\b", file)) >= 5
    sizes = set(re.findall(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", file))
    # 210 mm × 297 mm = 595.3 pt × 841.9 pt
    assert [tuple(round(float(length)) for length in size) for size in sizes] == [(595, 842)]
    assert rb"/Title (</script><script>alert\(1\)</script>)" in file
    assert b"/Lang (en-GB)" in file


@needs_browser
def test_charts_are_drawn_and_have_alternative_texts(file, report):
    assert len(re.findall(rb"/Alt [(<]", file)) == len(report.charts) >= 5
    # Texts beyond Latin-1 are written as UTF-16 with a byte order mark.
    texts = re.findall(rb"/Alt <([0-9A-F]+)>", file)
    decoded = {bytes.fromhex(text.decode()).decode("utf-16") for text in texts}
    assert decoded
    assert decoded <= {chart.alternative_text for chart in report.charts}
    # Pages with charts draw hundreds of lines and curves; pages without none.
    assert len(re.findall(rb"(?m) [lc]$", unpacked(file))) > 300


@pytest.mark.nightly
@needs_browser
def test_the_same_plan_gives_the_same_file_that_says_no_time(file, report):
    assert pdf(report) == file
    assert not re.search(rb"D:20[2-9]\d", unpacked(file))


def test_numbers_of_header_cells_do_not_depend_on_what_else_the_browser_made(
    tmp_path, monkeypatch, report
):
    cells = "/ID (node000000{0}) /ID (node000000{1}) /Headers [(node000000{1})] (node99999999)"
    files = set()
    for numbers in ((60, 62), (59, 61)):
        printing = f"""
            for argument; do
                case $argument in --print-to-pdf=*)
                    printf '%%PDF-1.4 {cells.format(*numbers)}' > "${{argument#*=}}";;
                esac
            done
        """
        browser = script(tmp_path / "chrome", printing)
        monkeypatch.setattr(pdf_module, "find_browser", lambda browser=browser: browser)
        files.add(pdf(report))
    assert files == {
        b"%PDF-1.4 /ID (node00000000) /ID (node00000001) /Headers [(node00000001)] (node99999999)"
    }


@pytest.fixture
def no_browser(monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(pdf_module, "_installed_paths", list)


@pytest.mark.usefixtures("no_browser")
def test_a_missing_browser_is_named_with_the_remedy(report):
    assert find_browser() is None
    with pytest.raises(ExportError, match=r"Chromium, Chrome or Edge.*apt-get.*as \.html"):
        pdf(report)


def script(path: Path, lines: str) -> Path:
    path.write_text(f"#!/bin/sh\n{lines}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_find_browser_looks_for_commands_and_installed_programs(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path))
    for name in ("PROGRAMFILES", "PROGRAMFILES(X86)"):
        monkeypatch.delenv(name, raising=False)
    program = tmp_path / "Microsoft/Edge/Application/msedge.exe"
    program.parent.mkdir(parents=True)
    program.touch()
    script(tmp_path / "firefox", "")
    assert find_browser() == program
    command = script(tmp_path / "chromium", "")
    assert find_browser() == command


def test_the_browser_gets_a_profile_of_its_own_and_no_network(tmp_path, monkeypatch, report):
    log = tmp_path / "arguments"
    printing = f"""
        for argument; do
            echo "$argument" >> '{log}'
            case $argument in --print-to-pdf=*) printf '%%PDF-1.4 D:' > "${{argument#*=}}";; esac
        done
    """
    monkeypatch.setattr(pdf_module, "find_browser", lambda: script(tmp_path / "chrome", printing))
    monkeypatch.setattr(pdf_module.os, "geteuid", lambda: 1000)
    assert pdf(report) == b"%PDF-1.4 D:"
    arguments = log.read_text().splitlines()
    assert {
        "--headless",
        "--disable-background-networking",
        "--host-resolver-rules=MAP * ~NOTFOUND",
        "--no-pdf-header-footer",
    } < set(arguments)
    assert "--no-sandbox" not in arguments
    (profile,) = (text for text in arguments if text.startswith("--user-data-dir="))
    assert not Path(profile.partition("=")[2]).parent.exists()
    assert re.fullmatch(r"file://.*/report\.html", arguments[-1])
    monkeypatch.setattr(pdf_module.os, "geteuid", lambda: 0)
    pdf(report)
    assert "--no-sandbox" in log.read_text().splitlines()


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("echo first >&2; echo 'no display' >&2; exit 3", r"\(exit code 3: no display\)"),
        ("exit 0", r"\(exit code 0: no message\)"),
        ("exec /bin/sleep 60", "within 0.2 seconds"),
    ],
)
def test_a_browser_that_prints_nothing_is_named_with_the_remedy(
    lines, message, tmp_path, monkeypatch, report
):
    monkeypatch.setattr(pdf_module, "_TIMEOUT", 0.2 if "sleep" in lines else 60)
    monkeypatch.setattr(pdf_module, "find_browser", lambda: script(tmp_path / "chrome", lines))
    with pytest.raises(ExportError, match=rf"{message}.*; write the report as \.html"):
        pdf(report)


def test_a_browser_that_cannot_be_started_is_named_with_the_remedy(tmp_path, monkeypatch, report):
    monkeypatch.setattr(pdf_module, "find_browser", lambda: tmp_path)
    with pytest.raises(ExportError, match=r"cannot be started \(.*; write the report as \.html"):
        pdf(report)


def test_chromium_from_a_snap_gets_files_where_it_sees_them(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    common = tmp_path / "snap/chromium/common"
    common.mkdir(parents=True)
    assert pdf_module._scratch_parent(Path("/snap/bin/chromium")) == common
    assert pdf_module._scratch_parent(Path("/usr/bin/google-chrome")) is None
