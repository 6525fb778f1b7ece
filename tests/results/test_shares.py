"""Shares in per cent, beside the dense covariance matrix of everything that they are made of."""

from itertools import product

import numpy as np
import pandas as pd
import pytest

import rpexplore as rp
from rpexplore.errors import WorkloadError
from rpexplore.planning.planner import plan_tables
from rpexplore.results.area_results import AreaResults
from rpexplore.results.shares import share_of_counts
from tests.releases.area_plans import PLANS, RECORDS
from tests.support.query_lists import query_plan

SIZES = {"status": 3, "sex": 2, "region": 4}
DOMAIN = rp.Domain.from_sizes(SIZES)
FRAME = pd.DataFrame(
    {"status": [i * i % 3 for i in range(600)], "sex": [i % 2 for i in range(600)],
     "region": [i % 11 % 4 for i in range(600)]}
)  # fmt: skip


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shares")
    workload = rp.Workload.of(DOMAIN, [tuple(SIZES), ("status", "sex")])
    asked = workload.with_bases({"status": rp.Prefix()})
    plan = plan_tables(asked, loss=rp.SumOfVariances(), budget=rp.Budget(rho=1))
    return rp.release(plan, FRAME, folder / "out", name="shares", ledger=folder / "l").part(
        "tables"
    )


def dense(tables):
    """The counts of all cells, and their covariances, pair by pair."""
    noise = tables.marginals(list(SIZES))[0].noise
    cells = [
        {axis: np.eye(size)[place] for axis, (size, place) in enumerate(zip(SIZES.values(), cell,
                                                                           strict=True))}
        for cell in product(*map(range, SIZES.values()))
    ]  # fmt: skip
    covariances = np.array([[noise.covariance(a, b) for b in cells] for a in cells])
    return tables.counts(*SIZES)["value"].to_numpy(), covariances


def test_shares_have_the_errors_of_the_dense_matrix(released):
    counts, covariance = dense(released)
    table = rp.shares(released, {"status": "1"}, per=["region"], among={"sex": "0"})
    assert table["region"].tolist() == ["0", "1", "2", "3"]
    for region, row in table.iterrows():
        counted = np.kron(np.kron([0, 1, 0], [1, 0]), np.eye(4)[region])
        base = np.kron(np.kron([1, 1, 1], [1, 0]), np.eye(4)[region])
        p = counted @ counts / (base @ counts)
        # Var(count − p base) / base²; the interval: where (count − r base)² = 1.96² its variance.
        error = np.sqrt((counted - p * base) @ covariance @ (counted - p * base)) / (base @ counts)
        assert row["value"] == pytest.approx(100 * p)
        assert row["standard_error"] == pytest.approx(100 * error)
        for end in (row["lower_95"] / 100, row["upper_95"] / 100):
            difference = counted - end * base
            variance = difference @ covariance @ difference
            assert (difference @ counts) ** 2 == pytest.approx(1.959964**2 * variance, rel=1e-5)


def test_shares_of_small_bases_are_empty(released):
    table = rp.shares(released, {"sex": "1"}, per=["region"], cv_limit=0.001)
    assert table["value"].isna().all()
    assert table["upper_95"].isna().all()


@pytest.mark.parametrize(
    ("per", "where", "message"), [(["sex"], {"sex": "1"}, "cannot both"), (["x"], {}, "'x'")]
)
def test_shares_that_mean_nothing_are_refused(released, per, where, message):
    with pytest.raises(rp.errors.RpexploreError, match=message):
        rp.shares(released, where, per=per)


def test_shares_of_amounts_that_mean_nothing_are_refused(tmp_path):
    income, gain = (
        rp.Attribute(name, rp.Amounts(low, 9)) for name, low in (("income", 0), ("gain", -9))
    )
    domain = rp.Domain((DOMAIN["sex"], income, gain))
    asked = rp.Workload.of(domain, [("sex", "income"), ("sex", "gain")])
    plan = plan_tables(asked, loss=rp.SumOfVariances(), budget=rp.Budget(rho=1))
    rows = FRAME[["sex"]].assign(income=3, gain=-3)
    sums = rp.release(plan, rows, tmp_path / "sums", name="shares", ledger=tmp_path / "l")
    for where, per, words in (
        ({"income": "sum"}, ["sex"], "100 % of itself"),
        ({"income": "mean", "sex": "0"}, [], "no part of a whole"),
        ({"gain": "sum", "sex": "0"}, [], "may be below 0"),
        ({"sex": "0"}, ["income"], "told apart or limited"),
    ):
        with pytest.raises(WorkloadError, match=words):
            rp.shares(sums, where, per=per)
    halves = rp.shares(sums, {"gain": "records", "sex": "0"})
    assert halves["value"].item() == pytest.approx(50, abs=2)


def test_areas_have_shares_of_their_own(tmp_path):
    frame = pd.DataFrame(RECORDS)
    plan = PLANS["the same"]
    areas = rp.release(plan, frame, tmp_path / "areas", name="shares", ledger=tmp_path / "ledger")
    results = AreaResults(areas.area_tables())
    tables = results.side_by_side(1, results.tree.level_slice(1))
    table = rp.shares(tables, {"sex": "1"}, per=["age"], cv_limit=10.0)
    counts = tables.counts("sex", "age")
    for region, age, value in zip(table["region"], table["age"], table["value"], strict=True):
        here = counts[(counts["region"] == region) & (counts["age"] == age)]
        of_sex = here.set_index("sex")["value"]
        assert value == pytest.approx(100 * of_sex["1"] / of_sex.sum(), nan_ok=True)
    assert len(table) == 3 * 3


def test_an_own_count_is_a_share_of_another(tmp_path):
    domain = rp.Domain((DOMAIN["sex"],))
    rows, names = np.array([[1, 1], [0, 1]]), ("all", "women")
    counts = rp.QueryList(domain, rows, names, np.array([5.0, 9.0]))
    plan = query_plan(counts, budget=rp.Budget(rho=1))
    made = rp.release(plan, FRAME, tmp_path / "counts", name="shares", ledger=tmp_path / "ledger")
    value, error, *_ = share_of_counts(made.own_counts, "women", "all")
    answers = made.answers["answer"].to_numpy()
    p = answers[1] / answers[0]
    # Straight from what was measured: y = R x + noise of variance γ², answers W R⁺ y.
    decoding = rows @ np.linalg.pinv(plan.strategy.integers.astype(float))
    difference = decoding[1] - p * decoding[0]
    variance = float(plan.gamma_squared) * (difference @ difference)
    assert value == pytest.approx(100 * p)
    assert error == pytest.approx(100 * np.sqrt(variance) / answers[0])
