"""What a release of a workload will need, and which tables are in its way. Never sees a record.

Said while the tables are being chosen, long before a run would fail: which table, how large it
is, and what to ask for instead.
"""

import os
from dataclasses import dataclass

import numpy as np

from rpexplore.common.formatting import data_size, describe_count, duration, plural
from rpexplore.planning.mechanism.closure import MAX_INCIDENCES, MAX_LARGEST_ORDER
from rpexplore.releases.measurement import MAX_CELLS, MAX_TABLE_CELLS
from rpexplore.releases.table_folder import BYTES_PER_CELL
from rpexplore.workload.table_text import title
from rpexplore.workload.workload import Workload

# Measured with releases of 10^5 to 2·10^8 cells on two cores; good for an order of magnitude.
_MEMORY = 400_000_000  # bytes, whatever the tables
_MEMORY_PER_CELL = 4  # of all that is counted
_MEMORY_PER_LARGEST_CELL = 70  # while the largest tables are measured and written
_SECONDS_PER_TABLE, _SECONDS_PER_CELL = 0.0025, 1e-6

_LONG = 3600.0  # seconds from which on a run is worth a warning


def computer_memory() -> int:
    """The memory of this computer in bytes, whoever uses it now."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


@dataclass(frozen=True)
class ReleaseSize:
    """What a release needs, roughly: disk and memory in bytes, time in seconds.

    Reading the records comes on top.
    """

    disk: float
    memory: float
    seconds: float

    @classmethod
    def of(cls, workload: Workload) -> "ReleaseSize":
        # Single values are measured; what is asked of them, such as ranges, are more cells.
        cells, largest = float(np.sum(workload.cells)), float(np.max(workload.cells))
        return cls(
            disk=BYTES_PER_CELL * cells,
            memory=float(_memory(float(np.sum(workload.counted_cells)), largest)),
            seconds=_SECONDS_PER_TABLE * len(workload) + _SECONDS_PER_CELL * cells,
        )

    @property
    def text(self) -> str:
        """What it needs, in a sentence."""
        return (
            f"A release of these tables takes about {duration(self.seconds)}, writes about "
            f"{data_size(self.disk)} and needs about {data_size(self.memory)} of memory."
        )


@dataclass(frozen=True)
class Remedy:
    """What to ask for so that everything fits: one of two limits, and how many tables it drops.

    most_cells counts those of single values, however attributes are asked; counting says so.
    """

    dropped: int
    most_cells: int | None = None
    most_order: int | None = None
    counting: str = ""

    @property
    def limit(self) -> str:
        """The limit in words: "1,000 cells", "5 attributes"."""
        if self.most_order is not None:
            return plural(self.most_order, "attribute")
        return plural(self.most_cells or 0, "cell") + self.counting


@dataclass(frozen=True)
class Fit:
    """Whether tables can be planned and released, what is in the way, and the remedy if any."""

    obstacles: tuple[str, ...]
    can_be_planned: bool
    remedy: Remedy | None

    @classmethod
    def of(cls, workload: Workload, *, free_disk: float, memory: float) -> "Fit":
        """The fit of a workload on a computer with so many bytes of free disk, and of memory."""
        if words := _in_the_way_of_a_plan(workload):
            return cls((words,), False, _fewer_attributes(workload))
        if words := _in_the_way_of_a_release(workload, free_disk, memory):
            return cls(tuple(words), True, _fewer_cells(workload, free_disk, memory))
        if (seconds := ReleaseSize.of(workload).seconds) > _LONG:
            words = [f"A release will take about {duration(seconds)}, whatever the records."]
        return cls(tuple(words), True, None)


def _in_the_way_of_a_plan(workload: Workload) -> str:
    """Why a workload is too large even to be planned; "" if it is not."""
    orders = _orders(workload)
    largest = int(np.argmax(orders))
    table = f"{_named(workload, largest)}, has {orders[largest]} attributes"
    contained = float(np.sum(2.0 ** np.minimum(orders, 100)))
    if orders[largest] > MAX_LARGEST_ORDER:
        return (
            f"This is too much to plan: the largest table, {table}, and so contains 2^"
            f"{orders[largest]} others; tables of at most {MAX_LARGEST_ORDER} attributes can be "
            "planned."
        )
    if contained > MAX_INCIDENCES:
        return (
            f"This is too much to plan: the tables contain {describe_count(int(contained))} others "
            f"in all (2^k for a table of k attributes), and at most {MAX_INCIDENCES:,} can be gone "
            f"through. The largest table, {table}."
        )
    return ""


def _in_the_way_of_a_release(workload: Workload, free_disk: float, memory: float) -> list[str]:
    size, total = ReleaseSize.of(workload), float(np.sum(workload.counted_cells))
    largest = int(np.argmax(workload.cells))
    table = f"The largest table, {_named(workload, largest)}, has {_cells(workload, largest)}"
    found = []
    if workload.cells[largest] > MAX_TABLE_CELLS:
        many = int(np.count_nonzero(workload.cells > MAX_TABLE_CELLS))
        others = "" if many == 1 else f" {many:,} tables are larger than that."
        found.append(
            f"{table}; a release can have at most {MAX_TABLE_CELLS:,} in one table, because it "
            f"is computed in memory all at once.{others} A plan will tell how accurate it "
            "would be, but it cannot be released."
        )
    elif total > MAX_CELLS:
        counted = "cells" if workload.is_marginals else "counts of single values"
        found.append(
            f"The tables have {describe_count(int(total))} {counted} in all; a release can have "
            f"about {MAX_CELLS:,} at most, because they are counted in memory. {table}."
        )
    elif size.memory > memory:
        found.append(
            f"A release needs about {data_size(size.memory)} of memory, and this computer has "
            f"{data_size(memory)}. {table}."
        )
    if size.disk > free_disk:
        disk = (
            f"A release writes about {data_size(size.disk)}, {BYTES_PER_CELL} bytes a cell; "
            f"{data_size(free_disk)} are free on this computer."
        )
        found.append(disk if found else f"{disk} {table}.")
    return found


def _fewer_cells(workload: Workload, free_disk: float, memory: float) -> Remedy | None:
    """The largest tables that may stay, as a round number of cells where there is one.

    By their cells of single values, which is what a request limits.
    """
    order = np.argsort(workload.counted_cells, kind="stable")
    counted, cells = workload.counted_cells[order], workload.cells[order]
    so_far, largest = np.cumsum(cells), np.maximum.accumulate(cells)
    counted_so_far = np.cumsum(counted)
    fits = (
        (largest <= MAX_TABLE_CELLS)
        & (so_far <= free_disk / BYTES_PER_CELL)
        & (counted_so_far <= MAX_CELLS)
        & (_memory(counted_so_far, largest) <= memory)
    )
    # Tables of the same size stay or go together.
    kept = int(np.searchsorted(counted, counted[np.argmin(fits)]))
    if kept == 0:
        return None
    most = int(counted[kept - 1])
    round_number = 10 ** len(str(most - 1)) if most > 1 else 1
    return Remedy(
        dropped=len(cells) - kept,
        most_cells=round_number if round_number < counted[kept] else most,
        counting="" if workload.is_marginals else " of single values",
    )


def _fewer_attributes(workload: Workload) -> Remedy | None:
    orders = _orders(workload)
    highest = min(int(orders.max()), MAX_LARGEST_ORDER)
    for order in range(highest, 0, -1):
        kept = orders[orders <= order]
        if np.sum(2.0**kept) <= MAX_INCIDENCES and len(kept):
            return Remedy(dropped=len(orders) - len(kept), most_order=order)
    return None


def _orders(workload: Workload) -> np.ndarray:
    """Number of attributes of each table that have more than one value, int64[n_tables]."""
    several = np.append(workload.domain.sizes > 1, False)
    return np.count_nonzero(several[workload.members], axis=1)


def _memory(counted: float | np.ndarray, largest: float | np.ndarray) -> float | np.ndarray:
    return _MEMORY + _MEMORY_PER_CELL * counted + _MEMORY_PER_LARGEST_CELL * largest


def _named(workload: Workload, position: int, most: int = 6) -> str:
    names = [workload.domain.names[place] for place in workload.attribute_indices(position)]
    return title(tuple(names if len(names) <= most else [*names[:most], "…"]))


def _cells(workload: Workload, position: int) -> str:
    return f"{describe_count(int(workload.exact_cells[position]))} cells"
