"""Counts that are printed as "fewer than 6", as the readers of others read them."""

import json

import numpy as np
import openpyxl
import pandas as pd
import pytest
from csvw import CSVW
from pyaxis.pyaxis import parse
from pysdmx.io import get_datasets

import rpexplore as rp
from rpexplore.errors import ReleaseError
from rpexplore.results.formats.export import Export
from rpexplore.results.formats.publishing import publish
from rpexplore.results.formats.readers_page import headed_tables
from rpexplore.results.results import load_any_results

LIMIT = 30
DATA = ("sdmx", "px", "jsonstat", "csvw")


@pytest.mark.parametrize(
    "kind",
    [
        "released",
        *(pytest.param(one, marks=pytest.mark.nightly) for one in ("whole", "guesses", "adaptive")),
    ],
)
def test_small_counts_are_words_in_every_format_and_others_are_as_before(sources, tmp_path, kind):
    publish(sources / kind, tmp_path / "out", formats=DATA, fewer_than=LIMIT)
    folder, n_small = tmp_path / "out", 0
    assert CSVW(str(folder / "csv-metadata.json"), validate=True).is_valid
    for item in load_any_results(sources / kind).items:
        values = item.frame["value"].to_numpy(float)
        small, n_small = values < LIMIT, n_small + np.sum(values < LIMIT)
        kept = np.where(small, np.nan, values)
        words = np.where(small, "fewer than 30", "")
        rows = pd.read_csv(folder / f"tables/{item.name}.csv", keep_default_na=False)
        assert rows["shown_as"].tolist() == words.tolist()
        assert rows.loc[small, ["value", "lower_95", "upper_95"]].eq("").all(axis=None)
        assert (rows["obs_status"].eq("O") == small).all()
        (dataset,) = get_datasets(
            folder / f"sdmx/{item.name.lower()}.csv", folder / "sdmx/structure.xml", validate=True
        )
        observed = pd.to_numeric(dataset.data["OBS_VALUE"])
        np.testing.assert_allclose(observed, kept, atol=1e-5)
        assert dataset.data["SHOWN_AS"].fillna("").tolist() == words.tolist()
        read = parse(str(folder / f"px/{item.name.lower()}.px"), encoding="utf-8")
        assert read["METADATA"]["DATASYMBOL3"] == ["fewer than 30"]
        n_figures = len(read["METADATA"]["CODES(figure)"])
        cells = read["DATA"]["DATA"].iloc[::n_figures]
        assert (cells == '"..."').tolist() == small.tolist()
        data = json.loads((folder / f"jsonstat/{item.name.lower()}.json").read_text("utf-8"))
        assert [one is None for one in data["value"][::n_figures]] == small.tolist()
        status = data["status"] if isinstance(data["status"], dict) else {}
        assert [one == "fewer than 30" for one in status.values()] == small.tolist()[: len(status)]
        assert any("presentation, not protection" in note for note in data["note"])
    assert n_small


def test_readers_see_the_words_and_what_they_are(sources, tmp_path):
    formats = ["html", "crosstabs"]
    publish(sources / "released", tmp_path / "o", formats=formats, fewer_than=30, language="es")
    page = (tmp_path / "o/tables.html").read_text("utf-8")
    assert "Es presentación, no protección" in page
    tables = headed_tables(Export(sources / "released", fewer_than=30), None)
    expected = sum(int((table.values < 30).sum()) for *_, table in tables)
    assert page.count(">menos de 30</td>") == expected
    book = openpyxl.load_workbook(tmp_path / "o/crosstabs.xlsx")
    cells = [cell.value for sheet in book for row in sheet.iter_rows() for cell in row]
    assert cells.count("menos de 30") == expected
    numbers = [one for one in cells if isinstance(one, int | float)]
    assert min(numbers[: len(numbers) // 2]) >= 0  # margins, too, are never below 0


def test_exact_zeros_stay_and_own_counts_are_told_apart(tmp_path):
    married = rp.Attribute("married", rp.Categories(("yes", "no")))
    domain = rp.Domain(
        (rp.Attribute("age", rp.Categories(("young", "old"))), married),
        [{"age": "young", "married": "yes"}],  # pyright: ignore[reportArgumentType]
    )
    coefficients = np.array([[0.0, 1, 0, 0], [0, 2, 0, 0]])
    counts = rp.QueryList(domain, coefficients, ("few", "twice"), np.array([9.0, 9.0]))
    request = rp.Request(
        tables=rp.Workload.of(domain, [("age", "married")]),
        counts=counts,
        budget=rp.Budget(rho="1e6"),
    )
    records = pd.DataFrame({"age": ["young", "young", "old"], "married": "no"})
    rp.release(rp.plan(request), records, tmp_path / "r", name="x", ledger=tmp_path / "l")
    published = publish(tmp_path / "r", tmp_path / "out", formats=["csvw"], fewer_than=3)
    frames = [
        pd.read_csv(tmp_path / "out" / name, keep_default_na=False)
        for name in published.files
        if name.startswith("tables/")
    ]
    (of_counts,) = (frame for frame in frames if "own_count" in frame)
    assert of_counts["shown_as"].tolist() == ["fewer than 3", ""]  # two times 2 is no count
    (table,) = (frame for frame in frames if "own_count" not in frame)
    impossible = table["note"] != ""
    assert abs(float(table.loc[impossible, "value"].item())) < 0.1
    assert table.loc[~impossible, "shown_as"].unique().tolist() == ["fewer than 3"]
    shown = [table for *_, table in headed_tables(Export(tmp_path / "r", fewer_than=3), None)]
    (small,) = (table.small for table in shown if table.columns.names)
    assert small is not None
    assert small[:2, :2].tolist() == [[False, True], [True, True]]
    readme = (tmp_path / "out/README.md").read_text("utf-8")
    assert "figures that are no counts of records are printed as they are" in readme


def test_limits_without_a_meaning_are_refused(sources, tmp_path):
    for kind, options, words in (
        ("amounts", {"fewer_than": 6}, "are no counts of records"),
        ("released", {"fewer_than": 6, "shares": "row"}, "Shares would tell the counts"),
        ("released", {"fewer_than": 6, "formats": ["excel"]}, "choose 'crosstabs'"),
        ("released", {"fewer_than": 1}, "whole number of 2 or more, got 1"),
        ("released", {"fewer_than": 5.5}, "whole number of 2 or more, got 5.5"),
    ):
        with pytest.raises(ReleaseError, match=words):
            publish(sources / kind, tmp_path / "out", **options)
        assert not (tmp_path / "out").exists()
