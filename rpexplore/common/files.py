"""Files: written whole or not at all, recognised by their first bytes, identified, kept secret."""

import codecs
import contextlib
import errno
import hashlib
import os
import platform
import re
import shutil
import stat
import sys
import tempfile
import time
import tomllib
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import suppress
from errno import ELOOP, ENAMETOOLONG
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rpexplore.common.text import data_size
from rpexplore.errors import LedgerError, RpexploreError

# ---- Files written whole or not at all, text read from bytes, and the program's own folder.


_PART = ".rpexplore-part-"
# A writer locks its folder at once, and has it no longer than this where there are no locks.
_SECONDS_TO_LOCK, _SECONDS_TO_WRITE = 10, 3600


def home_folder() -> Path:
    """`.rpexplore` in the user's home, or what RPEXPLORE_HOME says. It need not exist yet.

    Raises `RpexploreError` if somebody else could have put there what is in it.
    """
    named = os.environ.get("RPEXPLORE_HOME")
    try:
        folder = Path(named) if named else _home_of_user() / ".rpexplore"
    except RuntimeError:  # a user without a home, in a container say
        user = os.getuid() if hasattr(os, "getuid") else os.getlogin()
        folder = Path(tempfile.gettempdir()) / f"rpexplore-{user}"
    if problem := problem_with_owner(folder):
        raise RpexploreError(
            f"The folder {str(folder)!r}, where rpexplore keeps what is yours, cannot be used: "
            f"{problem}. Take the right to write to it from others (chmod go-w) if it is your own, "
            "or name another folder in the environment variable RPEXPLORE_HOME."
        )
    return folder


def _home_of_user() -> Path:
    """The user's home; where HOME is empty, which would be “/”, by the user's number.

    Raises `RuntimeError` for a user without one.
    """
    if os.environ.get("HOME") != "":
        return Path.home()
    try:
        from pwd import getpwuid
    except ImportError:  # Windows
        return Path.home()
    try:
        home = getpwuid(os.getuid()).pw_dir
    except KeyError:
        home = ""
    if not home:
        raise RuntimeError("no home")
    return Path(home)


def problem_with_owner(path: Path | int) -> str:
    """Why a file or folder that is there already may hold what somebody else put there; "" if not.

    It must belong to this user, or to the administrator, who can do anything; and nobody else may
    write to it. A link counts as what it leads to, and must not be somebody else's either.

    path: or the descriptor of an opened one; "" if nothing is there
    """
    if os.name != "posix":
        return ""
    try:
        found = [os.stat(path)]
        if isinstance(path, Path) and path.is_symlink():
            found.append(path.lstat())
    except OSError:
        return ""
    if any(status.st_uid not in (os.geteuid(), 0) for status in found):
        return "it belongs to somebody else"
    mode = stat.S_IMODE(found[0].st_mode)
    if mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"others may write to it (mode {mode:o})"
    return ""


def may_write(user: int, status: os.stat_result, *, as_anybody: bool = True) -> bool:
    """Whether a user, by number, may write to a file or folder of this status.

    As its owner, as the administrator, or as a member of its group. Rights beyond these (access
    control lists) are not seen.

    as_anybody: also where everybody may, and nobody was given that right as one of a group
    """
    if user in (0, status.st_uid):
        return True
    if status.st_mode & stat.S_IWOTH:
        return as_anybody
    try:
        from pwd import getpwuid

        known = getpwuid(user)
        groups = os.getgrouplist(known.pw_name, known.pw_gid)
    except (ImportError, KeyError):  # Windows; a user without a name
        return False
    return bool(status.st_mode & stat.S_IWGRP) and status.st_gid in groups


def laid_beside(path: Path, endings: Iterable[str]) -> Path | None:
    """A file beside another that was put there by a user who may not write to that; None if none.

    An engine takes such a file for what a writer that was stopped has left, and plays it back: by
    it, whoever may write to the folder alone could change what the other file holds.

    endings: what is behind the other file's name in names of such files
    """
    if os.name != "posix" or not path.exists():
        return None
    of_path = path.stat()
    for ending in endings:
        beside = path.with_name(path.name + ending)
        with suppress(FileNotFoundError):
            status = beside.lstat()
            is_own = status.st_uid == os.geteuid() or may_write(status.st_uid, of_path)
            # A link could lead to any file, and a second name of one make a journal of it.
            if not (is_own and stat.S_ISREG(status.st_mode) and status.st_nlink == 1):
                return beside
    return None


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
    with contextlib.suppress(OSError):
        for left in path.parent.glob(f"{_PART}*"):
            _remove_left(left)
    # A folder of our own and of an unpredictable name: nobody can have put a link there.
    with tempfile.TemporaryDirectory(
        prefix=_PART, dir=path.parent, ignore_cleanup_errors=True
    ) as folder:
        part = Path(folder) / "part"
        with _locked(folder):
            try:
                yield part
            except OSError as error:
                if error.filename is None:  # writing, as on a full disk, names no file
                    error.filename = str(path)
                raise
            # Still locked: another writer would take it for left, and a disk may be slow.
            with part.open("rb+") as file:
                os.fsync(file.fileno())
            if path.exists():
                part.chmod(stat.S_IMODE(path.stat().st_mode))
            part.replace(path)
    with contextlib.suppress(OSError):  # a file system without; the file itself is written
        names_to_disk(path.parent)


