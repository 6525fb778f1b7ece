"""Releases of amounts: exact integers, sums in their unit, and means with honest intervals."""

from fractions import Fraction
from io import BytesIO
from pathlib import Path

import numpy as np
import openpyxl
import pandas as pd
import pytest

import rpexplore as rp
from rpexplore.data.frames import FrameSource
from rpexplore.data.source import Counts
from rpexplore.domain.amounts import Ranges
from rpexplore.planning.mechanism.variances import CellVariances
from rpexplore.planning.planner import plan_tables
from rpexplore.releases.contributions import Contributions
from rpexplore.releases.means import figures_of, ratio_columns
from rpexplore.releases.measurement import (
    check_countable,
    check_measurable,
    exact_residual,
    measure_residual,
)
from rpexplore.releases.measurement_file import MeasuredFile
from rpexplore.releases.table_release import TableSteps
from rpexplore.results.workbook import workbook_bytes
from rpexplore.workload.query_definitions import stated_from_text
from tests.statistical.linear_release import LinearRelease

SAMPLER = "rpexplore.releases.measurement.discrete_gaussian"
INCOME = rp.Amounts("-0.5", "99.5", decimals=1, unit="EUR", missing=(("", "not stated"),))
DOMAIN = rp.Domain((rp.Attribute("region", rp.Integers(0, 2)), rp.Attribute("income", INCOME)))
RECORDS = pd.DataFrame(
    {
        "region": [0, 0, 0, 1, 1, 2],
        # Clamped to 99.5; rounded half to even to 10.2; missing; clamped to −0.5.
        "income": [250.0, 10.25, None, -7.0, 3.5, 42.0],
    }
)


def planned(*tables, rho=1, domain=DOMAIN):
    workload = rp.Workload.of(domain, tables)
    return rp.plan(workload, loss=rp.SumOfVariances(), budget=rp.Budget(rho=rho))


def test_without_noise_sums_are_those_of_the_clamped_amounts(tmp_path, monkeypatch):
    monkeypatch.setattr(SAMPLER, lambda size, _: np.zeros(size, dtype=np.int64))
    plan = planned(("region", "income"), ("income",), ("region",))
    released = rp.release(
        plan, RECORDS, tmp_path / "out", name="made up", ledger=tmp_path / "ledger"
    )
    table = released.table("region", "income")
    by_row = table.pivot(index="region", columns="income", values="value")
    # 99.5 + 10.2; −0.5 + 3.5; 42
    np.testing.assert_allclose(by_row["sum (EUR)"], [109.7, 3.0, 42.0], atol=1e-9)
    np.testing.assert_allclose(by_row["records"], [2, 2, 1], atol=1e-9)
    np.testing.assert_allclose(by_row["not stated"], [1, 0, 0], atol=1e-9)
    total = released.table("income").set_index("income")["value"]
    assert total.to_dict() == pytest.approx({"sum (EUR)": 154.7, "records": 5, "not stated": 1})
    np.testing.assert_allclose(released.table("region")["value"], [3, 2, 1], atol=1e-9)
    answer = released.answer(where={"income": "sum", "region": "0..1"})
    assert answer.value == pytest.approx(112.7)
    errors = plan.part("tables").cell_standard_errors(("region", "income"))
    np.testing.assert_allclose(table["standard_error"], errors.ravel(), rtol=1e-12)
    # All measured numbers are whole, of counts that are multiplied by the range, 1,000 steps.
    assert plan.part("tables").closure.strategies[1].range_in_steps == 1000
    # The last count, 1, is too small for its noise, so no mean is told.
    means = released.part("tables").means("region", "income")["value"].tolist()
    assert means[:2] == pytest.approx([54.85, 1.5])
    assert np.isnan(means[2])
    assert rp.Release.load(tmp_path / "out").items[-1].read().num_rows == 3


