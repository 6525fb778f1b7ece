"""Writing files whole: complete under their name, or not there at all."""

import contextlib
import os
from pathlib import Path


def write_whole(path: str | Path, text: str) -> None:
    """Write a UTF-8 text file, replacing what was there only when all of it is written.

    Raises `OSError` as the operating system tells it; nothing is left behind then.
    """
    path = Path(path)
    if path.is_dir() or not path.name:
        raise IsADirectoryError(21, "it is a folder")
    part = path.with_name(f".{path.name}.part-{os.getpid()}")
    try:
        part.write_bytes(text.encode())
        part.replace(path)
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
