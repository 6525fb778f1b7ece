"""Small tables in one Parquet file: as in files of their own, and refused if it was changed."""

import re
import runpy
import shutil

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rpexplore as rp
from rpexplore.errors import ReleaseError
from rpexplore.releases import packed_tables
from rpexplore.releases.packed_tables import PACKED
from rpexplore.releases.release import release, resume
from rpexplore.releases.table_release import TableRelease
from rpexplore.results.processed_folder import postprocess
from rpexplore.results.processed_tables import ProcessedTables
from tests.releases.table_plan import draw_by
from tests.support.sealed import reseal
from tests.support.stopped_runs import killed

DOMAIN = rp.Domain(
    (
        rp.Attribute("sex", rp.Categories(("f", "m"), ("female", "male"))),
        rp.Attribute("age", rp.Integers(0, 8, 3)),
        rp.Attribute("value", rp.Categories(("f", "m"))),
        rp.Attribute("income", rp.Amounts(0, 100)),
    ),
    ({"sex": "f", "age": "0..2"},),
)
WORKLOAD = rp.Workload.of(
    DOMAIN,
    [
        *((), ["sex"], ["age"], ["value"], ["sex", "age"], ["age", "value"], ["sex", "income"]),
        ["sex", "age", "value"],
    ],
).with_bases({"age": rp.Prefix()}, tables=[["age"], ["age", "value"]])
PLAN = rp.plan(WORKLOAD, loss=rp.SumOfVariances(), budget=rp.Budget(rho="1/2"))