def test_the_mean_of_a_query_is_that_of_its_groups_together(tmp_path):
    """In one group as in the table of means; in several by the sums and counts of all cells."""
    plan = planned(("region", "income"), ("income",), rho=10)
    records = pd.concat([RECORDS] * 50, ignore_index=True)
    released = rp.release(plan, records, tmp_path / "out", name="m", ledger=tmp_path / "ledger")
    tables = released.part("tables")
    row = tables.means("region", "income").iloc[1]
    answer = released.answer(where={"income": "mean", "region": "1"})
    figures = [answer.value, answer.standard_error, answer.lower_95, answer.upper_95]
    np.testing.assert_allclose(figures, row[["value", "standard_error", "lower_95", "upper_95"]]
                               .to_numpy(float), rtol=1e-9)  # fmt: skip

    table = tables.table("region", "income").query("region != '2' and income != 'not stated'")
    noise = plan.part("tables").marginal_noise((0, 1))
    rows = (np.array([-0.5, 99.5, 0]), np.array([1, 1, 0]))
    cells = [{0: region, 1: row} for region in np.eye(3)[:2] for row in rows]
    covariance = np.array([[noise.covariance(one, other) for other in cells] for one in cells])
    figures = table["value"].to_numpy()
    np.testing.assert_allclose(table["standard_error"] ** 2, np.diag(covariance), rtol=1e-9)
    sums, counts = np.array([1, 0, 1, 0]), np.array([0, 1, 0, 1])
    mean = (sums @ figures) / (counts @ figures)
    rest = sums - mean * counts
    together = released.answer("region", "income", where={"income": ["mean"], "region": "0..1"})
    assert together.value == pytest.approx(mean)
    error = np.sqrt(rest @ covariance @ rest) / (counts @ figures)
    assert together.standard_error == pytest.approx(error, rel=1e-9)
    # An end of Fieller's interval is a ratio that is just within 1.96 of its standard errors.
    for end in (together.lower_95, together.upper_95):
        off = (sums - end * counts) @ figures
        variance = (sums - end * counts) @ covariance @ (sums - end * counts)
        assert off**2 == pytest.approx(1.959964**2 * variance, rel=1e-5)
    assert rp.Questions(released).answer("region=0..1 income=mean") == together


def test_means_that_cannot_be_told_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(SAMPLER, lambda size, _: np.zeros(size, dtype=np.int64))
    two = rp.Domain((*DOMAIN.attributes, rp.Attribute("rent", INCOME)))
    plan = planned(("region", "income"), ("rent",), domain=two, rho="0.01")
    records = RECORDS.assign(rent=1.0)
    released = rp.release(plan, records, tmp_path / "out", name="m", ledger=tmp_path / "ledger")
    with pytest.raises(rp.errors.ReleaseError, match=r"too few for a mean: .* income=records"):
        released.answer(where={"income": "mean", "region": "2"})
    with pytest.raises(rp.errors.WorkloadError, match="one mean, got those of income and rent"):
        released.answer(where={"income": "mean", "rent": "mean"})
    with pytest.raises(rp.errors.WorkloadError, match="'rent' is one of amounts, and no table"):
        rp.Questions(released).answer("rent=mean region=1")


def texts_of_sheets(content: bytes | Path) -> str:
    book = openpyxl.load_workbook(BytesIO(content) if isinstance(content, bytes) else content)
    return " ".join(str(cell.value) for sheet in book for row in sheet.iter_rows() for cell in row)


@pytest.mark.parametrize("parts", ["tables", "counts"])
def test_files_for_readers_say_how_amounts_are_clamped(parts, tmp_path):
    plan = planned(("region", "income"), rho=100)
    if parts == "counts":
        counts = stated_from_text(DOMAIN, "earned: sum(income) where region = 1 ± 60").queries
        plan = rp.plan(counts, budget=rp.Budget(rho=100))
    rp.release(plan, RECORDS, tmp_path / "out", name="made up", ledger=tmp_path / "ledger")
    clamped = "Amounts below -0.5 EUR count as -0.5, those above 99.5 EUR as 99.5."
    rp.publish(tmp_path / "out", tmp_path / "for", formats=["crosstabs", "html"])
    assert clamped in (tmp_path / "for" / "tables.html").read_text()
    assert clamped in texts_of_sheets(tmp_path / "for" / "crosstabs.xlsx")
    assert clamped in texts_of_sheets(workbook_bytes(tmp_path / "out"))


