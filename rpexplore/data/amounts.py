"""Amounts of records: how they are read, exactly, and what counting makes of them.

A record with the amount y is counted R times: highest − y times at `low`, y − lowest times at
`high`, where y is in smallest steps, and R = highest − lowest. One without an amount is counted R
times in its missing cell. So all counts are whole numbers, and sum to R times the number of
records. A table that has amounts and weights counts a record in four cells, so many times as the
products say: R v times in all, for weights of which the range is v, over the unit of products.
Products are rounded to that unit once for each record, halves up, in whole numbers and before they
are added up, so that every source has the same sums.

Until it is counted, the code of an amount is that of no cell: `size` + (y − lowest), so that amount
and missing values travel in one column of codes.
"""

# pyarrow.compute makes its functions when it is imported, so pyright cannot know them.
# pyright: reportAttributeAccessIssue=false

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from functools import reduce
from math import ceil, floor, prod

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rpexplore.domain.amounts import Amounts, Ranges, amounts_in
from rpexplore.domain.attribute import Attribute
from rpexplore.domain.domain import AttributeIndices, Domain
from rpexplore.errors import DataError

_MOST_COUNTED = 2**62  # sums of a table's counts, so that all arithmetic on them fits 64 bits
SPLIT = 2.0**27 + 1
"""Multiplied by a float of 64 bits, it tells its upper 26 digits from the others (Dekker 1971)."""


def code_size(attribute: Attribute) -> int:
    """How many codes an attribute's values have before they are counted."""
    values = attribute.values
    return attribute.size + (values.range_in_steps + 1 if isinstance(values, Amounts) else 0)


def amount_ranges(domain: Domain, tables: Iterable[Sequence[int]]) -> Ranges:
    """The range in steps of each attribute of amounts that tables hold.

    Raises `DataError` for a table of two amounts of which none are weights, or of amounts and
    weights whose products are too large for 64 bits.
    """
    indices = {index for table in tables for index in table}
    ranges = Ranges(
        {
            index: values.range_in_steps
            for index in sorted(indices)
            if index < len(domain)
            and isinstance(values := domain.attributes[index].values, Amounts)
        }
    )
    for table in tables if ranges else ():
        held = amounts_in(table, ranges)
        n_weights = sum(index in domain.weights for index in held)
        if n_weights > 1 or len(held) - n_weights > 1:
            raise DataError(
                f"A table can hold one attribute of amounts, got {domain.names[held[0]]!r} and "
                f"{domain.names[held[1]]!r}; make a table for each."
            )
        _refuse_too_fine(domain, held, ranges)
        if len(held) > 1:
            ranges.product_units[held] = domain.product_unit(held)
    return ranges


def refuse_too_many(
    domain: Domain, tables: Iterable[Sequence[int]], ranges: Ranges, n_records: int
) -> None:
    """Raise `DataError` if counts of amounts could be too large for 64 bits.

    ranges: of `amount_ranges`
    """
    for held in {amounts_in(table, ranges) for table in tables} if ranges else ():
        _refuse_too_fine(domain, held, ranges, n_records)


def _refuse_too_fine(
    domain: Domain, held: AttributeIndices, ranges: Ranges, n_records: int | None = None
) -> None:
    """Raise `DataError` if products of steps, or sums over records, are too large for 64 bits."""
    steps = prod(ranges[index] for index in held)
    counted = steps if n_records is None else ranges.times(held) * n_records
    if held and counted >= _MOST_COUNTED:
        names = " and ".join(repr(domain.names[index]) for index in held)
        what = "attribute" if len(held) == 1 else "the attributes"
        many = "" if n_records is None else " over so many records"
        raise DataError(
            f"The limits of {what} {names} are {steps:,} of {'its' if len(held) == 1 else 'their'} "
            f"smallest steps apart, too many for sums{many}; state fewer decimals or narrower "
            f"limits{domain.or_rounder_limits(held)}.",
            private="" if n_records is None else f"There are {n_records:,} records.",
        )


