"""What a file tells of attributes: its columns, the values they hold, or a codebook."""

import csv
import io
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from rpexplore.common.file_kinds import ZIP
from rpexplore.common.files import HEAD, as_utf8, file_bytes, kind_beside_text, utf8_text
from rpexplore.common.processes import Progress, no_progress
from rpexplore.common.spreadsheets import spreadsheet_kind
from rpexplore.data.arrow_values import as_text, of_known_type
from rpexplore.data.files.csv_batches import csv_form
from rpexplore.data.files.record_files import file_errors, file_kind, record_files
from rpexplore.data.files.source import FileSource
from rpexplore.data.files.statistics_batches import statistics_variables
from rpexplore.domain.codebook_columns import ForeignTable
from rpexplore.domain.codebook_formats import Draft, dictionary_kind, draft_of_file, refuse_large
from rpexplore.domain.codebook_rows import VARIABLES, attributes_from_csv
from rpexplore.domain.domain import Domain
from rpexplore.domain.hierarchy_file import ENDING, HierarchyFile
from rpexplore.domain.record_layout import RecordLayout
from rpexplore.domain.stated_schema import StatedSchema, chosen_schema, schemas_in_json
from rpexplore.domain.table_codebooks import NoCodebookSheet
from rpexplore.errors import DataError, DomainError, without_causes

# ---- The columns of a data file: their names, and, where a curator asks for it, the values they
# hold.
#
# Names and declared types come from the head of the file. Values come from the records: they are
# private, and that a value is listed is protected by nothing. How often one occurs is never
# counted.


# pyarrow.compute makes its functions when it is imported, so pyright cannot know them.
# pyright: reportAttributeAccessIssue=false


MOST_VALUES = 100  # of one column; more are an identifier, a measurement or free text
MOST_NUMBERS = 20  # of a column of whole numbers; more are a measurement, and the largest is one's
MOST_LETTERS = 100  # of one value; longer ones are free text

YES_OR_NO, WHOLE, NUMBERS, TEXT, CATEGORIES, DATES = (
    "yes or no", "whole numbers", "numbers", "text", "categories", "dates",
)  # fmt: skip
# Also a date or a telephone number: a digit, and no letter. Each sign is looked at twice at most.
_NUMBER = re.compile(r"(?=\D*+\d)[\W\d_]*+")


@dataclass(frozen=True)
class Column:
    """A column by its name.

    declared  the type that the file declares, in words; "" where it declares none
    values    the values that this type can have, where that is settled
    missing   values that stand for no answer, as far as the file says so, and their labels
    """

    name: str
    declared: str = ""
    values: tuple[str, ...] = ()
    missing: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Header:
    """The columns that can be attributes, and how many cannot: nameless, repeated or nested."""

    columns: tuple[Column, ...]
    left_out: int = 0


def read_header(path: str | Path) -> Header:
    """The columns of a file of records, or of a folder of them. Looks at no record.

    Of a folder: those of its first file, and the keys of the folders around it (key=value).

    Raises `DataError` for a file that cannot be read, or whose first line may be a record.
    """
    source = FileSource(path)
    with source.readable():
        first = record_files(source.path)[0]
        with file_errors(first.path, first.name):
            if first.kind == "fixed":
                raise _without_header(first.name)
            if first.kind == "parquet":
                columns = _parquet_columns(first.path)
            elif first.kind == "csv":
                columns = _csv_columns(first.path, first.name)
            else:
                columns = [
                    Column(variable.name, variable.kind)
                    for variable in statistics_variables(first.path, first.name)
                ]
        return header_of(source.name, [*columns, *(Column(name, TEXT) for name in first.keys)])


@without_causes
@contextmanager
def _head_errors(filename: str) -> Iterator[None]:
    try:
        yield
    except (OSError, pa.ArrowException):
        raise DataError(
            f"The head of {filename!r} cannot be read; check that the file is complete, and that "
            "it ends in .gz if it is compressed."
        ) from None


def header_of_bytes(content: bytes, filename: str) -> Header:
    """`read_header` of a file that is not on the disk."""
    if file_kind(filename) == "fixed":
        raise _without_header(filename)
    with _head_errors(filename):
        if content.startswith(b"PAR1"):
            columns = _parquet_columns(pa.BufferReader(content))
        else:
            columns = _csv_columns(Path(filename), str(Path(filename)), content)
    return header_of(filename, columns)


