"""What changes that keep exact totals do to own counts (docs/guarantees.md, "Exact totals").

Around exact totals one record changes in attributes that are in none of them, or two records
exchange their values of a set of attributes, where each total has all of its attributes in the set
or none. Either moves the counts of cells by e_u + e_u' − e_v − e_v'; where one record changes, u'
and v' are the same cell. Here all of these are listed, once for each difference that it makes to
some rows over the cells: records are told apart no further than the rows do.

A row is *known* where the exact totals tell its value, whatever the records. Along each attribute
its values are taken as the first one and differences from it; then a row is known if it is 0
wherever the attributes with differences are within no total.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import combinations

import numpy as np

from rpexplore.common.text import joined
from rpexplore.domain.domain import Domain
from rpexplore.errors import PlanError
from rpexplore.workload.query_list import QueryList

MOST_COMBINATIONS = 4_096  # of values that the counts tell apart
MOST_EXCHANGES = 20_000_000  # pairs of records and sets of attributes that are tried
_AT_ONCE = 1 << 16
_FREE = -1  # the part of attributes that are in no exact total


@dataclass(frozen=True)
class KeptByCounts:
    """Exact totals as some attributes see them.

    totals  indices, ascending, of what each total has of these attributes; the largest ones
    parts   for each attribute a number that those have in common that are only exchanged together;
            −1 of those in no total
    """

    totals: tuple[tuple[int, ...], ...]
    parts: tuple[int, ...]

    @classmethod
    def of(cls, domain: Domain, exact: Sequence[Sequence[str]]) -> "KeptByCounts":
        """Of the totals of a budget, whether or not they have attributes of the domain.

        Raises `PlanError` for attributes at a level.
        """
        levels = [attribute.name for attribute in domain if attribute.of]
        if levels:
            raise PlanError(
                f"Own counts by {joined(levels)} do not go with exact totals, as an attribute and "
                "its levels change together: write the conditions with the values themselves."
            )
        components: list[set[str]] = []
        for total in exact:  # also by attributes that are not in the domain
            together = set(total).union(*(own for own in components if own & set(total)))
            components = [*(own for own in components if not own & set(total)), together]
        parts = [
            next((number for number, own in enumerate(components) if name in own), _FREE)
            for name in domain.names
        ]
        seen = {tuple(sorted(domain.position(n) for n in total if n in domain)) for total in exact}
        largest = [one for one in seen if one and not any(set(one) < set(two) for two in seen)]
        return cls(tuple(sorted(largest)), tuple(parts))

    @property
    def blocks(self) -> list[list[int]]:
        """Attribute indices that are on one side of an exchange together."""
        found: dict[int, list[int]] = {}
        for index, part in enumerate(self.parts):
            found.setdefault(part if part != _FREE else -2 - index, []).append(index)
        return list(found.values())


@dataclass(frozen=True, eq=False)
class Moves:
    """Changes that keep exact totals, each once for what it does to some rows over the cells.

    cells    int64[n, 4]: u, u', v, v'; one cell stands for all that the rows do not tell apart
    kind_of  of each cell of the list: which of those it is told apart as, int64[n_cells]
    kinds    the same of `cells`, int64[n, 4]
    """

    cells: np.ndarray
    kind_of: np.ndarray
    kinds: np.ndarray

    def changes(self, rows: np.ndarray, start: int = 0, end: int | None = None) -> np.ndarray:
        """R (e_u + e_u' − e_v − e_v') of these rows, [n_rows, n]."""
        return changes_of(rows, self.cells[start:end])

    def squares(self, rows: np.ndarray) -> np.ndarray:
        """The squared length of each change of rows of whole numbers, exact: [n].

        int64 where no sum can overflow, else Python's integers.
        """
        most = 4 * max(int(np.max(np.abs(rows), initial=0)), 1)
        rows = rows if most**2 * max(len(rows), 1) < 2**63 else rows.astype(object)
        pieces = [
            np.sum(self.changes(rows, start, start + _AT_ONCE) ** 2, axis=0)
            for start in range(0, len(self.cells), _AT_ONCE)
        ]
        return np.concatenate(pieces) if pieces else np.zeros(0, dtype=np.int64)


def changes_of(rows: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """What rows over the cells change by at e_u − e_v or e_u + e_u' − e_v − e_v': [n_rows, n].

    cells: int64[n, 2], u and v, or int64[n, 4], u, u', v, v'
    """
    half = cells.shape[1] // 2
    gone, new = cells[:, :half], cells[:, half:]
    return np.sum(rows[:, gone], axis=2) - np.sum(rows[:, new], axis=2)


def moves_of(queries: QueryList, kept: KeptByCounts, rows: np.ndarray) -> Moves:
    """All changes that keep the totals, by what they do to whole numbers over the cells.

    rows: int64[n_rows, n_cells]

    Raises `PlanError` where there are too many.
    """
    _, first, kind_of = np.unique(rows, axis=1, return_index=True, return_inverse=True)
    kind_of = kind_of.ravel()
    kinds = _moves(_grid_key(queries, kind_of), kept)
    return Moves(first[kinds], kind_of, kinds)


def are_known(queries: QueryList, kept: KeptByCounts, rows: np.ndarray) -> np.ndarray:
    """Which rows of whole numbers over the cells the exact totals tell: bool[n_rows]."""
    found = np.zeros(len(rows), dtype=bool)
    for number, row in enumerate(rows):
        values, of_cells = np.unique(row, return_inverse=True)
        shape, kinds = _grid_key(queries, of_cells.ravel())
        grid = values.astype(object)[np.frombuffer(kinds, dtype=np.int64)].reshape(shape)
        differs = np.indices(shape) > 0  # along which attributes an entry is a difference
        apart = [
            np.delete(differs, list(total), axis=0).any(axis=0) for total in kept.totals or ((),)
        ]
        for axis in range(len(shape)):
            start = np.take(grid, [0], axis=axis)
            grid = np.concatenate([start, np.delete(grid, 0, axis=axis) - start], axis=axis)
        found[number] = not np.any(grid[np.all(apart, axis=0)])
    return found


def are_moves(queries: QueryList, kept: KeptByCounts, cells: np.ndarray) -> np.ndarray:
    """Whether changes do to the queries what one that keeps the totals does: bool[n].

    cells: int64[n, 4]
    """
    moves = moves_of(queries, kept, queries.integers)
    every = moves.changes(queries.integers).T
    known = {row.tobytes() for row in np.concatenate([every, -every])}
    return np.array([row.tobytes() in known for row in changes_of(queries.integers, cells).T])


# ---- exact combinations of rows


def combination(rows: np.ndarray, wanted: np.ndarray) -> list[Fraction] | None:
    """The whole numbers wanted as a combination of independent rows of them; None if they are not.

    rows: int64[k, n], wanted: int64[n]
    """
    columns = np.unique(np.vstack([rows, wanted[None]]), axis=1)
    reduced, pivots = _reduced(columns.T.tolist(), len(rows))
    if len(pivots) < len(rows) or any(row[-1] for row in reduced[len(pivots) :]):
        return None
    return [row[-1] for row in reduced[: len(rows)]]


def combinations_that_vanish(changes: np.ndarray) -> np.ndarray:
    """A basis of all y with yᵀ · changes = 0, in whole numbers: object[n, n_rows].

    changes: whole numbers, int64[n_rows, n], of independent columns
    """
    n_rows = len(changes)
    reduced, pivots = _reduced(changes.T.tolist(), n_rows)
    found = []
    for free in (place for place in range(n_rows) if place not in pivots):
        row = [Fraction(0)] * n_rows
        row[free] = Fraction(1)
        for number, pivot in enumerate(pivots):
            row[pivot] = -reduced[number][free]
        scale = np.lcm.reduce([entry.denominator for entry in row], dtype=object)
        found.append([int(entry * int(scale)) for entry in row])
    return np.array(found, dtype=object).reshape(len(found), n_rows)


def _reduced(rows: list[list[int]], n_columns: int) -> tuple[list[list[Fraction]], list[int]]:
    """The reduced echelon form by the first columns, its zero rows last, and the pivots."""
    matrix = [[Fraction(entry) for entry in row] for row in rows]
    pivots: list[int] = []
    for column in range(n_columns):
        top = len(pivots)
        place = next((row for row in range(top, len(matrix)) if matrix[row][column]), None)
        if place is None:
            continue
        matrix[top], matrix[place] = matrix[place], matrix[top]
        pivot = matrix[top][column]
        matrix[top] = [entry / pivot for entry in matrix[top]]
        for row, values in enumerate(matrix):
            if row != top and (factor := values[column]):
                pairs = zip(values, matrix[top], strict=True)
                matrix[row] = [own - factor * other if other else own for own, other in pairs]
        pivots.append(column)
    return matrix, pivots


# ---- all changes


def _grid_key(queries: QueryList, kind_of: np.ndarray) -> tuple[tuple[int, ...], bytes]:
    """The kind of each combination of values, of which those that are alike are one.

    As its shape and bytes of int64, by which it can be looked up.
    """
    if queries.atoms is None:
        grid = kind_of.reshape(queries.domain.sizes)
    else:
        shape = queries.atoms.n_groups
        if math.prod(shape) > 16 * MOST_COMBINATIONS:  # of which some may be alike
            raise PlanError(_too_many(math.prod(shape)))
        groups = [axis.ravel() for axis in np.indices(shape)]
        grid = kind_of[queries.atoms.of_groups(groups)].reshape(shape)
    for axis in range(grid.ndim):
        rows = np.moveaxis(grid, axis, 0).reshape(grid.shape[axis], -1)
        _, first = np.unique(rows, axis=0, return_index=True)
        grid = np.take(grid, np.sort(first), axis=axis)
    if grid.size > MOST_COMBINATIONS:
        raise PlanError(_too_many(grid.size))
    return grid.shape, np.ascontiguousarray(grid, dtype=np.int64).tobytes()


def _too_many(number: int) -> str:
    return (
        f"Own counts beside exact totals can tell at most {MOST_COMBINATIONS:,} combinations of "
        f"values apart, as all exchanges of two records are looked at, got {number:,.0f}; ask for "
        "counts about fewer attributes, or leave the exact totals out."
    )


@lru_cache(maxsize=8)
def _moves(grid_key: tuple[tuple[int, ...], bytes], kept: KeptByCounts) -> np.ndarray:
    """All changes, each once: int64[n, 4] of kinds, none of which is 0."""
    shape, content = grid_key
    grid = np.frombuffer(content, dtype=np.int64).reshape(shape)
    n_kinds = int(grid.max()) + 1
    found = [np.zeros(0, dtype=np.int64)]
    free = [index for index, part in enumerate(kept.parts) if part == _FREE]
    if free:  # one record changes in them
        for row in _unfolded(grid, [k for k in range(grid.ndim) if k not in free]):
            own = np.unique(row)
            one, other = np.triu_indices(len(own), 1)
            none = np.zeros(len(one), dtype=np.int64)
            found.append(_keys(own[one], none, own[other], none, n_kinds))
    blocks, tried = kept.blocks, 0
    sides = [
        [index for block in (blocks[0], *rest) for index in block]
        for n in range(len(blocks) - 1)
        for rest in combinations(blocks[1:], n)
    ]
    for side in sides:  # two records exchange what they have there
        table = _unfolded(grid, side)
        table = np.unique(np.unique(table, axis=0), axis=1)
        if len(table) > table.shape[1]:
            table = table.T
        (one, other), (first, second) = (np.triu_indices(n, 1) for n in table.shape)
        tried += len(one) * len(first)
        if tried > MOST_EXCHANGES:
            raise PlanError(
                f"There are more than {MOST_EXCHANGES:,} exchanges of two records that these own "
                "counts tell apart, too many to look at all of them; ask for counts about fewer "
                "attributes, or leave the exact totals out."
            )
        pieces = [
            _keys(table[a, first], table[b, second], table[a, second], table[b, first], n_kinds)
            for a, b in zip(one.tolist(), other.tolist(), strict=True)
        ]
        if pieces:
            found.append(np.unique(np.concatenate(pieces)))
    keys = np.unique(np.concatenate(found))
    keys = keys[keys >= 0]
    return np.column_stack([keys // n_kinds**power % n_kinds for power in (3, 2, 1, 0)])


def _unfolded(grid: np.ndarray, side: Sequence[int]) -> np.ndarray:
    """The grid as a matrix: by the attributes of a side, and by the others."""
    others = [axis for axis in range(grid.ndim) if axis not in side]
    n = int(np.prod([grid.shape[axis] for axis in side], dtype=np.int64))
    return grid.transpose([*side, *others]).reshape(n, -1)


def _keys(
    u: np.ndarray, u_too: np.ndarray, v: np.ndarray, v_too: np.ndarray, n_kinds: int
) -> np.ndarray:
    """A number for each change e_u + e_u' − e_v − e_v', the same for it and for its reverse.

    −1 where it is none. What is gone and new alike is cancelled: kind 0 stands for it.
    """
    gone, new = np.stack([u, u_too]), np.stack([v, v_too])
    for one in range(2):
        for other in range(2):
            same = gone[one] == new[other]
            gone[one], new[other] = np.where(same, 0, gone[one]), np.where(same, 0, new[other])
    gone, new = np.sort(gone, axis=0), np.sort(new, axis=0)
    first, second = gone[0] * n_kinds + gone[1], new[0] * n_kinds + new[1]
    key = np.minimum(first, second) * n_kinds**2 + np.maximum(first, second)
    return np.where(first == second, -1, key)
