"""Least squares in two passes against dense algebra."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rpexplore.domain.area_tree import AreaRange
from rpexplore.planning.areas.area_groups import AreaGroups
from rpexplore.planning.areas.tree_passes import Estimation, LeastSquares
from tests.support.area_trees import area_trees, incidence


@st.composite
def measured_trees(draw):
    """A small tree, precisions of its groups, some of them 0, and two measurements of each area."""
    tree = draw(area_trees())
    kinds = np.array(draw(st.lists(st.integers(0, 1), min_size=tree.n_areas)))[: tree.n_areas]
    groups = AreaGroups.of(tree, kinds)
    numbers = st.floats(0.01, 100) | st.just(0.0) | st.just(1e-5)
    lists = st.lists(numbers, min_size=len(groups), max_size=len(groups)).map(np.array)
    precisions = draw(lists)
    seed = draw(st.integers(0, 2**32 - 1))
    values = np.random.default_rng(seed).normal(size=(tree.n_areas, 2)) * 10
    return tree, groups, precisions, values * (precisions[groups.of_area] > 0)[:, None]


def answers_by_ranges(tree, solution, measured, level):
    """Through the whole tree, each of the areas of a level as a range of its own."""
    values, deepest = measured.copy(), len(tree.levels) - 1
    areas = tree.level_slice(level)
    ranges = [
        AreaRange.within(tree, level, area, area + 1, deepest)
        for area in range(areas.start, areas.stop)
    ]
    for each in ranges:
        own = values[each.areas]
        solution.upwards(own, each)
        values[each.areas[0]] = own[0]
    top = AreaRange.within(tree, 0, 0, 1, level)
    above = values[top.areas]
    solution.upwards(above, top)
    solution.downwards(above, top)
    values[top.areas] = above
    for each in ranges:
        own = measured[each.areas]
        solution.upwards(own, each)
        own[0] = values[each.areas[0]]
        solution.downwards(own, each)
        values[each.areas] = own
    return values


@given(measured_trees(), st.data())
def test_answers_are_those_of_least_squares(problem, data):
    tree, groups, precisions, measured = problem
    within, of_areas = incidence(tree), precisions[groups.of_area]
    gram = within.T @ (of_areas[:, None] * within)
    weighted = within.T @ (of_areas[:, None] * measured)
    expected = within @ np.linalg.pinv(gram, rcond=1e-11) @ weighted
    known = Estimation.of(groups, precisions).variances[groups.of_area] > 0

    level = data.draw(st.integers(0, len(tree.levels) - 1))
    answers = answers_by_ranges(tree, LeastSquares.of(groups, precisions), measured, level)

    np.testing.assert_allclose(answers[known], expected[known], rtol=1e-6, atol=1e-5)


@given(area_trees(), st.data())
def test_parts_are_added_to_all_areas_that_they_lie_in(tree, data):
    level = data.draw(st.integers(0, len(tree.levels) - 1))
    areas = tree.level_slice(level)
    some = AreaRange.within(tree, level, areas.start, areas.stop, len(tree.levels) - 1)
    values = np.zeros(tree.n_areas, dtype=np.int64)
    undivided = tree.n_parts == 0
    values[undivided] = np.arange(1, np.count_nonzero(undivided) + 1)
    sums = values[some.areas]

    some.add_parts(sums)

    expected = incidence(tree).astype(int) @ values[undivided]
    np.testing.assert_array_equal(sums, expected[some.areas])
