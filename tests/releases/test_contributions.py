"""Tables computed in stacks against each computed by itself."""

import tempfile
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rpexplore import Domain, Workload
from rpexplore.planning.mechanism.reconstruction import (
    answers,
    contribution,
    marginal,
    query_matrices,
)
from rpexplore.planning.table_plan import TablePlan
from rpexplore.releases import contributions
from rpexplore.releases.contributions import Contributions
from rpexplore.releases.measurement import measured_cells
from rpexplore.releases.measurement_file import Measured, MeasuredFile
from tests.support.generalised import any_plan, workloads_with_bases


def measured_in(folder: Path, plan: TablePlan, seed: int) -> MeasuredFile:
    (folder / "run").mkdir()
    n_cells = int(measured_cells(plan.closure).sum())
    numbers = np.random.default_rng(seed).integers(-(10**7), 10**7, n_cells)
    numbers.astype("<i8").tofile(folder / "run" / "measured.int64")
    return MeasuredFile(Measured(folder), plan.closure)


def alone(plan: TablePlan, measured: MeasuredFile, table: int) -> np.ndarray:
    """The answers of one table, a residual after another."""
    workload, closure = plan.workload, plan.closure
    indices, parts = workload.attribute_indices(table), {}
    for residual in closure.subsets(table).tolist():
        subset = closure.attributes(residual)
        parts[subset] = contribution(measured.measured(residual), subset, closure.strategies)
    values = marginal(indices, closure.sizes, parts, closure.strategies)
    matrices, bases = query_matrices(workload), workload.attribute_basis_index[table]
    return answers(values, [matrices[basis] for basis in bases[: len(indices)]])


@settings(deadline=None, max_examples=40)
@given(workloads_with_bases(), st.integers(0, 2**32), st.sampled_from([0, 4_000, 10**8]))
def test_each_table_is_as_if_computed_alone(workload, seed, most_kept):
    plan = any_plan(workload, seed)
    order = np.random.default_rng(seed).permutation(len(workload)).tolist()
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(contributions, "_MOST_KEPT", most_kept)
        measured = measured_in(Path(folder), plan, seed)
        tables = Contributions(plan, measured)
        for table in [*order, *range(len(workload))]:
            expected = alone(plan, measured, table)
            assert tables.answers(table).shape == expected.shape
            scale = float(np.max(np.abs(expected)))
            np.testing.assert_allclose(tables.answers(table), expected, 1e-12, 1e-12 * scale)


@pytest.mark.parametrize("most_kept", [0, 400_000_000])
def test_stacks_change_no_digit_of_tables_of_single_values(tmp_path, monkeypatch, most_kept):
    monkeypatch.setattr(contributions, "_MOST_KEPT", most_kept)
    # Stacks of 3 tables of 9 × 9 × 9, and pairs that are not beside each other.
    monkeypatch.setattr(contributions, "_CELLS_AT_ONCE", 3 * 729)
    domain = Domain.from_sizes({f"a{i}": n for i, n in enumerate([9, 9, 9, 1, 12, 9, 9])})
    sets = [table for k in range(4) for table in combinations(domain.names, k)]
    plan = any_plan(Workload.of(domain, sets), 1)
    measured = measured_in(tmp_path, plan, 1)
    tables = Contributions(plan, measured)
    for table in range(len(sets)):
        assert np.array_equal(tables.answers(table), alone(plan, measured, table))


def test_tables_alike_that_follow_each_other_are_read_together(tmp_path):
    domain = Domain.from_sizes({f"a{i}": 3 for i in range(5)})
    plan = any_plan(Workload.all_up_to(domain, 3), 1)
    measured, reads = measured_in(tmp_path, plan, 1), []

    class Counted(MeasuredFile):
        def stacked(self, residuals):
            reads.append(len(residuals))
            return super().stacked(residuals)

    tables = Contributions(plan, Counted(Measured(tmp_path), measured.closure))
    for table in range(len(plan.workload)):
        tables.answers(table)
    assert sorted(reads) == [1, 5, 10, 10]
