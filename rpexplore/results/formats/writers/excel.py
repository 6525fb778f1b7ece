"""An Excel workbook of the tables: tables.xlsx, as `rpexplore workbook` writes it."""

from pathlib import Path

from rpexplore.results.formats.export import Export, Format
from rpexplore.results.workbook import write_workbook

FILE = "tables.xlsx"


def write_excel(export: Export, folder: Path) -> None:
    """Write the workbook; raises `ReleaseError` for more tables than one is good for."""
    write_workbook(export.results, folder / FILE, read=export.frame)


FORMAT = Format(
    "Excel workbook",
    "`tables.xlsx` has a sheet a table",
    write_excel,
    has_files_of_its_own=True,
)
