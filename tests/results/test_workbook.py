"""The Excel workbook, read again by another library and compared with the folder it is made of."""

import gc
import io
import sys
from pathlib import Path

import numpy as np
import openpyxl
import pandas as pd
import pytest

import rpexplore as rp
from rpexplore.errors import ReleaseError
from rpexplore.planning.planner import plan_tables
from rpexplore.releases.release import release
from rpexplore.releases.table_cells import table_path
from rpexplore.releases.table_release import TableRelease
from rpexplore.results import workbook
from rpexplore.results.processed_folder import postprocess
from rpexplore.results.publication import Publication, SmoothingGain
from rpexplore.results.unbiased import Estimates
from rpexplore.results.workbook import CONTENTS, check_size, workbook_bytes, write_workbook
from rpexplore.results.workbook_file import WorkbookFile

# What Excel takes for a formula, an escape or a reference, or forbids in the name of a sheet.
HOSTILE = ("=1+1", "@SUM(A1)", "+1", "_x0041_", "a\nb", "'q'", "<b>&", " x ", "1e5", "{=A1}")
DOMAIN = rp.Domain(
    (
        rp.Attribute("region [a/b]:*?'", rp.Categories(HOSTILE)),
        rp.Attribute("sex", rp.Categories(("f", "m"), ("female", "male"))),
        rp.Attribute("a very long name of an attribute 😀😀😀😀", rp.Integers(0, 6)),
        rp.Attribute("A VERY LONG NAME OF AN ATTRIBUTE 😀", rp.Integers(0, 1)),
    )
)


@pytest.fixture(scope="module")
def released(tmp_path_factory) -> TableRelease:
    folder = tmp_path_factory.mktemp("workbook")
    rng = np.random.default_rng(0)
    rows = {attribute.name: rng.choice(attribute.stored_values(20), 200) for attribute in DOMAIN}
    plan = plan_tables(
        rp.Workload.all_up_to(DOMAIN, 2), loss=rp.SumOfVariances(), budget=rp.Budget(rho="1/10")
    )
    return release(
        plan, pd.DataFrame(rows), folder / "out", name=str(folder), ledger=folder / "ledger"
    ).part("tables")


def read(file: Path | io.BytesIO):
    return openpyxl.load_workbook(file)


def rows_of(sheet) -> list[tuple]:
    return [tuple(cell.value for cell in row) for row in sheet.iter_rows()]


def check_cells(sheet, frame: pd.DataFrame) -> None:
    """Every cell is what the table has: floats to the last bit but one, texts as texts."""
    frame = Publication().table(frame)
    head, *rows = sheet.iter_rows()
    assert [cell.value for cell in head] == frame.columns.tolist()
    assert len(rows) == len(frame)
    for row, values in zip(rows, frame.itertuples(index=False, name=None), strict=True):
        for cell, value in zip(row, values, strict=True):
            if isinstance(value, float) and np.isnan(value):  # the CV of a count of 0
                assert cell.value is None
            elif isinstance(value, float):
                assert cell.data_type == "n"
                assert cell.value == pytest.approx(value, rel=1e-15)
            else:
                assert (cell.data_type, cell.value) == ("s", str(value))


@pytest.fixture(params=["released", "estimates", "smooth"])
def results(request, released, tmp_path):
    if request.param == "estimates":
        return Estimates.of(released)
    if request.param == "smooth":
        return postprocess(released, tmp_path / "smooth", method="smooth")
    return released


@pytest.mark.by_day(1)
def test_every_table_is_a_sheet_that_holds_what_was_released(results, tmp_path):
    sheets = write_workbook(results, tmp_path / "x.xlsx")
    book = read(tmp_path / "x.xlsx")
    assert book.sheetnames == [CONTENTS, *(sheet.name for sheet in sheets)]
    assert len({name.lower() for name in book.sheetnames}) == len(book.sheetnames) == 12
    assert max(len(name.encode("utf-16-le")) for name in book.sheetnames) <= 2 * 31
    assert [item.n_rows for item in results.items] == [
        len(results.table(table)) for table in results.table_names
    ]
    for sheet, table in zip(sheets, results.table_names, strict=True):
        check_cells(book[sheet.name], results.table(table))


