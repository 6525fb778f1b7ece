"""What nonnegative tables need of totals that stay as they are: exact ones, and known ones."""

from collections.abc import Collection
from math import prod

import numpy as np
from scipy.sparse import csr_array, hstack, vstack

from rpexplore.common.text import rounded
from rpexplore.domain.domain import AttributeIndices
from rpexplore.domain.structural_zeros import StructuralZeros
from rpexplore.errors import DomainError, ReleaseError
from rpexplore.estimation.table_map import ContributionArrays, TableMap, largest

# Of totals that are fitted: cells by all of their attributes, and those of a table; rounds; when
# they are met, of all records; cells of which linear programming finds those that stay empty.
_MOST_FITTED, _MOST_FITTING_ROUNDS, _FITTED, _MOST_SOLVED = 1_000_000, 2_000, 1e-11, 20_000


def inner_point(
    tables: TableMap,
    given: ContributionArrays,
    kept: Collection[AttributeIndices],
    zeros: StructuralZeros | None,
) -> tuple[dict[AttributeIndices, np.ndarray], dict[AttributeIndices, np.ndarray]]:
    """Contributions of records that have the totals, and where these leave tables without any.

    Attributes that no total and no impossible combination connects are independent of each other,
    and those in none are spread evenly. Of the possible records that have the totals, those of each
    connected part are the nearest to even ones (in relative entropy): counts by all attributes of
    its totals, by iterative proportional fitting, and beside each of these the other attributes
    evenly among what is possible.

    Returns:
        The contributions, and of each maximal table with such cells where no record can be: bool.

    Raises:
        ReleaseError: For too many cells, and where no possible counts from 0 on are found.
    """
    n_records = max(float(given[()]), 1.0)
    shares: list[tuple[set[int], dict[AttributeIndices, np.ndarray]]] = []
    for part in _parts(tables, kept, zeros):
        needed = {tuple(index for index in subset if index in part) for subset in tables.family}
        shares.append((part, _fitted(tables, given, kept, needed - {()}, part, zeros)))
    even: dict[AttributeIndices, np.ndarray] = {}
    empty: dict[AttributeIndices, np.ndarray] = {}
    contributions = {
        subset: given[subset] if subset in kept else tables.decomposed(subset, counts)
        for _, of_part in shares
        for subset, counts in of_part.items()
    }
    for subset in tables.family:
        within = [tuple(index for index in subset if index in part) for part, _ in shares]
        product = np.full((), n_records)
        for own in filter(None, within):
            product = np.multiply.outer(product, contributions[own] / n_records)
        order = [index for own in within for index in own]
        if len(order) < len(subset):
            even[subset] = np.zeros_like(given[subset])
        else:
            even[subset] = np.transpose(product, np.argsort(order).astype(int))
    for table in tables.tables:
        nowhere = np.zeros([int(tables.sizes[index]) for index in table], dtype=bool)
        for part, of_part in shares:
            own = tuple(index for index in table if index in part)
            if own:
                others = tuple(axis for axis, index in enumerate(table) if index not in part)
                nowhere |= np.expand_dims(of_part[own] == 0, others)
        if nowhere.any():
            empty[table] = nowhere
    return even, empty


def _parts(
    tables: TableMap, kept: Collection[AttributeIndices], zeros: StructuralZeros | None
) -> list[set[int]]:
    """The attributes that totals and impossible combinations connect, those of no table too."""
    edges = [set(subset) for subset in kept if subset]
    for condition in () if zeros is None else zeros.conditions:
        at_levels = {index for subset in tables.family for index in subset if len(subset) == 1}
        edges.append(
            {*condition} | {index for index in at_levels if _column(zeros, index) in condition}
        )
    parts: list[set[int]] = []
    for edge in edges:
        joined = edge.union(*(part for part in parts if part & edge))
        parts = [*(part for part in parts if not part & edge), joined]
    return parts


def _column(zeros: StructuralZeros | None, index: int) -> int:
    """The attribute that an attribute is a level of, or itself."""
    return index if zeros is None or index not in zeros.levels else zeros.levels[index][0]


def _fitted(
    tables: TableMap,
    given: ContributionArrays,
    kept: Collection[AttributeIndices],
    needed: Collection[AttributeIndices],
    part: set[int],
    zeros: StructuralZeros | None,
) -> dict[AttributeIndices, np.ndarray]:
    """The counts of a part by the sets of attributes that are needed: 0 where nobody can be."""
    own = [subset for subset in kept if subset and {*subset} <= {*part}]
    # Exact counts are whole numbers: below a half there is rounding.
    margins = {one: np.where((t := tables.table(one, given)) < 0.5, 0.0, t) for one in largest(own)}
    is_limited = zeros is not None and any(part & {*one} for one in zeros.conditions)
    if not is_limited and all(one in kept for one in needed):
        return {one: _summed(margins, one) for one in needed}
    named: AttributeIndices = tuple(sorted(set().union(*own)))  # none if there are only conditions
    start = _possible_shares(tables, named, zeros if is_limited and named else None)
    counts = _proportionally_fitted(start, named, margins, float(given[()]), is_limited)
    fitted: dict[AttributeIndices, np.ndarray] = {}
    for subset in needed:
        if subset in kept:
            fitted[subset] = _summed(margins, subset)
            continue
        both = tuple(sorted({*named, *subset}))
        of_both, beside = counts, tuple(a for a, index in enumerate(both) if index not in named)
        if beside:
            shares = _possible_shares(tables, both, zeros)
            sums = shares.sum(axis=beside, keepdims=True)
            shares = np.divide(shares, sums, out=np.zeros_like(shares), where=sums > 0)
            of_both = shares * np.expand_dims(counts, beside)
        others = tuple(axis for axis, index in enumerate(both) if index not in subset)
        fitted[subset] = of_both.sum(axis=others)
    return fitted