def test_clamping_is_said_beside_every_sum(tmp_path):
    plan = planned(("region", "income"), rho=100)
    released = rp.release(
        plan, RECORDS, tmp_path / "out", name="made up", ledger=tmp_path / "ledger"
    )
    clamped = "mounts below -0.5 EUR count as -0.5, those above 99.5 EUR as 99.5"
    assert [item.title for item in released.items] == ["region × income", "region × income (means)"]
    for item in released.items:
        figures = item.read().schema.field("value").metadata
        assert clamped in figures[b"meaning"].decode()
    assert clamped in (tmp_path / "out" / "README.md").read_text().replace("\n ", "")


def test_the_noise_of_amounts_is_that_of_the_range(monkeypatch):
    asked = []

    def noted(size, gamma_squared):
        asked.append(gamma_squared)
        return np.zeros(size, dtype=np.int64)

    monkeypatch.setattr(SAMPLER, noted)
    plan = planned(("income",)).part("tables")
    counts = Counts({(1,): np.array([3000, 2000, 1000])}, 6, ranges=Ranges({1: 1000}))
    for residual in range(len(plan.closure)):
        measure_residual(plan, residual, counts)
    strategy = plan.closure.strategies[1]
    # The total is counted in records; residuals of the amounts in records times 1,000.
    total, residual = (plan.sigma_squared.fraction(index) for index in (0, 1))
    assert asked == [total, residual * (2**strategy.bits * 1000) ** 2]


@pytest.mark.parametrize("income", [-0.5, 99.5, 49.5, 10.2, 1e9, -1e9, None])
def test_no_amount_costs_more_privacy_than_is_booked(income):
    """Exactly, in rationals: what a record moves, over the noise, is within the plan's cost."""
    plan = planned(("region", "income"), ("income",), ("region",)).part("tables")
    record = FrameSource(pd.DataFrame({"region": [1], "income": [income]}), name="one")
    tables = [plan.closure.attributes(residual) for residual in range(len(plan.closure))]
    counts = record.count(plan.domain, tables)
    cost = Fraction(0)
    for residual in range(len(plan.closure)):
        moved = exact_residual(plan, residual, counts)
        scale = plan.closure.integer_scale(residual)
        squares = sum(int(number) ** 2 for number in moved.ravel())
        cost += Fraction(squares, scale**2) / plan.sigma_squared.fraction(residual)
    assert 0 < cost <= plan.exact_privacy_cost
    if income in (None, 1e9):  # where some record costs all of it, it is one at an end
        assert cost >= plan.exact_privacy_cost * Fraction(9, 10)


def test_amounts_of_too_many_steps_are_refused_before_anything_is_booked():
    wide = rp.Amounts(0, 10**5, decimals=6, missing=INCOME.missing)
    domain = rp.Domain((rp.Attribute("region", rp.Integers(0, 999)), rp.Attribute("a", wide)))
    with pytest.raises(rp.errors.PlanError, match="fewer decimals"):
        planned(("region", "a"), rho="1e-12", domain=domain)
    counted = planned(("region",), rho="1e-28", domain=domain).part("tables")
    with pytest.raises(rp.errors.ReleaseError, match=r"on \(region\) is too large for 64-bit"):
        check_measurable(counted)
    plan = planned(("region", "a"), rho="1e6", domain=domain).part("tables")
    with pytest.raises(rp.errors.ReleaseError, match="fewer decimals"):
        check_countable(plan, Counts({}, 10**6))


def test_counts_that_do_not_know_of_amounts_are_refused():
    steps = TableSteps(planned(("income",)).part("tables"))
    counts = Counts({(1,): np.array([3, 2, 1])}, 6)
    with pytest.raises(rp.errors.ReleaseError, match="does not count the amounts of 'income'"):
        steps.check_countable(counts)
    steps.check_countable(Counts(counts.tables, 6, ranges=Ranges({1: 1000})))


