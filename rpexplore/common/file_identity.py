"""What a file is, whatever it is called: the same for every link to it, and after a renaming."""

import contextlib
import os
from pathlib import Path

FILE_PREFIX = "file:"

# FS_IOC_GETVERSION of Linux: tells apart the files that have had the same number (inode).
_GENERATION = 0x80087601


def file_identity(path: Path, machine: str = "") -> str:
    """Device, number and, where the file system tells it, generation. Raises `OSError`.

    Without a generation a new file may be taken for one that was removed: its number is used again.
    machine: whose device it is, where others are known as well
    """
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    try:
        stat = os.fstat(descriptor)
        generation = ""
        with contextlib.suppress(ImportError, OSError):  # no Unix, or a file system without
            from fcntl import ioctl

            generation = (
                f":{int.from_bytes(ioctl(descriptor, _GENERATION, bytes(8))[:4], 'little')}"
            )
    finally:
        os.close(descriptor)
    device = f"{machine}:{stat.st_dev}" if machine else stat.st_dev
    return f"{FILE_PREFIX}{device}:{stat.st_ino}{generation}"
