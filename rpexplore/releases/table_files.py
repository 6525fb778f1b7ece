"""The files of tables and of what was measured, and tables from these measurements."""

import json
import re
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from rpexplore.common.numbers import distinct_rows
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.mechanism.reconstruction import (
    answers,
    contribution,
    impossible_answers,
    marginal,
    query_matrices,
)
from rpexplore.planning.mechanism.variances import CellVariances
from rpexplore.planning.table_plan import TablePlan
from rpexplore.releases.manifest import file_entry
from rpexplore.releases.measurement import LARGE, measured_cells, measured_shape, ranges_of
from rpexplore.releases.measurement_file import Measured, MeasuredFile
from rpexplore.releases.table_cells import (
    CsvWriter,
    Labels,
    csv_decimals,
    label_columns,
    not_what_was_written,
    pieces_of_cells,
    read_columns,
    table_writer,
)
from rpexplore.workload.table_text import QueryMatrix

# ---- The files of tables, released or made of released ones, and the measurements beside them.


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
        pieces = pieces_of_cells(
            labels, values, variances, impossible=self._contributions.impossible(position)
        )
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


# ---- The files of what was measured: one, or a folder of several, which programs read as one.


_NAME = "residuals"
_ROWS_PER_FILE = 100_000_000  # or those of one residual that has more; of the format
_COLUMNS = {"residual": pa.int32(), "cell": pa.int64(), "measured": pa.int64()}
_SCHEMA = pa.schema(list(_COLUMNS.items()))
_ROWS_AT_ONCE = 1 << 20
_SMALL_STEPS = "DELTA_BINARY_PACKED"


def residual_files(closure: Closure) -> dict[str, range]:
    """The files of what was measured, and the residuals in each, which follow each other.

    One file, `residuals.parquet`, or where it would have more than 100 million rows several in the
    folder `residuals`.
    """
    ranges = ranges_of(measured_cells(closure), _ROWS_PER_FILE)
    if len(ranges) == 1:
        return {f"{_NAME}.parquet": ranges[0]}
    return {f"{_NAME}/{number:04d}.parquet": items for number, items in enumerate(ranges)}


def write_residuals(measurements: MeasuredFile, folder: Path, path: str, residuals: range) -> None:
    """Write one of the `residual_files` into the folder of a part."""
    starts = measurements.starts
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    first, last = starts[[residuals.start, residuals.stop]].tolist()
    options: dict[str, Any] = {
        "use_dictionary": ["residual"],
        "column_encoding": {"cell": _SMALL_STEPS},
    }
    with pyarrow.parquet.ParquetWriter(folder / path, _SCHEMA, **options) as writer:
        for start in range(first, last, _ROWS_AT_ONCE):
            stop = min(start + _ROWS_AT_ONCE, last)
            within = np.diff(np.clip(starts, start, stop))
            residual = np.repeat(np.arange(len(within), dtype=np.int32), within)
            columns = [
                pa.array(residual),
                pa.array(np.arange(start, stop) - starts[residual]),
                pa.array(measurements.numbers.read(start, stop)),
            ]
            writer.write_batch(pa.record_batch(columns, schema=_SCHEMA))


@dataclass(frozen=True, eq=False)
class StoredResiduals:
    """What a finished release has measured, in whichever files."""

    folder: Path
    closure: Closure

    def measured(self, residuals: Sequence[int]) -> dict[int, np.ndarray]:
        """What was measured of these residuals: int64, one axis an attribute.

        Raises `ReleaseError` for files that do not hold it once, in order.
        """
        measured = {}
        for path, within in residual_files(self.closure).items():
            if wanted := [residual for residual in residuals if residual in within]:
                measured |= self._in_file(self.folder / path, wanted)
        return measured

    def _in_file(self, path: Path, residuals: Sequence[int]) -> dict[int, np.ndarray]:
        stored = read_columns(path, _COLUMNS, filters=[("residual", "in", set(residuals))])
        number, cell, measured = (stored[name].to_numpy() for name in _COLUMNS)
        arrays = {}
        for residual in residuals:
            shape = measured_shape(self.closure, residual)
            rows = number == residual
            if not np.array_equal(cell[rows], np.arange(np.prod(shape, dtype=np.int64))):
                raise not_what_was_written(path, "each number must be in it once, in order")
            arrays[residual] = measured[rows].reshape(shape)
        return arrays


# ---- The tables of a release from its measurements, several at a time where they are alike.
#
# Alike are residuals, or tables, whose attributes are measured, and asked for, alike along every
# axis: what is done to one is done to a stack of them.


_MOST_KEPT = 400_000_000  # bytes
_CELLS_AT_ONCE = 1 << 17  # of a stack, which stays in the cache
_STACKS_KEPT = 8