@contextlib.contextmanager
def _locked(folder: str | Path) -> Iterator[bool]:
    """Context manager: a lock on a folder, which a killed process loses; False without one.

    Raises `BlockingIOError` where another process has it.
    """
    if find_spec("fcntl") is None:  # Windows
        yield False
        return
    import fcntl

    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        is_locked = True
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise
        except OSError:  # a file system without locks
            is_locked = False
        yield is_locked
    finally:
        os.close(descriptor)


def _remove_left(folder: Path) -> None:
    """Remove the folder of a writer of this user that was killed; raises `OSError`."""
    status = folder.lstat()
    is_own = os.name != "posix" or status.st_uid == os.geteuid()
    age = time.time() - status.st_mtime
    if not (stat.S_ISDIR(status.st_mode) and is_own):
        return
    # A writer that has not locked its folder yet has nothing in it.
    if age <= _SECONDS_TO_LOCK and not any(folder.iterdir()):
        return
    # What else there is has been put there by somebody, who may have named the folder, too.
    if not all(one.name.startswith("part") for one in folder.iterdir()):
        return
    with contextlib.suppress(BlockingIOError), _locked(folder) as is_locked:
        if is_locked or age > _SECONDS_TO_WRITE:
            shutil.rmtree(folder, ignore_errors=True)


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


MOST_BYTES = 200_000_000
"""Of a file of any kind but plans: a list, a codebook, a matrix, a public table."""


def file_bytes(
    path: str | Path, source: str, error: type[RpexploreError], most_bytes: int = MOST_BYTES
) -> bytes:
    """The content of a file of at most so many bytes; no more is read of a device or a pipe.

    Raises `error`, which calls it by `source`, if it has more or cannot be read.
    """
    try:
        with Path(path).open("rb") as file:
            is_larger = os.fstat(file.fileno()).st_size > most_bytes
            content = b"" if is_larger else file.read(most_bytes + 1)
    except OSError as problem:
        raise error(f"{source} cannot be read ({problem.strerror}); check the path.") from None
    if is_larger or len(content) > most_bytes:
        raise error(
            f"{source} has more than the {data_size(most_bytes)} that are read of such a file; "
            "check that it is the right one, and take out what is not needed."
        )
    return content


def utf8_text(
    content: bytes,
    source: str,
    error: type[RpexploreError],
    encoding: str | None = None,
    *,
    may_have_mark: bool = True,
) -> str:
    """The text of a file's bytes, without a byte order mark, which may say UTF-16.

    encoding: what they are in without such a mark; UTF-8 if left out
    may_have_mark: whether a byte order mark of UTF-8 is left out, and not part of the text

    Raises `error` for other encodings.
    """
    if encoding is None or is_utf16(content) or content.startswith(codecs.BOM_UTF8):
        encoding = UTF8 if may_have_mark else "utf-8"
    else:
        encoding = known_encoding(encoding, error)
    content = as_utf8(content)
    kind = kind_beside_text(content[:HEAD])
    if kind:
        raise error(f"{source} is {kind}; save it as text in UTF-8 (of a spreadsheet, as CSV).")
    try:
        return content.decode(encoding)
    except UnicodeDecodeError:
        what = "UTF-8" if encoding.startswith("utf-8") else encoding
        raise error(f"{source} is not {what} text; save it as UTF-8.") from None


UTF8 = "utf-8-sig"
"""UTF-8, with or without a byte order mark, as Python calls it."""


def known_encoding(encoding: str, error: type[RpexploreError]) -> str:
    """The encoding of texts as Python calls it; raises `error` for one that there is not."""
    try:
        known = codecs.lookup(encoding).name
        if "a,b\n".encode(encoding).decode(encoding) != "a,b\n":
            raise LookupError
    except (LookupError, UnicodeError):  # none, or none of texts
        raise error(
            f"There is no encoding {encoding!r}; name one such as utf-8, utf-16 or windows-1252."
        ) from None
    return UTF8 if known in ("utf-8", UTF8) else known


