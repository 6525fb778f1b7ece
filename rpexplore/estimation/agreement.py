"""Smooth tables that agree with each other exactly and have no cell below 0."""

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from rpexplore.common.processes import Progress
from rpexplore.domain.domain import AttributeIndices, subsets
from rpexplore.estimation.table_map import (
    ArrayStore,
    ContributionArrays,
    TableMap,
    beyond_shares,
    without_rounding,
)
from rpexplore.planning.mechanism.reconstruction import spread_sum

# Tables fitted one by one agree only nearly: not any three pairs are those of one table. So first
# each smaller table moves towards what the larger ones that hold it could be fitted to, and these
# are fitted again. Then contributions are taken, which makes tables that agree, and what few cells
# lack to 0 is added as records spread over the other attributes (docs/mathematics.md §13.5).


_MOST_SWEEPS = 8  # more move only cells of nearly no records, at 7 % a sweep
_ROUNDS = {2: 5}  # of proportional fitting in each; of pairs, and of larger tables
_ROUNDS_OF_LARGER = 2
_NEGLIGIBLE_MISFIT = 1e-4  # of the standard errors, both added up over cells
_MOST_RAISES = 16
_RAISED_AT_ONCE = 0.25  # of what cells lack: raising one helps others
_NEGLIGIBLE_LACK = 1e-4  # of the records, over all tables together
_SMALLEST_DISAGREEMENT = 1e-12  # counts

