"""A folder that is there when it is complete, and not before: what a release is written into."""

import errno
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from shlex import quote

from rpexplore.common.files import names_to_disk, problem_with_owner, refuse_undecodable
from rpexplore.common.text import data_size
from rpexplore.errors import ReleaseError

MANIFEST = "manifest.json"  # the last file of a complete folder
_OURS = b'{"format":"rpexplore-'


@contextmanager
def new_folder(
    output: Path,
    *,
    kept_with: str | None = None,
    drawn: str | None = None,
    is_new: bool = True,
    confirm: Callable[[Path], None] | None = None,
) -> Iterator[Path]:
    """A folder under a temporary name beside `output` that gets its name if the block ends well.

    The temporary name is the same for every run into `output`, and locked, so that two runs are
    not both charged for one folder. Raises `ReleaseError` if `output` exists, is being written, or
    cannot be made. Whatever else goes wrong, Ctrl-C included, leaves nothing behind; what a killed
    process leaves is cleared by the next run into `output`.

    Args:
        kept_with: A file with which the unfinished folder stays as it is, whatever goes wrong.
        drawn: A file with which no run but `resumed_folder` may touch it.
        is_new: Whether what an earlier run has left is cleared.
        confirm: Called with the temporary folder when all of it is on disk and `output` is free,
            just before it gets its name; it does not if this raises.
    """
    check_new(output, drawn=drawn)
    temporary = unfinished_folder(output)
    was_there = temporary.exists()
    try:
        with _new_and_locked(output, temporary, drawn) as lock:
            for left in temporary.iterdir() if is_new else ():
                shutil.rmtree(left) if left.is_dir() else left.unlink()
            with _give_name(output, temporary, kept_with, lock, confirm):
                yield temporary
    except KeyboardInterrupt:
        # It may have come before anybody would clear the folder that had just been made.
        if not was_there:
            with suppress(OSError):
                temporary.rmdir()
        raise


@contextmanager
def _new_and_locked(output: Path, temporary: Path, drawn: str | None) -> Iterator[int]:
    """The descriptor of the temporary folder: made if need be, locked, and this user's."""
    is_made = False
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            temporary.mkdir(mode=0o700)
            is_made = True
        lock = _open_folder(temporary)
    except (OSError, ValueError) as error:
        if is_made:  # with a umask that takes its owner's rights
            with suppress(OSError):
                temporary.rmdir()
        raise ReleaseError(
            f"The release cannot be written to {str(output)!r} ({error}); choose a folder that can "
            "be written to."
        ) from None
    with _lock(lock, temporary, output):
        _refuse_foreign(lock, temporary)
        try:
            check_new(output, drawn=drawn)  # it may have been filled before it was locked
        except ReleaseError:
            with suppress(OSError):
                temporary.rmdir()  # made above, when another run had just given its own a name
            raise
        yield lock


@contextmanager
def resumed_folder(
    output: Path, drawn: str, confirm: Callable[[Path], None] | None = None
) -> Iterator[Path]:
    """The unfinished folder that an earlier `new_folder(output, drawn=…)` has left behind.

    It gets its name if the block ends well, and stays otherwise. Raises `ReleaseError` if there is
    none, if `output` exists, or if a run is writing there. confirm: as in `new_folder`
    """
    check_new(output)
    temporary = unfinished_folder(output)
    try:
        lock = _open_folder(temporary)
    except (OSError, ValueError):
        lock = None
    if lock is None or not (temporary / drawn).is_file():
        raise ReleaseError(
            f"There is no run into {str(output)!r} that could be finished: none was stopped after "
            "its noise had been drawn. Run the plan into it (one that was booked before is not "
            "charged again; name its ledger where that is now, --ledger, if it was moved)."
        )
    with _lock(lock, temporary, output):
        _refuse_foreign(lock, temporary)
        with _give_name(output, temporary, drawn, lock, confirm):
            yield temporary


