"""Texts that spreadsheets take for formulas: escaped in CSV files where that is wanted."""

import csv
import io
import json
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

from rpexplore.common.text import csv_of_frame
from rpexplore.domain.domain import FOUND_IN_RECORDS
from rpexplore.releases.table_cells import for_csv
from rpexplore.releases.table_release import TableRelease
from tests.cli.program import BUDGET

SIGNS = ("=", "+", "-", "@", "\t", "\r")
VALUES = ["=1+1", "+1", "-x", "@x", "＝1+1", "＠x", "fine=1"]


def write_codebook(title: str) -> None:
    fields = [
        {"name": "=a", "title": title, "constraints": {"enum": VALUES}},
        {"name": "b", "title": title, "constraints": {"enum": ["x", "y"]}},
    ]
    Path("formulas.json").write_text(json.dumps({"fields": fields}))
    rows = [f"{value},{'xy'[i % 2]}" for i, value in enumerate(VALUES * 4)]
    Path("formulas.csv").write_text("\n".join(["=a,b", *rows]) + "\n")


@pytest.fixture
def formulas(run):
    write_codebook(FOUND_IN_RECORDS)
    run.done("plan", "formulas.json", "--up-to", "2", *BUDGET, "--out", "formulas-plan.json")
    return run


def cells(folder: str) -> set[str]:
    """All that stands in the CSV files of a folder."""
    files = Path(folder).glob("**/*.csv")
    return {cell for file in files for row in csv.reader(file.open(newline="")) for cell in row}


def texts(folder: str) -> set[str]:
    """The cells that are no numbers of the release."""
    names = {"=a", *VALUES}
    return {cell for cell in cells(folder) if cell.removeprefix("'") in names}


ESCAPED = {"'=a", "'=1+1", "'+1", "'-x", "'@x", "'＝1+1", "'＠x", "fine=1"}


def test_formulas_are_escaped_in_csv_files_only_if_wanted(formulas):
    release = ("release", "formulas-plan.json", "formulas.csv", "--out")
    formulas.done(*release, "plain")
    formulas.done(*release, "escaped", "--escape-formulas")
    assert texts("plain") == {"=a", *VALUES}
    assert texts("escaped") == ESCAPED
    assert TableRelease.load("escaped").table("=a")["=a"].tolist() == VALUES
    assert "an apostrophe" in Path("escaped/README.md").read_text()
    assert "an apostrophe" not in Path("plain/README.md").read_text()


@pytest.mark.nightly
def test_estimated_tables_are_warned_of_and_escaped_as_others(formulas):
    formulas.done(
        "plan", "formulas.json", "--of-order", "2", "--rho", "0.1", "--adaptive",
        "--expected-count", "20", "--out", "adaptive.json",
    )  # fmt: skip
    release = ("release", "adaptive.json", "formulas.csv", "--out")
    assert "formula" in formulas.done(*release, "dry", "--dry-run")
    formulas.done(*release, "escaped", "--escape-formulas")
    assert texts("escaped") == ESCAPED
    assert "'=a × b" in cells("escaped")


def test_a_resumed_run_escapes_as_the_run_was_to(formulas, monkeypatch):
    def stop(self, position):
        raise KeyboardInterrupt

    release = ("release", "formulas-plan.json", "formulas.csv", "--out", "out")
    with monkeypatch.context() as patch:
        patch.setattr("rpexplore.releases.table_release.TableWriter.table", stop)
        assert formulas(*release, "--escape-formulas").exit_code == 130
    assert "takes no --escape-formulas" in formulas.refused(
        "release", "--resume", "--out", "out", "--escape-formulas"
    )
    formulas.done("release", "--resume", "--out", "out")
    assert texts("out") == ESCAPED


@pytest.mark.by_day(1)
@pytest.mark.parametrize("verb", [("combine",), ("postprocess", "--round")])
def test_formulas_are_escaped_in_what_is_made_of_a_release(verb, formulas):
    formulas.done("release", "formulas-plan.json", "formulas.csv", "--out", "release")
    facts = formulas.json(*verb, "release", "--out", "escaped", "--escape-formulas")
    assert facts["warning"] is None
    assert texts("escaped") == ESCAPED
    assert "'=1+1'" in formulas.done(*verb, "release", "--out", "plain")
    assert texts("plain") == {"=a", *VALUES}


