"""Attribute sets: all combinations of so many attributes, narrowed before they are listed.

Narrowing first matters: 100 attributes have 75 million sets of five, and 4,656 that contain three
given ones.
"""

import math
from collections.abc import Iterable, Sequence
from itertools import chain, combinations
from math import comb
from typing import NoReturn

import numpy as np

from rpexplore.common.exact_numbers import whole_number
from rpexplore.domain.domain import AttributeIndices, AttributeSet, Domain
from rpexplore.errors import WorkloadError

MAX_TABLES = 2_000_000
_MOST_CELLS = 2**62  # so that products stay within 64 bits


def attribute_sets(
    domain: Domain,
    orders: range,
    *,
    only: AttributeSet | None = None,
    containing: AttributeSet = (),
    cells: int | None = None,
) -> np.ndarray:
    """The sets of so many attributes, as ascending places, int32[n, largest order found].

    orders      how many attributes a set may have
    only        the attributes that a set may have; None: any
    containing  those that every set has
    cells       the most cells that the table of a set may have; None: any number

    Rows are padded at the end with −1. Raises `WorkloadError` if there are none, or too many to
    list or to look through.
    """
    if cells is not None and (whole_number(cells) or 0) < 1:
        raise WorkloadError(
            f"The number of cells must be a whole number of at least 1, got {cells!r}."
        )
    among = tuple(range(len(domain))) if only is None else domain.positions(only)
    base = domain.positions(containing)
    for place in base:
        if place not in among:
            raise WorkloadError(
                f"Every table must have {domain.names[place]!r}, which is not one of the "
                "attributes that tables may have; add it there, or leave it out here."
            )
    free = [place for place in among if place not in base]
    more = range(max(orders.start - len(base), 0), orders.stop - len(base))
    if cells is None:
        refuse_too_many(sum(comb(len(free), k) for k in more))
        levels = [_combinations(free, k) for k in more if k <= len(free)]
    else:
        room = min(int(cells), _MOST_CELLS) // math.prod(domain.sizes[list(base)].tolist())
        levels = _within(domain.sizes, free, more, room) if room else []
    rows = _joined([_with_base(level, base) for level in levels if len(level)])
    if len(rows) == 0:
        _refuse_none(domain, orders, len(among), base, cells)
    return rows


def padded(sets: Sequence[Sequence[int]]) -> np.ndarray:
    """Ascending attribute places as rows, int32[len(sets), longest], padded at the end with −1."""
    width = max(map(len, sets), default=0)
    flat = chain.from_iterable((*row, *(-1,) * (width - len(row))) for row in sets)
    return np.fromiter(flat, dtype=np.int32, count=width * len(sets)).reshape(len(sets), width)


def check_order(domain: Domain, order: int) -> None:
    """Raise `WorkloadError` unless a table can have so many attributes of the domain."""
    if not 0 <= (-1 if (whole := whole_number(order)) is None else whole) <= len(domain):
        raise WorkloadError(
            f"The order must be a whole number from 0 to {len(domain)} (the attributes there "
            f"are), got {order!r}."
        )


def describe_row(domain: Domain, members: np.ndarray, row: int) -> str:
    """A table's attributes for a sentence: "(age, sex)", or "(total)"."""
    return domain.describe(tuple(index for index in members[row].tolist() if index >= 0))


def refuse_too_many(count: int, more: str = "") -> None:
    """Raise `WorkloadError` if so many tables cannot be planned."""
    if count > MAX_TABLES:
        raise WorkloadError(
            f"The workload would have {more}{count:,} tables; at most {MAX_TABLES:,} can be "
            "planned. Ask for a lower order or fewer cells, or say which attributes tables may "
            "or must have."
        )


def _combinations(places: Sequence[int], k: int) -> np.ndarray:
    """All choices of k places, int32[C(len(places), k), k], lexicographic."""
    count = comb(len(places), k)
    flat = chain.from_iterable(combinations(places, k))
    return np.fromiter(flat, dtype=np.int32, count=count * k).reshape(count, k)


def _within(sizes: np.ndarray, free: Sequence[int], orders: range, most: int) -> list[np.ndarray]:
    """The choices of free places, of each order, whose sizes multiply to at most `most`."""
    if orders.start > 0 and sum(comb(len(free), k) for k in orders) <= MAX_TABLES:
        # Growing could pass through far more sets than there are in the end.
        return [_that_fit(_combinations(free, k), sizes, most) for k in orders if k <= len(free)]
    level, level_cells = np.empty((1, 0), dtype=np.int32), np.ones(1, dtype=np.int64)
    levels = [level]
    while len(level) and len(levels) < orders.stop:
        # Cells only grow with a further attribute, so every set grows from one kept before.
        last = level[:, -1] if level.shape[1] else np.full(len(level), -1)
        count = sum(len(each) for order, each in enumerate(levels) if order >= orders.start)
        grown, grown_cells = [np.empty((0, len(levels)), dtype=np.int32)], [level_cells[:0]]
        for place in free:
            fits = np.flatnonzero((last < place) & (level_cells <= most // sizes[place]))
            count += len(fits)
            refuse_too_many(count, "more than ")
            column = np.full((len(fits), 1), place, dtype=np.int32)
            grown.append(np.hstack([level[fits], column]))
            grown_cells.append(level_cells[fits] * sizes[place])
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


def _with_base(level: np.ndarray, base: AttributeIndices) -> np.ndarray:
    if not base:
        return level
    repeated = np.tile(np.array(base, dtype=np.int32), (len(level), 1))
    return np.sort(np.hstack([repeated, level]), axis=1)


def _joined(levels: Iterable[np.ndarray]) -> np.ndarray:
    """The rows of all levels, padded to the longest."""
    levels = list(levels)
    width = max((level.shape[1] for level in levels), default=0)
    rows = np.full((sum(map(len, levels)), width), -1, dtype=np.int32)
    start = 0
    for level in levels:
        rows[start : start + len(level), : level.shape[1]] = level
        start += len(level)
    return rows


def _refuse_none(
    domain: Domain, orders: range, n_among: int, needed: AttributeIndices, cells: int | None
) -> NoReturn:
    """Say why no table is left: each wish alone could be met, or else this names it."""
    largest = orders.stop - 1
    names = domain.describe(needed)
    smallest = math.prod(domain.sizes[list(needed)].tolist())
    if len(needed) > largest:
        raise WorkloadError(
            f"Every table must have the {len(needed)} attributes {names}, and tables of at most "
            f"{largest} are asked for; ask for larger ones, or let fewer be in every table."
        )
    if orders.start > n_among:
        raise WorkloadError(
            f"Tables of {orders.start} attributes are asked for, and may have only {n_among} "
            "attributes; name more, or ask for smaller tables."
        )
    if cells is not None and smallest > cells:
        raise WorkloadError(
            f"The attributes {names} that every table must have make {smallest:,} cells by "
            f"themselves, and at most {cells:,} are allowed; allow more, or let fewer be in every "
            "table."
        )
    raise WorkloadError(
        f"No table of {orders.start} attributes that may be asked for has at most {cells:,} cells; "
        "allow more cells, or ask for smaller tables."
    )
