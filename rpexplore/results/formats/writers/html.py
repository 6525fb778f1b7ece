"""A page for readers: tables.html, all tables as crosstabs in one file for any browser."""

from pathlib import Path

from rpexplore.results.formats.export import Export, Format
from rpexplore.results.formats.languages import ENGLISH
from rpexplore.results.formats.readers_page import readers_page

FILE = "tables.html"


def write_html(export: Export, folder: Path) -> None:
    """Write the page; raises `ReleaseError` for more tables than one is good for."""
    (folder / FILE).write_text(readers_page(export), encoding="utf-8", newline="\n")


FORMAT = Format(
    "Page for readers (HTML)",
    ENGLISH.text("files_html"),
    write_html,
    has_files_of_its_own=True,
    said_in="files_html",
)
