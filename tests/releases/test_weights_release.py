"""Releases of weighted counts: exact, unbiased, within what is booked, with honest intervals."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import rpexplore as rp
from rpexplore.data.frames import FrameSource
from rpexplore.planning.planner import plan_tables
from rpexplore.releases.contributions import Contributions
from rpexplore.releases.measurement import exact_residual
from tests.releases.test_amounts_release import SAMPLER, Measured
from tests.statistical.linear_release import LinearRelease

WEIGHTS = rp.Amounts(0, 40, decimals=1, missing=(("", "none"),), are_weights=True)
DOMAIN = rp.Domain(
    (
        rp.Attribute("region", rp.Integers(0, 2)),
        rp.Attribute("w", WEIGHTS),
        rp.Attribute("sex", rp.Integers(0, 1)),
    )
)
RECORDS = pd.DataFrame(
    {
        "region": [0, 0, 0, 1, 1, 2],
        # 40 at most; rounded half to even to 10.2; missing; 0 at least.
        "w": [250.0, 10.25, None, -7.0, 3.5, 32.0],
        "sex": [0, 1, 0, 1, 0, 1],
    }
)


def workload(unweighted=(("sex",),)):
    return rp.Workload.all_up_to(DOMAIN, 2).weighted_by("w", unweighted=unweighted)


def planned(rho=1):
    return rp.plan(workload(), loss=rp.SumOfVariances(), budget=rp.Budget(rho=rho))


def test_without_noise_weighted_counts_are_sums_of_the_clamped_weights(tmp_path, monkeypatch):
    monkeypatch.setattr(SAMPLER, lambda size, _: np.zeros(size, dtype=np.int64))
    released = rp.release(
        planned(), RECORDS, tmp_path / "out", name="m", ledger=tmp_path / "ledger"
    )
    table = released.table("region", "w")
    assert table["w"].tolist() == ["weighted count"] * 3
    # 40 + 10.2; 0 + 3.5; 32
    np.testing.assert_allclose(table["value"], [50.2, 3.5, 32.0], atol=1e-9)
    by_sex = released.table("region", "w", "sex")["value"]
    np.testing.assert_allclose(by_sex, [40, 10.2, 3.5, 0, 0, 32], atol=1e-9)
    np.testing.assert_allclose(released.table("w")["value"], [85.7], atol=1e-9)
    np.testing.assert_allclose(released.table("sex")["value"], [3, 3], atol=1e-9)
    for row, value in {"weighted count": 82.2, "records": 3, "none": 0}.items():
        where = {"w": row, "region": "0, 2"}
        value += {"weighted count": 0, "records": 0, "none": 1}[row]
        assert released.answer(where=where).value == pytest.approx(value)
    # A mean weight is nobody's question.
    assert [item.title for item in released.items] == ["w", "sex", "region × w", "region × w × sex"]
    assert not (tmp_path / "out" / "means").exists()
    with pytest.raises(rp.errors.WorkloadError, match="no means"):
        released.means("region", "w")
    for item in released.items[2:]:
        meaning = item.read().schema.field("value").metadata[b"meaning"].decode()
        assert "Weights below 0 count as 0, those above 40 as 40." in meaning
        assert meaning.startswith("The noisy weighted count")
    readme = (tmp_path / "out" / "README.md").read_text()
    assert "### Weighted counts" in readme
    assert "means/" not in readme
    assert "`w`, rounded to 1 decimal: weights below 0 count as 0" in readme


def cost_of(plan, record):
    """Exactly, in rationals: what a record moves, over the noise."""
    tables = [plan.closure.attributes(residual) for residual in range(len(plan.closure))]
    counts = FrameSource(record, name="one").count(plan.domain, tables)
    cost = Fraction(0)
    for residual in range(len(plan.closure)):
        moved = exact_residual(plan, residual, counts)
        scale = plan.closure.integer_scale(residual)
        squares = sum(int(number) ** 2 for number in moved.ravel())
        cost += Fraction(squares, scale**2) / plan.sigma_squared.fraction(residual)
    return cost


@pytest.mark.parametrize("weight", [0, 40, 17.3, 1e9, -1e9, 0.04, None])
def test_no_weight_costs_more_privacy_than_is_booked(weight):
    plan = planned().part("tables")
    record = pd.DataFrame({"region": [1], "w": [weight], "sex": [0]})
    cost = cost_of(plan, record)
    assert 0 < cost <= plan.exact_privacy_cost
    if weight in (0, 40):  # where some record costs all of it, it is one at an end
        assert cost >= plan.exact_privacy_cost * Fraction(9, 10)


def test_every_weighted_cell_is_unbiased_and_as_accurate_as_it_says():
    """The release itself, linear in its noise: exact means and variances, and 4,000 of them.

    The standard deviation of a share of 4,000 × 12 at 0.95, of cells that are independent, is
    0.001; of cells that all go together 0.0034.
    """
    plan = plan_tables(workload(), loss=rp.SumOfVariances(), budget=rp.Budget(rho="0.02"))
    rng = np.random.default_rng(3)
    people = pd.DataFrame(
        {
            "region": rng.integers(0, 3, 500),
            "w": np.where(rng.random(500) < 0.1, np.nan, np.round(rng.gamma(2, 8, 500), 1)),
            "sex": rng.integers(0, 2, 500),
        }
    )
    tables = [plan.closure.attributes(residual) for residual in range(len(plan.closure))]
    counts = FrameSource(people, name="people").count(plan.domain, tables)
    weighted = np.flatnonzero(plan.workload.is_weighted).tolist()

    def released():
        answers = Contributions(plan, Measured(plan, counts))
        return np.concatenate([answers.answers(table).ravel() for table in weighted]) * 40

    linear = LinearRelease.of(released, SAMPLER)
    people["w"] = people["w"].fillna(0).clip(0, 40)
    sums = [
        [people["w"].sum()],
        people.groupby("region")["w"].sum(),
        people.groupby(["region", "sex"])["w"].sum(),
    ]
    truth = np.concatenate(sums)
    np.testing.assert_allclose(linear.without_noise, truth, rtol=1e-9)
    names = [plan.workload.tables[table] for table in weighted]
    errors = np.concatenate([plan.cell_standard_errors(table).ravel() for table in names])
    np.testing.assert_allclose(np.diag(linear.covariance), errors**2, rtol=1e-9)
    held = np.abs(linear.errors(4000)) <= 1.959964 * errors
    assert 0.94 <= held.mean() <= 0.96


INCOME = rp.Amounts(-10, 1000, unit="EUR", missing=(("", "not stated"),))
OF_AMOUNTS = rp.Domain((*DOMAIN, rp.Attribute("income", INCOME)))
EARNED = RECORDS.assign(income=[100.4, 2000, 7, -20, None, 50])


def weighted_sums(rho=1):
    tables = rp.Workload.of(OF_AMOUNTS, [("region", "income"), ("income",), ("sex",)])
    budget = rp.Budget(rho=rho)
    return rp.plan(tables.weighted_by("w"), loss=rp.SumOfVariances(), budget=budget)


def test_without_noise_weighted_sums_and_means_are_those_of_clamped_values(tmp_path, monkeypatch):
    monkeypatch.setattr(SAMPLER, lambda size, _: np.zeros(size, dtype=np.int64))
    out, ledger = tmp_path / "out", tmp_path / "ledger"
    released = rp.release(weighted_sums(100), EARNED, out, name="m", ledger=ledger)
    table = released.table("region", "w", "income")
    by_row = table.pivot(index="region", columns="income", values="value")
    # 40 · 100 + 10.2 · 1000; 0 · −10, and 3.5 of whom nothing is stated; 32 · 50
    np.testing.assert_allclose(by_row["sum (EUR)"], [14_200, 0, 1_600], atol=1e-9)
    np.testing.assert_allclose(by_row["records"], [50.2, 0, 32], atol=1e-9)
    np.testing.assert_allclose(by_row["not stated"], [0, 3.5, 0], atol=1e-9)
    means = released.part("tables").means("region", "w", "income")
    assert means["value"][0] == pytest.approx(14_200 / 50.2)
    assert means["w"].tolist() == ["weighted"] * 3
    item = next(one for one in released.items if one.title == "region × w × income")
    meaning = item.read().schema.field("value").metadata[b"meaning"].decode()
    assert meaning.startswith("The noisy weighted sum")
    assert "above 40 as 40." in meaning
    assert "above 1,000 EUR as 1,000." in meaning
    # Weights of one decimal; 1,010 and 400 steps are multiples of ten: to a euro.
    rounded = "Each amount times its weight is rounded, by at most 0.5 EUR."
    assert rounded in meaning
    assert rounded in (out / "README.md").read_text().replace("\n ", "")


@pytest.mark.parametrize(
    ("weight", "income"), [(0, 0), (40, 1000), (40, -10), (17.3, None), (None, 5), (9, 7)]
)
def test_no_weighted_amount_costs_more_privacy_than_is_booked(weight, income):
    plan = weighted_sums().part("tables")
    record = pd.DataFrame({"region": [1], "w": [weight], "sex": [0], "income": [income]})
    cost = cost_of(plan, record)
    assert 0 < cost <= plan.exact_privacy_cost
    if income == 1000:  # where some record costs all of it, it is one at an end of both
        assert cost >= plan.exact_privacy_cost * Fraction(9, 10)
