"""Files written whole or not at all, text read from bytes, and the program's own folder."""

import contextlib
import errno
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from rpexplore.common.file_kinds import HEAD, kind_beside_text
from rpexplore.errors import RpexploreError

_PART, _SECONDS_TO_WRITE = ".rpexplore-part-", 3600


def home_folder() -> Path:
    """`.rpexplore` in the user's home, or what RPEXPLORE_HOME says. It need not exist yet."""
    named = os.environ.get("RPEXPLORE_HOME")
    try:
        return Path(named) if named else Path.home() / ".rpexplore"
    except RuntimeError:  # a user without a home, in a container say
        user = os.getuid() if hasattr(os, "getuid") else os.getlogin()
        return Path(tempfile.gettempdir()) / f"rpexplore-{user}"


def write_whole(path: str | Path, content: str | bytes, *, mode: int = 0o666) -> None:
    """Write a file, a text as UTF-8, replacing what was there only when all of it is on disk.

    mode: who may read and write it, from which the user's own mask takes away; a file that was
    there keeps its own. Raises `OSError` as the operating system tells it, or `check_replaceable`;
    nothing is left behind then.
    """
    with (
        whole_file(path) as part,
        open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file,
    ):
        file.write(content.encode() if isinstance(content, str) else content)


@contextlib.contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """Context manager: a path whose content becomes the file `path` if the block ends well."""
    path = Path(path)
    check_replaceable(path)
    # Remove what killed writers left behind.
    with contextlib.suppress(OSError):
        for left in path.parent.glob(f"{_PART}*"):
            if time.time() - left.lstat().st_mtime > _SECONDS_TO_WRITE:
                shutil.rmtree(left, ignore_errors=True)
    # A folder of our own and of an unpredictable name: nobody can have put a link there.
    with tempfile.TemporaryDirectory(
        prefix=_PART, dir=path.parent, ignore_cleanup_errors=True
    ) as folder:
        part = Path(folder) / "part"
        yield part
        with part.open("rb+") as file:
            os.fsync(file.fileno())
        if path.exists():
            part.chmod(stat.S_IMODE(path.stat().st_mode))
        part.replace(path)
    with contextlib.suppress(OSError):  # a file system without; the file itself is written
        names_to_disk(path.parent)


def check_replaceable(path: Path) -> None:
    """Raise `OSError` unless there is nothing at `path`, or a file that may be replaced.

    A link is not followed: it would be replaced, or lead to a file that nobody named.
    """
    refuse_undecodable(path)
    try:
        kind = stat.S_IFMT(path.lstat().st_mode)
    except FileNotFoundError:
        kind = stat.S_IFREG
    if kind == stat.S_IFDIR or not path.name:
        raise IsADirectoryError(errno.EISDIR, "it is a folder")
    if kind == stat.S_IFLNK:
        raise OSError(errno.EEXIST, "it is a link; name the file that it leads to")
    if kind != stat.S_IFREG:
        raise OSError(errno.EEXIST, "it is a device, pipe or socket, and no file")


def refuse_undecodable(path: Path) -> None:
    """Raise `OSError` for a path that is no text: some libraries take no other."""
    try:
        is_text = b"\0" not in str(path).encode()
    except UnicodeEncodeError:
        is_text = False
    if not is_text:
        raise OSError(errno.EILSEQ, "its name is not UTF-8, or holds a NUL")


def names_to_disk(folder: Path) -> None:
    """Have the names in a folder on disk, where the system can open folders."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def file_bytes(path: str | Path, source: str, error: type[RpexploreError]) -> bytes:
    """The content of a file; raises `error`, which calls it by `source`, if it cannot be read."""
    try:
        return Path(path).read_bytes()
    except OSError as problem:
        raise error(f"{source} cannot be read ({problem.strerror}); check the path.") from None


def utf8_text(
    content: bytes, source: str, error: type[RpexploreError], encoding: str = "utf-8-sig"
) -> str:
    """The text of a file's bytes, without a byte order mark; raises `error` for other encodings."""
    kind = kind_beside_text(content[:HEAD])
    if kind:
        raise error(f"{source} is {kind}; save it as text in UTF-8 (of a spreadsheet, as CSV).")
    try:
        return content.decode(encoding)
    except UnicodeDecodeError:
        raise error(f"{source} is not UTF-8 text; save it as UTF-8.") from None
