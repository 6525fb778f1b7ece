"""The report as PDF, printed by a Chromium, Chrome or Edge that is on the machine.

The browser gets a profile of its own, which is deleted afterwards, and can resolve no host name:
the report holds all it shows, and nothing else is fetched either. The file says nothing of the
machine or of the time: the same plan, printed by the same browser, gives the same file.
"""

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from rpexplore.errors import ExportError
from rpexplore.export.report.report import Report, html

NO_BROWSER = (
    "A PDF report is printed by Chromium, Chrome or Edge, and none of them was found; install one "
    "(on Debian and Ubuntu: apt-get install chromium), or write the report as .html and print it "
    "from any browser"
)

_COMMANDS = (
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "microsoft-edge",
    "microsoft-edge-stable",
    "msedge",
    "chromium",
    "chromium-browser",
)
_MAC_APPLICATIONS = ("Google Chrome", "Microsoft Edge", "Chromium")
_WINDOWS_PROGRAMS = (
    "Google/Chrome/Application/chrome.exe",
    "Microsoft/Edge/Application/msedge.exe",
    "Chromium/Application/chrome.exe",
)
_OPTIONS = (
    "--headless",
    "--disable-gpu",
    "--disable-dev-shm-usage",  # which is tiny in containers
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-sync",
    "--no-default-browser-check",
    "--no-first-run",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--user-agent=rpexplore",  # stands in the file as its creator
    "--virtual-time-budget=60000",  # ms that the charts have, as many as they need of them
    "--no-pdf-header-footer",
)
_TIMEOUT = 300  # seconds; a report takes about 3
_DATE = re.compile(rb"\(D:\d{14}[+-]\d\d'\d\d'\)")
_NO_DATE = b"(D:19800101000000+00'00')"  # of the same length, so that the file's offsets hold
_HEADER_CELL = re.compile(rb"/ID \(node(\d{8})\)")


def find_browser() -> Path | None:
    """The browser that prints reports: by its command, or where its installer puts it."""
    for command in _COMMANDS:
        if path := shutil.which(command):
            return Path(path)
    return next((path for path in _installed_paths() if path.is_file()), None)


def _installed_paths() -> list[Path]:
    """Where installers of macOS and Windows put browsers, beside the search path."""
    applications = [
        Path(folder, f"{name}.app", "Contents", "MacOS", name)
        for folder in ("/Applications", os.path.expanduser("~/Applications"))
        for name in _MAC_APPLICATIONS
    ]
    folders = [
        os.environ[name]
        for name in ("PROGRAMFILES", "PROGRAMFILES(X86)", "LOCALAPPDATA")
        if os.environ.get(name)
    ]
    programs = [Path(folder, program) for folder in folders for program in _WINDOWS_PROGRAMS]
    return applications + programs


def pdf(report: Report) -> bytes:
    """The report as a PDF file.

    Raises `ExportError` if there is no browser, or if it prints nothing.
    """
    browser = find_browser()
    if browser is None:
        raise ExportError(f"{NO_BROWSER}.")
    with tempfile.TemporaryDirectory(
        dir=_scratch_parent(browser), ignore_cleanup_errors=True
    ) as folder:
        source, target = Path(folder, "report.html"), Path(folder, "report.pdf")
        source.write_text(html(report), encoding="utf-8")
        _print_page(browser, source, target)
        return _with_ranks(_DATE.sub(_NO_DATE, target.read_bytes()))


def _with_ranks(file: bytes) -> bytes:
    """The PDF with its header cells of tables numbered from 0, wherever it refers to them.

    The browser numbers them among all it has made, more or fewer of which were in time.
    """
    numbers = sorted(set(_HEADER_CELL.findall(file)))
    ranks = {number: b"%08d" % rank for rank, number in enumerate(numbers)}
    pattern = rb"\(node(\d{8})\)"
    return re.sub(pattern, lambda match: b"(node%s)" % ranks.get(match[1], match[1]), file)


def _scratch_parent(browser: Path) -> Path | None:
    """The folder for temporary files; Chromium from a snap sees only its own."""
    snap = Path(os.path.expanduser("~/snap/chromium/common"))
    return snap if browser.name.startswith("chromium") and snap.is_dir() else None


def _print_page(browser: Path, source: Path, target: Path) -> None:
    command = [
        str(browser),
        *_OPTIONS,
        f"--user-data-dir={source.with_name('profile')}",
        f"--print-to-pdf={target}",
    ]
    # Chromium's sandbox does not work for root, as whom containers often run.
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        command.append("--no-sandbox")
    remedy = "write the report as .html and print it from a browser"
    try:
        finished = subprocess.run(
            [*command, source.as_uri()],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ExportError(
            f"{browser} did not print the report within {_TIMEOUT} seconds; {remedy}."
        ) from None
    except OSError as error:
        raise ExportError(f"{browser} cannot be started ({error.strerror}); {remedy}.") from error
    if not target.is_file() or not target.read_bytes().startswith(b"%PDF-"):
        lines = finished.stderr.decode(errors="replace").strip().splitlines() or ["no message"]
        raise ExportError(
            f"{browser} did not print the report (exit code {finished.returncode}: "
            f"{lines[-1]}); {remedy}."
        )
