"""Weights for smooth tables, against the formula by hand."""

import json

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.errors import WorkloadError
from rpexplore.workload.smooth_weights import PairDependence, SmoothWeights

DOMAIN = rp.Domain.from_sizes({"a": 2, "b": 5, "c": 4, "d": 3})


def test_weights_are_those_of_the_formula_and_small_tables_are_added():
    # r = 16 · 12,500² / 2.5e9 = 1; t = 0.003.
    tables = rp.Workload.of(DOMAIN, [("b",), ("a", "b", "c")])
    weighted = SmoothWeights(rho=16, records=12_500).weighted(tables)
    assert dict(zip(weighted.tables, weighted.weights.tolist(), strict=True)) == pytest.approx(
        {
            ("a",): 0.2,
            ("b",): 0.5,
            ("c",): 0.4,
            ("a", "b"): 1.58,  # 10^0.2
            ("a", "c"): 1.52,  # 8^0.2
            ("b", "c"): 1.82,  # 20^0.2
            ("a", "b", "c"): 0.0131,  # 0.003 · 40^0.4
        }
    )


def test_much_noise_moves_weight_to_one_way_tables_and_no_weight_vanishes():
    tables = rp.Workload.all_of_order(DOMAIN, 4)
    # r = 1e-4: 0.1 · 10 a value; t = 0.003 · 1e-3.6, and t² below the least.
    weights = SmoothWeights(rho=rp.Budget(rho="0.0016").rho, records=12_500).weighted(tables)
    one_way, largest = weights.weights[weights.position(("a",))], weights.weights[-1]
    assert one_way == pytest.approx(2)
    assert largest == pytest.approx(1e-7 * 120**0.6, rel=5e-3)
    # r = 1e6: t is bounded.
    assert SmoothWeights(16e6, 12_500).weights(tables) == pytest.approx(0.1**2 * 120**0.6, rel=5e-3)


@pytest.mark.parametrize("number", [1e-300, 1e300, 10**308])
def test_numbers_beyond_all_reason_give_weights_all_the_same(number):
    weights = SmoothWeights(number, number).weights(rp.Workload.all_up_to(DOMAIN, 4))
    assert np.all(np.isfinite(weights))
    assert np.all(weights > 0)


@pytest.mark.parametrize(("rho", "records"), [(0, 100), (1, 0), (1, np.nan), (1, True)])
def test_other_numbers_are_refused(rho, records):
    with pytest.raises(WorkloadError, match="must be a positive number"):
        SmoothWeights(rho, records)


def test_pairs_count_by_how_far_a_release_shows_them_from_independence():
    """The mean distance over the pairs that are known and asked for is (0.3 + 0.1 + 0.002) / 3."""
    shown = PairDependence(
        ("1a2b3c4d5e6f7a8b",),
        ("a", "b", "c", "d"),
        ((0, 1, 0.3), (0, 2, 0.1), (1, 2, 0.002), (2, 3, 1.9)),
    )
    workload = rp.Workload.all_up_to(DOMAIN, 3, only=["a", "b", "c"])
    workload |= rp.Workload.of(DOMAIN, [("a", "d")])
    plain, second = SmoothWeights(16, 12_500), SmoothWeights(16, 12_500, shown)
    mean = 0.402 / 3
    changed = {("a", "b"): 0.3 / mean, ("a", "c"): 0.1 / mean, ("b", "c"): 0.02}
    expected = [changed.get(table, 1.0) for table in workload.tables]
    ratios = second.weights(workload) / plain.weights(workload)
    assert ratios == pytest.approx(expected, rel=0.01)  # both to three digits
    assert second.text.endswith("and what the release 1a2b3c4d5e6f shows of pairs of attributes")
    assert SmoothWeights.from_json(json.loads(json.dumps(second.to_json()))) == second
    assert plain.to_json() == {"rho": 16.0, "records": 12_500}


@pytest.mark.parametrize(
    "pairs", [(), ((1, 0, 0.5),), ((0, 2, 0.5),), ((0, 1, np.nan),), ((0, 1, 3),)]
)
def test_other_pairs_are_refused(pairs):
    with pytest.raises(WorkloadError, match=r"two attributes or more|two places of attributes"):
        PairDependence(("1a",), ("a", "b"), pairs)
