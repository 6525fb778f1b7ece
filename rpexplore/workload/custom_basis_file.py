"""Files with a custom basis: a matrix of numbers as CSV or NumPy's .npy, or all as JSON."""

import io
import math
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from rpexplore.common.csv_text import csv_rows, csv_text
from rpexplore.common.files import utf8_text
from rpexplore.common.json_fields import loads, refusing
from rpexplore.domain.attribute import Attribute
from rpexplore.errors import WorkloadError
from rpexplore.workload.bases.custom import MAX_CUSTOM_QUERIES, CustomBasis, check_custom_size

Line = tuple[int, list[str]]  # its number in the file, its cells

# What the column of labels may be called, so that its line surely names the values.
_HEADS = ("", "query")


def read_custom_basis(content: bytes, filename: str, attribute: Attribute) -> CustomBasis:
    """The custom basis of a file.

    Args:
        content: The file's bytes.
        filename: Its name; the ending .csv, .npy or .json tells the format, and the rest is the
            name of the basis.
        attribute: What the columns of the matrix are the values of.

    Raises:
        WorkloadError: If the file cannot be used, or the queries leave some values open.

    Example:
        >>> import rpexplore as rp
        >>> sex = rp.Attribute("sex", rp.Categories(("F", "M")))
        >>> rp.read_custom_basis(b"query,F,M\\nall,1,1\\nwomen,1,0\\n", "mine.csv", sex).labels
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
        raise WorkloadError(f"An own matrix must be a .csv, .npy or .json file, got {filename!r}.")
    with refusing(WorkloadError, filename):
        basis = CustomBasis(rows, labels, name)
    basis.check(attribute)
    return basis


def csv_from_custom_basis(basis: CustomBasis, attribute: Attribute) -> str:
    """The queries as CSV, which `read_custom_basis` reads; the name is that of the file."""
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
