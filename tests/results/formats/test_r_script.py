"""rpexplore.R, run by R, where R is installed."""

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import rpexplore as rp
from rpexplore.results.formats.writers import r
from tests.releases import adaptive_run
from tests.releases.table_plan import CSV, PLAN, QUERY_PLAN
from tests.results.formats.conftest import KINDS

READER = Path(r.__file__).with_name(r.FILE)
# One line a column of each table: its class and values, numbers to the last bit.
PRINTED = """
source(commandArgs(TRUE)[1])
for (folder in commandArgs(TRUE)[-1]) {
  release <- read_release(folder)
  for (name in names(release)) {
    for (column in seq_along(release[[name]])) {
      values <- release[[name]][[column]]
      kind <- class(values)
      if (is.numeric(values)) values <- sprintf("%.17g", values)
      cat(folder, name, names(release[[name]])[column], kind, values, sep = "\\x1f")
      cat("\\x1e")
    }
  }
  cat(folder, "guarantee", attr(release, "facts")$guarantee, sep = "\\x1f")
  cat("\\x1e")
}
"""

pytestmark = pytest.mark.skipif(
    shutil.which("Rscript") is None and not os.environ.get("RPEXPLORE_REQUIRE_ENGINES"),
    reason="R is not installed",
)


def by_r(*arguments: str | Path, code: str = PRINTED) -> str:
    """What R prints, or says when it stops."""
    command = ["Rscript", "--vanilla", "-e", code, *map(str, arguments)]
    environment = {**os.environ, "LC_ALL": "C.UTF-8"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    return done.stdout if done.returncode == 0 else done.stderr


@pytest.mark.parametrize(
    "kinds",
    [("released", "areas", "amounts"), pytest.param(tuple(KINDS), marks=pytest.mark.nightly)],
    ids=["some", "all"],
)
def test_releases_and_exports_are_read_as_they_are(kinds, exports):
    chosen = [exports[kind] for kind in kinds]
    folders = [e.folder for e in chosen]
    folders += [e.source for e in chosen if not e.results.area_levels]
    read: dict[tuple[str, str], dict] = {}
    for line in by_r(READER, *folders).split("\x1e")[:-1]:
        folder, name, *rest = line.split("\x1f")
        if name == "guarantee":
            read[folder, name] = rest[0]
        else:
            read.setdefault((folder, name), {})[rest[0]] = (rest[1], rest[2:])
    for exported in chosen:
        assert read[str(exported.folder), "guarantee"] == exported.results.guarantee
        if exported.results.area_levels:
            continue  # Parquet files only
        for item in exported.results.items:
            frame = item.frame
            name = item.name if item.name == "answers" else " x ".join(item.attributes) or "total"
            name += " (means)" if item.note == "means" else ""
            table = read[str(exported.source), name]
            assert list(table) == frame.columns.tolist()
            for (kind, values), column in zip(table.values(), frame, strict=True):
                if pd.api.types.is_float_dtype(frame[column]):
                    unit = exported.last_decimal(frame)
                    numbers = [float(value) if value != "NA" else np.nan for value in values]
                    assert kind == "numeric"
                    np.testing.assert_allclose(numbers, frame[column], rtol=0, atol=unit)
                elif frame[column].dtype == bool:
                    assert (kind, values) == (
                        "logical",
                        frame[column].astype(str).str.upper().tolist(),
                    )
                else:
                    assert (kind, values) == ("character", frame[column].astype(str).tolist())
    assert "NA" in read[str(exports["amounts"].folder), "sex x income (means)"]["value"][1]
    table = read[str(exports["released"].folder), "marital_status x sex"]
    assert table["marital_status"][1][:2] == ["01", "01"]
    assert table["standard_error"][0] == "numeric"
    table = read[str(exports["areas"].folder), "region x town x sex x value_2"]
    assert table["town_label"][1][-1] == "Cc"
    assert table["upper_95"][0] == "numeric"


@pytest.mark.nightly
def test_answers_are_read_and_what_cannot_be_is_said(tmp_path, exports):
    (tmp_path / "records.csv").write_text(CSV, "utf-8")
    queries = rp.release(QUERY_PLAN, tmp_path / "records.csv", tmp_path / "queries")
    rp.release(PLAN, tmp_path / "records.csv", tmp_path / "parquet", parquet_only=True)
    adaptive_run.write_records(tmp_path / "adaptive.csv")
    rp.release(adaptive_run.PLAN, tmp_path / "adaptive.csv", tmp_path / "adaptive")
    shutil.copytree(exports["released"].source, tmp_path / "changed")
    next((tmp_path / "changed/tables").glob("*_sex.csv")).write_text("x", "utf-8")
    code = """
    source(commandArgs(TRUE)[1]); folder <- commandArgs(TRUE)[2]
    answers <- read_release(file.path(folder, "queries"))$answers
    cat(sprintf("%.12g", answers$standard_error), answers$name[2], sep = "|"); cat("\\n")
    adaptive <- read_release(file.path(folder, "adaptive"))[["sex x age x region"]]
    cat(vapply(adaptive, class, ""), sep = "|"); cat("\\n")
    said <- function(code) cat(tryCatch(code, error = conditionMessage), "\\n")
    said(read_release(file.path(folder, "parquet"))[["sex"]]$sex)
    said(read_release(file.path(folder, "changed")))
    said(read_release(folder))
    said(release_table(read_release(commandArgs(TRUE)[3]), "sex", "age"))
    """
    lines = by_r(READER, tmp_path, exports["released"].source, code=code).splitlines()
    errors = [f"{error:.12g}" for error in queries.answers["standard_error"]]
    assert lines[0] == "|".join([*errors, 'from 3, "old"'])
    assert lines[1] == "|".join(["character"] * 3 + ["numeric"] * 4 + ["character"])
    assert "has Parquet files only, for which R needs the package arrow" in lines[2]
    assert "is missing or was changed since" in lines[3]
    assert "no manifest.json and no datapackage.json" in lines[4]
    assert "there is no table of (sex x age) here" in lines[5]
