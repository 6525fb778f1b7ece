"""Drafts: studies that the app saves by itself, one file each, under a key that nobody can guess.

A browser knows its own key and no other, so that two browsers do not see each other's studies.
A draft holds a study and nothing else: no record was ever near it.
"""

import contextlib
import os
import re
import threading
import uuid
from dataclasses import dataclass
from pathlib import Path

from rpexplore.errors import RpexploreError
from rpexplore.study import Study
from rpexplore.write import write_whole

_KEY = re.compile(r"[0-9a-f]{32}")
_lock = threading.Lock()  # between reading what is there and writing over it


@dataclass(frozen=True)
class Drafts:
    """The drafts in a folder, which is made when the first one is saved."""

    folder: Path

    @classmethod
    def of_user(cls) -> "Drafts":
        """In the user's home, or where RPEXPLORE_HOME says."""
        home = os.environ.get("RPEXPLORE_HOME") or Path.home() / ".rpexplore"
        return cls(Path(home) / "drafts")

    @staticmethod
    def new_key() -> str:
        """A key that is in nobody's use."""
        return uuid.uuid4().hex

    def text(self, key: str) -> str | None:
        """The text saved under a key; None if there is none."""
        if not _KEY.fullmatch(key):
            return None
        try:
            return self._path(key).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return None

    def study(self, key: str) -> Study | None:
        """The study saved under a key; None if there is none that can be used."""
        text = self.text(key)
        if text is None:
            return None
        try:
            return Study.parse(text)
        except RpexploreError:
            # Kept for a look at it: the next change would write over it.
            with contextlib.suppress(OSError):
                self._path(key).replace(self._path(key).with_suffix(".unreadable.json"))
            return None

    def save(self, key: str, text: str, before: str | None) -> bool:
        """Save a study's text over `before`; False, and nothing is written, if that is not there.

        Then somebody else has saved under this key: another window with the same study.
        Raises `OSError` as the operating system tells it.
        """
        with _lock:
            if self.text(key) != before:
                return False
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_whole(self._path(key), text, mode=0o600)
        return True

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.json"
