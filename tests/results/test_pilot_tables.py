"""A pilot's figures as public tables with errors, and the forecast that is made of them."""

from pathlib import Path

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.domain.expected_counts import ExpectedCounts
from rpexplore.domain.public_tables import PublicTable, PublicTables
from rpexplore.errors import ReleaseError
from rpexplore.releases.release import release
from rpexplore.results.pilot_tables import pilot_tables, planned_run

DOMAIN = rp.Domain.from_sizes({"a": 40, "b": 40, "c": 40, "d": 2})
PLAN = rp.plan(
    rp.Request(tables=rp.Workload.all_up_to(DOMAIN, 2), budget=rp.Budget(rho="1/20"), pilot="5%")
)
N = 3000


def skewed_records() -> np.ndarray:
    rng = np.random.default_rng(3)
    shares = [rng.dirichlet(np.full(n, 0.3)) for n in DOMAIN.sizes]
    return np.column_stack([rng.choice(len(own), N, p=own) for own in shares])


RECORDS = skewed_records()


@pytest.fixture(scope="module")
def output(tmp_path_factory) -> Path:
    """Where a run goes whose pilot is released."""
    folder = tmp_path_factory.mktemp("pilot")
    rows = "\n".join(",".join(map(str, row)) for row in RECORDS.tolist())
    (folder / "records.csv").write_text(f"a,b,c,d\n{rows}\n")
    release(PLAN, folder / "records.csv", folder / "out", pilot_only=True)
    return folder / "out"


@pytest.fixture(scope="module")
def tables(output) -> tuple[PublicTable, ...]:
    return pilot_tables(output.with_name("out-pilot"))


def test_errors_are_what_counts_are_off_by(tables):
    # 122 errors over their standard errors: the mean of their squares, about 1 where all is right,
    # has a standard deviation of √(2/122) = 0.13 if they were normal. The prior is not that of
    # these records, and pulls small counts together.
    ratios = []
    for axis, table in enumerate(tables[1:]):
        truth = np.bincount(RECORDS[:, axis], minlength=int(DOMAIN.sizes[axis]))
        assert table.errors is not None
        ratios.append((table.counts.margin - truth) / table.errors.margin)
        assert np.all(table.counts.margin > 0)
    assert 0.3 < np.mean(np.concatenate(ratios) ** 2) < 2.2


def test_counts_sum_to_the_released_total_in_whole_records(tables):
    totals = {round(table.counts.total, 6) for table in tables}
    assert len(tables) == 5  # the total, and four attributes
    assert len(totals) == 1
    assert totals.pop() == pytest.approx(N, abs=150)  # σ of the pilot's total is below 20


def test_tables_are_drawn_by_their_errors_and_exact_ones_are_left_alone():
    values = (tuple("xyz"),)
    counts = ExpectedCounts(("v",), values, (900.0, 90.0, 10.0))
    errors = ExpectedCounts(("v",), values, (20.0, 20.0, 5.0))
    domain = rp.Domain((rp.Attribute("v", rp.Categories(tuple("xyz"))),))
    noisy = PublicTables(domain, (PublicTable(counts, errors=errors),))
    drawn = np.array([noisy.drawn(b"%d" % i).tables[0].counts.counts for i in range(2000)])
    assert np.allclose(drawn.sum(axis=1), 1000)
    # Errors are given the total: they stay what they are, as draws already add up to it.
    assert np.allclose(drawn.mean(axis=0), counts.counts, atol=1.5)
    assert np.allclose(drawn.std(axis=0), [20, 20, 5], rtol=0.05)
    exact = PublicTables(domain, (PublicTable(counts),))
    assert exact.drawn(b"") is exact


def test_the_total_is_drawn_by_its_own_error_and_the_others_with_it():
    values = (tuple("xy"),)
    domain = rp.Domain((rp.Attribute("v", rp.Categories(tuple("xy"))),))
    of_total = PublicTable(
        ExpectedCounts.of_total(1000), errors=ExpectedCounts.of_total(50), name="total"
    )
    counts = ExpectedCounts(("v",), values, (600.0, 400.0))
    by_v = PublicTable(counts, errors=ExpectedCounts(("v",), values, (30.0, 30.0)))
    noisy = PublicTables(domain, (of_total, by_v))
    drawn = [noisy.drawn(b"%d" % i) for i in range(1000)]
    totals = np.array([one.n_records for one in drawn])
    cells = np.array([one.tables[1].counts.counts for one in drawn])
    assert np.allclose(cells.sum(axis=1), totals)
    assert np.allclose([totals.mean(), totals.std()], [1000, 50], rtol=0.05)
    # A share of the total's error, and the cell's own: √(0.6² · 50² + 30²) = 42.4, √(20² + 30²).
    assert np.allclose(cells.std(axis=0), [42.4, 36.1], rtol=0.05)


def test_a_forecast_knows_that_the_figures_have_errors(tables):
    exact = [PublicTable(table.counts, table.name) for table in tables]
    noisy, certain = (
        rp.Forecast(PLAN, public=public).by_order().set_index("attributes").loc["1 attribute"]
        for public in (tables, exact)
    )
    assert certain["people_low"] == certain["people_high"]
    assert noisy["people_low"] < noisy["people_high"]


def test_the_plan_of_a_run_is_found_beside_its_pilot(output, tmp_path):
    pilot = output.with_name("out-pilot")
    for path in (output, pilot):
        plan, figures = planned_run(path)
        assert (plan.sha256, figures) == (PLAN.sha256, pilot)
    pilot.rename(tmp_path / "elsewhere")
    with pytest.raises(ReleaseError, match="rpexplore forecast PLAN --public"):
        planned_run(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").rename(pilot)
