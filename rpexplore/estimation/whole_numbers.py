"""Whole numbers for a table: each cell moves by less than 1; totals are kept where they can be.

Rounded from the total down to the cells, attribute by attribute (docs/mathematics.md §12): at
every step the parts with the largest fractions go up, as many as their whole needs. What two
tables have for their first attributes in common is the same in both; totals over other attributes
may differ. Nothing is drawn at random, so the same table is always rounded alike: a bias of less
than 1 a cell.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from scipy import sparse

_WHOLE = 1e-6  # a number this near to a whole one is taken for it, and not the one below


def rounded(totals: Sequence[np.ndarray]) -> np.ndarray:
    """A table in whole numbers, float64, one axis an attribute.

    totals: the table summed over all its attributes, over all but the first, over all but the first
    two, …, and the table itself; each the sum of the next up to rounding errors.
    """
    first, *finer = totals
    whole = np.rint(first)
    for values in finer:
        whole = _parts(whole.ravel(), values.reshape(whole.size, -1)).reshape(values.shape)
    return whole


_MOST_COMPARED = 100_000  # cells to move a unit to, of which the best is taken


def with_columns(
    whole: np.ndarray, values: np.ndarray, columns: np.ndarray, possible: np.ndarray
) -> np.ndarray:
    """A table in whole numbers with these sums of columns as well; its sums of rows stay.

    Units move within rows, from columns with too many to those with too few, where that costs
    least distance to the values. Without cells that must be 0 this always ends with all sums right:
    a column with too many has a cell above 0. With such cells sums can stay as they are, and with
    columns that add up to less than the table at least one does.

    Args:
        whole: float64[m, n], of `rounded`.
        values: What it was rounded from, float64[m, n]; if none is below 0, no cell becomes so.
        columns: The sums, whole numbers that add up to those of the table, float64[n].
        possible: Which cells may be other than 0, bool[m, n].
    """
    whole = whole.copy()
    lowest = 1.0 if values.min(initial=0.0) >= 0 else -np.inf
    surplus = whole.sum(axis=0) - columns
    for source in np.flatnonzero(surplus > 0):
        while surplus[source] > 0 and (surplus < 0).any():
            targets = np.flatnonzero(surplus < 0)[: max(1, _MOST_COMPARED // len(whole))]
            taken = whole[:, source]
            down = np.abs(taken - 1 - values[:, source]) - np.abs(taken - values[:, source])
            down[(taken < lowest) | ~possible[:, source]] = np.inf
            given, wanted = whole[:, targets], values[:, targets]
            up = np.abs(given + 1 - wanted) - np.abs(given - wanted)
            costs = down[:, np.newaxis] + np.where(possible[:, targets], up, np.inf)
            row, place = np.unravel_index(np.argmin(costs), costs.shape)
            if costs[row, place] == np.inf:
                break
            whole[row, source] -= 1
            whole[row, targets[place]] += 1
            surplus[source] -= 1
            surplus[targets[place]] += 1
    return whole


Margin = tuple[tuple[int, ...], np.ndarray]
"""The axes that a table is summed over, and the sums: whole numbers, an axis for each other one."""

MOST_SEARCHED = 20_000  # cells of a table whose nearest whole numbers are searched for: seconds
MOST_OF_THREE = 1_000  # the same of a table with more than two totals
# For a table with more than two totals, which may have no whole numbers at all. A number of steps,
# and not of seconds: the same table is rounded alike everywhere.
_MOST_NODES = 50


def nearest_whole(
    values: np.ndarray, totals: Sequence[Margin], possible: np.ndarray
) -> np.ndarray | None:
    """The table in whole numbers with these totals that is nearest to the values (least squares).

    Among the three whole numbers around each value. With one or two totals (rows and columns) this
    is a flow of least cost: its matrix is totally unimodular, so that the linear program has whole
    numbers as its answer. With more, whole numbers are searched for, in a limited number of steps.

    Args:
        values: float64, one axis an attribute; if none is below 0, no cell becomes so.
        totals: Sums of the table over some of its axes, in whole numbers.
        possible: Which cells may be other than 0, bool of the same shape.

    Returns:
        The table, float64; None where there is none, none was found, or cells are too many.
    """
    from scipy.optimize import Bounds as Limits
    from scipy.optimize import LinearConstraint, linprog, milp

    cells = np.flatnonzero(possible.ravel())
    if not 0 < cells.size <= (MOST_SEARCHED if len(totals) <= 2 else MOST_OF_THREE):
        return None
    wanted = values.ravel()[cells]
    base = np.floor(wanted + _WHOLE)
    fractions = wanted - base
    # One step up and one down from the base, at what they add to the squared distance.
    costs = np.concatenate([1 - 2 * fractions, 1 + 2 * fractions])
    can_go_down = (base >= 1) | (values.min(initial=0.0) < 0)
    most = np.concatenate([np.ones(cells.size), can_go_down.astype(float)])
    places = np.unravel_index(cells, values.shape)
    blocks, needed = [], []
    for axes, sums in totals:
        others = [place for other, place in enumerate(places) if other not in axes]
        rows = np.ravel_multi_index(others, sums.shape) if others else np.zeros(cells.size, int)
        ones = np.ones(cells.size)
        block = sparse.csr_array((ones, (rows, np.arange(cells.size))), (sums.size, cells.size))
        blocks.append(sparse.hstack([block, -block]))
        needed.append(sums.ravel() - block @ base)
    matrix, needs = sparse.csr_array(sparse.vstack(blocks)), np.concatenate(needed)
    if len(totals) <= 2:
        bounds = np.column_stack([np.zeros(most.size), most])
        found = linprog(costs, A_eq=matrix, b_eq=needs, bounds=bounds, method="highs-ds")
    else:
        found = milp(
            costs,
            # Stubs of scipy take limits for numbers alone.
            constraints=LinearConstraint(matrix, needs, needs),  # pyright: ignore[reportArgumentType]
            bounds=Limits(np.zeros(most.size), most),  # pyright: ignore[reportArgumentType]
            integrality=np.ones(most.size),
            options={"node_limit": _MOST_NODES},
        )
    if found.x is None:
        return None
    up, down = np.rint(found.x).reshape(2, -1)
    whole = np.zeros(values.size)
    whole[cells] = base + up - down
    whole = whole.reshape(values.shape)
    are_right = all(np.array_equal(whole.sum(axis=axes), sums) for axes, sums in totals)
    return whole if are_right else None


def with_margins(
    values: np.ndarray, margins: Sequence[Margin], possible: np.ndarray
) -> np.ndarray | None:
    """The table in whole numbers near the values that has these sums; None if none is found.

    Of one margin the parts with the largest fractions go up. Of several it is the nearest table
    where that is searched for. Else units are moved along the attributes that only one margin has,
    which ends well for two margins, and for any without a common attribute, if all is possible.

    Args:
        values: float64, one axis an attribute, with these sums up to rounding errors.
        margins: Sums over other axes each, which agree with each other.
        possible: Which cells may be other than 0, bool of the same shape.
    """
    if len(margins) > 1 and (nearest := nearest_whole(values, margins, possible)) is not None:
        return nearest
    axes, shape = range(values.ndim), np.array(values.shape)
    kept = [[axis for axis in axes if axis not in summed] for summed, _ in margins]
    order = [*kept[0], *margins[0][0]]
    whole = parts_of(margins[0][1], values.transpose(order).reshape(margins[0][1].size, -1))
    whole = whole.reshape(shape[order]).transpose(np.argsort(order))
    for number, (summed, sums) in enumerate(margins[1:], 1):
        others = {axis for other in kept[:number] + kept[number + 1 :] for axis in other}
        shared = [axis for axis in kept[number] if axis in others]
        moved = [axis for axis in kept[number] if axis not in others]
        order = [*shared, *summed, *moved]
        n_shared, n_moved = int(np.prod(shape[shared])), int(np.prod(shape[moved]))
        wanted = sums.transpose([kept[number].index(axis) for axis in (*shared, *moved)])
        parts = [
            each.transpose(order).reshape(n_shared, -1, n_moved)
            for each in (whole, values, possible)
        ]
        columns = wanted.reshape(n_shared, n_moved)
        changed = np.stack([*map(_with_columns_of_many, parts[0], parts[1], columns, parts[2])])
        whole = changed.reshape(shape[order]).transpose(np.argsort(order))
    has_all = all(np.array_equal(whole.sum(axis=summed), sums) for summed, sums in margins)
    return whole if has_all and not np.any(whole[~possible]) else None


def _with_columns_of_many(
    whole: np.ndarray, values: np.ndarray, columns: np.ndarray, possible: np.ndarray
) -> np.ndarray:
    """As `with_columns`, for many units: from column to column all at once, a row one at a time.

    What is given to a column is at the least distance; which columns give to which is not chosen.
    """
    whole = whole.copy()
    lowest = 1.0 if values.min(initial=0.0) >= 0 else -np.inf
    surplus = whole.sum(axis=0) - columns
    for source in np.flatnonzero(surplus > 0):
        for target in np.flatnonzero(surplus < 0):
            while (n_units := int(min(surplus[source], -surplus[target]))) > 0:
                taken, given = whole[:, source], whole[:, target]
                down = np.abs(taken - 1 - values[:, source]) - np.abs(taken - values[:, source])
                up = np.abs(given + 1 - values[:, target]) - np.abs(given - values[:, target])
                costs = np.where(possible[:, source] & possible[:, target], down + up, np.inf)
                costs[taken < lowest] = np.inf
                rows = np.argsort(costs, kind="stable")[:n_units]
                rows = rows[np.isfinite(costs[rows])]
                if not len(rows):
                    break
                whole[rows, source] -= 1
                whole[rows, target] += 1
                surplus[source] -= len(rows)
                surplus[target] += len(rows)
    return whole


def nearest_margins(
    total: float,
    margins: Mapping[int, np.ndarray],
    pairs: Mapping[tuple[int, int], tuple[np.ndarray, np.ndarray]],
) -> dict[int, np.ndarray] | None:
    """One-way tables in whole numbers for which all pairs that add up to them are nearest.

    They add up to the total, each number moves by less than 1, and whole numbers stay. The sum of
    the squared distances of these tables and of the pairs is the least that there is, each cell of
    a pair being one of the three whole numbers around it. Where one-way tables are whole, a pair is
    a flow, so that the program asks for whole numbers in these alone.

    Args:
        total: A whole number.
        margins: Attribute -> its one-way table.
        pairs: Two attributes -> their table, and which of its cells may be other than 0.

    Returns:
        Attribute -> its table, float64; None where there are none, or none were found.
    """
    from scipy.optimize import Bounds as Limits
    from scipy.optimize import LinearConstraint, milp

    columns = dict(zip(margins, np.cumsum([0, *map(np.size, margins.values())]), strict=False))
    n_margins = sum(map(np.size, margins.values()))
    bases = {name: np.floor(values + _WHOLE) for name, values in margins.items()}
    ones = np.concatenate([values - bases[name] for name, values in margins.items()])
    # One step up of one-way tables; of pairs, one up and one down.
    costs, most = [1 - 2 * ones], [(ones > _WHOLE).astype(float)]
    rows = [sparse.block_diag([np.ones((1, one.size)) for one in margins.values()], format="csr")]
    needs = [np.array([total - base.sum() for base in bases.values()])]
    blocks = []
    for (first, second), (values, possible) in pairs.items():
        cells = np.flatnonzero(possible.ravel())
        wanted = values.ravel()[cells]
        base = np.floor(wanted + _WHOLE)
        fractions = wanted - base
        costs += [1 - 2 * fractions, 1 + 2 * fractions]
        can_go_down = (base >= 1) | (values.min(initial=0.0) < 0)
        most += [np.ones(cells.size), can_go_down.astype(float)]
        sums, of_margins, needed = [], [], []
        for name, place in zip((first, second), np.divmod(cells, values.shape[1]), strict=True):
            n = margins[name].size
            shape = (n, cells.size)
            one = sparse.csr_array((np.ones(cells.size), (place, np.arange(cells.size))), shape)
            sums.append(sparse.hstack([one, -one]))
            at = (np.arange(n), columns[name] + np.arange(n))
            of_margins.append(sparse.csr_array((-np.ones(n), at), (n, n_margins)))
            needed.append(bases[name] - one @ base)
        rows.append(sparse.vstack(of_margins))
        blocks.append(sparse.vstack(sums))
        needs += needed
    n_of_pairs = sum(map(len, most[1:]))
    right = [sparse.csr_array((len(margins), n_of_pairs)), sparse.block_diag(blocks)]
    matrix = sparse.csr_array(sparse.hstack([sparse.vstack(rows), sparse.vstack(right)]))
    limits, need = np.concatenate(most), np.concatenate(needs)
    found = milp(
        np.concatenate(costs),
        # Stubs of scipy take limits for numbers alone.
        constraints=LinearConstraint(matrix, need, need),  # pyright: ignore[reportArgumentType]
        bounds=Limits(np.zeros(limits.size), limits),  # pyright: ignore[reportArgumentType]
        integrality=np.arange(limits.size) < n_margins,
        options={"node_limit": _MOST_NODES},
    )
    if found.x is None or found.status != 0:  # others are not proven to be the nearest
        return None
    up = np.rint(found.x)
    return {
        name: base + up[columns[name] : columns[name] + base.size] for name, base in bases.items()
    }


def parts_of(wholes: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The values in whole numbers that add up to `wholes` over their last axis."""
    return _parts(wholes.ravel(), values.reshape(wholes.size, -1)).reshape(values.shape)


def _parts(wholes: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The values [m, n] in whole numbers that add up to wholes [m] along each row.

    A whole is at less than 1 from the sum of its row.
    """
    nearest = np.rint(values)
    whole = np.where(np.abs(values - nearest) < _WHOLE, nearest, np.floor(values))
    fractions = values - whole
    missing = (wholes - whole.sum(axis=1))[:, np.newaxis]
    order = np.argsort(-fractions, axis=1, kind="stable")
    rank = np.argsort(order, axis=1)
    whole += rank < missing
    # Of numbers that were taken for whole ones a little above them, the sum can be one too many.
    whole -= rank >= values.shape[1] + missing
    return whole