_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_UTF32 = (b"\xff\xfe\0\0", b"\0\0\xfe\xff")


def is_utf16(head: bytes) -> bool:
    """Whether text begins with a byte order mark of UTF-16, as spreadsheets save it."""
    return head.startswith(_UTF16) and not head.startswith(_UTF32)


def as_utf8(content: bytes) -> bytes:
    """Bytes of text in UTF-16, by their byte order mark, in UTF-8; others as they are.

    They may be the beginning of a text: part of a character at the end is left out.
    """
    if not is_utf16(content):
        return content
    try:
        return codecs.getincrementaldecoder("utf-16")().decode(content).encode()
    except UnicodeError:
        return content


# ---- What a file is by its first bytes, where text is expected.


_BEGINNINGS = {
    **dict.fromkeys(_UTF32, "text in UTF-32"),
    b"PK\x03\x04": "a spreadsheet or another ZIP file",
    b"\xd0\xcf\x11\xe0": "an old spreadsheet or document",
    b"\x1f\x8b": "compressed by gzip",
    b"PAR1": "a Parquet file",
    b"%PDF": "a PDF document",
    b"SQLite format 3\x00": "an SQLite database",
    b"\x93NUMPY": "a NumPy matrix",
    b"\xff\xfe": "text in UTF-16",
    b"\xfe\xff": "text in UTF-16",
}
_PAGES = (b"<!doctype", b"<html", b"<?xml")

HEAD = 512
"""How many bytes `kind_beside_text` looks at."""


def kind_beside_text(head: bytes) -> str:
    """The kind of a file by its first bytes, in words; "" for what may be text in UTF-8."""
    for beginning, kind in _BEGINNINGS.items():
        if head.startswith(beginning):
            return kind
    if head.removeprefix(b"\xef\xbb\xbf").lstrip().lower().startswith(_PAGES):
        return "a web page or another marked-up document"
    return "no text" if head.count(0) > len(head) // 4 else ""


# ---- Files that hold passwords: TOML, for their owner alone, and never quoted in an error.


