"""A folder that is there when it is complete, and not before: what a release is written into."""

import fcntl
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rpexplore.errors import ReleaseError
from rpexplore.words import data_size


@contextmanager
def new_folder(output: Path) -> Iterator[Path]:
    """A folder under a temporary name beside `output` that gets its name if the block ends well.

    The temporary name is the same for every run into `output`, and locked, so that two runs are
    not both charged for one folder. Raises `ReleaseError` if `output` exists, is being written, or
    cannot be made. Whatever else goes wrong, Ctrl-C included, leaves nothing behind; what a killed
    process leaves is cleared by the next run into `output`.
    """
    check_new(output)
    temporary = output.parent / f".{output.name}.unfinished"
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        temporary.mkdir(mode=0o700, exist_ok=True)
        # Not through a link: what it leads to is not ours to empty.
        lock = os.open(temporary, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except (OSError, ValueError) as error:
        raise ReleaseError(
            f"The release cannot be written to {str(output)!r} ({error}); choose a folder that can "
            "be written to."
        ) from None
    try:
        _claim(lock, temporary, output)
        try:
            yield temporary
            _open_as_usual(temporary)
            check_new(output)
            temporary.rename(output)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    finally:
        os.close(lock)


def _claim(lock: int, temporary: Path, output: Path) -> None:
    """Lock the temporary folder and empty it; raise `ReleaseError` if another run has it."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # A run that ended between our opening and locking has taken the folder away.
        if not os.path.samestat(os.fstat(lock), temporary.stat()):
            raise BlockingIOError
    except (BlockingIOError, FileNotFoundError):
        raise ReleaseError(
            f"Another run is writing to {str(output)!r}; wait for it, or choose another folder."
        ) from None
    for left in temporary.iterdir():
        shutil.rmtree(left) if left.is_dir() else left.unlink()


def _open_as_usual(folder: Path) -> None:
    """Temporary folders are closed to others; a finished one is as open as the user's others."""
    usual = folder / ".usual"
    usual.mkdir()
    folder.chmod(stat.S_IMODE(usual.stat().st_mode))
    usual.rmdir()


def check_room(needed: float, output: Path) -> None:
    """Raise `ReleaseError` if the disk has clearly no room for so many bytes."""
    folder = next(parent for parent in output.absolute().parents if parent.exists())
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise ReleaseError(
            f"The release needs about {data_size(needed)}, and the disk of {str(folder)!r} has "
            f"{data_size(free)} free; ask for less, or choose another disk."
        )


def check_new(output: Path) -> None:
    """Raise `ReleaseError` if there is something at `output` already."""
    try:
        taken = output.exists() or output.is_symlink()
    except (OSError, ValueError) as error:
        raise ReleaseError(
            f"A release cannot be written to {str(output)!r:.200} ({error}); choose another folder."
        ) from None
    if taken:
        raise ReleaseError(
            f"There is already something at {str(output)!r}, and a release is never overwritten; "
            "choose another folder."
        )
