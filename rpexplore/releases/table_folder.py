"""The release folder: noisy tables, measured residuals, plan and manifest, as files.

    plan.json               the plan, canonical
    tables/NNNN_age_sex.*   each table as Parquet and CSV, one row a cell (an answer)
    residuals.parquet       what was measured, so that tables can be rebuilt (residual: its place
                            in the plan file's list; cell: row-major, an attribute with a strategy
                            having one entry for each row of its matrix; measured: integer)
    manifest.json           guarantee, versions, and size and SHA-256 of every file
    README.md               how to read all this

Written as a `new_folder`; the manifest comes last. As long as it is not finished the folder also
has the measurements that everything is computed from (`measured_file`).
"""

import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from rpexplore.domain.attribute import Attribute, Categories
from rpexplore.domain.domain import Domain
from rpexplore.errors import ReleaseError
from rpexplore.planning.mechanism.cell_variances import CellVariances
from rpexplore.planning.mechanism.query_covariance import normal_quantile, residuals_within
from rpexplore.planning.mechanism.reconstruction import contribution, marginal
from rpexplore.planning.plan import Plan
from rpexplore.releases.contributions import Contributions
from rpexplore.releases.manifest import CONFIDENCE, checked_manifest, file_entry, write_manifest
from rpexplore.releases.measurement_file import MeasuredFile, MeasurementNote, read_measured
from rpexplore.releases.readme import table_readme
from rpexplore.workload.bases import Basis, Hierarchy, Identity
from rpexplore.workload.query_matrix import query_matrix
from rpexplore.workload.workload import AttributeSet

FORMAT = ("rpexplore-release", 1)
BYTES_PER_CELL = 125  # about, as CSV and Parquet together
ESTIMATES = ("value", "standard_error", "lower_95", "upper_95")

_DIFFERENT = {
    "value",
    "unbiased_value",
    "lower_95",
    "upper_95",
}  # columns without two numbers alike

_RESIDUAL_SCHEMA = pa.schema(
    [("residual", pa.int32()), ("cell", pa.int64()), ("measured", pa.int64())]
)
_ROWS_AT_ONCE = 1 << 20
_SMALL_STEPS = "DELTA_BINARY_PACKED"


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
        manifest = checked_manifest(folder, FORMAT)
        return cls(folder, Plan.load(folder / "plan.json"), manifest)

    @property
    def domain(self) -> Domain:
        """The attributes that the tables are about."""
        return self.plan.workload.domain

    def table(self, table: AttributeSet) -> pd.DataFrame:
        """One of the released tables: labels, value, standard_error, lower_95, upper_95."""
        position = self.plan.workload.position(table)
        path = self.folder / f"{table_path(position, self.plan.workload.tables[position])}.parquet"
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
    """Writes the parts of a release, from its measurements, into a folder not finished yet."""

    def __init__(self, folder: Path, plan: Plan, note: MeasurementNote) -> None:
        self.folder, self.plan, self._note = folder, plan, note
        self._measurements = MeasuredFile(folder, plan.closure)
        self._contributions = Contributions(plan, self._measurements)
        self._cells = CellVariances(plan.workload, plan.closure)
        self._labels: dict[int, list[tuple[str, pa.Array]]] = {}
        tables = folder / "tables"
        # What an earlier attempt has left there is written again.
        shutil.rmtree(tables, ignore_errors=True)
        tables.mkdir()

    def table(self, position: int) -> list[dict[str, Any]]:
        """Write a table of the workload; what the manifest says of its files."""
        plan, workload = self.plan, self.plan.workload
        values = self._contributions.answers(position)
        labels = [
            self._labels_of(each)
            for each in workload.attribute_basis_index[position, : values.ndim].tolist()
        ]
        variances = self._cells.variances_of(position, plan.sigma_squared.floats)
        path = table_path(position, workload.tables[position])
        write_cells(self.folder / path, pieces_of_cells(labels, values, variances))
        attributes = list(workload.tables[position])
        return [
            file_entry(self.folder, f"{path}{ending}", attributes=attributes)
            for ending in (".parquet", ".csv")
        ]

    def residuals(self) -> dict[str, Any]:
        """Write all that was measured; what the manifest says of the file."""
        starts = self._measurements.starts
        schema, path = _RESIDUAL_SCHEMA, "residuals.parquet"
        options: dict[str, Any] = {
            "use_dictionary": ["residual"],
            "column_encoding": {"cell": _SMALL_STEPS},
        }
        with pyarrow.parquet.ParquetWriter(self.folder / path, schema, **options) as writer:
            for start in range(0, int(starts[-1]), _ROWS_AT_ONCE):
                stop = min(start + _ROWS_AT_ONCE, int(starts[-1]))
                within = np.diff(np.clip(starts, start, stop))
                residual = np.repeat(np.arange(len(within), dtype=np.int32), within)
                columns = [
                    pa.array(residual),
                    pa.array(np.arange(start, stop) - starts[residual]),
                    pa.array(read_measured(self.folder, start, stop)),
                ]
                writer.write_batch(pa.record_batch(columns, schema=schema))
        return file_entry(self.folder, path)

    def _labels_of(self, question: int) -> list[tuple[str, pa.Array]]:
        """Made once for each way of asking an attribute: there may be a million, in every table."""
        if question not in self._labels:
            place, basis = self.plan.workload.attribute_bases[question]
            attribute = self.plan.workload.domain.attributes[place]
            self._labels[question] = label_columns(attribute, basis)
        return self._labels[question]

    def finish(self, files: list[dict[str, Any]]) -> Mapping[str, Any]:
        """Write README and manifest; the plan is there since before the noise. The manifest."""
        text = table_readme(self.plan, self._note)
        (self.folder / "README.md").write_text(text, encoding="utf-8")
        files += [file_entry(self.folder, name) for name in ("plan.json", "README.md")]
        return write_manifest(self.folder, FORMAT, self.plan, self._note, files)


