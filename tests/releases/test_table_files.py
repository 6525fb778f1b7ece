"""The release folder: formats, names that cannot escape, hashes that tell, nothing half done."""

import csv
import hashlib
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from rpexplore import (
    Attribute,
    Bins,
    Budget,
    Categories,
    CustomBasis,
    Domain,
    Hierarchy,
    Integers,
    Prefix,
    Ranges,
    SumOfVariances,
    Windows,
    Workload,
)
from rpexplore.domain.result_schema import RELEASED, Schema
from rpexplore.planning.planner import plan_tables
from rpexplore.planning.table_plan import TablePlan
from rpexplore.releases.release import release
from rpexplore.releases.table_cells import table_path
from rpexplore.releases.table_release import TableRelease
from rpexplore.workload.table_text import query_matrix
from tests.support.results import names_of

ODD_NAMES = (
    "../../x",
    "/etc/passwd",
    "value",
    "standard_error",
    "lower_95 (attribute)",
    "lower_95",
    "é/ü.λ 年",
    "年",
    "a.b",
    "n" * 200,
    "..",
    'quo"te, comma',
    "CON",
    "=1+1",
)
ODD_LABELS = ('A, "x"', "B\nb", "=1+1", "C\r\nc", " spaces ", "'", "ü;\t年", "0012")


def domain_of(*attributes: Attribute) -> Domain:
    return Domain(attributes)


def released(
    domain: Domain, folder: Path, tables=None, *, file_per_table=False, **columns
) -> TableRelease:
    frame = pd.DataFrame(columns if columns else {name: ["0", "1"] for name in domain.names})
    folder.mkdir(parents=True, exist_ok=True)
    frame.to_csv(folder / "records.csv", index=False)
    workload = Workload.all_up_to(domain, 2) if tables is None else Workload.of(domain, tables)
    planned = plan_tables(workload, loss=SumOfVariances(), budget=Budget(rho="1/2"))
    options = {"file_per_table": file_per_table}
    release(planned, folder / "records.csv", folder / "out" / "release", **options)
    return TableRelease.load(folder / "out" / "release")


def path_of(plan, position: int) -> str:
    return table_path(position, plan.workload.tables[position])


@pytest.fixture(scope="module")
def done(tmp_path_factory) -> TableRelease:
    domain = domain_of(
        Attribute("letter", Categories(("a", "b"), ("the letter a", "the letter b"))),
        Attribute("digit", Integers(0, 9, 4)),
        Attribute("size", Bins((0, 0.5, 2))),
    )
    folder = tmp_path_factory.mktemp("release")
    return released(domain, folder, letter=list("abb"), digit=[0, 4, 9], size=[0.25, 0.5, 2])


# --- what is in it


def test_the_folder_holds_what_it_should(done):
    tables = {path_of(done.plan, i) + e for i in range(7) for e in (".csv", ".parquet")}
    others = {"README.md", "manifest.json", "plan.json", "residuals.parquet"}
    files = {str(p.relative_to(done.folder)) for p in done.folder.rglob("*") if p.is_file()}
    assert files == tables | others
    assert "tables/0000_total.csv" in tables
    assert "tables/0004_letter_digit.csv" in tables


def test_the_manifest_lists_every_other_file_with_its_hash(done):
    manifest = json.loads((done.folder / "manifest.json").read_text())
    assert manifest == done.manifest
    listed = {entry["path"]: entry for entry in manifest["files"]}
    assert len(listed) == len(manifest["files"])
    files = [p for p in done.folder.rglob("*") if p.is_file() and p.name != "manifest.json"]
    assert set(listed) == {str(path.relative_to(done.folder)) for path in files}
    for path in files:
        content = path.read_bytes()
        entry = listed[str(path.relative_to(done.folder))]
        assert entry["bytes"] == len(content)
        assert entry["sha256"] == hashlib.sha256(content).hexdigest()
    assert [e["attributes"] for e in manifest["files"] if e["path"].endswith(".csv")] == [
        list(table) for table in done.plan.workload.tables
    ]