def _summed(margins: dict[AttributeIndices, np.ndarray], subset: AttributeIndices) -> np.ndarray:
    """The counts by some attributes of one of the margins."""
    margin = next(one for one in margins if {*subset} <= {*one})
    return margins[margin].sum(
        axis=tuple(axis for axis, index in enumerate(margin) if index not in subset)
    )


def _possible_shares(
    tables: TableMap, attributes: AttributeIndices, zeros: StructuralZeros | None
) -> np.ndarray:
    """All possible records by attributes, each counted alike; `ReleaseError` for too many cells."""
    shape = [int(tables.sizes[index]) for index in attributes]
    together = "with tables and impossible combinations" if zeros else "and"
    if prod(shape) > _MOST_FITTED:
        raise ReleaseError(
            f"The known totals overlap, {together} have {prod(shape):,} combinations of values "
            f"together; nonnegative tables are made of up to {_MOST_FITTED:,}. Leave some totals "
            "out."
        )
    if zeros is None:
        return np.full(shape, 1 / prod(shape))
    if len({_column(zeros, index) for index in attributes}) < len(attributes):
        raise ReleaseError(
            "Known totals and impossible combinations of an attribute at several levels are not "
            "met together; take the unbiased tables."
        )
    try:
        return zeros.even_shares(attributes)
    except DomainError as error:
        raise ReleaseError(str(error)) from None


def _proportionally_fitted(
    start: np.ndarray,
    attributes: AttributeIndices,
    margins: dict[AttributeIndices, np.ndarray],
    n_records: float,
    is_limited: bool,
) -> np.ndarray:
    """Counts by all attributes that have the margins, in proportion to others within these.

    One round is enough for totals that follow from each other by conditional independence. Where
    the totals leave a possible cell without a record though none of them is 0, fitting comes near
    to it slowly: such cells are looked for by linear programming, and left out. Raises
    `ReleaseError` where no counts from 0 on are found.
    """
    axes = {
        margin: tuple(axis for axis, index in enumerate(attributes) if index not in margin)
        for margin in margins
    }

    def fitted() -> tuple[np.ndarray, float]:
        """The counts, and by how much they miss a total at most."""
        counts, off = start * n_records, np.inf
        for _ in range(_MOST_FITTING_ROUNDS):
            for margin, wanted in margins.items():
                sums = counts.sum(axis=axes[margin])
                factors = np.divide(wanted, sums, out=np.zeros_like(wanted), where=sums > 0)
                counts = counts * np.expand_dims(factors, axes[margin])
            off = max(
                (
                    float(np.abs(counts.sum(axis=axes[margin]) - wanted).max())
                    for margin, wanted in margins.items()
                ),
                default=0.0,
            )
            if off <= _FITTED * max(n_records, 1.0):
                break
        return counts, off

    least = None
    counts, off = fitted()
    if off > _FITTED * max(n_records, 1.0) and np.count_nonzero(start) <= _MOST_SOLVED:
        can_have, least = _cells_with_records(start > 0, margins, axes)
        if can_have is not None:
            start = np.where(can_have, start, 0.0)
            counts, off = fitted()
    if off > _FITTED * max(n_records, 1.0):
        with_nobody = " with nobody in an impossible combination" if is_limited else ""
        raise ReleaseError(
            "No counts from 0 on were found that meet all of the known totals at once"
            f"{with_nobody}: the {'fitted' if least is None else 'nearest'} ones miss a total by "
            f"{rounded(off if least is None else least)}. Correct them, or leave one out."
        )
    return counts


def _cells_with_records(
    possible: np.ndarray,
    margins: dict[AttributeIndices, np.ndarray],
    axes: dict[AttributeIndices, tuple[int, ...]],
) -> tuple[np.ndarray | None, float | None]:
    """The possible cells that are above 0 for some counts with the margins: bool.

    Where there are no such counts None, and by how much the nearest ones miss a margin at most.
    """
    from scipy.optimize import linprog  # slow to import, and seldom needed

    columns = np.flatnonzero(possible)
    rows, first = [], 0
    for margin, wanted in margins.items():
        row = np.expand_dims(np.arange(wanted.size).reshape(wanted.shape), axes[margin])
        rows.append(first + np.broadcast_to(row, possible.shape).ravel()[columns])
        first += wanted.size
    places = np.tile(np.arange(len(columns)), len(rows)), np.concatenate(rows)
    sums = csr_array((np.ones(len(places[0])), places[::-1]), shape=(first, len(columns)))
    wanted = np.concatenate([each.ravel() for each in margins.values()])[:, None]
    # Of the counts y + z, with the margins times some t >= 1, as many y <= 1 as can be are 1.
    found = linprog(
        np.repeat([-1.0, 0.0, 0.0], [len(columns), len(columns), 1]),
        A_eq=hstack([sums, sums, csr_array(-wanted)]),
        b_eq=np.zeros(first),
        bounds=[(0, 1)] * len(columns) + [(0, None)] * len(columns) + [(1, None)],
    )
    if found.status == 0:
        can_have = np.zeros(possible.shape, dtype=bool)
        can_have.ravel()[columns] = found.x[: len(columns)] > 0.5
        return can_have, None
    # The counts whose largest difference is least.
    ones = csr_array(np.ones_like(wanted))
    found = linprog(
        np.repeat([0.0, 1.0], [len(columns), 1]),
        A_ub=vstack([hstack([sums, -ones]), hstack([-sums, -ones])]),
        b_ub=np.concatenate([wanted, -wanted]).ravel(),
    )
    return None, float(found.fun) if found.status == 0 else None
