"""What a release of a workload will need, and which tables are in its way. Never sees a record."""

import os
from dataclasses import dataclass

import numpy as np

from rpexplore.common.text import data_size, describe_count, duration, plural
from rpexplore.planning.mechanism.subsets import MAX_INCIDENCES, MAX_LARGEST_ORDER
from rpexplore.releases.large_tables import (
    MAX_TABLE_CELLS,
    are_large,
    measured_otherwise,
    why_not_sliced,
)
from rpexplore.releases.measurement import PART_CELLS
from rpexplore.releases.packed_tables import bytes_of_tables, packed_tables
from rpexplore.workload.table_text import title
from rpexplore.workload.workload import Workload

# Measured with releases of 10^5 to 10^9 cells on two cores; good for an order of magnitude.
_MEMORY = 400_000_000  # bytes, whatever the tables
_MEMORY_PER_CELL = 4  # of all that is counted at a time
_MEMORY_PER_LARGEST_CELL = 40  # while the largest table is measured and written
_SECONDS_PER_TABLE, _SECONDS_PER_CELL = 0.0025, 1e-6
_SECONDS_PER_PACKED_TABLE, _SECONDS_PER_PACKED_CELL = 0.0003, 3e-7

_LONG = 3600.0  # seconds from which on a run is worth a warning
_MOST_NAMES = 6  # of the attributes of a table


