"""Records from CSV and Parquet files, by pyarrow: only the columns asked for, batch by batch."""

# pyarrow.compute makes its functions when it is imported, so pyright cannot know them.
# pyright: reportAttributeAccessIssue=false

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
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
    other = other or {}
    others = {
        domain.position(name): _index_of(domain[name], value) for name, value in other.items()
    }
    coders = {place: _Coder(domain.attributes[place], others.get(place)) for place in places}
    parts: dict[int, list[np.ndarray]] = {place: [] for place in places}
    n_records = 0
    with readable(path):
        for batch, fraction in batches(path, [coder.name for coder in coders.values()]):
            for place, coder in coders.items():
                parts[place].append(coder.codes(batch.column(coder.name)))
            n_records += batch.num_rows
            progress(fraction)
    codes = {
        place: np.concatenate(arrays) if arrays else np.empty(0, dtype=np.uint8)
        for place, arrays in parts.items()
    }
    return Records(codes, n_records, domain.sizes)


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Tell a file that cannot be read as a `DataError`."""
    try:
        yield
    except OSError as error:
        raise DataError(
            f"The records {str(path)!r} cannot be read ({error.strerror or 'input error'}); check "
            "the path and that the file is complete."
        ) from None
    except pa.ArrowException as error:
        # pyarrow quotes the offending row.
        raise DataError(
            f"The records {str(path)!r} cannot be read as {path.suffix or 'a table'}; check that "
            "the file is complete, in UTF-8, and has the same number of columns in every row.",
            private=f"The reader says: {error}",
        ) from None


class _Coder:
    """Turns a column's values into category indices, or refuses them.

    Each record is coded by itself: what a value means never depends on the other records, so
    that adding a record changes the counts by that record alone.
    """

    def __init__(self, attribute: Attribute, other: int | None) -> None:
        self.name, self._values, self._other = attribute.name, attribute.values, other
        if isinstance(self._values, Categories):
            self._listed = pa.array(self._values.values, pa.string())
        self._type = np.min_scalar_type(attribute.size - 1)

    def codes(self, column: pa.Array) -> np.ndarray:
        """Category indices [n], unsigned; raises `DataError` for what is not in the domain."""
        column = of_known_type(column)
        found = self._indices(column)
        outside = found < 0
        if np.any(outside):
            if self._other is None:
                self._refuse(column.filter(pa.array(outside)))
            found[outside] = self._other
        return found.astype(self._type)

    def _indices(self, column: pa.Array) -> np.ndarray:
        """Category indices, int64[n], −1 for what is missing or not in the domain."""
        values = self._values
        if isinstance(values, Categories):
            found = pc.index_in(as_text(column), value_set=self._listed, skip_nulls=True)
            return pc.fill_null(found, -1).to_numpy(zero_copy_only=False).astype(np.int64)
        numbers = _as_numbers(column)
        if isinstance(values, Integers):
            inside = (numbers >= values.minimum) & (numbers <= values.maximum)
            inside &= numbers == np.floor(numbers)
            found = (np.where(inside, numbers, values.minimum) - values.minimum) // values.step
        else:
            edges = np.array(values.edges)
            inside = (numbers >= edges[0]) & (numbers <= edges[-1])
            found = np.minimum(np.searchsorted(edges, numbers, side="right") - 1, values.size - 1)
        return np.where(inside, found, -1).astype(np.int64)

    def _refuse(self, strange: pa.Array) -> None:
        values = strange.drop_null().unique()
        shown = ", ".join(repr(value) for value in values[:_SHOWN].to_pylist())
        more = ", …" if len(values) > _SHOWN else ""
        what = "a value that is not in the codebook" if shown else "a missing value"
        raise DataError(
            f"The column {self.name!r} holds {what}; correct the records or the codebook, or name "
            f"a category of {self.name!r} that takes such values (the option other).",
            private=f"It holds: {shown}{more}." if shown else "",
        )


def _index_of(attribute: Attribute, value: str) -> int:
    """The index of the category that takes what is not in the domain."""
    values = attribute.values
    listed = values.values if isinstance(values, Categories) else attribute.labels()
    if value not in listed:
        raise DataError(
            f"The category {value!r} is not one of attribute {attribute.name!r}; declare it in the "
            "codebook, or choose one that is there."
        )
    return listed.index(value)


def of_known_type(column: pa.Array) -> pa.Array:
    """Numbers and booleans as they are, everything else as text; pyarrow computes on few types."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_float16(column.type):
        return column.cast(pa.float32())
    kept = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean)
    if any(is_of(column.type) for is_of in kept):
        return column
    return column.cast(pa.string())