@pytest.fixture(scope="module", autouse=True)
def few_files():
    """As of a hundred times as many tables, several row groups among them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packed_tables, "MOST_FILES", 3)
        patch.setattr(packed_tables, "_ROWS", 8)
        yield


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """The same counts with the same noise, with and without a file for each table."""
    folder = tmp_path_factory.mktemp("made")
    rows = [("m", age, value, age * 9) for age in range(9) for value in "ff"]
    frame = pd.DataFrame(rows, columns=list(DOMAIN.names))
    frame.to_csv(folder / "records.csv", index=False)
    with pytest.MonkeyPatch.context() as patch:
        for name, apart in (("packed", False), ("apart", True)):
            draws = np.random.default_rng(0)
            draw_by(patch, lambda size, _, draws=draws: draws.integers(-5, 6, size))
            release(PLAN, folder / "records.csv", folder / name, file_per_table=apart)
    return folder


def test_tables_are_those_of_single_files(folders):
    packed, apart = (TableRelease.load(folders / name) for name in ("packed", "apart"))
    files = [path.name[5:] for path in (folders / "packed/tables").iterdir()]
    assert sorted(files) == ["sex_income.csv", "sex_income.parquet"]
    assert (folders / "packed" / PACKED).is_file()
    assert not (folders / "apart" / PACKED).exists()
    assert pq.read_metadata(folders / "packed" / PACKED).num_row_groups > 2
    for position in [5, *range(len(WORKLOAD))]:  # whatever was read before
        read, expected = packed.cells(position), apart.cells(position)
        assert read.schema.equals(expected.schema, check_metadata=True)
        pd.testing.assert_frame_equal(
            read.to_pandas(), expected.to_pandas(), rtol=1e-14, check_exact=False
        )
    assert [item.name for item in packed.items] == [item.name for item in apart.items]
    notes = packed.table("sex", "age")["note"].tolist()
    assert notes == ["impossible by the codebook", *[""] * 5]


def test_other_programs_read_it_by_its_columns(folders, monkeypatch):
    done, path = TableRelease.load(folders / "packed"), folders / "packed" / PACKED
    position = WORKLOAD.find(DOMAIN.positions(["sex", "age", "value"]))
    rows = pd.read_parquet(path, filters=[("table", "==", position)])
    assert set(rows["attributes"]) == {"sex × age × value"}
    cells = done.table("sex", "age", "value")
    for column, name in (("category_1", "sex"), ("category_2", "age")):
        assert rows[column].tolist() == cells[name].tolist()
    # Two attributes have values of the same names, each of which is once in the dictionary.
    assert rows["category_3"].tolist() == ["f", "m"] * 6
    assert rows["value"].tolist() == cells["value"].tolist()
    assert rows["standard_error"].tolist() == cells["standard_error"].tolist()
    total = pd.read_parquet(path, filters=[("table", "==", 0)])
    assert total[["attributes", "category_1"]].to_numpy().tolist() == [["total", ""]]
    roles = {field.name: field.metadata[b"role"] for field in pq.read_schema(path)}
    assert roles["table"] == roles["category_1"] == b"code"
    assert roles["value"], roles["standard_error"] == (b"value", b"error")


def test_the_lines_in_the_readme_read_a_table(folders, monkeypatch, tmp_path):
    readme = (folders / "packed/README.md").read_text("utf-8")
    assert "`tables.parquet` holds 7 tables" in " ".join(readme.split())
    lines = readme.split("Python:\n\n")[1].partition("\n\nR:")[0]
    (tmp_path / "lines.py").write_text(re.sub("^    ", "", lines, flags=re.MULTILINE), "utf-8")
    monkeypatch.chdir(folders / "packed")
    read = runpy.run_path(str(tmp_path / "lines.py"))["table"]
    assert set(read["attributes"]) == {"sex × age × value"}
    assert len(read) == 12


def halved(table):
    return table.slice(0, len(table) // 2)


def swapped(table):
    return table.take([*range(1, len(table)), 0])


def without_number(table):
    values = pa.array([*table["value"].to_pylist()[1:], np.nan])
    return table.set_column(table.column_names.index("value"), table.field("value"), values)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (halved, "must have .* rows, and has"),
        (swapped, "in the order of the plan"),
        (without_number, "'value' has cells without a usable number"),
        (lambda table: table.drop_columns("standard_error"), "one column 'standard_error'"),
        (lambda table: table.replace_schema_metadata().cast(unnamed(table)), "what they are"),
    ],
)
def test_a_changed_file_is_refused(folders, tmp_path, change, reason):
    shutil.copytree(folders / "packed", tmp_path / "out")
    path = tmp_path / "out" / PACKED
    pq.write_table(change(pq.read_table(path)), path)
    with pytest.raises(ReleaseError, match="missing or was changed"):
        TableRelease.load(tmp_path / "out")
    reseal(tmp_path / "out", PACKED)
    done = TableRelease.load(tmp_path / "out")
    with pytest.raises(ReleaseError, match=f"'{PACKED}' .*{reason}"):
        [item.read() for item in done.items]


def unnamed(table):
    return pa.schema([field.remove_metadata() for field in table.schema])


def test_a_table_over_two_row_groups_is_refused(folders, tmp_path):
    shutil.copytree(folders / "packed", tmp_path / "out")
    path = tmp_path / "out" / PACKED
    pq.write_table(pq.read_table(path), path, row_group_size=5)
    reseal(tmp_path / "out", PACKED)
    with pytest.raises(ReleaseError, match="must be in one row group"):
        TableRelease.load(tmp_path / "out").table("sex", "age", "value")


def test_a_run_that_was_killed_is_finished(folders, tmp_path):
    PLAN.save(tmp_path / "plan.json")
    data = shutil.copy(folders / "records.csv", tmp_path)
    module = "rpexplore.releases.packed_tables"
    constants = {f"{module}.MOST_FILES": 3, f"{module}._ROWS": 8}
    run = (tmp_path / "plan.json", data, tmp_path / "out")
    killed(f"{module}._rows", 3, *run, constants=constants)
    assert not (tmp_path / "out").exists()
    done = resume(tmp_path / "out").part("tables")
    assert (tmp_path / "out" / PACKED).is_file()
    for table in (["sex"], ["sex", "age"], ["sex", "age", "value"]):
        assert np.allclose(done.table(*table)["value"], done.counts(*table)["value"])


def test_few_tables_and_those_of_many_cells_have_files_of_their_own(monkeypatch):
    def packed(**options):
        return [WORKLOAD.tables[i] for i in packed_tables.packed_tables(WORKLOAD, **options)]

    assert packed() == [table for table in WORKLOAD.tables if "income" not in table]
    assert not packed(file_per_table=True)
    monkeypatch.setattr(packed_tables, "MOST_CELLS", 6)
    assert ("sex", "age") in packed()
    assert ("sex", "age", "value") not in packed()
    monkeypatch.setattr(packed_tables, "MOST_FILES", 6)
    assert not packed()


def test_a_group_that_is_called_like_the_code_of_a_value(tmp_path):
    """Their labels tell them apart; a table from the one file had a code twice for pandas."""
    job = rp.Attribute(
        "job", rp.Categories(("A", "B", "C"), ("x", "y", "z")), groups=(("A",), ("A",), ())
    )
    domain = rp.Domain((job, DOMAIN["sex"]))
    workload = rp.Workload.all_up_to(domain, 2).with_bases({"job": rp.Hierarchy()})
    frame = pd.DataFrame({"job": [*"AABC"], "sex": [*"fmmm"]})
    plan = rp.plan(workload, loss=rp.SumOfVariances(), budget=rp.Budget(rho=10**6))
    done = release(plan, frame, tmp_path / "out", name="survey", ledger=tmp_path / "l.sqlite")
    assert (done.folder / PACKED).exists()
    whole = postprocess(done.part("tables"), tmp_path / "whole", rounded=True)
    for tables in (done, ProcessedTables.load(whole.folder)):
        table = tables.table("job")
        rows = zip(table["job"], table["job label"], np.rint(table["value"]), strict=True)
        assert [*rows][1:4] == [("A", "A", 3), ("A", "x", 2), ("B", "y", 1)]