def write_cells(path: Path, pieces: Iterator[pa.Table]) -> None:
    """Write one table, piece by piece (at least one), as .parquet and as .csv.

    path: without ending
    """
    first = next(pieces)
    repeated: Any = [name for name in first.schema.names if name not in _DIFFERENT]
    with (
        pyarrow.parquet.ParquetWriter(
            f"{path}.parquet", first.schema, use_dictionary=repeated
        ) as as_parquet,
        pyarrow.csv.CSVWriter(f"{path}.csv", first.schema) as as_csv,
    ):
        for piece in chain([first], pieces):
            as_parquet.write_table(piece)
            as_csv.write_table(piece)


def table_path(position: int, names: Sequence[str]) -> str:
    """Where a table lies in the folder, without ending: its number, then its attributes."""
    words = "_".join(re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-") for name in names or ("total",))
    return f"tables/{position:04d}_{words[:80]}"


def table_of_cells(
    labels: Sequence[list[tuple[str, pa.Array]]], values: np.ndarray, variances: np.ndarray
) -> pa.Table:
    """One row a cell, row-major: attribute values and labels, value, standard error, interval.

    labels: for each axis of `values`, its `label_columns`.
    """
    return pa.concat_tables(pieces_of_cells(labels, values, variances))


def pieces_of_cells(
    labels: Sequence[list[tuple[str, pa.Array]]], values: np.ndarray, variances: np.ndarray
) -> Iterator[pa.Table]:
    """`table_of_cells` in pieces of a million rows, one after another; at least one."""
    names = _column_names(labels)
    every_value = values.reshape(-1)
    for start in range(0, max(values.size, 1), _ROWS_AT_ONCE):
        rows = np.arange(start, min(start + _ROWS_AT_ONCE, values.size))
        indices = np.unravel_index(rows, values.shape) if values.ndim else ()
        columns: list[pa.Array] = []
        for index, named in zip(indices, labels, strict=True):
            code = pa.array(index.astype(np.int32))
            columns += [pa.DictionaryArray.from_arrays(code, words) for _, words in named]
        piece = every_value[rows]
        error = np.broadcast_to(np.sqrt(variances[indices]), piece.shape)
        margin = normal_quantile(CONFIDENCE) * error
        numbers = (piece, error, piece - margin, piece + margin)
        yield pa.table([*columns, *map(pa.array, numbers)], names=[*names, *ESTIMATES])


def _column_names(labels: Sequence[list[tuple[str, pa.Array]]]) -> list[str]:
    """The names of the label columns, apart from each other and from those of the estimates."""
    names: list[str] = []
    for named in labels:
        for name, _ in named:
            while name in names or name in ESTIMATES:
                name += " (attribute)"
            names.append(name)
    return names


def label_columns(attribute: Attribute, basis: Basis | None = None) -> list[tuple[str, pa.Array]]:
    """Names and contents of the columns that say what a cell counts, one row a question."""
    values = attribute.values
    basis = basis or Identity()
    labels = attribute.labels() if basis.is_identity else query_matrix(basis, attribute).labels()
    coded = basis.is_identity or isinstance(basis, Hierarchy)
    if coded and isinstance(values, Categories) and values.labels != values.values:
        # The single values come last; groups above them have no code but their name.
        codes = [*labels[: len(labels) - values.size], *values.values]
        return [(attribute.name, pa.array(codes)), (f"{attribute.name} label", pa.array(labels))]
    return [(attribute.name, pa.array(labels))]
