"""Files written whole or not at all, text and CSV read from bytes, and the program's own folder."""

import contextlib
import csv
import io
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from rpexplore.errors import RpexploreError


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


def utf8_text(
    content: bytes, source: str, error: type[RpexploreError], encoding: str = "utf-8-sig"
) -> str:
    """The text of a file's bytes, without a byte order mark; raises `error` for other encodings."""
    try:
        return content.decode(encoding)
    except UnicodeDecodeError:
        raise error(f"{source} is not UTF-8 text; save it as UTF-8.") from None


def csv_rows(
    text: str, source: str, error: type[RpexploreError], delimiter: str | None = ","
) -> Iterator[tuple[int, list[str]]]:
    """The rows of a CSV text, each with the number of its last line; `error` for an open quote.

    Empty lines behind the first one are left out. delimiter: None is the semicolon where the first
    line has one and no comma, and else the comma.
    """
    if delimiter is None:
        header = text.partition("\n")[0]
        delimiter = ";" if ";" in header and "," not in header else ","
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        for row in reader:
            if row or reader.line_num == 1:
                yield reader.line_num, row
    except csv.Error as problem:
        raise error(
            f"{source} is no usable CSV (line {reader.line_num}: {problem}); check that every "
            "quote is closed."
        ) from None
