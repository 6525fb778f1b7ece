"""Records from CSV and Parquet files, by pyarrow: only the columns asked for, batch by batch."""

# pyarrow.compute makes its functions when it is imported, so pyright cannot know them.
# pyright: reportAttributeAccessIssue=false

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from rpexplore.attribute import Attribute, Categories, Integers
from rpexplore.data.records import Records
from rpexplore.domain import Domain
from rpexplore.errors import DataError

Progress = Callable[[float], None]

_SHOWN = 5  # distinct values named on the screen


def read_records(
    path: str | Path,
    domain: Domain,
    places: Sequence[int],
    *,
    other: Mapping[str, str] | None = None,
    progress: Progress = lambda fraction: None,
) -> Records:
    """The records of a file (.csv or .parquet), coded by the domain's categories.

    places: the attributes to read; other columns are never read into memory. other: for an
    attribute's name the value of the category that takes whatever is not in the domain, and what
    is missing; without it both are refused.

    Raises `DataError` for a file that cannot be read, a missing column, a null, or a value outside
    the domain; what was read stands in the error's `private` part only.
    """
    path = Path(path)
    attributes = {place: domain.attributes[place] for place in places}
    coders = {
        place: _Coder(attribute, _other_index(attribute, (other or {}).get(attribute.name)))
        for place, attribute in attributes.items()
    }
    for name in other or {}:
        domain.position(name)  # an unknown name is refused
    parts: dict[int, list[np.ndarray]] = {place: [] for place in places}
    n_records = 0
    try:
        for batch, fraction in _batches(
            path, [attribute.name for attribute in attributes.values()]
        ):
            for place, coder in coders.items():
                parts[place].append(coder.codes(batch.column(coder.attribute.name)))
            n_records += batch.num_rows
            progress(fraction)
    except OSError as error:
        raise DataError(
            f"The records {str(path)!r} cannot be read ({error.strerror or 'input error'}); check "
            "the path and that the file is complete."
        ) from None
    except pa.ArrowException as error:
        # pyarrow quotes the offending row.
        raise DataError(
            f"The records {str(path)!r} cannot be read as {path.suffix or 'a table'}; check that "
            "the file is complete and has the same number of columns in every row.",
            private=f"The reader says: {error}",
        ) from None
    codes = {
        place: np.concatenate(arrays) if arrays else np.empty(0, dtype=np.uint8)
        for place, arrays in parts.items()
    }
    return Records(codes, n_records, domain.sizes)


class _Coder:
    """Turns a column's values into category indices, or refuses them."""

    def __init__(self, attribute: Attribute, other: int | None) -> None:
        self.attribute, self.other = attribute, other
        values = attribute.values
        self._listed = pa.array(values.values) if isinstance(values, Categories) else None
        self._type = np.min_scalar_type(attribute.size - 1)

    def codes(self, column: pa.Array) -> np.ndarray:
        """Category indices [n], unsigned; raises `DataError` for what is not in the domain."""
        found = self._indices(column)
        outside = found < 0
        if np.any(outside):
            if self.other is None:
                self._refuse(column, outside)
            found[outside] = self.other
        return found.astype(self._type)

    def _indices(self, column: pa.Array) -> np.ndarray:
        """Category indices, int64[n], −1 for what is missing or not in the domain."""
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        values = self.attribute.values
        if isinstance(values, Categories):
            found = pc.index_in(_as_text(column), value_set=self._listed)
            return pc.fill_null(found, -1).to_numpy(zero_copy_only=False).astype(np.int64)
        numbers = _as_numbers(column)
        if isinstance(values, Integers):
            inside = (numbers >= values.minimum) & (numbers <= values.maximum)
            inside &= numbers == np.floor(numbers)
            return np.where(
                inside, (np.where(inside, numbers, 0) - values.minimum) // values.step, -1
            ).astype(np.int64)
        edges = np.array(values.edges)
        inside = (numbers >= edges[0]) & (numbers <= edges[-1])
        bins = np.minimum(np.searchsorted(edges, numbers, side="right") - 1, len(edges) - 2)
        return np.where(inside, bins, -1).astype(np.int64)

    def _refuse(self, column: pa.Array, outside: np.ndarray) -> None:
        strange = column.filter(pa.array(outside))
        name = self.attribute.name
        values = [value for value in strange.unique().to_pylist() if value is not None]
        shown = ", ".join(repr(value) for value in values[:_SHOWN])
        more = ", …" if len(values) > _SHOWN else ""
        what = "a missing value" if not values else "a value that is not in the domain"
        raise DataError(
            f"The column {name!r} holds {what}; correct the records or the codebook, or send such "
            f"values to one of its categories on purpose (--other {name}=CATEGORY).",
            private=f"It holds: {shown}{more}." if values else "",
        )


