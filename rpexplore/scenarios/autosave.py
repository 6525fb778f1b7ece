"""Projects that the app saves by itself, one file each, under a key of its own.

On one's own computer every browser finds all of them; on a shared server each account has a folder
of its own, all of whose projects are its own. Beside them lie the areas that they are about, each
tree once, and as long as a project has it.
"""

import json
import os
import re
import threading
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from pathlib import Path

from rpexplore.common.files import home_folder, write_whole
from rpexplore.common.text import time_of_change
from rpexplore.domain.area_tree import AreaTree
from rpexplore.domain.area_tree_file import HeldTreeFiles, ReadTreeFile, parquet_of_tree
from rpexplore.errors import RpexploreError, WorkloadError
from rpexplore.scenarios.project import Project, name_of_areas
from rpexplore.scenarios.scenario import NAME_LENGTH, Scenario

_KEY = re.compile(r"[0-9a-f]{32}")
_ACCOUNT = re.compile(r"[0-9a-f]{64}")
_MOST_RELEASES = 10  # that are noted with a project
_SECONDS_UNUSED = 24 * 3600  # that areas stay which no project has any more
_WRITTEN_LAST = "manifest.json"  # of the files of a release
_lock = threading.Lock()  # between reading what is there and writing over it
_good_files: dict[Path, tuple[int, ...]] = {}  # of areas, in the state in which they were good


@dataclass(frozen=True)
class SavedProject:
    """A project as it was saved: what it says, its exact text, and when."""

    project: Project
    text: str
    saved: datetime


@dataclass(frozen=True)
class SavedRelease:
    """Where a release of a project lies and what it was made from; nothing of its figures.

    contents     what it holds: "7 noisy tables"
    plan_format  the `file_format` of its plan
    scenario     as it was when the release was begun
    """

    folder: Path
    contents: str
    plan_format: str
    scenario: Scenario


