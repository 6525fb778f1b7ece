"""How far smooth tables were shrunk: of every residual, the share that was kept.

    shrinkage.parquet, shrinkage.csv    one row a residual: attribute_1, attribute_2, … (empty where
                                        it has fewer attributes), cells, share_kept (0 to 1)

The total, of which everything is kept, is left out.
"""

from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from rpexplore.domain.domain import AttributeIndices, Domain
from rpexplore.releases.manifest import file_entry
from rpexplore.releases.stored_columns import read_columns
from rpexplore.releases.table_cells import for_csv

if TYPE_CHECKING:
    import pandas as pd

SHRINKAGE_FILES = ("shrinkage.parquet", "shrinkage.csv")

_COLUMNS: dict[str, pa.DataType] = {"cells": pa.int64(), "share_kept": pa.float64()}


def write_shrinkage(
    folder: Path,
    domain: Domain,
    kept: Mapping[AttributeIndices, float],
    *,
    escape_formulas: bool,
) -> list[dict[str, Any]]:
    """Write both files; what the manifest says of them. kept: by the residual's attributes."""
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
    as_parquet, as_csv = SHRINKAGE_FILES
    table = pa.table(columns)
    pyarrow.parquet.write_table(table, folder / as_parquet)
    pyarrow.csv.write_csv(for_csv(table, escape_formulas=escape_formulas), folder / as_csv)
    return [file_entry(folder, name) for name in SHRINKAGE_FILES]


def read_shrinkage(folder: Path) -> "pd.DataFrame":
    """One row a residual: attributes (a tuple of names), order (how many), cells, share_kept.

    Raises `ReleaseError` for a file that is not what was written.
    """
    stored = read_columns(folder / SHRINKAGE_FILES[0], _COLUMNS)
    named = stored.drop_columns(list(_COLUMNS)).to_pylist()
    attributes = [tuple(name for name in row.values() if name is not None) for row in named]
    frame = stored.select(list(_COLUMNS)).to_pandas()
    frame.insert(0, "order", [len(names) for names in attributes])
    frame.insert(0, "attributes", attributes)
    return frame