def clear_unfinished(output: Path, kept_with: str) -> None:
    """Remove what a killed `new_folder(output)` has left, unless a run needs it or may be charged.

    kept_with: a file with which it is left as it is
    """
    temporary = unfinished_folder(output)
    with suppress(OSError, ReleaseError), _lock(_open_folder(temporary), temporary, output):
        _refuse_foreign(temporary, temporary)
        if not (temporary / kept_with).exists():
            shutil.rmtree(temporary)


def _refuse_foreign(found: Path | int, temporary: Path) -> None:
    """Raise `ReleaseError` for an unfinished folder that no run of this user has made.

    What it holds would be taken for an earlier run, and what is written there could be read and
    exchanged. found: its path, or its descriptor
    """
    if problem := problem_with_owner(found):
        raise ReleaseError(
            f"The folder {str(temporary)!r}, which only a stopped run would leave, cannot be used: "
            f"{problem}. To go on with a colleague's run, have the administrator make the folder "
            "yours (chown -R); if it is yours, take the right to write to it from others (chmod "
            "go-w). For a new run have it removed, or choose another folder."
        )


def unfinished_folder(output: Path) -> Path:
    """Where the folder lies as long as it is not complete."""
    return output.parent / f".{output.name}.unfinished"


@contextmanager
def _give_name(
    output: Path,
    temporary: Path,
    kept_with: str | None,
    lock: int,
    confirm: Callable[[Path], None] | None,
) -> Iterator[None]:
    """Give the temporary folder its name if the block ends well; else remove it, or keep it.

    lock: the descriptor by which it was opened: whoever may write beside it could have put another
        folder, or a link to one, in its place
    """
    try:
        yield
        _refuse_exchanged(temporary, lock, output)
        usual = _usual_mode(temporary)
        # Others may write to a folder only when it has its name: an unfinished one is one's own.
        os.fchmod(lock, usual & ~(stat.S_IWGRP | stat.S_IWOTH))
        check_new(output)
        os.sync()  # all of it is on disk before it looks complete
        _refuse_exchanged(temporary, lock, output)
        if confirm is not None:
            confirm(temporary)
        temporary.rename(output)
        _refuse_exchanged(output, lock, output)  # between the two there is time enough
        names_to_disk(output.parent)
        with suppress(OSError):
            output.chmod(usual)
    except BaseException:
        is_kept = kept_with is not None and (temporary / kept_with).exists()
        if not is_kept and _is_opened(temporary, lock):
            shutil.rmtree(temporary, ignore_errors=True)
        raise


def _refuse_exchanged(folder: Path, lock: int, output: Path) -> None:
    """Raise `ReleaseError` if a folder is not the one that was opened for the output."""
    if not _is_opened(folder, lock):
        raise ReleaseError(
            f"Nothing was released into {str(output)!r}: somebody has exchanged its unfinished "
            "folder for another one, so that what was written may lie elsewhere. Choose a folder "
            "into which nobody else may write."
        )


def _is_opened(temporary: Path, lock: int) -> bool:
    """Whether the folder of this path is the opened one, and no link to it."""
    try:
        return os.path.samestat(os.fstat(lock), temporary.lstat())
    except OSError:
        return False


def _open_folder(temporary: Path) -> int:
    # Not through a link: what it leads to is not ours to empty.
    return os.open(temporary, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)


@contextmanager
def _lock(lock: int, temporary: Path, output: Path) -> Iterator[None]:
    """Lock the opened temporary folder; raise `ReleaseError` if another run has it."""
    import fcntl  # which Windows lacks: `check_new` says so

    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # A run that ended between our opening and locking has taken the folder away.
            if not _is_opened(temporary, lock):
                raise BlockingIOError
        except BlockingIOError:
            raise ReleaseError(
                f"Another run is writing to {str(output)!r}; wait for it, or choose another folder."
            ) from None
        yield
    finally:
        os.close(lock)