def test_intervals_of_means_hold_the_truth_95_times_of_100():
    """4,000 releases: sums and counts are linear in their noise, so their errors are drawn.

    The standard deviation of a share of 4,000 × 3 at 0.95 is 0.002.
    """
    plan = plan_tables(
        rp.Workload.of(DOMAIN, [("region", "income"), ("income",)]),
        loss=rp.SumOfVariances(),
        budget=rp.Budget(rho="0.02"),
    )
    counts = np.array([[300, 500, 20], [80, 40, 9], [35, 20, 0]])
    truth = Counts({(0, 1): counts * 1000}, int(counts.sum()), ranges=Ranges({1: 1000}))
    table = plan.workload.position(("region", "income"))

    def released():
        file = Measured(plan, truth)
        return Contributions(plan, file).answers(table).ravel()

    linear = LinearRelease.of(released, SAMPLER)
    answers = (linear.without_noise + linear.errors(4000)).reshape(4000, 3, 3)
    answers = answers * np.array([99.5, 1, 1])
    errors = plan.cell_standard_errors(("region", "income"))
    # The exact covariance of the release itself, not the one that is stated.
    covariance = linear.covariance.reshape(3, 3, 3, 3)
    of_both = np.array([covariance[i, 0, i, 1] for i in range(3)]) * 99.5
    stated = CellVariances(plan.workload, plan.closure).sum_covariances_of(
        table, plan.sigma_squared.floats
    )
    np.testing.assert_allclose(stated.ravel(), of_both, rtol=1e-9)
    means, _, lower, upper = ratio_columns(
        answers[:, :, 0], answers[:, :, 1], errors[:, 0] ** 2, errors[:, 1] ** 2, stated.ravel()
    )
    true_sums = counts[:, 0] * -0.5 + counts[:, 1] * 99.5
    true_means = true_sums / (counts[:, 0] + counts[:, 1])
    told = ~np.isnan(means)
    held = (lower <= true_means) & (true_means <= upper)
    assert told.mean() > 0.9
    assert 0.94 <= held[told].mean() <= 0.96


class Measured(MeasuredFile):
    """In the place of the file: the measurements of one release."""

    def __init__(self, plan, counts):
        super().__init__(Path(), plan.closure)
        self.__dict__["_all"] = [
            measure_residual(plan, residual, counts) for residual in range(len(plan.closure))
        ]

    def stacked(self, residuals):
        return np.stack([self.__dict__["_all"][residual] for residual in residuals])


def test_sums_within_a_larger_table_have_their_own_errors(tmp_path):
    domain = rp.Domain((*DOMAIN.attributes, rp.Attribute("sex", rp.Integers(0, 1))))
    plan = planned(("region", "income", "sex"), ("region", "income"), domain=domain)
    records = RECORDS.assign(sex=[0, 1] * 3)
    released = rp.release(plan, records, tmp_path / "out", name="m", ledger=tmp_path / "ledger")
    table = released.table("region", "income").rename(columns={"income": "row"})
    within = released.counts("region", "income").rename(columns={"income": "row"})
    pd.testing.assert_frame_equal(table, within, check_like=True, rtol=1e-9)
    sums = released.counts("income", "sex")
    answer = released.answer("income", "sex", where={"income": "sum", "sex": "1"})
    row = sums[(sums["income"] == "sum (EUR)") & (sums["sex"] == "1")]
    assert row["value"].item() == pytest.approx(answer.value)
    assert row["standard_error"].item() == pytest.approx(answer.standard_error)


def test_views_name_what_their_figures_are():
    domain = rp.Domain.from_schema(
        {
            "fields": [
                {"name": "sex", "constraints": {"enum": ["F", "M"]}},
                {"name": "income", "type": "number", "bounds": [0, 90], "unit": "EUR"},
                {"name": "w", "type": "number", "bounds": [0, 4], "weights": True},
            ]
        }
    )
    for names, chosen, what, unit in (
        (["sex"], {}, "counts of people", "people"),
        (["sex", "income"], {"income": "sum (EUR)"}, "sums of income in EUR", "EUR"),
        (["sex", "income"], {"income": "records"}, "counts of people", "people"),
        (["sex", "income"], {}, "sums of income in EUR and counts of people", "EUR and people"),
        (["sex", "w"], {"w": "weighted count"}, "weighted counts of people", "weighted people"),
        (
            ["income", "w"],
            {"income": "sum (EUR)", "w": "weighted count"},
            "weighted sums of income in EUR",
            "EUR",
        ),
    ):
        assert figures_of(domain, names, chosen, "people") == (what, unit)