def _without_header(name: str) -> DataError:
    """The error for lines of fixed width, the first of which is a record."""
    return DataError(
        f"The records {name!r} are of fixed width by their ending, and name no columns; give their "
        "DDI codebook (.xml) instead."
    )


def header_of(name: str, columns: Sequence[Column]) -> Header:
    """The columns of a file that can be attributes; `DataError`, which names it, if none can."""
    counts = Counter(column.name for column in columns)
    usable = [
        column
        for column in columns
        if column.name.strip() and column.name.isprintable() and counts[column.name] == 1
    ]
    if not usable:
        raise DataError(f"The file {name!r} names no columns; put their names in a first line.")
    return Header(tuple(usable), len(columns) - len(usable))


@dataclass(frozen=True, eq=False, repr=False)
class ColumnValues:
    """The values of each column of the records in order, or why they are not listed.

    Private; the repr shows nothing.
    """

    values: Mapping[str, tuple[str, ...]] = field(repr=False)
    refused: Mapping[str, str] = field(repr=False)


def read_column_values(
    path: str | Path,
    names: Sequence[str],
    *,
    encoding: str | None = None,
    layout: RecordLayout | None = None,
    on_progress: Progress = no_progress,
) -> ColumnValues:
    """The values that occur in these columns, sorted, as the categories of a domain have them.

    What is missing is no value. Sorted, so that the order tells nothing of the records. encoding,
    layout: as of `FileSource`.

    Raises `DataError` for a file that cannot be read.
    """
    source = FileSource(path, encoding, layout)
    values: dict[str, set[str]] = {name: set() for name in names}
    refused: dict[str, str] = {}
    with source.readable(), closing(source.batches(names)) as batches:
        for batch, share in batches:
            for name in values.keys() - refused.keys():
                distinct = of_known_type(batch.column(name).unique()).unique().drop_null()
                if pa.types.is_floating(distinct.type):
                    distinct = distinct.filter(pc.is_finite(distinct))
                texts = pc.utf8_normalize(as_text(distinct), form="NFC").to_pylist()
                values[name] |= {text for text in texts if text.strip()}
                if len(values[name]) > MOST_VALUES:
                    refused[name] = f"more than {MOST_VALUES} different values"
                elif any(len(value) > MOST_LETTERS for value in values[name]):
                    refused[name] = f"texts of more than {MOST_LETTERS} characters"
                if name in refused:
                    values[name].clear()
            on_progress("Reading the values", share)
    for name in values.keys() - refused.keys():
        if not values[name]:
            refused[name] = "no values"
        elif _are_whole(values[name]) and len(values[name]) > MOST_NUMBERS:
            refused[name] = f"more than {MOST_NUMBERS} different whole numbers"
    return ColumnValues(
        {name: _in_order(values[name]) for name in names if name not in refused},
        {name: refused[name] for name in names if name in refused},
    )


def _csv_columns(path: Path, name: str, content: bytes | None = None) -> list[Column]:
    header = csv_form(path, name, content).columns
    named = [column for column in header if column.strip()]
    if 2 * sum(_NUMBER.fullmatch(column) is not None for column in named) >= max(len(named), 1):
        raise DataError(
            f"The first line of {name!r} does not look like the names of columns; it may be a "
            "record, and nothing of it is shown. Put a line with the names first."
        )
    return [Column(column) for column in header]


def _parquet_columns(file: Path | pa.BufferReader) -> list[Column]:
    columns = []
    for column in pyarrow.parquet.read_schema(file):
        name = "" if pa.types.is_nested(column.type) else column.name
        values = ("true", "false") if pa.types.is_boolean(column.type) else ()
        columns.append(Column(name, _declared_type(column.type), values))
    return columns


def _declared_type(kind: pa.DataType) -> str:
    is_of = pa.types
    if is_of.is_boolean(kind):
        return YES_OR_NO
    if is_of.is_dictionary(kind):
        return CATEGORIES
    if is_of.is_integer(kind):
        return WHOLE
    if is_of.is_floating(kind) or is_of.is_decimal(kind):
        return NUMBERS
    if is_of.is_temporal(kind):
        return DATES
    return TEXT if is_of.is_string(kind) or is_of.is_large_string(kind) else ""