def _usual_mode(folder: Path) -> int:
    """Temporary folders are closed to others; a finished one is as open as the user's others."""
    usual = folder / ".usual"
    usual.mkdir(exist_ok=True)  # a run that was killed here may have left it
    mode = stat.S_IMODE(usual.stat().st_mode)
    usual.rmdir()
    return mode


def refuse_unfinished(folder: Path) -> None:
    """Raise `ReleaseError` for the folder of a run that has not ended, whatever is written in it.

    Of two copies of it only one becomes a release, and nothing is read of the other one.
    """
    name = Path(os.path.abspath(folder)).name
    if name == unfinished_folder(Path(name[1:].removesuffix(".unfinished"))).name:
        raise ReleaseError(
            f"{str(folder)!r} is the unfinished folder of a run, and no release yet; finish the "
            "run (rpexplore release --resume --out FOLDER, with the name that it is to have)."
        )


def write_to_disk(path: Path, content: str | bytes) -> None:
    """Write a file whose contents are on disk afterwards; text as UTF-8."""
    with path.open("wb") as file:
        file.write(content.encode() if isinstance(content, str) else content)
        file.flush()
        os.fsync(file.fileno())


def check_room(needed: float, output: Path) -> None:
    """Raise `ReleaseError` if the disk has clearly no room for so many bytes."""
    folder = next(parent for parent in output.absolute().parents if parent.exists())
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise ReleaseError(
            f"What goes into {str(output)!r} needs about {data_size(needed)}, and the disk of "
            f"{str(folder)!r} has {data_size(free)} free; make room, or choose another disk."
        )


def _is_complete(folder: Path) -> bool:
    """Whether a release, or what was made of some, was written into this folder."""
    path = folder / MANIFEST
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return b"".join(file.read(100).split()).startswith(_OURS)


def check_new(output: Path, *, drawn: str | None = None) -> None:
    """Raise `ReleaseError` if there is something at `output` already, or it cannot be made.

    drawn: also if an earlier run into it was stopped, and left a folder with this file
    """
    if find_spec("fcntl") is None:  # Windows
        raise ReleaseError(
            "This system cannot lock a folder, so that two runs could write to one; plan here, and "
            "write releases under Linux or macOS."
        )
    try:
        refuse_undecodable(output)
        _refuse_foreign(unfinished_folder(output), unfinished_folder(output))
        taken = output.exists() or output.is_symlink()
        left = drawn is not None and (unfinished_folder(output) / drawn).exists()
        parents = (*output.absolute().parents, output.absolute())  # "/" has no parents
        nearest = next(parent for parent in parents if os.path.lexists(parent))
        if not nearest.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, f"{str(nearest)!r} is no folder")
        if not os.access(nearest, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, f"{str(nearest)!r} cannot be written to")
        for folder in Path(os.path.realpath(output)).parents:
            if _is_complete(folder):
                raise ValueError(f"it lies in {str(folder)!r}, which is complete")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ReleaseError(
            f"A release cannot be written to {str(output)!r:.200} ({reason}); choose another "
            "folder."
        ) from None
    if taken:
        raise ReleaseError(
            f"There is already something at {str(output)!r}, and nothing is ever overwritten; "
            "choose another folder."
        )
    if left:
        raise ReleaseError(
            f"An earlier run into {str(output)!r} was stopped after its noise had been drawn and "
            f"charged; finish it (rpexplore release --resume --out {quote(str(output))}), or "
            "choose another folder."
        )


def not_written_but_drawn(output: Path, error: OSError) -> ReleaseError:
    """What is raised for a run that was stopped after its noise was drawn."""
    failed = ReleaseError(
        f"{not_written(output, error)}. The run is charged, and its noise is drawn and kept: make "
        "room, if that was the reason, and finish it without further cost (rpexplore release "
        f"--resume --out {quote(str(output))})."
    )
    failed.says_charge = True
    return failed


def not_written(output: Path, error: OSError) -> str:
    """What a message begins with where a folder could not be written."""
    return f"The release could not be written to {str(output)!r} ({error.strerror or error})"
