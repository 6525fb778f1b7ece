"""The files that records lie in, one or a folder of them, looked at from outside."""

import hashlib
import os
import stat
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet

from rpexplore.common.statistics_files import PACKAGES
from rpexplore.data.files.csv_batches import FIXED_ENDINGS, TEXT_ENDINGS, csv_form, opened
from rpexplore.data.source import without_values
from rpexplore.errors import DataError, without_causes

_BEGINNING = 1 << 16  # bytes in which other records hardly ever agree

LEDGER = "rpexplore-ledger.sqlite"
"""The usual name of a ledger, which may lie among records."""

VERSION_LOGS = ("_delta_log", ".hoodie")
"""Folders that say which files beside them are records of a version."""

_ENDINGS = {
    **{f"{text}{packed}": "csv" for text in TEXT_ENDINGS for packed in ("", ".gz", ".zip")},
    **{f"{text}{packed}": "fixed" for text in FIXED_ENDINGS for packed in ("", ".gz", ".zip")},
    **{".parquet": "parquet", ".pq": "parquet"},
    **{f".{form}": form for form in PACKAGES},
}
# In folders these are other things: what a person has noted, what was packed.
_ONLY_IF_NAMED = (".txt", ".txt.gz", ".txt.zip", ".zip")


@dataclass(frozen=True)
class RecordFile:
    """A file of records.

    path  where it is
    kind  "csv", "fixed" (text of fixed width), "parquet" or the format of a statistics package, as
          in `PACKAGES`; with a layout a text of any ending is of fixed width
    size  its bytes
    name  by which errors call it: its path, within a folder of records without values of keys
    keys  columns that the names of the folders around it stand for, with the one value that all
          its records have; None for a missing one
    """

    path: Path
    kind: str
    size: int
    name: str
    keys: dict[str, str | None] = field(default_factory=dict)


def _error_about(message: str, *paths: Path) -> DataError:
    """An error whose message names these `without_values`; in full they are private."""
    in_full = ", ".join(repr(str(path)) for path in paths)
    has_values = any("=" in str(path) for path in paths)
    return DataError(message, private=f"In full: {in_full}." if has_values else "")


def record_files(path: Path) -> list[RecordFile]:
    """The files of records at this path, in the order of their names.

    path: a file, or a folder of files of one kind; there, folders named key=value (hive) add a
    column each, and names that begin with a dot or an underscore are passed over.

    Raises `DataError` for another kind of file, files of several kinds, two that differ in their
    endings alone, or folders that do not all have the same keys. Looks into no file; raises
    `OSError` for what is not there.
    """
    if not path.is_dir():
        kind = file_kind(path.name)
        if path.name.lower().endswith(_ONLY_IF_NAMED):
            kind = "csv"
        if kind is None:
            raise DataError(
                "The records must be a .csv or .parquet file (.tsv, .tab or .txt, .csv.gz or "
                ".csv.zip if compressed), one of fixed width (.dat, .asc), a file of SPSS, Stata "
                "or SAS, or a folder of these, "
                f"got {path.name!r}; export them as one of these."
            )
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):  # a pipe would be waited for, a device read for ever
            raise DataError(
                f"The records {str(path)!r} must be a file or a folder; save them as one."
            )
        return [RecordFile(path, kind, status.st_size, str(path))]
    files: list[RecordFile] = []
    stems: dict[Path, Path] = {}
    for file in paths_within(path, path):
        kind, inner = file_kind(file.name), file.relative_to(path)
        shown = without_values(inner)
        if kind is None:
            raise _error_about(
                f"The folder {str(path)!r} holds {shown!r}, which is no .csv or .parquet file; "
                "move it elsewhere, or rename it with an underscore in front.",
                inner,
            )
        name, keys = str(path / shown), _hive_keys(inner, path)
        files.append(RecordFile(file, kind, file.stat().st_size, name, keys))
        first = files[0].path.relative_to(path)
        if kind != files[0].kind:
            raise _error_about(
                f"The folder {str(path)!r} holds records of two kinds, such as "
                f"{without_values(first)!r} and {shown!r}; leave those of one kind there.",
                first,
                inner,
            )
        if keys.keys() != files[0].keys.keys():
            raise _error_about(
                f"The files {without_values(first)!r} and {shown!r} in {str(path)!r} lie in "
                "folders of different keys; give every file the same key=value folders around it.",
                first,
                inner,
            )
        end = _ending(file.name)
        other = stems.setdefault(file.with_name(file.name[: -len(end)]), inner)
        if other != inner:
            raise _twice_error(path, other, inner)
    if not files:
        raise DataError(
            f"The folder {str(path)!r} holds no records; name one with .csv or .parquet files."
        )
    return files


def _twice_error(folder: Path, one: Path, other: Path) -> DataError:
    return _error_about(
        f"The folder {str(folder)!r} seems to hold the same records twice, in "
        f"{without_values(one)!r} and {without_values(other)!r}; move one of them elsewhere. If "
        "they are other records, give them a name of their own, or join the two files.",
        one,
        other,
    )


