"""Tables of one area, and of areas side by side: those of the release, and what lies within."""

from itertools import chain
from typing import Any

import numpy as np
import pytest

from rpexplore.analysis.released_cells import ReleasedCells
from rpexplore.errors import ReleaseError
from rpexplore.results.area_results import AreaResults
from rpexplore.results.estimates.area_counts import whole_area_counts
from tests.releases.area_plans import PLANS, TREE
from tests.results.estimates.test_area_counts import (  # noqa: F401
    cells_of_areas,
    released,
)


@pytest.mark.by_day(1)
@pytest.mark.parametrize(
    ("name", "whole"),
    [("less further down", False), ("less further down", True), ("some areas", False)],
)
def test_tables_of_an_area_and_side_by_side_are_those_of_the_release(
    released,  # noqa: F811
    tmp_path,
    name,
    whole,
):
    plan = PLANS[name]
    tables = release = released(plan)
    if whole:
        tables = whole_area_counts(release, tmp_path / "counts")
    results = AreaResults(release, tables if whole else None)
    assert results.is_biased == whole
    for column in ("value", "standard_error", "upper_95"):
        cells = cells_of_areas(tables, plan, column)
        for attributes, of_areas in cells.items():
            for area, own in of_areas.items():
                one = results.of_area(area)
                assert attributes in one.table_names
                assert one.has(attributes)
                assert one.table(attributes)[column].tolist() == own
    for level in range(len(TREE.levels)):
        areas = results.within(0, level)
        beside = results.side_by_side(level, areas)
        for names in beside.table_names:
            shown = ReleasedCells.of(beside.table(*names), names)
            assert shown.axes[0].name == beside.axis == TREE.levels[level]
            own = cells[names[1:]]
            listed = [area for area in range(areas.start, areas.stop) if area in own]
            asked = [own[area] for area in listed]
            assert shown.upper.reshape(len(asked), -1).tolist() == asked
            read: dict[str, Any] = {}
            exec(beside.reading_lines(*names[1:]), read)  # noqa: S102 (own lines)
            assert read["table"]["upper_95"].tolist() == [*chain.from_iterable(asked)]
            if level == 2:  # towns, which have names; towns of N and of S have the same codes
                assert shown.axes[0].labels == tuple(TREE.names[area].as_py() for area in listed)
                if len(listed) == 4:
                    assert shown.axes[0].codes == ("N > 1", "N > 2", "S > 1", "S > 2")


def test_tables_of_other_areas_are_told_apart_in_words(released):  # noqa: F811
    results = AreaResults(released(PLANS["less further down"]))
    regions, level = results.within(0, 1), 2
    for region in range(regions.start, regions.stop):
        towns = results.within(region, level)
        if towns.start < towns.stop:
            title = results.of_area(region).whose
            assert results.side_by_side(level, towns).whose == title
    every = results.within(0, level)
    assert results.side_by_side(level, every).whose == ()
    (some,) = results.side_by_side(level, slice(every.start, every.stop - 1)).whose
    assert " to " in some


def test_what_lies_within_a_table_has_its_exact_error(released):  # noqa: F811
    results = AreaResults(released(PLANS["less further down"]))
    region, town = (results.within(0, level).start for level in (1, 2))
    # Towns are asked for their total as well: it is that of their table by sex.
    one = results.of_area(town)
    total = one.table().iloc[0]
    answer = one.answer("sex", where={})
    assert answer.value == pytest.approx(total["value"])
    assert answer.standard_error == pytest.approx(total["standard_error"])
    half = one.answer("sex", where={"sex": [1.0, 0.0]})
    cell = one.table("sex").iloc[0]
    assert (half.value, half.standard_error) == pytest.approx(
        tuple(cell[["value", "standard_error"]])
    )
    # Regions are asked for (sex, age): what is summed to sex is their table by sex.
    beside = results.side_by_side(1, results.within(0, 1))
    by_sex, ages = beside.table("region", "sex"), beside.counts("region", "age")
    cells = beside.table("region", "sex", "age")
    sums = cells.groupby(["region", "sex"], observed=True, sort=False)["value"].sum()
    assert np.allclose(sums, by_sex["value"])
    sums = cells.groupby(["region", "age"], observed=True, sort=False)["value"].sum()
    assert np.allclose(sums, ages["value"])
    again = results.of_area(region).answer("sex", "age", where={"sex": [0.0, 1.0]})
    assert again.standard_error == pytest.approx(by_sex["standard_error"][1])
    by_age = results.of_area(region).answer("sex", "age", where={"age": [1.0, 0.0, 0.0]})
    assert by_age.standard_error == pytest.approx(ages["standard_error"][0])
    with pytest.raises(ReleaseError, match=r"no table of .age. for Town N1"):
        one.counts("age")
    with pytest.raises(ReleaseError, match="of one area"):
        beside.answer("sex")
