"""The outcome from noisy counts: ranges that hold the truth, and what is said beside a forecast."""

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.analysis.outcome import (
    Outcome,
    forecast_by_order,
    least_counts_of,
    outcome_columns,
    table_outcome,
)
from tests.support.samples import FOLDER, coded


@pytest.mark.parametrize(("spread", "sigma"), [(1.0, 4.0), (2.0, 20.0), (3.0, 60.0)])
def test_the_range_holds_the_truth_of_nine_in_ten_tables(spread, sigma):
    """400 tables of 300 cells, from even to skewed, most of them near the limit or empty."""
    rng = np.random.default_rng(7)
    inside, off = [], []
    for _ in range(400):
        counts = np.rint(rng.lognormal(np.log(sigma) + 1, spread, 300)) - 1
        n = counts.sum()
        noise = rng.normal(0, sigma, len(counts))
        least, errors = np.full(300, sigma / 0.2), np.full(300, sigma)
        found = table_outcome(counts + noise - noise.mean(), errors, least, n)
        good = counts >= least
        truths = counts[good].sum() / n, good.mean()
        for truth, (low, estimate, high) in zip(truths, found, strict=True):
            assert 0 <= low <= estimate <= high <= 1
            inside.append(low <= truth <= high)
            off.append(estimate - truth)
    assert np.mean(inside) >= 0.9
    assert abs(np.mean(off)) < 0.02


def test_without_noise_to_speak_of_the_outcome_is_the_truth():
    counts = np.array([0.0, 3.0, 40.0, 500.0])
    found = table_outcome(counts, np.full(4, 1e-3), np.full(4, 40.0 - 1e-2), 543.0)
    assert found.people == pytest.approx((540 / 543,) * 3, abs=1e-5)
    assert found.cells == pytest.approx((0.5,) * 3)


def test_with_a_survey_the_limit_is_of_the_total_error():
    plan = rp.plan(
        rp.Workload.all_up_to(rp.Domain.from_sizes({"a": 4}), 1),
        loss=rp.SumOfVariances(),
        budget=rp.Budget(rho="0.1"),
    )
    survey = rp.SurveyDesign(2.0, ((("a",), 3.0),))
    stated = rp.Forecast(plan, expected=1000, survey=survey).stated
    least = least_counts_of(stated, np.array([2.0]), ("a",), 1000)[0]
    assert np.sqrt(4 + 3 * least * (1 - least / 1000)) / least == pytest.approx(0.2)


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """A release of a sample by a plan that keeps its forecast; the true counts of its tables."""
    domain, codes = coded("redistricting")
    plan = rp.plan(
        rp.Workload.all_up_to(domain, 2),
        loss=rp.SumOfVariances(),
        budget=rp.Budget(epsilon="0.1", delta="1e-6", unit_noun="household"),
    )
    forecast = rp.Forecast(plan, expected=len(codes))
    folder = tmp_path_factory.mktemp("released")
    records = folder / "records.csv.gz"
    records.write_bytes((FOLDER / "redistricting.csv.gz").read_bytes())
    done = rp.release(forecast.in_plan(), records, folder / "out", parquet_only=True)
    return forecast, done, codes


def test_a_release_has_its_outcome_beside_the_forecast_that_its_plan_keeps(released):
    forecast, done, codes = released
    outcome = Outcome.of(done.plan, rp.Release.load(done.folder).part("tables"))
    assert isinstance(outcome, Outcome)
    workload, errors = done.plan.part("tables").workload, forecast.tables_of_plan.standard_errors
    truths = []
    for place in range(len(workload)):
        columns = codes[:, list(workload.attribute_indices(place))]
        counts = np.unique(columns, axis=0, return_counts=True)[1] if columns.size else [len(codes)]
        counts = np.array(counts)
        truths.append(counts[counts >= errors[place] / 0.2].sum() / len(codes))
    assert np.mean(np.abs(outcome.people[:, 1] - truths)) < 0.05
    frame = outcome.by_order()
    assert frame["attributes"].tolist()[-1] == "all tables"
    row = frame.iloc[-1]
    assert row.people_outcome_low <= np.mean(truths) <= row.people_outcome_high
    assert row.people_forecast_median == pytest.approx(forecast.people.median, abs=1e-6)
    assert len(outcome.tables()) == len(workload)
    sentences = " ".join(outcome.sentences)
    assert sentences.startswith("Households in good cells (CV of at most 20 %), as forecast: ")
    assert "The forecast rests on 101,190 records" in sentences
    assert "estimated from the released noisy counts" in sentences
    columns = outcome_columns(frame, "attributes", outcome.whom).columns
    assert len(columns) == 8
    assert columns[2] == "households in good cells: forecast"


def test_a_plan_without_a_forecast_has_no_outcome(released):
    forecast, _, _ = released
    frame = forecast_by_order(forecast.stated, forecast.tables_of_plan.workload)
    assert frame["tables"].tolist() == [1, 5, 10, 16]
    assert "outcome" not in " ".join(outcome_columns(frame, "attributes", "people").columns)
