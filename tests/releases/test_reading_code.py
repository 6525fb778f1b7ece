"""Lines that read a table in other programs: run where the program is there, else looked at."""

import os
import re
import runpy
import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest

import rpexplore as rp
from rpexplore.domain.result_schema import RELEASED, Schema
from rpexplore.errors import ReleaseError
from rpexplore.planning.planner import plan_tables
from rpexplore.releases.readme import TableColumn, TableFile
from rpexplore.releases.release import release
from rpexplore.releases.table_cells import parquet_of, table_path
from rpexplore.releases.table_release import TableRelease
from rpexplore.results.processed_folder import postprocess
from rpexplore.results.publication import Publication
from tests.support.results import names_of, with_roles

DOMAIN = rp.Domain(
    (
        rp.Attribute("région", rp.Categories(("01", "NA", "é\"'"), ("1", "North, and on", "x"))),
        rp.Attribute("value", rp.Integers(0, 3)),
        rp.Attribute("the same long name up to its last letter: a", rp.Categories(("a", "b"))),
        rp.Attribute("the same long name up to its last letter: b", rp.Categories(("a", "b"))),
    )
)


@pytest.fixture(scope="module")
def released(tmp_path_factory) -> TableRelease:
    folder = tmp_path_factory.mktemp("reading")
    rng = np.random.default_rng(0)
    rows = {a.name: rng.choice(a.stored_values(9), 90) for a in DOMAIN}
    plan = plan_tables(
        rp.Workload.all_up_to(DOMAIN, 3), loss=rp.SumOfVariances(), budget=rp.Budget(rho=1)
    )
    release(plan, pd.DataFrame(rows), folder / "out", name="reading", ledger=folder / "ledger")
    return TableRelease.load(folder / "out")


@pytest.fixture(scope="module", params=["released", "smooth"])
def results(request, released, tmp_path_factory):
    if request.param == "released":
        return released
    folder = tmp_path_factory.mktemp("processed") / "out"
    return postprocess(released, folder, method=request.param)


def check_rows(read: pd.DataFrame, frame: pd.DataFrame, *, off: float = 0.0) -> None:
    """The table as it is in the folder, and behind it CVs and what is publishable.

    off: by how much numbers may be rounded, from which CVs follow
    """
    assert read.columns.tolist() == [*frame.columns, "cv", "publishable"]
    for name in frame.columns:
        if pd.api.types.is_float_dtype(frame[name].dtype):
            assert read[name].to_numpy() == pytest.approx(
                frame[name].to_numpy(), rel=1e-12, abs=off
            )
        else:
            assert read[name].astype(str).tolist() == frame[name].astype(str).tolist()
    publication = Publication(0.3)
    frame = Schema.of(frame).marked(read[frame.columns.tolist()])
    cv = publication.table(frame)["cv"].to_numpy()
    lines_cv = read["cv"].to_numpy(dtype=float, copy=True)
    lines_cv[np.isinf(lines_cv)] = np.nan  # a count of 0 has none; the lines divide by it
    assert lines_cv == pytest.approx(cv, rel=1e-10)
    assert read["publishable"].astype(bool).tolist() == publication.publishable(frame).tolist()


def all_files(results):
    for position, names in enumerate(results.table_names):
        yield TableFile.of(results.folder, table_path(position, names)), results.table(names)


@pytest.mark.by_day(1)
def test_the_lines_of_python_read_every_table(results, tmp_path, monkeypatch):
    monkeypatch.chdir(results.folder)
    for file, frame in all_files(results):
        (tmp_path / "lines.py").write_text(file.code(0.3)["Python"], encoding="utf-8")
        check_rows(runpy.run_path(str(tmp_path / "lines.py"))["table"], frame)


@pytest.mark.by_day(1)
@pytest.mark.skipif(shutil.which("Rscript") is None, reason="needs R")
def test_the_lines_of_r_read_every_table(results, tmp_path):
    files = list(all_files(results))
    written = 'write.csv(table, "{}", row.names = FALSE, fileEncoding = "UTF-8")\n'
    code = "options(digits = 15)\n"
    for i, (file, _) in enumerate(files):
        code += file.code(0.3)["R"] + written.format(tmp_path / f"{i}.csv")
    (tmp_path / "all.R").write_text(code, encoding="utf-8")
    command = ["Rscript", "--vanilla", str(tmp_path / "all.R")]
    environment = os.environ | {"LC_ALL": "C.UTF-8"}
    subprocess.run(command, cwd=results.folder, check=True, capture_output=True, env=environment)
    for i, (_, frame) in enumerate(files):
        texts = [
            name for name in frame.columns if not pd.api.types.is_float_dtype(frame[name].dtype)
        ]
        options = {"dtype": dict.fromkeys(texts, str), "keep_default_na": False}
        read = pd.read_csv(tmp_path / f"{i}.csv", **options)
        check_rows(read, frame, off=1e-5)