class Contributions:
    """What each residual of a plan adds to its tables, and the tables.

    What several tables need is kept, up to 400 MB. Several threads may use it at a time.
    """

    def __init__(self, plan: TablePlan, measurements: MeasuredFile) -> None:
        self._plan, self._measurements = plan, measurements
        self._query_matrices = query_matrices(plan.workload)
        self._kept: dict[int, np.ndarray] = {}
        self._stacks: OrderedDict[int, np.ndarray] = OrderedDict()
        self._lock = threading.RLock()

    def answers(self, table: int) -> np.ndarray:
        """The unbiased answers of a table of the workload: float64, one axis an attribute.

        Best asked for in the order of the workload: tables alike that follow each other are
        computed together.
        """
        stack = int(self._stack_of[table])
        first, stop = np.searchsorted(self._stack_of, [stack, stack + 1]).tolist()
        if stop - first == 1:  # without waiting for others
            return self._answers(np.array([table]))[0]
        with self._lock:
            if stack not in self._stacks:
                self._stacks[stack] = self._answers(np.arange(first, stop))
                if len(self._stacks) > _STACKS_KEPT:
                    self._stacks.popitem(last=False)
            return self._stacks[stack][table - first]

    def impossible(self, table: int) -> np.ndarray | None:
        """Which answers of a table count no possible record; None if all count some."""
        workload = self._plan.workload
        return impossible_answers(
            workload.domain, workload.attribute_indices(table), self._matrices(table)
        )

    def _matrices(self, table: int) -> list[QueryMatrix | None]:
        bases = self._plan.workload.attribute_basis_index[table]
        return [self._query_matrices[basis] for basis in bases if basis >= 0]

    def _answers(self, tables: np.ndarray) -> np.ndarray:
        """The answers of tables alike, int64[m]: float64[m, …]."""
        return answers(self._marginals(tables), self._matrices(int(tables[0])))

    def _marginals(self, tables: np.ndarray) -> np.ndarray:
        """Their marginals by single values: float64[m, …]."""
        workload, closure = self._plan.workload, self._plan.closure
        indices = workload.attribute_indices(int(tables[0]))
        # Column by column the same subsets of the attributes of each.
        residuals = np.stack([closure.subsets(table) for table in tables.tolist()])
        parts = {
            closure.attributes(int(column[0])): self._contributions(column)
            for column in residuals.T
        }
        return marginal(indices, closure.sizes, parts, closure.strategies, closure.trees)

    def _contributions(self, residuals: np.ndarray) -> np.ndarray:
        """Those of residuals alike, int64[m]: float64[m, …]."""
        form = int(self._forms[residuals[0]])
        if not self._are_kept[form]:
            return self._computed(residuals)
        with self._lock:
            if form not in self._kept:
                self._kept[form] = self._computed(np.flatnonzero(self._forms == form))
        return self._kept[form][self._rows[residuals]]

    def _computed(self, residuals: np.ndarray) -> np.ndarray:
        closure, m = self._plan.closure, len(residuals)
        attributes = closure.attributes(int(residuals[0]))
        step = max(1, _CELLS_AT_ONCE // int(closure.residual_cells[residuals[0]]))
        parts = (
            contribution(
                self._measurements.stacked(residuals[start : start + step]),
                attributes,
                closure.strategies,
            )
            for start in range(0, m, step)
        )
        if m <= step:
            return next(parts)
        computed = np.empty((m, *closure.sizes[list(attributes)]))
        for start, part in zip(range(0, m, step), parts, strict=True):
            computed[start : start + step] = part
        return computed

    @cached_property
    def _forms(self) -> np.ndarray:
        """Of each residual a number, the same for those alike: int64[n_residuals]."""
        closure = self._plan.closure
        orders = np.count_nonzero(closure.members >= 0, axis=1)
        return distinct_rows([orders, *closure.attribute_forms[closure.members].T])[1]

    @cached_property
    def _rows(self) -> np.ndarray:
        """Which of those alike a residual is: int64[n_residuals]."""
        order = np.argsort(self._forms, kind="stable")
        counts = np.bincount(self._forms)
        rows = np.empty_like(order)
        rows[order] = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
        return rows

    @cached_property
    def _are_kept(self) -> np.ndarray:
        """Whether residuals of a form are kept, bool: those of several tables, small ones first."""
        closure = self._plan.closure
        uses = np.bincount(closure.incidence.indices, minlength=len(closure))
        n_bytes = 8 * np.bincount(self._forms, closure.residual_cells)
        are_shared = np.bincount(self._forms, uses > 1) > 0
        order = np.argsort(np.where(are_shared, n_bytes, np.inf), kind="stable")
        fit = np.empty_like(are_shared)
        fit[order] = np.cumsum(n_bytes[order]) <= _MOST_KEPT
        return are_shared & fit

    @cached_property
    def _stack_of(self) -> np.ndarray:
        """The tables that are computed together, as ascending numbers: int64[n_tables]."""
        workload, closure = self._plan.workload, self._plan.closure
        is_single = [basis.is_identity for _, basis in workload.attribute_bases]
        bases = np.where([*is_single, True], -1, np.arange(len(is_single) + 1))
        forms = [
            workload.orders,
            *closure.attribute_forms[workload.members].T,
            *bases[workload.attribute_basis_index].T,
        ]
        alike = distinct_rows(forms)[1]
        n_cells = np.maximum(workload.cells, workload.counted_cells)
        pieces = np.cumsum(n_cells) // _CELLS_AT_ONCE
        begins = (np.diff(alike) != 0) | (np.diff(pieces) != 0)
        return np.concatenate([[0], np.cumsum(begins)])
