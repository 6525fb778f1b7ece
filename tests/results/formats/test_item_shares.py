"""Shares beside the figures of exports, of every kind of results."""

import numpy as np
import pandas as pd
import pytest

import rpexplore as rp
from rpexplore.domain.result_schema import frame_of
from rpexplore.results.estimates.area_counts import area_guesses
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


def test_groups_have_shares_of_a_sum_also_in_areas_and_best_guesses_without_totals(tmp_path):
    income = rp.Attribute("income", rp.Amounts(0, 9, unit="EUR"))
    sex = rp.Attribute("sex", rp.Categories(("f", "m")))
    tree = rp.AreaTree.from_columns({"region": ["N", "S"]})
    domain = rp.Domain((sex, income))
    tables = rp.Workload.of(domain, [("sex",), ("sex", "income")])
    in_areas = rp.AreaWorkload.of_levels(tree, {"region": tables})
    request = rp.Request(tables=tables, areas=in_areas, budget=rp.Budget(rho=10))
    rng = np.random.default_rng(3)
    records = pd.DataFrame({"sex": rng.choice(["f", "m"], 600), "income": rng.integers(0, 9, 600)})
    records["region"] = rng.choice(["N", "S"], 600)
    rp.release(rp.plan(request), records, tmp_path / "r", name="x", ledger=tmp_path / "ledger")
    release = rp.load_results(tmp_path / "r")
    of_total = {}
    for part in load_any_results(tmp_path / "r").readers:
        item = next(one for one in part.items if "income" in one.attributes)
        for of in ("row", "column", "total"):
            table = frame_of(with_shares(part, item, item.read(), of))
            if of == "row":  # a sum and a number of records add up to nothing
                assert table["share"].isna().all()
                continue
            by = [name for name in ("region", "income") if name in table]
            totals = table.groupby(by)["value"].transform("sum")
            np.testing.assert_allclose(table["share"], 100 * table["value"] / totals, rtol=1e-9)
        of_total[part.kind] = table
    one, other, both = (
        release.answer(where={"income": "sum", **where})
        for where in ({"sex": "f"}, {"sex": "m"}, {})
    )
    # var(f + m) = var f + var m + 2 cov(f, m) gives the covariance of a part and the whole.
    square = both.standard_error**2
    covariance = (square + one.standard_error**2 - other.standard_error**2) / 2
    share = one.value / both.value
    error = (one.standard_error**2 - 2 * share * covariance + share**2 * square) ** 0.5 / both.value
    row = of_total["tables"].iloc[0]
    assert (row["sex"], row["income"]) == ("f", "sum (EUR)")
    of_sex = rp.shares(release, {"income": "sum", "sex": "f"})
    assert of_sex["value"].item() == pytest.approx(100 * share)
    assert of_sex["standard_error"].item() == pytest.approx(100 * error)
    assert row["share_standard_error"] == pytest.approx(100 * error)

    area_guesses(load_any_results(tmp_path / "r").area_tables(), tmp_path / "g")
    (part,) = load_any_results(tmp_path / "g").readers
    (item,) = part.items
    table = frame_of(with_shares(part, item, item.read(), "total"))
    totals = table.groupby("region")["value"].transform("sum")
    np.testing.assert_allclose(table["share"], 100 * table["value"] / totals)
    assert SHARES[1] not in table


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
    with pytest.raises(rp.errors.RpexploreError, match="Shares are of"):
        publish(sources / kind, tmp_path / "no", shares="rows")