def as_text(column: pa.Array) -> pa.Array:
    """Each value as text; a float that is a whole number as that: 3.0 is the category "3"."""
    if not pa.types.is_floating(column.type):
        return column.cast(pa.string())
    whole = pc.and_(pc.equal(column, pc.floor(column)), pc.less_equal(pc.abs(column), 2.0**53))
    integers = pc.if_else(whole, column, pa.scalar(None, column.type)).cast(pa.int64())
    return pc.if_else(whole, integers.cast(pa.string()), column.cast(pa.string()))


def _as_numbers(column: pa.Array) -> np.ndarray:
    """Each value as float64[n]; NaN for what is missing or not a number."""
    if pa.types.is_string(column.type):
        trimmed = pc.utf8_trim_whitespace(column)
        numeric = pc.match_substring_regex(
            trimmed, r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
        )
        column = pc.if_else(numeric, trimmed, pa.scalar(None, column.type))
        column = pc.replace_substring_regex(column, r"^\+", "")  # parsing knows no plus sign
    numbers = column.cast(pa.float64(), safe=False)
    return pc.fill_null(numbers, np.nan).to_numpy(zero_copy_only=False)


def batches(path: Path, names: list[str]) -> Iterator[tuple[pa.RecordBatch, float]]:
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
    header, more = csv_header(path)
    _check_columns(path, header, names)
    if not header:
        raise DataError(
            f"The records {str(path)!r} do not start with a header line; put the names of the "
            "columns there."
        )
    if not more:  # no record at all, which the reader takes for a broken file
        return
    _check_quotes(path)
    # Without a list of columns the reader would convert all of them; one is enough to count.
    columns = names or header[:1]
    with path.open("rb") as file:
        reader = pyarrow.csv.open_csv(
            file,
            read_options=pyarrow.csv.ReadOptions(block_size=1 << 24),
            # In a file of one column an empty line is a missing value, which must be seen.
            parse_options=pyarrow.csv.ParseOptions(
                newlines_in_values=True, ignore_empty_lines=len(header) > 1
            ),
            convert_options=pyarrow.csv.ConvertOptions(
                include_columns=columns,
                column_types=dict.fromkeys(columns, pa.string() if names else pa.binary()),
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=True,
            ),
        )
        with reader:
            for batch in reader:
                yield batch, min(file.tell() / size, 1.0)


def csv_header(path: Path) -> tuple[list[str], bool]:
    """The column names in the first line, and whether anything follows it (it may be anything)."""
    try:
        # A broken character elsewhere must not stop the reading of the header.
        with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
            header, more = next(csv.reader(file), []), bool(file.read(1))
    except csv.Error:
        header, more = [], True
    if any("\udc80" <= sign <= "\udcff" for name in header for sign in name):
        raise DataError(
            f"The records {str(path)!r} do not start with a header line in UTF-8; save the file as "
            "CSV in UTF-8."
        )
    return header, more


def _check_quotes(path: Path) -> None:
    """Refuse quotes that are never closed, or closed by another's opening.

    The fast reader would take the records between them for one value, and drop them. Python's
    strict parser finds them; it is slow, and only needed where there are quotes at all.
    """
    if not _holds_quotes(path):
        return
    limit = csv.field_size_limit(2**31 - 1)
    try:
        with path.open(encoding="latin-1", newline="") as file:
            for _ in csv.reader(file, strict=True):
                pass
    except csv.Error as error:
        raise DataError(
            f"The records {str(path)!r} hold a quotation mark that is not closed where its value "
            "ends; write such values in quotes, with every mark inside doubled.",
            private=f"The reader says: {error}.",
        ) from None
    finally:
        csv.field_size_limit(limit)


def _holds_quotes(path: Path) -> bool:
    with path.open("rb") as file:
        while block := file.read(1 << 24):
            if b'"' in block:
                return True
    return False


def _parquet_batches(path: Path, names: list[str]) -> Iterator[tuple[pa.RecordBatch, float]]:
    with pyarrow.parquet.ParquetFile(path) as file:
        _check_columns(path, file.schema_arrow.names, names)
        n_groups = file.metadata.num_row_groups
        for group in range(n_groups):
            for batch in file.iter_batches(row_groups=[group], columns=names, batch_size=1 << 20):
                yield batch, (group + 1) / n_groups


def _check_columns(path: Path, header: Sequence[str], names: Sequence[str]) -> None:
    """Raise `DataError` unless each name stands in the header once."""
    for name in names:
        count = list(header).count(name)
        if count == 1:
            continue
        remedy = "rename the column, or the attribute in the codebook"
        if len(header) == 1 and any(mark in header[0] for mark in ";\t|"):
            remedy = "save the file with commas between the columns"
        what = "no column" if count == 0 else f"{count} columns"
        raise DataError(
            f"The records {str(path)!r} have {what} {name!r}, which the plan needs; {remedy}.",
            private=f"The columns are: {', '.join(header)}." if any(header) else "",
        )
