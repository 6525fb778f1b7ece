"""Columns of a release's Parquet files that somebody changed, with all checksums made anew."""

import shutil
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rpexplore.errors import ReleaseError
from rpexplore.releases.query_release import QueryRelease
from rpexplore.releases.release import release
from rpexplore.releases.table_release import TableRelease
from rpexplore.results.processed_folder import postprocess
from rpexplore.results.processed_tables import ProcessedTables
from rpexplore.results.unbiased import Estimates
from tests.releases.test_manifest import PLANS
from tests.support.sealed import reseal


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    (folder / "records.csv").write_text("a,b\n0,0\n1,2\n")
    for kind, planned in PLANS.items():
        release(planned, folder / "records.csv", folder / kind.__name__)
    postprocess(
        TableRelease.load(folder / "TableRelease"), folder / "Processed", method="nonnegative"
    )
    postprocess(TableRelease.load(folder / "TableRelease"), folder / "Smooth", method="smooth")
    return folder


def retyped(table, index):
    column = table.column(index)
    other = pa.string() if pa.types.is_floating(column.type) else pa.float64()
    return table.set_column(index, table.column_names[index], column.cast(other))


def doubled(table, index):
    return table.append_column(table.column_names[index], table.column(index))


def emptied(table, index):
    column = table.column(index)
    cells = pa.array([None, *column.to_pylist()[1:]], column.type)
    return table.set_column(index, table.column_names[index], cells)


def with_first(number, table, index):
    column = table.column(index)
    cells = pa.array([number, *column.to_pylist()[1:]], pa.float64())
    return table.set_column(index, table.column_names[index], cells)


def huge(table, index):
    column = table.column(index)
    number = 1e300 if pa.types.is_floating(column.type) else -(2**62) - 1
    cells = pa.array([number, *column.to_pylist()[1:]], column.type)
    return table.set_column(index, table.column_names[index], cells)


TABLE = "tables/0001_a.parquet"
QUERIES, MEASURED = "QueryRelease", "counts/measurements.parquet"
FILES = [
    ("TableRelease", "residuals.parquet", "measured", lambda f: TableRelease.load(f).counts("a")),
    ("TableRelease", "residuals.parquet", "measured", lambda f: Estimates.of(TableRelease.load(f))),
    ("TableRelease", TABLE, "value", lambda f: TableRelease.load(f).table("a")),
    (QUERIES, "counts/answers.parquet", "answer", lambda f: QueryRelease.load(f).answers),
    (QUERIES, MEASURED, "measured", lambda f: QueryRelease.load(f).measurements),
    ("Processed", TABLE, "value", lambda f: ProcessedTables.load(f).table("a")),
    ("Smooth", TABLE, "model_error", lambda f: ProcessedTables.load(f).table("a")),
]


@pytest.mark.parametrize(
    "change",
    [
        lambda table, index: table.remove_column(index),
        doubled,
        retyped,
        emptied,
        partial(with_first, np.nan),
        partial(with_first, -np.inf),
    ],
    ids=["missing", "doubled", "retyped", "empty", "NaN", "infinite"],
)
@pytest.mark.parametrize(("kind", "name", "column", "read"), FILES)
def test_a_column_that_is_not_as_written_is_named(
    kind, name, column, read, change, folders, tmp_path
):
    refused_once_changed(kind, name, column, read, change, folders, tmp_path)


@pytest.mark.parametrize(("kind", "name", "column", "read"), FILES[:5])
def test_a_number_that_nothing_measured_gives_is_refused(
    kind, name, column, read, folders, tmp_path
):
    """Processed tables may come from noisy marginals of any size."""
    refused_once_changed(kind, name, column, read, huge, folders, tmp_path)


def refused_once_changed(kind, name, column, read, change, folders, tmp_path):
    copy = shutil.copytree(folders / kind, tmp_path / "copy")
    table = pq.read_table(copy / name)
    pq.write_table(change(table, table.column_names.index(column)), copy / name)
    reseal(copy, name)
    with pytest.raises(ReleaseError, match=rf"does not hold what its plan says: .*{column!r}"):
        read(copy)


@pytest.mark.parametrize(("kind", "name", "column", "read"), FILES[:5])
def test_a_file_with_a_row_less_is_named(kind, name, column, read, folders, tmp_path):
    copy = shutil.copytree(folders / kind, tmp_path / "copy")
    rows = pq.read_table(copy / name)
    pq.write_table(rows.slice(0, len(rows) - 1 if len(rows) < 12 else 2), copy / name)
    reseal(copy, name)
    with pytest.raises(ReleaseError, match=f"{name.split('/')[-1]!r} of .* does not hold what"):
        read(copy)
