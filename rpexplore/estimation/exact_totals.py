"""What nonnegative tables need of totals that stay as they are: exact ones, and known ones."""

from collections.abc import Collection
from math import prod

import numpy as np

from rpexplore.domain.domain import AttributeIndices
from rpexplore.errors import ReleaseError
from rpexplore.estimation.table_map import ContributionArrays, TableMap

# Of known totals that overlap: cells by all of their attributes; when they are met, of all records.
_MOST_FITTED, _MOST_FITTING_ROUNDS, _FITTED = 1_000_000, 2_000, 1e-11


def empty_cells(
    tables: TableMap, given: ContributionArrays, kept: Collection[AttributeIndices]
) -> dict[AttributeIndices, np.ndarray]:
    """Where exact totals of 0 leave maximal tables without a record: bool, for those with some."""
    empty: dict[AttributeIndices, np.ndarray] = {}
    for table in tables.tables:
        cells = np.zeros([int(tables.sizes[index]) for index in table], dtype=bool)
        for subset in (subset for subset in kept if set(subset) <= set(table)):
            others = tuple(axis for axis, index in enumerate(table) if index not in subset)
            cells |= np.expand_dims(tables.table(subset, given) < 0.5, others)
        if cells.any():
            empty[table] = cells
    return empty


def independent(
    tables: TableMap, given: ContributionArrays, kept: Collection[AttributeIndices]
) -> dict[AttributeIndices, np.ndarray]:
    """Contributions of records that have the exact totals and nothing else in common.

    Of totals of a release that share attributes, all attributes that a table has are in one of them
    (`planning.mechanism.exact_totals.refuse_unprotected`). Of known ones they need not be: then
    contributions are those of the counts by all of their attributes that proportional fitting
    finds.
    """
    parts: list[set[int]] = []
    for subset in kept:
        joined = set(subset).union(*(part for part in parts if part & set(subset)))
        parts = [*(part for part in parts if not part & set(subset)), joined]
    n_records, even = max(float(given[()]), 1.0), {}
    needed = {
        tuple(index for index in subset if index in part)
        for subset in tables.family
        for part in parts
    }
    given = dict(given) | {
        subset: values
        for part in parts
        if any(subset not in kept for subset in needed if part >= {*subset})
        for subset, values in _fitted_together(tables, given, kept, part, needed).items()
    }
    for subset in tables.family:
        within = [tuple(index for index in subset if index in part) for part in parts]
        product = np.full((), n_records)
        for part in filter(None, within):
            product = np.multiply.outer(product, given[part] / n_records)
        order = [index for part in within for index in part]
        if len(order) < len(subset):
            even[subset] = np.zeros_like(given[subset])
        else:
            even[subset] = np.transpose(product, np.argsort(order).astype(int))
    return even


def _fitted_together(
    tables: TableMap,
    given: ContributionArrays,
    kept: Collection[AttributeIndices],
    part: Collection[int],
    needed: Collection[AttributeIndices],
) -> dict[AttributeIndices, np.ndarray]:
    """The contributions of counts by all attributes of overlapping totals: those not kept.

    By iterative proportional fitting from equal counts, which ends after one round for totals that
    follow from each other by conditional independence. Raises `ReleaseError` for too many cells,
    and where no counts from 0 on are found.
    """
    attributes = tuple(sorted(part))
    shape = [int(tables.sizes[index]) for index in attributes]
    if prod(shape) > _MOST_FITTED:
        raise ReleaseError(
            f"The known totals overlap, and have {prod(shape):,} combinations of values together; "
            f"nonnegative tables are made of up to {_MOST_FITTED:,}. Leave some totals out."
        )
    own = [subset for subset in kept if {*subset} <= {*attributes}]
    largest = [one for one in own if not any({*one} < {*other} for other in own)]
    margins = [
        (
            tuple(axis for axis, index in enumerate(attributes) if index not in subset),
            np.maximum(tables.table(subset, given), 0.0),
        )
        for subset in largest
    ]
    counts = np.full(shape, float(given[()]) / prod(shape))
    for _ in range(_MOST_FITTING_ROUNDS):
        for others, wanted in margins:
            sums = counts.sum(axis=others)
            factors = np.divide(wanted, sums, out=np.zeros_like(wanted), where=sums > 0)
            counts = counts * np.expand_dims(factors, others)
        off = max(float(np.abs(counts.sum(axis=others) - one).max()) for others, one in margins)
        if off <= _FITTED * max(float(given[()]), 1.0):
            break
    else:
        raise ReleaseError(
            "No counts from 0 on were found that meet all of the known totals at once; check them, "
            "or leave one out."
        )
    return {
        subset: tables.decomposed(
            subset,
            counts.sum(axis=tuple(i for i, one in enumerate(attributes) if one not in subset)),
        )
        for subset in needed
        if {*subset} <= {*attributes} and subset not in kept
    }
