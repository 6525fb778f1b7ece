"""How far smooth tables were shrunk: measurement by measurement, and group by group.

    shrinkage.*             one row a residual: attribute_1, attribute_2, … (empty where it has
                            fewer attributes), cells, share_kept (0 to 1); of the table of these
                            attributes standard_error and model_error (root mean squares over its
                            cells) and smoothing_gains ("yes", or "no" where the second is within
                            5 % of the first), empty without such a table, or where it sums single
                            values
    shrinkage_by_group.*    one row a group: columns as `GroupDistances.frame` has them

As Parquet and CSV. The total, of which everything is kept, is left out.
"""

from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from rpexplore.domain.domain import AttributeIndices, Domain
from rpexplore.postprocessing.group_distances import GroupDistances
from rpexplore.postprocessing.publication import SmoothingGain
from rpexplore.releases.manifest import file_entry
from rpexplore.releases.stored_columns import check_schema, read_columns
from rpexplore.releases.table_cells import for_csv

if TYPE_CHECKING:
    import pandas as pd

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


def read_shrinkage(folder: Path) -> "pd.DataFrame":
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


def read_shrinkage_by_group(folder: Path) -> "pd.DataFrame":
    """One row a group, as `GroupDistances.frame`; raises as `read_shrinkage`."""
    path = folder / f"{_BY_GROUP}.parquet"
    stored = read_columns(path, _OF_GROUP)
    check_schema(path, stored.schema, _OWN_COUNT)
    return stored.to_pandas()
