"""Forecasts of tables in areas: against plans of tables, every cell of every area, and records."""

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.analysis.area_accuracy import AreaErrors
from rpexplore.analysis.area_forecast import area_forecast_by, levels_for_reading
from rpexplore.analysis.drawn_areas import DrawnAreas, _drawn_tilts, shares_of_areas
from rpexplore.analysis.forecast import public_tables_of
from rpexplore.analysis.populations import Population, parts_of
from rpexplore.common.seeded_numbers import SeededNumbers
from rpexplore.errors import PlanError, WorkloadError
from rpexplore.planning.areas.area_planner import plan_areas
from rpexplore.planning.planner import plan_tables
from rpexplore.workload.table_text import titles
from tests.benchmarks.area_forecasts import OTHERS as TRIED
from tests.benchmarks.area_forecasts import figures
from tests.benchmarks.planning import DATA
from tests.releases.area_plans import BOTH, OTHERS, PLANS, TREE

BY_SEX = rp.ExpectedCounts(("sex",), (("0", "1"),), (100.0, 300.0))
# 8 areas without parts; of these within: N 4, N > 1 3, S 3, S > 2 2, W 1.
EVEN = {"N": 4 / 8, "N1": 3 / 8, "S": 3 / 8, "S2": 2 / 8, "W": 1 / 8}
AREAS = {"N": ("N",), "N1": ("N", "1"), "S": ("S",), "S2": ("S", "2"), "W": ("W",)}
NUMBERS = {name: TREE.find(path) for name, path in AREAS.items()}
TOTALS = {NUMBERS["N"]: 60.0, NUMBERS["S"]: 30.0, NUMBERS["W"]: 10.0}


def test_records_are_expected_in_areas_without_parts_or_as_totals_say():
    even = shares_of_areas(TREE)
    assert {name: even[area] for name, area in NUMBERS.items()} == pytest.approx(EVEN)
    known = shares_of_areas(TREE, TOTALS)
    expected = {"N": 0.6, "N1": 0.6 * 3 / 4, "S": 0.3, "S2": 0.3 * 2 / 3, "W": 0.1}
    assert {name: known[area] for name, area in NUMBERS.items()} == pytest.approx(expected)
    for wrong, why in (
        ({NUMBERS["N"]: 1.0}, "in none"),
        (TOTALS | {NUMBERS["N1"]: 1}, "several"),
        (TOTALS | {NUMBERS["N"]: -1.0}, "total of the area N is -1.0; give a number of records"),
        (TOTALS | {NUMBERS["N"]: np.nan}, "total of the area N is nan"),
        ({0: np.inf}, "total of the area all is inf"),
        (TOTALS | {-1: 0}, "area -1; the areas of this tree have the numbers 0 to 1"),
        (TOTALS | {TREE.n_areas: 0}, f"area {TREE.n_areas};"),
    ):
        with pytest.raises(WorkloadError, match=why):
            shares_of_areas(TREE, wrong)


def test_what_is_known_is_kept_and_the_rest_is_drawn():
    public = public_tables_of(OTHERS, [BY_SEX], None)
    drawn = DrawnAreas.of(PLANS["the same"].workload, public, TOTALS)
    row = {int(area): place for place, area in enumerate(drawn.areas)}
    for area, total in TOTALS.items():
        assert drawn.sizes[:, row[area]] == pytest.approx(4 * total)  # 400 records, totals of 100
    assert drawn.sizes[:, row[0]] == pytest.approx(400)
    # Parts add up to what they are parts of, and differ from population to population.
    parts = [TREE.find(("N", "1", code)) for code in "abc"]
    of_parts = drawn.sizes[:, [row[part] for part in parts]]
    assert of_parts.sum(axis=1) == pytest.approx(drawn.sizes[:, row[NUMBERS["N1"]]])
    assert np.ptp(of_parts[:, 0]) > 50
    # All areas together are as the public table says: exactly at the top, about so below.
    for one in drawn.counts:
        if drawn.workload.tables.tables[one.table] == ("sex",):
            women = one.counts.sum(axis=1)[:, 0]
            if one.level == 0:
                assert women == pytest.approx(100)
            elif one.level == 1:
                assert np.mean(women) == pytest.approx(100, rel=0.05)


