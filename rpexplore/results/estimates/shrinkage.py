"""Smooth tables of a release, and how far they are from the unbiased ones, group by group."""

from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from math import prod
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from rpexplore.common.processes import Progress, no_progress
from rpexplore.domain.domain import AttributeIndices, Domain
from rpexplore.domain.structural_zeros import StructuralZeros
from rpexplore.estimation.smooth_tables import SmoothTables, smooth_residuals
from rpexplore.estimation.table_map import MeasuredResiduals
from rpexplore.releases.manifest import CheckedFolder, file_entry
from rpexplore.releases.table_cells import check_schema, for_csv, read_columns
from rpexplore.results.publication import SmoothingGain
from rpexplore.results.unbiased import Estimates, refuse_open_values
from rpexplore.workload.table_text import QueryMatrix

if TYPE_CHECKING:
    import pandas as pd


# ---- Smooth tables of estimates, or of a release: a best guess at the counts. Biased.
#
# The fit needs what was measured alone: `estimation` (docs/mathematics.md §13).


def smooth(estimates: Estimates, *, on_progress: Progress = no_progress) -> SmoothTables:
    """The smooth tables of what was measured; the same estimates always give the same tables.

    Cells that impossible combinations leave without a record are 0.
    """
    measured = measured_residuals(estimates, zeros=estimates.domain.structural_zeros)
    return smooth_residuals(measured, on_progress=on_progress)


def measured_residuals(
    estimates: Estimates, largest_order: int | None = None, zeros: StructuralZeros | None = None
) -> MeasuredResiduals:
    """What the fit needs of estimates.

    largest_order: the most attributes of one, None for all; zeros: where tables are to be 0
    """
    refuse_open_values(estimates.domain, estimates.open_attributes)
    contributions = estimates.contributions
    if largest_order is not None:
        # By key, as what is left out need not be read.
        contributions = {
            subset: contributions[subset]
            for subset in contributions
            if len(subset) <= largest_order
        }
    variances = {subset: float(estimates.variances[subset]) for subset in contributions}
    return MeasuredResiduals(
        contributions,
        variances,
        estimates.domain.sizes,
        estimates.strategies,
        zeros,
        estimates.public.intersection(contributions),
    )


# ---- How far the smooth counts of groups are from the unbiased ones.
#
# Distances are root mean squares of (smooth − unbiased) / standard error over cells. The unbiased
# count is the truth plus noise of that standard error, so that smooth counts without any error
# would be at a distance of 1, and outside 5 % of the 95 % intervals. Nearer to 0, noise was kept;
# clearly above 1, differences that are more than noise were smoothed away.
#
# As smooth counts go with the noise and not against it, their root mean squared error is √(d² − 1)
# standard errors at least, at a distance of d: beyond √2 they are less accurate than the unbiased
# ones.
#
# What is clearly above 1 depends on how many of a group's numbers are independent. Tables share
# residuals, so that these are fewer than its cells: of the cells with one value of attribute i,
# each residual on A with i has ∏ (n_j − 1) over the other attributes of A (those on A without i add
# to the same sums).


SIZES = (0.0, 1.0, 5.0, 20.0, 100.0, 1000.0, 10_000.0)
"""Smooth counts at which the groups by size begin; the last has no end."""

BY_SIZE = ""
"""In the place of an attribute: the group is that of cells with a smooth count of some size."""

_SIZE_NAMES = (
    f"below {SIZES[1]:,.0f}",
    *(f"{low:,.0f} to below {high:,.0f}" for low, high in pairwise(SIZES[1:])),
    f"{SIZES[-1]:,.0f} and more",
)
_AS_THE_TRUTH = 1.0  # the distance of counts without any error
_DEVIATIONS = 3  # above it, of a distance that is clearly so; there may be a thousand groups

Queries = Sequence[QueryMatrix | None]
_Axis = tuple[int, QueryMatrix | None]