@dataclass(frozen=True)
class Autosaves:
    """Saved projects in a folder, which is made when the first one is saved.

    holder  whose alone they are on a shared server; "" on one's own
    """

    folder: Path
    holder: str = ""

    @classmethod
    def of_user(cls) -> "Autosaves":
        """In the user's home, or where RPEXPLORE_HOME says."""
        return cls(home_folder() / "autosaves")

    @classmethod
    def of_account(cls, name: str) -> "Autosaves":
        """In a folder of its own in that home; `name` is 64 hexadecimal digits."""
        if not _ACCOUNT.fullmatch(name):
            raise ValueError("an account is named by 64 hexadecimal digits")
        return cls(home_folder() / "accounts" / name, holder=name)

    def keys(self) -> list[str]:
        """The keys of all projects in the folder, the one saved last first. Raises `OSError`."""
        files = filter(Path.is_file, self.folder.glob("*.json"))
        saved = [path for path in files if _KEY.fullmatch(path.stem)]
        return [path.stem for path in sorted(saved, key=_saved_at, reverse=True)]

    @staticmethod
    def new_key() -> str:
        """A key that is in nobody's use."""
        return uuid.uuid4().hex

    def read(self, key: str) -> SavedProject | None:
        """The project saved under a key; None if there is none.

        Raises `WorkloadError` for one that cannot be used (written by a newer version, say), which
        is left as it is, and `OSError` as the operating system tells it.
        """
        text = self.text(key)
        if text is None:
            return None
        path = self.path(key)
        try:
            project = Project.parse(text, self.tree_files)
        except WorkloadError as error:
            raise WorkloadError(f"The saved project {path} cannot be opened. {error}") from None
        return SavedProject(project, text, time_of_change(path.stat().st_mtime))

    def projects(self) -> dict[str, SavedProject]:
        """All that can be read, by their keys, the one saved last first."""
        found = {}
        with suppress(OSError):
            for key in self.keys():
                with suppress(RpexploreError, OSError):
                    saved = _read(self, key, self.path(key).stat().st_mtime_ns)
                    if saved is not None:
                        found[key] = saved
        return found

    def rename(self, key: str, name: str) -> None:
        """Give a saved project another name.

        Raises `RpexploreError` for a name that it cannot have, or where it is not there any more.
        """
        saved = self._present(key)
        self.save(key, saved.project.with_survey(name).text(), saved.text)

    def duplicate(self, key: str) -> None:
        """Save a copy of a project; raises `RpexploreError` if that is not there any more."""
        project = self._present(key).project
        copy = project.with_survey(f"{project.name[: NAME_LENGTH - 7]} (copy)")
        self.save(self.new_key(), copy.text(), None)

    def _present(self, key: str) -> SavedProject:
        saved = self.projects().get(key)
        if saved is None:
            raise WorkloadError("That project is not there any more.")
        return saved

    def save(self, key: str, text: str, before: str | None) -> bool:
        """Save a project's text over `before`; False, and nothing is written, if that is not there.

        Then somebody else has saved under this key: another window with the same project. A saved
        project that was there and is gone is written again. Raises `OSError`.
        """
        with _lock:
            present = self.text(key)
            if present is not None and present != before:
                return False
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_whole(self.path(key), text, mode=0o600)
        return True

    def save_areas(self, project: Project) -> None:
        """Save the areas of a project that are not there yet. Raises `OSError`."""
        for areas in project.areas.values():
            if areas.is_read:
                self.save_tree(areas.tree)

    def save_tree(self, tree: AreaTree) -> None:
        """Save areas that are not there yet, or damaged. Raises `OSError`."""
        path = self._path_of_tree(tree.sha256)
        with suppress(FileNotFoundError):  # removed meanwhile
            # Looked into once, and whenever somebody else has written: millions of areas take time.
            if _good_files.get(path) == _state_of(path) or self._holds(tree):
                os.utime(path)  # for `remove_unused_areas`: it is wanted now
                _good_files[path] = _state_of(path)
                return
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(path, parquet_of_tree(tree), mode=0o600)
        _good_files[path] = _state_of(path)

    def _holds(self, tree: AreaTree) -> bool:
        """Whether the file of saved areas is there, and undamaged."""
        content = self.read_tree(tree.sha256)
        return content is not None and content == parquet_of_tree(tree)

    @property
    def size(self) -> int:
        """The bytes of all that is saved. Raises `OSError`."""
        paths = self.folder.iterdir() if self.folder.exists() else ()
        return sum(path.stat().st_size for path in paths)

    def has_tree(self, sha256: str) -> bool:
        """Whether areas are saved."""
        return self._path_of_tree(sha256).exists()

    @property
    def tree_files(self) -> ReadTreeFile:
        """How the areas of its projects are read, by their SHA-256."""
        return HeldTreeFiles(self.read_tree, self.holder) if self.holder else self.read_tree

    def read_tree(self, sha256: str) -> bytes | None:
        """The file of saved areas; None if there is none, or it cannot be read."""
        with suppress(OSError):
            return self._path_of_tree(sha256).read_bytes()
        return None

    def remove_unused_areas(self) -> None:
        """Remove areas that no saved project has had for a day; till then they can be undone."""
        with suppress(OSError):
            unused = set(self.folder.glob(name_of_areas("*")))
            for path in self.folder.glob("*.json") if unused else ():
                text = path.read_bytes()
                used = {tree for tree in unused if tree.stem[-64:].encode() in text}
                for tree in used:
                    os.utime(tree)
                unused -= used
            for tree in unused:
                if time.time() - tree.stat().st_mtime > _SECONDS_UNUSED:
                    tree.unlink(missing_ok=True)

    def save_release(self, key: str, release: SavedRelease) -> None:
        """Note a release of the project under a key, finished or not. Raises `OSError`."""
        others = [other for other in self._releases(key) if other.folder != release.folder]
        content = [
            {
                "folder": str(noted.folder),
                "contents": noted.contents,
                "plan_format": noted.plan_format,
                "scenario": noted.scenario.text(),
            }
            for noted in [release, *others][:_MOST_RELEASES]
        ]
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(self._path_of_releases(key), json.dumps(content), mode=0o600)

    def last_release(self, key: str) -> SavedRelease | None:
        """The release of the project under a key that was finished last; None if there is none."""
        finished = {}
        for release in self._releases(key):
            with suppress(OSError):
                finished[(release.folder / _WRITTEN_LAST).stat().st_mtime_ns] = release
        return finished[max(finished)] if finished else None

    def forget_releases(self, key: str) -> None:
        """Forget all releases of the project under a key. Raises `OSError`."""
        self._path_of_releases(key).unlink(missing_ok=True)

    def save_results_folder(self, key: str, folder: Path | None) -> None:
        """Note which results are looked at with the project under a key. Raises `OSError`."""
        if folder is None:
            self._path_of_results(key).unlink(missing_ok=True)
            return
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(self._path_of_results(key), str(folder), mode=0o600)

    def results_folder(self, key: str) -> Path | None:
        """The results that were looked at last; None if there are none, or they are gone."""
        with suppress(OSError, ValueError):
            folder = Path(self._path_of_results(key).read_text(encoding="utf-8"))
            return folder if (folder / _WRITTEN_LAST).is_file() else None
        return None

    def _releases(self, key: str) -> list[SavedRelease]:
        """The releases noted under a key, those begun last first; none if they cannot be read."""
        with suppress(OSError, ValueError, KeyError, TypeError, WorkloadError, RecursionError):
            listed = json.loads(self._path_of_releases(key).read_text(encoding="utf-8"))
            return [
                SavedRelease(
                    Path(content["folder"]),
                    str(content["contents"]),
                    content["plan_format"],
                    Scenario.parse(content["scenario"], self.tree_files),
                )
                for content in listed
            ]
        return []

    def path(self, key: str) -> Path:
        """The file of a saved project."""
        return self.folder / f"{key}.json"

    def text(self, key: str) -> str | None:
        """The text saved under a key; None if there is none, or it is no key. Raises `OSError`."""
        if not _KEY.fullmatch(key):
            return None
        try:
            # Damage in a text is found by its checksum.
            return self.path(key).read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return None

    def _path_of_tree(self, sha256: str) -> Path:
        return self.folder / name_of_areas(sha256)

    def _path_of_releases(self, key: str) -> Path:
        return self.folder / f"{key}-releases.json"

    def _path_of_results(self, key: str) -> Path:
        return self.folder / f"{key}-results.txt"


def _saved_at(path: Path) -> int:
    with suppress(FileNotFoundError):  # removed meanwhile
        return path.stat().st_mtime_ns
    return 0


def _state_of(path: Path) -> tuple[int, ...]:
    """What changes when somebody writes to a file. Raises `FileNotFoundError`."""
    found = path.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns


@lru_cache(256)  # the page Home lists them with every step
def _read(saves: Autosaves, key: str, saved_at: int) -> SavedProject | None:
    return saves.read(key)
