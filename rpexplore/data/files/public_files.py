"""Files that a server without records takes: public ones. Files of records are refused.

By what they hold as well as by their names: a file of records under the name of a codebook is one.
"""

import csv
import io
from collections.abc import Mapping
from itertools import islice

from rpexplore.common.exact_numbers import shown_few
from rpexplore.common.file_kinds import HEAD, kind_beside_text
from rpexplore.common.json_fields import FieldError, loads
from rpexplore.common.record_files import refusal, refuse_records
from rpexplore.data.files.codebook_file import Recognised, recognise
from rpexplore.domain.area_codebook import AREAS, fields_of_codebook, has_areas
from rpexplore.domain.area_file import CODE, NAME, OF_NAMES, PARENT, columns_of_file
from rpexplore.domain.codebooks.hierarchy_file import ENDING
from rpexplore.errors import DomainError

CODEBOOK_ENDINGS = ("json", "csv", "xml", "hrc")
"""Of the names of codebooks and plans."""

_CODEBOOK_COLUMNS = {"attribute", "value", "label", "group"}
_LINES = 1_000  # of a hierarchy in which columns are looked for


def recognise_public(content: bytes, filename: str) -> Recognised:
    """`recognise` for a codebook or a plan; raises `DomainError` also for a file of records."""
    refuse_records(content, filename)
    if not kind_beside_text(content[:HEAD]):
        text = content.decode("utf-8-sig", errors="replace").lstrip()
        if text.startswith(("{", "[")):
            _refuse_inline_records(text, filename)
            # By its content it is JSON: an ending of records does not make it one of them.
            name = filename if filename.lower().endswith(".json") else f"{filename}.json"
            return recognise(content, name)
        if not text.startswith("<"):
            _refuse_columns(text, filename)
    return recognise(content, filename)


def refuse_records_beside(codebook: bytes, filename: str, beside: Mapping[str, bytes]) -> None:
    """Raise `DomainError` where a codebook of areas, or a file of areas beside it, holds records.

    A file of areas has the columns of their codes and names, and none besides.
    """
    refuse_records(codebook, filename)
    text = codebook.decode("utf-8-sig", errors="replace").lstrip()
    _refuse_inline_records(text, filename)
    columns_of_areas = _columns_of_areas(text, filename)
    for name, content in beside.items():
        refuse_records(content, name, may_be_parquet=True)
        columns, _ = columns_of_file(content, name)
        others = [column for column in columns if column not in (columns_of_areas or columns)]
        if others:
            raise DomainError(
                f"{name} has columns ({shown_few(others)}) that say nothing of the areas, and this "
                "server takes no records. Upload a file with the columns of the areas alone."
            )


def _columns_of_areas(text: str, filename: str) -> set[str]:
    """The columns that a file of areas can have; none where the codebook does not name levels."""
    stated = [field[AREAS] for field in fields_of_codebook(text, filename) if has_areas(field)]
    levels = stated[0].get("levels") if stated and isinstance(stated[0], dict) else None
    if not isinstance(levels, list) or not levels:
        return set()
    names = [level for level in levels if isinstance(level, str)]
    return {CODE, PARENT, NAME, *names, *(f"{name}{OF_NAMES}" for name in names)}


def _refuse_inline_records(text: str, filename: str) -> None:
    """Refuse a list in JSON, and a Data Package that holds the rows of its tables itself."""
    try:
        content = loads(text)
    except FieldError:  # said where it is read
        return
    if isinstance(content, list):
        raise refusal(filename, "a list in JSON")
    resources = content.get("resources") if isinstance(content, dict) else None
    for part in (content, *(resources if isinstance(resources, list) else ())):
        if isinstance(part, dict) and isinstance(part.get("data"), list | dict | str):
            raise DomainError(
                f'{filename} holds the rows of a table ("data"), and this server takes no records. '
                "Take them out, so that the schema remains, and upload that."
            )


def _refuse_columns(text: str, filename: str) -> None:
    """Of text only a CSV codebook is public by its columns, and a hierarchy, which has none."""
    for delimiter in ",;":
        first = next(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter), [])
        columns = {column.strip().lower() for column in first}
        if {"attribute", "value"} <= columns <= _CODEBOOK_COLUMNS:
            return
    if not filename.lower().endswith(ENDING) or _has_columns(text):
        kind = (
            "a table with a record in each row, as far as its columns tell (a codebook has the "
            "columns attribute and value, and besides them at most label and group)"
        )
        raise refusal(filename, kind)


def _has_columns(text: str) -> bool:
    """Whether all lines have the same number of columns, and more than one."""
    lines = [line for line in islice(text.splitlines(), _LINES) if line.strip()]
    for delimiter in ",;\t|":
        counts = {line.count(delimiter) for line in lines}
        if len(counts) == 1 and 0 not in counts:
            return True
    return False
