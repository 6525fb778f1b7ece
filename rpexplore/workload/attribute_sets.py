"""Attribute sets: all combinations of some orders, narrowed before they are listed.

Narrowing first matters: 100 attributes have 75 million sets of five, and 4,656 that contain three
given ones.
"""

import math
from collections.abc import Sequence
from itertools import chain, combinations
from math import comb
from typing import NoReturn

import numpy as np

from rpexplore.common.numbers import whole_number
from rpexplore.domain.domain import AttributeIndices, AttributeSet, Domain
from rpexplore.errors import WorkloadError

MAX_TABLES = 5_000_000
_MOST_CELLS = 2**62  # so that products stay within 64 bits


def attribute_sets(
    domain: Domain,
    orders: range,
    *,
    only: AttributeSet | None = None,
    containing: AttributeSet = (),
    cells: int | None = None,
) -> np.ndarray:
    """The sets of these orders as ascending attribute indices, int32[n, largest order], −1 behind.

    Args:
        orders: How many attributes a set may have.
        only: The attributes that a set may have; None: any but amounts.
        containing: Those that every set has.
        cells: The most cells that the table of a set may have; None: any number.

    Raises:
        WorkloadError: If there are none, or too many to list or to look through.
    """
    if cells is not None and (whole_number(cells) or 0) < 1:
        raise WorkloadError(
            f"The number of cells must be a whole number of at least 1, got {cells!r}."
        )
    base = domain.positions(containing)
    # Levels and amounts where they are named.
    among = tuple(sorted({*range(domain.n_columns), *base} - ({*domain.amounts} - {*base})))
    if only is not None:
        among = domain.positions(only)
    for index in base:
        if index not in among:
            raise WorkloadError(
                f"Every table must have {domain.names[index]!r}, which is not one of the "
                "attributes that tables may have; add it there, or leave it out here."
            )
    free = [index for index in among if index not in base]
    more = range(max(orders.start - len(base), 0), orders.stop - len(base))
    if cells is None:
        refuse_too_many(sum(comb(len(free), k) for k in more))
        levels = [_combinations(free, k) for k in more if k <= len(free)]
    else:
        room = min(int(cells), _MOST_CELLS) // math.prod(domain.sizes[list(base)].tolist())
        levels = _within(domain.sizes, free, more, room) if room else []
    levels = [level for level in levels if len(level)]
    if base:
        levels = [np.sort(np.insert(level, [0] * len(base), base, axis=1)) for level in levels]
    if domain.amounts:
        levels = [level[np.sum(np.isin(level, domain.amounts), axis=1) < 2] for level in levels]
        levels = [level for level in levels if len(level)]
    if domain.n_columns < len(domain):
        levels = [level[_is_of_columns(domain, level)] for level in levels]
        levels = [level for level in levels if len(level)]
    if not levels:
        _refuse_none(domain, orders, len(among), base, cells)
    return stacked(levels)


def _is_of_columns(domain: Domain, sets: np.ndarray) -> np.ndarray:
    """Whether a set has every attribute once, and not at two of its levels: bool[n]."""
    columns = np.sort(domain.columns[sets], axis=1)
    return ~np.any(columns[:, 1:] == columns[:, :-1], axis=1)


def stacked(parts: Sequence[np.ndarray]) -> np.ndarray:
    """The rows of all parts below each other, int32[n, the largest width], with −1 behind."""
    width = max(part.shape[1] for part in parts)
    return np.concatenate(
        [np.pad(part, ((0, 0), (0, width - part.shape[1])), constant_values=-1) for part in parts],
        dtype=np.int32,
    )


def padded(sets: Sequence[Sequence[int]]) -> np.ndarray:
    """Ascending attribute indices as rows, int32[len(sets), longest], with −1 behind."""
    lengths = np.fromiter(map(len, sets), dtype=np.int64, count=len(sets))
    rows = np.full((len(sets), lengths.max(initial=0)), -1, dtype=np.int32)
    flat = np.fromiter(chain.from_iterable(sets), dtype=np.int32, count=lengths.sum())
    rows[np.arange(rows.shape[1]) < lengths[:, None]] = flat
    return rows