def test_the_manifest_says_what_was_promised(done):
    manifest, text = done.manifest, done.manifest["guarantee"]
    assert manifest["plan_sha256"] == done.plan.sha256
    assert manifest["plan_sha256"] == next(
        entry["sha256"] for entry in manifest["files"] if entry["path"] == "plan.json"
    )
    assert manifest["privacy_unit"] == "one record"
    assert "ρ = 0.5 for one record" in text
    assert text in (done.folder / "README.md").read_text()
    assert {"python", "rpexplore", "numpy", "pyarrow"} == set(manifest["versions"])
    allowed = {
        "format",
        "format_version",
        "run",
        "finished",
        "plan_sha256",
        "rho",
        "max_records_per_person",
        "privacy_unit",
        "guarantee",
        "noise",
        "postprocessing",
        "unknown_values",
        "records_per_person",
        "interval_confidence",
        "versions",
        "files",
        "sha256",
    }
    assert set(manifest) == allowed  # whoever adds a key thinks about what it gives away


def test_the_plan_in_it_is_the_plan(done):
    assert TablePlan.load(done.folder / "plan.json").text == done.plan.text


def test_residuals_are_whole_numbers_in_the_plan_s_order(done):
    stored = pq.read_table(done.folder / "residuals.parquet").to_pandas()
    assert stored.columns.tolist() == ["residual", "cell", "measured"]
    assert stored["measured"].dtype == np.int64
    sizes = done.plan.closure.sizes
    expected = [
        (residual, cell)
        for residual in range(len(done.plan.closure))
        for cell in range(
            int(np.prod([sizes[i] for i in done.plan.closure.attributes(residual)], dtype=int))
        )
    ]
    assert list(zip(stored["residual"], stored["cell"], strict=True)) == expected


def test_csv_and_parquet_hold_the_same(done):
    """But for rounding, by at most half a millionth of the smallest standard error."""
    for position, table in enumerate(done.plan.workload.tables):
        cells = done.table(table)
        path = done.folder / f"{path_of(done.plan, position)}.csv"
        half = 0.501e-6 * cells["standard_error"].min()
        with path.open(encoding="utf-8", newline="") as file:
            header, *rows = list(csv.reader(file))
        assert header == cells.columns.tolist()
        assert len(rows) == len(cells) == int(done.plan.workload.exact_cells[position])
        for column, name in enumerate(header):
            texts = [row[column] for row in rows]
            if name in ("value", "standard_error", "lower_95", "upper_95"):
                assert np.allclose(np.array(texts, float), cells[name], rtol=0, atol=half)
            else:
                assert texts == cells[name].tolist()


def test_columns_and_labels(done):
    cells = done.table(["letter", "size"])
    estimates = ["value", "standard_error", "lower_95", "upper_95"]
    assert cells.columns.tolist() == ["letter", "letter label", "size", *estimates]
    assert cells["letter"].tolist() == ["a", "a", "b", "b"]
    assert cells["letter label"].tolist() == ["the letter a"] * 2 + ["the letter b"] * 2
    assert cells["size"].tolist() == ["0 to under 0.5", "0.5 to 2"] * 2
    assert done.table(["digit"])["digit"].tolist() == ["0 to 3", "4 to 7", "8 to 9"]


def test_the_interval_has_the_normal_width(done):
    cells = done.table(["letter", "digit"])
    error = done.plan.largest_variance(["letter", "digit"]) ** 0.5
    assert np.allclose(cells["standard_error"], error)
    # 1.959963984540054: the 97.5 % point of the standard normal law, in any table of it.
    assert np.allclose(cells["upper_95"] - cells["value"], 1.959963984540054 * error)
    assert np.allclose(cells["value"] - cells["lower_95"], 1.959963984540054 * error)


def test_a_finished_release_can_be_read_by_others(done):
    assert done.folder.stat().st_mode & 0o777 == 0o755


# --- attributes in other bases than single values


@pytest.fixture(scope="module")
def release_in_bases(tmp_path_factory) -> TableRelease:
    """Four ways to ask, one attribute in two of them."""
    letters = Categories(tuple("abc"), ("the letter a", "the letter b", "the letter c"))
    domain = domain_of(
        Attribute("letter", letters, groups=(("vowel",), ("other",), ("other",))),
        Attribute("digit", Integers(0, 9, 2)),
        Attribute("size", Bins((0, 0.5, 2))),
        Attribute("plain", Categories(("k", "l"))),
    )
    workload = Workload.all_up_to(domain, 2).with_bases(
        {
            "letter": Hierarchy(),
            "digit": Ranges(),
            "size": CustomBasis(((1, 0), (0.5, 1)), ("low", "mix")),
        }
    )
    workload = workload.with_bases({"digit": Prefix()}, tables=["digit", ("digit", "size")])
    folder = tmp_path_factory.mktemp("asked")
    frame = pd.DataFrame(
        {
            "letter": list("abbc"),
            "digit": [0, 4, 9, 8],
            "size": [0.25, 0.5, 2, 1],
            "plain": list("klkl"),
        }
    )
    frame.to_csv(folder / "records.csv", index=False)
    planned = plan_tables(workload, loss=SumOfVariances(), budget=Budget(rho="1/2"))
    release(planned, folder / "records.csv", folder / "release")
    return TableRelease.load(folder / "release")