@pytest.mark.parametrize("name", ["less further down", "some areas", "in bases"])
def test_good_cells_are_those_of_every_area(name):
    plan = PLANS[name]
    made = rp.AreaForecast(plan, [BY_SEX], limit=0.15)
    assert not made.counts.sample_text
    assert made.n_tables == made.by_level()["tables"].sum() == plan.n_items
    frame = made.tables().set_index(["level", "table"])
    names = titles(plan.workload.tables, np.arange(len(plan.workload.tables)))
    for one in made.counts.counts:
        assert one.counts.shape[2] == plan.workload.tables.cells[one.table]
        table = plan.workload.tables.tables[one.table]
        errors = AreaErrors.of(plan, table).errors[made.counts.areas[one.rows]]
        good = one.counts >= errors[:, None] / 0.15
        own = frame.loc[TREE.levels[one.level], names[one.table]]
        assert own["cells_median"] == pytest.approx(np.median(good.mean(axis=(1, 2))))
        there = one.counts.sum(axis=(1, 2))  # in some populations nobody lives in these areas
        people = (one.counts * good).sum(axis=(1, 2))[there > 0] / there[there > 0]
        assert own["people_median"] == pytest.approx(np.median(people))


def test_one_area_alone_is_as_good_as_a_plan_of_its_tables():
    options = {"loss": rp.SumOfVariances(), "budget": rp.Budget(rho="0.01")}
    top = plan_areas(rp.AreaWorkload.of_levels(TREE, {TREE.levels[0]: BOTH}), **options)
    own, tables = (
        rp.AreaForecast(top, [BY_SEX]),
        rp.Forecast(plan_tables(BOTH, **options), [BY_SEX]),
    )
    assert own.people == pytest.approx(tables.people, abs=0.02)
    assert own.cells == pytest.approx(tables.cells, abs=0.02)
    assert own.meeting.median == tables.meeting.median


def test_of_many_areas_some_stand_for_all():
    """400 equal areas with known totals: as good as one of them; a sample tells so."""
    tree = rp.AreaTree.from_columns({"place": [f"{place:04}" for place in range(400)]})
    sexes = rp.Workload.of(rp.Domain.from_sizes({"sex": 2}), [("sex",)])
    plan = plan_areas(
        rp.AreaWorkload.of_levels(tree, {"place": sexes}),
        loss=rp.SumOfVariances(),
        budget=rp.Budget(rho="0.5"),  # σ = 1: counts of 5 and more are good
    )
    totals = dict.fromkeys(range(1, 401), 100.0)
    made = rp.AreaForecast(plan, totals=totals)
    assert made.counts.public.n_records == 40_000
    assert made.counts.sample_text.startswith("300 of 400 areas")
    assert made.people.low > 0.97
    assert made.by_level()["size_low"].tolist() == pytest.approx([100])
    assert made.tables()["areas"].tolist() == [400]
    # With nothing known of sizes small areas are among them, and the range is wider.
    drawn = rp.AreaForecast(plan, expected=40_000)
    assert drawn.meeting.low < made.meeting.low
    sizes = drawn.by_size()
    assert sizes["people_median"].is_monotonic_increasing
    assert sizes["size"].iloc[0] == "under 100 people"


