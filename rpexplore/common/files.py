"""Files written whole or not at all, and the folder where the program keeps its own ones."""

import contextlib
import os
import tempfile
from pathlib import Path


def home_folder() -> Path:
    """`.rpexplore` in the user's home, or what RPEXPLORE_HOME says. It need not exist yet."""
    named = os.environ.get("RPEXPLORE_HOME")
    try:
        return Path(named) if named else Path.home() / ".rpexplore"
    except RuntimeError:  # a user without a home, in a container say
        return Path(tempfile.gettempdir()) / f"rpexplore-{os.getuid()}"


def write_whole(path: str | Path, content: str | bytes, *, mode: int = 0o666) -> None:
    """Write a file, a text as UTF-8, replacing what was there only when all of it is written.

    mode: who may read and write it, from which the user's own mask takes away. Raises `OSError`
    as the operating system tells it; nothing is left behind then.
    """
    path = Path(path)
    if path.is_dir() or not path.name:
        raise IsADirectoryError(21, "it is a folder")
    part = path.with_name(f".{path.name}.part-{os.getpid()}")
    try:
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
        part.replace(path)
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