def test_a_row_is_an_answer(release_in_bases):
    letters = release_in_bases.table("letter")
    assert letters["letter"].tolist() == ["all", "vowel", "other", "a", "b", "c"]
    assert letters["letter label"].tolist() == [
        *("all", "vowel", "other", "the letter a", "the letter b", "the letter c")
    ]
    assert release_in_bases.table("digit")["digit"].tolist() == ["≤ 1", "≤ 3", "≤ 5", "≤ 7", "≤ 9"]
    assert release_in_bases.table("size")["size"].tolist() == ["low", "mix"]
    cells = release_in_bases.table(["letter", "digit"])
    assert len(cells) == 6 * 15
    assert cells["digit"].tolist()[:3] == ["0 to 1", "0 to 3", "0 to 5"]
    # What has no basis keeps its values and labels.
    assert release_in_bases.table(["digit", "plain"])["plain"].tolist()[:2] == ["k", "l"]
    for position, table in enumerate(release_in_bases.plan.workload.tables):
        cells = release_in_bases.table(table)
        assert len(cells) == int(release_in_bases.plan.workload.exact_cells[position])
        errors = release_in_bases.plan.cell_standard_errors(table).ravel()
        assert np.allclose(cells["standard_error"], errors, rtol=1e-12)
        margin = 1.959963984540054 * errors
        assert np.allclose(cells["upper_95"] - cells["value"], margin)
        assert np.allclose(cells["value"] - cells["lower_95"], margin)
        path = release_in_bases.folder / f"{path_of(release_in_bases.plan, position)}.csv"
        texts = pd.read_csv(path, keep_default_na=False, dtype=str)
        for name in table:
            assert texts[name].tolist() == cells[name].tolist()
        half = 0.501e-6 * errors.min()
        assert np.allclose(texts["value"].astype(float), cells["value"], rtol=0, atol=half)
    assert len(set(release_in_bases.table(["letter", "digit"])["standard_error"].round(9))) > 5


def test_residuals_of_strategies_have_a_row_of_the_matrix_each(release_in_bases):
    stored = pq.read_table(release_in_bases.folder / "residuals.parquet").to_pandas()
    assert stored["measured"].dtype == np.int64
    sizes = [2, 4, 1, 2]  # n − 1 where there is a strategy
    for residual in range(len(release_in_bases.plan.closure)):
        indices = release_in_bases.plan.closure.attributes(residual)
        rows = int(np.prod([sizes[index] for index in indices], dtype=int))
        cells = stored["cell"][stored["residual"] == residual].tolist()
        assert cells == list(range(rows))


def test_the_readme_says_what_a_row_counts(release_in_bases, done):
    text = (release_in_bases.folder / "README.md").read_text()
    assert "## What a row counts" in text
    for line in (
        '- `letter`, hierarchy: groups and single values; 6 rows, such as "the letter a"\n',
        '- `digit` (in 2 of the tables), cumulative: up to each value; 5 rows, such as "≤ 5"\n',
        "- `digit` (in 2 of the tables), ranges: every range of values; 15 rows, such as ",
        '- `size`, own matrix; 2 rows, such as "mix"\n',
    ):
        assert line in text
    assert "`plain`" not in text
    assert "name, weighted by the numbers in\n`plan.json` where the basis is an own matrix" in text
    assert ".answer(where={" in text
    assert "one measurement for each row of their matrix in\n`plan.json`" in text
    assert all(len(line) <= 100 for line in text.splitlines() if "zCDP" not in line)
    plain = (done.folder / "README.md").read_text()
    assert "What a row counts" not in plain
    assert "cells add up to the totals of smaller tables" in plain
    assert "the noisy count. Unbiased" in plain


def test_one_attribute_of_rolling_sums_is_explained(tmp_path):
    domain = domain_of(Attribute("day", Integers(0, 5)))
    workload = Workload.all_up_to(domain, 1).with_bases({"day": Windows(3)})
    pd.DataFrame({"day": [0, 5]}).to_csv(tmp_path / "records.csv", index=False)
    planned = plan_tables(workload, loss=SumOfVariances(), budget=Budget(rho=1))
    text = (
        release(planned, tmp_path / "records.csv", tmp_path / "out").folder / "README.md"
    ).read_text()
    assert '- `day`, moving sums of 3 values; 6 rows, such as "1 to 3"' in text
    assert "weighted" not in text