class GroupDistances:
    """Cells and their distances, added up by group from one table after the other.

    Threads may add tables in any order: they are added up in their own, so that no sum depends on
    which thread was first.
    """

    def __init__(self, domain: Domain) -> None:
        self._domain = domain
        self._by_axis: dict[_Axis, np.ndarray] = {}  # [cells, Σ distance², cells outside], values
        self._by_size = np.zeros((3, len(_SIZE_NAMES)))
        # Of tables of one attribute: count, unbiased count and standard error of each value.
        self._counts: dict[_Axis, np.ndarray] = {}
        self._lock, self._next = Lock(), 0
        self._waiting: dict[int, tuple[dict[_Axis, np.ndarray], np.ndarray]] = {}

    def add(
        self,
        position: int,
        attributes: AttributeIndices,
        queries: Queries,
        numbers: Sequence[np.ndarray],
    ) -> None:
        """Add the table at a position; every position from 0 on has to be added once.

        queries: of each attribute; None: its single values
        numbers: the smooth counts, and the unbiased counts with standard error and ends of the
            interval: five arrays float64[n_cells], row-major
        """
        value, unbiased, error, lower, upper = numbers
        axes = tuple(zip(attributes, queries, strict=True))
        shape = [
            self._domain.attributes[index].size if query is None else query.n_rows
            for index, query in axes
        ]
        of_cells = np.stack(
            [
                np.ones(value.size),
                # Exact totals are as they are: at a distance of 0.
                np.divide(value - unbiased, error, out=np.zeros(value.size), where=error > 0) ** 2,
                (value < lower) | (value > upper),
            ]
        )
        sizes = np.maximum(np.searchsorted(SIZES, value, side="right") - 1, 0)
        by_size = np.stack(
            [np.bincount(sizes, weights=each, minlength=len(SIZES)) for each in of_cells]
        )
        of_cells = of_cells.reshape(3, *shape)
        every = range(1, len(shape) + 1)
        by_axis = {
            axis: of_cells.sum(axis=tuple(other for other in every if other != place))
            for place, axis in zip(every, axes, strict=True)
        }
        with self._lock:
            if len(axes) == 1:
                self._counts[axes[0]] = np.stack([value, unbiased, error])
            self._waiting[position] = by_axis, by_size
            while self._next in self._waiting:
                by_axis, by_size = self._waiting.pop(self._next)
                for axis, sums in by_axis.items():
                    self._by_axis[axis] = self._by_axis.get(axis, 0.0) + sums
                self._by_size += by_size
                self._next += 1

    def frame(self, residuals: Collection[AttributeIndices]) -> "pd.DataFrame":
        """One row a group: the values of each attribute, then the sizes of smooth counts.

        residuals: the attributes (of two values and more) of all that was measured

        Columns attribute (`BY_SIZE` for sizes), group (the value's label), cells, distance,
        outside_95 (share of the cells whose smooth count is outside the interval of the unbiased
        one), limit (above which a distance is above 1 by more than chance), clearly_above_1
        ("yes" or "no"), value, unbiased_value and standard_error (of the group's own count in the
        table of its attribute alone; NaN if there is none).
        """
        import pandas as pd

        sums: dict[tuple[str, str], np.ndarray] = {}
        counts: dict[tuple[str, str], np.ndarray] = {}
        for index, query in sorted(self._by_axis, key=lambda axis: axis[0]):
            attribute = self._domain.attributes[index]
            labels = attribute.labels() if query is None else query.labels()
            own = self._counts.get((index, query))
            for row, label in enumerate(labels):
                group = attribute.name, label
                sums[group] = sums.get(group, 0.0) + self._by_axis[index, query][:, row]
                if own is not None:
                    counts[group] = own[:, row]
        # Groups by size are not of unbiased counts: one among the largest of these is there because
        # of its noise as well.
        sums |= {
            (BY_SIZE, name): self._by_size[:, size]
            for size, name in enumerate(_SIZE_NAMES)
            if self._by_size[0, size]
        }
        cells, squares, outside = np.reshape(list(sums.values()), (-1, 3)).T
        numbers = self._independent_numbers(residuals, [attribute for attribute, _ in sums], cells)
        # √(1/2n) is the standard deviation of a root mean square of n independent normal numbers:
        # counts without any error hardly ever go beyond the limit.
        distance = np.sqrt(squares / cells)
        limit = _AS_THE_TRUTH + _DEVIATIONS / np.sqrt(2 * numbers)
        unknown = np.full(3, np.nan)
        own_counts = np.reshape([counts.get(group, unknown) for group in sums], (-1, 3))
        return pd.DataFrame(
            {
                "attribute": [attribute for attribute, _ in sums],
                "group": [group for _, group in sums],
                "cells": cells.astype(np.int64),
                "distance": distance,
                "outside_95": outside / cells,
                "limit": limit,
                "clearly_above_1": np.where(distance > limit, "yes", "no"),
                "value": own_counts[:, 0],
                "unbiased_value": own_counts[:, 1],
                "standard_error": own_counts[:, 2],
            }
        )

    def _independent_numbers(
        self, residuals: Collection[AttributeIndices], attributes: Sequence[str], cells: np.ndarray
    ) -> np.ndarray:
        """How many noisy numbers of each group are independent; at most its cells, float64[n].

        Of a group by size as large a share of its cells as of all. attributes: of each group
        """
        sizes = self._domain.sizes.tolist()
        of_all, of_a_value = 0, dict.fromkeys(self._domain.names, 0)
        for residual in residuals:
            of_all += (own := prod(sizes[index] - 1 for index in residual))
            for index in residual:
                of_a_value[self._domain.names[index]] += own // (sizes[index] - 1)
        share = min(1.0, of_all / float(self._by_size[0].sum()))
        # Attributes of one value have no residual: that value counts all records.
        numbers = [
            share * n_cells if attribute == BY_SIZE else of_a_value[attribute] or of_all
            for attribute, n_cells in zip(attributes, cells.tolist(), strict=True)
        ]
        return np.minimum(numbers, cells)


