"""The release folder: noisy tables, measured residuals, plan and manifest, as files.

    plan.json               the plan, canonical
    tables/NNNN_age_sex.*   each table as Parquet and CSV, one row a cell (an answer)
    residuals.parquet       what was measured, so that tables can be rebuilt (residual: its place
                            in the plan file's list; cell: row-major, an attribute with a strategy
                            having one entry for each row of its matrix; measured: integer)
    manifest.json           guarantee, versions, and size and SHA-256 of every file
    README.md               how to read all this

Written as a `new_folder`; the manifest comes last.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from rpexplore.accuracy import normal_quantile, residuals_within
from rpexplore.attribute import Attribute, Categories
from rpexplore.basis import Basis, Hierarchy, Identity
from rpexplore.cells import Cells
from rpexplore.errors import ReleaseError
from rpexplore.manifest import CONFIDENCE, checked_manifest, file_entry, write_manifest
from rpexplore.plan import Plan
from rpexplore.questions import questions
from rpexplore.reconstruct import contribution, marginal
from rpexplore.release_readme import readme
from rpexplore.verification import guarantee
from rpexplore.workload import AttributeSet

KIND = ("rpexplore-release", 1)
BYTES_PER_CELL = 125  # about, as CSV and Parquet together
ESTIMATES = ("value", "standard_error", "lower_95", "upper_95")

_RESIDUAL_SCHEMA = pa.schema(
    [("residual", pa.int32()), ("cell", pa.int64()), ("measured", pa.int64())]
)
_ROWS_PER_GROUP = 1 << 20


@dataclass(frozen=True, eq=False)
class Release:
    """A finished release: its folder, plan and manifest. Holds noisy figures only."""

    folder: Path
    plan: Plan
    manifest: Mapping[str, Any]

    @classmethod
    def load(cls, folder: str | Path) -> "Release":
        """Open a release folder; raises `ReleaseError` if it is not one or a file was changed."""
        folder = Path(folder)
        manifest = checked_manifest(folder, KIND)
        return cls(folder, Plan.load(folder / "plan.json"), manifest)

    def table(self, table: AttributeSet) -> pd.DataFrame:
        """One of the released tables: labels, value, standard_error, lower_95, upper_95."""
        position = self.plan.workload.position(table)
        path = self.folder / f"{table_path(self.plan, position)}.parquet"
        return pyarrow.parquet.read_table(path).to_pandas()

    def rebuilt(self, table: AttributeSet) -> pd.DataFrame:
        """Any marginal that some table of the workload contains, from the measured residuals.

        By single values, however the workload's tables ask them.
        """
        places = self.plan.workload.domain.positions(table)
        values = self._marginal(places)
        labels = [label_columns(self.plan.workload.domain.attributes[place]) for place in places]
        return table_of_cells(labels, values, self.plan.marginal_variances(places)).to_pandas()

    def answer(
        self, table: AttributeSet, query: Mapping[str, Sequence[float]]
    ) -> tuple[float, float]:
        """(value, standard error) of any product query on a table: a range, a subtotal, …

        query: a vector for attributes of the table, one number for each of its values; what is
        left out is summed over. The standard error is exact, with all covariances between what the
        query adds up.
        """
        domain = self.plan.workload.domain
        places = domain.positions(table)
        names = [domain.names[place] for place in places]
        others = [name for name in query if name not in names]
        if others:
            raise ReleaseError(
                f"The table {domain.describe(places)} does not have the attribute "
                f"{others[0]!r}; ask a table that has it."
            )
        whole = {name: query.get(name, [1.0] * domain[name].size) for name in names}
        error = float(np.sqrt(self.plan.query_variance(table, whole)))  # checks the vectors
        values = self._marginal(places)
        for name in names:
            values = np.tensordot(np.asarray(whole[name], dtype=float), values, axes=(0, 0))
        return float(values), error

    def _marginal(self, places: Sequence[int]) -> np.ndarray:
        """The counts of the single values on these places, from the measured residuals."""
        closure = self.plan.closure
        residuals = residuals_within(closure, places)
        stored = pyarrow.parquet.read_table(
            self.folder / "residuals.parquet", filters=[("residual", "in", set(residuals.values()))]
        )
        residual, measured = stored["residual"].to_numpy(), stored["measured"].to_numpy()
        contributions = {}
        for subset, place in residuals.items():
            shape = [int(closure.sizes[i]) - (i in closure.strategies) for i in subset]
            drawn = measured[residual == place].reshape(shape)
            contributions[subset] = contribution(drawn, subset, closure.strategies)
        return marginal(places, closure.sizes, contributions, closure.strategies)


class FolderWriter:
    """Writes the parts of a release into a folder that does not look finished yet."""

    def __init__(self, folder: Path, plan: Plan, other: Mapping[str, str]) -> None:
        self.folder, self.plan, self._other = folder, plan, other
        self._residuals = pyarrow.parquet.ParquetWriter(
            folder / "residuals.parquet", _RESIDUAL_SCHEMA
        )
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_rows = 0
        self._labels: dict[int, list[tuple[str, pa.Array]]] = {}
        self._cells = Cells(plan.workload, plan.closure)
        self._files: list[dict[str, Any]] = []
        (folder / "tables").mkdir()

    def add_residual(self, residual: int, measured: np.ndarray) -> None:
        """Keep a measurement; call in the plan's order."""
        columns = [
            pa.array(np.full(measured.size, residual, dtype=np.int32)),
            pa.array(np.arange(measured.size)),
            pa.array(measured.ravel()),
        ]
        self._waiting.append(pa.record_batch(columns, schema=_RESIDUAL_SCHEMA))
        self._waiting_rows += measured.size
        if self._waiting_rows >= _ROWS_PER_GROUP:
            self._flush()

    def _flush(self) -> None:
        if self._waiting:
            self._residuals.write_table(pa.Table.from_batches(self._waiting))
            self._waiting.clear()
            self._waiting_rows = 0

    def add_table(self, position: int, values: np.ndarray) -> None:
        """Write a reconstructed table of the workload, one axis an attribute."""
        plan = self.plan
        asked = plan.workload.asks[position, : values.ndim].tolist()
        labels = [self._labels_of(question) for question in asked]
        variances = self._cells.variances_of(position, plan.sigma_squared.floats)
        cells = table_of_cells(labels, values, variances)
        path = table_path(plan, position)
        pyarrow.parquet.write_table(cells, self.folder / f"{path}.parquet")
        pyarrow.csv.write_csv(cells, self.folder / f"{path}.csv")
        for ending in (".parquet", ".csv"):
            self._list(f"{path}{ending}", attributes=list(plan.workload.tables[position]))

    def _labels_of(self, question: int) -> list[tuple[str, pa.Array]]:
        """Made once for each way of asking an attribute: there may be a million, in every table."""
        if question not in self._labels:
            place, basis = self.plan.workload.questions[question]
            attribute = self.plan.workload.domain.attributes[place]
            self._labels[question] = label_columns(attribute, basis)
        return self._labels[question]

    def finish(self) -> Mapping[str, Any]:
        """Write plan, README and manifest; returns the manifest."""
        self._flush()
        self._residuals.close()
        self._list("residuals.parquet")
        (self.folder / "plan.json").write_text(self.plan.text, encoding="utf-8", newline="\n")
        self._list("plan.json")
        text = readme(self.plan, self._other)
        (self.folder / "README.md").write_text(text, encoding="utf-8")
        self._list("README.md")
        return write_manifest(
            self.folder, KIND, self.plan, guarantee(self.plan), self._other, self._files
        )

    def close(self) -> None:
        self._residuals.close()

    def _list(self, path: str, **more: Any) -> None:
        self._files.append(file_entry(self.folder, path, **more))