def counts_of_amounts(
    sums: Mapping[AttributeIndices, np.ndarray], ranges: Ranges
) -> dict[AttributeIndices, np.ndarray]:
    """How often records count where the amounts of each of `subsets` are `high`, others `low`.

    A record with y steps of R counts R − y times where an amount is `low`, and y times where it is
    `high`; products of both, multiplied out, are sums of products of steps.

    sums: the sum over records of what `product_of_steps` has of each set, of any shape; that of ()
        is their number. Records without an amount have no steps, and are counted where that
        amount is `low`, which stands for their own cell.
    """
    held = max(sums, key=len)
    counts: dict[AttributeIndices, np.ndarray] = {}
    for high in sums:
        total = np.zeros_like(sums[()], dtype=np.int64)
        for one in sums:
            if set(high) <= set(one):
                sign = -1 if (len(one) - len(high)) % 2 else 1
                total += sign * (ranges.times(held) // ranges.times(one)) * sums[one]
        counts[high] = total
    return counts


def product_of_steps(steps: Sequence[np.ndarray], unit: int) -> np.ndarray:
    """The product of the steps of amounts, and weights, of each record: int64[n].

    In units of so many products of steps, rounded to the nearest, halves up.
    """
    product = reduce(np.multiply, steps)
    return product if unit == 1 else (product + unit // 2) // unit


def split_code(codes: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Codes [n] of an attribute of amounts of this size as those of cells, and steps int64[n].

    An amount is counted by its steps above the lowest, in the cell `low`, 0; other records have
    none.
    """
    is_amount = codes >= size
    steps = np.where(is_amount, codes - codes.dtype.type(size), 0).astype(np.int64)
    return np.where(is_amount, 0, codes).astype(np.min_scalar_type(size - 1)), steps


# ---- Reading: the smallest step that is nearest to a number, half to even, clamped to the limits.


def codes_of_amounts(column: pa.Array, numbers: np.ndarray, values: Amounts) -> np.ndarray:
    """The code of each amount, int64[n]; −1 for what is none.

    What decides is the decimal that a text or a decimal type writes, and the number that a float
    is. numbers: the column as floats of 64 bits
    """
    is_amount = np.isfinite(numbers)
    if pa.types.is_integer(column.type):
        steps = _steps_of_whole(column, values)
    else:
        power = 10.0**values.decimals
        # Far enough beyond the limits to be rounded beyond them.
        ends = (values.lowest - 1) / power, (values.highest + 1) / power
        near = np.clip(np.where(is_amount, numbers, 0.0), *ends)
        if pa.types.is_floating(column.type):
            steps = _steps_of_floats(near, power)
        else:
            steps = _steps_of_texts(column, near, values.decimals)
        steps = np.clip(steps, values.lowest, values.highest)
    return np.where(is_amount, steps - values.lowest + values.size, -1)


def _steps_of_whole(column: pa.Array, values: Amounts) -> np.ndarray:
    wide = pa.int64() if pa.types.is_signed_integer(column.type) else pa.uint64()
    numbers = pc.fill_null(column.cast(wide), 0).to_numpy(zero_copy_only=False)
    ends = [floor(values.minimum), ceil(values.maximum)]
    if pa.types.is_unsigned_integer(wide):
        ends = [max(end, 0) for end in ends]
    near = np.clip(numbers, *(numbers.dtype.type(end) for end in ends)).astype(np.int64)
    return np.clip(near * 10**values.decimals, values.lowest, values.highest)


def _steps_of_floats(numbers: np.ndarray, power: float) -> np.ndarray:
    """Floats in steps, as if they were multiplied without rounding. power: at most 10^6."""
    sizes = np.abs(numbers)  # of which the rests are exact: −1e-20 is no whole number above −1
    product = sizes * power
    whole = np.floor(product)
    rest = product - whole
    # Halves are floats, and products are rounded to the nearest one: so only one that is a half
    # itself may have been more or less, by an error that is known exactly.
    upper = SPLIT * sizes
    upper = upper - (upper - sizes)
    error = (upper * power - product) + (sizes - upper) * power
    is_even = whole % 2 == 0
    is_up = (rest > 0.5) | ((rest == 0.5) & ((error > 0) | ((error == 0) & ~is_even)))
    return np.copysign(whole + is_up, numbers).astype(np.int64)


def _steps_of_texts(column: pa.Array, numbers: np.ndarray, decimals: int) -> np.ndarray:
    """Decimals in steps. numbers: them as floats, or one beyond the limits"""
    product = numbers * 10.0**decimals
    steps = np.rint(product).astype(np.int64)
    # Twice rounded, a product may be off by so much: then its digits decide.
    below = np.floor(product)
    is_near_half = np.abs(product - below - 0.5) <= np.abs(product) * 2.0**-51
    places = np.flatnonzero(is_near_half)
    texts = pc.utf8_trim_whitespace(column.take(pa.array(places))).to_pylist()
    for place, text in zip(places.tolist(), texts, strict=True):
        lower, number = int(below[place]), Decimal(text)
        half = Decimal(f"{10 * lower + 5}e{-decimals - 1}")
        steps[place] = lower + (number > half or (number == half and lower % 2 == 1))
    return steps
