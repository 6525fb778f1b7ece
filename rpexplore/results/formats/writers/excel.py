"""An Excel workbook of the tables: tables.xlsx, as `rpexplore workbook` writes it."""

from pathlib import Path

from rpexplore.errors import ReleaseError
from rpexplore.results.formats.export import Export, Format
from rpexplore.results.workbook import write_workbook

FILE = "tables.xlsx"


def write_excel(export: Export, folder: Path) -> None:
    """Write the workbook; raises `ReleaseError` for more tables than one is good for, and where
    small counts are to be printed in words.
    """
    if export.fewer_than:
        raise ReleaseError(
            "The format 'excel' lists every figure with its CV and quality, by which small counts "
            "would be told; choose 'crosstabs' to have these in words."
        )
    write_workbook(export.results, folder / FILE, read=export.frame)


FORMAT = Format(
    "Excel workbook",
    "`tables.xlsx` has a sheet a table",
    write_excel,
    has_files_of_its_own=True,
)
