"""Cells: every variance, the extreme ones and the map of single ones, against dense matrices."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rpexplore as rp
from rpexplore.errors import PlanError
from rpexplore.planning.mechanism import variances as cells_module
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.mechanism.variances import CellVariances, TableVariances
from rpexplore.workload.bases import Prefix, Ranges
from tests.support.generalised import (
    all_variances,
    any_strategies,
    any_strategy,
    measured_closure,
    workloads_with_bases,
)

seeds = st.integers(0, 2**32)
some = settings(deadline=None, max_examples=60)


@given(workloads_with_bases(), seeds)
@some
def test_variances_against_dense_matrices(workload, seed):
    closure, sigma_squared = measured_closure(workload, seed)
    cells = CellVariances(workload, closure)
    result = TableVariances.of(workload, closure, sigma_squared)
    largest, smallest = cells.least_accurate(sigma_squared), cells.most_accurate(sigma_squared)
    for table, dense in enumerate(all_variances(workload, closure, sigma_squared)):
        scale = dense.max()
        variances_of_table = cells.variances_of(table, sigma_squared)
        assert variances_of_table.shape == dense.shape
        np.testing.assert_allclose(variances_of_table, dense, rtol=1e-8, atol=1e-9 * scale)
        assert result.mean[table] == pytest.approx(dense.mean(), rel=1e-8)
        assert result.largest[table] == pytest.approx(dense.max(), rel=1e-8)
        assert result.smallest[table] == pytest.approx(dense.min(), rel=1e-8, abs=1e-9 * scale)
        order = dense.ndim
        for extreme in (largest, smallest):
            row = tuple(extreme.rows[table, :order].tolist())
            assert dense[row] == pytest.approx(extreme.variances[table], rel=1e-8, abs=1e-9 * scale)
            assert not np.any(extreme.rows[table, order:])


@given(workloads_with_bases(), seeds)
@some
def test_the_map_of_single_cells_against_dense_matrices(workload, seed):
    """Any cells of any tables in any order, some of them twice."""
    closure, sigma_squared = measured_closure(workload, seed)
    dense = all_variances(workload, closure, sigma_squared)
    rng = np.random.default_rng(seed)
    tables = rng.integers(0, len(workload), 40)
    rows = np.zeros((len(tables), workload.members.shape[1]), dtype=np.int64)
    expected = []
    for cell, table in enumerate(tables.tolist()):
        variances = dense[table]
        for axis, count in enumerate(dense[table].shape):
            rows[cell, axis] = int(rng.integers(count))
            variances = variances[rows[cell, axis]]
        expected.append(float(variances))
    result = CellVariances(workload, closure).map(tables, rows)
    scale = max(expected)
    np.testing.assert_allclose(
        result.variances(sigma_squared), expected, rtol=1e-8, atol=1e-9 * scale
    )
    weights = rng.uniform(size=len(tables))
    assert weights @ result.variances(sigma_squared) == pytest.approx(
        result.residual_weights(weights) @ sigma_squared
    )
    assert result.privacy_cost_factor is closure.privacy_cost_factor


@given(workloads_with_bases(max_attributes=3, max_size=4), seeds)
@some
def test_only_rows_of_the_hull_can_be_worst(workload, seed):
    """For noise scales over twelve decades, where other rows are worst each time."""
    closure, _ = measured_closure(workload, seed)
    cells = CellVariances(workload, closure)
    rng = np.random.default_rng(seed)
    for _ in range(5):
        sigma_squared = 10 ** rng.uniform(-6, 6, len(closure))
        largest, smallest = cells.least_accurate(sigma_squared), cells.most_accurate(sigma_squared)
        for table in range(len(workload)):
            every = cells.variances_of(table, sigma_squared)
            assert largest.variances[table] == pytest.approx(every.max(), rel=1e-12)
            assert smallest.variances[table] == pytest.approx(every.min(), rel=1e-12)


@pytest.mark.parametrize("at_once", [1, 7, 1 << 15])
def test_tables_in_batches_of_any_size(at_once, monkeypatch):
    """Tables of many different numbers of candidates, each where it belongs."""
    monkeypatch.setattr(cells_module, "_AT_ONCE", at_once)
    domain = rp.Domain.from_sizes({f"a{i}": 2 + i % 7 for i in range(9)})
    workload = rp.Workload.all_up_to(domain, 3).with_bases(
        {name: Ranges() if index % 3 else Prefix() for index, name in enumerate(domain.names[1:])}
    )
    closure, sigma_squared = measured_closure(workload, 5)
    cells = CellVariances(workload, closure)
    assert len(set(cells._least_accurate.counts.tolist())) > 2
    largest, smallest = cells.least_accurate(sigma_squared), cells.most_accurate(sigma_squared)
    for table in range(len(workload)):
        every = cells.variances_of(table, sigma_squared)
        order = every.ndim
        for extreme, value in ((largest, every.max()), (smallest, every.min())):
            assert extreme.variances[table] == pytest.approx(value, rel=1e-12)
            at = tuple(extreme.rows[table, :order])
            assert every[at] == pytest.approx(value, rel=1e-12)


def test_equal_sizes_do_not_interact():
    """Two attributes of one size, asked differently and measured differently."""
    domain = rp.Domain.from_sizes({"a": 4, "b": 4})
    tables = [(), "a", "b", ("a", "b")]
    strategies = {0: any_strategy(4, 1), 1: any_strategy(4, 2)}

    def variances(first, second, strategies):
        workload = rp.Workload.of(domain, tables).with_bases({"a": first, "b": second})
        closure = Closure.of(workload).with_strategies(workload, strategies)
        cells = CellVariances(workload, closure)
        return [cells.variances_of(t, np.array([2.0, 3.0, 3.0, 5.0])) for t in range(4)]

    one = variances(Prefix(), Ranges(), strategies)
    other = variances(Ranges(), Prefix(), {0: strategies[1], 1: strategies[0]})
    np.testing.assert_allclose(one[1], other[2], rtol=1e-13)
    np.testing.assert_allclose(one[2], other[1], rtol=1e-13)
    np.testing.assert_allclose(one[3], other[3].T, rtol=1e-13)
    # Nothing of one attribute follows from what is done with the other.
    np.testing.assert_array_equal(one[1], variances(Prefix(), Prefix(), strategies)[1])
    swapped = variances(Prefix(), Ranges(), {0: strategies[0], 1: any_strategy(4, 3)})
    np.testing.assert_array_equal(one[1], swapped[1])
    assert not np.allclose(one[2], swapped[2])


def test_single_values_in_any_basis_add_no_residual_but_rows():
    domain = rp.Domain.from_sizes({"one": 1, "a": 3, "uno": 1})
    workload = rp.Workload.of(domain, [("one", "a", "uno"), ("one", "uno")]).with_bases(
        {"one": rp.CustomBasis([[3], [1], [2]]), "uno": rp.CustomBasis([[1], [-2]]), "a": Prefix()}
    )
    closure, sigma_squared = measured_closure(workload, 3)
    assert [closure.attributes(r) for r in range(len(closure))] == [(), (1,)]
    cells = CellVariances(workload, closure)
    small = cells.variances_of(0, sigma_squared)
    expected = sigma_squared[0] * np.outer([9, 1, 4], [1, 4])
    np.testing.assert_allclose(small, expected, rtol=1e-13)
    large = cells.variances_of(1, sigma_squared)
    assert large.shape == (3, 3, 2)
    np.testing.assert_allclose(large, large[1:2, :, :1] * (expected / sigma_squared[0])[:, None])
    assert cells.least_accurate(sigma_squared).rows[0].tolist() == [0, 1, 0]
    assert cells.most_accurate(sigma_squared).rows[0].tolist() == [1, 0, 0]
    single = cells.map(np.array([0]), np.array([[2, 1, 0]]))
    assert single.variances(sigma_squared) == pytest.approx(expected[2, 1])


def test_marginals_need_no_strategies():
    domain = rp.Domain.from_sizes({"a": 10**6, "b": 3})
    workload = rp.Workload.all_up_to(domain, 2)
    closure = Closure.of(workload)
    cells = CellVariances(workload, closure)
    sigma_squared = np.arange(1.0, 5.0)
    for table, variance in enumerate(closure.variances(sigma_squared)):
        every = cells.variances_of(table, sigma_squared)
        assert every.size == workload.cells[table]
        assert every.ravel()[-1] == pytest.approx(variance, rel=1e-13)
    largest, smallest = cells.least_accurate(sigma_squared), cells.most_accurate(sigma_squared)
    np.testing.assert_allclose(largest.variances, smallest.variances, rtol=1e-13)
    with pytest.raises(ValueError, match="read-only"):
        cells.variances_of(1, sigma_squared)[0] = 1


def test_a_table_with_too_many_candidates_is_refused():
    """Twenty attributes, each with several rows that may be the extreme: 2^20 · … combinations."""
    domain = rp.Domain.from_sizes({f"a{i}": 5 for i in range(16)})
    workload = rp.Workload.of(domain, [domain.names]).with_bases(
        {name: Ranges() for name in domain.names}
    )
    strategy = any_strategy(5, 4)
    closure = Closure.of(workload).with_strategies(workload, dict.fromkeys(range(16), strategy))
    cells = CellVariances(workload, closure)
    count = int(cells._most_accurate.counts[0])
    assert count**16 > 5_000_000
    with pytest.raises(PlanError, match=r"\(a0 × a1 × .*a15\) has so many .* use fewer"):
        cells.most_accurate(np.ones(len(closure)))


def test_strategies_are_looked_up_by_attribute_not_by_size():
    domain = rp.Domain.from_sizes({"a": 3, "b": 3})
    workload = rp.Workload.all_up_to(domain, 1).with_bases({"a": Prefix(), "b": Prefix()})
    strategies = any_strategies(workload, 8)
    assert not np.array_equal(strategies[0].integers, strategies[1].integers)
    closure = Closure.of(workload).with_strategies(workload, strategies)
    of_a, of_b = closure.moments
    assert not np.allclose(of_a.spread, of_b.spread)
