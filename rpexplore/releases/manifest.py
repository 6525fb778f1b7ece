"""The manifest of a release: what its folder holds, and what is guaranteed for it.

It is written last; a folder without one is no finished release. Size and SHA-256 of every file are
in it, and the SHA-256 of itself without that. An opened folder must be as it was written: the
manifest byte for byte, and all files that it lists and no others but hidden ones. Sentences stand
in it as they were worded when it was written; what is compared are numbers and names.
"""

import hashlib
import json
import os
import platform
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, cached_property
from importlib.metadata import version
from pathlib import Path
from threading import Lock
from typing import Any

from rpexplore.common.json_fields import (
    FieldError,
    check_keys,
    list_of,
    loads,
    sealed_text,
    text_of,
)
from rpexplore.common.numbers import shown, shown_few
from rpexplore.errors import ReleaseError
from rpexplore.planning.plan import LAST_OF_VERSION_1
from rpexplore.releases.atomic_folder import MANIFEST, write_to_disk
from rpexplore.releases.measurement_file import RUN_FOLDER, Measured

CONFIDENCE = 0.95  # of the intervals in all files of a release
README = "README.md"

_WRITTEN = RUN_FOLDER + "/written-{}.jsonl"  # for the part that begins there
_BYTES_BETWEEN_NOTES = 1 << 23  # of files that are written: fewer are written anew in no time

_IN_ALL = ("format", "format_version", "interval_confidence", "versions", "files", "sha256")
_SENTENCES = {"guarantee", "privacy_unit"}
_IN_ENTRY = {"path", "bytes", "sha256"}

_TICK = (
    50_000_000  # ns, of the clock of a file system at most: what changes within is not told apart
)
_MOST_KNOWN = 1 << 16

TableFiles = Mapping[str, Sequence[str] | None]
"""Files of a folder, and the attributes of the table in each; None where there is none."""


def in_release(kind: str, path: str) -> str:
    """Where a file of a part of a plan lies in the folder of the release."""
    return path if kind == "tables" else f"{kind}/{path}"


def without_csv(paths: Iterable[str]) -> list[str]:
    """The files that a release has whose run wants Parquet only."""
    return [path for path in paths if not path.endswith(".csv")]


# ---- writing


def file_entry(folder: Path, path: str, **more: Any) -> dict[str, Any]:
    """What the manifest says of a file in the folder."""
    file = folder / path
    return {"path": path, "bytes": file.stat().st_size, "sha256": _sha256(file), **more}


class WrittenFiles:
    """The files of a part that are complete, noted as they are: finishing the run keeps them.

    A file is kept if it has the size and the SHA-256 that were noted, so that it does not matter
    what of a note has come to the disk. Several threads may use it at a time.
    """

    def __init__(self, folder: Path, paths: Iterable[str], measured: Measured) -> None:
        """Make the folders of these files, and remove what is in them and not noted.

        measured: what they are made from
        """
        self._folder, self._lock = folder, Lock()
        self._notes = measured.folder / _WRITTEN.format(measured.start)
        self._noted: dict[str, dict[str, Any]] = {}
        self._waiting: list[Mapping[str, Any]] = []
        with suppress(OSError), self._notes.open(encoding="utf-8") as file:
            for line in file:
                # The last may be cut off.
                with suppress(ValueError, KeyError, TypeError, RecursionError):
                    entry = json.loads(line)
                    self._noted[entry["path"]] = entry
        for name in sorted({path.rpartition("/")[0] for path in paths} - {""}):
            (folder / name).mkdir(parents=True, exist_ok=True)
            for path in (folder / name).iterdir():
                if f"{name}/{path.name}" not in self._noted:
                    path.unlink()

    def entries(self, paths: Sequence[str], **more: Any) -> list[dict[str, Any]] | None:
        """What the manifest says of these files; None unless they are all complete."""
        noted = [self._noted.get(path) for path in paths]
        with suppress(OSError):
            if None not in noted:
                entries = [file_entry(self._folder, path, **more) for path in paths]
                return entries if entries == noted else None
        return None

    def note(self, entries: Sequence[Mapping[str, Any]]) -> None:
        """Note that these files are complete, when there are enough of them."""
        with self._lock:
            self._waiting += entries
            if sum(entry["bytes"] for entry in self._waiting) < _BYTES_BETWEEN_NOTES:
                return
            with self._notes.open("a", encoding="utf-8") as file:
                file.write("".join(f"\n{json.dumps(entry)}" for entry in self._waiting))
            self._waiting.clear()