def test_formulas_are_escaped_in_lists_of_tables_and_queries(formulas):
    formulas.done("show", "formulas-plan.json", "--csv", "tables.csv", "--escape-formulas")
    Path("list.txt").write_text('"=sum": b = "x" ± 50\n')
    counts = ("--counts", "list.txt", "--rho", "1")
    formulas.done("plan", "formulas.json", *counts, "--out", "queries.json")
    formulas.done("show", "queries.json", "--csv", "queries.csv", "--escape-formulas")
    release = ("release", "queries.json", "formulas.csv", "--out", "answers")
    formulas.done(*release, "--escape-formulas")
    read = cells(".") - {"=a", *VALUES}  # those are in the records
    assert {"'=a", "'=sum"} <= read
    assert not [cell for cell in read if cell.startswith("=")]


def test_a_warning_names_formulas_among_values_found_in_records(formulas):
    release = ("release", "formulas-plan.json", "formulas.csv", "--out", "out")
    warning = "From the records come '=a', '=1+1', '+1', '-x' and 3 more"
    assert warning in formulas.json(*release, "--dry-run")["findings"][-1]
    assert warning not in formulas.done(*release, "--dry-run", "--escape-formulas")
    assert warning in formulas.done(*release)


def test_stated_values_are_not_warned_of(run):
    write_codebook("Stated")
    run.done("plan", "formulas.json", "--up-to", "2", *BUDGET, "--out", "formulas-plan.json")
    release = ("release", "formulas-plan.json", "formulas.csv", "--out", "out")
    assert "spreadsheet" not in run.done(*release, "--dry-run")
    assert run.json(*release)["warning"] is None


def test_both_writers_of_csv_escape_the_same_texts():
    cells = [sign + rest for sign in SIGNS for rest in ("", "1", "x\n=y")] + ["", "a=1", "'=1"]
    table = pa.table({"=t": pa.array(cells).dictionary_encode(), "n": [-1.0] * len(cells)})
    expected = [f"'{cell}" if cell.startswith(SIGNS) else cell for cell in cells]
    assert for_csv(table, escape_formulas=True).to_pydict() == {
        "'=t": expected,
        "n": [-1.0] * len(cells),
    }
    text = csv_of_frame(pd.DataFrame({"=t": cells, "n": -1.0}), escape_formulas=True)
    rows = list(csv.reader(io.StringIO(text, newline="")))
    assert rows == [["'=t", "n"], *([cell, "-1.0"] for cell in expected)]


def test_codes_of_sdmx_are_escaped_where_that_is_wanted(formulas):
    formulas.done("release", "formulas-plan.json", "formulas.csv", "--out", "release")
    sdmx = ("publish", "release", "--format", "sdmx", "--out")
    formulas.done(*sdmx, "plain")
    formulas.done(*sdmx, "escaped", "--escape-formulas")

    def codes(folder: str) -> set[str]:
        return {cell for cell in cells(folder) if cell.endswith(("-x", "@x"))}

    assert codes("plain") == {"-x", "@x"}
    assert codes("escaped") == {"_-x", "_@x"}


def test_names_and_titles_are_no_markup_in_the_readme_of_an_export(run):
    name = "<img src=x onerror=y>`a`"
    fields = [{"name": name, "constraints": {"enum": ["x", "y"]}}]
    Path("markup.json").write_text(json.dumps({"fields": fields}))
    Path("markup.csv").write_text(f"{name}\nx\ny\n")
    run.done("plan", "markup.json", "--up-to", "1", *BUDGET, "--out", "plan.json")
    run.done("release", "plan.json", "markup.csv", "--out", "release")
    title = "T<script>alert(9)</script>"
    for number, form in enumerate(("frictionless", "sdmx")):
        out = f"out{number}"
        run.done("publish", "release", "--out", out, "--format", form, "--title", title)
        readme = Path(out, "README.md").read_text()
        assert readme.startswith("# T\\<script\\>alert(9)\\</script\\>\n")
        for tag in ("<script", "</script", "<img"):
            assert readme.count(tag) == readme.count(f"\\{tag}")