def _other_index(attribute: Attribute, value: str | None) -> int | None:
    """The index of the category that takes what is not in the domain."""
    if value is None:
        return None
    values = attribute.values
    listed = values.values if isinstance(values, Categories) else attribute.labels()
    if value not in listed:
        raise DataError(
            f"The category {value!r} is not one of attribute {attribute.name!r}; declare it in the "
            "codebook, or choose one that is there."
        )
    return listed.index(value)


def _as_text(column: pa.Array) -> pa.Array:
    if pa.types.is_floating(column.type):
        # 3.0 in a column of numbers stands for the category "3".
        whole = pc.equal(column, pc.floor(column))
        if pc.all(pc.fill_null(whole, True)).as_py():
            column = column.cast(pa.int64())
    return column.cast(pa.string())


def _as_numbers(column: pa.Array) -> np.ndarray:
    """The column as float64[n]; NaN for what is missing or not a number."""
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        trimmed = pc.utf8_trim_whitespace(column)
        numeric = pc.match_substring_regex(trimmed, r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$")
        column = pc.if_else(numeric, trimmed, pa.scalar(None, column.type))
        # Parsing knows no plus sign.
        column = pc.replace_substring_regex(column, r"^\+", "")
    numbers = column.cast(pa.float64(), safe=False)
    return pc.fill_null(numbers, np.nan).to_numpy(zero_copy_only=False)


def _batches(path: Path, names: list[str]) -> Iterator[tuple[pa.RecordBatch, float]]:
    """Batches of the named columns, each with the share of the file read so far."""
    ending = path.suffix.lower()
    if ending == ".csv":
        return _csv_batches(path, names)
    if ending in (".parquet", ".pq"):
        return _parquet_batches(path, names)
    raise DataError(
        f"The records must be a .csv or .parquet file, got {path.name!r}; export them as one of "
        "these."
    )


def _csv_batches(path: Path, names: list[str]) -> Iterator[tuple[pa.RecordBatch, float]]:
    size = max(path.stat().st_size, 1)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            header = next(csv.reader(file), [])
    except (UnicodeDecodeError, csv.Error):
        raise DataError(
            f"The records {str(path)!r} do not start with a header line in UTF-8; save the file as "
            "CSV in UTF-8."
        ) from None
    _check_columns(path, header, names)
    with path.open("rb") as file:
        reader = pyarrow.csv.open_csv(
            file,
            read_options=pyarrow.csv.ReadOptions(block_size=1 << 24),
            parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True),
            convert_options=pyarrow.csv.ConvertOptions(
                include_columns=names,
                column_types=dict.fromkeys(names, pa.string()),
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=True,
            ),
        )
        with reader:
            for batch in reader:
                yield batch, min(file.tell() / size, 1.0)


def _parquet_batches(path: Path, names: list[str]) -> Iterator[tuple[pa.RecordBatch, float]]:
    with pyarrow.parquet.ParquetFile(path) as file:
        _check_columns(path, file.schema_arrow.names, names)
        n_groups = file.metadata.num_row_groups
        for group in range(n_groups):
            for batch in file.iter_batches(row_groups=[group], columns=names, batch_size=1 << 20):
                yield batch, (group + 1) / n_groups


def _check_columns(path: Path, header: Sequence[str], names: Sequence[str]) -> None:
    for name in names:
        if (count := list(header).count(name)) != 1:
            what = "no column" if count == 0 else f"{count} columns"
            raise DataError(
                f"The records {str(path)!r} have {what} {name!r}, which the plan needs once; "
                "rename the column, or the attribute in the codebook.",
                private=f"The columns are: {', '.join(header)}.",
            )
