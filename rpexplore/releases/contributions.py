"""The tables of a release from its measurements, several at a time where they are alike.

Alike are residuals, or tables, whose attributes are measured, and asked for, alike along every
axis: what is done to one is done to a stack of them.
"""

import threading
from collections import OrderedDict
from collections.abc import Iterator
from functools import cached_property

import numpy as np

from rpexplore.common.numbers import distinct_rows
from rpexplore.planning.mechanism.reconstruction import (
    answers,
    contribution,
    impossible_answers,
    marginal,
    query_matrices,
)
from rpexplore.planning.table_plan import TablePlan
from rpexplore.releases.large_tables import SlicedTable
from rpexplore.releases.measurement_file import MeasuredFile
from rpexplore.workload.table_text import QueryMatrix

_MOST_KEPT = 400_000_000  # bytes
_CELLS_AT_ONCE = 1 << 17  # of a stack, which stays in the cache
_STACKS_KEPT = 8


class Contributions:
    """What each residual of a plan adds to its tables, and the tables.

    What several tables need is kept, up to 400 MB. Several threads may use it at a time.
    """

    def __init__(self, plan: TablePlan, measurements: MeasuredFile) -> None:
        self._plan, self._measurements = plan, measurements
        self._query_matrices = query_matrices(plan.workload)
        self._kept: dict[int, np.ndarray] = {}
        self._stacks: OrderedDict[int, np.ndarray] = OrderedDict()
        self._lock = threading.RLock()

    def answers(self, table: int) -> np.ndarray:
        """The unbiased answers of a table of the workload: float64, one axis an attribute.

        Best asked for in the order of the workload: tables alike that follow each other are
        computed together.
        """
        values = self._in_stack(table)
        # Exact totals are whole numbers, of which sums of floats are off by a rounding.
        return np.rint(values) if self._plan.is_exact[table] else values

    def _in_stack(self, table: int) -> np.ndarray:
        stack = int(self._stack_of[table])
        first, stop = np.searchsorted(self._stack_of, [stack, stack + 1]).tolist()
        if stop - first == 1:  # without waiting for others
            return self._answers(np.array([table]))[0]
        with self._lock:
            if stack not in self._stacks:
                self._stacks[stack] = self._answers(np.arange(first, stop))
                if len(self._stacks) > _STACKS_KEPT:
                    self._stacks.popitem(last=False)
            return self._stacks[stack][table - first]

    def slices(self, table: int) -> Iterator[tuple[range, np.ndarray]]:
        """The answers of a large table (`large_tables.are_large`) slice by slice: float64.

        Some values of its first attribute with several, and their counts, one axis an attribute.
        """
        closure, indices = self._plan.closure, self._plan.workload.attribute_indices(table)
        residuals = {
            closure.attributes(residual): residual for residual in closure.subsets(table).tolist()
        }
        sliced = SlicedTable(closure, indices, residuals, self._measurements.rows)
        for rows, values in sliced.slices():
            yield rows, np.rint(values) if self._plan.is_exact[table] else values

    def impossible(self, table: int) -> np.ndarray | None:
        """Which answers of a table count no possible record; None if all count some."""
        workload = self._plan.workload
        return impossible_answers(
            workload.domain, workload.attribute_indices(table), self._matrices(table)
        )

    def _matrices(self, table: int) -> list[QueryMatrix | None]:
        bases = self._plan.workload.attribute_basis_index[table]
        return [self._query_matrices[basis] for basis in bases if basis >= 0]

    def _answers(self, tables: np.ndarray) -> np.ndarray:
        """The answers of tables alike, int64[m]: float64[m, …]."""
        return answers(self._marginals(tables), self._matrices(int(tables[0])))

    def _marginals(self, tables: np.ndarray) -> np.ndarray:
        """Their marginals by single values: float64[m, …]."""
        workload, closure = self._plan.workload, self._plan.closure
        indices = workload.attribute_indices(int(tables[0]))
        # Column by column the same subsets of the attributes of each.
        residuals = np.stack([closure.subsets(table) for table in tables.tolist()])
        parts = {
            closure.attributes(int(column[0])): self._contributions(column)
            for column in residuals.T
        }
        return marginal(indices, closure.sizes, parts, closure.strategies, closure.trees)

    def _contributions(self, residuals: np.ndarray) -> np.ndarray:
        """Those of residuals alike, int64[m]: float64[m, …]."""
        form = int(self._forms[residuals[0]])
        if not self._are_kept[form]:
            return self._computed(residuals)
        with self._lock:
            if form not in self._kept:
                self._kept[form] = self._computed(np.flatnonzero(self._forms == form))
        return self._kept[form][self._rows[residuals]]

    def _computed(self, residuals: np.ndarray) -> np.ndarray:
        closure, m = self._plan.closure, len(residuals)
        attributes = closure.attributes(int(residuals[0]))
        step = max(1, _CELLS_AT_ONCE // int(closure.residual_cells[residuals[0]]))
        parts = (
            contribution(
                self._measurements.stacked(residuals[start : start + step]),
                attributes,
                closure.strategies,
            )
            for start in range(0, m, step)
        )
        if m <= step:
            return next(parts)
        computed = np.empty((m, *closure.sizes[list(attributes)]))
        for start, part in zip(range(0, m, step), parts, strict=True):
            computed[start : start + step] = part
        return computed

    @cached_property
    def _forms(self) -> np.ndarray:
        """Of each residual a number, the same for those alike: int64[n_residuals]."""
        closure = self._plan.closure
        orders = np.count_nonzero(closure.members >= 0, axis=1)
        forms = closure.attribute_forms[closure.members].T
        return distinct_rows([orders, closure.residual_forms, *forms])[1]

    @cached_property
    def _rows(self) -> np.ndarray:
        """Which of those alike a residual is: int64[n_residuals]."""
        order = np.argsort(self._forms, kind="stable")
        counts = np.bincount(self._forms)
        rows = np.empty_like(order)
        rows[order] = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
        return rows

    @cached_property
    def _are_kept(self) -> np.ndarray:
        """Whether residuals of a form are kept, bool: those of several tables, small ones first."""
        closure = self._plan.closure
        uses = np.bincount(closure.incidence.indices, minlength=len(closure))
        n_bytes = 8 * np.bincount(self._forms, closure.residual_cells)
        are_shared = np.bincount(self._forms, uses > 1) > 0
        order = np.argsort(np.where(are_shared, n_bytes, np.inf), kind="stable")
        fit = np.empty_like(are_shared)
        fit[order] = np.cumsum(n_bytes[order]) <= _MOST_KEPT
        return are_shared & fit

    @cached_property
    def _stack_of(self) -> np.ndarray:
        """The tables that are computed together, as ascending numbers: int64[n_tables]."""
        workload, closure = self._plan.workload, self._plan.closure
        is_single = [basis.is_identity for _, basis in workload.attribute_bases]
        bases = np.where([*is_single, True], -1, np.arange(len(is_single) + 1))
        forms = [
            workload.orders,
            # Each of these by itself.
            np.where(closure.tables_with_own_matrices, 1 + np.arange(len(workload)), 0),
            *closure.attribute_forms[workload.members].T,
            *bases[workload.attribute_basis_index].T,
        ]
        alike = distinct_rows(forms)[1]
        n_cells = np.maximum(workload.cells, workload.counted_cells)
        pieces = np.cumsum(n_cells) // _CELLS_AT_ONCE
        begins = (np.diff(alike) != 0) | (np.diff(pieces) != 0)
        return np.concatenate([[0], np.cumsum(begins)])
