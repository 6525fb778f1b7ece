"""One table that is nearly all 0: what is found set by set is the nearest, and found sooner."""

from functools import reduce

import numpy as np
import pytest

from rpexplore.domain.domain import subsets
from rpexplore.estimation import active_cells
from rpexplore.estimation.active_cells import sets_above_zero
from rpexplore.estimation.nonnegative import nonnegative
from rpexplore.estimation.table_map import TableMap

SHAPE = (4, 10, 60)


def sparse_table() -> np.ndarray:
    """Thirty cells of some records each among 2,400, with noise."""
    rng = np.random.default_rng(5)
    table = rng.normal(0, 0.5, SHAPE)
    table.ravel()[rng.choice(table.size, 30, replace=False)] += rng.uniform(10, 40, 30)
    return table


def test_the_last_set_is_that_of_the_nearest_table(monkeypatch):
    monkeypatch.setattr(active_cells, "MOST_SHARE", 1)  # a small table has noise in more cells
    table = sparse_table()
    *_, (nearest, multipliers) = sets_above_zero(table, table)
    hessian = reduce(np.kron, [np.eye(n) + (1 - 1 / n) * np.ones((n, n)) for n in SHAPE])
    slopes = hessian @ (nearest - table).ravel() - multipliers.ravel()
    assert np.ptp(slopes) < 1e-6 * np.abs(slopes).max() + 1e-6  # of the total, which is kept
    assert nearest.sum() == pytest.approx(table.sum())
    assert nearest.min() >= 0 <= multipliers.min()
    assert not np.any((nearest > 0) & (multipliers > 0))
    assert 0 < np.count_nonzero(nearest) < table.size / 2


def test_a_sparse_table_is_found_in_fewer_rounds_with_the_same_distance(monkeypatch):
    tables = TableMap(subsets((0, 1, 2)), np.array(SHAPE), {})
    table = sparse_table()
    given = {
        subset: tables.decomposed(
            subset, table.sum(axis=tuple(axis for axis in range(3) if axis not in subset))
        )
        for subset in subsets((0, 1, 2))
    }
    monkeypatch.setattr(active_cells, "MOST_SHARE", 0.5)
    by_sets = nonnegative(given, np.array(SHAPE), {}, gap=1e-7)
    monkeypatch.setattr(active_cells, "MOST_SHARE", 0)
    by_rounds = nonnegative(given, np.array(SHAPE), {}, gap=1e-7)
    assert by_sets.rounds < by_rounds.rounds
    assert by_sets.distance == pytest.approx(by_rounds.distance, rel=2e-7)
    assert tables.table((0, 1, 2), by_sets.contributions).min() >= 0
    assert by_sets.gap <= 1e-7
