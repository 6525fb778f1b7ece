"""What a file tells of attributes, recognised by what it holds: a codebook, or a file of records.

A file of a statistics package is both. Of records nothing but the names and the declared types of
their columns is looked at.
"""

import csv
import io
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rpexplore.common.file_kinds import HEAD, kind_beside_text
from rpexplore.common.files import file_bytes, utf8_text
from rpexplore.data.files.columns import (
    DATES,
    NUMBERS,
    TEXT,
    WHOLE,
    Column,
    Header,
    header_of,
    header_of_bytes,
    read_header,
)
from rpexplore.data.files.listing import file_kind
from rpexplore.domain.codebook import attributes_from_csv
from rpexplore.domain.codebooks.draft_file import dictionary_kind, draft_of_file, refuse_large
from rpexplore.domain.codebooks.hierarchy_file import ENDING, HierarchyFile
from rpexplore.domain.codebooks.variables import Draft
from rpexplore.domain.domain import Domain
from rpexplore.domain.json_schemas import StatedSchema, chosen_schema, schemas_in_json
from rpexplore.errors import DomainError

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


Recognised = CodebookFile | ColumnsFile | OwnFile | PackageFile | HierarchyFile


def recognise(content: bytes, filename: str) -> Recognised:
    """Recognise a file by its content.

    Raises `RpexploreError` for a file that is none of these, or cannot be used.
    """
    if content.startswith(_RECORDS):
        return ColumnsFile(DATA_FILE, header_of_bytes(content, filename))
    if kind := dictionary_kind(content[:HEAD], filename):
        return _from_draft(draft_of_file(content, filename), kind, filename, None)
    _refuse_no_text(content, filename)
    if filename.lower().endswith(ENDING):
        refuse_large(len(content), filename)
        return HierarchyFile.parse(utf8_text(content, filename, DomainError), filename)
    if not _may_be_codebook(content, filename):
        if file_kind(filename) is None:
            raise DomainError(
                f"{filename} is neither a codebook nor a data file: a codebook is JSON, or CSV "
                "with the columns attribute and value; data files end in .csv or .parquet."
            )
        return ColumnsFile(DATA_FILE, header_of_bytes(content, filename))
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
        draft = draft_of_file(path, path.name)
        return _from_draft(draft, kind, path.name, path if file_kind(path.name) else None)
    if not head.startswith(_RECORDS):
        _refuse_no_text(head, path.name)
        if path.name.lower().endswith(ENDING) or _may_be_codebook(head, path.name):
            refuse_large(path.stat().st_size, path.name)
            return recognise(file_bytes(path, str(path), DomainError), path.name)
    return ColumnsFile(DATA_FILE, read_header(path), path)


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
    for delimiter in ",;":
        columns = next(csv.reader(io.StringIO(head, newline=""), delimiter=delimiter), [])
        if {"attribute", "value"} <= {column.strip().lower() for column in columns}:
            return True
    return False


def _from_schema(stated: StatedSchema, filename: str) -> CodebookFile | ColumnsFile:
    if not stated.has_fields:
        raise DomainError(
            f'{filename} is JSON, but no codebook: a Table Schema has "fields", a Data Package '
            '"resources", and sizes are written {"age": 32}; export one of these.'
        )
    if not stated.with_values["fields"]:
        types = stated.without_values
        return ColumnsFile(
            f"{stated.kind} without values",
            header_of(filename, [Column(name, _DECLARED.get(types[name], "")) for name in types]),
        )
    domain = Domain.from_schema(stated.with_values)
    return CodebookFile(stated.kind, domain, stated.without_values, stated.remarks)


def _from_draft(
    draft: Draft, kind: str, filename: str, records: Path | None
) -> CodebookFile | ColumnsFile:
    """The codebook in the dictionary of a file, or its columns if it lists no values.

    records: where they can be read
    """
    columns = [Column(name, declared) for name, declared in draft.without_values.items()]
    others = ColumnsFile(kind, header_of(filename, columns), records) if columns else None
    if draft.domain.attributes or others is None:
        return CodebookFile(kind, draft.domain, draft.without_values, draft.remarks, others)
    return others