@pytest.mark.by_day(1)
def test_the_first_sheet_has_the_label_and_a_link_to_every_table(results, tmp_path):
    sheets = write_workbook(results, tmp_path / "x.xlsx")
    first = read(tmp_path / "x.xlsx")[CONTENTS]
    rows = rows_of(first)
    facts = {row[0]: row[1] for row in rows}
    assert facts["Guarantee"] == results.guarantee
    assert results.label.lower() in facts["Values"].lower()
    assert facts["Values"].lower().count("unbiased;") <= 1
    assert ("Model error" in facts) == results.is_smooth
    start = next(i for i, row in enumerate(rows) if row[0] == "File") + 1
    listed = rows[start:]
    for row, sheet, count in zip(
        listed, sheets, [item.n_rows for item in results.items], strict=True
    ):
        names = results.table_names[sheet.position]
        publishable = int(Publication().publishable(results.table(names)).sum())
        file = Path(table_path(sheet.position, names)).name
        gain = SmoothingGain.of_table(results.table(names))
        gains = [("yes" if gain.is_gain else "no")] if gain else []
        assert row == (file, " × ".join(names) or "total", sheet.name, count, publishable, *gains)
        assert sheet.name.startswith(file[:4])
    assert (
        f"{sum(row[4] for row in listed):,} of {sum([item.n_rows for item in results.items]):,}"
        in facts["Publishable"]
    )
    links = [first.cell(start + i + 1, 3).hyperlink.location for i in range(len(listed))]
    assert links == [f"'{sheet.name}'!A1" for sheet in sheets]


def test_a_table_that_is_longer_than_a_sheet_is_on_several(released, tmp_path, monkeypatch):
    monkeypatch.setattr(workbook, "SHEET_ROWS", 8)  # 7 of them for cells; the table has 10
    table = (DOMAIN.names[0],)
    sheets = write_workbook(released, tmp_path / "x.xlsx", tables=[table])
    book, frame = read(tmp_path / "x.xlsx"), released.table(table)
    assert [(sheet.start, sheet.stop) for sheet in sheets] == [(0, 7), (7, 10)]
    for sheet in sheets:
        check_cells(book[sheet.name], frame.iloc[sheet.start : sheet.stop])
    listed = [row[1] for row in rows_of(book[CONTENTS])[-2:]]
    assert listed == [f"{table[0]}, part 1 of 2", f"{table[0]}, part 2 of 2"]


@pytest.mark.by_day(1)
def test_cells_that_are_not_publishable_are_left_empty_if_wanted(results, tmp_path):
    publication = Publication(0.3, leave_empty=True)
    sheets = write_workbook(results, tmp_path / "x.xlsx", publication=publication)
    book, empty = read(tmp_path / "x.xlsx"), 0
    for sheet, table in zip(sheets, results.table_names, strict=True):
        head, *rows = rows_of(book[sheet.name])
        for cells, is_publishable in zip(
            rows, publication.publishable(results.table(table)), strict=True
        ):
            row = dict(zip(head, cells, strict=True))
            assert row["publishable"] == ("yes" if is_publishable else "no")
            assert (row["value"] is None) == (row["cv"] is None) == (not is_publishable)
            empty += not is_publishable
    assert empty > 0
    facts = {row[0]: row[1] for row in rows_of(book[CONTENTS])}
    rule = publication.rule(smooth=results.is_smooth)
    assert facts["Publishable"].startswith(f"{rule}. ")
    assert facts["Publishable"].endswith("; the others are left empty.")


def test_a_workbook_for_a_download_is_made_from_the_folder(released):
    book = read(io.BytesIO(workbook_bytes(released.folder)))
    for name, table in zip(book.sheetnames[1:], released.table_names, strict=True):
        check_cells(book[name], released.table(table))


def test_what_a_workbook_cannot_hold_is_refused(released, tmp_path):
    with pytest.raises(ReleaseError, match="at most 2,000,000 cells, and these are 2,000,001"):
        check_size(1, 2_000_001)
    with pytest.raises(ReleaseError, match="at most 800 tables, and these are 801"):
        check_size(801, 801)
    with pytest.raises(ReleaseError, match=r"no table of \(nothing\)"):
        write_workbook(released, tmp_path / "x.xlsx", tables=[("nothing",)])
    long = rp.Domain((rp.Attribute("a", rp.Categories(("x" * 40_000, "y"))),))
    plan = plan_tables(
        rp.Workload.all_up_to(long, 1), loss=rp.SumOfVariances(), budget=rp.Budget(rho=1)
    )
    records = pd.DataFrame({"a": ["y"]})
    done = release(plan, records, tmp_path / "long", name="s", ledger=tmp_path / "ledger")
    with pytest.raises(ReleaseError, match="cannot hold 'xxx"):
        write_workbook(done, tmp_path / "x.xlsx")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ledger", "long"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_full_disk_is_said_once(monkeypatch):
    """Python would try again when it forgets a file that was not closed, and say so on its own."""
    said = []
    monkeypatch.setattr(sys, "unraisablehook", said.append)
    made = WorkbookFile(Path("/dev/full"), ["a"], [])
    with pytest.raises(OSError, match="No space left"), made:
        pass  # the rest of the file is written in the end
    del made
    gc.collect()
    assert said == []
