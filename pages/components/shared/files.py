"""Paths that are typed on a page, and where releases are written."""

import os
from pathlib import Path

RELEASES = Path("releases")


def path_of(typed: str) -> Path:
    """A typed or pasted path; some file managers copy it with quotation marks around."""
    typed = typed.strip()
    if len(typed) > 1 and typed[0] == typed[-1] and typed[0] in "\"'":
        typed = typed[1:-1]
    return Path(os.path.expanduser(typed))


def nearest_folder(path: Path) -> Path:
    """The first thing above a path that exists; what is missing below it is made."""
    return next(parent for parent in path.absolute().parents if os.path.exists(parent))
