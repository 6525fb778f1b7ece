"""Files and folders to choose from, and the public ones that a server without records takes."""

import csv
import io
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from rpexplore.common.file_kinds import PARQUET, ZIP, refusal, refuse_records
from rpexplore.common.files import HEAD, as_utf8, kind_beside_text
from rpexplore.common.json_fields import FieldError, loads
from rpexplore.common.numbers import shown, shown_few
from rpexplore.common.processes import in_other_process
from rpexplore.common.spreadsheets import numbered, sheets_of, spreadsheet_kind
from rpexplore.data.files.columns import CodebookFile, Recognised, recognise
from rpexplore.data.files.record_files import LEDGER, VERSION_LOGS, file_kind
from rpexplore.domain.area_codebook import AREAS, fields_of_codebook, has_areas
from rpexplore.domain.area_file import CODE, NAME, OF_NAMES, PARENT, columns_of_file
from rpexplore.domain.hierarchy_file import ENDING
from rpexplore.errors import DomainError

# ---- Files and folders to choose from: what lies under some folders, by their names alone.
#
# Hidden names (of a dot or an underscore in front) are left out, and links: where one leads, nobody
# has opened. Nothing is looked into.


MOST_LISTED = 500
_IN_RELEASES = {"manifest.json", "plan.json", "README.md"}
_CODEBOOKS = (".json", ".xml", ".hrc", ".xlsx", ".ods", ".px")
MOST_SEEN = 5_000  # names that are looked at, hidden ones included
_SECONDS = 0.3  # for all folders, after which no further one is looked at


@dataclass(frozen=True)
class Folder:
    """The names of the files and folders in a folder, in order, as far as they may be offered."""

    files: tuple[str, ...]
    folders: tuple[str, ...]


@dataclass(frozen=True)
class Choice:
    """What of a folder is offered, and what of it is looked at further.

    itself   whether the folder is offered as a whole
    files    names of its files that are offered
    folders  names of its folders that are looked into
    """

    itself: bool
    files: Sequence[str]
    folders: Sequence[str]


Kind = Callable[[Folder], Choice]


@dataclass(frozen=True)
class Offered:
    """The files and folders that can be chosen.

    names   {path: what it is called}, in the order of its folders and names
    is_cut  whether there may be more, which were too many to look at
    """

    names: dict[Path, str]
    is_cut: bool


def records(folder: Folder) -> Choice:
    """Files of records, and folders whose files are the parts of one table.

    None of a release, whose tables are no records.
    """
    if _IN_RELEASES.issubset(folder.files):
        return Choice(False, (), ())
    kinds = {name: kind for name in folder.files if (kind := file_kind(name))}
    others = [name for name in folder.files if name not in kinds and not name.startswith(LEDGER)]
    keyed = {name for name in folder.folders if "=" in name}
    are_parts = len(kinds) > 1 and not folder.folders and len({*kinds.values()}) == 1
    return Choice(
        itself=not others and (bool(keyed) or are_parts),
        files=list(kinds),
        folders=[name for name in folder.folders if name not in keyed],
    )


def codebooks(folder: Folder) -> Choice:
    """Files that may be codebooks by their endings, and `records`, whose columns can begin one."""
    choice = records(folder)
    with_header = (name for name in choice.files if file_kind(name) != "fixed")
    files = {*with_header, *(name for name in folder.files if name.lower().endswith(_CODEBOOKS))}
    return Choice(choice.itself, sorted(files), choice.folders)


def ddi_codebooks(folder: Folder) -> Choice:
    """Files that may be DDI codebooks."""
    files = [name for name in folder.files if name.lower().endswith(".xml")]
    return Choice(False, files, folder.folders)


def ledgers(folder: Folder) -> Choice:
    """SQLite files."""
    files = [name for name in folder.files if name.lower().endswith(".sqlite")]
    return Choice(False, files, folder.folders)


def folders_with(file: str) -> Kind:
    """Folders that hold a file of this name; what lies inside them is part of them."""

    def kind(folder: Folder) -> Choice:
        is_one = file in folder.files
        return Choice(is_one, (), () if is_one else folder.folders)

    return kind