Tables = MutableMapping[AttributeIndices, np.ndarray]
OwnVariance = Callable[[AttributeIndices, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Agreement:
    """Contributions of tables that agree; records added to raise cells, as a share of all."""

    contributions: ContributionArrays
    raised: float


def agreeing(
    tables: TableMap,
    fits: Tables,
    own_variance: OwnVariance,
    on_progress: Progress,
) -> Agreement:
    """The contributions of tables that agree, near to these.

    Args:
        fits: Of every set of the family, above 0; emptied on the way to save memory.
        own_variance: Of a table, the variance of its cells given its own subsets.
    """
    total = float(fits[()])
    shares = {subset[0]: table / total for subset, table in fits.items() if len(subset) == 1}
    errors: dict[AttributeIndices, float] = {}
    for sweep in range(_MOST_SWEEPS):
        on_progress("Making the tables agree", 0.5 * sweep / _MOST_SWEEPS)
        if not _sweep(tables.family, fits, own_variance, errors):
            break
    contributions = ArrayStore()
    for subset in tables.family:
        table = np.asarray(fits.pop(subset), dtype=float)
        contributions[subset] = beyond_shares(table, [shares[index] for index in subset])
    raised = _lift(tables, contributions, shares, on_progress)
    # From totals spread as in the one-way tables to totals spread as in the map. The largest first:
    # each needs its subsets as they were.
    for subset in reversed(tables.family):
        contributions[subset] = tables.decomposed(subset, _table(subset, contributions, shares))
    contributions[()] = np.array(total)
    return Agreement(without_rounding(tables, contributions, np.array(total)), raised)


def _sweep(
    family: list[AttributeIndices],
    fits: Tables,
    own_variance: OwnVariance,
    errors: dict[AttributeIndices, float],
) -> bool:
    """Move smaller tables towards larger ones, then fit those again; whether anything moved.

    A smaller table becomes the mean of the larger ones' totals, cell by cell, weighted by how far
    these are off: of many, the few that cannot be fitted to it have to be heard.

    errors: sums of the standard errors of smaller tables, filled on the way
    """
    misfit, of_errors = 0.0, 0.0
    for order in range(len(family[-1]) - 1, 1, -1):
        sums: dict[AttributeIndices, np.ndarray] = {}
        weights: dict[AttributeIndices, np.ndarray] = {}
        for subset in (s for s in family if len(s) == order + 1):
            table = fits[subset]
            for axis in range(len(subset)):
                part = subset[:axis] + subset[axis + 1 :]
                margin = table.sum(axis=axis)
                off = np.abs(margin - fits[part])
                misfit += float(off.sum(dtype=float))
                if part not in errors:
                    errors[part] = float(np.sqrt(own_variance(part, fits[part])).sum(dtype=float))
                of_errors += errors[part]
                sums[part] = sums.get(part, 0.0) + off * margin
                weights[part] = weights.get(part, 0.0) + off
        for part, weight in weights.items():
            known = weight > _SMALLEST_DISAGREEMENT
            mean = sums[part] / np.where(known, weight, 1)
            fits[part] = np.where(known, mean, fits[part]).astype(fits[part].dtype)
    if misfit <= _NEGLIGIBLE_MISFIT * of_errors:
        return False
    for subset in family:
        if len(subset) >= 2:
            table = fits[subset].copy()
            margins = [
                fits[subset[:axis] + subset[axis + 1 :]].astype(table.dtype)
                for axis in range(len(subset))
            ]
            fits[subset] = fitted(table, margins, _ROUNDS.get(len(subset), _ROUNDS_OF_LARGER))
    return True


def _lift(
    tables: TableMap,
    contributions: Tables,
    shares: Mapping[int, np.ndarray],
    on_progress: Progress,
) -> float:
    """Add what cells of maximal tables lack to 0, with the other attributes as in one-way tables.

    Then all is scaled to the total again. Returns what was added, as a share of all.
    """
    total = float(contributions[()])
    below, added = list(tables.tables), 0.0
    for number in range(1, _MOST_RAISES + 1):
        on_progress("Making the tables nonnegative", 0.5 + 0.4 * number / _MOST_RAISES)
        lacks: dict[AttributeIndices, float] = {}
        sums: dict[AttributeIndices, np.ndarray] = {}
        for table in below:
            mass = _lack(table, contributions, shares)
            if not mass.any():
                continue
            lacks[table] = float(mass.sum())
            for subset in subsets(table):
                if subset != table:
                    missing = tuple(axis for axis, i in enumerate(table) if i not in subset)
                    part = mass.sum(axis=missing)
                    sums[subset] = sums[subset] + part if subset in sums else part
        lacking = sum(lacks.values())
        last = number == _MOST_RAISES or lacking <= _NEGLIGIBLE_LACK * total
        portion = 1.0 if last else _RAISED_AT_ONCE
        # Found again rather than kept, as many of these tables would not fit into memory; first,
        # while their subsets are as they were. No other table looks at them.
        own = ((table, _lack(table, contributions, shares)) for table in lacks)
        for subset, values in chain(own, sums.items()):
            contributions[subset] = contributions[subset] + beyond_shares(
                portion * values, [shares[index] for index in subset]
            )
        added += portion * lacking
        # What has no cell below 0 never will: only nonnegative tables are added.
        below = list(lacks)
        if last:
            break
    scale = total / (total + added)
    for subset in contributions:
        contributions[subset] = contributions[subset] * scale
    return added / total


def _lack(
    table: AttributeIndices, contributions: ContributionArrays, shares: Mapping[int, np.ndarray]
) -> np.ndarray:
    """What each cell lacks to 0."""
    return np.maximum(-_table(table, contributions, shares), 0.0)


def _table(
    subset: AttributeIndices, contributions: ContributionArrays, shares: Mapping[int, np.ndarray]
) -> np.ndarray:
    return spread_sum(subset, {part: contributions[part] for part in subsets(subset)}, shares)


# ---- Iterative proportional fitting of one table to tables of one attribute less.


_SMALLEST = 1e-20  # a sum below this is 0: its cells stay so


def fitted(table: np.ndarray, margins: Sequence[np.ndarray], rounds: int) -> np.ndarray:
    """The table, changed in place, scaled in turn along each axis.

    margins: of each axis, the wanted table without it
    """
    # Of `sum` and of indices made anew, small tables take as long as of adding.
    axes = [(axis, margin, (slice(None),) * axis + (None,)) for axis, margin in enumerate(margins)]
    for _ in range(rounds):
        for axis, margin, spread in axes:
            table *= (margin / np.maximum(np.add.reduce(table, axis), _SMALLEST))[spread]
    return table
