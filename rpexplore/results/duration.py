"""How long post-processing and synthetic records take on this machine, roughly, beforehand."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from math import inf, prod

import numpy as np

from rpexplore.domain.domain import AttributeIndices, subsets
from rpexplore.estimation.nonnegative import nonnegative as nearest_nonnegative
from rpexplore.estimation.table_map import ContributionArrays
from rpexplore.releases.packed_tables import packed_tables
from rpexplore.releases.table_release import TableRelease
from rpexplore.results.synthetic.population import records_swept, sweep_chunk_size
from rpexplore.results.synthetic.targets import MOST_RESIDUALS
from rpexplore.results.unbiased import Estimates

# The search for nonnegative tables takes 20 rounds where few counts are near 0, and 140 for the
# 3-way tables of the sample data at ε = 0.1.
_ROUNDS = 100
# Measured with tables of the sample data on two cores.
_SECONDS_PER_TABLE, _SECONDS_PER_CELL = 0.004, 4e-6  # to write one as CSV and Parquet
_SECONDS_PER_PACKED_TABLE, _SECONDS_PER_PACKED_CELL = 2e-4, 3e-7  # of many in one file
# Measured with 3 to 100 attributes of 2 to 1,000 values and tables of up to four of them.
_SMOOTH_PER_TABLE, _SMOOTH_PER_CELL, _SMOOTH_PER_VALUE_CUBED = 1.1e-3, 2e-7, 8e-9
_MOST_CUBED = 500  # values: of more, no prior is tried whose matrix is decomposed
_ROUGHLY = 0.5  # gap of the trial, which needs no good answer
_WORDS = {  # up to which seconds
    5: "a few seconds",
    20: "about ten seconds",
    45: "about half a minute",
    90: "about a minute",
    300: "a few minutes",
    900: "about ten minutes",
    2700: "about half an hour",
    5400: "about an hour",
    36_000: "a few hours",
    inf: "many hours",
}


@dataclass(frozen=True)
class Speed:
    """Seconds that one round of the search takes for each subset of a table's attributes.

    per_subset  whatever its cells
    per_cell    on top, for each cell of the table
    """

    per_subset: float
    per_cell: float

    def round(self, shapes: Sequence[Sequence[int]]) -> float:
        """Seconds of a round for maximal tables of these shapes."""
        return sum(
            2 ** len(shape) * (self.per_subset + self.per_cell * prod(shape)) for shape in shapes
        )


@cache
def measured_speed() -> Speed:
    """The speed of this machine, tried out once on made-up counts: some tenths of a second."""
    small, large = [(2, 2)] * 28, [(32, 32, 32)]
    per_subset = _seconds_per_round([2] * 8, 2) / Speed(1.0, 0.0).round(small)
    seconds = _seconds_per_round(large[0], 3) - Speed(per_subset, 0.0).round(large)
    return Speed(per_subset, max(seconds, 0.0) / Speed(0.0, 1.0).round(large))


def _seconds_per_round(sizes: Sequence[int], order: int) -> float:
    """What a round takes for all tables of that many of the attributes."""
    contributions = _contributions(sizes, order)
    start = time.perf_counter()
    rounds = nearest_nonnegative(contributions, np.array(sizes), {}, gap=_ROUGHLY).rounds
    return (time.perf_counter() - start) / max(rounds, 1)


def _contributions(sizes: Sequence[int], order: int) -> ContributionArrays:
    contributions: dict[tuple[int, ...], np.ndarray] = {}
    for subset in (s for k in range(order + 1) for s in combinations(range(len(sizes)), k)):
        shape = [sizes[i] for i in subset]
        # Large enough for cells below 0, without which there is no search.
        values = 10 * np.sin(np.arange(prod(shape), dtype=float) ** 2).reshape(shape)
        for axis in range(values.ndim):
            values = values - values.mean(axis=axis, keepdims=True)
        contributions[subset] = values
    return contributions | {(): np.array(float(prod(sizes[:order])))}


def nonnegative_seconds(source: TableRelease | Estimates, speed: Speed | None = None) -> float:
    """About how long nonnegative tables take, their writing included; within a factor of three.

    speed: of the search; that of this machine if left out.
    """
    return writing_seconds(source) + search_seconds(_maximal_shapes(source), speed)


def search_seconds(shapes: Sequence[Sequence[int]], speed: Speed | None = None) -> float:
    """About how long the search takes for nonnegative maximal tables of these shapes."""
    return _ROUNDS * (speed or measured_speed()).round(shapes)


def smooth_seconds(source: TableRelease | Estimates) -> float:
    """About how long smooth tables take, their writing included; within a factor of three."""
    return writing_seconds(source) + smoothing_seconds(source, source.residuals)


def smoothing_seconds(
    source: TableRelease | Estimates, residuals: Sequence[AttributeIndices]
) -> float:
    """About how long it takes to fit smooth tables to these residuals, and to rehearse errors."""
    sizes = source.domain.sizes.tolist()
    shapes = [[sizes[attribute] for attribute in residual] for residual in residuals]
    cubed = sum(min(shape[0], _MOST_CUBED) ** 3 for shape in shapes if len(shape) == 1)
    fitting = (
        _SMOOTH_PER_TABLE * len(shapes)
        + _SMOOTH_PER_CELL * sum(map(prod, shapes))
        + _SMOOTH_PER_VALUE_CUBED * cubed
    )
    return 2 * fitting  # twice where all attributes are rehearsed, less where these are many


def writing_seconds(source: TableRelease | Estimates) -> float:
    """About how long it takes to compute and write all tables."""
    workload = source.workload
    packed = packed_tables(workload)
    n_packed_cells = float(np.sum(workload.cells[packed]))
    return (
        _SECONDS_PER_TABLE * (len(workload) - len(packed))
        + _SECONDS_PER_CELL * (source.n_cells - n_packed_cells)
        + _SECONDS_PER_PACKED_TABLE * len(packed)
        + _SECONDS_PER_PACKED_CELL * n_packed_cells
    )


def _maximal_shapes(source: TableRelease | Estimates) -> list[tuple[int, ...]]:
    """The shapes of the tables that are in no other; attributes of one value do not count."""
    sizes = source.domain.sizes
    tables = {
        tuple(int(i) for i in source.domain.positions(table) if sizes[i] > 1)
        for table in source.table_names
    }
    within = {subset for table in tables for subset in subsets(table) if subset != table}
    return [tuple(int(sizes[i]) for i in table) for table in tables - within]


def rough_duration(seconds: float) -> str:
    """A time in words that promise no more than is known: "about half a minute"."""
    return next(words for most, words in _WORDS.items() if seconds <= most)


# ---- How long synthetic records take, roughly, to be told beforehand.


# Seconds on one core, measured with tables of 4 to 100 attributes of 2 to 1,000 values; each of
# these cases within a factor of two.
_PER_PRODUCT, _PER_VALUE = 1e-9, 6e-9  # a record in a sweep: attributes times values; values
_PER_PAIR_OF_VALUES = 1e-8  # a chunk of the last sweep
_PER_TABLE, _PER_CELL, _PER_COUNT = 1e-3, 3e-7, 5e-8  # of the comparison; counting a record
_PER_WRITTEN_VALUE = 3e-7


def records_seconds(source: TableRelease | Estimates, rows: int | None) -> float:
    """About how long `synthesize` takes; within a factor of three."""
    n_records = max(round(source.answer().value), 1) if rows is None else rows
    domain, tables = source.domain, source.table_names
    attributes = {domain.position(name) for table in tables for name in table}
    d, n_values = len(attributes), int(domain.sizes[list(attributes)].sum())
    per_record = _PER_PRODUCT * d * n_values + _PER_VALUE * n_values
    chunks = n_records / sweep_chunk_size(n_records, n_values)
    residuals = source.residuals
    if len(residuals) > MOST_RESIDUALS:
        residuals = [residual for residual in residuals if len(residual) <= 2]
    return (
        smoothing_seconds(source, residuals)
        + records_swept(n_records, d) * per_record
        + _PER_PAIR_OF_VALUES * chunks * n_values**2
        + (_PER_TABLE + _PER_COUNT * n_records) * len(tables)
        + _PER_CELL * source.n_cells
        + _PER_WRITTEN_VALUE * d * n_records
    )
