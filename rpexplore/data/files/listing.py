"""Listing: the files that records lie in, one or a folder of them, looked at from outside."""

import os
import stat
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds

from rpexplore.common.statistics_files import PACKAGES
from rpexplore.errors import DataError

LEDGER = "rpexplore-ledger.sqlite"
"""The usual name of a ledger, which may lie among records."""

VERSION_LOGS = ("_delta_log", ".hoodie")
"""Folders that say which files beside them are records of a version."""

_ENDINGS = {
    **{".csv": "csv", ".csv.gz": "csv", ".parquet": "parquet", ".pq": "parquet"},
    **{f".{form}": form for form in PACKAGES},
}


@dataclass(frozen=True)
class RecordFile:
    """A file of records.

    path  where it is
    kind  "csv", "parquet" or the format of a statistics package, as in `PACKAGES`
    size  its bytes
    keys  columns that the names of the folders around it stand for, with the one value that all
          its records have; None for a missing one
    """

    path: Path
    kind: str
    size: int
    keys: dict[str, str | None] = field(default_factory=dict)


def record_files(path: Path) -> list[RecordFile]:
    """The files of records at this path, in the order of their names.

    path: a file, or a folder of files of one kind; there, folders named key=value (hive) add a
    column each, and names that begin with a dot or an underscore are passed over.

    Raises `DataError` for another kind of file, files of several kinds, or folders that do not all
    have the same keys. Looks into no file; raises `OSError` for what is not there.
    """
    if not path.is_dir():
        kind = file_kind(path.name)
        if kind is None:
            raise DataError(
                "The records must be a .csv or .parquet file (.csv.gz if compressed), a file of "
                "SPSS, Stata or SAS, or a folder of these, "
                f"got {path.name!r}; export them as one of these."
            )
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):  # a pipe would be waited for, a device read for ever
            raise DataError(
                f"The records {str(path)!r} must be a file or a folder; save them as one."
            )
        return [RecordFile(path, kind, status.st_size)]
    files = []
    for file in _paths_within(path):
        kind, inner = file_kind(file.name), str(file.relative_to(path))
        if kind is None:
            raise DataError(
                f"The folder {str(path)!r} holds {inner!r}, which is no .csv or .parquet file; "
                "move it elsewhere, or rename it with an underscore in front."
            )
        files.append(RecordFile(file, kind, file.stat().st_size, _hive_keys(file, path)))
        first = files[0]
        if kind != first.kind:
            raise DataError(
                f"The folder {str(path)!r} holds records of two kinds, such as "
                f"{str(first.path.relative_to(path))!r} and {inner!r}; leave those of one kind "
                "there."
            )
        if files[-1].keys.keys() != first.keys.keys():
            raise DataError(
                f"The files {str(first.path.relative_to(path))!r} and {inner!r} in {str(path)!r} "
                "lie in folders of different keys; give every file the same key=value folders "
                "around it."
            )
    if not files:
        raise DataError(
            f"The folder {str(path)!r} holds no records; name one with .csv or .parquet files."
        )
    return files


def _paths_within(folder: Path) -> list[Path]:
    """All files in a folder and those in it, by name; without hidden ones."""
    paths = []
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            _refuse_versions(entry.name, folder)
            # A folder _key=value holds records: the underscore is the key's.
            if entry.name.startswith((".", LEDGER)) or (
                entry.name.startswith("_") and "=" not in entry.name
            ):
                continue
            path = folder / entry.name
            if entry.is_dir(follow_symlinks=False):
                paths += _paths_within(path)
            elif entry.is_file(follow_symlinks=False):
                paths.append(path)
            else:
                raise DataError(
                    f"The folder {str(folder)!r} holds {entry.name!r}, which is neither a file nor "
                    "a folder of its own; put the records themselves there, or rename it with an "
                    "underscore in front."
                )
    return paths


def _refuse_versions(name: str, folder: Path) -> None:
    """Raise `DataError` where which files are records is written somewhere else."""
    if name in VERSION_LOGS:
        raise DataError(
            f"The folder {str(folder)!r} is a table of versions ({name}), in which files of "
            "deleted records may lie; export the records of one version as Parquet, or count the "
            "table with Spark."
        )
    hidden = name.startswith((".", "_")) and "=" not in name
    if hidden and name.lower().endswith(tuple(_ENDINGS)):
        raise DataError(
            f"The folder {str(folder)!r} holds {name!r}, of which it is not clear whether it is to "
            "be counted; give it a name that begins with a letter, or move it elsewhere."
        )


def file_kind(name: str) -> str | None:
    """The kind of a `RecordFile`, by the ending of a file's name; None for any other."""
    return next((kind for end, kind in _ENDINGS.items() if name.lower().endswith(end)), None)


def _hive_keys(path: Path, folder: Path) -> dict[str, str | None]:
    """The keys of the folders between the two, as pyarrow reads them: all as text."""
    inner = path.relative_to(folder)
    parts = [part for part in inner.parent.parts if "=" in part]
    names = [part.partition("=")[0] for part in parts]
    if len(set(names)) < len(names):
        raise DataError(
            f"The folders around {str(inner)!r} in {str(folder)!r} give one key twice; rename one "
            "of them."
        )
    schema = pa.schema([(name, pa.string()) for name in names])
    try:
        keys = ds.get_partition_keys(ds.HivePartitioning(schema).parse("/".join(parts) + "/"))
    except (pa.ArrowException, UnicodeEncodeError):
        raise DataError(
            f"The folders around {str(inner)!r} in {str(folder)!r} are not key=value in UTF-8; "
            "rename them."
        ) from None
    return {name: keys[name] for name in names}
