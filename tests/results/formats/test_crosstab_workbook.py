"""Crosstabs in Excel, read again by another library: figures are numbers, all else is text."""

import gc
import io
import resource
import sys
from pathlib import Path

import numpy as np
import openpyxl
import pytest

from rpexplore.results.formats.crosstab import crosstab_of_item
from rpexplore.results.formats.crosstab_workbook import shown_workbook, write_crosstabs
from rpexplore.results.formats.export import Export
from rpexplore.results.publication import Publication
from tests.results.formats.test_crosstab_html import CODE, made


def figures(sheet) -> list[list[float]]:
    """The numbers of its rows, those above a second table of margins."""
    rows = []
    for row in sheet.iter_rows():
        if row[0].value == "Margins of error (95 %)":
            break
        rows.append([cell.value for cell in row if isinstance(cell.value, int | float)])
    return [row for row in rows if row]


def test_every_table_has_a_sheet_with_its_figures_and_a_line_in_the_contents(exported):
    book = openpyxl.load_workbook(exported.folder / "crosstabs.xlsx")
    items = [(part, item) for part in exported.results.readers for item in part.items]
    assert [book.sheetnames[0], book.sheetnames[-1]] == ["Contents", "Notes"]
    assert len(book.sheetnames) == len(items) + 2
    links = [cell.hyperlink.location for (cell,) in book["Contents"].iter_rows(4, max_col=1)]
    assert links == [f"'{name}'!A1" for name in book.sheetnames[1:-1]]
    for (part, item), name in zip(items, book.sheetnames[1:-1], strict=True):
        table = crosstab_of_item(part, item)
        rows = [[value for value in row if not np.isnan(value)] for row in table.values.tolist()]
        shown, rows = figures(book[name]), [row for row in rows if row]
        assert [len(row) for row in shown] == [len(row) for row in rows]
        # The library writes 16 digits.
        for own, row in zip(shown, rows, strict=True):
            np.testing.assert_allclose(own, row, rtol=1e-15)
    notes = dict(book["Notes"].iter_rows(values_only=True))
    assert notes["Guarantee"] == exported.results.guarantee


def test_flags_and_brackets_are_formats_and_names_are_never_formulas(sources, tmp_path: Path):
    content = shown_workbook(sources / "released", made(), f"=1+1 {CODE}", Publication(0.2))
    book = openpyxl.load_workbook(io.BytesIO(content))
    sheet = book.worksheets[0]
    assert (sheet["A1"].value, sheet["A1"].data_type) == (f"=1+1 {CODE}", "s")
    assert sheet["A4"].value == CODE
    assert [cell.value for cell in sheet[5]] == ["north", "N", 1234.4, 40, 1274.4]
    # CVs of 0.8 and 25 %; a total is bold.
    assert sheet["C5"].number_format == '#,##0" A";−#,##0" A"'
    assert sheet["D5"].number_format == '(#,##0)" D";(−#,##0)" D"'
    assert sheet["D5"].font.color.rgb == "FF5B6775"
    assert (sheet["D5"].font.bold, sheet["E5"].font.bold) == (False, True)
    empty = shown_workbook(sources / "released", made(), "x", Publication(0.2, leave_empty=True))
    assert openpyxl.load_workbook(io.BytesIO(empty)).worksheets[0]["D5"].value is None


def test_a_disk_that_is_full_is_an_error_of_the_system(sources, tmp_path, monkeypatch):
    """XlsxWriter has errors of its own, and leaves a file that Python would try to close again."""
    said, export = [], Export(sources / "released")
    monkeypatch.setattr(sys, "unraisablehook", said.append)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(OSError, match="too large"):
            write_crosstabs(export, tmp_path / "crosstabs.xlsx")
        gc.collect()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert (said, list(tmp_path.iterdir())) == ([], [])


def test_margins_that_differ_stand_in_a_table_below(sources):
    errors = made().errors.copy()
    errors[0, 0] = 1.0
    content = shown_workbook(sources / "released", made(errors), "x", Publication(0.2))
    rows = list(openpyxl.load_workbook(io.BytesIO(content)).worksheets[0].iter_rows())
    start = next(i for i, row in enumerate(rows) if row[0].value == "Margins of error (95 %)")
    assert rows[start + 4][2].value == 1.959963984540054  # of an error of 1
    assert rows[start + 4][3].value == 19.59963984540054