def table_path(plan: Plan, position: int) -> str:
    """Where a table lies in the folder, without ending: its number, then its attributes."""
    names = plan.workload.tables[position] or ("total",)
    words = "_".join(re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-") for name in names)
    return f"tables/{position:04d}_{words[:80]}"


def table_of_cells(
    labels: Sequence[list[tuple[str, pa.Array]]], values: np.ndarray, variances: np.ndarray
) -> pa.Table:
    """One row a cell, row-major: attribute values and labels, value, standard error, interval.

    labels: for each axis of `values`, its `label_columns`.
    """
    columns: dict[str, pa.Array] = {}
    indices = np.indices(values.shape, dtype=np.int32).reshape(values.ndim, values.size)
    for index, named in zip(indices, labels, strict=True):
        for name, words in named:
            while name in columns or name in ESTIMATES:
                name += " (attribute)"
            columns[name] = pa.DictionaryArray.from_arrays(pa.array(index), words)
    flat, error = values.ravel(), np.sqrt(variances).ravel()
    margin = normal_quantile(CONFIDENCE) * error
    columns["value"] = pa.array(flat)
    columns["standard_error"] = pa.array(error)
    columns["lower_95"] = pa.array(flat - margin)
    columns["upper_95"] = pa.array(flat + margin)
    return pa.table(columns)


def label_columns(attribute: Attribute, basis: Basis | None = None) -> list[tuple[str, pa.Array]]:
    """Names and contents of the columns that say what a cell counts, one row a question."""
    values = attribute.values
    basis = basis or Identity()
    labels = attribute.labels() if basis.is_identity else questions(basis, attribute).labels()
    coded = basis.is_identity or isinstance(basis, Hierarchy)
    if coded and isinstance(values, Categories) and values.labels != values.values:
        # The single values come last; groups above them have no code but their name.
        codes = [*labels[: len(labels) - values.size], *values.values]
        return [(attribute.name, pa.array(codes)), (f"{attribute.name} label", pa.array(labels))]
    return [(attribute.name, pa.array(labels))]
