"""Publishable cells of areas: against every cell of every area, and plans of tables."""

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.analysis.area_accuracy import AreaErrors
from rpexplore.analysis.area_usefulness import publishable_in_areas, shares_of_areas
from rpexplore.domain.readings import are_publishable
from rpexplore.errors import WorkloadError
from rpexplore.planning.areas.area_planner import plan_areas
from rpexplore.planning.planner import plan_tables
from rpexplore.workload.table_text import title
from tests.releases.area_plans import OTHERS, PLANS, TREE

BY_SEX = rp.ExpectedCounts(("sex",), (("0", "1"),), (100.0, 300.0))
# 8 areas without parts; of these within: N 4, N > 1 3, S 3, S > 2 2, W 1.
EVEN = {"N": 4 / 8, "N1": 3 / 8, "S": 3 / 8, "S2": 2 / 8, "W": 1 / 8}


def test_records_are_spread_over_areas_without_parts_or_as_totals_say():
    areas = {"N": ("N",), "N1": ("N", "1"), "S": ("S",), "S2": ("S", "2"), "W": ("W",)}
    numbers = {name: TREE.find(path) for name, path in areas.items()}
    even = shares_of_areas(TREE)
    assert {name: even[area] for name, area in numbers.items()} == pytest.approx(EVEN)
    totals = {numbers["N"]: 60.0, numbers["S"]: 30.0, numbers["W"]: 10.0}
    known = shares_of_areas(TREE, totals)
    expected = {"N": 0.6, "N1": 0.6 * 3 / 4, "S": 0.3, "S2": 0.3 * 2 / 3, "W": 0.1}
    assert {name: known[area] for name, area in numbers.items()} == pytest.approx(expected)
    for wrong, why in (
        ({numbers["N"]: 1.0}, "in none"),
        (totals | {numbers["N1"]: 1}, "several"),
        (totals | {numbers["N"]: -1.0}, "total of the area N is -1.0; give a number of records"),
        (totals | {numbers["N"]: np.nan}, "total of the area N is nan"),
        ({0: np.inf}, "total of the area all is inf"),
        (totals | {-1: 0}, "area -1; the areas of this tree have the numbers 0 to 1"),
        (totals | {TREE.n_areas: 0}, f"area {TREE.n_areas};"),
    ):
        with pytest.raises(WorkloadError, match=why):
            shares_of_areas(TREE, wrong)


@pytest.mark.parametrize("name", ["less further down", "some areas"])
def test_publishable_cells_are_those_of_every_area(name):
    plan, shares = PLANS[name], shares_of_areas(TREE)
    useful = publishable_in_areas(plan, BY_SEX, cv_limit=0.15)
    found = useful.of_tables.set_index(["level", "table"])
    assert 0 < useful.share < 1
    n_cells = 0
    for row, table in enumerate(plan.workload.tables.tables):
        attributes = [OTHERS[name] for name in table]
        counts = BY_SEX.fitted(OTHERS).counts_of(attributes).ravel()
        errors = AreaErrors.of(plan, table).errors
        for number, level in enumerate(TREE.levels):
            areas = np.arange(*TREE.starts[number : number + 2])
            areas = areas[~np.isnan(errors[areas])]
            if not len(areas):
                assert (level, title(table)) not in found.index
                continue
            cells = are_publishable(errors[areas][:, None], shares[areas][:, None] * counts, 0.15)
            own = found.loc[(level, title(table))]
            assert own["publishable"] == cells.sum()
            assert own["in_full"] == cells.all(axis=1).sum()
            assert own["cells"] == cells.size
            n_cells += cells.size
        assert row < len(plan.workload.tables)
    assert useful.n_cells == n_cells
    assert useful.by_level["publishable"].sum() == found["publishable"].sum()


def test_one_area_alone_is_as_useful_as_a_plan_of_its_tables():
    tables = rp.Workload.all_up_to(OTHERS, 2)
    options = {"loss": rp.SumOfVariances(), "budget": rp.Budget(rho="0.01")}
    top = plan_areas(rp.AreaWorkload.of_levels(TREE, {TREE.levels[0]: tables}), **options)
    own, plan = publishable_in_areas(top, BY_SEX, cv_limit=0.1), plan_tables(tables, **options)
    good = []
    for table, error in zip(tables.tables, plan.standard_errors.tolist(), strict=True):
        counts = BY_SEX.counts_of([OTHERS[name] for name in table])
        good += (error <= 0.1 * counts).ravel().tolist()
    assert own.share == pytest.approx(np.mean(good))
    assert 0 < own.share < 1
