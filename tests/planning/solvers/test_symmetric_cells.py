"""The largest variance of a cell where attributes are alike: as by the search over all cells."""

from functools import cache

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.mechanism.variances import CellVariances
from rpexplore.planning.optimal_strategies import with_best_strategies
from rpexplore.planning.solvers.largest_variance import (
    _over_cells,
    minimise_max_cell_variance,
    symmetric_solution,
)
from rpexplore.planning.solvers.solution import dual_bound

TOLERANCE = 1e-6


def cells_of(*orders, leave_out=0):
    """Tables of eight attributes that are alike and of one that is not; one has no table."""
    domain = rp.Domain.from_sizes({**{f"a{i}": 7 for i in range(8)}, "sex": 2, "unused": 4})
    names = domain.names[:-1]
    tables = [t for t in rp.Workload.all_up_to(domain, 4, only=names).tables if len(t) in orders]
    workload = rp.Workload.of(domain, tables[leave_out:])
    workload = workload.with_bases(dict.fromkeys(names[:-1], rp.Prefix()))
    strategies = dict.fromkeys(range(8), _strategy())
    return CellVariances(workload, Closure.of(workload).with_strategies(workload, strategies))


@cache
def _strategy():
    """For tables of four attributes, whose least accurate cells differ."""
    domain = rp.Domain.from_sizes({f"a{i}": 7 for i in range(4)})
    workload = rp.Workload.all_of_order(domain, 4)
    workload = workload.with_bases(dict.fromkeys(domain.names, rp.Prefix()))
    closure = with_best_strategies(workload, Closure.of(workload), np.ones(1), largest=True)
    return closure.strategies[0]


def alike(cells, weights):
    return symmetric_solution(cells, weights, 1.0, TOLERANCE, _over_cells)


@pytest.mark.parametrize("orders", [(3,), (1, 4), (4,)])
def test_as_by_the_search_over_all_cells(orders):
    cells = cells_of(*orders)
    weights = 1.0 + cells.workload.orders  # those of a kind have one weight
    general, symmetric = _over_cells(cells, weights, 1.0, TOLERANCE), alike(cells, weights)
    assert symmetric is not None

    def value(solution):
        return np.max(weights * cells.least_accurate(solution.sigma_squared).variances)

    costs = cells.closure.privacy_cost_factor
    assert np.sum(costs / symmetric.sigma_squared) == pytest.approx(1, rel=1e-12)
    assert symmetric.lower_bound <= value(general)
    assert general.lower_bound <= value(symmetric) <= symmetric.lower_bound * (1 + TOLERANCE)
    # The bound follows from the prices of the cells, each of which is named once.
    named = symmetric.cells
    assert named is not None
    assert len(np.unique(np.column_stack([named.tables, named.rows]), axis=0)) == len(named.tables)
    in_sum = cells.map(named.tables, named.rows).residual_weights(
        weights[named.tables] * named.prices / np.sum(named.prices)
    )
    assert dual_bound(costs, in_sum, 1.0) == pytest.approx(symmetric.lower_bound, rel=1e-9)
    of_tables = np.bincount(named.tables, named.prices, len(weights))
    np.testing.assert_allclose(symmetric.shadow_prices, of_tables)
    assert minimise_max_cell_variance(cells, weights, 1.0, TOLERANCE).lower_bound == (
        symmetric.lower_bound
    )


def test_only_where_swapping_attributes_changes_nothing():
    cells = cells_of(3)
    weights = np.ones(len(cells.workload))
    assert alike(cells, weights) is not None
    weights[0] = 2
    assert alike(cells, weights) is None
    assert alike(cells_of(3, leave_out=1), weights[1:]) is None