def test_nothing_but_noisy_figures_and_the_plan(release_in_bases):
    """Every number of the folder follows from the plan and the measured integers."""
    again = TableRelease.load(release_in_bases.folder)
    files = {p.name for p in release_in_bases.folder.iterdir()}
    assert files == {"README.md", "manifest.json", "plan.json", "residuals.parquet", "tables"}
    workload = again.plan.workload
    assert len(list((release_in_bases.folder / "tables").iterdir())) == 2 * len(workload)
    for table in workload.tables:
        values = again.counts(table)["value"].to_numpy()
        released = again.table(table)["value"].to_numpy()
        shape = [workload.domain[name].size for name in table]
        asks = [
            queries_of(workload, workload.position(table), index)
            for index in workload.domain.positions(table)
        ]
        expected = values.reshape(shape)
        for axis, each in enumerate(asks):
            expected = each.of(expected, axis)
        assert np.allclose(released, expected.ravel(), rtol=1e-9, atol=1e-9)


def queries_of(workload, position, index):
    return query_matrix(workload.basis_of(position, index), workload.domain.attributes[index])


# --- names and labels


def test_odd_names_stay_inside_and_apart(tmp_path):
    domain = domain_of(*[Attribute(name, Integers(0, 1)) for name in ODD_NAMES])
    done = released(domain, tmp_path / "work", file_per_table=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["work"]
    assert sorted(path.name for path in (tmp_path / "work").iterdir()) == [
        "out",
        "records.csv",
        "rpexplore-ledger.sqlite",
    ]
    paths = {path_of(done.plan, i) for i in range(len(done.plan.workload))}
    assert len(paths) == len(done.plan.workload)
    assert all(re.fullmatch(r"tables/\d{4}_[A-Za-z0-9_-]{0,80}", path) for path in paths)
    for position, table in enumerate(done.plan.workload.tables):
        cells = done.table(table)
        assert cells.columns.is_unique
        assert len(cells.columns) == len(table) + len(RELEASED)
        assert Schema.of(cells).figures == RELEASED
        assert all(cells[name].dtype == float for name in names_of(RELEASED))
        assert cells.equals(cells.astype(done.counts(table).dtypes))
        for column, name in zip(cells.columns, table, strict=False):
            assert column.startswith(name)
        header = pq.read_schema(done.folder / f"{path_of(done.plan, position)}.parquet").names
        assert header == cells.columns.tolist()
    TableRelease.load(done.folder)


def test_more_tables_than_the_number_in_the_name_has_digits_are_told_apart(tmp_path):
    """Names cut at 80 characters, or without a letter, differ by their number alone."""
    domain = domain_of(*[Attribute("年" * (i + 1), Integers(0, 1)) for i in range(3)])
    done = released(domain, tmp_path)
    assert len({path_of(done.plan, i) for i in range(7)}) == 7


def test_odd_labels_come_back(tmp_path):
    values = tuple(f"v{i}, \"'\n" for i in range(len(ODD_LABELS)))
    domain = domain_of(
        Attribute("a", Categories(values, ODD_LABELS)),
        Attribute("a label", Categories(ODD_LABELS)),
    )
    columns = {"a": list(values), "a label": list(ODD_LABELS)}
    done = released(domain, tmp_path, **columns)
    cells = done.table(["a", "a label"])
    assert cells.columns.tolist()[:3] == ["a", "a label", "a label (attribute)"]
    with (done.folder / f"{path_of(done.plan, 3)}.csv").open(encoding="utf-8", newline="") as file:
        _, *rows = list(csv.reader(file))
    expected = [
        [value, label, other]
        for value, label in zip(values, ODD_LABELS, strict=True)
        for other in ODD_LABELS
    ]
    assert [row[:3] for row in rows] == expected
    assert cells.iloc[:, :3].to_numpy().tolist() == expected


def test_a_table_without_attributes_and_single_values(tmp_path):
    domain = domain_of(Attribute("one", Integers(1, 1)), Attribute("k", Categories(("k",))))
    done = released(domain, tmp_path, one=[1, 1], k=["k", "k"])
    assert len(pq.read_table(done.folder / "residuals.parquet")) == 1
    total = done.table([])["value"].tolist()
    assert len(total) == 1
    for table in (["one"], ["k"], ["one", "k"]):
        assert done.table(table)["value"].tolist() == total
        assert done.counts(table)["value"].tolist() == total
