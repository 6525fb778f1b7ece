"""How accurate tables are by area: against the plan's own tables, dense trees and counted sizes."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings

import rpexplore as rp
from rpexplore.analysis.accuracy import readable
from rpexplore.analysis.area_accuracy import (
    AreaErrors,
    describe_levels,
    describe_shares,
    divided_parts,
    level_accuracy,
)
from rpexplore.analysis.area_levels import beside_shares_by_level, level_sizes
from rpexplore.common.installation import sample_data_folder
from rpexplore.domain.area_tree import area_title, areas_above
from rpexplore.planning.areas.area_planner import plan_areas
from tests.support.area_trees import area_trees, incidence


@pytest.fixture(scope="module")
def register():
    """The sample country; sex is asked for on the two lowest levels only."""
    book = rp.AreaCodebook.load(sample_data_folder() / "municipal-register.json")
    few, all_of_them = rp.Workload.of(book.domain, [()]), rp.Workload.all_up_to(book.domain, 1)
    levels = {"region": few, "county": few, "municipality": all_of_them, "district": all_of_them}
    asked = rp.AreaWorkload.of_levels(book.tree, levels)
    return plan_areas(asked, loss=rp.SumOfVariances(), budget=rp.Budget(rho="0.1"))


def test_errors_of_areas_are_those_that_the_plan_states_by_level(register):
    tree = register.workload.tree
    stated = {(row.level, row.attributes): row for row in register.accuracy().itertuples()}
    for table in ((), ("sex",)):
        errors = AreaErrors.of(register, table)
        for number, level in enumerate(tree.levels):
            of_level = errors.errors[tree.level_slice(number)]
            if (level, table) not in stated:
                assert np.all(np.isnan(of_level))
                assert level not in errors.levels
                continue
            row = stated[level, table]
            assert np.mean(of_level**2) == pytest.approx(row.standard_error**2)
            assert np.max(of_level) == pytest.approx(row.largest_standard_error)
            assert np.min(of_level) == pytest.approx(row.smallest_standard_error)


def test_levels_and_tables_of_a_plan(register):
    levels = level_accuracy(register).set_index("level")
    assert levels["tables"].to_dict() == {
        "region": 1,
        "county": 1,
        "municipality": 4,
        "district": 4,
    }
    of_level = register.accuracy().query("level == 'municipality'")
    assert levels.loc["municipality", "standard_error"] ** 2 == pytest.approx(
        (of_level["standard_error"] ** 2).mean()
    )
    assert levels.loc["municipality", "largest_standard_error"] == pytest.approx(
        of_level["largest_standard_error"].max()
    )
    tables = readable(register.accuracy())
    assert tables["item"].tolist()[:3] == ["(total)", "(total)", "(total)"]
    assert tables["margin_95"].tolist() == pytest.approx(
        (1.959964 * tables["standard_error"]).tolist()
    )
    assert not {"target", "met", "required"} & {*tables}  # there are no targets
    assert describe_levels(level_sizes(register.workload.tree)).endswith(
        "lowest level: 214 of municipality."
    )


def test_areas_of_a_level_may_ask_for_different_tables():
    tree = rp.AreaTree.from_columns({"town": [str(number) for number in range(16)]})
    domain = rp.Domain.from_sizes({"sex": 2, "age": 5})
    tables = (("sex",),), (("age",), ("sex",))
    asked = tuple(rp.Workload.of(domain, list(listed)) for listed in tables)
    kinds = np.array([-1] + [0] * 10 + [1] * 5 + [-1])
    workload = rp.AreaWorkload(tree, asked, kinds)
    plan = plan_areas(workload, loss=rp.SumOfVariances(), budget=rp.Budget(rho=1))
    (level,) = level_accuracy(plan).to_dict("records")
    errors = np.append(*(AreaErrors.of(plan, table).errors for table in (("sex",), ("age",))))
    assert (level["areas"], level["tables"]) == (15, 2)
    assert np.count_nonzero(~np.isnan(errors)) == 20
    assert level["standard_error"] ** 2 == pytest.approx(np.nanmean(errors**2))


def test_the_comparison_with_shares_is_told(register):
    beside = beside_shares_by_level(register)
    best, equal = (100 * (1 - beside["ratio"])).tolist()
    text = describe_shares(beside)
    assert f"{best:.2g} % less than with the best shares by level" in text
    assert f"{equal:.2g} % less than with equal shares" in text
    level = rp.AreaTree.from_columns({"region": [*"ab"]})
    alone = rp.AreaWorkload.of_levels(level, {"region": rp.Workload.of(register.domain, [()])})
    plan = plan_areas(alone, loss=rp.SumOfVariances(), budget=rp.Budget(rho=1))
    assert "the same as with the best shares" in describe_shares(beside_shares_by_level(plan))


def test_the_least_accurate_areas_and_what_goes_with_it(register):
    errors, tree = AreaErrors.of(register, ("sex",)), register.workload.tree
    least = errors.least_accurate("municipality", 10)
    assert len(least) == 10
    assert least["standard_error"].is_monotonic_decreasing
    first = least.iloc[0]
    assert first["area"] == "Elvik (R030202)"
    assert first["parts"] == 56
    area = tree.find(("R03", "R0302", "R030202"))
    assert first["standard_error"] == errors.errors[area] == np.nanmax(errors.errors)
    assert errors.most_different_level == "municipality"

    # The share between classes of the number of parts, counted once more by pandas.
    of_level = tree.level_slice(3)
    frame = pd.DataFrame({"n": tree.n_parts[of_level], "error": errors.errors[of_level]})
    frame["class"] = pd.cut(frame["n"], [-1, 0, 1, 5, 20, 10**6])
    means = frame.groupby("class", observed=True)["error"].transform("mean")
    share = means.var(ddof=0) / frame["error"].var(ddof=0)
    text = errors.describe("municipality")
    assert f"{100 * share:.2g} % of the differences go with how many parts an area has" in text
    assert "which has 56 parts" in text
    sizes = errors.by_size("municipality", "parts")
    counted = frame.groupby("class", observed=True)["error"].agg(["size", "median"])
    assert sizes["areas"].tolist() == counted["size"].tolist()
    assert sizes["median"].tolist() == pytest.approx(counted["median"].tolist())
    assert "lie beside each other" in errors.describe("district")  # none has parts

    alike = AreaErrors(tree, (), np.ones(tree.n_areas))
    assert "equally accurate in all areas: standard error 1" in alike.describe("county")


@given(area_trees())
@settings(max_examples=30)
def test_an_area_is_drawn_with_its_parts(tree):
    errors = AreaErrors(tree, (), np.linspace(1, 2, tree.n_areas))
    within = incidence(tree)
    assert errors.undivided_within.tolist() == within.sum(axis=1).tolist()
    for top in range(tree.n_areas):
        frame, left_out = errors.with_parts(top)
        parts = [area for area in range(1, tree.n_areas) if tree.parents[area] == top]
        assert frame["number"].tolist() == [top, *parts]
        assert frame["parent"].tolist() == [-1, *(top for _ in parts)]
        divided = [area for area in parts if tree.n_parts[area]]
        assert (left_out != "") == bool(divided)
        assert divided_parts(tree, top, 99) == divided
    assert areas_above(tree, tree.n_areas - 1)[0] == 0


def test_of_a_family_beyond_the_room_the_least_accurate_are_drawn():
    tree = rp.AreaTree.from_columns({"town": [str(number) for number in range(10)]})
    errors = AreaErrors(tree, (), np.array([9.0, *range(10)]))
    frame, left_out = errors.with_parts(0, 4)
    assert frame["standard_error"].tolist() == [9, 7, 8, 9]
    assert left_out == "Of 10 parts the 3 least accurate are drawn."
    assert area_title(tree, 0) == "all"
    assert area_title(tree, 3) == "2"
