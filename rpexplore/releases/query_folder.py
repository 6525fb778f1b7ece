"""The folder of a release of queries: noisy answers, what was measured, plan and manifest.

    plan.json               the query plan, canonical
    answers.csv, .parquet   one row a query
    measurements.parquet    what was measured, one whole number a row of the plan's strategy
    manifest.json           guarantee, versions, and size and SHA-256 of every file
    README.md               how to read all this

Written as a `new_folder`; the manifest comes last.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from rpexplore.queries.plan import QueryPlan
from rpexplore.releases.manifest import CONFIDENCE, checked_manifest, file_entry, write_manifest
from rpexplore.releases.measurement_file import MeasurementNote
from rpexplore.releases.readme import query_readme

FORMAT = ("rpexplore-query-release", 1)

_ANSWERS, _MEASUREMENTS = "answers", "measurements.parquet"


@dataclass(frozen=True, eq=False)
class QueryRelease:
    """A finished release of queries: its folder, plan and manifest. Holds noisy figures only."""

    folder: Path
    plan: QueryPlan
    manifest: Mapping[str, Any]

    @classmethod
    def load(cls, folder: str | Path) -> "QueryRelease":
        """Open a release folder; raises `ReleaseError` if it is not one or a file was changed."""
        folder = Path(folder)
        manifest = checked_manifest(folder, FORMAT)
        return cls(folder, QueryPlan.load(folder / "plan.json"), manifest)

    @property
    def answers(self) -> pd.DataFrame:
        """One row a query: name, answer, standard_error, margin_95, target, met."""
        return pyarrow.parquet.read_table(self.folder / f"{_ANSWERS}.parquet").to_pandas()

    @property
    def measurements(self) -> np.ndarray:
        """The noisy whole numbers that the answers are computed from, int64[k]."""
        return pyarrow.parquet.read_table(self.folder / _MEASUREMENTS)["measured"].to_numpy()


def write_query_release(
    folder: Path,
    plan: QueryPlan,
    measured: np.ndarray,
    answers: np.ndarray,
    note: MeasurementNote,
) -> Mapping[str, Any]:
    """Write all files of a release into a folder, but the plan; returns the manifest.

    measured: int64[k]; answers: float64[n_queries]
    """
    rows = pa.table(
        {
            "name": list(plan.queries.names),
            "answer": answers,
            "standard_error": plan.standard_errors,
            "margin_95": plan.margins_of_error(CONFIDENCE),
            "target": plan.targets,
            "met": plan.met,
        }
    )
    pyarrow.csv.write_csv(rows, folder / f"{_ANSWERS}.csv")
    pyarrow.parquet.write_table(rows, folder / f"{_ANSWERS}.parquet")
    pyarrow.parquet.write_table(pa.table({"measured": measured}), folder / _MEASUREMENTS)
    (folder / "README.md").write_text(query_readme(plan, note), encoding="utf-8")
    names = (f"{_ANSWERS}.csv", f"{_ANSWERS}.parquet", _MEASUREMENTS, "plan.json", "README.md")
    files = [file_entry(folder, name) for name in names]
    return write_manifest(folder, FORMAT, plan, note, files)