# ---- How far smooth tables were shrunk: measurement by measurement, and group by group.
#
# shrinkage.*             one row a residual: attribute_1, attribute_2, … (empty where it has
#                             fewer attributes), cells, share_kept (0 to 1); of the table of these
#                             attributes standard_error and model_error (root mean squares over its
#                             cells) and smoothing_gains ("yes", or "no" where the second is within
#                             5 % of the first), empty without such a table, or where it sums single
#                             values
#     shrinkage_by_group.*    one row a group: columns as `GroupDistances.frame` has them
#
# As Parquet and CSV. The total, of which everything is kept, is left out.


_BY_RESIDUAL, _BY_GROUP = "shrinkage", "shrinkage_by_group"
SHRINKAGE_FILES = [
    f"{name}.{ending}" for name in (_BY_RESIDUAL, _BY_GROUP) for ending in ("parquet", "csv")
]

_COLUMNS: dict[str, pa.DataType] = {"cells": pa.int64(), "share_kept": pa.float64()}
_OF_TABLE: dict[str, pa.DataType] = {
    "standard_error": pa.float64(),
    "model_error": pa.float64(),
    "smoothing_gains": pa.string(),
}
_OF_GROUP: dict[str, pa.DataType] = {
    "attribute": pa.string(),
    "group": pa.string(),
    "cells": pa.int64(),
    "distance": pa.float64(),
    "outside_95": pa.float64(),
    "limit": pa.float64(),
    "clearly_above_1": pa.string(),
}
_OWN_COUNT: dict[str, pa.DataType] = dict.fromkeys(
    ("value", "unbiased_value", "standard_error"), pa.float64()
)


def write_shrinkage(
    folder: Path,
    domain: Domain,
    kept: Mapping[AttributeIndices, float],
    gains: Mapping[AttributeIndices, SmoothingGain],
    groups: GroupDistances,
    *,
    escape_formulas: bool,
) -> list[dict[str, Any]]:
    """Write all files; what the manifest says of them.

    kept, gains: by the attributes of several values, of residuals and of tables
    """
    residuals = sorted(filter(None, kept), key=lambda residual: (len(residual), residual))
    sizes, names = domain.sizes.tolist(), domain.names
    columns: dict[str, pa.Array] = {
        f"attribute_{i + 1}": pa.array(
            [names[residual[i]] if i < len(residual) else None for residual in residuals],
            pa.string(),
        )
        for i in range(len(residuals[-1]) if residuals else 0)
    }
    cells = [prod(sizes[attribute] for attribute in residual) for residual in residuals]
    columns["cells"] = pa.array(cells, pa.int64())
    columns["share_kept"] = pa.array([kept[residual] for residual in residuals], pa.float64())
    facts = [
        (gain.standard_error, gain.model_error, gain.text) if gain is not None else (None,) * 3
        for gain in map(gains.get, residuals)
    ]
    for position, (name, kind) in enumerate(_OF_TABLE.items()):
        columns[name] = pa.array([of_table[position] for of_table in facts], kind)
    by_group = pa.Table.from_pandas(
        groups.frame(kept),
        pa.schema(list({**_OF_GROUP, **_OWN_COUNT}.items())),
        preserve_index=False,
    ).replace_schema_metadata()
    for name, table in ((_BY_RESIDUAL, pa.table(columns)), (_BY_GROUP, by_group)):
        pyarrow.parquet.write_table(table, folder / f"{name}.parquet")
        as_csv = for_csv(table, escape_formulas=escape_formulas)
        pyarrow.csv.write_csv(as_csv, folder / f"{name}.csv")
    return [file_entry(folder, name) for name in SHRINKAGE_FILES]


def read_shrinkage(folder: CheckedFolder) -> "pd.DataFrame":
    """One row a residual: attributes (a tuple of names), order (how many), and what is written.

    Raises `ReleaseError` for a file that is not what was written.
    """
    path = folder / f"{_BY_RESIDUAL}.parquet"
    stored = read_columns(path, _COLUMNS)
    check_schema(path, stored.schema, _OF_TABLE)
    facts = [*_COLUMNS, *_OF_TABLE]
    named = stored.drop_columns(facts).to_pylist()
    attributes = [tuple(name for name in row.values() if name is not None) for row in named]
    frame = stored.select(facts).to_pandas()
    frame.insert(0, "order", [len(names) for names in attributes])
    frame.insert(0, "attributes", attributes)
    return frame


def read_shrinkage_by_group(folder: CheckedFolder) -> "pd.DataFrame":
    """One row a group, as `GroupDistances.frame`; raises as `read_shrinkage`."""
    path = folder / f"{_BY_GROUP}.parquet"
    stored = read_columns(path, _OF_GROUP)
    check_schema(path, stored.schema, _OWN_COUNT)
    return stored.to_pandas()
