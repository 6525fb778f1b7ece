"""Least, median and largest errors of the tables of all areas, against those of every area."""

import numpy as np
import pytest

from rpexplore.analysis.area_accuracy import (
    AreaErrors,
    area_headline,
    errors_by_level,
    n_tables_below,
)
from rpexplore.domain.area_tree import area_title
from rpexplore.workload.table_text import title
from tests.releases.area_plans import PLANS, TREE


@pytest.mark.parametrize("name", ["less further down", "some areas"])
def test_errors_are_those_of_the_single_areas(name):
    plan = PLANS[name]
    frame, every, named = errors_by_level(plan), [], {}
    for table in plan.workload.tables.tables:
        errors = AreaErrors.of(plan, table).errors
        every += errors[~np.isnan(errors)].tolist()
        own = frame[frame["table"] == title(table)].set_index("level")
        for level, areas in zip(TREE.levels, map(TREE.level_slice, range(4)), strict=True):
            there = errors[areas][~np.isnan(errors[areas])]
            assert (level in own.index) == (len(there) > 0)
            if len(there):
                row = own.loc[level]
                expected = [len(there), there.min(), np.median(there), there.max()]
                shown = row[["areas", "smallest", "median", "largest"]].tolist()
                assert shown == pytest.approx(expected)
        for area in np.flatnonzero(~np.isnan(errors)).tolist():
            named[f"{title(table)} in {area_title(TREE, area)}"] = errors[area]
    top = area_headline(plan)
    assert top.median_error == pytest.approx(np.median(every))
    assert top.largest_error == pytest.approx(max(every))
    assert named[top.least_accurate_table] == pytest.approx(max(every))
    assert n_tables_below(plan, 2.5) == np.sum(np.array(every) < 2.5)
