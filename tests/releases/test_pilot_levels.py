"""Runs with a pilot of tables with an attribute at several levels, and its figures by level."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.analysis.most_people import plan_of_rest
from rpexplore.domain.public_tables import PublicTables
from rpexplore.planning.planner import optimum
from rpexplore.planning.rest import on_top_of_pilot
from rpexplore.releases.finished_release import Release
from rpexplore.releases.pilot import figures_sha256
from rpexplore.releases.release import release
from rpexplore.results.pilot_tables import pilot_tables
from tests.releases.table_plan import draw_by, no_noise, runs
from tests.releases.test_pilot_release import drawn, measured_in, pilot_of, unfinished
from tests.support.stopped_runs import killed

FIELDS = [
    {
        "name": "age",
        "constraints": {"minimum": 0, "maximum": 19},
        # "odd" crosses the others: 5 to 9 and 0-17 are split by it.
        "levels": {"five": 5, "adult": "0-17, 18+", "odd": "0-6, 7-19"},
    },
    {"name": "sex", "constraints": {"enum": ["m", "f"]}},
]
TABLES = rp.Workload.of(
    rp.Domain.from_schema({"fields": FIELDS}),
    [("age", "sex"), ("age@five",), ("age@adult", "sex"), ("age@odd",), ()],
)
FIRST = rp.plan(
    rp.Request(tables=TABLES, budget=rp.Budget(rho="1/20"), pilot="10%", then=rp.RestObjective())
)
COUNTS = np.array([9, 2, 1, 40, 3, 0, 60, 5, 5, 200, 8, 4, 0, 50, *[30] * 6])
AGES = np.repeat(np.arange(20), COUNTS)
SEXES = np.arange(len(AGES)) % 3 > 0


def other_rest(pilot: rp.Release) -> rp.Plan:
    tables, loss = FIRST.part("tables"), rp.SumOfVariances()
    workload = replace(tables.workload, weights=np.array([1.0, 9, 1, 4, 1]))
    strategies = tables.closure.strategies
    best = optimum(workload, loss=loss, budget=tables.budget, strategies=strategies)
    return on_top_of_pilot(FIRST, best.at(tables.budget), figures_sha256(pilot))


@pytest.fixture
def data(tmp_path) -> Path:
    path = tmp_path / "data" / "records.csv"
    path.parent.mkdir()
    rows = (f"{age},{'mf'[sex]}\n" for age, sex in zip(AGES, SEXES.astype(int), strict=True))
    path.write_text("age,sex\n" + "".join(rows))
    return path


@pytest.fixture
def output(tmp_path) -> Path:
    return tmp_path / "out"


def test_the_rest_is_planned_from_the_figures_of_all_levels(data, output):
    pilot = release(FIRST, data, output, pilot_only=True)
    figures = pilot_tables(pilot.folder)
    names = [table.counts.attributes for table in figures]
    assert names == [(), ("sex",), ("age@adult",), ("age@odd",), ("age@five",), ("age",)]
    assert not PublicTables(TABLES.domain.of_records, figures).contradictions  # they add up
    plan = plan_of_rest(FIRST, figures)
    assert rp.verify(plan).holds
    done = release(plan, data, output)
    (run,) = runs(data)
    assert (run.state, run.plan_sha256) == ("finished", FIRST.sha256)
    assert run.record_rho == FIRST.record_rho >= plan.record_rho
    five = Release.load(output).part("tables").table("age@five")
    place = plan.part("tables").workload.tables.index(("age@five",))
    stated = plan.part("tables").table_variances.mean[place]
    assert np.mean(five["standard_error"] ** 2) == pytest.approx(stated)
    own = measured_in(output / "pilot.parquet")
    assert own == measured_in(pilot.folder / "residuals.parquet")
    assert done.plan.sha256 == plan.sha256


def test_without_noise_tables_are_the_counts(data, output, monkeypatch):
    draw_by(monkeypatch, no_noise)
    pilot = release(FIRST, data, output, pilot_only=True)
    assert pilot.table("age")["value"].tolist() == pytest.approx(COUNTS)
    of_odd = [COUNTS[:7].sum(), COUNTS[7:].sum()]
    assert pilot.table("age@odd")["value"].tolist() == pytest.approx(of_odd)
    done = release(other_rest(pilot), data, output).part("tables")
    both = np.histogram2d(AGES, SEXES, bins=[20, 2])[0]
    assert done.table("age", "sex")["value"].tolist() == pytest.approx(both.ravel())


def test_a_rest_that_is_killed_goes_on_and_draws_no_pilot_again(data, output, tmp_path):
    pilot = release(FIRST, data, output, pilot_only=True)
    first = drawn(unfinished(output))
    plan = other_rest(pilot)
    plan.save(tmp_path / "rest.json")
    killed("rpexplore.releases.measurement_file.Draft.end", 1, tmp_path / "rest.json", data, output)
    release(plan, data, output)
    own = measured_in(output / "pilot.parquet")
    assert own == first[: len(own)] == measured_in(pilot_of(output) / "residuals.parquet")
    assert [(run.state, run.record_rho) for run in runs(data)] == [("finished", FIRST.record_rho)]


def test_counts_of_all_levels_are_drawn_together_by_their_errors(data, output):
    """Coarse groups are as sure as they were measured, and not as all their values together."""
    pilot = release(FIRST, data, output, pilot_only=True)
    figures = pilot_tables(pilot.folder)
    known = PublicTables(TABLES.domain.of_records, figures)
    by_name = {table.counts.attributes[-1:]: i for i, table in enumerate(figures)}
    adult, five, single = (by_name[(name,)] for name in ("age@adult", "age@five", "age"))
    errors_of = [(table.errors or table.counts).margin for table in figures]
    tables = [known.drawn(b"%d" % i).tables for i in range(300)]
    totals = np.array([one[0].counts.total for one in tables])
    of_adult, of_five, ages = (
        np.array([one[number].counts.counts for one in tables]) for number in (adult, five, single)
    )
    assert np.allclose(of_adult.sum(axis=1), totals)
    # The finest coarser table of single years: of five years.
    assert np.allclose(ages.reshape(-1, 4, 5).sum(axis=2), of_five)
    shares, errors = (of_adult / totals[:, None]).std(axis=0), errors_of[adult]
    assert np.allclose(shares * figures[0].counts.total, errors, rtol=0.2)
    measured = pilot.table("age@five")["standard_error"].to_numpy()
    assert np.all(errors_of[five] < 1.2 * measured)
    assert np.all(np.abs(of_five.mean(axis=0) - figures[five].counts.margin) < 0.3 * measured)
