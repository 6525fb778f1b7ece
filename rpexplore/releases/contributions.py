"""Contributions of residuals to tables, computed from measurements when a table needs them."""

import threading
from collections import OrderedDict

import numpy as np

from rpexplore.planning.mechanism.reconstruction import (
    answers,
    contribution,
    marginal,
    query_matrices,
)
from rpexplore.planning.plan import Plan
from rpexplore.releases.measurement_file import MeasuredFile

_MOST_KEPT = 400_000_000  # bytes


class Contributions:
    """What each residual of a plan adds to its tables, and the tables.

    What several tables need is kept, up to 400 MB. Several threads may use it at a time.
    """

    def __init__(self, plan: Plan, measurements: MeasuredFile) -> None:
        self._plan, self._measurements = plan, measurements
        self._query_matrices = query_matrices(plan.workload)
        self._uses = np.bincount(plan.closure.incidence.indices, minlength=len(plan.closure))
        self._kept: OrderedDict[int, np.ndarray] = OrderedDict()
        self._bytes_kept = 0
        self._lock = threading.Lock()

    def answers(self, table: int) -> np.ndarray:
        """The unbiased answers of a table of the workload: float64, one axis an attribute."""
        workload, closure = self._plan.workload, self._plan.closure
        indices = workload.attribute_indices(table)
        residuals = closure.subsets(table).tolist()
        parts = {closure.attributes(residual): self._of(residual) for residual in residuals}
        values = marginal(indices, closure.sizes, parts, closure.strategies)
        bases = workload.attribute_basis_index[table, : len(indices)]
        return answers(values, [self._query_matrices[basis] for basis in bases])

    def _of(self, residual: int) -> np.ndarray:
        with self._lock:
            if residual in self._kept:
                self._kept.move_to_end(residual)
                return self._kept[residual]
        closure = self._plan.closure
        measured = self._measurements.measured(residual)
        part = contribution(measured, closure.attributes(residual), closure.strategies)
        with self._lock:
            # Another thread may have been as quick.
            if self._uses[residual] > 1 and residual not in self._kept:
                self._kept[residual] = part
                self._bytes_kept += part.nbytes
            while self._bytes_kept > _MOST_KEPT:
                _, oldest = self._kept.popitem(last=False)
                self._bytes_kept -= oldest.nbytes
        return part
