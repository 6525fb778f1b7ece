"""The rehearsal of smooth tables: its made-up records, and the errors against exact ones."""

import re

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.common.text import describe_share
from rpexplore.domain.readings import READINGS
from rpexplore.errors import ReleaseError, WorkloadError
from rpexplore.estimation import smooth_tables
from rpexplore.planning.planner import plan_tables
from rpexplore.results import rehearsal as smooth_rehearsal
from rpexplore.results.rehearsal import (
    describe_smooth_change,
    made_up_records,
    rehearse_smooth_tables,
)

DOMAIN = rp.Domain.from_sizes({"a": 6, "b": 3, "c": 5, "one": 1})
# By c and a, in another order than the codebook's.
MARGIN = np.arange(30.0).reshape(5, 6)
EXPECTED = rp.ExpectedCounts(
    ("c", "a"),
    (tuple(map(str, range(5))), tuple(map(str, range(6)))),
    tuple(MARGIN.ravel().tolist()),
)


def plan(rho, order=2):
    workload = rp.Workload.all_up_to(DOMAIN, order)
    return plan_tables(workload, loss=rp.SumOfVariances(), budget=rp.Budget(rho=rho))


def test_made_up_records_have_the_public_margin_and_dependence():
    codes, n_records = made_up_records(DOMAIN, EXPECTED, [0, 1])
    assert n_records == MARGIN.sum() == 435
    assert np.array_equal(
        np.histogram2d(codes[2], codes[0], bins=(range(6), range(7)))[0],
        MARGIN,
    )
    again, _ = made_up_records(DOMAIN, EXPECTED, [1, 3])
    assert np.array_equal(again[1], codes[1])


def test_made_up_records_are_skewed_and_dependent():
    domain = rp.Domain.from_sizes({"a": 10, "b": 8, "c": 6})
    codes, n_records = made_up_records(domain, rp.ExpectedCounts.of_total(20_000), range(3))
    sizes = domain.sizes.tolist()
    for i, j in ((0, 1), (0, 2), (1, 2)):
        bins = (range(sizes[i] + 1), range(sizes[j] + 1))
        crossed = np.histogram2d(codes[i], codes[j], bins=bins)[0]
        independent = np.outer(crossed.sum(1), crossed.sum(0)) / n_records
        assert crossed.sum(1).max() > 2 * n_records / sizes[i]
        # Sampling alone gives about √(2 · 79 / π 20,000) = 0.05 at most.
        assert np.abs(crossed - independent).sum() / n_records > 0.1


def test_no_made_up_record_has_an_impossible_combination():
    """Else tables that are 0 there seem far from the truth, by all records that are there."""
    numbers = {"a": 6, "b": 4, "c": 5, "d": 3}
    fields = [
        {"name": name, "constraints": {"minimum": 0, "maximum": size - 1}}
        for name, size in numbers.items()
    ]
    impossible = [{"a": "0..2", "b": "1..3"}, {"b": "0", "c": "1..4"}, {"b": "0", "d": "0"}]
    domain = rp.Domain.from_schema({"fields": fields, "impossible": impossible})
    workload = rp.Workload.all_up_to(domain, 3)
    for population in smooth_rehearsal.POPULATIONS:
        codes, n_records = smooth_rehearsal.population_records(
            population, workload, rp.ExpectedCounts.of_total(5000)
        )
        a, b, c, d = (codes[index] for index in range(4))
        assert len(a) == n_records == 5000
        assert not np.any((a <= 2) & (b >= 1))
        assert not np.any((b == 0) & ((c >= 1) | (d == 0)))
        assert np.any(a <= 2)  # what is named first stays
    # Plans of other attributes have the same records.
    alone, _ = made_up_records(domain, rp.ExpectedCounts.of_total(5000), [1])
    again, _ = made_up_records(domain, rp.ExpectedCounts.of_total(5000), range(4))
    assert np.array_equal(alone[1], again[1])


def test_errors_are_those_of_the_measured_tables_and_smooth_ones_are_smaller(monkeypatch):
    seen = []

    def smooth_residuals(measured, **options):
        seen.append(measured.contributions)
        return smooth_tables.smooth_residuals(measured, **options)

    monkeypatch.setattr(smooth_rehearsal, "smooth_residuals", smooth_residuals)
    # σ is in the hundreds, and there are 435 records.
    frame = rehearse_smooth_tables(plan("0.0002", order=3), EXPECTED).frame.set_index("order")
    # a, b, c; ab, ac, bc; abc. Those with the attribute of one value are the same tables.
    assert frame["tables"].tolist() == [3, 3, 1]
    codes, _ = made_up_records(DOMAIN, EXPECTED, [0, 1])
    bins = (range(7), range(4), range(6))
    truth = np.histogramdd(np.column_stack([codes[0], codes[1], codes[2]]), bins=bins)[0]
    table = np.zeros((6, 3, 5))
    for subset, values in seen[0].items():
        shape = [size if axis in subset else 1 for axis, size in enumerate((6, 3, 5))]
        table += values.reshape(shape) / (90 / values.size)
    errors = {name: float(frame.loc[3, name]) for name in READINGS}
    assert errors["unbiased"] == pytest.approx(np.abs(table - truth).sum() / 435)
    assert errors["smooth"] < errors["unbiased"] / 3
    assert errors["nonnegative"] < errors["unbiased"]


