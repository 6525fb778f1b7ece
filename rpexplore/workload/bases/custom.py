"""CustomBasis: a matrix given by the user, and the files that hold one."""

import io
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self
from zipfile import BadZipFile

import numpy as np

from rpexplore.common.files import utf8_text
from rpexplore.common.json_fields import loads, refusing
from rpexplore.common.numbers import read_only
from rpexplore.common.text import check_names, csv_rows, csv_text, is_text
from rpexplore.domain.attribute import Attribute
from rpexplore.errors import WorkloadError
from rpexplore.workload.bases.base import Basis, Matrix, Operator

# ---- CustomBasis: a matrix given by the user, one row a query about one attribute's values.


MAX_CUSTOM_VALUES = 1_000
MAX_CUSTOM_QUERIES = 10_000
MAX_CUSTOM_ENTRIES = 2_000_000
# Squares of entries, and their sums, stay normal numbers.
_LARGEST, _SMALLEST = 1e12, 1e-12


@dataclass(frozen=True)
class CustomBasis(Basis):
    """The rows of a matrix [queries, values of the attribute].

    Args:
        rows: The matrix, row by row or as an array.
        labels: What each query is called; (): "query 1", "query 2", …
        name: What the basis is called; may be empty.

    Raises:
        WorkloadError: If the matrix is too large, ragged, or holds anything but finite numbers of
            usual size, if a row is all zeros, or if labels do not fit.

    Example:
        >>> import rpexplore as rp
        >>> poor = rp.CustomBasis(((1, 1, 0), (0, 1, 0), (0, 0, 1)), ("poor", "near", "rich"))
        >>> poor.check(rp.Attribute("income", rp.Integers(0, 2)))
    """

    rows: tuple[tuple[float, ...], ...]
    labels: tuple[str, ...] = ()
    name: str = ""

    kind = "custom"
    title = "own matrix"
    option_help = "custom:FILE (a matrix, .csv or .npy, one row a query)"
    text_forms = ("custom:FILE",)
    parameter = "file"
    min_values = 1
    max_values = MAX_CUSTOM_VALUES
    determines_values = False
    follows_order = False
    counts_records = False

    def __post_init__(self) -> None:
        matrix = _matrix(self.rows)
        object.__setattr__(self, "rows", tuple(map(tuple, matrix.tolist())))
        if not is_text(self.name):
            raise WorkloadError(f"The name of an own matrix must be a text, got {self.name!r}.")
        if not isinstance(self.labels, list | tuple):
            raise WorkloadError(f"The labels must be a list of texts, got {self.labels!r}.")
        labels = tuple(self.labels) or tuple(f"query {r + 1}" for r in range(len(matrix)))
        if len(labels) != len(matrix):
            raise WorkloadError(
                f"The own matrix has {len(matrix):,} queries but {len(labels):,} labels; give each "
                "query one label, or none at all."
            )
        repeated = "stands for two queries; give each its own label"
        check_names(labels, "label", repeated, WorkloadError, are_shown=True)
        object.__setattr__(self, "labels", labels)

    @classmethod
    def read(cls, content: bytes, filename: str, attribute: Attribute) -> Self:
        """The matrix of a file.

        Args:
            content: The file's bytes.
            filename: Its name; the ending .csv, .npy or .json tells the format, and the rest is the
                name of the basis.
            attribute: What the columns of the matrix are the values of.

        Raises:
            WorkloadError: If the file cannot be used.

        Example:
            >>> import rpexplore as rp
            >>> sex = rp.Attribute("sex", rp.Categories(("F", "M")))
            >>> rp.CustomBasis.read(b"query,F,M\\nall,1,1\\nwomen,1,0\\n", "mine.csv", sex).labels
            ('all', 'women')
        """
        ending = Path(filename).suffix.lower()
        labels, name = (), Path(filename).stem
        if ending == ".npy":
            rows = _matrix_of_npy(content, filename)
        elif ending == ".csv":
            text = utf8_text(content, filename, WorkloadError)
            rows, labels = _rows_of_csv(text, filename, attribute)
        elif ending == ".json":
            rows, labels, name = _fields_of_json(content, filename)
        else:
            raise WorkloadError(
                f"An own matrix must be a .csv, .npy or .json file, got {filename!r}."
            )
        with refusing(WorkloadError, filename):
            basis = cls(rows, labels, name)
        basis.check(attribute)
        return basis

    @cached_property
    def _hash(self) -> int:
        return hash(self.rows)  # of numbers only, so the same in every process

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def matrix(self) -> np.ndarray:
        """The rows, float64[n_rows, n_values], read-only."""
        return read_only(np.array(self.rows))

    def check(self, attribute: Attribute) -> None:
        """Raise `WorkloadError` unless there is a column for every value of the attribute."""
        given = len(self.rows[0])
        if given != attribute.size:
            raise WorkloadError(
                f"{self._called} must have one number for each of the {attribute.size:,} values of "
                f"attribute {attribute.name!r}, got {given:,}; give every value its column."
            )

    def n_rows(self, attribute: Attribute) -> int:
        return len(self.rows)

    def operator(self, attribute: Attribute) -> Operator:
        return Matrix(self.matrix)

    def row_label(self, attribute: Attribute) -> Callable[[int], str]:
        return self.labels.__getitem__

    def json_fields(self) -> dict[str, Any]:
        rows = [[int(x) if x.is_integer() else x for x in row] for row in self.rows]
        return {"name": self.name, "labels": list(self.labels), "rows": rows}

    @classmethod
    def from_parameter(cls, text: str) -> Self:
        raise WorkloadError(
            "An own matrix must be given in a file; name a .csv, .npy or .json file."
        )

    @classmethod
    def default(cls, attribute: Attribute) -> None:
        return None

    def describe(self, attribute: Attribute) -> str:
        return f"own matrix ({self.name})" if self.name else self.title

    def suffix(self, attribute: Attribute) -> str:
        return self.name or self.title

    def example_rows(self, attribute: Attribute) -> list[int]:
        return [0, 1, 2]

    def by(self, name: str) -> str:
        quoted = f" “{self.name}”" if self.name else ""
        return f"own matrix{quoted} on {name}"

    @property
    def _called(self) -> str:
        return f"The own matrix {self.name!r}" if self.name else "The own matrix"