def check_order(domain: Domain, order: int) -> None:
    """Raise `WorkloadError` unless the domain has enough attributes for tables of this order."""
    whole = whole_number(order)
    if whole is None or not 0 <= whole <= len(domain):
        raise WorkloadError(
            f"The order must be a whole number from 0 to {len(domain)} (the attributes there "
            f"are), got {order!r}."
        )


def refuse_too_many(count: int, more: str = "") -> None:
    """Raise `WorkloadError` if so many tables cannot be planned."""
    if count > MAX_TABLES:
        raise WorkloadError(
            f"The workload would have {more}{count:,} tables; at most {MAX_TABLES:,} can be "
            "planned. Ask for a lower order or fewer cells, or say which attributes tables may "
            "or must have."
        )


def _combinations(indices: Sequence[int], k: int) -> np.ndarray:
    """All choices of k indices, int32[C(len(indices), k), k], lexicographic."""
    count = comb(len(indices), k)
    flat = chain.from_iterable(combinations(indices, k))
    return np.fromiter(flat, dtype=np.int32, count=count * k).reshape(count, k)


def _within(sizes: np.ndarray, free: Sequence[int], orders: range, most: int) -> list[np.ndarray]:
    """The choices of free attributes, of each order, whose sizes multiply to at most `most`."""
    if orders.start > 0 and sum(comb(len(free), k) for k in orders) <= MAX_TABLES:
        # Growing could pass through far more sets than there are in the end.
        return [_that_fit(_combinations(free, k), sizes, most) for k in orders if k <= len(free)]
    level, level_cells = np.empty((1, 0), dtype=np.int32), np.ones(1, dtype=np.int64)
    levels = [level]
    while len(level) and len(levels) < orders.stop:
        # Cells only grow with a further attribute, so every set grows from one kept before.
        last = level[:, -1] if level.shape[1] else np.full(len(level), -1)
        count = sum(map(len, levels[orders.start :]))
        grown, grown_cells = [np.empty((0, len(levels)), dtype=np.int32)], [level_cells[:0]]
        for index in free:
            fits = np.flatnonzero((last < index) & (level_cells <= most // sizes[index]))
            count += len(fits)
            refuse_too_many(count, "more than ")
            grown.append(np.insert(level[fits], level.shape[1], index, axis=1))
            grown_cells.append(level_cells[fits] * sizes[index])
        level, level_cells = np.concatenate(grown), np.concatenate(grown_cells)
        levels.append(level)
    return levels[orders.start : orders.stop]


def _that_fit(level: np.ndarray, sizes: np.ndarray, most: int) -> np.ndarray:
    """The rows whose sizes have a product of at most `most`."""
    fits, cells = np.ones(len(level), dtype=bool), np.ones(len(level), dtype=np.int64)
    for column in level.T:
        fits &= cells <= most // sizes[column]
        cells = np.where(fits, cells * sizes[column], 1)
    return level[fits]


def _refuse_none(
    domain: Domain, orders: range, n_among: int, needed: AttributeIndices, cells: int | None
) -> NoReturn:
    """Say why no table is left."""
    names, largest = domain.describe(needed), orders.stop - 1
    smallest = math.prod(domain.sizes[list(needed)].tolist())
    if len(needed) > largest:
        raise WorkloadError(
            f"Every table must have the {len(needed)} attributes {names}, and at most {largest} in "
            "all; take larger tables, or let fewer be in every table."
        )
    if orders.start > n_among:
        raise WorkloadError(
            f"Tables of {orders.start} attributes can have only {n_among} attributes here; name "
            "more, or take smaller tables."
        )
    if cells is not None and smallest > cells:
        raise WorkloadError(
            f"The attributes {names} that every table must have make {smallest:,} cells by "
            f"themselves, and at most {cells:,} are allowed; allow more, or let fewer be in every "
            "table."
        )
    raise WorkloadError(
        f"No table of {orders.start} of these attributes has at most {cells:,} cells; allow more, "
        "or take smaller tables."
    )