def computer_memory() -> int:
    """The memory of this computer in bytes, whoever uses it now."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


@dataclass(frozen=True)
class ReleaseSize:
    """What the tables of a release need, roughly: disk and memory in bytes, time in seconds.

    Reading the records comes on top. On the disk, so do what was measured and other parts of the
    plan: `PlanSteps.n_bytes` has them, once there is a plan.
    """

    disk: float
    memory: float
    seconds: float

    @classmethod
    def of(cls, workload: Workload) -> "ReleaseSize":
        # Single values are measured; the rows of a basis, such as ranges, are more cells.
        cells, largest = float(np.sum(workload.cells)), float(np.max(workload.cells))
        packed = packed_tables(workload)
        packed_cells, n_others = float(np.sum(workload.cells[packed])), len(workload) - len(packed)
        return cls(
            disk=float(np.sum(bytes_of_tables(workload))),
            memory=float(_memory(float(np.sum(workload.counted_cells)), largest)),
            seconds=_SECONDS_PER_TABLE * n_others
            + _SECONDS_PER_CELL * (cells - packed_cells)
            + _SECONDS_PER_PACKED_TABLE * len(packed)
            + _SECONDS_PER_PACKED_CELL * packed_cells,
        )

    def text(self, written: float | None = None) -> str:
        """What it needs, in a sentence; written: bytes of the whole release, by its plan."""
        return (
            f"A release of these tables takes about {duration(self.seconds)} and needs about "
            f"{data_size(self.memory)} of memory; the whole release writes about "
            f"{data_size(self.disk if written is None else written)}."
        )


@dataclass(frozen=True)
class Remedy:
    """A limit under which everything fits, and how many tables it drops.

    limit       in words: "1,000 cells", "5 attributes"
    most_cells  of single values, whatever the bases of attributes
    """

    dropped: int
    limit: str
    most_cells: int | None = None
    most_order: int | None = None


@dataclass(frozen=True)
class Fit:
    """Whether tables can be planned and released, what is in the way, and the remedy if any."""

    obstacles: tuple[str, ...]
    can_be_planned: bool
    remedy: Remedy | None

    @classmethod
    def of(cls, workload: Workload, *, free_disk: float, memory: float) -> "Fit":
        """The fit of a workload on a computer with so many bytes of free disk, and of memory."""
        if obstacle := _planning_obstacle(workload):
            return cls((obstacle,), False, _fewer_attributes(workload))
        if obstacles := _release_obstacles(workload, free_disk, memory):
            return cls(tuple(obstacles), True, _fewer_cells(workload, free_disk, memory))
        if (seconds := ReleaseSize.of(workload).seconds) > _LONG:
            obstacles = [f"A release will take about {duration(seconds)}, whatever the records."]
        return cls(tuple(obstacles), True, None)


def _planning_obstacle(workload: Workload) -> str:
    """Why a workload is too large even to be planned; "" if it is not."""
    orders = _orders(workload)
    largest = int(np.argmax(orders))
    contained = float(np.sum(2.0 ** np.minimum(orders, 100)))
    if orders[largest] <= MAX_LARGEST_ORDER and contained <= MAX_INCIDENCES:
        return ""
    reason = (
        f"the tables contain {describe_count(int(contained))} others in all (2^k for a table of k "
        f"attributes), and at most {MAX_INCIDENCES:,} can be gone through"
    )
    if orders[largest] > MAX_LARGEST_ORDER:
        reason = f"tables of at most {MAX_LARGEST_ORDER} attributes can be planned"
    return (
        f"This is too much to plan: {reason}. The largest table, {_name(workload, largest)}, has "
        f"{orders[largest]} attributes and contains 2^{orders[largest]} others."
    )


def _release_obstacles(workload: Workload, free_disk: float, memory: float) -> list[str]:
    size = ReleaseSize.of(workload)
    largest = int(np.argmax(workload.cells))
    n_cells = describe_count(int(workload.exact_cells[largest]))
    table = f"The largest table, {_name(workload, largest)}, has {n_cells} cells"
    obstacles = []
    if refused := _refused(workload):
        position = max(refused, key=lambda table: workload.cells[table])
        n_cells = describe_count(int(workload.exact_cells[position]))
        obstacles.append(
            f"The table {_name(workload, position)} has {n_cells} cells; {refused[position]} "
            f"({plural(len(refused), 'table')} can be planned only)."
        )
    elif size.memory > memory:
        obstacles.append(
            f"A release needs about {data_size(size.memory)} of memory, and this computer has "
            f"{data_size(memory)}. {table}."
        )
    if size.disk > free_disk:
        lean = float(np.sum(bytes_of_tables(workload, parquet_only=True)))
        per_cell = size.disk / float(np.sum(workload.cells))
        obstacles.append(
            f"A release writes about {data_size(size.disk)}, {per_cell:.0f} bytes a cell; "
            f"{data_size(free_disk)} are free on this computer. {table}. Without CSV files "
            "(--parquet-only, or “Parquet files only” on the Release page) it writes about "
            f"{data_size(lean)}."
        )
    return obstacles


def _refused(workload: Workload) -> dict[int, str]:
    """The tables that no release can have because of their cells, and why, as a clause."""
    others = measured_otherwise(workload)
    reasons = {
        table: why_not_sliced(workload, table, others)
        for table in np.flatnonzero(are_large(workload)).tolist()
    }
    return {table: reason for table, reason in reasons.items() if reason}


def _fewer_cells(workload: Workload, free_disk: float, memory: float) -> Remedy | None:
    """The largest tables that may stay, as a round number of cells where there is one.

    By their cells of single values, which is what a request limits.
    """
    order = np.argsort(workload.counted_cells, kind="stable")
    counted, cells = workload.counted_cells[order], workload.cells[order]
    largest, counted_so_far = np.maximum.accumulate(cells), np.cumsum(counted)
    is_refused = np.zeros(len(order), dtype=bool)
    is_refused[list(_refused(workload))] = True
    fits = (
        ~np.logical_or.accumulate(is_refused[order])
        & (np.cumsum(bytes_of_tables(workload)[order]) <= free_disk)
        & (_memory(counted_so_far, largest) <= memory)
    )
    # Tables of the same size stay or go together.
    kept = int(np.searchsorted(counted, counted[np.argmin(fits)]))
    if kept == 0:
        return None
    most = int(counted[kept - 1])
    round_number = 10 ** len(str(most - 1)) if most > 1 else 1
    most = round_number if round_number < counted[kept] else most
    of_values = "" if workload.is_marginals else " of single values"
    return Remedy(len(cells) - kept, f"{plural(most, 'cell')}{of_values}", most_cells=most)


def _fewer_attributes(workload: Workload) -> Remedy | None:
    orders = _orders(workload)
    for order in range(min(int(orders.max()), MAX_LARGEST_ORDER), 0, -1):
        kept = orders[orders <= order]
        if np.sum(2.0**kept) <= MAX_INCIDENCES and len(kept):
            dropped = len(orders) - len(kept)
            return Remedy(dropped, plural(order, "attribute"), most_order=order)
    return None


def _orders(workload: Workload) -> np.ndarray:
    """Number of attributes of each table that have more than one value, int64[n_tables]."""
    several = np.append(workload.domain.sizes > 1, False)
    return np.count_nonzero(several[workload.members], axis=1)


def _memory(counted: float | np.ndarray, largest: float | np.ndarray) -> float | np.ndarray:
    at_a_time = _MEMORY_PER_CELL * np.minimum(counted, PART_CELLS)
    # Larger tables are put together slice by slice.
    return _MEMORY + at_a_time + _MEMORY_PER_LARGEST_CELL * np.minimum(largest, MAX_TABLE_CELLS)


def _name(workload: Workload, position: int) -> str:
    names = workload.tables[position]
    return title(names if len(names) <= _MOST_NAMES else (*names[:_MOST_NAMES], "…"))
