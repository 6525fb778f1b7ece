"""Listing: the files that records lie in, one or a folder of them, looked at from outside."""

import os
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds

from rpexplore.errors import DataError

LEDGER = "rpexplore-ledger.sqlite"
"""The usual name of a ledger, which may lie among records."""

_LOGS = ("_delta_log", ".hoodie")
_ENDINGS = {".csv": "csv", ".csv.gz": "csv", ".parquet": "parquet", ".pq": "parquet"}


@dataclass(frozen=True)
class RecordFile:
    """A file of records.

    path  where it is
    kind  "csv" or "parquet"
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
        return [RecordFile(path, _kind(path), path.stat().st_size)]
    files = [
        RecordFile(found, _kind_in_folder(found, path), found.stat().st_size, _keys(found, path))
        for found in _paths_within(path)
    ]
    if not files:
        raise DataError(
            f"The folder {str(path)!r} holds no records; name one with .csv or .parquet files."
        )
    first = files[0]
    for each in files:
        if each.kind != first.kind:
            raise DataError(
                f"The folder {str(path)!r} holds records of two kinds, such as "
                f"{_within(first.path, path)!r} and {_within(each.path, path)!r}; leave those of "
                "one kind there."
            )
        if each.keys.keys() != first.keys.keys():
            raise DataError(
                f"The files {_within(first.path, path)!r} and {_within(each.path, path)!r} in "
                f"{str(path)!r} lie in folders of different keys; give every file the same "
                "key=value folders around it."
            )
    return files


def _paths_within(folder: Path) -> list[Path]:
    """All files in a folder and those in it, by name; without hidden ones."""
    found = []
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda each: each.name):
            _refuse_versions(entry.name, folder)
            # A folder _key=value holds records: the underscore is the key's.
            if entry.name.startswith((".", LEDGER)) or (
                entry.name.startswith("_") and "=" not in entry.name
            ):
                continue
            path = folder / entry.name
            if entry.is_dir(follow_symlinks=False):
                found += _paths_within(path)
            elif entry.is_file(follow_symlinks=False):
                found.append(path)
            else:
                raise DataError(
                    f"The folder {str(folder)!r} holds {entry.name!r}, which is neither a file nor "
                    "a folder of its own; put the records themselves there, or rename it with an "
                    "underscore in front."
                )
    return found


def _refuse_versions(name: str, folder: Path) -> None:
    """Raise `DataError` where which files are records is written somewhere else."""
    if name in _LOGS:
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


def _kind(path: Path) -> str:
    kind = next((kind for end, kind in _ENDINGS.items() if path.name.lower().endswith(end)), None)
    if kind is None:
        raise DataError(
            "The records must be a .csv or .parquet file (.csv.gz if compressed), or a folder of "
            f"these, got {path.name!r}; export them as one of these."
        )
    return kind


def _kind_in_folder(path: Path, folder: Path) -> str:
    try:
        return _kind(path)
    except DataError:
        raise DataError(
            f"The folder {str(folder)!r} holds {_within(path, folder)!r}, which is no .csv or "
            ".parquet file; move it elsewhere, or rename it with an underscore in front."
        ) from None


def _keys(path: Path, folder: Path) -> dict[str, str | None]:
    """The keys of the folders between the two, as pyarrow reads them: all as text."""
    parts = [part for part in path.parent.relative_to(folder).parts if "=" in part]
    names = [part.partition("=")[0] for part in parts]
    if len(set(names)) < len(names):
        raise DataError(
            f"The folders around {_within(path, folder)!r} in {str(folder)!r} give one key twice; "
            "rename one of them."
        )
    schema = pa.schema([(name, pa.string()) for name in names])
    try:
        found = ds.get_partition_keys(ds.HivePartitioning(schema).parse("/".join(parts) + "/"))
    except (pa.ArrowException, UnicodeEncodeError):
        raise DataError(
            f"The folders around {_within(path, folder)!r} in {str(folder)!r} are not key=value "
            "in UTF-8; rename them."
        ) from None
    return {name: found[name] for name in names}


def _within(path: Path, folder: Path) -> str:
    return str(path.relative_to(folder))