def secret_toml(path: Path, what: str, error: type[RpexploreError]) -> dict[str, Any] | None:
    """The content of a TOML file of secrets; None if it is no TOML, which its reader has to say.

    Raises `error`, which calls the file by `what`, if it belongs to somebody else, if others than
    its owner may use it or if it cannot be read, and `FileNotFoundError`.
    """
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            if os.name == "posix" and mode & (stat.S_IRWXG | stat.S_IRWXO):
                raise error(
                    f"{what} {str(path)!r} must be for its owner alone, but others "
                    f"may use it (mode {stat.S_IMODE(mode):o}); run: chmod 600 {path}"
                )
            if problem := problem_with_owner(file.fileno()):
                raise error(
                    f"{what} {str(path)!r} cannot be used: {problem}. Write one of your own, and "
                    "name that."
                )
            return tomllib.load(file)
    except FileNotFoundError:
        raise
    except OSError as problem:
        raise error(
            f"{what} {str(path)!r} cannot be read ({problem.strerror}); check the path."
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        return None  # the parser may quote what it could not read


# ---- What a file is, whatever it is called: the same for every link to it, and after a renaming.


FILE_PREFIX = "file:"

# FS_IOC_GETVERSION of Linux: tells apart the files that have had the same number (inode).
_GENERATION = 0x80087601


def listed_path(path: str | Path) -> Path:
    """A path with all links followed, and each name as its folder lists it.

    To some systems People.csv and people.csv, or two forms of é, are one name; what is typed is not
    what the file is called then. A name that cannot be looked up stays as it is.
    Raises `ValueError` for a NUL.
    """
    listed = ""
    for name in Path(os.path.realpath(path)).parts:
        found = name
        with contextlib.suppress(OSError):
            # A system that tells large letters from small ones has no such file.
            is_one_name = os.path.lexists(os.path.join(listed, name.swapcase()))
            if listed and is_one_name and name not in (names := os.listdir(listed)):
                own, folded = os.path.join(listed, name), _folded(name)
                found = next(
                    one
                    for one in [*names, name]
                    if _folded(one) == folded and os.path.samefile(os.path.join(listed, one), own)
                )
        listed = os.path.join(listed, found)
    return Path(listed)


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()


def file_identities(path: Path, machine: str = "") -> tuple[str, ...]:
    """Disk, number and, where the file system tells it, generation. Raises `OSError`.

    A disk is known by the number that the system has given it, and by the identity of its file
    system if there is one: the number changes with the order in which disks are found.

    Without a generation a new file may be taken for one that was removed: its number is used again.
    machine: whose disk it is, where others are known as well
    """
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    try:
        stat = os.fstat(descriptor)
        disks = [str(stat.st_dev)]
        with contextlib.suppress(AttributeError, OSError):  # no Unix
            if identity := os.fstatvfs(descriptor).f_fsid:
                disks.append(f"fs{identity:x}")
        generation = ""
        with contextlib.suppress(ImportError, OSError):  # no Unix, or a file system without
            from fcntl import ioctl

            generation = (
                f":{int.from_bytes(ioctl(descriptor, _GENERATION, bytes(8))[:4], 'little')}"
            )
    finally:
        os.close(descriptor)
    start = f"{FILE_PREFIX}{machine}:" if machine else FILE_PREFIX
    return tuple(f"{start}{disk}:{stat.st_ino}{generation}" for disk in disks)


# ---- Which machine a path is of, for what several machines share: the same after every restart.


VARIABLE = "RPEXPLORE_MACHINE"
_IDENTITIES = Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id")
_MOUNTS = Path("/proc/self/mountinfo")
# File systems that several machines mount, as Linux calls them.
_SHARED = {
    "afs", "beegfs", "ceph", "cifs", "fuse.ceph", "fuse.glusterfs", "fuse.sshfs", "gfs2",
    "glusterfs", "gpfs", "lustre", "nfs", "nfs4", "ocfs2", "smb3", "smbfs",
}  # fmt: skip


def machine_names(path: Path) -> tuple[str, ...]:
    """Names of the machine that a path is on: the one in `VARIABLE`, then its own.

    It has both names, so that setting the variable later makes no other machine of it. Raises
    `LedgerError` where the same file could be of another machine tomorrow: in a container without
    an identity, and in a folder that several machines mount, unless the variable is set.
    """
    named = os.environ.get(VARIABLE, "").strip()
    if named and not re.fullmatch(r"[\w.-]{1,100}", named):
        raise LedgerError(
            f"{VARIABLE} must be a name of letters, digits and signs of -_. alone, got {named!r}; "
            "correct it."
        )
    own = _identity()
    problem = ""
    best, kind = -1, ""
    with suppress(OSError):
        for line in _MOUNTS.read_text("utf-8", "surrogateescape").splitlines():
            # https://docs.kernel.org/filesystems/proc.html, 3.5
            before, _, behind = line.partition(" - ")
            mounted = re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), before.split()[4])
            if path.is_relative_to(mounted) and len(mounted) >= best:
                best, kind = len(mounted), behind.split()[0]
    if kind in _SHARED:
        problem = f"{str(path)!r} lies in a folder that other machines can have as well"
    elif not own:
        problem = "this machine has no identity that is the same after a restart"
    if problem and not named:
        raise LedgerError(
            f"A ledger in a database knows files by their machine, and {problem}; name it in the "
            f"environment variable {VARIABLE}, the same on all that have these files at this path."
        )
    return tuple(filter(None, [named, own]))


def _identity() -> str:
    """A digest of the system's own number; its host name where no number is known; or ""."""
    for file in _IDENTITIES:
        with suppress(OSError, UnicodeDecodeError):
            number = file.read_text("ascii").strip()
            if re.fullmatch(r"[0-9a-f]{32}", number):
                # The number itself is not for others: see machine-id(5).
                return hashlib.sha256(f"rpexplore ledger {number}".encode()).hexdigest()[:16]
    # On Linux that is a container, whose host name changes.
    return "" if sys.platform == "linux" else re.sub(r"[^\w.-]", "-", platform.node())


# ---- Paths that people type.


def typed_path(typed: str) -> Path:
    """A typed or pasted path; some file managers copy it with quotation marks around."""
    typed = typed.strip()
    if len(typed) > 1 and typed[0] == typed[-1] and typed[0] in "\"'":
        typed = typed[1:-1]
    return Path(os.path.expanduser(typed))


def nearest_folder(path: Path) -> Path:
    """The first thing above a path that exists; what is missing below it is made."""
    return next(parent for parent in path.absolute().parents if os.path.exists(parent))


def why_no_name(path: Path) -> str:
    """Why there can be nothing of this name, whoever may write there; "" if there can."""
    try:
        os.lstat(path)
    except ValueError:
        return "it holds a NUL"
    except OSError as error:
        return os.strerror(error.errno) if error.errno in (ENAMETOOLONG, ELOOP) else ""
    return ""