def save_manifest(
    folder: Path,
    folder_format: tuple[str, int],
    facts: Mapping[str, Any],
    files: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """Write a manifest with these facts and what is in every manifest, and return it.

    Args:
        folder_format: Name and version of the folder's format.
        facts: What is particular to this kind of folder.
        files: The entries of its files.
    """
    content = {
        "format": folder_format[0],
        "format_version": folder_format[1],
        **facts,
        "interval_confidence": CONFIDENCE,
        "versions": _versions(),
        "files": list(files),
    }
    text = sealed_text(content)
    write_to_disk(folder / MANIFEST, text)
    return json.loads(text)


@cache
def _versions() -> dict[str, str]:
    """Of the programs that make a release, looked up once: each is read from a file."""
    own = {name: version(name) for name in ("rpexplore", "numpy", "pyarrow")}
    return {"python": platform.python_version(), **own}


def manifest_sha256(folder: Path) -> str:
    """SHA-256 of a folder's manifest."""
    return _sha256(folder / MANIFEST)


def now(timespec: str = "seconds") -> str:
    """The time, as manifests have it."""
    return datetime.now(UTC).isoformat(timespec=timespec)


# ---- reading


def checked_folder(
    folder: Path, folder_format: tuple[str, int], noun: str, facts: Sequence[str]
) -> dict[str, Any]:
    """The manifest of a folder of this format, which holds `noun`.

    Raises `ReleaseError` if the folder holds something else, or is not as it was written.

    Args:
        facts: What its manifest has beside what is in every manifest.
    """
    manifest = read_manifest(folder)
    stated_format = manifest.get("format"), manifest.get("format_version")
    if folder_format[1] > 1 and stated_format == (folder_format[0], 1):
        raise ReleaseError(
            f"{str(folder)!r} holds {noun} of format version 1, which rpexplore "
            f"{LAST_OF_VERSION_1} reads, and this library reads version {folder_format[1]}; make "
            "it anew from its release, or use the other version for it."
        )
    if stated_format != folder_format:
        raise ReleaseError(
            f"{str(folder)!r} does not hold {noun} that can be read here (format "
            f"{shown(repr(stated_format[0]))}, version {shown(repr(stated_format[1]))}; it must be "
            f"{folder_format[0]!r}, version {folder_format[1]!r})."
        )
    reason = f"its {MANIFEST} was changed"
    try:
        if (folder / MANIFEST).read_bytes() != sealed_text(manifest).encode():
            raise not_as_written(folder, noun, reason)
        reason = f"its {MANIFEST} does not hold what it must"
        check_keys(manifest, (*_IN_ALL, *facts), MANIFEST)
        for program in dict(manifest["versions"].items()):  # not of a list
            text_of(manifest["versions"], program)
        entries = {text_of(entry, "path"): entry for entry in list_of(manifest, "files")}
        if len(entries) < len(manifest["files"]):
            raise not_as_written(folder, noun, f"its {MANIFEST} lists a file twice")
        for entry in entries.values():
            check_keys(entry, _IN_ENTRY | (entry.keys() & {"attributes"}), "a file")
    except (FieldError, AttributeError, KeyError, TypeError, ValueError, OSError):
        raise not_as_written(folder, noun, reason) from None
    check_facts(folder, manifest, {"interval_confidence": CONFIDENCE}, noun)
    _check_files(folder, entries)
    return manifest


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of any folder; raises `ReleaseError` if there is none that can be read."""
    try:
        manifest = loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError, FieldError):
        manifest = None
    if not isinstance(manifest, dict):
        raise ReleaseError(
            f"{str(folder)!r} is not a finished release: it has no readable {MANIFEST}; check the "
            "path, and name the folder itself."
        )
    return manifest


def check_facts(
    folder: Path, manifest: Mapping[str, Any], facts: Mapping[str, Any], noun: str
) -> None:
    """Raise `ReleaseError` unless the manifest says these facts, of what the folder holds.

    Sentences may be worded otherwise: by another version of the library.
    """
    for name, fact in facts.items():
        stated = manifest[name]
        is_same = name in _SENTENCES or stated == fact
        if type(stated) is not type(fact) or not is_same:
            reason = f"{name!r} in its {MANIFEST} is not what follows from its other files"
            raise not_as_written(folder, noun, reason)


def check_listed(folder: Path, manifest: Mapping[str, Any], files: TableFiles, noun: str) -> None:
    """Raise `ReleaseError` unless the manifest lists these files and the README, and no others."""
    listed = {entry["path"]: entry.get("attributes") for entry in manifest["files"]}
    if listed != {README: None, **files}:
        raise not_as_written(folder, noun, f"its {MANIFEST} lists other files, or other tables")


def not_as_written(folder: Path, noun: str, reason: str) -> ReleaseError:
    """What to raise for a folder whose parts do not belong together."""
    return ReleaseError(
        f"{str(folder)!r} does not hold {noun} as written: {reason}; use the original folder."
    )


def _check_files(folder: Path, entries: Mapping[str, Mapping[str, Any]]) -> None:
    """Raise `ReleaseError` for a file that is missing, changed, or not listed."""
    # All but hidden ones, and those of a run whose end is still to be noted.
    files = (path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir())
    parts = (path.relative_to(folder).parts for path in files)
    present = {
        "/".join(names)
        for names in parts
        if names[0] != RUN_FOLDER and not any(name.startswith(".") for name in names)
    }
    for path, entry in entries.items():
        if path not in present or not _is_as_listed(folder / path, entry):
            raise _changed(folder, path)
    if added := sorted(present - {*entries, MANIFEST}):
        raise ReleaseError(
            f"{str(folder)!r} holds more than was written, {shown_few(added)}; move away what was "
            "added, or use the original folder."
        )


@dataclass(frozen=True)
class CheckedFolder:
    """An opened folder whose files are handed out only while they are as its manifest says.

    `folder / name` is the path of a file in it. Readers ask for it each time, not once: between
    opening a folder and reading a table of it somebody may have written another one.

    home      the folder with the manifest
    manifest  as it was when the folder was opened
    within    the folder in it that names are of; "" for itself
    """

    home: Path
    manifest: Mapping[str, Any]
    within: str = ""

    def __truediv__(self, name: str) -> Path:
        """Raises `ReleaseError` for a file that is not listed, missing, or was changed."""
        path = f"{self.within}/{name}" if self.within else name
        entry = self._entries.get(path)
        if entry is None and (self.home / path).is_dir():
            return self.home / path
        if entry is None or not _is_as_listed(self.home / path, entry):
            raise _changed(self.home, path)
        return self.home / path

    @property
    def path(self) -> Path:
        """Of the folder that names are of."""
        return self.home / self.within

    def folder(self, name: str) -> "CheckedFolder":
        """A folder in it; the list of files, which may be long, is read once for both."""
        inner = CheckedFolder(self.home, self.manifest, f"{self.within}/{name}".lstrip("/"))
        vars(inner)["_entries"] = self._entries
        return inner

    @cached_property
    def _entries(self) -> dict[str, Mapping[str, Any]]:
        return {entry["path"]: entry for entry in self.manifest["files"]}


# Path and SHA-256 -> what the system said of the file when it was found to have this SHA-256. Its
# time of change nobody can set, so that a file of which it says the same is not read again.
_KNOWN: dict[tuple[str, str], tuple[int, ...]] = {}


def _is_as_listed(file: Path, entry: Mapping[str, Any]) -> bool:
    """Whether a file has the size and the SHA-256 that a manifest says."""
    try:
        started = time.time_ns()
        found, sha256 = file.stat(), entry["sha256"]
        if found.st_size != entry["bytes"] or not isinstance(sha256, str):
            return False
        stamp = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
        key = os.path.abspath(file), sha256
        if _KNOWN.get(key) == stamp:
            return True
        is_same = file.is_file() and _sha256(file) == sha256
    except OSError:
        return False
    if is_same and found.st_ctime_ns < started - _TICK:
        if len(_KNOWN) >= _MOST_KNOWN:
            _KNOWN.clear()
        _KNOWN[key] = stamp
    return is_same


def _changed(folder: Path, path: str) -> ReleaseError:
    return ReleaseError(
        f"The file {path!r:.200} of {str(folder)!r} is missing or was changed since; restore it, "
        "or use the original folder."
    )


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