def check_custom_size(n_queries: int, n_values: int) -> None:
    """Raise `WorkloadError` for a matrix that is empty or too large."""
    if min(n_queries, n_values) < 1:
        raise WorkloadError("An own matrix needs at least one query and one value, got none.")
    for count, most, noun in (
        (n_queries, MAX_CUSTOM_QUERIES, "queries"),
        (n_values, MAX_CUSTOM_VALUES, "values"),
        (n_queries * n_values, MAX_CUSTOM_ENTRIES, "entries (queries times values)"),
    ):
        if count > most:
            raise WorkloadError(
                f"An own matrix can have at most {most:,} {noun}, got {count:,}; use fewer, or "
                "group the values of the attribute."
            )


def _matrix(rows: Sequence[Sequence[float]]) -> np.ndarray:
    """The checked matrix, float64[n_rows, n_values], with 0 for −0."""
    if isinstance(rows, np.ndarray):
        if rows.ndim != 2:
            raise WorkloadError(f"An own matrix must have two dimensions, got {rows.ndim}.")
    else:
        if not isinstance(rows, list | tuple) or not all(
            isinstance(row, list | tuple) for row in rows
        ):
            raise WorkloadError("An own matrix must be a list of rows of numbers.")
        for number, row in enumerate(rows, start=1):
            if len(row) != len(rows[0]):
                raise WorkloadError(
                    f"Every query must have one number for each value, but query {number} has "
                    f"{len(row):,} and query 1 has {len(rows[0]):,}."
                )
    check_custom_size(len(rows), len(rows[0]) if len(rows) else 0)
    given = np.array(rows)
    if given.ndim != 2 or given.dtype.kind not in "biuf":
        raise WorkloadError(f"An own matrix must be rows of real numbers, got {given.dtype}.")
    matrix = given.astype(np.float64) + 0.0
    size = np.abs(matrix)
    usual = (size <= _LARGEST) & ((size >= _SMALLEST) | (size == 0))  # NaN is not
    if not usual.all():
        row, column = np.argwhere(~usual)[0]
        raise WorkloadError(
            f"Query {row + 1}, column {column + 1} must be 0 or a finite number of size 1e-12 "
            f"to 1e12, got {matrix[row, column]:g}."
        )
    empty = np.flatnonzero(~matrix.any(axis=1))
    if len(empty):
        raise WorkloadError(f"Query {empty[0] + 1} is all zeros and counts nothing; remove it.")
    return matrix


# ---- Files with a custom basis: a matrix of numbers as CSV or NumPy's .npy, or all as JSON.


Line = tuple[int, list[str]]  # its number in the file, its cells

# What the column of labels may be called, so that its line surely names the values.
_HEADS = ("", "query")


def csv_from_custom_basis(basis: CustomBasis, attribute: Attribute) -> str:
    """The queries as CSV, which `CustomBasis.read` reads; the name is that of the file."""
    rows: list[list[str | int]] = [["query", *attribute.labels()]]
    for label, row in zip(basis.labels, basis.rows, strict=True):
        rows.append([label, *(int(x) if x.is_integer() else repr(x) for x in row)])
    return csv_text(rows)