def _in_order(values: set[str]) -> tuple[str, ...]:
    """By number where all are whole numbers, else by letter."""
    if _are_whole(values):
        return tuple(sorted(values, key=lambda text: (int(text), text)))
    return tuple(sorted(values))


def _are_whole(values: set[str]) -> bool:
    return all(re.fullmatch(r"[+-]?\d{1,18}", value) for value in values)


# ---- What a file tells of attributes, recognised by what it holds: a codebook, or a file of
# records.
#
# A file of a statistics package is both. Of records nothing but the names and the declared types of
# their columns is looked at.


DATA_FILE = "data file"
_FIRST_LINE = 1 << 16  # bytes in which the header of a CSV codebook ends
_RECORDS = (b"PAR1", b"\x1f\x8b")  # how Parquet files, and those of gzip, begin
_DECLARED = {
    "integer": WHOLE,
    "year": WHOLE,
    "number": NUMBERS,
    "string": TEXT,
    "date": DATES,
    "datetime": DATES,
    "yearmonth": DATES,
}


@dataclass(frozen=True)
class CodebookFile:
    """A codebook.

    kind            what kind of codebook the file is, in words
    domain          its attributes
    without_values  {name: type} of those that are left out, because the file lists no values
    remarks         what to look at before it is used, in sentences
    others          the columns of those that are left out, of a file that has records too
    """

    kind: str
    domain: Domain
    without_values: Mapping[str, str]
    remarks: tuple[str, ...] = ()
    others: "ColumnsFile | None" = None


@dataclass(frozen=True)
class ColumnsFile:
    """A file that names columns, and lists no values for them.

    kind     what kind of file it is, in words
    header   its columns
    records  where its records can be read; None for a file without, or one that is not on the disk
    """

    kind: str
    header: Header
    records: Path | None = None


@dataclass(frozen=True)
class OwnFile:
    """A file of this program, such as a plan or a project; format: what it says that it is."""

    format: str


@dataclass(frozen=True)
class PackageFile:
    """A Data Package of several tables, of which one has to be chosen.

    schemas  by the names of the tables
    """

    schemas: Mapping[str, StatedSchema] = field(repr=False)
    filename: str

    @property
    def tables(self) -> tuple[str, ...]:
        return tuple(self.schemas)

    def table(self, name: str) -> CodebookFile | ColumnsFile:
        """One of its tables; raises `RpexploreError` for one that cannot be used."""
        return _from_schema(chosen_schema(self.schemas, self.filename, name), self.filename)


Recognised = CodebookFile | ColumnsFile | OwnFile | PackageFile | HierarchyFile | ForeignTable


def recognise(content: bytes, filename: str) -> Recognised:
    """Recognise a file by its content.

    Raises `RpexploreError` for a file that is none of these, or cannot be used.
    """
    content = as_utf8(content)
    if _are_records(content, filename):
        return ColumnsFile(DATA_FILE, header_of_bytes(content, filename))
    if kind := dictionary_kind(content[:HEAD], filename):
        try:
            draft = draft_of_file(content, filename)
        except NoCodebookSheet:
            return ForeignTable.of(content, filename)
        return _from_draft(draft, kind, filename, None)
    _refuse_no_text(content, filename)
    if filename.lower().endswith(ENDING):
        refuse_large(len(content), filename)
        return HierarchyFile.parse(utf8_text(content, filename, DomainError), filename)
    if not _may_be_codebook(content, filename):
        if file_kind(filename) is None and not _is_txt(filename):
            raise _neither(filename)
        return _data_file(header_of_bytes(content, filename), filename)
    refuse_large(len(content), filename)
    text = utf8_text(content, filename, DomainError)
    if _is_json(content, filename):
        schemas = schemas_in_json(text, filename)
        if len(schemas) > 1:
            return PackageFile(schemas, filename)
        stated = chosen_schema(schemas, filename)
        said = stated.schema.get("format") if isinstance(stated.schema, dict) else None
        if isinstance(said, str) and not stated.has_fields:
            return OwnFile(said)
        return _from_schema(stated, filename)
    return CodebookFile("CSV codebook", Domain(tuple(attributes_from_csv(text, filename))), {})