def refuse_copies(folder: Path, files: Sequence[RecordFile]) -> None:
    """Raise `DataError` where two files hold the same bytes, compressed or not, and any record.

    Files below folders of different keys are other records. Those that begin alike are read whole.
    """

    def alike(files: Sequence[RecordFile], *, in_all: bool) -> list[list[RecordFile]]:
        """Those that have their keys and their beginning, or all, in common with another one."""
        groups: defaultdict[object, list[RecordFile]] = defaultdict(list)
        for file in files:
            with file_errors(file.path, file.name), opened(file.path) as content:
                digest = hashlib.sha256(content.read(_BEGINNING))
                while in_all and (block := content.read(_BEGINNING)):
                    digest.update(block)
            groups[digest.digest(), *sorted(file.keys.items())].append(file)
        return [group for group in groups.values() if len(group) > 1]

    for begin_alike in alike(files, in_all=False):
        for one, other, *_ in alike(begin_alike, in_all=True):
            if _has_records(one):
                raise _twice_error(
                    folder, one.path.relative_to(folder), other.path.relative_to(folder)
                )


def _has_records(file: RecordFile) -> bool:
    """Whether there are any; of a file of a statistics package this is taken for granted."""
    with file_errors(file.path, file.name):
        if file.kind == "csv":
            return csv_form(file.path, file.name).has_records
        if file.kind == "fixed":
            with opened(file.path) as content:
                return bool(content.read(1))
        return file.kind != "parquet" or pyarrow.parquet.read_metadata(file.path).num_rows > 0


def paths_within(folder: Path, top: Path) -> list[Path]:
    """All files in a folder and those in it, by name; without hidden ones.

    top: the folder of records, within which values of keys are left out of errors
    """
    paths = []
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            _refuse_versions(entry.name, folder, top)
            # A folder _key=value holds records: the underscore is the key's.
            if entry.name.startswith((".", LEDGER)) or (
                entry.name.startswith("_") and "=" not in entry.name
            ):
                continue
            path = folder / entry.name
            if entry.is_dir(follow_symlinks=False):
                paths += paths_within(path, top)
            elif entry.is_file(follow_symlinks=False):
                paths.append(path)
            else:
                inner = path.relative_to(top)
                raise _error_about(
                    f"The folder {str(top)!r} holds {without_values(inner)!r}, which is neither a "
                    "file nor a folder of its own; put the records themselves there, or rename it "
                    "with an underscore in front.",
                    inner,
                )
    return paths


def _refuse_versions(name: str, folder: Path, top: Path) -> None:
    """Raise `DataError` where which files are records is written somewhere else."""
    inner = folder.relative_to(top)
    if name in VERSION_LOGS:
        raise _error_about(
            f"The folder {str(top / without_values(inner))!r} is a table of versions ({name}), in "
            "which files of deleted records may lie; export the records of one version as Parquet, "
            "or count the table with Spark.",
            inner,
        )
    hidden = name.startswith((".", "_")) and "=" not in name
    if hidden and name.lower().endswith(tuple(_ENDINGS)):
        raise _error_about(
            f"The folder {str(top / without_values(inner))!r} holds {name!r}, of which it is not "
            "clear whether it is to be counted; give it a name that begins with a letter, or move "
            "it elsewhere.",
            inner,
        )


def file_kind(name: str) -> str | None:
    """The kind of a `RecordFile`, by the ending of a file's name; None for any other."""
    return _ENDINGS.get(_ending(name))


def _ending(name: str) -> str:
    """The ending by which a file is one of records, in small letters; "" for any other."""
    return next((end for end in _ENDINGS if name.lower().endswith(end)), "")


def _hive_keys(inner: Path, folder: Path) -> dict[str, str | None]:
    """The keys of the folders around a file in a folder, as pyarrow reads them: all as text.

    None where a folder has no value (`region=`), as for an empty field of a CSV file.
    """
    parts = [part for part in inner.parent.parts if "=" in part]
    names = [part.partition("=")[0] for part in parts]
    if len(set(names)) < len(names):
        raise _error_about(
            f"The folders around {without_values(inner)!r} in {str(folder)!r} give one key twice; "
            "rename one of them.",
            inner,
        )
    schema = pa.schema([(name, pa.string()) for name in names])
    try:
        keys = ds.get_partition_keys(ds.HivePartitioning(schema).parse("/".join(parts) + "/"))
    except (pa.ArrowException, UnicodeEncodeError):
        raise _error_about(
            f"The folders around {without_values(inner)!r} in {str(folder)!r} are not key=value in "
            "UTF-8; rename them.",
            inner,
        ) from None
    return {name: keys[name] or None for name in names}


@without_causes
@contextmanager
def file_errors(path: Path, name: str) -> Iterator[None]:
    """Tell a file that cannot be read as a `DataError`, by this name; its path is private then."""
    in_full = "" if name == str(path) else f"In full: {str(path)!r}."
    try:
        yield
    except DataError as error:
        if not in_full:
            raise
        raise DataError(str(error), private=f"{error.private} {in_full}".lstrip()) from None
    except OSError as error:
        raise DataError(
            f"The records {name!r} cannot be read ({error.strerror or 'input error'}); check "
            "the path and that the file is complete.",
            private=in_full,
        ) from None
    except pa.ArrowException as error:
        if "straddl" in str(error):  # a record over more than two of the blocks that are read
            raise DataError(
                f"The records {name!r} hold a value of several megabytes, or a quotation mark that "
                "opens one and is not closed; close it, or leave such a column out of the file.",
                private=in_full,
            ) from None
        # pyarrow quotes the offending row.
        raise DataError(
            f"The records {name!r} cannot be read as {path.suffix or 'a table'}; check that "
            "the file is complete, in UTF-8 (or name its encoding: --encoding windows-1252), and "
            "has the same number of columns in every row.",
            private=f"The reader says: {error} {in_full}".rstrip(),
        ) from None
