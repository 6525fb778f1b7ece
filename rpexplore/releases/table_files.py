"""The files of tables, released or made of released ones, and the measurements beside them."""

import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from rpexplore.planning.mechanism.cell_variances import CellVariances
from rpexplore.planning.plan import Plan
from rpexplore.releases.contributions import Contributions
from rpexplore.releases.csv_cells import CsvWriter, csv_decimals
from rpexplore.releases.manifest import file_entry
from rpexplore.releases.measurement_file import MeasuredFile, read_measured
from rpexplore.releases.table_cells import Labels, label_columns, pieces_of_cells

BYTES_PER_CELL, BYTES_PER_CELL_IN_PARQUET = 125, 60  # or fewer: as CSV and Parquet, Parquet alone

RESIDUALS = "residuals.parquet"

RESIDUAL_COLUMNS = {"residual": pa.int32(), "cell": pa.int64(), "measured": pa.int64()}
_RESIDUAL_SCHEMA = pa.schema(list(RESIDUAL_COLUMNS.items()))
# Columns without two numbers alike.
_DIFFERENT = {"value", "model_error", "unbiased_value", "lower_95", "upper_95"}
_ROWS_AT_ONCE = 1 << 20
_SMALL_STEPS = "DELTA_BINARY_PACKED"


class TableWriter:
    """Writes the parts of a release, from its measurements, into a folder not finished yet."""

    def __init__(
        self, folder: Path, plan: Plan, *, escape_formulas: bool, with_csv: bool = True
    ) -> None:
        self.folder, self.plan = folder, plan
        self._escape_formulas, self._with_csv = escape_formulas, with_csv
        self._measurements = MeasuredFile(folder, plan.closure)
        self._contributions = Contributions(plan, self._measurements)
        self._cells = CellVariances(plan.workload, plan.closure)
        self._labels: dict[int, Labels] = {}
        tables = folder / "tables"
        # What an earlier attempt has left there is written again.
        shutil.rmtree(tables, ignore_errors=True)
        tables.mkdir()

    def table(self, position: int) -> list[dict[str, Any]]:
        """Write a table of the workload; what the manifest says of its files."""
        plan, workload = self.plan, self.plan.workload
        values = self._contributions.answers(position)
        labels = [
            self._labels_of(basis_index)
            for basis_index in workload.attribute_basis_index[position, : values.ndim].tolist()
        ]
        variances = self._cells.variances_of(position, plan.sigma_squared.floats)
        pieces = pieces_of_cells(labels, values, variances)
        return write_table(
            self.folder,
            position,
            workload.tables[position],
            pieces,
            decimals=csv_decimals(np.sqrt(variances.min()), np.abs(values).max()),
            escape_formulas=self._escape_formulas,
            with_csv=self._with_csv,
        )

    def residuals(self) -> dict[str, Any]:
        """Write all that was measured; what the manifest says of the file."""
        starts = self._measurements.starts
        schema, path = _RESIDUAL_SCHEMA, RESIDUALS
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

    def _labels_of(self, basis_index: int) -> Labels:
        """Made once for each basis of an attribute: there may be a million, in every table."""
        if basis_index not in self._labels:
            index, basis = self.plan.workload.attribute_bases[basis_index]
            attribute = self.plan.domain.attributes[index]
            self._labels[basis_index] = label_columns(attribute, basis)
        return self._labels[basis_index]


def write_table(
    folder: Path,
    position: int,
    attributes: Sequence[str],
    pieces: Iterator[pa.Table],
    *,
    decimals: int,
    escape_formulas: bool,
    with_csv: bool = True,
) -> list[dict[str, Any]]:
    """Write a table, given in pieces (at least one), as Parquet and CSV; their manifest entries.

    Args:
        decimals: Of numbers in the CSV file, see `csv_decimals`; Parquet files have them in full.
        escape_formulas: Whether no text in the CSV file begins as formulas of spreadsheets do.
        with_csv: Whether there is a CSV file.
    """
    path, first = table_path(position, attributes), next(pieces)
    repeated: Any = [name for name in first.schema.names if name not in _DIFFERENT]
    with ExitStack() as files:
        parquet_writer = files.enter_context(
            pyarrow.parquet.ParquetWriter(
                # Least and largest labels, which nobody looks for, would take a third of the time.
                folder / f"{path}.parquet",
                first.schema,
                use_dictionary=repeated,
                write_statistics=False,
            )
        )
        csv_writer = None
        if with_csv:
            file = files.enter_context((folder / f"{path}.csv").open("wb"))
            names = first.column_names
            csv_writer = CsvWriter(file, names, decimals, escape_formulas=escape_formulas)
        for piece in chain([first], pieces):
            parquet_writer.write_table(piece)
            if csv_writer is not None:
                csv_writer.write(piece)
    endings = ("parquet", "csv") if with_csv else ("parquet",)
    return [file_entry(folder, f"{path}.{end}", attributes=list(attributes)) for end in endings]


def files_of_tables(tables: Sequence[Sequence[str]]) -> dict[str, list[str]]:
    """The files that `write_table` writes of tables, and the attributes of each."""
    return {
        f"{table_path(position, names)}.{ending}": list(names)
        for position, names in enumerate(tables)
        for ending in ("parquet", "csv")
    }


def table_path(position: int, names: Sequence[str]) -> str:
    """Where a table lies in the folder, without ending: its number, then its attributes."""
    plain = (re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-") for name in names or ("total",))
    return f"tables/{position:04d}_{'_'.join(plain)[:80]}"
