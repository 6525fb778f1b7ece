"""Two passes over a tree against dense algebra."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rpexplore.planning.areas.area_groups import AreaGroups
from rpexplore.planning.areas.tree_passes import Estimation
from tests.support.area_trees import area_trees, incidence


@given(st.data())
def test_variances_and_gradient_are_those_of_least_squares(data):
    tree = data.draw(area_trees())
    kinds = np.array(data.draw(st.lists(st.integers(0, 1), min_size=tree.n_areas)))[: tree.n_areas]
    groups = AreaGroups.of(tree, kinds)
    numbers = st.floats(0.01, 100) | st.just(1e-5)
    lists = st.lists(numbers, min_size=len(groups), max_size=len(groups)).map(np.array)
    precisions, weights = data.draw(lists), data.draw(lists)
    divided = np.ones(len(groups), dtype=bool)
    divided[groups.undivided] = False
    dropped = np.array(
        data.draw(st.lists(st.booleans(), min_size=len(groups), max_size=len(groups)))
    )
    precisions[divided & dropped] = 0  # an area may be known from its parts alone

    estimation = Estimation.of(groups, precisions)

    within, of_areas = incidence(tree), precisions[groups.of_area]
    gram = within.T @ (of_areas[:, None] * within)
    covariances = within @ np.linalg.solve(gram, within.T)
    np.testing.assert_allclose(
        estimation.variances[groups.of_area], np.diag(covariances), rtol=1e-6
    )
    of_areas = weights[groups.of_area]
    np.testing.assert_allclose(
        estimation.gradient(weights)[groups.of_area], of_areas @ covariances**2, rtol=1e-6
    )
