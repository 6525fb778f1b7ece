"""Accuracy of sums over lists of areas against dense algebra."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rpexplore as rp
from rpexplore.errors import DomainError
from rpexplore.planning.areas.area_groups import AreaGroups
from rpexplore.planning.areas.area_planner import plan_areas
from rpexplore.planning.areas.area_sums import AreaSums
from rpexplore.planning.areas.tree_passes import Estimation
from tests.support.area_trees import area_trees, incidence


def disjoint(tree, draw):
    """Some areas that do not overlap."""
    chosen, taken = [], np.zeros(tree.n_areas, dtype=bool)
    for area in draw(st.permutations(range(tree.n_areas))):
        path, at = [], area
        while at >= 0:
            path.append(at)
            at = int(tree.parents[at])
        within = [c for c in chosen if area in _path(tree, c)]
        if not within and not np.any(taken[path]) and draw(st.booleans()):
            chosen.append(area)
            taken[area] = True
    return chosen


def _path(tree, area):
    path = []
    while area >= 0:
        path.append(area)
        area = int(tree.parents[area])
    return path


@given(st.data())
def test_variances_of_sums_are_those_of_least_squares(data):
    tree = data.draw(area_trees())
    kinds = np.array(data.draw(st.lists(st.integers(0, 1), min_size=tree.n_areas)))[: tree.n_areas]
    groups = AreaGroups.of(tree, kinds)
    numbers = st.floats(0.01, 100) | st.just(0.0)
    lists = st.lists(numbers, min_size=len(groups), max_size=len(groups)).map(np.array)
    precisions = data.draw(lists)
    estimation = Estimation.of(groups, precisions)
    some = [chosen for _ in range(3) if (chosen := disjoint(tree, data.draw))] or [[0]]

    sums = AreaSums.of(tree, {str(number): areas for number, areas in enumerate(some)})
    variances = sums.variances(estimation)

    within, of_areas = incidence(tree), precisions[groups.of_area]
    gram = within.T @ (of_areas[:, None] * within)
    covariances = within @ np.linalg.pinv(gram, rcond=1e-11) @ within.T
    known = estimation.variances[groups.of_area] > 0
    for areas, variance in zip(some, variances.tolist(), strict=True):
        if np.all(known[areas]):
            assert variance == pytest.approx(np.sum(covariances[np.ix_(areas, areas)]), rel=1e-9)
        else:
            assert np.isnan(variance)


TREE = rp.AreaTree.from_columns({"region": list("NNNSS"), "town": list("12312")})
OTHERS = rp.Domain.from_sizes({"sex": 2, "age": 3})


def test_standard_errors_of_tables_are_those_of_the_areas_answers():
    above = rp.Workload.of(OTHERS, [("age",), ("sex", "age")])
    below = rp.Workload.of(OTHERS, [("sex",)])
    asked = rp.AreaWorkload.of_levels(TREE, {"all": above, "region": above, "town": below})
    plan = plan_areas(asked, loss=rp.SumOfVariances(), budget=rp.Budget(rho=1))

    lists = {"all": ["N", "S"], "N": [1], "S": ["S"], "N1": [("N", "1")], "S1": [("S", "1")],
             "N3": ["3"], "also N3": [["3"]]}  # fmt: skip
    found = plan.accuracy_of_sums(lists)

    errors = found.set_index(["list", "attributes"])["standard_error"]
    expected = {(row["level"], row["attributes"]): row for _, row in plan.accuracy().iterrows()}
    for of_two, level, table in [
        (("all", "all"), "all", ("age",)),
        (("N", "S"), "region", ("sex", "age")),
        (("N1", "S1"), "town", ("sex",)),
    ]:
        row = expected[level, table]
        extremes = [row["smallest_standard_error"], row["largest_standard_error"]]
        found_two = sorted(errors[name, table] for name in of_two)
        assert found_two == pytest.approx(extremes, rel=1e-12)
    assert np.isnan(errors["N1", ("age",)])  # towns have no ages
    notes = found.set_index(["list", "attributes"])["note"]
    assert set(notes[errors.isna()]) == {"not all of these areas have this table"}
    assert set(notes[errors.notna()]) == {""}
    assert errors["N3", ("sex",)] == errors["also N3", ("sex",)]
    of_sexes = plan.accuracy_of_sums({"N3": [("N", "3")]}, ["sex"])
    alone = plan.accuracy_of_sums(("N", "3"), ["sex"])  # one area, called by its codes
    assert alone.equals(of_sexes.assign(list="N > 3"))
    assert plan.accuracy_of_sums("N").equals(plan.accuracy_of_sums({"N": "N"}))
    assert of_sexes["standard_error"].tolist() == [errors["N3", ("sex",)]]
    shown = found["standard_error"].dropna().tolist()
    assert shown == sorted(shown, reverse=True)


@pytest.mark.parametrize(
    ("areas", "why"),
    [
        ([], "has no areas"),
        ([99], "has the number 99; the areas have the numbers 0 to 7"),
        ([1, 1], "counts the area N, or one within it, twice"),
        (["N", ("N", "2")], "counts the area N, or one within it, twice"),
        ([("N", "9")], "no area '9' in N"),
        (["9"], "list 'district' has the code '9', but no area has it"),
        (["1"], "'1', but 2 areas have it; give its codes from below 'all', as a tuple"),
        ([["2"]], "The area has the code '2', but 2 areas have it"),
        ([0.5], "by their numbers or by their codes"),
    ],
)
def test_lists_that_cannot_be_added_up_are_refused(areas, why):
    groups = AreaGroups.of(TREE, np.zeros(TREE.n_areas, dtype=np.int64))
    with pytest.raises(DomainError, match=why):
        AreaSums.of(TREE, {"district": areas}).variances(
            Estimation.of(groups, np.ones(len(groups)))
        )