def _fields_of_json(content: bytes, filename: str) -> tuple[Any, Any, Any]:
    text = utf8_text(content, filename, WorkloadError)
    with refusing(WorkloadError, f"{filename} must be a JSON object with rows, labels and name"):
        fields = loads(text)
        return fields["rows"], fields["labels"], fields["name"]


def _matrix_of_npy(content: bytes, filename: str) -> Any:
    """A real matrix [queries, values of the attribute]."""
    try:
        matrix = np.load(io.BytesIO(content), allow_pickle=False)
    except (ValueError, EOFError, OSError, MemoryError, SyntaxError, BadZipFile):
        raise WorkloadError(
            f"{filename} is not a matrix of numbers in NumPy's .npy format; write it with "
            "numpy.save."
        ) from None
    if not isinstance(matrix, np.ndarray):
        raise WorkloadError(f"{filename} must hold one matrix; write it with numpy.save.")
    return matrix


def _rows_of_csv(text: str, filename: str, attribute: Attribute) -> tuple[Any, tuple[str, ...]]:
    """The matrix of one line a query, one column a value of the attribute, and the labels.

    A first line that names the values, or their labels, puts the columns in order. A first column
    that is not numeric, or is called "query", holds the labels of the queries.
    """
    lines = _lines(text, filename)
    width = len(lines[0][1]) if lines else 0
    for number, cells in lines:
        if len(cells) != width:
            raise WorkloadError(
                f"{filename}, line {number} must have {width:,} cells like the first line, got "
                f"{len(cells):,}."
            )
    headed = bool(lines) and lines[0][1][0].strip().lower() in _HEADS
    labelled = width == attribute.size + 1 and (
        headed or any(_number(cells[0]) is None for _, cells in lines[1:] or lines)
    )
    if width != attribute.size + labelled:
        raise WorkloadError(
            f"{filename} must have one column for each of the {attribute.size:,} values of "
            f"attribute {attribute.name!r}, and may have one of labels before them, got "
            f"{width:,} columns."
        )
    order = _order_of_values(lines[0], labelled, filename, attribute)
    if order is None:
        order = range(attribute.size)
    else:
        lines = lines[1:]
    check_custom_size(len(lines), attribute.size)
    rows = []
    for number, cells in lines:
        row = [_number(cell) for cell in cells[labelled:]]
        if None in row:
            column = row.index(None) + labelled
            raise WorkloadError(
                f"{filename}, line {number}, column {column + 1} must be a finite number, got "
                f"{cells[column]!r}."
            )
        rows.append([row[column] for column in order])
    return rows, tuple(cells[0].strip() for _, cells in lines) if labelled else ()


def _lines(text: str, filename: str) -> list[Line]:
    lines: list[Line] = []
    for number, cells in csv_rows(text, filename, WorkloadError):
        if any(map(str.strip, cells)):
            lines.append((number, cells))
        if len(lines) > MAX_CUSTOM_QUERIES + 1:  # one may name the values
            raise WorkloadError(
                f"{filename} can have at most {MAX_CUSTOM_QUERIES:,} queries, got more."
            )
    return lines


def _order_of_values(
    line: Line, labelled: bool, filename: str, attribute: Attribute
) -> list[int] | None:
    """The column (from 0, without that of labels) of each value if the line names the values."""
    number, cells = line
    names = [cell.strip() for cell in cells[labelled:]]
    shown = [label.strip() for label in attribute.labels()]
    stored = [value.strip() for value in attribute.stored_values()]
    known = next((known for known in (stored, shown) if sorted(known) == sorted(names)), None)
    headed = labelled and cells[0].strip().lower() in _HEADS
    if not headed and all(_number(name) is not None for name in names):
        if known is None:
            return None
        raise WorkloadError(
            f"{filename}, line {number} could name the values of attribute {attribute.name!r} or "
            "be a query; if it names them, put a column of labels called 'query' first; if it is a "
            "query, move it further down."
        )
    if known is not None:
        return [names.index(name) for name in known]
    for column, name in enumerate(names, start=1 + labelled):
        if name not in stored and name not in shown:
            raise WorkloadError(
                f"{filename}, line {number}, column {column} must be a number or the name of a "
                f"value of attribute {attribute.name!r}, got {name!r}."
            )
    raise WorkloadError(
        f"{filename}, line {number} must name each value of attribute {attribute.name!r} once, all "
        "of them as they are stored or all by their labels."
    )


def _number(cell: str) -> float | None:
    """The finite number that a cell holds, None for anything else."""
    try:
        value = float(cell) if "_" not in cell else math.nan
    except ValueError:
        return None
    return value if math.isfinite(value) else None
