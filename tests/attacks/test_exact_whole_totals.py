"""Totals that are known exactly, in tables of whole numbers that cannot have all totals."""

import numpy as np
import pandas as pd
import pytest

import rpexplore as rp
from rpexplore.errors import ReleaseError
from rpexplore.estimation import whole_numbers
from rpexplore.estimation.whole_numbers import with_margins

SIZES = {"a": 12, "b": 10, "c": 9, "d": 3}
DOMAIN = rp.Domain.from_sizes(SIZES)
RNG = np.random.default_rng(8)
RECORDS = pd.DataFrame(
    {name: RNG.choice(n, 900, p=RNG.dirichlet(np.full(n, 0.7))) for name, n in SIZES.items()}
)
# One of three attributes that is too large for a search, and one of four.
TABLES = [("c",), ("a", "b", "c"), ("a", "b", "c", "d")]


def counts(names) -> np.ndarray:
    edges = [np.arange(SIZES[name] + 1) for name in names]
    return np.histogramdd(RECORDS[list(names)].to_numpy(), edges)[0]


def released(folder, **budget):
    plan = rp.plan(
        rp.Workload.of(DOMAIN, TABLES),
        loss=rp.SumOfVariances(),
        budget=rp.Budget(rho="1/2", **budget),
    )
    return rp.release(plan, RECORDS, folder / "out", name="survey", ledger=folder / "ledger.sqlite")


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    return released(tmp_path_factory.mktemp("released"))


def check(made, totals):
    for names in made.table_names:
        values = made.table(names)["value"].to_numpy().reshape([SIZES[name] for name in names])
        assert np.array_equal(values, np.rint(values))
        for total in totals:
            if set(total) <= set(names):
                others = tuple(axis for axis, name in enumerate(names) if name not in total)
                assert values.sum(axis=others).tolist() == counts(total).tolist()
        if made.manifest["method"]:
            assert values.min() >= 0


@pytest.mark.parametrize("method", ["nonnegative", None])
@pytest.mark.parametrize("known", [["c"], ["bc"], ["ab", "bc"], ["a", "b", "c"]])
def test_whole_tables_have_known_totals_however_large_they_are(release, tmp_path, known, method):
    totals = {tuple(one): counts(one) for one in known}
    made = rp.postprocess(
        release, tmp_path / "made", method=method, rounded=True, known_totals=totals
    )
    check(made, totals)
    assert "and met exactly" in (tmp_path / "made/README.md").read_text()


def test_whole_tables_keep_the_exact_totals_of_a_release(tmp_path):
    release = released(tmp_path, neighbours="replace", exact=["d", "c"])
    check(rp.postprocess(release, tmp_path / "whole", rounded=True), [("c",), ("d",)])


def test_totals_for_which_no_whole_table_is_found_are_refused(release, tmp_path):
    totals = {tuple(one): counts(one) for one in ("ab", "ac", "bc")}
    with pytest.raises(ReleaseError, match="a × b × c was not found in whole numbers that have"):
        rp.postprocess(release, tmp_path / "made", rounded=True, known_totals=totals)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("is_searched", [True, False])
@pytest.mark.parametrize("kept", [[(0, 1), (1, 2)], [(0, 3), (1, 2)], [(0,), (1,), (2, 3)]])
def test_margins_are_met_by_search_and_by_moves(monkeypatch, kept, is_searched):
    if not is_searched:
        monkeypatch.setattr(whole_numbers, "MOST_SEARCHED", 0)
        monkeypatch.setattr(whole_numbers, "MOST_OF_THREE", 0)
    rng = np.random.default_rng(5)
    truth = rng.poisson(0.7, (4, 3, 5, 2)).astype(float)
    # Other counts with the same sums: the true ones with what margins do not see spread.
    values = truth.copy()
    for _ in range(3):
        noise = rng.normal(size=truth.shape)
        for own in kept:
            others = tuple(axis for axis in range(4) if axis not in own)
            noise -= noise.mean(axis=others, keepdims=True)
        values += noise
    margins = []
    for own in kept:
        others = tuple(axis for axis in range(4) if axis not in own)
        values += (truth - values).mean(axis=others, keepdims=True)
        margins.append((others, truth.sum(axis=others)))
    assert all(np.allclose(values.sum(axis=others), sums) for others, sums in margins)
    whole = with_margins(values, margins, np.ones(truth.shape, bool))
    assert whole is not None
    assert np.array_equal(whole, np.rint(whole))
    assert all(np.array_equal(whole.sum(axis=others), sums) for others, sums in margins)
    assert np.abs(whole - values).max() < (2 if is_searched else 4)