def test_with_hardly_any_noise_all_readings_are_right_and_long_ones_are_left_out(monkeypatch):
    monkeypatch.setattr(smooth_rehearsal, "_MOST_SECONDS", 0.0)
    rehearsal = rehearse_smooth_tables(plan("1e6"), EXPECTED)
    assert np.isnan(rehearsal.frame["nonnegative"].to_numpy(dtype=float)).all()
    assert rehearsal.frame[["unbiased", "smooth"]].to_numpy().max() < 1e-2
    text = rehearsal.describe("people")
    assert text.startswith("Simulated on made-up people (435): a smooth table of 2 attributes is ")
    assert "nonnegative" not in text
    assert repr(rehearsal) == f"<SmoothRehearsal. {rehearsal.describe('records')}>"
    assert rehearsal.caution.startswith("They follow the expected counts by c × a;")


def test_a_change_of_plans_is_told_of_the_tables_that_both_have():
    large = rp.Workload.of(DOMAIN, [("a", "b"), ("c",)])
    before = plan_tables(large, loss=rp.SumOfVariances(), budget=rp.Budget(rho="0.00002"))
    text = describe_smooth_change(before, plan("10"), EXPECTED, "people")
    assert text.startswith("Simulated on made-up people (435): the errors of the present smooth")
    shares = re.findall(r"from ([\d.e-]+) % to ([\d.e-]+) % in tables of (\d) attribute", text)
    assert [order for *_, order in shares] == ["2", "1"]
    assert all(float(later) < float(share) for share, later, _ in shares)


def test_the_same_plan_has_the_same_figures_and_noise_is_as_large_as_planned():
    domain = rp.Domain.from_sizes({"a": 16, "b": 12})
    workload = rp.Workload.all_up_to(domain, 2).with_bases({"a": rp.Prefix()})
    expected = rp.ExpectedCounts.of_total(2000)
    plans = [
        plan_tables(workload, loss=rp.SumOfVariances(), budget=rp.Budget(rho=rho))
        for rho in ("0.01", "0.04")
    ]
    frames = [rehearse_smooth_tables(plan, expected).frame.set_index("order") for plan in plans]
    # Four times the budget halves σ, and the noise is the same but for that.
    assert frames[0]["unbiased"].to_numpy() == pytest.approx(2 * frames[1]["unbiased"].to_numpy())
    # E|noise| = σ √(2/π); over 192 cells its mean is within 6 % of that, one standard deviation.
    cells = [{"a": str(a), "b": str(b)} for a in range(16) for b in range(12)]
    deviations = [plans[0].query_variance(where=where) ** 0.5 for where in cells]
    mean = np.sum(deviations) * (2 / np.pi) ** 0.5 / 2000
    assert frames[0].loc[2, "unbiased"] == pytest.approx(mean, rel=0.15)
    # As on the page of tables.
    text = describe_smooth_change(plans[0], plans[1], expected, "people")
    for order in (1, 2):
        before, after = (describe_share(frame.loc[order, "smooth"]) for frame in frames)
        assert f"from {before} to {after} in tables of {order} attribute" in text


def test_too_many_records_are_refused():
    with pytest.raises(ReleaseError, match="At most 2,000,000 records"):
        rehearse_smooth_tables(plan("1"), rp.ExpectedCounts.of_total(3e6))


def test_a_number_in_place_of_expected_counts_is_refused():
    with pytest.raises(WorkloadError, match=r"such as ExpectedCounts.of_total\(50000\), got int"):
        rehearse_smooth_tables(plan("1"), 50000)  # pyright: ignore[reportArgumentType]


def test_tables_at_one_level_are_simulated_as_tables_of_their_groups():
    """Unbiased tables are off by their noise alone, which goes by names of attributes."""
    area = {"name": "area", "type": "integer", "constraints": {"minimum": 0, "maximum": 5}}
    sex = {"name": "sex", "type": "integer", "constraints": {"minimum": 0, "maximum": 1}}
    levels = rp.Domain.from_schema({"fields": [area | {"levels": {"half": "0-2, 3-5"}}, sex]})
    groups = rp.Domain.from_sizes({"sex": 2, "area@half": 2})

    def simulated(domain, *tables):
        workload = rp.Workload.of(domain, tables)
        plan = plan_tables(workload, loss=rp.SumOfVariances(), budget=rp.Budget(rho="0.01"))
        return rehearse_smooth_tables(plan, rp.ExpectedCounts.of_total(1000)).frame

    tables = ("area@half", "sex"), ("area@half",)
    at_level, by_groups = simulated(levels, *tables), simulated(groups, *tables)
    np.testing.assert_allclose(at_level["unbiased"], by_groups["unbiased"], rtol=1e-9)
    assert np.all(at_level["smooth"] > 0)
    with pytest.raises(ReleaseError, match="at several levels cannot be simulated"):
        simulated(levels, ("area@half", "sex"), ("area", "sex"))


def test_what_sums_alone_have_is_not_made_up():
    domain = rp.Domain((*DOMAIN, rp.Attribute("income", rp.Amounts(0, 10))))
    workload = rp.Workload.of(domain, [("a", "b"), ("c", "income")])
    of_both = plan_tables(workload, loss=rp.SumOfVariances(), budget=rp.Budget(rho="1e6"))
    frame = rehearse_smooth_tables(of_both, rp.ExpectedCounts.of_total(1000)).frame
    assert frame[["order", "tables"]].to_numpy().tolist() == [[2, 1]]
    assert frame["unbiased"].item() < 1e-3
