"""The files of tables, released or made of released ones, and the measurements beside them."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, nullcontext, suppress
from itertools import chain
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa

from rpexplore.planning.mechanism.cell_variances import CellVariances
from rpexplore.planning.table_plan import TablePlan
from rpexplore.releases.contributions import Contributions
from rpexplore.releases.csv_cells import CsvWriter, csv_decimals
from rpexplore.releases.manifest import file_entry
from rpexplore.releases.measurement import LARGE
from rpexplore.releases.measurement_file import Measured, MeasuredFile
from rpexplore.releases.residual_files import residual_files, write_residuals
from rpexplore.releases.stored_tables import table_writer
from rpexplore.releases.table_cells import Labels, label_columns, pieces_of_cells

BYTES_PER_CELL, BYTES_PER_CELL_IN_PARQUET = 125, 60  # or fewer: as CSV and Parquet, Parquet alone

_TABLES = "tables"
_WRITTEN = "run/written-{}.jsonl"  # in the folder of the run, for the part that begins there
_BYTES_BETWEEN_NOTES = 1 << 23  # of files that are written: fewer are written anew in no time


class TableWriter:
    """Writes the parts of a release, from its measurements, into a folder not finished yet."""

    def __init__(
        self,
        folder: Path,
        plan: TablePlan,
        measured: Measured,
        *,
        escape_formulas: bool,
        with_csv: bool = True,
    ) -> None:
        self.folder, self.plan = folder, plan
        self._escape_formulas, self._with_csv = escape_formulas, with_csv
        self._measurements = MeasuredFile(measured, plan.closure)
        self._contributions = Contributions(plan, self._measurements)
        self._cells = CellVariances(plan.workload, plan.closure)
        self._labels: dict[int, Labels] = {}
        self._large = Lock()
        self._written = WrittenFiles(
            folder, [*residual_files(plan.closure), f"{_TABLES}/"], measured
        )

    def table(self, position: int) -> list[dict[str, Any]]:
        """Write a table of the workload; what the manifest says of its files."""
        workload = self.plan.workload
        names = list(workload.tables[position])
        paths = _paths(position, names, with_csv=self._with_csv)
        if (entries := self._written.entries(paths, attributes=names)) is not None:
            return entries
        with self._large if workload.cells[position] > LARGE else nullcontext():
            entries = self._write(position, names)
        self._written.note(entries)
        return entries

    def _write(self, position: int, names: Sequence[str]) -> list[dict[str, Any]]:
        workload = self.plan.workload
        values = self._contributions.answers(position)
        labels = [
            self._labels_of(basis_index)
            for basis_index in workload.attribute_basis_index[position, : values.ndim].tolist()
        ]
        variances = self._cells.variances_of(position, self.plan.sigma_squared.floats)
        pieces = pieces_of_cells(labels, values, variances)
        return write_table(
            self.folder,
            position,
            names,
            pieces,
            decimals=csv_decimals(np.sqrt(variances.min()), max(-values.min(), values.max())),
            escape_formulas=self._escape_formulas,
            with_csv=self._with_csv,
        )

    def residuals(self) -> list[dict[str, Any]]:
        """Write all that was measured; what the manifest says of the files."""
        entries = []
        for path, residuals in residual_files(self.plan.closure).items():
            written = self._written.entries([path])
            if written is None:
                write_residuals(self._measurements, self.folder, path, residuals)
                written = [file_entry(self.folder, path)]
                self._written.note(written)
            entries += written
        return entries

    def _labels_of(self, basis_index: int) -> Labels:
        """Made once for each basis of an attribute: there may be a million, in every table."""
        if basis_index not in self._labels:
            index, basis = self.plan.workload.attribute_bases[basis_index]
            attribute = self.plan.domain.attributes[index]
            self._labels[basis_index] = label_columns(attribute, basis)
        return self._labels[basis_index]


class WrittenFiles:
    """The files of a part that are complete, noted as they are: finishing the run keeps them.

    A file is kept if it has the size and the SHA-256 that were noted, so that it does not matter
    what of a note has come to the disk. Several threads may use it at a time.
    """

    def __init__(self, folder: Path, paths: Iterable[str], measured: Measured) -> None:
        """Make the folders of these files, and remove what is in them and not noted.

        measured: what they are made from
        """
        self._folder, self._lock = folder, Lock()
        self._notes = measured.folder / _WRITTEN.format(measured.start)
        self._noted: dict[str, dict[str, Any]] = {}
        self._waiting: list[Mapping[str, Any]] = []
        with suppress(OSError), self._notes.open(encoding="utf-8") as file:
            for line in file:
                with suppress(ValueError, KeyError, TypeError):  # the last may be cut off
                    entry = json.loads(line)
                    self._noted[entry["path"]] = entry
        for name in sorted({path.rpartition("/")[0] for path in paths} - {""}):
            (folder / name).mkdir(parents=True, exist_ok=True)
            for path in (folder / name).iterdir():
                if f"{name}/{path.name}" not in self._noted:
                    path.unlink()

    def entries(self, paths: Sequence[str], **more: Any) -> list[dict[str, Any]] | None:
        """What the manifest says of these files; None unless they are all complete."""
        noted = [self._noted.get(path) for path in paths]
        with suppress(OSError):
            if None not in noted:
                entries = [file_entry(self._folder, path, **more) for path in paths]
                return entries if entries == noted else None
        return None

    def note(self, entries: Sequence[Mapping[str, Any]]) -> None:
        """Note that these files are complete, when there are enough of them."""
        with self._lock:
            self._waiting += entries
            if sum(entry["bytes"] for entry in self._waiting) < _BYTES_BETWEEN_NOTES:
                return
            with self._notes.open("a", encoding="utf-8") as file:
                file.write("".join(f"\n{json.dumps(entry)}" for entry in self._waiting))
            self._waiting.clear()


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
    with ExitStack() as files:
        parquet_writer = files.enter_context(table_writer(folder / f"{path}.parquet", first.schema))
        csv_writer = None
        if with_csv:
            file = files.enter_context((folder / f"{path}.csv").open("wb"))
            names = first.column_names
            csv_writer = CsvWriter(file, names, decimals, escape_formulas=escape_formulas)
        for piece in chain([first], pieces):
            parquet_writer.write_table(piece)
            if csv_writer is not None:
                csv_writer.write(piece)
    paths = _paths(position, attributes, with_csv=with_csv)
    return [file_entry(folder, path, attributes=list(attributes)) for path in paths]


def files_of_tables(tables: Sequence[Sequence[str]]) -> dict[str, list[str]]:
    """The files that `write_table` writes of tables, and the attributes of each."""
    return {
        path: list(names)
        for position, names in enumerate(tables)
        for path in _paths(position, names, with_csv=True)
    }


def _paths(position: int, names: Sequence[str], *, with_csv: bool) -> list[str]:
    path = table_path(position, names)
    return [f"{path}.parquet", f"{path}.csv"] if with_csv else [f"{path}.parquet"]


def table_path(position: int, names: Sequence[str]) -> str:
    """Where a table lies in the folder, without ending: its number, then its attributes."""
    plain = (re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-") for name in names or ("total",))
    return f"{_TABLES}/{position:04d}_{'_'.join(plain)[:80]}"