def offered(
    folders: Sequence[Path], kind: Kind, *, most: int = MOST_LISTED, most_seen: int = MOST_SEEN
) -> Offered:
    """What of this kind lies under the folders; those that cannot be read are passed over.

    Each folder has its share of names and of time, so that a huge or slow one hides no other.
    """
    roots = list(_roots(folders))
    lists = [
        _under(root, kind, most, most_seen // len(roots), _SECONDS / len(roots)) for root in roots
    ]
    # One name of each folder, then a second one of each, and so on.
    turns = sorted(
        (place, root, path)
        for root, (names, _) in enumerate(lists)
        for place, path in enumerate(names)
    )
    paths = dict.fromkeys(path for _, _, path in turns)
    taken = set(islice(paths, most))
    listed: dict[Path, str] = {}
    for names, _ in lists:
        for path, name in names.items():
            if path in taken:
                listed.setdefault(path, name)
    return Offered(listed, len(paths) > most or any(is_cut for _, is_cut in lists))


def _under(
    root: tuple[Path, str], kind: Kind, most: int, left: int, seconds: float
) -> tuple[dict[Path, str], bool]:
    """What of this kind lies under a folder, and whether there may be more.

    Args:
        most: Names, after which no further folder is looked at.
        left: Names that may be looked at.
    """
    names: dict[Path, str] = {}
    waiting, end = [root], time.monotonic() + seconds
    while waiting and left > 0 and len(names) <= most and time.monotonic() < end:
        path, name = waiting.pop()
        folder, n_seen = _look_at(path, left)
        left -= n_seen
        choice = kind(folder)
        if choice.itself:
            names[path] = f"{name}{os.sep}"
        for file in choice.files:
            names[path / file] = f"{name}{os.sep}{file}"
        for inner in reversed(choice.folders):
            waiting.append((path / inner, f"{name}{os.sep}{inner}"))
    return names, bool(waiting) or left <= 0


def _roots(folders: Sequence[Path]) -> Iterator[tuple[Path, str]]:
    """Each folder with what it is called: its own name, unless another one has that too."""
    paths = list(dict.fromkeys(folder.resolve() for folder in folders))
    alike = Counter(path.name for path in paths)
    for path in paths:
        is_known = path.name and alike[path.name] == 1
        yield path, path.name if is_known else str(path)


def _look_at(path: Path, most: int) -> tuple[Folder, int]:
    """What may be offered of a folder, and how many names were looked at."""
    files: list[str] = []
    folders: list[str] = []
    seen = 0
    with suppress(OSError), os.scandir(path) as entries:
        for seen, entry in enumerate(islice(entries, most), start=1):
            if entry.name in VERSION_LOGS:  # which of the files here count is written there
                return Folder((), ()), seen
            is_hidden = entry.name.startswith((".", "_")) and "=" not in entry.name
            if is_hidden or not entry.name.isprintable():
                continue
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.name)
            elif entry.is_file(follow_symlinks=False):
                files.append(entry.name)
    return Folder(tuple(sorted(files)), tuple(sorted(folders))), seen


# ---- Files that a server without records takes: public ones. Files of records are refused.
#
# By what they hold as well as by their names: a file of records under the name of a codebook is
# one.


CODEBOOK_ENDINGS = ("json", "csv", "xml", "hrc", "xlsx", "ods")
"""Of the names of codebooks and plans."""

_CODEBOOK_COLUMNS = {"attribute", "value", "label", "group"}
# Each a kind of sheet, by all columns that it may have; `codebook_of_sheets` reads them.
_OF_VARIABLES = {"name", "label", "title"}
_SHEET_COLUMNS = (
    _CODEBOOK_COLUMNS,
    {"value", "code", "label", "group"},
    {*_OF_VARIABLES, "type", "values", "missing"},
)
_SHEET_MEMORY = 2 << 30  # bytes of a process that unpacks an upload; 1.2 GB when it begins
_SHEET_SECONDS = 20  # of a processor; a small file can hold millions of elements without a cell
_MOST_UNPACKED, _MOST_CELLS = 40_000_000, 2_000_000  # bytes, and cells: as of all uploads
_LINES = 1_000  # of a hierarchy in which columns are looked for


def recognise_public(content: bytes, filename: str) -> Recognised:
    """`recognise` for a codebook or a plan; raises `DomainError` also for a file of records."""
    if spreadsheet_kind(filename) and content.startswith(ZIP):
        too_large = DomainError(f"{filename} needs too much memory or time; save it as CSV.")
        try:
            return in_other_process(_codebook_in_sheets, content, filename, ended=too_large)
        except MemoryError:
            raise too_large from None
    content = as_utf8(content)
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


def _codebook_in_sheets(content: bytes, filename: str) -> CodebookFile:
    """The codebook in a spreadsheet that has nothing else, in a process of its own."""
    if sys.platform == "linux":
        import resource  # here, as Windows has no such module

        resource.setrlimit(resource.RLIMIT_DATA, (_SHEET_MEMORY, _SHEET_MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (_SHEET_SECONDS, _SHEET_SECONDS))
    sheets = sheets_of(
        content, filename, DomainError, most_bytes=_MOST_UNPACKED, most_cells=_MOST_CELLS
    )
    for name, rows in sheets.items():
        header = next((cells for _, cells in numbered(rows)), [])
        columns = {column.strip().lower() for column in header} - {""}
        if not any(columns <= known for known in _SHEET_COLUMNS):
            kind = (
                f"a spreadsheet whose sheet {shown(name)!r} has a record in each row, as far as "
                "its columns tell (a sheet of a codebook has attribute, value, label and group, or "
                "name, type, values, label and missing)"
            )
            raise refusal(filename, kind)
    codebook = recognise(content, filename)
    if not isinstance(codebook, CodebookFile):
        raise DomainError(f"{filename} has no sheet with values of attributes; add one.")
    return codebook


def refuse_records_beside(codebook: bytes, filename: str, beside: Mapping[str, bytes]) -> None:
    """Raise `DomainError` where a codebook of areas, or a file of areas beside it, holds records.

    A file of areas has the columns of their codes and names, and none besides.
    """
    codebook = as_utf8(codebook)
    refuse_records(codebook, filename)
    text = codebook.decode("utf-8-sig", errors="replace").lstrip()
    _refuse_inline_records(text, filename)
    columns_of_areas = _columns_of_areas(text, filename)
    for name, content in beside.items():
        refuse_records(content, name, taken={PARQUET})
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
    for delimiter in ",;\t|":
        with suppress(csv.Error):  # for a line longer than any header
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