def recognise_path(path: Path) -> Recognised:
    """Recognise the file or folder of records at this path; raises as `recognise`.

    Of records it is their head alone that is read.
    """
    if not os.path.isfile(path):
        return ColumnsFile("folder of data files", read_header(path), path)
    try:
        with path.open("rb") as file:
            head = file.read(_FIRST_LINE)
    except OSError as error:
        raise DomainError(f"{path} cannot be read ({error.strerror}); check the path.") from None
    if kind := dictionary_kind(head[:HEAD], path.name):
        if spreadsheet_kind(path.name):
            refuse_large(path.stat().st_size, path.name)
            return recognise(file_bytes(path, str(path), DomainError), path.name)
        draft = draft_of_file(path, path.name)
        return _from_draft(draft, kind, path.name, path if file_kind(path.name) else None)
    head = as_utf8(head)
    if not _are_records(head, path.name):
        _refuse_no_text(head, path.name)
        if path.name.lower().endswith(ENDING) or _may_be_codebook(head, path.name):
            refuse_large(path.stat().st_size, path.name)
            return recognise(file_bytes(path, str(path), DomainError), path.name)
    return _data_file(read_header(path), path.name, path)


def _data_file(header: Header, filename: str, records: Path | None = None) -> ColumnsFile:
    """The file of records with this header; a text in .txt may as well be a letter."""
    if _is_txt(filename) and len(header.columns) < 2:
        raise _neither(filename)
    return ColumnsFile(DATA_FILE, header, records)


def _is_txt(filename: str) -> bool:
    return filename.lower().endswith(".txt")


def _neither(filename: str) -> DomainError:
    return DomainError(
        f"{filename} is neither a codebook nor a data file: a codebook is JSON, or CSV or a "
        "spreadsheet with the columns attribute and value; data files end in .csv or .parquet, or "
        "in .txt where the first line names two columns or more."
    )


def _are_records(content: bytes, filename: str) -> bool:
    """Whether it is a Parquet file, or a compressed one."""
    is_zip = content.startswith(ZIP) and filename.lower().endswith(".zip")
    return content.startswith(_RECORDS) or is_zip


def _refuse_no_text(content: bytes, filename: str) -> None:
    kind = kind_beside_text(content[:HEAD])
    if kind:
        raise DomainError(
            f"{filename} is {kind}; save a codebook as Table Schema (JSON) or CSV, and records as "
            "CSV or Parquet."
        )


def _is_json(content: bytes, filename: str) -> bool:
    """Whether it begins like JSON, and is not named like records, which may begin so too."""
    start = content[:HEAD].removeprefix(b"\xef\xbb\xbf").lstrip()
    return file_kind(filename) is None and start.startswith((b"{", b"["))


def _may_be_codebook(content: bytes, filename: str) -> bool:
    """Whether it is JSON, or its first line has the columns of a CSV codebook."""
    if _is_json(content, filename):
        return True
    head = content[:_FIRST_LINE].decode("utf-8-sig", errors="replace")
    for delimiter in ",;\t|":
        columns = next(csv.reader(io.StringIO(head, newline=""), delimiter=delimiter), [])
        found = {column.strip().lower() for column in columns}
        if {"attribute", "value"} <= found or {"type", *VARIABLES} <= found:
            return True
    return False


def _from_schema(stated: StatedSchema, filename: str) -> CodebookFile | ColumnsFile:
    if not stated.has_fields:
        raise DomainError(
            f'{filename} is JSON, but no codebook: a Table Schema has "fields", a Data Package '
            '"resources", and sizes are written {"age": 32}; export one of these.'
        )
    usable = stated.usable(leave_out=True)
    if not usable["fields"]:
        missing = stated.missing
        columns = [
            Column(name, _DECLARED.get(declared, ""), missing=tuple(missing[name].items()))
            for name, declared in stated.without_values.items()
        ]
        return ColumnsFile(f"{stated.kind} without values", header_of(filename, columns))
    domain = Domain.from_schema(usable)
    return CodebookFile(stated.kind, domain, stated.without_values, stated.remarks)


def _from_draft(
    draft: Draft, kind: str, filename: str, records: Path | None
) -> CodebookFile | ColumnsFile:
    """The codebook in the dictionary of a file, or its columns if it lists no values.

    records: where they can be read
    """
    columns = [
        Column(name, declared, missing=tuple(draft.missing.get(name, {}).items()))
        for name, declared in draft.without_values.items()
    ]
    others = ColumnsFile(kind, header_of(filename, columns), records) if columns else None
    if draft.domain.attributes or others is None:
        return CodebookFile(kind, draft.domain, draft.without_values, draft.remarks, others)
    return others