@pytest.mark.parametrize(("deviation", "least", "most"), [(1e-4, 0, 1e-3), (3.0, 0.2, 0.5)])
def test_areas_with_the_same_classes_differ_by_tilts_that_even_out(deviation, least, most):
    tree = rp.AreaTree.from_columns({"place": [f"{place:02}" for place in range(60)]})
    public = public_tables_of(OTHERS, [BY_SEX], None)
    sex = public.domain.with_levels.position("sex")
    population = Population.drawn(public, parts_of(public, [(sex,)]), 10, b"any")
    areas, people = np.arange(61), np.r_[60, np.linspace(0.5, 1.5, 60)]
    mixes = np.tile(population.weights, (61, 1))
    tilts = _drawn_tilts(
        tree, areas, people, mixes, population, [sex], [deviation], SeededNumbers(b"tilts")
    )
    own = mixes / tilts[sex].wholes @ population.shares_by_class((sex,)) * tilts[sex].factors
    assert own.sum(axis=1) == pytest.approx(1)
    assert own[0] == pytest.approx([0.25, 0.75])
    assert people[1:] @ own[1:] / 60 == pytest.approx([0.25, 0.75], abs=0.03)  # by class
    assert least <= own[1:, 0].std() <= most


def test_large_tables_are_judged_by_people_as_by_their_cells(monkeypatch):
    from rpexplore.analysis import drawn_areas

    domain = rp.Domain.from_sizes({"a": 20, "b": 15})
    tables = rp.Workload.of(domain, [("a", "b")])
    options = {"loss": rp.SumOfVariances(), "budget": rp.Budget(rho="0.5")}
    plan = plan_areas(
        rp.AreaWorkload.of_levels(TREE, dict.fromkeys(TREE.levels, tables)), **options
    )
    by_cell = rp.AreaForecast(plan, expected=20_000)
    monkeypatch.setattr(drawn_areas, "_GRAINS", ((48, 128),))
    by_people = rp.AreaForecast(plan, expected=20_000)
    assert {one.people is None for one in by_people.counts.counts} == {False}
    for name in ("people", "cells", "meeting"):
        cells, people = (made.by_level()[f"{name}_median"] for made in (by_cell, by_people))
        scale = by_cell.by_level()["tables"] if name == "meeting" else 1
        assert (people / scale).tolist() == pytest.approx((cells / scale).tolist(), abs=0.1)


def test_a_survey_s_own_error_and_another_codebook_count():
    plan = PLANS["the same"]
    other = rp.Domain.from_sizes({"sex": 2, "job": 4})
    counts = rp.ExpectedCounts(
        ("sex", "job"), (("0", "1"), ("0", "1", "2", "3")), tuple(map(float, range(100, 900, 100)))
    )
    public = public_tables_of(other, [counts], None)
    design = rp.SurveyDesign(1.8, of_tables=((("job",), 2.0),))
    noise, total = (area_forecast_by(plan, public, survey=given) for given in (None, design))
    assert noise.counts.public.text == "3,600 records, and 1 public table: the counts by sex"
    assert total.people.median < noise.people.median
    assert "noise and sampling (design effect 1.8" in total.rests_on
    facts = noise.to_json()
    assert list(facts["by_level"]) == list(TREE.levels)
    assert levels_for_reading(noise)["level"].tolist() == list(TREE.levels)
    with pytest.raises(PlanError, match=r"rp\.Forecast is for tables"):
        rp.AreaForecast(rp.plan(BOTH, loss=rp.SumOfVariances(), budget=rp.Budget(rho=1)))
    with pytest.raises(PlanError, match=r"rp\.AreaForecast is for tables in areas"):
        rp.Forecast(PLANS["the same"], expected=10)
    with pytest.raises(PlanError, match=r"A plan must be what .*, got str"):
        rp.Forecast("plan.json", expected=10)  # pyright: ignore[reportArgumentType]
    with pytest.raises(WorkloadError, match="needs the number of records"):
        rp.AreaForecast(plan)


@pytest.mark.nightly
def test_ranges_hold_what_records_in_areas_are():
    """See docs/mathematics.md §19; without Adult there are no trees but that of the sample."""
    names = TRIED if (DATA / "adult.csv").exists() else ("municipal",)
    assert figures(names)["inside"].mean() >= 0.9