def test_the_cv_of_nonnegative_tables_is_that_of_the_unbiased_counts():
    names = ("value", "unbiased_value", "standard_error", "lower_95", "upper_95")
    columns = [TableColumn("a", 1), *(TableColumn(name, None) for name in names)]
    columns.append(TableColumn("value_is", 9))
    file = TableFile("tables/0001_a", tuple(columns), count="unbiased_value")
    made = {
        "Python": 'table["standard_error"] / table["unbiased_value"].abs()',
        "R": "table$standard_error / abs(table$unbiased_value)",
        "SAS": "divide(standard_error, abs(unbiased_value))",
        "Stata": "standard_error / abs(unbiased_value)",
    }
    for language, lines in file.code().items():
        assert made[language] in lines
        assert lines.count("unbiased_value") == 2 + (language == "SAS")  # which lists columns


def test_cells_without_an_error_are_not_publishable():
    names = ("value", "model_error", "unbiased_value", "standard_error", "lower_95", "upper_95")
    columns = [TableColumn("a", 1), *(TableColumn(name, None) for name in names)]
    columns.append(TableColumn("value_is", 9))
    code = TableFile("tables/0001_a", tuple(columns), error="model_error").code(0.3)
    # A missing number is below all others in SAS, and makes NA of a comparison in R.
    assert "publishable = (value > 0 and not missing(cv) and cv <= 0.3);" in code["SAS"]
    assert "table$publishable <- table$value > 0 & table$cv <= 0.3 & !is.na(table$cv)" in code["R"]


def test_sas_is_told_a_name_and_a_length_for_every_column(released):
    position = released.table_names.index(DOMAIN.names[:1] + DOMAIN.names[2:])
    file = TableFile.of(released.folder, table_path(position, released.table_names[position]))
    code = file.code()["SAS"]
    lines = re.search(r"input\n(.*?);", code, re.DOTALL)[1].split("\n")
    # Codes of at most 4 bytes, é being two; "North, and on" has 13, and one more may come before.
    assert [line.strip() for line in lines] == [
        "r_gion :$8.",
        "r_gion_label :$14.",
        "the_same_long_name_up_to_its_las :$8.",
        "the_same_long_name_up_to_its_l_2 :$8.",
        *names_of(RELEASED),
    ]
    assert "r_gion_label = 'région label'" in code
    assert f'infile "{file.path}.csv" dsd firstobs=2' in code


def test_an_attribute_called_like_a_number_is_kept_apart(released):
    position = released.table_names.index(("value",))
    file = TableFile.of(released.folder, table_path(position, ("value",)))
    assert "    value_attribute :$8.\n    value\n" in file.code()["SAS"]


def test_attributes_called_as_what_is_added_are_kept(tmp_path, monkeypatch):
    (tmp_path / "tables").mkdir()
    frame = pd.DataFrame(
        {"cv": ["a", "b"], "publishable": ["c", "d"], "cell_c v": ["e", "f"]}
        | {"value": [10.0, 2.0], "standard_error": 1.0, "lower_95": [8.0, 0.0], "upper_95": 12.0}
    )
    path = tmp_path / "tables" / "0000_cv.parquet"
    path.write_bytes(parquet_of(with_roles(frame, RELEASED)))
    assert list(TableFile.of(tmp_path, table_path(0, ["cv"])).code()) == ["Python", "R"]
    path.with_suffix(".csv").touch()
    code = TableFile.of(tmp_path, table_path(0, ["cv"])).code(0.3)
    (tmp_path / "lines.py").write_text(code["Python"], encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    read = runpy.run_path(str(tmp_path / "lines.py"))["table"]
    assert read[frame.columns.tolist()].equals(frame)
    assert read["cell_cell_cv"].tolist() == [0.1, 0.5]
    assert read["cell_publishable"].tolist() == [True, False]
    assert "table$cell_publishable <- table$value > 0 & table$cell_cell_cv <= 0.3" in code["R"]
    assert "generate double cell_cell_cv = " in code["Stata"]
    assert "generate byte cell_publishable = value > 0 & cell_cell_cv <= 0.3" in code["Stata"]


def test_stata_keeps_labels_as_text(released):
    position = released.table_names.index(DOMAIN.names[:2])
    code = TableFile.of(released.folder, table_path(position, DOMAIN.names[:2])).code()["Stata"]
    assert "stringcols(1 2 3) asdouble" in code  # a code, its label, and a number that is a label
    total = TableFile.of(released.folder, table_path(0, ())).code()["Stata"]
    assert "stringcols" not in total


def test_the_readme_shows_the_lines_for_a_table(released):
    readme = (released.folder / "README.md").read_text("utf-8")
    shown = "".join(line[4:] + "\n" for line in readme.split("\n") if line.startswith("    "))
    (file,) = (file for file, _ in all_files(released) if f'"{file.path}.parquet"' in readme)
    assert [len(names) for names in released.table_names if names][-1] == 3
    for lines in file.code().values():
        assert lines.replace("\n\n", "\n") in shown


def test_a_table_that_is_gone_is_said(tmp_path):
    with pytest.raises(ReleaseError, match=r"0001_value\.parquet.*cannot be read any more"):
        TableFile.of(tmp_path, table_path(1, ("value",)))
