"""Area loss: what a loss looks at in the areas of a tree, and the problem that it poses."""

from dataclasses import dataclass

import numpy as np

from rpexplore.common.numbers import read_only
from rpexplore.errors import PlanError
from rpexplore.planning.areas.area_groups import AreaGroups, Profiles
from rpexplore.planning.areas.area_workload import AreaWorkload
from rpexplore.planning.areas.solvers import AreaCapped, AreaMaximum, AreaProblem, AreaSum
from rpexplore.planning.losses.constrained import MaxWithinTargets, SumWithinTargets, WithinTargets
from rpexplore.planning.losses.losses import Loss, MaxVariance, SumOfVariances, WeightedSum
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.mechanism.variances import CellVariances
from rpexplore.workload.workload import Workload

# ---- Cells of tables in areas: the extreme ones of each table, and those that a loss looks at.
#
# In other bases than single values cells differ. Which can be extreme does not depend on the noise,
# so that only these are looked at (docs/mathematics.md §4.3).


_AT_ONCE = 1 << 22  # variances worked on together
_MOST_CELLS = 100_000  # that may be the extreme one of a table


@dataclass(frozen=True, eq=False)
class LossRows:
    """The rows that a loss looks at, of the tables of all levels: means of cells, or single cells.

    tables  int64[n_rows]: of `AreaWorkload.tables`
    cells   int64[n_rows, max_order]: which cell of the table, by the rows of its attributes' bases,
            0 behind; of a mean 0 as well
    means   bool[n_rows]: whether it stands for the mean of the table's cells
    single  bool[n_rows]: whether it stands for a single cell; of single values all are like the
            mean
    matrix  float64[n_rows, n_residuals]: how the variances of residuals get into it
    """

    tables: np.ndarray
    cells: np.ndarray
    means: np.ndarray
    single: np.ndarray
    matrix: np.ndarray

    @classmethod
    def of(
        cls,
        tables: Workload,
        closure: Closure,
        loss: Loss,
        cells: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> "LossRows":
        """Those that a loss needs.

        cells: tables and cells that are looked at one by one; None: all that can be the least
            accurate of their tables
        """
        n_tables = len(tables)
        every, first = np.arange(n_tables), np.zeros(tables.members.shape, dtype=np.int64)
        yes, no = np.ones(n_tables, dtype=bool), np.zeros(n_tables, dtype=bool)
        one_by_one = loss.looks_at_least_accurate_cells or loss.meets_required_targets
        if tables.is_marginals or not one_by_one:
            single = yes if tables.is_marginals else no
            return cls(every, first, yes, single, closure.variance_matrix)
        of_cells = CellVariances(tables, closure)
        if cells is None:
            found = [_candidates(of_cells, table, largest=True) for table in every.tolist()]
            cells = np.repeat(every, [len(rows) for rows in found]), np.concatenate(found)
        own, rows = cells
        matrix = of_cells.map(own, rows).matrix.toarray()
        if loss.looks_at_least_accurate_cells:
            no, yes = np.zeros(len(own), dtype=bool), np.ones(len(own), dtype=bool)
            return cls(own, rows, no, yes, matrix)
        return cls(
            np.append(every, own),
            np.concatenate([first, rows]),
            np.append(yes, np.zeros(len(own), dtype=bool)),
            np.append(no, np.ones(len(own), dtype=bool)),
            np.concatenate([closure.variance_matrix, matrix]),
        )

    def __post_init__(self) -> None:
        for array in (self.tables, self.cells, self.means, self.single):
            read_only(array)

    def __len__(self) -> int:
        return len(self.tables)

    def of_tables(self, of_kind: np.ndarray, rows: np.ndarray, otherwise: float) -> np.ndarray:
        """Numbers of the tables `rows`, float64[n], for all rows here: float64[n_rows].

        otherwise: for the rows of other tables
        """
        of_every = np.full(int(max(np.max(self.tables), np.max(rows))) + 1, otherwise)
        of_every[rows] = of_kind
        return of_every[self.tables]


def mean_variances(
    workload: AreaWorkload, closure: Closure, kind: int, variances: np.ndarray
) -> np.ndarray:
    """Mean variance of the cells of each table of a workload: float64[n_tables, n_groups].

    variances: of the answers to residuals in some groups, float64[n_residuals, n_groups]
    """
    return closure.variance_matrix[workload.rows[kind]] @ variances


def extreme_variances(
    workload: AreaWorkload, closure: Closure, kind: int, variances: np.ndarray, *, largest: bool
) -> np.ndarray:
    """As `mean_variances`, of the least accurate cell of each table, or of the most accurate."""
    extreme = mean_variances(workload, closure, kind, variances)
    if workload.tables.is_marginals:
        return extreme
    cells, further = CellVariances(workload.tables, closure), np.maximum if largest else np.minimum
    for row, table in enumerate(workload.rows[kind].tolist()):
        candidates = _candidates(cells, table, largest=largest)
        factors = cells.map(np.full(len(candidates), table), candidates).matrix.toarray()
        # In blocks of groups: all candidates × all groups would not fit in memory.
        step = max(_AT_ONCE // len(factors), 1)
        for start in range(0, variances.shape[1], step):
            some = slice(start, start + step)
            # Rounding must not put a mean outside its extremes where all cells are alike.
            own = further.reduce(factors @ variances[:, some], axis=0)
            extreme[row, some] = further(extreme[row, some], own)
    return extreme


def _candidates(cells: CellVariances, table: int, *, largest: bool) -> np.ndarray:
    """The cells of a table that can be its extreme one: int64[n_candidates, max_order]."""
    tables = cells.workload
    if cells.closure.trees:
        distinct = cells.distinct_cells(np.array([table]))
        if distinct is None:
            raise PlanError(
                f"The table {tables.describe(table)} has so many groups on different levels that "
                "its least accurate cell cannot be computed; use fewer of them."
            )
        return distinct[1]
    bases = tables.attribute_basis_index[table]
    of_bases = [cells.moments[basis] for basis in bases.tolist() if basis >= 0]
    listed = [
        basis.least_accurate_rows if largest else basis.most_accurate_rows for basis in of_bases
    ]
    # As a float: the product can exceed 64 bits before it is refused.
    count = np.prod([float(len(each)) for each in listed])
    if count > _MOST_CELLS:
        raise PlanError(
            f"The table {tables.describe(table)} has so many of its attributes in other bases than "
            "single values that its least accurate cell cannot be computed; use fewer of them."
        )
    rows = np.zeros((int(count), len(bases)), dtype=np.int64)
    if listed:
        combined = np.meshgrid(*listed, indexing="ij")
        rows[:, : len(listed)] = np.stack([each.ravel() for each in combined], axis=1)
    return rows


# ---- Area loss: what a loss looks at in the areas of a tree, and the problem that it poses.


AREA_LOSSES = (SumOfVariances, MaxVariance, SumWithinTargets, MaxWithinTargets)
"""What plans for areas can make small."""


def loss_of_variances(
    workload: AreaWorkload,
    groups: AreaGroups,
    closure: Closure,
    loss: Loss,
    residual_variances: np.ndarray,
) -> float:
    """The loss where residuals have these variances, float64[n_residuals, n_groups]."""
    total, largest, weights = 0.0, 0.0, table_weights(workload, loss)
    for kind, of_tables in enumerate(weights):
        of_kind = groups.kinds == kind
        variances = residual_variances[:, of_kind]
        if isinstance(loss, WeightedSum):
            weighted = of_tables @ mean_variances(workload, closure, kind, variances)
            total += float(weighted @ groups.multiplicity[of_kind]) / float(
                workload.areas_asked[kind]
            )
        else:
            of_cells = extreme_variances(workload, closure, kind, variances, largest=True)
            largest = max(largest, float(np.max(of_tables[:, None] * of_cells)))
    return total if isinstance(loss, WeightedSum) else largest


def profiles_of(
    workload: AreaWorkload,
    closure: Closure,
    loss: Loss,
    rows: LossRows,
    exact_levels: np.ndarray,
) -> Profiles:
    """Which residuals are planned as one for a loss.

    exact_levels: int64[n_residuals]: on so many levels, from the top on, each is known exactly
    """
    matrix = rows.matrix
    if isinstance(loss, SumOfVariances):
        matrix = _weights(workload, loss, rows) / workload.areas_asked[:, None] @ matrix
    kinds = None if closure.classes is None else closure.classes.toarray()
    return Profiles.of(matrix, closure.full_cost_factor, exact_levels, kinds)


def area_problem(
    workload: AreaWorkload,
    groups: AreaGroups,
    loss: Loss,
    rows: LossRows,
    profiles: Profiles,
    uniform: bool,
    cost: float,
) -> AreaProblem:
    """The input of the search for the best precisions.

    Its variances are those at a privacy cost of 1 for a record, its losses those at `cost`.
    """
    exact_levels = tuple(profiles.exact_levels.tolist())
    given = groups, profiles.costs, profiles.kinds, uniform
    if isinstance(loss, SumOfVariances):
        weights = _of_groups(profiles.columns / cost, groups)
        return AreaSum(*given, weights, exact_levels=exact_levels)
    of_rows = _weights(workload, loss, rows) / cost
    largest = not isinstance(loss, WeightedSum)
    if not largest:
        of_rows /= workload.areas_asked[:, None]
    weights = _of_groups(of_rows, groups)
    if not isinstance(loss, WithinTargets) or (largest and requires_all(workload)):
        return AreaMaximum(*given, profiles.columns, weights, exact_levels=exact_levels)
    caps = _of_groups(row_caps(workload, loss, rows) * cost, groups, np.inf)
    return AreaCapped(*given, profiles.columns, weights, caps, largest, exact_levels=exact_levels)


def requires_all(workload: AreaWorkload) -> bool:
    """Whether the targets of all tables in all areas are required."""
    return all(bool(np.all(asked.required)) for asked in workload.workloads)


def table_weights(workload: AreaWorkload, loss: Loss) -> list[np.ndarray]:
    """Weight of the variance of each table of each of the workloads; 0: it does not count.

    If every target is required, all tables count, as in plans without areas.
    """
    all_count = not loss.meets_required_targets or requires_all(workload)
    return [
        loss.table_weights(asked)
        if all_count or not np.all(asked.required)
        else np.zeros(len(asked))
        for asked in workload.workloads
    ]


def caps_of(workload: AreaWorkload, loss: WithinTargets) -> list[np.ndarray]:
    """The largest variance that each table of each of the workloads may have; inf: any.

    Raises `WorkloadError` if no target is required.
    """
    required = [bool(np.any(asked.required)) for asked in workload.workloads]
    if not any(required):
        return [loss.caps(asked) for asked in workload.workloads]  # which says what is missing
    return [
        loss.caps(asked) if has_some else np.full(len(asked), np.inf)
        for asked, has_some in zip(workload.workloads, required, strict=True)
    ]


def row_caps(workload: AreaWorkload, loss: WithinTargets, rows: LossRows) -> np.ndarray:
    """The largest variance of each row where a workload is asked: float64[n_workloads, n_rows]."""
    of_rows = [
        np.where(rows.single, rows.of_tables(limits, own, np.inf), np.inf)
        for own, limits in zip(workload.rows, caps_of(workload, loss), strict=True)
    ]
    return np.stack(of_rows)


def _weights(workload: AreaWorkload, loss: Loss, rows: LossRows) -> np.ndarray:
    """Weight of each row where a workload is asked for, float64[n_workloads, n_rows]."""
    counted = rows.means if isinstance(loss, WeightedSum) else rows.single
    of_rows = [
        np.where(counted, rows.of_tables(of_tables, own, 0.0), 0.0)
        for own, of_tables in zip(workload.rows, table_weights(workload, loss), strict=True)
    ]
    return np.stack(of_rows)


def _of_groups(of_kinds: np.ndarray, groups: AreaGroups, otherwise: float = 0.0) -> np.ndarray:
    """Rows of kinds as columns of groups, [n_columns, n_groups].

    otherwise: where nothing is asked
    """
    nothing = np.full((1, of_kinds.shape[1]), otherwise)
    return np.ascontiguousarray(np.append(of_kinds, nothing, axis=0)[groups.kinds].T)
