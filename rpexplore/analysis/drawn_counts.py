"""Drawn counts: those of the cells of a workload's tables in populations, whatever the noise."""

import math
import threading
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np

from rpexplore.analysis.populations import MOST_CELLS, CountsOfTables, Populations, parts_of
from rpexplore.common.numbers import read_only
from rpexplore.common.processes import Progress, no_progress
from rpexplore.domain.domain import AttributeIndices
from rpexplore.domain.public_tables import Connected, PublicTables
from rpexplore.errors import WorkloadError
from rpexplore.workload.table_text import query_matrix
from rpexplore.workload.workload import Workload

MOST_UNEVEN = 200_000
"""Cells of all tables whose cells are not equally accurate that are gone through one by one."""

MOST_KEPT, _MOST_KEPT_BYTES = 32, 1 << 20  # shares that were worked out; bytes of each

TOO_LARGE = (
    "tables of too many cells that are not equally accurate, or tables by attributes of more than "
    f"{MOST_CELLS:,} values together"
)
LEFT_OUT = f"sums of amounts, weighted counts, {TOO_LARGE}"
NO_FORECAST_OF_SUMS = (
    "Sums and weighted counts cannot be forecast, as nothing is known of what is summed."
)
_NONE_HELD = f"None of the tables can be forecast: they are {LEFT_OUT}."


