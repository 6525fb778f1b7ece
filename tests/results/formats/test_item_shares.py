"""Shares beside the figures of exports, of every kind of results."""

import numpy as np
import pandas as pd
import pytest

import rpexplore as rp
from rpexplore.domain.result_schema import frame_of
from rpexplore.results.formats.item_shares import with_shares
from rpexplore.results.formats.publishing import publish
from rpexplore.results.results import load_any_results

SHARES = ["share", "share_standard_error"]


@pytest.mark.parametrize("kind", ["released", "combined", "smooth", "whole", "areas", "adaptive"])
def test_columns_are_shares_of_their_totals(sources, kind):
    (part,) = load_any_results(sources / kind).readers
    item = next(item for item in part.items if set(item.attributes) >= {"sex", "value"})
    for of, by in (("row", ["sex"]), ("column", ["value (attribute)"]), ("total", [])):
        table = frame_of(with_shares(part, item, item.read(), of))
        by = [*table.columns[: table.columns.get_loc("sex")], *by]
        groups = table.groupby(list(by), sort=False) if by else [((), table)]
        for _, group in groups:
            known = group[group["share"].notna()]
            total = group["value"].sum()
            if not kind.startswith(("smooth", "whole", "adaptive")):
                expected = 100 * known["value"] / total
                np.testing.assert_allclose(known["share"], expected, rtol=1e-9)
                assert (known["share_standard_error"] > 0).all()
        assert table["share"].notna().any() or kind == "areas"
        assert (SHARES[1] in table) == (kind in ("released", "combined", "areas"))


def test_shares_of_cumulative_rows_are_of_single_values_in_all(sources):
    released = load_any_results(sources / "released")
    (part,) = released.readers
    item = next(item for item in part.items if item.attributes == ("Größe",))
    table = frame_of(with_shares(part, item, item.read(), "total"))
    expected = rp.shares(released, {"Größe": "..2"})
    row = table[table["Größe"] == "≤ 2"].iloc[0]
    assert row["share"] == pytest.approx(expected["value"].iloc[0])
    assert row["share_standard_error"] == pytest.approx(expected["standard_error"].iloc[0])


@pytest.mark.parametrize(
    "kind",
    [
        "released",
        pytest.param("areas", marks=pytest.mark.nightly),  # `tests/results/test_shares.py` has them
        pytest.param("own counts", marks=pytest.mark.nightly),
        pytest.param("amounts", marks=pytest.mark.nightly),
        pytest.param("whole", marks=pytest.mark.nightly),  # its columns are those of the released
    ],
)
def test_all_formats_take_shares(sources, tmp_path, kind):
    formats = ["frictionless", "csvw", "sdmx", "px", "html", "crosstabs", "excel"]
    published = publish(sources / kind, tmp_path / "out", formats=formats, shares="row")
    heads = [
        list(pd.read_csv(tmp_path / "out" / name, nrows=0).columns)
        for name in published.files
        if name.startswith("tables/") and name.endswith(".csv")
    ]
    assert any("share" in head for head in heads) == (kind != "own counts")
    with pytest.raises(rp.RpexploreError, match="Shares are of"):
        publish(sources / kind, tmp_path / "no", shares="rows")
