"""An Excel workbook of crosstabs: crosstabs.xlsx, with contents, notes and a sheet a table."""

from pathlib import Path

from rpexplore.results.formats.crosstab_workbook import write_crosstabs
from rpexplore.results.formats.export import Export, Format
from rpexplore.results.formats.languages import ENGLISH

FILE = "crosstabs.xlsx"


def write_crosstabs_file(export: Export, folder: Path) -> None:
    """Write the workbook; raises `ReleaseError` for more tables than one is good for."""
    write_crosstabs(export, folder / FILE)


FORMAT = Format(
    "Excel workbook of crosstabs",
    ENGLISH.text("files_crosstabs"),
    write_crosstabs_file,
    has_files_of_its_own=True,
    said_in="files_crosstabs",
)