@dataclass(frozen=True, eq=False, repr=False)
class DrawnCounts:
    """The counts of the cells of tables in populations: whatever the noise, and drawn once.

    public       what populations agree with
    populations  of the tables that are looked at
    groups       their counts, with the tables' places in the workload; of other bases than single
                 values those of their rows
    is_even      whether all cells of a table are equally accurate, bool[n_tables]
    held         which tables are looked at, bool[n_tables]
    tables       the attributes of each table, as indices in the public tables' domain of all levels
    """

    workload: Workload
    public: PublicTables
    populations: Populations
    groups: tuple[tuple[CountsOfTables, np.ndarray], ...]
    is_even: np.ndarray
    held: np.ndarray
    tables: tuple[AttributeIndices, ...]

    @classmethod
    def of(
        cls, workload: Workload, public: PublicTables, on_progress: Progress = no_progress
    ) -> "DrawnCounts":
        """Populations, and the counts of the workload's tables in them."""
        tables = _tables_in(workload, public)
        is_even, held = _looked_at(workload, public, tables)
        if not np.any(held):
            raise WorkloadError(_NONE_HELD)
        places = np.flatnonzero(held)
        by_cell = np.flatnonzero(~is_even[places]).tolist()
        chosen = [tables[place] for place in places.tolist()]
        populations = Populations.of(public, chosen, by_cell, on_progress)
        groups: list[tuple[CountsOfTables, np.ndarray]] = []
        for group in populations.counts:
            of_group = places[group.tables]
            even = is_even[of_group]
            if np.any(even):
                counts = group.counts if np.all(even) else group.counts[even]
                own = CountsOfTables(group.tables[even], counts, group.of_cells)
                groups.append((own, of_group[even]))
            for number in np.flatnonzero(~even).tolist():
                rows = rows_of_cells(workload, int(of_group[number]), group.counts[number])[None]
                own = CountsOfTables(group.tables[[number]], rows, True)
                groups.append((own, of_group[[number]]))
        return cls(workload, public, populations, tuple(groups), is_even, held, tables)

    def of_some(self, most: int) -> "DrawnCounts":
        """The same of so many tables at most, evenly chosen among those that are looked at."""
        places = np.flatnonzero(self.held)
        if len(places) <= most:
            return self
        chosen = np.zeros(len(self.held), dtype=bool)
        chosen[places[np.linspace(0, len(places) - 1, most).round().astype(np.int64)]] = True
        groups = tuple(
            (CountsOfTables(counts.tables[own], counts.counts[own], counts.of_cells), places[own])
            for counts, places in self.groups
            for own in [np.flatnonzero(chosen[places])]
            if len(own)
        )
        return replace(self, groups=groups, held=chosen)

    def shares(
        self,
        standard_errors: np.ndarray,
        cell_standard_errors: Callable[[int], np.ndarray],
        least_counts: Callable[[np.ndarray, np.ndarray], np.ndarray],
        rule: Hashable = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Shares of people and of cells that are good, float64[n_tables, n_populations] each.

        Sessions share these counts, and often a budget: the last few shares are kept for all, if
        they are small, and no table's cells differ.

        Args:
            standard_errors: Of each table, float64[n_tables]; NaN: nobody is in good cells.
            cell_standard_errors: Those of all cells of a table whose cells differ, by its place.
            least_counts: From errors and the places of their tables to the smallest good counts.
            rule: What `least_counts` depends on; None: what was worked out is not kept.
        """
        key = rule, standard_errors.tobytes()
        with _lock:
            if key in self._kept:
                return self._kept[key]
        shape = (len(self.workload), self.populations.n_populations)
        people, cells = np.full(shape, np.nan), np.full(shape, np.nan)
        for counts, places in self._joined:
            errors = standard_errors[places]
            if not self.is_even[places[0]]:
                errors = cell_standard_errors(int(places[0])).reshape(1, -1)
            least = least_counts(errors, places)
            found = counts.good(least, self.populations.n_records, self.workload.cells[places])
            people[places], cells[places] = found
        made = read_only(people), read_only(cells)
        is_small = people.nbytes + cells.nbytes <= _MOST_KEPT_BYTES
        if rule is not None and is_small and np.all(self.is_even[self.held]):
            with _lock:
                self._kept[key] = made
                for old in list(self._kept)[:-MOST_KEPT]:
                    del self._kept[old]
        return made

    @cached_property
    def _kept(self) -> dict[tuple[Hashable, bytes], tuple[np.ndarray, np.ndarray]]:
        return {}

    @cached_property
    def _joined(self) -> Sequence[tuple[CountsOfTables, np.ndarray]]:
        """The groups, those of about as many cells as one: each takes a while, however small."""
        joined: list[tuple[CountsOfTables, np.ndarray]] = []
        by_size: dict[int, list[tuple[CountsOfTables, np.ndarray]]] = {}
        for counts, places in self.groups:
            n_cells = counts.counts.shape[2]
            if counts.of_cells and self.is_even[places[0]]:
                by_size.setdefault(n_cells.bit_length(), []).append((counts, places))
            else:
                joined.append((counts, places))
        for alike in by_size.values():
            width = max(counts.counts.shape[2] for counts, _ in alike)
            filled = [
                np.pad(
                    counts.counts,
                    ((0, 0), (0, 0), (0, width - counts.counts.shape[2])),
                    constant_values=-1,
                )
                for counts, _ in alike
            ]
            tables = np.concatenate([counts.tables for counts, _ in alike])
            own = CountsOfTables(tables, np.sort(np.concatenate(filled), axis=2), True, ascend=True)
            joined.append((own, np.concatenate([places for _, places in alike])))
        return joined


def why_none_drawn(workload: Workload, public: PublicTables) -> str:
    """Why none of the tables can be forecast, in a sentence; "" if some can."""
    if workload.has_amounts.all():
        return NO_FORECAST_OF_SUMS
    _, held = _looked_at(workload, public, _tables_in(workload, public))
    return "" if np.any(held) else _NONE_HELD


def _tables_in(workload: Workload, public: PublicTables) -> tuple[AttributeIndices, ...]:
    """The attributes of each table in the domain of the public tables, with all levels."""
    known = public.domain.with_levels
    to_known = [known.position(name) for name in workload.domain.names]
    return tuple(
        tuple(to_known[index] for index in workload.attribute_indices(place))
        for place in range(len(workload))
    )


def _looked_at(
    workload: Workload, public: PublicTables, tables: tuple[AttributeIndices, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """Whether cells of each table are equally accurate, and whether it is drawn: bool[n_tables]."""
    uneven, left_out = _split_by_accuracy(workload, MOST_UNEVEN)
    # The cells of counts at several levels differ little: many are taken at the root mean
    # square of their errors. Other bases ask for other things than these counts.
    identity = np.array([*(basis.is_identity for _, basis in workload.attribute_bases), True])
    is_count = np.all(identity[workload.attribute_basis_index], axis=1) & ~workload.has_amounts
    left_out = tuple(place for place in left_out if not is_count[place])
    is_even, held = np.ones(len(workload), dtype=bool), np.ones(len(workload), dtype=bool)
    is_even[[*uneven, *left_out]] = False
    held[list(left_out)] = False
    columns = public.domain.with_levels.columns
    if undrawn := columns_not_drawn(parts_of(public, tables)):
        held &= [undrawn.isdisjoint(columns[list(table)].tolist()) for table in tables]
    return is_even, held


def columns_not_drawn(parts: Iterable[Connected]) -> set[int]:
    """The columns of the largest parts, where all would have more than `MOST_CELLS` cells."""
    n_cells, columns = 0, set[int]()
    for of in sorted(parts, key=lambda of: math.prod(of.sizes)):
        n_cells += math.prod(of.sizes)
        if n_cells > MOST_CELLS:
            columns.update(of.columns)
    return columns


def rows_of_cells(workload: Workload, place: int, counts: np.ndarray) -> np.ndarray:
    """What a table asks of counts of its single values: float32[n, n_rows].

    counts: float[n, n_cells]
    """
    indices = workload.attribute_indices(place)
    sizes = [int(workload.domain.sizes[index]) for index in indices]
    counts = counts.reshape(-1, *sizes).astype(float)
    for axis, index in enumerate(indices, start=1):
        attribute = workload.domain.attributes[index]
        counts = query_matrix(workload.basis_of(place, index), attribute).of(counts, axis)
    return np.abs(counts).reshape(len(counts), -1).astype(np.float32)


def _split_by_accuracy(workload: Workload, most: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(tables whose cells differ in accuracy and are gone through, those that are too many).

    Cells differ in tables with an attribute that has another basis than single values somewhere,
    or is in tables at several levels. most: cells of all that are gone through
    """
    columns = workload.domain.columns
    levels = np.bincount(columns[list(workload.used)], minlength=len(columns))
    measured = [
        any(not basis.is_identity for basis in bases) or levels[columns[index]] > 1
        for index, bases in enumerate(workload.bases)
    ]
    measured.append(False)  # for the −1 of the padding
    is_measured = np.any(np.array(measured)[workload.members], axis=1)
    tables = np.flatnonzero(is_measured & ~workload.has_amounts)
    work = np.maximum(workload.cells, workload.counted_cells)[tables]
    smallest = np.argsort(work, kind="stable")
    few = np.cumsum(work[smallest]) <= most
    through, left = (np.sort(tables[smallest[which]]).tolist() for which in (few, ~few))
    # What is summed is not known beforehand.
    return tuple(through), tuple(sorted([*left, *np.flatnonzero(workload.has_amounts).tolist()]))


# ---- Shared by all sessions of the app.


_drawn: "WeakKeyDictionary[DrawnCounts, tuple]" = WeakKeyDictionary()
_lock = threading.Lock()


def drawn_once(
    workload: Workload, public: PublicTables, stated: tuple, on_progress: Progress = no_progress
) -> DrawnCounts:
    """Drawn counts, those of another session if it has drawn the same: they take up to 160 MB.

    stated: what the public tables are made from
    """

    def held() -> DrawnCounts | None:
        with _lock:
            for drawn, of_it in _drawn.items():
                is_alike = of_it == stated and drawn.workload.domain == workload.domain
                if is_alike and drawn.workload.has_tables_of(workload):
                    return drawn
        return None

    if (drawn := held()) is None:
        made = DrawnCounts.of(workload, public, on_progress)
        if (drawn := held()) is None:  # nobody has been faster
            with _lock:
                _drawn[made] = stated
            drawn = made
    return drawn
